/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of pmem-ns-init over the fake. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "region_map.h"
#include "unit/pmem/lvm/lvm_fake.h"
#include "unit/pmem/nd/nd_fake.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define GIB(n) ((uint64_t)(n) << 30)

#define REGION(slots, ...) {.size_bytes = GIB(1), .align_bytes = MIB(16), .label_slots = (slots), __VA_ARGS__}

static const struct dax_list no_dax;

static struct nd_inventory *list(struct nd *nd)
{
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(nd, &inv, &err));
	return inv;
}

static bool create(struct nd *nd, unsigned percent)
{
	CLEANUP(lvm_fake_done) struct lvm_fake fake = LVM_FAKE();
	CLEANUP(lvm_closep) struct lvm *lvm = lvm_open_fake(&fake);
	struct error *err = NULL;
	bool complete = false;

	const struct create_options o = {.percent = percent};
	ASSERT_OK(cmd_create(nd, lvm, &o, &complete, &err));
	return complete;
}

static uint64_t available(struct nd *nd, size_t region)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);

	return inv->regions[region].available_bytes;
}

/* Free: 256 MiB, 128 MiB, 32 MiB; own: 256 MiB; foreign: 352 MiB. */
static struct nd *open_fragmented(void)
{
	struct nd_fake_region region = REGION(8);
	struct nd *nd = nd_open_fake(&region, 1);

	nd_fake_add(nd, 0, "theirs", ND_SECTOR, 0, MIB(256));
	nd_fake_add(nd, 0, "pmem-csi", ND_FSDAX, MIB(512), MIB(256));
	nd_fake_add(nd, 0, "bell\a", ND_DEVDAX, MIB(800), MIB(96));
	return nd;
}

static void assert_plan(struct nd *nd, unsigned percent, bool json, const char *expected)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);

	cmd_plan(inv, percent, json, &out);
	ck_assert_str_eq(buf_str(&out), expected);
}

#define MEDIUM "/tmp/pmem-ns-init-test"

/* Opens a fake whose namespace is as a creation leaves it that was killed after it had set the size; a file
 * is its medium. */
static struct nd *open_cut_off(bool with_map, uint64_t data_at_bytes)
{
	static const struct nd_fake_region region = REGION(8);
	struct nd *nd = nd_open_fake(&region, 1);
	CLEANUP(fd_closep) int fd = open(MEDIUM, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_eq(ftruncate(fd, (off_t)MIB(256)), 0);
	if (data_at_bytes != UINT64_MAX)
		ck_assert_int_eq(pwrite(fd, "data", 4, (off_t)data_at_bytes), 4);
	nd_fake_add(nd, 0, "pmem-csi", with_map ? ND_FSDAX : ND_RAW, 0, MIB(256));
	nd_fake_disable(nd, 0, 0);
	nd_fake_block(nd, 0, 0, MEDIUM);
	return nd;
}

static size_t n_pools(struct nd *nd, size_t *ret_n_all)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];
	size_t n = 0;

	for (size_t i = 0; i < r->n_namespaces; i++)
		n += nd_is_pool(&r->namespaces[i]);
	*ret_n_all = r->n_namespaces;
	return n;
}

START_TEST(a_creation_that_was_cut_off_is_used_or_given_back)
{
	for (int with_map = 0; with_map < 2; with_map++) {
		CLEANUP(nd_closep) struct nd *nd = open_cut_off(with_map == 1, UINT64_MAX);
		size_t n_all = 0;

		ck_assert(create(nd, 25));
		ck_assert_uint_eq(n_pools(nd, &n_all), 1);
		ck_assert_uint_eq(n_all, 1);
		ck_assert_uint_eq(available(nd, 0), MIB(768));
	}
	unlink(MEDIUM);
}
END_TEST

/* The information block of a namespace that was in use may be lost. */
START_TEST(what_holds_something_is_left_alone)
{
	CLEANUP(nd_closep) struct nd *usual = open_cut_off(true, UINT64_MAX);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(usual);
	uint64_t data = MIB(256) - nd_usable_bytes(&inv->regions[0], ND_FSDAX, MIB(256));
	const uint64_t places[] = {0, 4096, data, data + 4096};

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		CLEANUP(nd_closep) struct nd *nd = open_cut_off(false, places[i]);
		size_t n_all = 0;

		ck_assert(!create(nd, 25));
		ck_assert(!create(nd, 25));
		ck_assert_uint_eq(n_pools(nd, &n_all), 0);
		ck_assert_uint_eq(n_all, 1);
	}
	unlink(MEDIUM);
}
END_TEST

START_TEST(create_uses_every_region)
{
	static const struct nd_fake_region regions[] = {REGION(8), REGION(8)};
	CLEANUP(nd_closep) struct nd *nd = nd_open_fake(regions, 2);

	ck_assert(create(nd, 100));
	ck_assert_uint_eq(available(nd, 0), 0);
	ck_assert_uint_eq(available(nd, 1), 0);
	ck_assert(create(nd, 100));
}
END_TEST

START_TEST(failed_region_does_not_stop_the_others)
{
	static const struct nd_fake_region regions[] = {REGION(8), REGION(1), REGION(8)};
	CLEANUP(nd_closep) struct nd *nd = nd_open_fake(regions, 3);

	nd_fake_add(nd, 1, "theirs", ND_SECTOR, 0, MIB(64));
	nd_fake_fail(nd, ERR_INTERNAL);
	ck_assert(!create(nd, 100));
	ck_assert_uint_eq(available(nd, 0), GIB(1));
	ck_assert_uint_eq(available(nd, 1), MIB(960));
	ck_assert_uint_eq(available(nd, 2), 0);
	ck_assert(!create(nd, 100));
	ck_assert_uint_eq(available(nd, 0), 0);
}
END_TEST

START_TEST(region_of_persistent_memory_that_is_skipped_is_incomplete)
{
	static const struct nd_fake_region no_labels[] = {REGION(8), {.size_bytes = GIB(1)}};
	static const struct nd_fake_region volatile_one[] = {REGION(8), REGION(8, .not_pmem = true)};
	CLEANUP(nd_closep) struct nd *a = nd_open_fake(no_labels, 2);
	CLEANUP(nd_closep) struct nd *b = nd_open_fake(volatile_one, 2);
	CLEANUP(nd_closep) struct nd *none = nd_open_fake(NULL, 0);

	ck_assert(!create(a, 100));
	ck_assert_uint_eq(available(a, 0), 0);
	ck_assert(create(b, 100));
	ck_assert_uint_eq(available(b, 1), GIB(1));
	ck_assert(!create(none, 100));
}
END_TEST

START_TEST(foreign_namespaces_stay_as_they_are)
{
	CLEANUP(nd_closep) struct nd *nd = open_fragmented();
	CLEANUP(nd_inventory_freep) struct nd_inventory *before = list(nd);

	ck_assert(create(nd, 100));
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = list(nd);
	for (size_t i = 0; i < before->regions[0].n_namespaces; i++) {
		const struct nd_namespace *ns = &before->regions[0].namespaces[i];
		size_t found = 0;
		for (size_t k = 0; k < after->regions[0].n_namespaces; k++) {
			const struct nd_namespace *now = &after->regions[0].namespaces[k];
			found += str_eq(now->uuid, ns->uuid) && str_eq(now->name, ns->name) &&
				 now->offset_bytes == ns->offset_bytes && now->raw_bytes == ns->raw_bytes &&
				 now->mode == ns->mode;
		}
		ck_assert_uint_eq(found, 1);
	}
}
END_TEST

START_TEST(plan_says_what_would_be_created_and_why_not_more)
{
	CLEANUP(nd_closep) struct nd *nd = open_fragmented();

	assert_plan(nd, 100, false,
		"region0 on ndbus0: create 256Mi + 128Mi (budget 1Gi, own 256Mi, unit 16Mi)\n"
		"  384Mi of the budget cannot be used: no further free extent can hold the smallest pool "
		"namespace "
		"(64Mi)\n");
	assert_plan(nd, 50, false, "region0 on ndbus0: create 256Mi (budget 512Mi, own 256Mi, unit 16Mi)\n");
	assert_plan(
		nd, 25, false, "region0 on ndbus0: nothing to create (budget 256Mi, own 256Mi, unit 16Mi)\n");
	assert_plan(nd, 100, true,
		"{\"schemaVersion\":1,\"percent\":100,\"regions\":[{\"bus\":\"ndbus0\",\"region\":"
		"\"region0\",\"sizeBytes\":"
		"1073741824,"
		"\"skipped\":false,\"unitBytes\":16777216,\"budgetBytes\":1073741824,\"ownBytes\":268435456,"
		"\"createBytes\":402653184,\"namespaces\":[268435456,134217728],\"reason\":\"384Mi of the "
		"budget "
		"cannot be used: no further free extent can hold the smallest pool namespace (64Mi)\"}]}\n");
}
END_TEST

START_TEST(plan_names_skipped_regions)
{
	static const struct nd_fake_region regions[] = {REGION(8, .readonly = true)};
	CLEANUP(nd_closep) struct nd *nd = nd_open_fake(regions, 1);
	CLEANUP(nd_closep) struct nd *none = nd_open_fake(NULL, 0);

	assert_plan(nd, 100, false, "region0 on ndbus0: skipped: the region is read-only\n");
	assert_plan(none, 100, false, "no regions\n");
	assert_plan(none, 100, true, "{\"schemaVersion\":1,\"percent\":100,\"regions\":[]}\n");
}
END_TEST

START_TEST(status_draws_every_extent)
{
	CLEANUP(nd_closep) struct nd *nd = open_fragmented();
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	char dev[] = "dax0.1";
	char region[] = "region0";
	struct dax_device device = {dev, region, MIB(94), true};

	cmd_status(inv, &(struct dax_list){&device, 1}, false, &out);
	ck_assert_str_eq(buf_str(&out),
		"region0 on ndbus0: 1Gi, interleave 1, unit 16Mi\n"
		"  own 256Mi, foreign 352Mi, free 416Mi (largest extent 256Mi)\n"
		"  [FFFFFFFFFFFFFFFF................OOOOOOOOOOOOOOOO..FFFFFF........]  O own  F foreign  . "
		"free\n"
		"      OFFSET       SIZE  KIND     NAMESPACE     MODE   NAME  DEVICE (USABLE)\n"
		"           0      256Mi  foreign  namespace0.0  sector theirs  /dev/pmem0s (260832Ki)\n"
		"       256Mi      256Mi  free\n"
		"       512Mi      256Mi  own      namespace0.1  fsdax  pmem-csi  /dev/pmem1 (250Mi)\n"
		"       768Mi       32Mi  free\n"
		"       800Mi       96Mi  foreign  namespace0.2  devdax bell?\n"
		"       896Mi      128Mi  free\n"
		"  dax0.1: 94Mi, system-ram\n");
}
END_TEST

START_TEST(status_as_json_has_the_same_extents)
{
	CLEANUP(nd_closep) struct nd *nd = open_fragmented();
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);
	struct nd_namespace *own = &inv->regions[0].namespaces[1];

	cmd_status(inv, &no_dax, true, &out);
	CLEANUP(free_charp)
	char *expected = x_asprintf(
		"{\"kind\":\"own\",\"offsetBytes\":536870912,\"sizeBytes\":268435456,\"namespace\":"
		"\"namespace0.1\",\"name\":\"pmem-csi\",\"uuid\":\"%s\",\"mode\":\"fsdax\",\"active\":true,"
		"\"usableBytes\":262144000,\"device\":\"/dev/pmem1\"},{\"kind\":\"free\",\"offsetBytes\":"
		"805306368,\"sizeBytes\":33554432}",
		own->uuid);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), expected));
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\"name\":\"bell\\u0007\""));
	ck_assert(str_starts(buf_str(&out),
		"{\"schemaVersion\":1,\"regions\":[{\"bus\":\"ndbus0\",\"region\":\"region0\","));
	ck_assert(str_ends(buf_str(&out), "\"dax\":[]}]}\n"));
}
END_TEST

START_TEST(map_covers_the_region_without_gaps)
{
	CLEANUP(nd_closep) struct nd *nd = open_fragmented();
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	CLEANUP(region_map_done) struct region_map m = {0};
	uint64_t at = 0;

	region_map_build(&inv->regions[0], &m);
	for (size_t i = 0; i < m.n; i++) {
		ck_assert_uint_eq(m.extents[i].offset_bytes, at);
		at += m.extents[i].size_bytes;
	}
	ck_assert_uint_eq(at, GIB(1));
}
END_TEST

START_TEST(unknown_places_are_shown_as_unknown)
{
	char bus[] = "ndbus0";
	char name[] = "region0";
	char dev[] = "namespace0.0";
	char theirs[] = "theirs";
	char uuid[] = "";
	struct nd_namespace ns = {.dev = dev,
		.name = theirs,
		.uuid = uuid,
		.raw_bytes = MIB(512),
		.offset_bytes = ND_OFFSET_UNKNOWN};
	struct nd_region region = {.bus = bus,
		.name = name,
		.size_bytes = GIB(1),
		.available_bytes = MIB(512),
		.max_extent_bytes = MIB(512),
		.align_bytes = MIB(16),
		.ways = 2,
		.namespaces = &ns,
		.n_namespaces = 1};
	CLEANUP(buf_done) struct buf out = BUF_INIT(1 << 20);

	cmd_status(&(struct nd_inventory){&region, 1}, &no_dax, false, &out);
	ck_assert_str_eq(buf_str(&out),
		"region0 on ndbus0: 1Gi, interleave 2, NUMA node 0, unit 16Mi, not persistent memory, "
		"disabled, "
		"without labels\n"
		"  own 0, foreign 512Mi, free 512Mi (largest extent 512Mi)\n"
		"  [????????????????????????????????????????????????????????????????]  O own  F foreign  . "
		"free\n"
		"      OFFSET       SIZE  KIND     NAMESPACE     MODE   NAME  DEVICE (USABLE)\n"
		"           ?      512Mi  foreign  namespace0.0  raw    theirs  inactive\n"
		"           ?      512Mi  free\n");
}
END_TEST

UNIT_MAIN("ns_init", a_creation_that_was_cut_off_is_used_or_given_back, what_holds_something_is_left_alone,
	create_uses_every_region, failed_region_does_not_stop_the_others,
	region_of_persistent_memory_that_is_skipped_is_incomplete, foreign_namespaces_stay_as_they_are,
	plan_says_what_would_be_created_and_why_not_more, plan_names_skipped_regions,
	status_draws_every_extent, status_as_json_has_the_same_extents, map_covers_the_region_without_gaps,
	unknown_places_are_shown_as_unknown)
