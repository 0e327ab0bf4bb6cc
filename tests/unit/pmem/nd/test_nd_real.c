/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of nd.h on the kernel of this machine. It makes and destroys namespaces, so that it runs only
 * where PMEM_LAB_MACHINE is set: in the virtual machine, with empty regions.
 */
#include <malloc.h>
#include <stdio.h>

#include "unit/pmem/nd/nd_contract.h"
#include "unit/unit.h"

#define SKIPPED 77

#define LISTINGS       100
#define KEPT_MAX_BYTES (256 << 10) /* freed pieces that malloc keeps in lists count as allocated, too */

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

static size_t allocated_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* A library below may keep what it should not: a driver lists for ever. */
START_TEST(listing_keeps_no_memory)
{
	CLEANUP(nd_closep) struct nd *nd = open_real();
	struct error *err = NULL;
	size_t before = 0;

	for (int i = 0; i < LISTINGS; i++) {
		CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;

		ASSERT_OK(nd_list(nd, &inv, &err));
		ck_assert_uint_gt(inv->n_regions, 0);
		nd_inventory_free(TAKE_PTR(inv));
		if (i == 0)
			before = allocated_bytes();
	}
	ck_assert_uint_le(allocated_bytes(), before + KEPT_MAX_BYTES);
}
END_TEST

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
	tcase_add_test(tc, listing_keeps_no_memory);
	suite_add_tcase(suite, tc);

	return unit_runner_finish(srunner_create(suite));
}
