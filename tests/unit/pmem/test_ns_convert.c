/* SPDX-License-Identifier: Apache-2.0 */
/* pmem-ns-init convert over the fake; the block devices of its namespaces are loop devices. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "os/fs.h"
#include "os/spawn.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_vg.h"
#include "unit/os/scratch.h"
#include "unit/pmem/lvm/lvm_area.h"
#include "unit/pmem/nd/nd_fake.h"

#define SIZE_BYTES MIB(64)
#define MKFS_MS    60000
#define MAX_PVS    4
#define GROUP      "ndbus0region0fsdax"

/* An LVM that remembers which group a device is in, and shows what it is allowed to see. */
struct model {
	char paths[MAX_PVS][32];
	char groups[MAX_PVS][64]; /* "": a PV without group */
	size_t n;
	size_t made; /* vgcreate, vgextend */
};

static void add_pv(struct model *m, const char *path, const char *group)
{
	size_t i = 0;

	while (i < m->n && !str_eq(m->paths[i], path))
		i++;
	ck_assert_uint_lt(i, MAX_PVS);
	m->n += i == m->n;
	snprintf(m->paths[i], sizeof(m->paths[i]), "%s", path);
	snprintf(m->groups[i], sizeof(m->groups[i]), "%s", group);
}

static void report_pvs(const struct model *m, const char *config, struct buf *report)
{
	const char *comma = "";

	buf_adds(report, "{\"report\":[{\"pv\":[");
	for (size_t i = 0; i < m->n; i++) {
		CLEANUP(free_charp) char *admitted = x_asprintf("\"a|^%s$|\"", m->paths[i]);
		if (!strstr(config, admitted))
			continue;
		buf_addf(report, "%s{\"pv_name\":\"%s\",\"pv_uuid\":\"PV\",\"pv_size\":\"1\"", comma,
			m->paths[i]);
		comma = ",";
		if (*m->groups[i])
			buf_addf(report,
				",\"vg_name\":\"%s\",\"vg_uuid\":\"uuid-%s\",\"vg_size\":\"1\",\"vg_free\":"
				"\"1\",\"vg_extent_size\":\"1\",\"vg_missing_pv_count\":\"0\"",
				m->groups[i], m->groups[i]);
		buf_addc(report, '}');
	}
	buf_adds(report, "]}]}");
}

static int run_model(void *self, const char *const argv[], const char *config, struct buf *report,
	int timeout_ms, struct error **err)
{
	struct model *m = self;

	(void)timeout_ms;
	(void)err;
	if (str_eq(argv[0], "pvs")) {
		report_pvs(m, config, report);
	} else if (str_eq(argv[0], "vgs")) {
		buf_adds(report, "{\"report\":[{\"vg\":[]}]}");
	} else if (str_eq(argv[0], "pvcreate")) {
		/* --nohints -y --dataalignment 2m --pvmetadatacopies 2 DEVICE... */
		for (size_t i = 7; argv[i]; i++)
			add_pv(m, argv[i], "");
	} else {
		ck_assert(str_eq(argv[0], "vgcreate") || str_eq(argv[0], "vgextend"));
		/* --nohints -y GROUP DEVICE... */
		for (size_t i = 4; argv[i]; i++)
			add_pv(m, argv[i], argv[3]);
		m->made++;
	}
	return 0;
}

static void close_model(void *self)
{
	(void)self;
}

static const struct lvm_ops model_ops = {.run = run_model, .close = close_model};

/* One region, with a namespace over all of it. */
struct node {
	struct nd *nd;
	struct scratch_disk disk;
	struct model model;
};

static void node_done(struct node *n)
{
	nd_close(n->nd);
	scratch_disk_done(&n->disk);
}

static void node_open(struct node *n, unsigned label_slots, const char *name, enum nd_mode mode)
{
	const struct nd_fake_region region = {.size_bytes = SIZE_BYTES, .label_slots = label_slots};

	*n = (struct node){.nd = nd_open_fake(&region, 1), .disk = scratch_disk("disk", SIZE_BYTES)};
	nd_fake_add(n->nd, 0, name, mode, 0, SIZE_BYTES);
	nd_fake_block(n->nd, 0, 0, n->disk.path);
}

static bool convert_with(struct node *n, const struct convert_options *o)
{
	CLEANUP(lvm_closep) struct lvm *lvm = lvm_open_with(&model_ops, &n->model);
	CLEANUP(free_charp) char *folder = pool_backup_folder(SCRATCH "/state");
	struct convert_options with_folder = *o;
	struct error *err = NULL;
	bool complete = false;

	with_folder.state_path = SCRATCH "/state";
	with_folder.folder = folder;
	ASSERT_OK(cmd_convert(n->nd, lvm, &with_folder, &complete, &err));
	return complete;
}

static bool convert(struct node *n)
{
	return convert_with(n, &(struct convert_options){0});
}

static bool convert_by_force(struct node *n)
{
	return convert_with(n, &(struct convert_options){.force = true});
}

/* As the driver and pmem-vgm see it. */
static struct nd_inventory *look(struct node *n)
{
	CLEANUP(lvm_closep) struct lvm *lvm = lvm_open_with(&model_ops, &n->model);
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(n->nd, &inv, &err));
	ASSERT_OK(pool_vg_claim(lvm, inv, &err));
	return inv;
}

static void assert_converted(struct node *n, const char *name)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = look(n);
	const struct nd_namespace *ns = &inv->regions[0].namespaces[0];

	ck_assert_uint_eq(inv->regions[0].n_namespaces, 1);
	ck_assert(nd_is_pool(ns));
	ck_assert(!ns->bare);
	ck_assert_str_eq(ns->name, name);
	ck_assert_uint_eq(n->model.n, 1);
	ck_assert_str_eq(n->model.groups[0], GROUP);
}

static void assert_untouched(struct node *n, enum nd_mode mode)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = look(n);
	const struct nd_namespace *ns = &inv->regions[0].namespaces[0];

	ck_assert(!nd_is_pool(ns));
	ck_assert_int_eq(ns->mode, mode);
	ck_assert_uint_eq(n->model.made, 0);
}

static void make_ext4(const struct node *n)
{
	struct error *err = NULL;

	ASSERT_OK(fs_make("ext4", n->disk.path, NULL, MKFS_MS, &err));
}

START_TEST(raw_namespace_without_label_becomes_ours_by_its_group)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_RAW);
	ck_assert(convert(&n));
	assert_converted(&n, "");
	ck_assert(convert(&n));
	ck_assert_uint_eq(n.model.made, 1);
}
END_TEST

START_TEST(raw_namespace_with_a_label_gets_the_name)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 8, "", ND_RAW);
	ck_assert(convert(&n));
	assert_converted(&n, "pmem-csi");
}
END_TEST

START_TEST(legacy_memory_gets_its_page_map_on_the_medium)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_FSDAX);
	nd_fake_legacy(n.nd, 0, 0);
	ck_assert(convert(&n));
	assert_converted(&n, "");
}
END_TEST

START_TEST(dry_run_changes_nothing)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_RAW);
	ck_assert(convert_with(&n, &(struct convert_options){.dry_run = true}));
	ck_assert(convert_with(&n, &(struct convert_options){.dry_run = true, .json = true}));
	assert_untouched(&n, ND_RAW);
}
END_TEST

START_TEST(content_is_refused_without_force)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_RAW);
	make_ext4(&n);
	ck_assert(!convert(&n));
	assert_untouched(&n, ND_RAW);
	ck_assert(!convert(&n));
}
END_TEST

START_TEST(info_block_of_another_mode_counts_as_content)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_RAW);
	ck_assert_int_eq(pwrite(n.disk.fd, "BTT_ARENA_INFO", 15, 4096), 15);
	ck_assert_int_eq(fsync(n.disk.fd), 0);
	ck_assert(!convert(&n));
	assert_untouched(&n, ND_RAW);
	ck_assert(convert_by_force(&n));
	assert_converted(&n, "");
}
END_TEST

/* Also of a namespace that has to be enabled before it can be looked at. */
START_TEST(data_without_a_signature_are_refused_without_force)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_RAW);
	ck_assert_int_eq(pwrite(n.disk.fd, "a row", 5, 60000), 5);
	ck_assert_int_eq(fsync(n.disk.fd), 0);
	nd_fake_disable(n.nd, 0, 0);
	ck_assert(!convert(&n));
	assert_untouched(&n, ND_RAW);
	ck_assert(convert_by_force(&n));
	assert_converted(&n, "");
}
END_TEST

START_TEST(what_is_in_use_is_refused_even_by_force)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_RAW);
	CLEANUP(fd_closep) int held = open(n.disk.path, O_RDONLY | O_EXCL | O_CLOEXEC);
	ck_assert_int_ge(held, 0);
	ck_assert(!convert_by_force(&n));
	assert_untouched(&n, ND_RAW);
}
END_TEST

START_TEST(name_that_somebody_gave_protects_unless_asked_for)
{
	CLEANUP(strv_freep) char **only = NULL;
	CLEANUP(node_done) struct node n;

	node_open(&n, 8, "theirs", ND_RAW);
	ck_assert(!convert(&n));
	assert_untouched(&n, ND_RAW);
	strv_add(&only, "namespace0.0");
	ck_assert(convert_with(&n, &(struct convert_options){.only = only}));
	assert_converted(&n, "pmem-csi");
	ck_assert(convert_with(&n, &(struct convert_options){.only = only}));
}
END_TEST

START_TEST(unknown_namespace_is_an_error)
{
	CLEANUP(strv_freep) char **only = NULL;
	CLEANUP(lvm_closep) struct lvm *lvm = NULL;
	CLEANUP(node_done) struct node n;
	struct error *err = NULL;
	bool complete;

	node_open(&n, 8, "", ND_RAW);
	lvm = lvm_open_with(&model_ops, &n.model);
	strv_add(&only, "namespace7.0");
	ASSERT_FAILS(
		cmd_convert(n.nd, lvm,
			&(struct convert_options){
				.only = only, .state_path = SCRATCH "/state", .folder = SCRATCH "/state/lvm"},
			&complete, &err),
		ERR_NOT_FOUND, "namespace7.0");
	assert_untouched(&n, ND_RAW);
}
END_TEST

/* The fake's regions all have one identity. */
static void remove_records(void)
{
	const char *const argv[] = {"rm", "-rf", SCRATCH "/state", NULL};
	struct error *err = NULL;

	ASSERT_OK(spawn_check(argv, NULL, MKFS_MS, &err));
}

START_TEST(conversion_killed_at_any_step_is_finished_by_the_next)
{
	static const unsigned slots[] = {0, 8};

	for (enum nd_fake_step step = ND_FAKE_DISABLED; step <= ND_FAKE_MAPPED; step++)
		for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
			CLEANUP(node_done) struct node n;
			unlink(SCRATCH "/disk");
			remove_records();
			node_open(&n, slots[i], "", ND_RAW);
			nd_fake_stop(n.nd, step);
			ck_assert(!convert(&n));
			ck_assert_uint_eq(n.model.made, 0);
			ck_assert(convert(&n));
			assert_converted(&n, slots[i] ? "pmem-csi" : "");
		}
}
END_TEST

START_TEST(device_that_lvm_got_no_further_with_is_grouped)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_FSDAX);
	add_pv(&n.model, n.disk.path, "");
	lvm_area_put(n.disk.path, LVM_AREA_FIRST, MIB(2) - LVM_AREA_FIRST, /* used= */ false);
	ck_assert(convert(&n));
	assert_converted(&n, "");
}
END_TEST

/* As pmem-vgm does for what it finds in a group: nothing is left of that group but the record. */
static void put_record(struct node *n, const char *folder, const char *text)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = look(n);
	CLEANUP(free_charp) char *name = x_strdup(inv->regions[0].identity);

	for (char *c = name; *c; c++)
		*c = *c == '/' ? '_' : *c;
	CLEANUP(free_charp) char *path = x_asprintf("%s/namespaces/%s.json", folder, name);
	FILE *f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	ck_assert_int_eq(fclose(f), 0);
}

static void refuse_recorded(enum nd_mode mode, const char *record)
{
	CLEANUP(free_charp) char *folder = pool_backup_folder(SCRATCH "/state");
	CLEANUP(strv_freep) char **only = NULL;
	CLEANUP(lvm_closep) struct lvm *lvm = NULL;
	CLEANUP(node_done) struct node n;
	struct error *err = NULL;

	unlink(SCRATCH "/disk");
	node_open(&n, 0, "", mode);
	lvm = lvm_open_with(&model_ops, &n.model);
	ASSERT_OK(pool_backup_open(SCRATCH "/state", lvm, &err));
	put_record(&n, folder, record);
	ck_assert(!convert(&n));
	ck_assert(!convert_by_force(&n));
	strv_add(&only, "namespace0.0");
	ck_assert(!convert_with(&n, &(struct convert_options){.only = only}));
	assert_untouched(&n, mode);
	ck_assert(convert_with(&n, &(struct convert_options){.force = true, .only = only}));
	assert_converted(&n, "");
}

/* Its label and metadata are gone, or the info block before them: a probe finds nothing, and the volumes may
 * be there. */
START_TEST(what_was_in_a_group_is_refused_unless_force_and_name_are_given)
{
	static const char record[] = "{\"group\":\"" GROUP "\",\"groupUUID\":\"u\",\"pvUUID\":\"p\"}\n";

	refuse_recorded(ND_FSDAX, record);
	refuse_recorded(ND_RAW, record);
	refuse_recorded(ND_FSDAX, "damaged");
	refuse_recorded(ND_RAW, "damaged");
}
END_TEST

/* Nothing but the conversion has seen the group when the info block is lost. */
START_TEST(what_a_conversion_has_grouped_is_refused_when_it_is_raw_again)
{
	CLEANUP(node_done) struct node n;
	CLEANUP(node_done) struct node again;

	node_open(&n, 0, "", ND_RAW);
	ck_assert(convert(&n));
	assert_converted(&n, "");
	unlink(SCRATCH "/disk");
	node_open(&again, 0, "", ND_RAW);
	ck_assert(!convert(&again));
	ck_assert(!convert_by_force(&again));
	assert_untouched(&again, ND_RAW);
}
END_TEST

START_TEST(failed_conversion_is_reported_and_can_be_repeated)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_RAW);
	nd_fake_fail(n.nd, ERR_INTERNAL);
	ck_assert(!convert(&n));
	assert_untouched(&n, ND_RAW);
	ck_assert(convert(&n));
}
END_TEST

START_TEST(foreign_group_stays_foreign_even_by_force)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_FSDAX);
	add_pv(&n.model, n.disk.path, "data");
	convert_by_force(&n);
	assert_untouched(&n, ND_FSDAX);
	ck_assert_str_eq(n.model.groups[0], "data");
}
END_TEST

START_TEST(file_system_on_fsdax_is_left_alone_even_by_force)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 0, "", ND_FSDAX);
	make_ext4(&n);
	convert_by_force(&n);
	assert_untouched(&n, ND_FSDAX);
}
END_TEST

/* With a label the name would show if it were ours; without, its owner may just have made it. */
START_TEST(blank_fsdax_is_taken_only_where_there_are_no_names)
{
	CLEANUP(node_done) struct node labelled;

	node_open(&labelled, 8, "", ND_FSDAX);
	convert_by_force(&labelled);
	assert_untouched(&labelled, ND_FSDAX);
}
END_TEST

START_TEST(group_of_the_go_driver_s_conversion_is_ours)
{
	static const struct {
		const char *group;
		bool ours;
	} cases[] = {
		{"ndbus0region0fsdax", true},
		{"ndbus12region345fsdax", true},
		{"ndbus0region0sector", false},
		{"ndbus0region0fsdaxx", false},
		{"xndbus0region0fsdax", false},
		{"ndbusregion0fsdax", false},
		{"ndbus0regionfsdax", false},
		{"ndbus0", false},
		{"data", false},
		{"", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(node_done) struct node n;
		unlink(SCRATCH "/disk");
		node_open(&n, 8, "", ND_FSDAX);
		add_pv(&n.model, n.disk.path, cases[i].group);
		CLEANUP(nd_inventory_freep) struct nd_inventory *inv = look(&n);
		ck_assert_msg(
			nd_is_pool(&inv->regions[0].namespaces[0]) == cases[i].ours, "%s", cases[i].group);
	}
}
END_TEST

START_TEST(name_outweighs_the_group)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 8, "theirs", ND_FSDAX);
	add_pv(&n.model, n.disk.path, GROUP);
	assert_untouched(&n, ND_FSDAX);
}
END_TEST

START_TEST(nothing_at_all_is_incomplete)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, 8, "theirs", ND_SECTOR);
	ck_assert(!convert(&n));
}
END_TEST

SCRATCH_MAIN("ns_convert", raw_namespace_without_label_becomes_ours_by_its_group,
	raw_namespace_with_a_label_gets_the_name, legacy_memory_gets_its_page_map_on_the_medium,
	dry_run_changes_nothing, content_is_refused_without_force,
	info_block_of_another_mode_counts_as_content, data_without_a_signature_are_refused_without_force,
	what_is_in_use_is_refused_even_by_force, name_that_somebody_gave_protects_unless_asked_for,
	unknown_namespace_is_an_error, conversion_killed_at_any_step_is_finished_by_the_next,
	device_that_lvm_got_no_further_with_is_grouped,
	what_was_in_a_group_is_refused_unless_force_and_name_are_given,
	what_a_conversion_has_grouped_is_refused_when_it_is_raw_again,
	failed_conversion_is_reported_and_can_be_repeated, foreign_group_stays_foreign_even_by_force,
	file_system_on_fsdax_is_left_alone_even_by_force, blank_fsdax_is_taken_only_where_there_are_no_names,
	group_of_the_go_driver_s_conversion_is_ours, name_outweighs_the_group, nothing_at_all_is_incomplete)
