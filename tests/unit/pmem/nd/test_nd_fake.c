/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/nd/nd_fake.h"

#include "base/str.h"
#include "unit/pmem/nd/nd_contract.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define UUID_A "6f1d2c3b-0000-4000-8000-00000000000a"
#define UUID_B "6f1d2c3b-0000-4000-8000-00000000000b"

static struct nd *open_one(struct nd_fake_region region)
{
	return nd_open_fake(&region, 1);
}

static struct nd *open_usual(void)
{
	return open_one(
		(struct nd_fake_region){.size_bytes = GIB(2), .align_bytes = MIB(16), .label_slots = 8});
}

static int create(struct nd *nd, const char *uuid, uint64_t size_bytes, struct error **err)
{
	struct nd_spec spec = {"ndbus0", "region0", "some", uuid, size_bytes, ND_FSDAX};
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;

	return nd_create(nd, &spec, &ns, &after, err);
}

static void assert_create(struct nd *nd, const char *uuid, uint64_t size_bytes, int code)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(create(nd, uuid, size_bytes, &err), code ? -1 : 0);
	ck_assert_int_eq(err ? (int)err->code : 0, code);
}

static struct nd_inventory *list(struct nd *nd)
{
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(nd, &inv, &err));
	return inv;
}

#define CONTRACT_TEST(name)                                                                                  \
	START_TEST(fake_keeps_the_contract_of_##name)                                                        \
	{                                                                                                    \
		CLEANUP(nd_closep) struct nd *nd = open_usual();                                             \
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

START_TEST(label_slots_run_out)
{
	CLEANUP(nd_closep)
	struct nd *nd = open_one(
		(struct nd_fake_region){.size_bytes = GIB(2), .align_bytes = MIB(16), .label_slots = 1});

	assert_create(nd, UUID_A, MIB(64), 0);
	assert_create(nd, UUID_B, MIB(64), ERR_EXHAUSTED);
}
END_TEST

START_TEST(interleaved_region_demands_its_whole_unit)
{
	CLEANUP(nd_closep)
	struct nd *nd = open_one((struct nd_fake_region){
		.size_bytes = GIB(3), .align_bytes = MIB(48), .ways = 3, .label_slots = 8});

	assert_create(nd, UUID_A, MIB(64), ERR_INVALID_ARGUMENT);
	assert_create(nd, UUID_A, MIB(96), 0);
}
END_TEST

START_TEST(region_that_cannot_be_used_is_a_precondition)
{
	static const struct nd_fake_region regions[] = {
		{.size_bytes = GIB(2), .label_slots = 0},
		{.size_bytes = GIB(2), .label_slots = 8, .disabled = true},
		{.size_bytes = GIB(2), .label_slots = 8, .readonly = true},
		{.size_bytes = GIB(2), .label_slots = 8, .not_pmem = true},
	};
	CLEANUP(nd_closep) struct nd *nd = open_one(regions[_i]);

	assert_create(nd, UUID_A, MIB(96), ERR_PRECONDITION);
}
END_TEST

START_TEST(injected_failure_leaves_nothing_and_happens_once)
{
	CLEANUP(nd_closep) struct nd *nd = open_usual();

	nd_fake_fail(nd, ERR_INTERNAL);
	assert_create(nd, UUID_A, MIB(64), ERR_INTERNAL);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	ck_assert_uint_eq(inv->regions[0].n_namespaces, 0);
	assert_create(nd, UUID_A, MIB(64), 0);
}
END_TEST

START_TEST(lowest_place_is_taken_first)
{
	CLEANUP(nd_closep) struct nd *nd = open_usual();

	nd_fake_add(nd, 0, "theirs", ND_SECTOR, MIB(512), MIB(512));
	assert_create(nd, UUID_A, MIB(256), 0);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];
	ck_assert_uint_eq(r->n_namespaces, 2);
	ck_assert_uint_eq(r->namespaces[0].offset_bytes, 0);
	ck_assert_str_eq(r->namespaces[1].name, "theirs");
	ck_assert_str_eq(nd_mode_name(r->namespaces[1].mode), "sector");
	ck_assert_uint_eq(r->max_extent_bytes, GIB(1));
}
END_TEST

START_TEST(only_an_active_fsdax_namespace_of_that_name_is_a_pool)
{
	CLEANUP(nd_closep) struct nd *nd = open_usual();

	nd_fake_add(nd, 0, "pmem-csi", ND_FSDAX, 0, MIB(64));
	nd_fake_add(nd, 0, "pmem-csi", ND_FSDAX, MIB(64), MIB(64));
	nd_fake_disable(nd, 0, MIB(64));
	nd_fake_add(nd, 0, "pmem-csi", ND_RAW, MIB(128), MIB(64));
	nd_fake_add(nd, 0, "pmem-csi2", ND_FSDAX, MIB(192), MIB(64));
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_namespace *ns = inv->regions[0].namespaces;
	ck_assert(nd_is_pool(&ns[0]));
	ck_assert(!nd_is_pool(&ns[1]));
	ck_assert_ptr_null(ns[1].block_path);
	ck_assert(!nd_is_pool(&ns[2]));
	ck_assert(!nd_is_pool(&ns[3]));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nd_fake");
	TCase *tc = tcase_create("nd_fake");

	tcase_add_test(tc, fake_keeps_the_contract_of_create);
	tcase_add_test(tc, fake_keeps_the_contract_of_sizes);
	tcase_add_test(tc, fake_keeps_the_contract_of_sector);
	tcase_add_test(tc, fake_keeps_the_contract_of_refusals);
	tcase_add_test(tc, fake_keeps_the_contract_of_foreign);
	tcase_add_test(tc, fake_keeps_the_contract_of_extents);
	tcase_add_test(tc, label_slots_run_out);
	tcase_add_test(tc, interleaved_region_demands_its_whole_unit);
	tcase_add_loop_test(tc, region_that_cannot_be_used_is_a_precondition, 0, 4);
	tcase_add_test(tc, injected_failure_leaves_nothing_and_happens_once);
	tcase_add_test(tc, lowest_place_is_taken_first);
	tcase_add_test(tc, only_an_active_fsdax_namespace_of_that_name_is_a_pool);
	suite_add_tcase(suite, tc);

	return unit_runner_finish(srunner_create(suite));
}
