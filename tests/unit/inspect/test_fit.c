/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons why a volume fits or does not fit, and the owners of the space of a region. */
#include "inspect/fit.h"

#include <stdint.h>

#include "base/str.h"
#include "unit/unit.h"

#define MIB(n)  ((uint64_t)(n) << 20)
#define OURS    "11111111-1111-1111-1111-111111111111"
#define OTHERS  "22222222-2222-2222-2222-222222222222"
#define UNKNOWN ND_OFFSET_UNKNOWN

static char vg[] = "vg-uuid", vg_name[] = "ndbus0region0fsdax", region_id[] = "region-id";
static char region_name[] = "region0", pmem0[] = "/dev/pmem0", pool_ns[] = POOL_NAMESPACE_NAME;
static char volume[] = "v", foreign[] = "f", ours[] = OURS, others[] = OTHERS, nothing[] = "";

static struct device_ops ops = {.fit = device_fit_units};
static const struct device_manager manager = {.ops = &ops};
static struct fit_answer answer;

/* One group of 1000 MiB on a region of 2000 MiB, unless a test changes them. */
static struct device_pool pool;
static struct nd_namespace namespaces[4];
static struct nd_region region;
static struct lvm_pv pv;
static struct volume_record record;
static struct device device;

static void reset(void)
{
	pool = (struct device_pool){.uuid = vg,
		.name = vg_name,
		.capacity.total_bytes = MIB(1000),
		.capacity.available_bytes = MIB(400),
		.capacity.max_volume_bytes = MIB(400),
		.capacity.max_sector_volume_bytes = MIB(400),
		.rules.unit_bytes = MIB(4),
		.complete = true};
	namespaces[0] = (struct nd_namespace){
		.name = pool_ns, .uuid = others, .raw_bytes = MIB(1000), .block_path = pmem0};
	region = (struct nd_region){.name = region_name,
		.identity = region_id,
		.size_bytes = MIB(2000),
		.available_bytes = MIB(1000),
		.max_extent_bytes = MIB(1000),
		.free_labels = 100,
		.enabled = true,
		.namespaces = namespaces,
		.n_namespaces = 1};
	pv = (struct lvm_pv){.path = pmem0, .vg_uuid = vg};
	record = (struct volume_record){.id = volume, .phase = PHASE_ERASING, .pool = vg, .identity = ours};
	device = (struct device){.id = volume, .pool = vg, .identity = ours, .size_bytes = MIB(40)};
	fit_answer_done(&answer);
}

static void ask(uint64_t size_bytes, const char *fs_type, bool with_volume)
{
	struct volume_record *records[] = {&record};
	struct device_list l = {.devices = &device, .n_devices = with_volume, .pools = &pool, .n_pools = 1};
	const struct check_view view = {
		.devices = &l, .state = {.records = records, .n_records = with_volume}};
	const struct nd_inventory inv = {.regions = &region, .n_regions = 1};
	const struct lvm_report report = {.pvs = &pv, .n_pvs = 1};
	const struct fit_node node = {.manager = &manager, .view = &view, .regions = &inv, .report = &report};
	const struct fit_request q = {
		.size_bytes = size_bytes, .fs_type = fs_type, .block = str_eq(fs_type, "block")};

	fit_answer_done(&answer);
	fit_explain(&node, &q, 0, &answer);
}

static const struct fit_reason *reason(enum fit_kind kind)
{
	for (size_t i = 0; i < answer.n_reasons; i++) {
		if (answer.reasons[i].kind == kind)
			return &answer.reasons[i];
	}
	return NULL;
}

static void expect(enum fit_kind kind, uint64_t bytes)
{
	const struct fit_reason *r = reason(kind);

	ck_assert_msg(r, "%s is not reported", fit_kind_name(kind));
	ck_assert_msg(r->bytes == bytes, "%s: %ju", r->text, (uintmax_t)r->bytes);
}

START_TEST(what_fits_needs_no_reason_but_rounding)
{
	reset();
	ask(MIB(100), "ext4", false);
	ck_assert_uint_eq(answer.size_bytes, MIB(100));
	ck_assert_uint_eq(answer.n_reasons, 0);
	ask(MIB(101), "ext4", false);
	ck_assert_uint_eq(answer.size_bytes, MIB(104));
	expect(FIT_ROUNDING, MIB(3));
	reset();
}
END_TEST

START_TEST(the_smallest_file_system_counts_unless_none_is_made)
{
	reset();
	ask(MIB(1), "xfs", false);
	expect(FIT_MINIMUM, MIB(300));
	ck_assert_uint_eq(answer.size_bytes, MIB(300));
	ask(MIB(1), "block", false);
	ck_assert_uint_eq(answer.size_bytes, MIB(4));
	ck_assert_ptr_null(reason(FIT_MINIMUM));
	reset();
}
END_TEST

START_TEST(a_full_group_tells_what_is_short_and_what_the_region_still_has)
{
	reset();
	ask(MIB(401), "ext4", false);
	ck_assert_uint_eq(answer.size_bytes, UINT64_MAX);
	expect(FIT_SPACE, MIB(1));
	expect(FIT_SHARE, MIB(1000));
	ck_assert_ptr_nonnull(strstr(reason(FIT_SHARE)->text, "50 %"));
	ck_assert_ptr_null(reason(FIT_FRAGMENTATION));
	reset();
}
END_TEST

START_TEST(a_group_has_no_fragments_but_extents)
{
	reset();
	pool.capacity.available_bytes = MIB(402);
	ask(MIB(401), "ext4", false);
	expect(FIT_ROUNDING, MIB(4));
	ck_assert_ptr_null(reason(FIT_FRAGMENTATION));
	reset();
}
END_TEST

START_TEST(a_fragmented_region_tells_its_largest_piece)
{
	reset();
	pool.uuid = region_id;
	pool.capacity.available_bytes = MIB(1000);
	pool.capacity.max_volume_bytes = MIB(300);
	ask(MIB(500), "ext4", false);
	expect(FIT_FRAGMENTATION, MIB(300));
	ck_assert_ptr_null(reason(FIT_SPACE));
	ck_assert_ptr_null(reason(FIT_SHARE));
	reset();
}
END_TEST

START_TEST(label_slots_and_a_region_that_cannot_be_used_are_told)
{
	reset();
	pool.uuid = region_id;
	pool.capacity.available_bytes = pool.capacity.max_volume_bytes = 0;
	region.free_labels = 0;
	region.readonly = true;
	ask(MIB(10), "ext4", false);
	expect(FIT_LABELS, 0);
	expect(FIT_REGION, 0);
	reset();
}
END_TEST

START_TEST(deletions_foreign_namespaces_and_unusable_pools_are_told)
{
	reset();
	namespaces[1] = (struct nd_namespace){.name = foreign, .uuid = others, .raw_bytes = MIB(200)};
	region.n_namespaces = 2;
	ask(MIB(500), "ext4", true);
	expect(FIT_ERASING, MIB(40));
	expect(FIT_FOREIGN, MIB(200));
	pool.closed = true;
	ask(MIB(5), "ext4", false);
	expect(FIT_CLOSED, 0);
	ck_assert_ptr_null(reason(FIT_SPACE));
	pool.closed = false;
	pool.complete = false;
	ask(MIB(5), "ext4", false);
	expect(FIT_INCOMPLETE, 0);
	reset();
}
END_TEST

/* Its space comes back only if that fails. */
START_TEST(unfinished_creations_are_no_deletions)
{
	reset();
	record.phase = PHASE_CREATING;
	ask(MIB(500), "ext4", true);
	ck_assert_ptr_null(reason(FIT_ERASING));
	reset();
}
END_TEST

START_TEST(namespaces_are_the_pools_volumes_or_foreign)
{
	struct volume_record *records[] = {&record};
	const struct check_view view = {.state = {.records = records, .n_records = 1}};
	struct inventory_region row;

	reset();
	namespaces[1] = (struct nd_namespace){.name = volume, .uuid = ours, .raw_bytes = MIB(10)};
	namespaces[2] = (struct nd_namespace){.name = volume, .uuid = others, .raw_bytes = MIB(20)};
	namespaces[3] = (struct nd_namespace){.name = nothing, .uuid = others, .raw_bytes = MIB(30)};
	region.n_namespaces = 4;
	inventory_region(&region, &view, &row);
	ck_assert_uint_eq(row.pool_bytes, MIB(1000));
	ck_assert_uint_eq(row.volume_bytes, MIB(10));
	ck_assert_uint_eq(row.n_foreign, 2);
	ck_assert_uint_eq(row.foreign_bytes, MIB(50));

	record.identity = NULL;
	inventory_region(&region, &view, &row);
	ck_assert_uint_eq(row.n_volumes, 2);
}
END_TEST

static uint32_t pieces(uint64_t first, uint64_t second, uint64_t size_bytes)
{
	const struct check_view view = {0};
	struct inventory_region row;

	reset();
	namespaces[0] = (struct nd_namespace){.name = foreign, .raw_bytes = MIB(10), .offset_bytes = first};
	namespaces[1] = (struct nd_namespace){.name = foreign, .raw_bytes = MIB(10), .offset_bytes = second};
	region.n_namespaces = 2;
	region.size_bytes = size_bytes;
	inventory_region(&region, &view, &row);
	return row.n_free_extents;
}

START_TEST(free_pieces_are_counted_where_places_are_known)
{
	ck_assert_uint_eq(pieces(0, MIB(10), MIB(20)), 0);
	ck_assert_uint_eq(pieces(0, MIB(10), MIB(21)), 1);
	ck_assert_uint_eq(pieces(MIB(1), MIB(12), MIB(30)), 3);
	ck_assert_uint_eq(pieces(0, UNKNOWN, MIB(30)), INVENTORY_UNKNOWN);
}
END_TEST

UNIT_MAIN("fit", what_fits_needs_no_reason_but_rounding, the_smallest_file_system_counts_unless_none_is_made,
	a_full_group_tells_what_is_short_and_what_the_region_still_has, a_group_has_no_fragments_but_extents,
	a_fragmented_region_tells_its_largest_piece, label_slots_and_a_region_that_cannot_be_used_are_told,
	deletions_foreign_namespaces_and_unusable_pools_are_told, unfinished_creations_are_no_deletions,
	namespaces_are_the_pools_volumes_or_foreign, free_pieces_are_counted_where_places_are_known)
