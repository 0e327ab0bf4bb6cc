/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/device/device.h"
#include "unit/pmem/lvm/lvm_fake.h"
#include "unit/pmem/nd/nd_fake.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)

#define UUID_A "6f1d2c3b-0000-4000-8000-00000000000a"
#define UUID_B "6f1d2c3b-0000-4000-8000-00000000000b"

#define GROUP(name, free, missing)                                                                           \
	"\"vg_name\":\"" name "\",\"vg_uuid\":\"uuid-" name                                                  \
	"\",\"vg_size\":\"104857600\",\"vg_free\":\"" free                                                   \
	"\",\"vg_extent_size\":\"4194304\",\"vg_missing_pv_count\":\"" missing "\""
#define EMPTY(name, free, missing)                                                                           \
	"{\"pv_name\":\"/dev/pmem0\",\"pv_size\":\"1\"," GROUP(name, free, missing) "}"
#define VOLUME(group, name, tags)                                                                            \
	"{" group ",\"lv_name\":\"" name "\",\"lv_path\":\"/dev/nowhere/" name "\",\"lv_tags\":\"" tags      \
	"\",\"lv_size\":\"8388608\",\"lv_active\":\"\"}"

#define A_20  GROUP("a", "20971520", "0")
#define B_0   GROUP("b", "0", "0")
#define B_BAD GROUP("b", "20971520", "1")

#define FULL "{\"pv_name\":\"/dev/pmem0\",\"pv_size\":\"1\",\"vg_seqno\":\"7\"," GROUP("a", "0", "0") "}"

#define LIST(rows)       {LVM_FAKE_LIST, "{\"report\":[{\"pv\":[" rows "]}]}", 0}
#define CREATE(id, size) "lvcreate -y -Zn -Wn --addtag " UUID_A " -n " id " -L " size " a"

#define OPEN(...)                                                                                            \
	CLEANUP(lvm_fake_done) struct lvm_fake fake = LVM_FAKE(__VA_ARGS__);                                 \
	CLEANUP(device_closep) struct device_manager *m = open_manager(&fake);                               \
	CLEANUP(error_freep) struct error *err = NULL

static struct device_manager *open_saving_manager(struct lvm_fake *fake, const char *saved_folder)
{
	const struct nd_fake_region region = {.size_bytes = MIB(1024), .label_slots = 4};
	struct nd *nd = nd_open_fake(&region, 1);

	nd_fake_add(nd, 0, POOL_NAMESPACE_NAME, ND_FSDAX, 0, MIB(256));
	nd_fake_add(nd, 0, "theirs", ND_FSDAX, MIB(256), MIB(256));
	return device_open_lvm(nd, lvm_open_fake(fake), saved_folder);
}

static struct device_manager *open_manager(struct lvm_fake *fake)
{
	return open_saving_manager(fake, /* saved_folder= */ NULL);
}

static int create(
	struct device_manager *m, const char *id, const char *pool, uint64_t size, struct error **err)
{
	const struct device_spec spec = {id, pool, UUID_A, size, false};
	CLEANUP(device_freep) struct device *d = NULL;

	return device_create(m, &spec, &d, err);
}

static int destroy(struct device_manager *m, const char *pool, const char *identity, struct error **err)
{
	const struct device d = {
		.id = (char[]){"vol"},
		.pool = (char *)(uintptr_t)pool,
		.identity = (char *)(uintptr_t)identity,
	};

	return device_destroy(m, &d, /* exclusive_fd= */ -1, err);
}

START_TEST(groups_are_pools_and_volumes_devices)
{
	OPEN(LIST(VOLUME(A_20, "vol-b", "x," UUID_A) "," VOLUME(A_20, "vol-a", "note") "," EMPTY(
		"b", "4194304", "1")));
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert_ptr_nonnull(strstr(fake.config, "filter=[\"a|^/dev/pmem0$|\",\"r|.*|\"]"));
	ck_assert_uint_eq(l->n_devices, 2);
	ck_assert_str_eq(l->devices[0].id, "vol-a");
	ck_assert_str_eq(l->devices[0].identity, "");
	ck_assert_str_eq(l->devices[1].identity, UUID_A);
	ck_assert_str_eq(l->devices[1].pool, "uuid-a");
	ck_assert_str_eq(l->devices[1].path, "/dev/nowhere/vol-b");
	ck_assert_uint_eq(l->devices[1].size_bytes, MIB(8));
	ck_assert(!l->devices[1].active);

	const struct device_pool *a = device_list_pool(l, "uuid-a");
	ck_assert_uint_eq(a->capacity.total_bytes, MIB(100));
	ck_assert_uint_eq(a->capacity.available_bytes, MIB(20));
	ck_assert_uint_eq(a->capacity.max_volume_bytes, MIB(20));
	ck_assert_uint_eq(a->rules.unit_bytes, MIB(4));
	ck_assert(a->complete);

	const struct device_pool *b = device_list_pool(l, "uuid-b");
	ck_assert(!b->complete);
	ck_assert_uint_eq(b->capacity.max_volume_bytes, 0);
}
END_TEST

START_TEST(pools_have_the_size_of_their_region)
{
	OPEN(LIST("{\"pv_name\":\"[unknown]\",\"pv_missing\":\"missing\",\"pv_size\":\"1\"," GROUP(
		"a", "20971520", "1") "}," EMPTY("a", "20971520", "1") "," VOLUME(B_BAD, "vol", "note")));
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert_uint_eq(device_list_pool(l, "uuid-a")->region_bytes, MIB(1024));
	ck_assert_uint_eq(device_list_pool(l, "uuid-b")->region_bytes, 0);
}
END_TEST

START_TEST(failed_listing_says_nothing)
{
	OPEN({LVM_FAKE_LIST, NULL, ERR_UNAVAILABLE});
	struct device_list *l = NULL;

	ASSERT_FAILS(device_list_read(m, &l, &err), ERR_UNAVAILABLE, "list volume groups");
	ck_assert_ptr_null(l);
}
END_TEST

START_TEST(obstacles_are_found_without_a_try)
{
	OPEN(LIST(VOLUME(A_20, "vol", "") "," EMPTY("b", "20971520", "1")),
		LIST(VOLUME(A_20, "vol", "") "," EMPTY("b", "20971520", "1")),
		LIST(VOLUME(A_20, "vol", "") "," EMPTY("b", "20971520", "1")),
		LIST(VOLUME(A_20, "vol", "") "," EMPTY("b", "20971520", "1")));

	ASSERT_FAILS(create(m, "new", "uuid-c", 1, &err), ERR_NOT_FOUND, "uuid-c");
	ASSERT_FAILS(create(m, "vol", "uuid-b", 1, &err), ERR_EXISTS, "vol");
	ASSERT_FAILS(create(m, "new", "uuid-a", MIB(20) + 1, &err), ERR_EXHAUSTED, "uuid-a");
	ASSERT_FAILS(create(m, "new", "uuid-b", 1, &err), ERR_UNAVAILABLE, "volume group b is incomplete");
}
END_TEST

#define ANOTHERS GROUP("e", "20971520", "0") ",\"vg_systemid\":\"node-7\""

START_TEST(group_of_another_machine_takes_no_volume_and_is_named)
{
	OPEN(LIST(VOLUME(ANOTHERS, "vol", UUID_A)), LIST(VOLUME(ANOTHERS, "vol", UUID_A)),
		{"vgchange -Kay e", NULL, ERR_INTERNAL});
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert(!device_list_pool(l, "uuid-e")->complete);
	ASSERT_FAILS(create(m, "new", "uuid-e", 1, &err), ERR_UNAVAILABLE,
		"volume group e has the LVM system ID of another machine");
	ASSERT_FAILS(device_activate(m, l, &err), ERR_UNAVAILABLE,
		"volume group e has the LVM system ID of another machine");
}
END_TEST

#define EXPORTED GROUP("e", "20971520", "0") ",\"vg_exported\":\"exported\""

/* vgexport(8): LVM neither changes nor activates what is in such a group. */
START_TEST(exported_group_takes_no_volume_and_is_named)
{
	OPEN(LIST(VOLUME(EXPORTED, "vol", UUID_A)), LIST(VOLUME(EXPORTED, "vol", UUID_A)),
		LIST(VOLUME(EXPORTED, "vol", UUID_A)), {"vgchange -Kay e", NULL, ERR_INTERNAL});
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert(!device_list_pool(l, "uuid-e")->complete);
	ck_assert_uint_eq(device_list_pool(l, "uuid-e")->capacity.max_volume_bytes, 0);
	ASSERT_FAILS(create(m, "new", "uuid-e", 1, &err), ERR_UNAVAILABLE, "volume group e is exported");
	ASSERT_FAILS(
		destroy(m, "uuid-e", UUID_B, &err), ERR_PRECONDITION, "another logical volume has the name");
	ASSERT_FAILS(device_activate(m, l, &err), ERR_UNAVAILABLE, "volume group e is exported");
}
END_TEST

#define METADATA(free) "\"vg_mda_size\":\"2093056\",\"vg_mda_free\":\"" free "\""
#define FULL_TEXT      EMPTY_WITH(METADATA("65024"))
#define ROOM_TEXT      EMPTY_WITH(METADATA("66048"))
#define EMPTY_WITH(more)                                                                                     \
	"{\"pv_name\":\"/dev/pmem0\",\"pv_size\":\"1\"," GROUP("a", "20971520", "0") "," more "}"

START_TEST(group_that_can_describe_no_more_volumes_is_exhausted)
{
	OPEN(LIST(FULL_TEXT), LIST(FULL_TEXT), LIST(ROOM_TEXT),
		{CREATE("new", "4194304b"), NULL, ERR_INTERNAL}, LIST(FULL_TEXT));
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	CLEANUP(device_list_freep) struct device_list *room = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	const struct device_pool *a = device_list_pool(l, "uuid-a");
	ck_assert_uint_eq(a->capacity.available_bytes, MIB(20));
	ck_assert_uint_eq(a->capacity.max_volume_bytes, 0);
	ck_assert_uint_eq(a->capacity.max_sector_volume_bytes, 0);
	ck_assert_str_eq(a->used_up, DEVICE_NO_TEXT);
	ck_assert_uint_gt(a->max_devices, 1000);
	ck_assert_uint_lt(a->max_devices, 2093056 / 2 / 400);
	ASSERT_FAILS(create(m, "new", "uuid-a", 1, &err), ERR_EXHAUSTED, "room in the metadata");
	ASSERT_OK(device_list_read(m, &room, &err));
	ck_assert_uint_eq(device_list_pool(room, "uuid-a")->capacity.max_volume_bytes, MIB(20));
	ck_assert_ptr_null(device_list_pool(room, "uuid-a")->used_up);
	ASSERT_FAILS(create(m, "new", "uuid-a", 1, &err), ERR_EXHAUSTED, "cannot have more volumes");
}
END_TEST

START_TEST(group_with_a_limit_of_volumes_is_exhausted)
{
	OPEN(LIST(EMPTY_WITH("\"max_lv\":\"3\",\"lv_count\":\"3\"")),
		LIST(EMPTY_WITH("\"max_lv\":\"3\",\"lv_count\":\"3\"")),
		LIST(EMPTY_WITH("\"max_lv\":\"3\",\"lv_count\":\"2\"," METADATA("66048"))));
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	CLEANUP(device_list_freep) struct device_list *room = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert_uint_eq(device_list_pool(l, "uuid-a")->capacity.max_volume_bytes, 0);
	ASSERT_FAILS(create(m, "new", "uuid-a", 1, &err), ERR_EXHAUSTED, "limit max_lv");
	ASSERT_OK(device_list_read(m, &room, &err));
	ck_assert_uint_eq(device_list_pool(room, "uuid-a")->capacity.max_volume_bytes, MIB(20));
	ck_assert_uint_eq(device_list_pool(room, "uuid-a")->more_devices, 1);
}
END_TEST

/* pvchange -xn: LVM counts it as free space of the group. */
START_TEST(space_from_which_nothing_is_allocated_is_not_free)
{
	OPEN(LIST(EMPTY_WITH("\"pv_allocatable\":\"\",\"pv_free\":\"16777216\"")),
		LIST(EMPTY_WITH("\"pv_allocatable\":\"allocatable\",\"pv_free\":\"16777216\"")));
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	CLEANUP(device_list_freep) struct device_list *all = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert_uint_eq(device_list_pool(l, "uuid-a")->capacity.max_volume_bytes, MIB(4));
	ASSERT_OK(device_list_read(m, &all, &err));
	ck_assert_uint_eq(device_list_pool(all, "uuid-a")->capacity.max_volume_bytes, MIB(20));
}
END_TEST

START_TEST(obstacle_that_has_gone_is_none)
{
	/* first seen full and with the name in use, then changed by another program */
	OPEN(LIST(VOLUME(B_0, "new", "") "," VOLUME(GROUP("a", "0", "0"), "vol", "")),
		LIST(EMPTY("a", "20971520", "0")), {CREATE("new", "8388608b"), NULL, ERR_INTERNAL},
		LIST(EMPTY("a", "20971520", "0")));
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ASSERT_FAILS(create(m, "new", "uuid-a", MIB(4) + 1, &err), ERR_INTERNAL, "device new: lvm lvcreate");
}
END_TEST

START_TEST(refusal_is_explained_by_a_look_not_by_words)
{
	OPEN(LIST(EMPTY("a", "20971520", "0")), {CREATE("new", "20971520b"), NULL, ERR_INTERNAL},
		LIST(EMPTY("a", "4194304", "0")), LIST(EMPTY("a", "20971520", "0")),
		{CREATE("new", "8388608b"), NULL, ERR_INTERNAL}, LIST(VOLUME(A_20, "new", UUID_B)));

	ASSERT_FAILS(create(m, "new", "uuid-a", MIB(20), &err), ERR_EXHAUSTED, "do not fit");
	ASSERT_FAILS(create(m, "new", "uuid-a", MIB(8), &err), ERR_EXISTS, "new exists");
}
END_TEST

START_TEST(unfinished_device_is_removed)
{
	OPEN(LIST(EMPTY("a", "20971520", "0")), {CREATE("new", "4194304b"), NULL, ERR_UNAVAILABLE},
		LIST(VOLUME(A_20, "new", UUID_A)),
		{"lvremove -y -S lv_name=new&&vg_uuid=uuid-a&&lv_tags={" UUID_A "} a", NULL, 0},
		LIST(EMPTY("a", "20971520", "0")), {CREATE("new", "4194304b"), NULL, ERR_DEADLINE},
		{LVM_FAKE_LIST, NULL, ERR_UNAVAILABLE});

	ASSERT_FAILS(create(m, "new", "uuid-a", 0, &err), ERR_UNAVAILABLE, "device new");
	ASSERT_FAILS(create(m, "new", "uuid-a", 0, &err), ERR_DEADLINE, "lvcreate");
}
END_TEST

START_TEST(device_without_a_node_is_removed)
{
	OPEN(LIST(EMPTY("a", "20971520", "0")), {CREATE("new", "4194304b"), NULL, 0},
		LIST(VOLUME(A_20, "new", UUID_A)),
		{"lvremove -y -S lv_name=new&&vg_uuid=uuid-a&&lv_tags={" UUID_A "} a", NULL, ERR_INTERNAL});

	ASSERT_FAILS(create(m, "new", "uuid-a", 1, &err), ERR_DEADLINE, "left partly created");
}
END_TEST

START_TEST(names_that_mean_something_to_lvm_never_reach_it)
{
	static const char *const bad[] = {
		"", "-new", ".new", "a/new", "a b", "new;", "ne\"w", "@tag", "new\n"};
	const struct device_spec no_uuid = {"new", "uuid-a", "tag", 1, false};
	struct device *d = NULL;
	OPEN();

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_FAILS(create(m, bad[i], "uuid-a", 1, &err), ERR_INVALID_ARGUMENT, "not a valid name");
	ASSERT_FAILS(device_create(m, &no_uuid, &d, &err), ERR_INVALID_ARGUMENT, "is not a UUID");
}
END_TEST

START_TEST(missing_device_of_a_complete_pool_is_destroyed)
{
	OPEN(LIST(EMPTY("a", "20971520", "0")));

	ASSERT_OK(destroy(m, "uuid-a", UUID_A, &err));
}
END_TEST

START_TEST(missing_device_of_an_incomplete_or_absent_pool_may_exist)
{
	OPEN(LIST(EMPTY("a", "20971520", "1")), LIST(EMPTY("a", "20971520", "1")));

	ASSERT_FAILS(destroy(m, "uuid-a", UUID_A, &err), ERR_UNAVAILABLE, "incomplete");
	ASSERT_FAILS(destroy(m, "uuid-b", UUID_A, &err), ERR_UNAVAILABLE, "absent");
}
END_TEST

START_TEST(device_of_another_identity_stays)
{
	OPEN(LIST(VOLUME(A_20, "vol", UUID_B)), LIST(VOLUME(A_20, "vol", "tag")),
		LIST(VOLUME(A_20, "vol", UUID_B)));

	ASSERT_FAILS(destroy(m, "uuid-a", UUID_A, &err), ERR_PRECONDITION, "vol");
	ASSERT_FAILS(destroy(m, "uuid-a", UUID_A, &err), ERR_PRECONDITION, "vol");
	ASSERT_FAILS(destroy(m, "uuid-a", "", &err), ERR_PRECONDITION, "vol");
}
END_TEST

START_TEST(removal_is_by_identity_and_checked)
{
	OPEN(LIST(VOLUME(A_20, "vol", UUID_A)),
		{"lvremove -y -S lv_name=vol&&vg_uuid=uuid-a&&lv_tags={" UUID_A "} a", NULL, 0},
		LIST(VOLUME(A_20, "vol", UUID_B)), LIST(VOLUME(A_20, "vol", UUID_A)),
		{"lvremove -y -S lv_name=vol&&vg_uuid=uuid-a&&lv_tags={" UUID_A "} a", NULL, 0},
		LIST(VOLUME(A_20, "vol", UUID_A)),
		{"lvremove -y -S lv_name=vol&&vg_uuid=uuid-a&&lv_tags={" UUID_A "} a", NULL, 0},
		LIST(EMPTY("a", "20971520", "0")));

	ASSERT_FAILS(
		destroy(m, "uuid-a", UUID_A, &err), ERR_PRECONDITION, "another logical volume has the name");
	ASSERT_FAILS(destroy(m, "uuid-a", UUID_A, &err), ERR_INTERNAL, "still exists");
	ASSERT_OK(destroy(m, "uuid-a", UUID_A, &err));
}
END_TEST

START_TEST(device_of_the_go_driver_is_removed_by_name_and_group)
{
	OPEN(LIST(VOLUME(A_20, "vol", "")), {"lvremove -y -S lv_name=vol&&vg_uuid=uuid-a a", NULL, 0},
		LIST(EMPTY("a", "20971520", "0")));

	ASSERT_OK(destroy(m, "uuid-a", "", &err));
}
END_TEST

START_TEST(activation_covers_each_group_once_and_tolerates_missing_parts)
{
	OPEN(LIST(VOLUME(A_20, "x", "") "," VOLUME(A_20, "y", "") "," VOLUME(B_BAD, "z", "")),
		{"vgchange -Kay b", NULL, ERR_INTERNAL}, {"vgchange -Kay a", NULL, ERR_INTERNAL});
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ASSERT_FAILS(device_activate(m, l, &err), ERR_INTERNAL, "vgchange");
}
END_TEST

START_TEST(nothing_inactive_needs_no_command)
{
	OPEN(LIST(VOLUME(A_20, "x", "")));
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	l->devices[0].active = true;
	ASSERT_OK(device_activate(m, l, &err));
}
END_TEST

START_TEST(only_of_incomplete_groups_nothing_is_waited_for)
{
	OPEN(LIST(VOLUME(B_BAD, "z", "")), {"vgchange -Kay b", NULL, ERR_INTERNAL});
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ASSERT_OK(device_activate(m, l, &err));
}
END_TEST

/* Neither a listing nor what a creation looks at runs vgcfgbackup. */
#define GROWING(free)                                                                                        \
	"{" GROUP("a", free,                                                                                 \
		"0") ",\"lv_name\":\"vol\",\"lv_uuid\":\"u-vol\",\"lv_path\":\"/dev/nowhere/vol\","          \
		     "\"lv_tags\":\"" UUID_A "\",\"lv_size\":\"8388608\",\"lv_active\":\"\"}"
#define SPARE "lvcreate -y -Zn -Wn --addtag pmem-csi-spare -n _spare-vol -L 8388608b a"

static int never_zero(void *user, const char *path, uint64_t size_bytes, struct error **err)
{
	(void)user;
	(void)size_bytes;
	ck_abort_msg("%s was zeroed", path);
	return err_set(err, ERR_INTERNAL, "not reached");
}

static int grow(struct device_manager *m, bool zero, struct error **err)
{
	const struct device d = {
		.id = (char[]){"vol"}, .pool = (char[]){"uuid-a"}, .identity = (char[]){UUID_A}};
	const struct device_growth growth = {
		.device = &d, .size_bytes = MIB(16), .zero = zero ? never_zero : NULL};
	CLEANUP(device_freep) struct device *grown = NULL;

	return device_grow(m, &growth, &grown, err);
}

START_TEST(space_that_another_program_took_is_exhausted)
{
	/* listed, tried, explained, and cleared up */
	OPEN(LIST(GROWING("20971520")), {SPARE, NULL, ERR_INTERNAL}, LIST(GROWING("0")), LIST(GROWING("0")));

	ASSERT_FAILS(grow(m, /* zero= */ true, &err), ERR_EXHAUSTED,
		"8388608 bytes more do not fit in volume group a");
}
END_TEST

START_TEST(failure_that_is_no_lack_of_space_stays_what_it_is)
{
	OPEN(LIST(GROWING("20971520")), {SPARE, NULL, ERR_INTERNAL}, LIST(GROWING("20971520")),
		LIST(GROWING("20971520")));

	ck_assert_int_eq(grow(m, /* zero= */ true, &err), -1);
	ck_assert_int_eq(err->code, ERR_INTERNAL);
}
END_TEST

START_TEST(extension_without_effect_says_so)
{
	OPEN(LIST(GROWING("20971520")), {"lvextend -y -L 16777216b a/vol", NULL, 0},
		LIST(GROWING("20971520")));

	ASSERT_FAILS(grow(m, /* zero= */ false, &err), ERR_INTERNAL,
		"lists the volume with 8388608 bytes instead of 16777216");
}
END_TEST

static bool has_number; /* the namespace, whose list cannot be read unless it has bad blocks */
static uint64_t bad_at, bad_bytes;

int __wrap_bad_ranges_read(const char *path, struct bad_ranges *ret, struct error **err);
int __wrap_media_errors_of_mapped(const char *path, const struct bad_ranges *bad, size_t n_bad,
	struct media_errors *e, struct error **err);

int __wrap_bad_ranges_read(const char *path, struct bad_ranges *ret, struct error **err)
{
	if (bad_bytes > 0) {
		*ret = (struct bad_ranges){.list = x_calloc(1, sizeof(*ret->list)), .n = 1};
		*ret->list = (struct media_error){bad_at, bad_bytes};
		return 0;
	}
	*ret = (struct bad_ranges){.dev = has_number, .unknown = has_number};
	return err_set(err, ERR_INTERNAL, "list of %s", path);
}

/* Five extents of 4 MiB from 1 MiB on. */
#define FREE                                                                                                 \
	EMPTY_WITH("\"pe_start\":\"1048576\",\"pvseg_start\":\"0\",\"pvseg_size\":\"5\",\"lv_name\":\"\"")
#define GROWING_OR_FREE FREE "," GROWING("20971520")
#define GOOD            " /dev/pmem0:0-1:3-4"

START_TEST(space_with_media_errors_is_neither_offered_nor_used)
{
	/* the error is there after the first listing */
	OPEN(LIST(FREE), LIST(FREE), {CREATE("new", "8388608b") GOOD, NULL, ERR_INTERNAL}, LIST(FREE),
		LIST(FREE));
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert_uint_eq(device_list_pool(l, "uuid-a")->capacity.max_volume_bytes, MIB(20));
	bad_at = MIB(1 + 2 * 4) + 8192;
	bad_bytes = 4096;
	ASSERT_FAILS(create(m, "new", "uuid-a", MIB(8), &err), ERR_INTERNAL, "device new: lvm lvcreate");
	ASSERT_FAILS(create(m, "new", "uuid-a", MIB(20), &err), ERR_EXHAUSTED,
		"4194304 bytes of free space of volume group a are not used because of media errors");
}
END_TEST

START_TEST(group_with_media_errors_everywhere_is_exhausted)
{
	OPEN(LIST(FREE), LIST(FREE));
	CLEANUP(device_list_freep) struct device_list *l = NULL;

	bad_bytes = MIB(100);
	ASSERT_OK(device_list_read(m, &l, &err));
	ck_assert_uint_eq(device_list_pool(l, "uuid-a")->capacity.available_bytes, 0);
	ASSERT_FAILS(create(m, "new", "uuid-a", 1, &err), ERR_EXHAUSTED, "because of media errors");
}
END_TEST

START_TEST(volumes_do_not_grow_onto_media_errors)
{
	OPEN(LIST(GROWING_OR_FREE), LIST(GROWING_OR_FREE), {"lvextend -y -L 16777216b a/vol" GOOD, NULL, 0},
		LIST(GROWING_OR_FREE), LIST(GROWING_OR_FREE), {SPARE GOOD, NULL, ERR_INTERNAL},
		LIST(GROWING_OR_FREE), LIST(GROWING_OR_FREE));

	bad_at = MIB(1 + 2 * 4);
	bad_bytes = 4096;
	ASSERT_FAILS(grow(m, /* zero= */ false, &err), ERR_INTERNAL, "lists the volume with 8388608 bytes");
	ASSERT_FAILS(grow(m, /* zero= */ true, &err), ERR_INTERNAL, "lvcreate");
}
END_TEST

START_TEST(nobody_waits_for_copies_of_metadata)
{
	char scratch[] = "/tmp/pmem-test-device-lvm-XXXXXX";
	CLEANUP(lvm_fake_done)
	struct lvm_fake fake = LVM_FAKE(LIST(FULL), LIST(FULL), LIST(FULL), {"vgcfgbackup a", NULL, 0});
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(device_list_freep) struct device_list *first = NULL;
	CLEANUP(device_list_freep) struct device_list *second = NULL;

	ck_assert_ptr_nonnull(mkdtemp(scratch));
	CLEANUP(device_closep) struct device_manager *m = open_saving_manager(&fake, scratch);
	ASSERT_OK(device_list_read(m, &first, &err));
	ASSERT_FAILS(create(m, "vol", "uuid-a", 4096, &err), ERR_EXHAUSTED, "do not fit");
	ASSERT_OK(device_list_read(m, &second, &err));
	ck_assert_str_eq(fake.steps->command, "vgcfgbackup a");
	device_back_up(m);
	ck_assert_int_eq(rmdir(scratch), 0);
}
END_TEST

/* Only "/on" is on the namespace, and nothing is known of "/odd". */
int __wrap_media_errors_of_mapped(const char *path, const struct bad_ranges *bad, size_t n_bad,
	struct media_errors *e, struct error **err)
{
	ck_assert_uint_eq(n_bad, has_number);
	e->unknown = e->unknown || (n_bad > 0 && bad->unknown && str_eq(path, "/on"));
	return str_eq(path, "/odd") ? err_set(err, ERR_INTERNAL, "no table") : 0;
}

START_TEST(list_that_cannot_be_read_affects_what_may_be_on_its_namespace)
{
	OPEN(LIST(EMPTY("a", "0", "0")));
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	char on[] = "/on", off[] = "/off", odd[] = "/odd", id[] = "id";
	struct device devices[] = {{.id = id, .path = odd, .active = true},
		{.id = id, .path = on, .active = true}, {.id = id, .path = off, .active = true}};
	const struct device_list volumes = {.devices = devices, .n_devices = ARRAY_SIZE(devices)};

	ASSERT_OK(device_list_read(m, &l, &err));
	for (int i = 0; i < 2; i++) {
		struct media_errors *found = NULL;

		has_number = i == 0;
		ASSERT_FAILS(device_media_errors(m, &volumes, &found, &err), ERR_INTERNAL, "list of /dev");
		ck_assert(found[0].unknown && found[1].unknown);
		ck_assert_int_eq(found[2].unknown, !has_number);
		free(found);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_lvm");
	TCase *tcase = tcase_create("device_lvm");

	/* one of them waits for a node that does not appear */
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, groups_are_pools_and_volumes_devices);
	tcase_add_test(tcase, pools_have_the_size_of_their_region);
	tcase_add_test(tcase, failed_listing_says_nothing);
	tcase_add_test(tcase, obstacles_are_found_without_a_try);
	tcase_add_test(tcase, group_that_can_describe_no_more_volumes_is_exhausted);
	tcase_add_test(tcase, group_with_a_limit_of_volumes_is_exhausted);
	tcase_add_test(tcase, space_from_which_nothing_is_allocated_is_not_free);
	tcase_add_test(tcase, space_with_media_errors_is_neither_offered_nor_used);
	tcase_add_test(tcase, group_with_media_errors_everywhere_is_exhausted);
	tcase_add_test(tcase, volumes_do_not_grow_onto_media_errors);
	tcase_add_test(tcase, obstacle_that_has_gone_is_none);
	tcase_add_test(tcase, refusal_is_explained_by_a_look_not_by_words);
	tcase_add_test(tcase, unfinished_device_is_removed);
	tcase_add_test(tcase, device_without_a_node_is_removed);
	tcase_add_test(tcase, names_that_mean_something_to_lvm_never_reach_it);
	tcase_add_test(tcase, missing_device_of_a_complete_pool_is_destroyed);
	tcase_add_test(tcase, missing_device_of_an_incomplete_or_absent_pool_may_exist);
	tcase_add_test(tcase, device_of_another_identity_stays);
	tcase_add_test(tcase, removal_is_by_identity_and_checked);
	tcase_add_test(tcase, device_of_the_go_driver_is_removed_by_name_and_group);
	tcase_add_test(tcase, activation_covers_each_group_once_and_tolerates_missing_parts);
	tcase_add_test(tcase, nothing_inactive_needs_no_command);
	tcase_add_test(tcase, exported_group_takes_no_volume_and_is_named);
	tcase_add_test(tcase, group_of_another_machine_takes_no_volume_and_is_named);
	tcase_add_test(tcase, only_of_incomplete_groups_nothing_is_waited_for);
	tcase_add_test(tcase, space_that_another_program_took_is_exhausted);
	tcase_add_test(tcase, failure_that_is_no_lack_of_space_stays_what_it_is);
	tcase_add_test(tcase, extension_without_effect_says_so);
	tcase_add_test(tcase, list_that_cannot_be_read_affects_what_may_be_on_its_namespace);
	tcase_add_test(tcase, nobody_waits_for_copies_of_metadata);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
