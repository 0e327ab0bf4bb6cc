/*
 * The contract of nd.h on the kernel of this machine. It makes and destroys namespaces, so that it runs only
 * where PMEM_LAB_MACHINE is set: in the virtual machine, with empty regions.
 */
#include <stdio.h>

#include "unit/pmem/nd_contract.h"
#include "unit/unit.h"

#define SKIPPED 77

static struct nd *open_real(void)
{
	struct error *err = NULL;
	struct nd *nd = NULL;

	ASSERT_OK(nd_open_real(&nd, &err));
	return nd;
}

#define CONTRACT_TEST(name)                                                                                  \
	START_TEST(kernel_keeps_the_contract_of_##name)                                                      \
	{                                                                                                    \
		CLEANUP(nd_closep) struct nd *nd = open_real();                                              \
                                                                                                             \
		nd_contract_##name(nd);                                                                      \
	}                                                                                                    \
	END_TEST

CONTRACT_TEST(create)
CONTRACT_TEST(sizes)
CONTRACT_TEST(sector)
CONTRACT_TEST(refusals)
CONTRACT_TEST(foreign)
CONTRACT_TEST(extents)

int main(void)
{
	if (!getenv("PMEM_LAB_MACHINE")) {
		fputs("skipped: makes namespaces, and PMEM_LAB_MACHINE is not set\n", stderr);
		return SKIPPED;
	}

	Suite *suite = suite_create("nd_real");
	TCase *tc = tcase_create("nd_real");

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, kernel_keeps_the_contract_of_create);
	tcase_add_test(tc, kernel_keeps_the_contract_of_sizes);
	tcase_add_test(tc, kernel_keeps_the_contract_of_sector);
	tcase_add_test(tc, kernel_keeps_the_contract_of_refusals);
	tcase_add_test(tc, kernel_keeps_the_contract_of_foreign);
	tcase_add_test(tc, kernel_keeps_the_contract_of_extents);
	suite_add_tcase(suite, tc);

	return unit_runner_finish(srunner_create(suite));
}
