/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "os/spawn.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_vg.h"
#include "unit/pmem/lvm/lvm_area.h"
#include "unit/pmem/lvm/lvm_fake.h"
#include "unit/unit.h"

#define IMAGE_BYTES   (32LL << 20)
#define AREA_BYTES    (2LL << 20)
#define SECOND_AREA   (IMAGE_BYTES - AREA_BYTES)
#define MKFS_MS       60000
#define MAX_POOLS     3
#define GROUP         "ndbus0region0fsdax"
#define OPEN_LIST     "vgs --readonly -o vg_name,vg_uuid -S vg_name=ndbus0region0fsdax"
#define NO_GROUP      "{\"report\":[{\"vg\":[]}]}"
#define FOREIGN_GROUP "{\"report\":[{\"vg\":[{\"vg_name\":\"ndbus0region0fsdax\",\"vg_uuid\":\"u\"}]}]}"

static char dev[] = "namespace0.0", uuid[] = "6f1d2c3b-0000-4000-8000-00000000000a", folder[] = "/nowhere";

/* One region with some pool namespaces, and what LVM shows of them. */
struct setup {
	struct nd_region region;
	struct nd_namespace namespaces[MAX_POOLS];
	struct lvm_report *report;
	struct pool_vg_plan plan;
};

static void setup_done(struct setup *s)
{
	pool_vg_plan_done(&s->plan);
	lvm_report_free(s->report);
}

static void add_namespace(struct setup *s, const char *name, const char *path)
{
	s->namespaces[s->region.n_namespaces++] = (struct nd_namespace){
		.dev = dev,
		.name = (char *)(uintptr_t)name,
		.uuid = uuid,
		.block_path = (char *)(uintptr_t)path,
		.mode = ND_FSDAX,
		.active = true,
	};
	s->region.namespaces = s->namespaces;
}

/* @rows: of a report of pvs; @paths: of pool namespaces */
static void make_plan(struct setup *s, const char *rows, const char *const *paths)
{
	CLEANUP(free_charp) char *json = x_asprintf("{\"report\":[{\"pv\":[%s]}]}", rows);
	struct error *err = NULL;

	s->region.identity = uuid;
	s->region.bus = (char[]){"ndbus0"};
	s->region.name = (char[]){"region0"};
	for (; *paths; paths++)
		add_namespace(s, POOL_NAMESPACE_NAME, *paths);
	s->report = x_calloc(1, sizeof(*s->report));
	ASSERT_OK(lvm_report_parse(span_of(json), s->report, &err));
	pool_vg_plan_region(&s->region, s->report, &s->plan);
}

#define PATHS(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

#define ROW(path, vg, missing)                                                                               \
	"{\"pv_name\":\"" path "\",\"pv_size\":\"1\",\"vg_name\":\"" vg "\",\"vg_uuid\":\"uuid-" vg          \
	"\",\"vg_size\":\"1\",\"vg_free\":\"1\",\"vg_extent_size\":\"1\",\"vg_missing_pv_count\":\"" missing \
	"\"}"
#define ORPHAN(path) "{\"pv_name\":\"" path "\",\"pv_size\":\"1\",\"vg_name\":\"\",\"vg_uuid\":\"\"}"

static void assert_plan(const struct setup *s, const char *vg_name, bool create, const char *const *add)
{
	size_t n = 0;

	ck_assert_msg(!s->plan.problem, "%s", s->plan.problem);
	ck_assert_str_eq(s->plan.vg_name, vg_name);
	ck_assert_int_eq(s->plan.create, create);
	for (; add[n]; n++)
		ck_assert(strv_contains(s->plan.add_paths, add[n]));
	ck_assert_uint_eq(strv_len(s->plan.add_paths), n);
}

static void assert_problem(const struct setup *s, const char *text)
{
	CLEANUP(lvm_fake_done) struct lvm_fake fake = LVM_FAKE();
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	struct error *err = NULL;

	ck_assert_ptr_nonnull(s->plan.problem);
	ASSERT_FAILS(pool_vg_apply(l, folder, &s->plan, &err), ERR_PRECONDITION, text);
}

START_TEST(new_namespaces_make_a_group_named_after_the_region)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, "", PATHS("/dev/pmem0", "/dev/pmem0.1"));
	assert_plan(&s, "ndbus0region0fsdax", true, PATHS("/dev/pmem0", "/dev/pmem0.1"));
}
END_TEST

START_TEST(group_is_found_by_its_devices_whatever_its_name)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, ROW("/dev/pmem0", "ndbus1region7fsdax", "0"), PATHS("/dev/pmem0"));
	assert_plan(&s, "ndbus1region7fsdax", false, PATHS());
}
END_TEST

START_TEST(new_namespace_extends_the_group_of_its_region)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, ROW("/dev/pmem0.1", "old", "0") "," ORPHAN("/dev/pmem0.2"),
		PATHS("/dev/pmem0", "/dev/pmem0.1", "/dev/pmem0.2"));
	assert_plan(&s, "old", false, PATHS("/dev/pmem0", "/dev/pmem0.2"));
	ck_assert_uint_eq(strv_len(s.plan.pv_paths), 1);
	ck_assert_str_eq(s.plan.pv_paths[0], "/dev/pmem0.2");
}
END_TEST

START_TEST(only_pool_namespaces_count)
{
	CLEANUP(setup_done) struct setup s = {0};

	add_namespace(&s, "theirs", "/dev/pmem0");
	add_namespace(&s, POOL_NAMESPACE_NAME, NULL);
	s.namespaces[1].active = false;
	make_plan(&s, ROW("/dev/pmem0", "foreign", "0"), PATHS());
	assert_plan(&s, "ndbus0region0fsdax", false, PATHS());

	struct nd_inventory inv = {&s.region, 1};
	CLEANUP(strv_freep) char **devices = NULL;
	pool_vg_devices(&inv, &devices);
	ck_assert_ptr_null(devices);
	add_namespace(&s, POOL_NAMESPACE_NAME, "/dev/pmem0.1");
	pool_vg_devices(&inv, &devices);
	ck_assert_uint_eq(strv_len(devices), 1);
	ck_assert_str_eq(devices[0], "/dev/pmem0.1");
}
END_TEST

START_TEST(name_of_another_region_s_group_is_a_problem)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, ROW("/dev/pmem1", "ndbus0region0fsdax", "0"), PATHS("/dev/pmem0"));
	assert_problem(&s, "vgrename");
}
END_TEST

START_TEST(namespaces_in_several_groups_are_a_problem)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, ROW("/dev/pmem0", "a", "0") "," ROW("/dev/pmem0.1", "b", "0"),
		PATHS("/dev/pmem0", "/dev/pmem0.1", "/dev/pmem0.2"));
	assert_problem(&s, "several volume groups: a, b");
}
END_TEST

START_TEST(incomplete_group_is_not_extended)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, ROW("/dev/pmem0", "a", "1"), PATHS("/dev/pmem0", "/dev/pmem0.1"));
	assert_problem(&s, "incomplete");
}
END_TEST

/* Also without anything to be added: nothing in it can be activated. */
START_TEST(exported_group_is_named)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, ROW("/dev/pmem0", "theirs", "0\",\"vg_exported\":\"exported"), PATHS("/dev/pmem0"));
	assert_problem(&s, "volume group theirs is exported");
}
END_TEST

/* lvmsystemid(7). It holds volumes, so nothing may be advised that would make its devices empty. */
START_TEST(group_of_another_machine_is_named_with_how_to_take_it_over)
{
	CLEANUP(setup_done) struct setup s = {0};
	CLEANUP(setup_done) struct setup malformed = {0};

	make_plan(&s, ROW("/dev/pmem0", "theirs", "0\",\"vg_systemid\":\"node-7"), PATHS("/dev/pmem0"));
	assert_problem(&s, "volume group theirs has the LVM system ID \"node-7\" of another machine");
	assert_problem(&s, "local/system_id=node-7\" --systemid '' theirs");
	make_plan(&malformed, ROW("/dev/pmem0", "theirs", "0\",\"vg_systemid\":\"$(reboot)"),
		PATHS("/dev/pmem0"));
	assert_problem(&malformed, "volume group theirs has a malformed LVM system ID");
}
END_TEST

START_TEST(incomplete_group_without_news_is_no_problem)
{
	CLEANUP(setup_done) struct setup s = {0};

	make_plan(&s, ROW("/dev/pmem0", "a", "1"), PATHS("/dev/pmem0"));
	assert_plan(&s, "a", false, PATHS());
}
END_TEST

static char image[] = "/tmp/pmem-test-vg-XXXXXX";
static char state_path[sizeof(image) + sizeof(".state")];

static void make_image(void)
{
	int fd = mkstemp(image);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, IMAGE_BYTES), 0);
	close(fd);
	snprintf(state_path, sizeof(state_path), "%s.state", image);
}

static void remove_image(void)
{
	const char *const argv[] = {"rm", "-rf", image, state_path, NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(argv, NULL, 60000, &err));
}

static void admit_image(struct lvm *l)
{
	const char *const paths[] = {image};

	lvm_set_devices(l, paths, 1);
}

static void open_folder(struct lvm *l)
{
	struct error *err = NULL;

	ASSERT_OK(pool_backup_open(state_path, l, &err));
}

static int apply(const struct setup *s, const struct lvm_fake_step *steps, struct error **err)
{
	CLEANUP(lvm_fake_done) struct lvm_fake fake = {.steps = steps};
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	CLEANUP(free_charp) char *lvm_folder = pool_backup_folder(state_path);

	open_folder(l);
	admit_image(l);
	return pool_vg_apply(l, lvm_folder, &s->plan, err);
}

#define STEPS(...) ((const struct lvm_fake_step[]){__VA_ARGS__, {0}})

/* Makes LVM's listing of the image, as a physical volume in @group; "": in no group. Return: caller frees. */
static char *listed(const char *group)
{
	return x_asprintf("{\"report\":[{\"pv\":[{\"pv_name\":\"%s\",\"pv_uuid\":\"PV\",\"pv_size\":\"1\","
			  "\"vg_name\":\"%s\",\"vg_uuid\":\"%s%s\",\"vg_size\":\"1\",\"vg_free\":\"1\","
			  "\"vg_extent_size\":\"1\",\"vg_missing_pv_count\":\"0\"}]}]}",
		image, group, *group ? "uuid-" : "", group);
}

/* The record of the image says so. @group: NULL: no group */
static void assert_record(const struct setup *s, const char *group, const char *group_uuid)
{
	CLEANUP(free_charp) char *lvm_folder = pool_backup_folder(state_path);
	CLEANUP(pool_record_done) struct pool_record r = {0};
	struct error *err = NULL;

	ASSERT_OK(pool_backup_find(lvm_folder, &s->region, &s->namespaces[0], &r, &err));
	if (!group) {
		ck_assert_ptr_null(r.group);
		return;
	}
	ck_assert_ptr_nonnull(r.group);
	ck_assert_str_eq(r.group, group);
	ck_assert_str_eq(r.group_uuid, group_uuid);
	ck_assert_str_eq(r.pv_uuid, "PV");
}

START_TEST(blank_namespace_is_made_a_group_aligned_to_huge_pages)
{
	CLEANUP(free_charp)
	char *prepare = x_asprintf("pvcreate -y --dataalignment 2m --pvmetadatacopies 2 %s", image);
	CLEANUP(free_charp) char *create = x_asprintf("vgcreate -y " GROUP " %s", image);
	CLEANUP(free_charp) char *before = listed("");
	CLEANUP(free_charp) char *after = listed(GROUP);
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	make_plan(&s, "", PATHS(image));
	ASSERT_OK(apply(&s,
		STEPS({OPEN_LIST, NO_GROUP, 0}, {prepare, NULL, 0}, {LVM_FAKE_LIST, before, 0},
			{create, NULL, 0}, {LVM_FAKE_LIST, after, 0}),
		&err));
	assert_record(&s, GROUP, "uuid-" GROUP);
}
END_TEST

/* LVM says nothing of the group here, as after a crash of the command that made it. */
START_TEST(group_is_recorded_before_it_is_made)
{
	CLEANUP(free_charp)
	char *prepare = x_asprintf("pvcreate -y --dataalignment 2m --pvmetadatacopies 2 %s", image);
	CLEANUP(free_charp) char *create = x_asprintf("vgcreate -y " GROUP " %s", image);
	CLEANUP(free_charp) char *lvm_folder = pool_backup_folder(state_path);
	CLEANUP(free_charp) char *before = listed("");
	CLEANUP(free_charp) char *refusal = NULL;
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	make_plan(&s, "", PATHS(image));
	ASSERT_FAILS(apply(&s, STEPS({OPEN_LIST, NO_GROUP, 0}, {prepare, NULL, ERR_INTERNAL}), &err),
		ERR_INTERNAL, "pvcreate");
	assert_record(&s, NULL, NULL);
	ASSERT_FAILS(apply(&s,
			     STEPS({OPEN_LIST, NO_GROUP, 0}, {prepare, NULL, 0}, {LVM_FAKE_LIST, before, 0},
				     {create, NULL, ERR_INTERNAL}),
			     &err),
		ERR_INTERNAL, "vgcreate");
	assert_record(&s, GROUP, "");

	/* the label is lost then: refused by name */
	refusal = pool_vg_refusal(lvm_folder, &s.region, &s.namespaces[0]);
	ck_assert_ptr_nonnull(refusal);
	ck_assert_ptr_nonnull(strstr(refusal, "was in volume group " GROUP));
}
END_TEST

/* A crash between recording a group and making it leaves a physical volume that is in no group and has a
 * record. */
START_TEST(group_that_was_recorded_and_not_made_is_made)
{
	CLEANUP(free_charp) char *create = x_asprintf("vgcreate -y " GROUP " %s", image);
	CLEANUP(free_charp) char *orphan = x_asprintf("{\"pv_name\":\"%s\",\"pv_size\":\"1\"}", image);
	CLEANUP(free_charp) char *lvm_folder = pool_backup_folder(state_path);
	CLEANUP(free_charp) char *before = listed("");
	CLEANUP(free_charp) char *after = listed(GROUP);
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	lvm_area_put(image, LVM_AREA_FIRST, AREA_BYTES - LVM_AREA_FIRST, /* used= */ false);
	make_plan(&s, orphan, PATHS(image));
	ASSERT_FAILS(apply(&s,
			     STEPS({OPEN_LIST, NO_GROUP, 0}, {LVM_FAKE_LIST, before, 0},
				     {create, NULL, ERR_INTERNAL}),
			     &err),
		ERR_INTERNAL, "vgcreate");
	pool_vg_examine(lvm_folder, /* but= */ NULL, &s.plan);
	ck_assert_msg(!s.plan.problem, "%s", s.plan.problem);
	ASSERT_OK(apply(&s,
		STEPS({OPEN_LIST, NO_GROUP, 0}, {LVM_FAKE_LIST, before, 0}, {create, NULL, 0},
			{LVM_FAKE_LIST, after, 0}),
		&err));
	assert_record(&s, GROUP, "uuid-" GROUP);
}
END_TEST

START_TEST(without_a_record_no_group_is_made)
{
	CLEANUP(free_charp)
	char *prepare = x_asprintf("pvcreate -y --dataalignment 2m --pvmetadatacopies 2 %s", image);
	CLEANUP(free_charp) char *before = listed("");
	CLEANUP(lvm_fake_done)
	struct lvm_fake fake =
		LVM_FAKE({OPEN_LIST, NO_GROUP, 0}, {prepare, NULL, 0}, {LVM_FAKE_LIST, before, 0});
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	admit_image(l);
	make_plan(&s, "", PATHS(image));
	ASSERT_FAILS(pool_vg_apply(l, folder, &s.plan, &err), ERR_NOT_FOUND, "record that namespace0.0");
}
END_TEST

START_TEST(foreign_group_of_that_name_is_never_touched)
{
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	make_plan(&s, "", PATHS(image));
	ASSERT_FAILS(apply(&s, STEPS({OPEN_LIST, FOREIGN_GROUP, 0}), &err), ERR_EXISTS, "not ours");
	ASSERT_FAILS(apply(&s, STEPS({OPEN_LIST, NULL, ERR_DEADLINE}), &err), ERR_DEADLINE, "search for");
}
END_TEST

START_TEST(namespace_with_content_is_not_overwritten)
{
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	ASSERT_OK(fs_make("ext4", image, NULL, MKFS_MS, &err));
	make_plan(&s, ROW("/dev/pmem0", "a", "0"), PATHS("/dev/pmem0", image));
	ASSERT_FAILS(apply(&s, &(struct lvm_fake_step){0}, &err), ERR_PRECONDITION, "holds ext4");
}
END_TEST

START_TEST(pv_that_lvm_has_emptied_is_used)
{
	CLEANUP(free_charp)
	char *extend = x_asprintf("vgextend -y a %s", image);
	CLEANUP(free_charp) char *before = listed("");
	CLEANUP(free_charp) char *after = listed("a");
	CLEANUP(free_charp)
	char *rows = x_asprintf(ROW("/dev/pmem0", "a", "0") ",{\"pv_name\":\"%s\",\"pv_size\":\"1\"}", image);
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	lvm_area_put(image, LVM_AREA_FIRST, AREA_BYTES - LVM_AREA_FIRST, /* used= */ false);
	/* of a life before, which pvcreate does not remove */
	lvm_area_put(image, SECOND_AREA, AREA_BYTES, /* used= */ true);
	make_plan(&s, rows, PATHS("/dev/pmem0", image));
	ASSERT_OK(apply(
		&s, STEPS({LVM_FAKE_LIST, before, 0}, {extend, NULL, 0}, {LVM_FAKE_LIST, after, 0}), &err));
}
END_TEST

/* LVM shows a physical volume whose metadata is damaged as one that is in no group. */
START_TEST(pv_without_readable_metadata_is_not_used)
{
	CLEANUP(free_charp)
	char *rows = x_asprintf(ROW("/dev/pmem0", "a", "0") ",{\"pv_name\":\"%s\",\"pv_size\":\"1\"}", image);
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	make_plan(&s, rows, PATHS("/dev/pmem0", image));
	ASSERT_FAILS(
		apply(&s, &(struct lvm_fake_step){0}, &err), ERR_PRECONDITION, "without a metadata area");
	lvm_area_put(image, LVM_AREA_FIRST, AREA_BYTES - LVM_AREA_FIRST, /* used= */ true);
	ASSERT_FAILS(apply(&s, &(struct lvm_fake_step){0}, &err), ERR_PRECONDITION, "nothing new is created");
}
END_TEST

START_TEST(metadata_of_volumes_without_a_label_is_never_overwritten)
{
	static const struct {
		uint64_t offset, size;
	} areas[] = {{LVM_AREA_FIRST, AREA_BYTES - LVM_AREA_FIRST}, {SECOND_AREA, AREA_BYTES},
		{IMAGE_BYTES - (1 << 20), 1 << 20}};
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	make_plan(&s, "", PATHS(image));
	lvm_area_put(image, areas[_i].offset, areas[_i].size, /* used= */ true);
	ASSERT_FAILS(apply(&s, STEPS({OPEN_LIST, NO_GROUP, 0}), &err), ERR_PRECONDITION, "metadata of LVM");
}
END_TEST

START_TEST(nothing_to_do_runs_nothing)
{
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	make_plan(&s, ROW("/dev/pmem0", "a", "0"), PATHS("/dev/pmem0"));
	ASSERT_OK(apply(&s, &(struct lvm_fake_step){0}, &err));
}
END_TEST

START_TEST(groups_with_something_inactive_are_activated_at_once)
{
	static const char rows[] =
		"{\"vg_name\":\"a\",\"vg_uuid\":\"1\",\"lv_name\":\"x\",\"lv_active\":\"active\"},"
		"{\"vg_name\":\"b\",\"vg_uuid\":\"2\",\"lv_name\":\"y\",\"lv_active\":\"\"},"
		"{\"vg_name\":\"b\",\"vg_uuid\":\"2\",\"lv_name\":\"z\",\"lv_active\":\"\"},"
		"{\"vg_name\":\"c\",\"vg_uuid\":\"3\",\"lv_name\":\"y\",\"lv_active\":\"\"},"
		"{\"vg_name\":\"d\",\"vg_uuid\":\"4\",\"lv_name\":\"\"}";
	CLEANUP(lvm_fake_done) struct lvm_fake fake = LVM_FAKE({"vgchange -Kay b c", NULL, 0});
	CLEANUP(lvm_closep) struct lvm *l = lvm_open_fake(&fake);
	CLEANUP(setup_done) struct setup s = {0};
	struct error *err = NULL;

	make_plan(&s, rows, PATHS());
	ASSERT_OK(pool_vg_activate(l, s.report, &err));
	for (size_t i = 0; i < s.report->n_lvs; i++)
		s.report->lvs[i].active = true;
	ASSERT_OK(pool_vg_activate(l, s.report, &err));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pool_vg");
	TCase *plans = tcase_create("plans");
	TCase *tcase = tcase_create("apply");

	tcase_add_checked_fixture(plans, make_image, remove_image);
	tcase_add_test(plans, new_namespaces_make_a_group_named_after_the_region);
	tcase_add_test(plans, group_is_found_by_its_devices_whatever_its_name);
	tcase_add_test(plans, new_namespace_extends_the_group_of_its_region);
	tcase_add_test(plans, only_pool_namespaces_count);
	tcase_add_test(plans, name_of_another_region_s_group_is_a_problem);
	tcase_add_test(plans, namespaces_in_several_groups_are_a_problem);
	tcase_add_test(plans, incomplete_group_is_not_extended);
	tcase_add_test(plans, exported_group_is_named);
	tcase_add_test(plans, group_of_another_machine_is_named_with_how_to_take_it_over);
	tcase_add_test(plans, incomplete_group_without_news_is_no_problem);
	tcase_add_test(plans, nothing_to_do_runs_nothing);
	tcase_add_test(plans, groups_with_something_inactive_are_activated_at_once);
	suite_add_tcase(suite, plans);

	tcase_add_checked_fixture(tcase, make_image, remove_image);
	tcase_set_timeout(tcase, MKFS_MS / 1000);
	tcase_add_test(tcase, blank_namespace_is_made_a_group_aligned_to_huge_pages);
	tcase_add_test(tcase, group_is_recorded_before_it_is_made);
	tcase_add_test(tcase, group_that_was_recorded_and_not_made_is_made);
	tcase_add_test(tcase, without_a_record_no_group_is_made);
	tcase_add_test(tcase, foreign_group_of_that_name_is_never_touched);
	tcase_add_test(tcase, namespace_with_content_is_not_overwritten);
	tcase_add_test(tcase, pv_that_lvm_has_emptied_is_used);
	tcase_add_test(tcase, pv_without_readable_metadata_is_not_used);
	tcase_add_loop_test(tcase, metadata_of_volumes_without_a_label_is_never_overwritten, 0, 3);
	suite_add_tcase(suite, tcase);
	return unit_runner_finish(srunner_create(suite));
}
