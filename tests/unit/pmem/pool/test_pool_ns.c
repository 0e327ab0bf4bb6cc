/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"
#include "pmem/pool/pool_ns.h"
#include "unit/pmem/nd/nd_fake.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)
#define TIB(n) ((uint64_t)(n) << 40)

static struct nd *open_sized(uint64_t size_bytes)
{
	struct nd_fake_region region = {.size_bytes = size_bytes, .align_bytes = MIB(16), .label_slots = 64};

	return nd_open_fake(&region, 1);
}

static struct nd_inventory *list(struct nd *nd)
{
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(nd, &inv, &err));
	return inv;
}

/* Return: bytes that were created by one run, as pmem-ns-init does it. */
static uint64_t run(struct nd *nd, unsigned percent)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};
	uint64_t sum = 0;

	pool_ns_plan_region(&inv->regions[0], percent, &plan);
	for (size_t i = 0; i < plan.n_sizes; i++) {
		CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
		struct error *err = NULL;
		ASSERT_OK(pool_ns_apply(nd, &plan, i, &ns, &err));
		ck_assert(nd_is_pool(ns));
		ck_assert_uint_eq(ns->raw_bytes, plan.sizes_bytes[i]);
		sum += ns->raw_bytes;
	}
	ck_assert_uint_eq(sum, plan.create_bytes);
	return sum;
}

/* Return: reason of the plan, "" when there is none; caller frees. */
static char *reason(struct nd *nd, unsigned percent)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	pool_ns_plan_region(&inv->regions[0], percent, &plan);
	return x_strdup(plan.reason ? plan.reason : "");
}

static void assert_reason(struct nd *nd, unsigned percent, const char *part)
{
	CLEANUP(free_charp) char *text = reason(nd, percent);

	ck_assert_msg(part[0] ? strstr(text, part) != NULL : !text[0], "\"%s\"", text);
}

START_TEST(blank_region_is_used_up_to_the_percentage)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	ck_assert_uint_eq(run(nd, 50), GIB(1));
	assert_reason(nd, 50, "");
}
END_TEST

START_TEST(repeating_adds_nothing_at_any_percentage)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2) + MIB(16) * (uint64_t)(_i % 7));

	run(nd, (unsigned)_i);
	ck_assert_uint_eq(run(nd, (unsigned)_i), 0);
	ck_assert_uint_eq(run(nd, (unsigned)_i), 0);
}
END_TEST

START_TEST(growing_percentage_adds_the_difference)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	ck_assert_uint_eq(run(nd, 50), GIB(1));
	ck_assert_uint_eq(run(nd, 100), GIB(1));
	assert_reason(nd, 100, "");
}
END_TEST

START_TEST(shrinking_percentage_changes_nothing_and_says_so)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	/* half of the region is free: a budget below 0 would not go unseen */
	ck_assert_uint_eq(run(nd, 50), GIB(1));
	ck_assert_uint_eq(run(nd, 30), 0);
	assert_reason(nd, 30, "more than the budget");
}
END_TEST

START_TEST(zero_percent_makes_nothing)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	ck_assert_uint_eq(run(nd, 0), 0);
}
END_TEST

/* 99 % of 10 GiB is no multiple of 16 MiB; dividing first would lose up to 99 bytes and so a whole unit
 * elsewhere. */
START_TEST(percentage_is_multiplied_first)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(MIB(16) * 199);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	pool_ns_plan_region(&inv->regions[0], 100, &plan);
	ck_assert_uint_eq(plan.budget_bytes, MIB(16) * 199);
	ck_assert_uint_eq(plan.create_bytes, MIB(16) * 199);
}
END_TEST

START_TEST(percentage_of_a_huge_region_does_not_overflow)
{
	uint64_t size = UINT64_MAX / MIB(16) * MIB(16);
	CLEANUP(nd_closep) struct nd *nd = open_sized(size);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	pool_ns_plan_region(&inv->regions[0], 50, &plan);
	ck_assert_uint_eq(plan.budget_bytes, size / 2);
	ck_assert_uint_eq(plan.create_bytes, layout_round_down(size / 2, MIB(16)));
}
END_TEST

START_TEST(foreign_namespaces_do_not_count_but_take_room)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	nd_fake_add(nd, 0, "theirs", ND_FSDAX, 0, GIB(1));
	assert_reason(nd, 100, "no further free extent");
	ck_assert_uint_eq(run(nd, 100), GIB(1));
	assert_reason(nd, 100, "no further free extent");
	ck_assert_uint_eq(run(nd, 100), 0);
}
END_TEST

START_TEST(every_extent_of_a_fragmented_region_is_used_once)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	/* free: 256 MiB, 512 MiB, 32 MiB, 224 MiB */
	nd_fake_add(nd, 0, "theirs", ND_FSDAX, MIB(256), MIB(256));
	nd_fake_add(nd, 0, "theirs", ND_DEVDAX, MIB(1024), MIB(512));
	nd_fake_add(nd, 0, "", ND_SECTOR, MIB(1568), MIB(256));

	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};
	pool_ns_plan_region(&inv->regions[0], 100, &plan);
	ck_assert_uint_eq(plan.n_sizes, 3);
	ck_assert_uint_eq(plan.sizes_bytes[0], MIB(512));
	ck_assert_uint_eq(plan.sizes_bytes[1], MIB(256));
	ck_assert_uint_eq(plan.sizes_bytes[2], MIB(224));

	ck_assert_uint_eq(run(nd, 100), MIB(992));
	ck_assert_uint_eq(run(nd, 100), 0);
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = list(nd);
	ck_assert_uint_eq(after->regions[0].n_namespaces, 6);
	ck_assert_uint_eq(after->regions[0].available_bytes, MIB(32));
}
END_TEST

START_TEST(budget_ends_within_the_extents)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	nd_fake_add(nd, 0, "theirs", ND_FSDAX, MIB(512), MIB(512));
	ck_assert_uint_eq(run(nd, 60), layout_round_down(GIB(2) * 60 / 100, MIB(16)));
	ck_assert_uint_eq(run(nd, 60), 0);
	assert_reason(nd, 60, "");
}
END_TEST

START_TEST(smallest_pool_is_64_mib_or_one_unit)
{
	struct nd_fake_region coarse = {.size_bytes = GIB(8), .align_bytes = GIB(1), .label_slots = 8};
	CLEANUP(nd_closep) struct nd *small = open_sized(MIB(48));
	CLEANUP(nd_closep) struct nd *enough = open_sized(MIB(64));
	CLEANUP(nd_closep) struct nd *large_unit = nd_open_fake(&coarse, 1);

	ck_assert_uint_eq(run(small, 100), 0);
	assert_reason(small, 100, "less than the smallest pool namespace (64Mi)");
	ck_assert_uint_eq(run(enough, 100), MIB(64));
	ck_assert_uint_eq(run(large_unit, 12), 0);
	ck_assert_uint_eq(run(large_unit, 13), GIB(1));
}
END_TEST

START_TEST(unit_of_an_interleaved_region_is_kept)
{
	struct nd_fake_region region = {
		.size_bytes = MIB(48) * 41, .align_bytes = MIB(48), .ways = 6, .label_slots = 8};
	CLEANUP(nd_closep) struct nd *nd = nd_open_fake(&region, 1);

	ck_assert_uint_eq(run(nd, 50), MIB(48) * 20);
	ck_assert_uint_eq(run(nd, 100), MIB(48) * 21);
}
END_TEST

START_TEST(broken_own_namespace_counts_and_is_named)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));

	nd_fake_add(nd, 0, "pmem-csi", ND_FSDAX, 0, GIB(1));
	nd_fake_disable(nd, 0, 0);
	ck_assert_uint_eq(run(nd, 50), 0);
	assert_reason(nd, 50, "is not an active fsdax namespace");
}
END_TEST

START_TEST(unusable_region_is_skipped_with_its_reason)
{
	static const struct {
		struct nd_fake_region region;
		const char *reason;
	} cases[] = {
		{{.size_bytes = GIB(2), .label_slots = 8, .not_pmem = true}, "not persistent memory"},
		{{.size_bytes = GIB(2), .label_slots = 8, .disabled = true}, "disabled"},
		{{.size_bytes = GIB(2), .label_slots = 8, .readonly = true}, "read-only"},
		{{.size_bytes = GIB(2)}, "no labels"},
		{{.size_bytes = GIB(2), .label_slots = 8, .align_bytes = (1ULL << 63) + 1}, "alignment"},
	};
	CLEANUP(nd_closep) struct nd *nd = nd_open_fake(&cases[_i].region, 1);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	pool_ns_plan_region(&inv->regions[0], 100, &plan);
	ck_assert(plan.skipped);
	ck_assert_uint_eq(plan.n_sizes, 0);
	ck_assert_ptr_nonnull(strstr(plan.reason, cases[_i].reason));
}
END_TEST

static void refuse_all(const char *folder, struct nd_inventory *inv)
{
	ck_assert_str_eq(folder, "/somewhere");
	for (size_t i = 0; i < inv->n_regions; i++)
		inv->regions[i].refused = "as asked";
}

START_TEST(region_that_a_guard_refuses_is_skipped)
{
	static const struct nd_fake_region blank = {.size_bytes = GIB(2), .label_slots = 8};
	CLEANUP(nd_closep) struct nd *nd = nd_open_fake(&blank, 1);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	nd_set_guard(nd, refuse_all, "/somewhere");
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	pool_ns_plan_region(&inv->regions[0], 100, &plan);
	ck_assert(plan.skipped);
	ck_assert_str_eq(plan.reason, "as asked");
}
END_TEST

START_TEST(unknown_places_leave_only_the_largest_extent)
{
	struct nd_namespace theirs = {
		.dev = x_strdup("namespace0.0"),
		.name = x_strdup("theirs"),
		.uuid = x_strdup(""),
		.raw_bytes = MIB(512),
		.offset_bytes = ND_OFFSET_UNKNOWN,
		.active = true,
	};
	struct nd_region region = {
		.size_bytes = GIB(2),
		.available_bytes = MIB(1536),
		.max_extent_bytes = MIB(777),
		.align_bytes = MIB(16),
		.is_pmem = true,
		.enabled = true,
		.has_labels = true,
		.namespaces = &theirs,
		.n_namespaces = 1,
	};
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	pool_ns_plan_region(&region, 100, &plan);
	ck_assert_uint_eq(plan.n_sizes, 1);
	ck_assert_uint_eq(plan.create_bytes, MIB(768));
	free(theirs.dev);
	free(theirs.name);
	free(theirs.uuid);
}
END_TEST

START_TEST(kernel_is_believed_when_it_offers_less)
{
	struct nd_region region = {
		.size_bytes = GIB(2),
		.available_bytes = GIB(1),
		.max_extent_bytes = GIB(1),
		.align_bytes = MIB(16),
		.is_pmem = true,
		.enabled = true,
		.has_labels = true,
	};
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};

	pool_ns_plan_region(&region, 100, &plan);
	ck_assert_uint_eq(plan.n_sizes, 1);
	ck_assert_uint_eq(plan.create_bytes, GIB(1));
	ck_assert_ptr_nonnull(plan.reason);
}
END_TEST

START_TEST(failed_creation_can_be_repeated)
{
	CLEANUP(nd_closep) struct nd *nd = open_sized(GIB(2));
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(pool_ns_plan_done) struct pool_ns_plan plan = {0};
	CLEANUP(error_freep) struct error *err = NULL;
	struct nd_namespace *ns = NULL;

	pool_ns_plan_region(&inv->regions[0], 100, &plan);
	nd_fake_fail(nd, ERR_INTERNAL);
	ck_assert_int_eq(pool_ns_apply(nd, &plan, 0, &ns, &err), -1);
	ck_assert_int_eq(err->code, ERR_INTERNAL);
	ck_assert_uint_eq(run(nd, 100), GIB(2));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool_ns");
	TCase *tc = tcase_create("pool_ns");

	tcase_add_test(tc, blank_region_is_used_up_to_the_percentage);
	tcase_add_loop_test(tc, repeating_adds_nothing_at_any_percentage, 0, 101);
	tcase_add_test(tc, growing_percentage_adds_the_difference);
	tcase_add_test(tc, shrinking_percentage_changes_nothing_and_says_so);
	tcase_add_test(tc, zero_percent_makes_nothing);
	tcase_add_test(tc, percentage_is_multiplied_first);
	tcase_add_test(tc, percentage_of_a_huge_region_does_not_overflow);
	tcase_add_test(tc, foreign_namespaces_do_not_count_but_take_room);
	tcase_add_test(tc, every_extent_of_a_fragmented_region_is_used_once);
	tcase_add_test(tc, budget_ends_within_the_extents);
	tcase_add_test(tc, smallest_pool_is_64_mib_or_one_unit);
	tcase_add_test(tc, unit_of_an_interleaved_region_is_kept);
	tcase_add_test(tc, broken_own_namespace_counts_and_is_named);
	tcase_add_loop_test(tc, unusable_region_is_skipped_with_its_reason, 0, 5);
	tcase_add_test(tc, region_that_a_guard_refuses_is_skipped);
	tcase_add_test(tc, unknown_places_leave_only_the_largest_extent);
	tcase_add_test(tc, kernel_is_believed_when_it_offers_less);
	tcase_add_test(tc, failed_creation_can_be_repeated);
	suite_add_tcase(suite, tc);

	return unit_runner_finish(srunner_create(suite));
}
