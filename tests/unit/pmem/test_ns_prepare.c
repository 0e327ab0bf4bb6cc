/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of how "advise", and "create" with its flags, treat each kind of memory with each kind of content. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "os/fs.h"
#include "pmem/pool/memory_advice.h"
#include "pmem/pool/pool_backup.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_fake.h"
#include "unit/unit.h"

#define SIZE_BYTES MIB(128)
#define MKFS_MS    60000

/* An LVM without groups, which remembers the device of the one that is made. */
struct group {
	char path[64]; /* of its physical volume */
	bool made;
};

static int run(void *self, const char *const argv[], const char *config, struct buf *report, int timeout_ms,
	struct error **err)
{
	struct group *g = self;

	(void)config;
	(void)timeout_ms;
	(void)err;
	if (str_eq(argv[0], "pvcreate")) {
		/* --nohints -y --dataalignment 2m --pvmetadatacopies 2 DEVICE */
		snprintf(g->path, sizeof(g->path), "%s", argv[7]);
	} else if (str_eq(argv[0], "vgcreate")) {
		g->made = true;
	} else if (str_eq(argv[0], "pvs") && *g->path) {
		buf_addf(report,
			"{\"report\":[{\"pv\":[{\"pv_name\":\"%s\",\"pv_uuid\":\"PV\",\"pv_size\":\"1\"%s}]}]}",
			g->path,
			g->made ? ",\"vg_name\":\"ndbus0region0fsdax\",\"vg_uuid\":\"u\",\"vg_size\":\"1\",\"vg_free\":\"1\","
				  "\"vg_extent_size\":\"1\",\"vg_missing_pv_count\":\"0\""
				: "");
	} else {
		buf_addf(report, "{\"report\":[{\"%s\":[]}]}", str_eq(argv[0], "vgs") ? "vg" : "pv");
	}
	return 0;
}

static void close_group(void *self)
{
	(void)self;
}

static const struct lvm_ops group_ops = {.run = run, .close = close_group};

enum content {
	NOTHING,
	EXT4,
	INFO_BLOCK,
	INFO_BLOCK_BEHIND, /* of a namespace that was not the first of its region */
	UNKNOWN,           /* without a signature */
	IN_USE,
	RECORDED,
	DISABLED,
	FSDAX,
	DEVDAX,
	REGION_OFF,
	REGION_READONLY
};

struct node {
	struct nd *nd;
	struct scratch_disk disk;
	struct group group;
	int user; /* that has the disk open exclusively */
};

static void node_done(struct node *n)
{
	nd_close(n->nd);
	if (n->user >= 0)
		close(n->user);
	scratch_disk_done(&n->disk);
}

static void write_text(const struct node *n, const char *text, off_t at)
{
	CLEANUP(fd_closep) int fd = open(n->disk.path, O_WRONLY | O_CLOEXEC);
	ssize_t len = (ssize_t)strlen(text);

	ck_assert_int_eq(pwrite(fd, text, (size_t)len, at), len);
	ck_assert_int_eq(fsync(fd), 0);
}

static void write_record(void)
{
	CLEANUP(file_closep) FILE *f = NULL;

	mkdir(SCRATCH "/lvm", 0755);
	mkdir(SCRATCH "/lvm/namespaces", 0755);
	f = fopen(SCRATCH "/lvm/namespaces/iset-0000000000001000.json", "w");
	ck_assert(f);
	fputs("{\"group\":\"ndbus0region0fsdax\",\"groupUUID\":\"u\",\"pvUUID\":\"p\"}\n", f);
}

static void put_content(struct node *n, enum content content)
{
	struct error *err = NULL;

	if (content == EXT4)
		ASSERT_OK(fs_make("ext4", n->disk.path, NULL, MKFS_MS, &err));
	if (content == INFO_BLOCK)
		write_text(n, "NVDIMM_PFN_INFO", 4096);
	if (content == INFO_BLOCK_BEHIND)
		write_text(n, "BTT_ARENA_INFO", (off_t)MIB(64));
	if (content == UNKNOWN)
		write_text(n, "a row", 60000);
	if (content == RECORDED)
		write_record();
	if (content == IN_USE)
		ck_assert_int_ge(n->user = open(n->disk.path, O_RDWR | O_EXCL | O_CLOEXEC), 0);
	if (content == DISABLED)
		nd_fake_disable(n->nd, 0, 0);
}

static enum nd_mode mode_with(enum content content)
{
	if (content == FSDAX)
		return ND_FSDAX;
	return content == DEVDAX ? ND_DEVDAX : ND_RAW;
}

/* One region with a namespace over all of it. */
static void node_open(struct node *n, enum nd_memory_kind kind, enum content content)
{
	const struct nd_fake_region region = {.size_bytes = SIZE_BYTES,
		.label_slots = kind == ND_MEMORY_BLANK ? 8 : 0,
		.blank_labels = kind == ND_MEMORY_BLANK,
		.kind = kind,
		.not_pmem = kind == ND_MEMORY_VOLATILE,
		.disabled = content == REGION_OFF,
		.readonly = content == REGION_READONLY};

	unlink(SCRATCH "/disk");
	unlink(SCRATCH "/lvm/namespaces/iset-0000000000001000.json");
	unlink(SCRATCH "/lvm/namespaces/e820_region0.json");
	*n = (struct node){
		.nd = nd_open_fake(&region, 1), .disk = scratch_disk("disk", SIZE_BYTES), .user = -1};
	nd_fake_add(n->nd, 0, "", mode_with(content), 0, SIZE_BYTES);
	nd_fake_block(n->nd, 0, 0, n->disk.path);
	put_content(n, content);
}

struct row {
	enum nd_memory_kind kind;
	enum content content;
	enum memory_action action;
	const char *state;   /* part of it */
	const char *command; /* the first; NULL: none */
};

#define INIT    "pmem-ns-init create -initLabels"
#define CONVERT "pmem-ns-init create -unlabelled=convert"
#define FORCE   "pmem-ns-init -force convert namespace0.0"

static const struct row rows[] = {
	{ND_MEMORY_BLANK, NOTHING, MEMORY_INIT_LABELS, "without labels", INIT},
	{ND_MEMORY_BLANK, EXT4, MEMORY_BY_HAND, "holds ext4", "blkdiscard -fz /dev/"},
	{ND_MEMORY_BLANK, INFO_BLOCK, MEMORY_BY_HAND, "info block", "blkdiscard -fz /dev/"},
	{ND_MEMORY_BLANK, INFO_BLOCK_BEHIND, MEMORY_BY_HAND, "began at byte 67108864",
		"blkdiscard -fz /dev/"},
	{ND_MEMORY_BLANK, UNKNOWN, MEMORY_BY_HAND, "data of an unknown kind", "blkdiscard -fz /dev/"},
	{ND_MEMORY_BLANK, IN_USE, MEMORY_BY_HAND, "busy", NULL},
	{ND_MEMORY_BLANK, RECORDED, MEMORY_BY_HAND, "was in volume group ndbus0region0fsdax", NULL},
	{ND_MEMORY_BLANK, DISABLED, MEMORY_BY_HAND, "is disabled", "ndctl enable-namespace namespace0.0"},
	{ND_MEMORY_BLANK, FSDAX, MEMORY_BY_HAND, "mode fsdax", "ndctl destroy-namespace -f namespace0.0"},
	{ND_MEMORY_BLANK, DEVDAX, MEMORY_BY_HAND, "mode devdax", "ndctl destroy-namespace -f namespace0.0"},
	{ND_MEMORY_BLANK, REGION_OFF, MEMORY_BY_HAND, "the region is disabled",
		"ndctl enable-region region0"},
	{ND_MEMORY_BLANK, REGION_READONLY, MEMORY_BY_HAND, "read-only",
		"echo 0 >/sys/bus/nd/devices/region0/"},
	{ND_MEMORY_NO_LABELS, NOTHING, MEMORY_CONVERT, "as a whole", CONVERT},
	{ND_MEMORY_NO_LABELS, EXT4, MEMORY_BY_HAND, "holds ext4", FORCE},
	{ND_MEMORY_NO_LABELS, INFO_BLOCK, MEMORY_BY_HAND, "info block", FORCE},
	{ND_MEMORY_NO_LABELS, UNKNOWN, MEMORY_BY_HAND, "data of an unknown kind", FORCE},
	{ND_MEMORY_NO_LABELS, IN_USE, MEMORY_BY_HAND, "busy", NULL},
	{ND_MEMORY_NO_LABELS, RECORDED, MEMORY_BY_HAND, "was in volume group", FORCE},
	{ND_MEMORY_NO_LABELS, DISABLED, MEMORY_CONVERT, "as a whole", CONVERT},
	{ND_MEMORY_NO_LABELS, FSDAX, MEMORY_CONVERT, "as a whole", CONVERT},
	{ND_MEMORY_NO_LABELS, DEVDAX, MEMORY_BY_HAND, "mode devdax", NULL},
	{ND_MEMORY_NO_LABELS, REGION_OFF, MEMORY_BY_HAND, "the region is disabled",
		"ndctl enable-region region0"},
	{ND_MEMORY_LEGACY, NOTHING, MEMORY_CONVERT, "as a whole", CONVERT},
	{ND_MEMORY_LEGACY, EXT4, MEMORY_BY_HAND, "holds ext4", FORCE},
	{ND_MEMORY_LEGACY, UNKNOWN, MEMORY_CONVERT, "as a whole", CONVERT},
	{ND_MEMORY_VIRTIO, UNKNOWN, MEMORY_BY_HAND, "data of an unknown kind", FORCE},
	{ND_MEMORY_VIRTIO, NOTHING, MEMORY_CONVERT, "as a whole", CONVERT},
	{ND_MEMORY_VIRTIO, EXT4, MEMORY_BY_HAND, "holds ext4", FORCE},
	{ND_MEMORY_ODD, NOTHING, MEMORY_BY_HAND, "is not used", "ndctl disable-region region0"},
	{ND_MEMORY_ODD, EXT4, MEMORY_BY_HAND, "is not used", "ndctl disable-region region0"},
	{ND_MEMORY_VOLATILE, NOTHING, MEMORY_NOTHING, "cannot be used", NULL},
};

static void assert_advice(struct node *n, const struct row *row)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(memory_advices_done) struct memory_advices all = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(nd_list(n->nd, &inv, &err));
	ASSERT_OK(memory_advise(n->nd, SCRATCH "/lvm", inv, NULL, &all, &err));
	ck_assert_uint_eq(all.n, 1);
	const struct memory_advice *a = &all.list[0];
	ck_assert_str_eq(memory_action_name(a->action), memory_action_name(row->action));
	ck_assert_msg(strstr(a->state, row->state), "%s", a->state);
	ck_assert_int_eq(a->commands != NULL, row->command != NULL);
	if (row->command)
		ck_assert_msg(str_starts(a->commands[0], row->command), "%s", a->commands[0]);
	/* the driver's log and doctor have the same in one line */
	CLEANUP(free_charp) char *line = memory_advice_line(a);
	ck_assert(strstr(line, row->state) && !strchr(line, '\n'));
}

START_TEST(advice_follows_kind_and_content)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, rows[_i].kind, rows[_i].content);
	assert_advice(&n, &rows[_i]);
}
END_TEST

static bool create(struct node *n, bool init_labels, bool convert_unlabelled)
{
	CLEANUP(lvm_closep) struct lvm *lvm = lvm_open_with(&group_ops, &n->group);
	const struct create_options o = {.percent = 100,
		.init_labels = init_labels,
		.convert_unlabelled = convert_unlabelled,
		.state_path = SCRATCH,
		.folder = SCRATCH "/lvm"};
	struct error *err = NULL;
	bool complete = false;

	ASSERT_OK(cmd_create(n->nd, lvm, &o, &complete, &err));
	return complete;
}

/* Return: "raw", "labels", "converted", or what else the region has become. */
static const char *state_of(struct node *n)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(n->nd, &inv, &err));
	if (inv->regions[0].has_labels)
		return "labels";
	if (inv->regions[0].n_namespaces != 1 || n->group.made)
		return n->group.made ? "converted" : "empty";
	return inv->regions[0].namespaces[0].bare ? "raw" : nd_mode_name(inv->regions[0].namespaces[0].mode);
}

/* Each flag does what is advised for it, and nothing else: without both, nothing is done at all. */
START_TEST(create_does_only_what_its_flags_say)
{
	const struct row *row = &rows[_i];

	for (int flags = 0; flags < 4; flags++) {
		CLEANUP(node_done) struct node n;
		bool init_labels = flags & 1;
		bool convert = flags & 2;
		bool labels = init_labels && row->action == MEMORY_INIT_LABELS;
		bool converts = convert && row->action == MEMORY_CONVERT;

		node_open(&n, row->kind, row->content);
		CLEANUP(free_charp) char *before = x_strdup(state_of(&n));
		create(&n, init_labels, convert);
		ck_assert_str_eq(state_of(&n), labels ? "labels" : converts ? "converted" : before);
		create(&n, init_labels, convert);
		ck_assert_str_eq(state_of(&n), labels ? "labels" : converts ? "converted" : before);
	}
}
END_TEST

START_TEST(pool_is_made_in_the_same_run)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(node_done) struct node n;
	struct error *err = NULL;

	node_open(&n, ND_MEMORY_BLANK, NOTHING);
	ck_assert(!create(&n, false, true));
	ck_assert(create(&n, true, false));
	ASSERT_OK(nd_list(n.nd, &inv, &err));
	ck_assert_uint_eq(inv->regions[0].n_namespaces, 1);
	ck_assert(nd_is_pool(&inv->regions[0].namespaces[0]));
	assert_advice(&n, &(struct row){.action = MEMORY_NOTHING, .state = "is used"});
}
END_TEST

START_TEST(labels_that_cannot_be_initialised_are_reported)
{
	CLEANUP(node_done) struct node n;

	node_open(&n, ND_MEMORY_BLANK, NOTHING);
	nd_fake_fail(n.nd, ERR_INTERNAL);
	ck_assert(!create(&n, true, false));
	ck_assert_str_eq(state_of(&n), "raw");
	ck_assert(create(&n, true, false));
}
END_TEST

/* Another program writes to the memory of @node before the step that is advised for it. */
static struct {
	struct node *node;
	enum content content;
	const struct nd_ops *ops;
} late;

static int init_labels_late(
	void *self, const struct nd_region *r, const struct nd_look *look, struct error **err)
{
	put_content(late.node, late.content);
	return late.ops->init_labels(self, r, look, err);
}

static int convert_late(void *self, const struct nd_namespace *ns, const struct nd_look *look,
	struct nd_namespace **ret, struct error **err)
{
	put_content(late.node, late.content);
	return late.ops->convert(self, ns, look, ret, err);
}

START_TEST(content_that_appears_after_the_advice_is_refused)
{
	static const enum nd_memory_kind kinds[] = {ND_MEMORY_BLANK, ND_MEMORY_NO_LABELS};
	static const enum content contents[] = {EXT4, INFO_BLOCK, INFO_BLOCK_BEHIND, UNKNOWN, RECORDED};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		for (size_t k = 0; k < ARRAY_SIZE(contents); k++) {
			struct nd_ops ops;
			CLEANUP(node_done) struct node n;
			node_open(&n, kinds[i], NOTHING);
			ops = *n.nd->ops;
			late.node = &n;
			late.content = contents[k];
			late.ops = n.nd->ops;
			ops.init_labels = init_labels_late;
			ops.convert = convert_late;
			n.nd->ops = &ops;
			ck_assert(!create(&n, true, true));
			ck_assert_str_eq(state_of(&n), "raw");
			ck_assert(!create(&n, true, true));
		}
}
END_TEST

START_TEST(advise_is_written_for_people_and_programs)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(OUTPUT_MAX_BYTES);
	CLEANUP(buf_done) struct buf json = BUF_INIT(OUTPUT_MAX_BYTES);
	CLEANUP(node_done) struct node n;
	struct error *err = NULL;

	node_open(&n, ND_MEMORY_BLANK, NOTHING);
	ASSERT_OK(nd_list(n.nd, &inv, &err));
	ASSERT_OK(cmd_advise(n.nd, NULL, inv, NULL, false, &text, &err));
	ck_assert_str_eq(buf_str(&text),
		"region0 on ndbus0, 128Mi: NVDIMMs whose label areas are blank (nmem0)\n"
		"  It is not used: without labels the region cannot be divided into namespaces with names.\n"
		"      pmem-ns-init create -initLabels\n");
	ASSERT_OK(cmd_advise(n.nd, NULL, inv, NULL, true, &json, &err));
	ck_assert_str_eq(buf_str(&json),
		"{\"schemaVersion\":1,\"memory\":[{\"name\":\"region0 on ndbus0\",\"bus\":\"ndbus0\",\"region\":"
		"\"region0\",\"sizeBytes\":134217728,\"kind\":\"blank-labels\",\"what\":\"NVDIMMs whose label areas "
		"are blank (nmem0)\",\"state\":\"is not used: without labels the region cannot be divided into "
		"namespaces with names\",\"action\":\"init-labels\",\"commands\":[\"pmem-ns-init create "
		"-initLabels\"]}]}\n");
}
END_TEST

/* The module that the kernel makes of a CXL device is not named beside the device. */
START_TEST(devices_without_a_region_are_named)
{
	CLEANUP(nd_closep) struct nd *nd = nd_open_fake(NULL, 0);
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(OUTPUT_MAX_BYTES);
	char nvdimm[] = "nmem0", used[] = "nmem1", cxl[] = "nmem2", region[] = "region0";
	char unread[] = "mem3";
	char *regions[] = {region, NULL}, *unreadable[] = {unread, NULL};
	struct dimm list[] = {
		{.name = nvdimm}, {.name = used, .regions = regions}, {.name = cxl, .is_cxl = true}};
	struct cxl_device memdevs[] = {
		{.name = "mem0", .serial = 0x1001, .pmem_bytes = MIB(256), .used = true, .n_roots = 1},
		{.name = "mem1", .serial = 0x1002, .pmem_bytes = MIB(256), .n_roots = 1},
		{.name = "mem2", .serial = 0x1003, .pmem_bytes = MIB(512)}};
	const struct memory_devices devices = {.modules = &(struct dimms){list, 3},
		.cxl = &(struct cxl_topology){.devices = memdevs, .n_devices = 3, .unreadable = unreadable}};
	struct error *err = NULL;

	ASSERT_OK(nd_list(nd, &inv, &err));
	ASSERT_OK(cmd_advise(nd, NULL, inv, &devices, false, &text, &err));
	ck_assert(str_starts(buf_str(&text), "nmem0: an NVDIMM\n"));
	ck_assert(strstr(buf_str(&text), "      ipmctl create -goal PersistentMemoryType=AppDirect\n"));
	ck_assert(strstr(buf_str(&text),
		"\nmem1 (serial 0x1002): a CXL memory device with 256Mi of persistent memory\n"
		"  It is not used: it is part of no region.\n"));
	ck_assert(strstr(buf_str(&text), "      pmem-ns-init create -cxlRegions=create\n"));
	ck_assert(strstr(buf_str(&text), "\nmem2 (serial 0x1003): "));
	ck_assert(strstr(buf_str(&text), "      cxl enable-memdev mem2\n"));
	ck_assert(strstr(buf_str(&text),
		"\nmem3: a CXL memory device that cannot be read\n  It is not used: its node /dev/cxl/mem3 is missing"));
	ck_assert(!strstr(buf_str(&text), "nmem1") && !strstr(buf_str(&text), "nmem2"));
	ck_assert(!strstr(buf_str(&text), "mem0 ("));
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/ns_prepare");
	TCase *tcase = tcase_create("ns_prepare");

	if (why) {
		fprintf(stderr, "SKIP pmem/ns_prepare: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, scratch_enter, NULL);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, advice_follows_kind_and_content, 0, ARRAY_SIZE(rows));
	tcase_add_loop_test(tcase, create_does_only_what_its_flags_say, 0, ARRAY_SIZE(rows));
	tcase_add_test(tcase, pool_is_made_in_the_same_run);
	tcase_add_test(tcase, labels_that_cannot_be_initialised_are_reported);
	tcase_add_test(tcase, content_that_appears_after_the_advice_is_refused);
	tcase_add_test(tcase, devices_without_a_region_are_named);
	tcase_add_test(tcase, advise_is_written_for_people_and_programs);
	return unit_runner_finish(srunner_create(suite));
}
