/* SPDX-License-Identifier: Apache-2.0 */
/* Every mutation of every request of the service Node, with a real file system on a loop device. */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "csi.pb-c.h"

#include "base/mem.h"
#include "base/str.h"
#include "csi/csi.h"
#include "unit/csi/hostile.h"
#include "unit/volume/mounts.h"

#define LOOK_MAX  (1u << 20)
#define SIZE      MIB(16)
#define WALK_FDS  16
#define TIMEOUT_S 300
#define MODE      CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER

static struct csi csi = {.driver_name = "pmem-csi.example", .version = "1", .node_id = NODE_ID};
static struct grpc_service service;
static struct buf seen;
static char **entries;
static char **texts; /* paths that lead to surprises */
static char flag[] = "noatime";
static char *flags[] = {flag, NULL};

/* The state in which the volume is before each request. It is restored after a request that succeeded. */
static bool staged, published;
/* Whether the volume is for block access: then nothing is mounted at the staging path. */
static bool block;

static int look_at_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)type;
	(void)ftw;
	CLEANUP(free_charp) char *line = x_asprintf("%s %o", path, st->st_mode);
	strv_add(&entries, line);
	return 0;
}

static int compare(const void *a, const void *b)
{
	char *const *x = a;
	char *const *y = b;

	return strcmp(*x, *y);
}

/* Adds the entries of the folder in an order that does not change when an entry is made again. */
static void look_at_folder(const char *name)
{
	CLEANUP(free_charp) char *path = fixture_path(name);

	ck_assert_int_eq(nftw(path, look_at_entry, WALK_FDS, FTW_PHYS | FTW_MOUNT), 0);
	qsort(entries, strv_len(entries), sizeof(*entries), compare);
	for (size_t i = 0; entries[i]; i++)
		buf_addf(&seen, "%s\n", entries[i]);
	strv_free(TAKE_PTR(entries));
}

static void look_at_mounts(void)
{
	CLEANUP(free_charp) char *folder = fixture_path("");
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	struct error *err = NULL;

	ASSERT_OK(mount_table_read(&table, &err));
	for (size_t i = 0; i < table->n; i++) {
		if (str_starts(table->entries[i].target, folder))
			buf_addf(&seen, "mount %s %s\n", table->entries[i].target, table->entries[i].fstype);
	}
}

static char *look(void)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *record = fixture_read(file);

	buf_reset(&seen);
	buf_addf(&seen, "%zu files\n%s\n%zu devices\n", fixture_n_files(), record, fixture_n_devices());
	look_at_folder("kubelet");
	look_at_folder("outside");
	look_at_mounts();
	ck_assert(!seen.overflowed);
	return x_strdup(buf_str(&seen));
}

static void stage(void)
{
	struct use_request q = mounts_stage_request(block ? "" : "ext4");
	struct error *err = NULL;

	q.block = block;
	q.mount_flags = block ? NULL : flags;
	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}

static void publish(void)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	if (block)
		q.fs_type = "";
	q.block = block;
	q.mount_flags = block ? NULL : flags;
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
}

/* Links, a file, folders that are in use, and names of the utmost length. */
static void make_traps(void)
{
	static const char *const paths[] = {"kubelet", "kubelet/", "kubelet//staging//", "kubelet/out",
		"kubelet/out/target", "kubelet/out/../target", "kubelet/loop", "kubelet/loop/target",
		"kubelet/staging/../staging", "kubelet/./staging", "kubelet/../kubelet/staging", "outside",
		"outside/target", "kubelet/file", "kubelet/file/target", "kubelet/full", "kubelet/full/inner",
		"kubelet/none/target", "state", "fake", ""};
	CLEANUP(free_charp) char *outside = fixture_path("outside");
	CLEANUP(free_charp) char *base = fixture_path("kubelet");
	char name[PATH_MAX];

	ck_assert_int_eq(mkdir(outside, 0755), 0);
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		CLEANUP(free_charp) char *path = fixture_path(paths[i]);

		strv_add(&texts, path);
	}
	for (int n = NAME_MAX; n <= NAME_MAX + 1; n++) {
		snprintf(name, sizeof(name), "%s/%0*d", base, n, 0);
		strv_add(&texts, name);
	}
	for (size_t n = strlen(base); n + 2 < PATH_MAX; n += 2)
		memcpy(name + n, "/a", 3);
	strv_add(&texts, name);
}

/* An unpublish call rightly removes what is at its target. */
static void restore_traps(void)
{
	CLEANUP(free_charp) char *out = fixture_path("kubelet/out");
	CLEANUP(free_charp) char *outside = fixture_path("outside");
	CLEANUP(free_charp) char *loop = fixture_path("kubelet/loop");
	CLEANUP(free_charp) char *file = fixture_path("kubelet/file");
	CLEANUP(free_charp) char *full = fixture_path("kubelet/full");
	CLEANUP(free_charp) char *inner = fixture_path("kubelet/full/inner");

	(void)!symlink(outside, out);
	(void)!symlink("loop", loop);
	(void)!mknod(file, S_IFREG | 0644, 0);
	(void)!mkdir(full, 0755);
	(void)!mkdir(inner, 0755);
}

/* A folder that was not made for the volume is not removed with what else is in it. */
static void unpublish(const char *target)
{
	CLEANUP(free_charp) char *inner = x_asprintf("%s/inner", target);
	struct error *err = NULL;

	if (volumes_unpublish(fx.v, mt.volume->id, target, &err) == 0)
		return;
	ck_assert_int_eq(err->code, ERR_PRECONDITION);
	error_clear(&err);
	ck_assert_int_eq(rmdir(inner), 0);
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, target, &err));
}

static void restore(const void *reply)
{
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	struct error *err = NULL;

	(void)reply;
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (!published || !str_eq(r->targets[i], mt.target))
			unpublish(r->targets[i]);
	}
	if (r->staging_path && (!staged || !str_eq(r->staging_path, mt.staging)))
		ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, r->staging_path, &err));
	if (staged && (block ? !str_eq(r->staging_path, mt.staging) : mounts_count(mt.staging) == 0))
		stage();
	if (published && mounts_count(mt.target) == 0)
		publish();
	restore_traps();
}

static void set_up_rest(void)
{
	csi.volumes = fx.v;
	service = csi_node_service(&csi);
	seen = BUF_INIT(LOOK_MAX);
	make_traps();
	/* what is recorded once stays */
	staged = published = true;
	stage();
	restore(NULL);
	staged = published = false;
	restore(NULL);
}

static void set_up(void)
{
	mounts_set_up(SIZE);
	set_up_rest();
}

static void set_up_block(void)
{
	mounts_set_up_block(SIZE);
	block = true;
	set_up_rest();
}

static void run(struct hostile_rpc rpc)
{
	rpc.service = &service;
	rpc.look = look;
	rpc.undo = restore;
	rpc.texts = texts;
	restore(NULL);
	hostile_run(&rpc);
}

/* A capability that lives as long as the test program. */
static Csi__V1__VolumeCapability *capability(void)
{
	static Csi__V1__VolumeCapability c;
	static Csi__V1__VolumeCapability__AccessMode mode;
	static Csi__V1__VolumeCapability__MountVolume mount;
	static Csi__V1__VolumeCapability__BlockVolume device;
	static char fs_type[] = "ext4";

	csi__v1__volume_capability__init(&c);
	csi__v1__volume_capability__access_mode__init(&mode);
	csi__v1__volume_capability__mount_volume__init(&mount);
	mode.mode = MODE;
	mount.fs_type = fs_type;
	mount.n_mount_flags = 1;
	mount.mount_flags = flags;
	c.access_mode = &mode;
	c.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	c.mount = &mount;
	if (!block)
		return &c;
	csi__v1__volume_capability__block_volume__init(&device);
	c.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
	c.block = &device;
	return &c;
}

/* Mounting takes its time: what is not looked at, or must succeed, is left to volumes that are mounted. */
static bool skip_likely(const struct variant *v)
{
	bool ignored = str_starts(v->path, "secrets") || str_starts(v->path, "publish_context") ||
		       str_starts(v->path, "volume_context");

	return v->kind == MUTATION_SAME ||
	       (ignored && (v->kind == MUTATION_VALUE || v->kind == MUTATION_CONTROL));
}

/* @again: it is staged already. */
static void run_stage(bool again, size_t min)
{
	Csi__V1__NodeStageVolumeRequest q;
	csi__v1__node_stage_volume_request__init(&q);
	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry context;
	csi__v1__node_stage_volume_request__volume_context_entry__init(&context);
	Csi__V1__NodeStageVolumeRequest__VolumeContextEntry *contexts[] = {&context};
	char key[] = "name", value[] = "pvc-1";

	q.volume_id = mt.volume->id;
	q.staging_target_path = mt.staging;
	q.volume_capability = capability();
	context.key = key;
	context.value = value;
	q.n_volume_context = 1;
	q.volume_context = contexts;
	HOSTILE_SECRETS(&q, Csi__V1__NodeStageVolumeRequest__SecretsEntry,
		csi__v1__node_stage_volume_request__secrets_entry__init);
	staged = again;
	run((struct hostile_rpc){.path = "/csi.v1.Node/NodeStageVolume",
		.valid = &q.base,
		.bytes = again && !block,
		.skip = again ? NULL : skip_likely,
		.min = min});
}

START_TEST(stage_volume)
{
	run_stage(/* again= */ false, 2000);
}
END_TEST

START_TEST(stage_volume_that_is_staged)
{
	run_stage(/* again= */ true, 4000);
}
END_TEST

START_TEST(unstage_volume)
{
	Csi__V1__NodeUnstageVolumeRequest q;
	csi__v1__node_unstage_volume_request__init(&q);

	staged = true;
	q.volume_id = mt.volume->id;
	q.staging_target_path = mt.staging;
	run((struct hostile_rpc){
		.path = "/csi.v1.Node/NodeUnstageVolume", .valid = &q.base, .bytes = true, .min = 1000});
}
END_TEST

static void run_publish(bool again, size_t min)
{
	Csi__V1__NodePublishVolumeRequest q;
	csi__v1__node_publish_volume_request__init(&q);
	Csi__V1__NodePublishVolumeRequest__VolumeContextEntry context;
	csi__v1__node_publish_volume_request__volume_context_entry__init(&context);
	Csi__V1__NodePublishVolumeRequest__VolumeContextEntry *contexts[] = {&context};
	char key[] = "csi.storage.k8s.io/pod.name", value[] = "pod-1";

	q.volume_id = mt.volume->id;
	q.staging_target_path = mt.staging;
	q.target_path = mt.target;
	q.volume_capability = capability();
	context.key = key;
	context.value = value;
	q.n_volume_context = 1;
	q.volume_context = contexts;
	HOSTILE_SECRETS(&q, Csi__V1__NodePublishVolumeRequest__SecretsEntry,
		csi__v1__node_publish_volume_request__secrets_entry__init);
	staged = true;
	published = again;
	run((struct hostile_rpc){.path = "/csi.v1.Node/NodePublishVolume",
		.valid = &q.base,
		.bytes = again && !block,
		.skip = again ? NULL : skip_likely,
		.min = min});
}

START_TEST(publish_volume)
{
	run_publish(/* again= */ false, 2000);
}
END_TEST

START_TEST(publish_volume_that_is_published)
{
	run_publish(/* again= */ true, 4000);
}
END_TEST

START_TEST(unpublish_volume)
{
	Csi__V1__NodeUnpublishVolumeRequest q;
	csi__v1__node_unpublish_volume_request__init(&q);

	staged = published = true;
	q.volume_id = mt.volume->id;
	q.target_path = mt.target;
	run((struct hostile_rpc){
		.path = "/csi.v1.Node/NodeUnpublishVolume", .valid = &q.base, .bytes = true, .min = 1000});
}
END_TEST

START_TEST(get_volume_stats)
{
	Csi__V1__NodeGetVolumeStatsRequest q;
	csi__v1__node_get_volume_stats_request__init(&q);

	staged = published = true;
	q.volume_id = mt.volume->id;
	q.volume_path = mt.target;
	q.staging_target_path = mt.staging;
	run((struct hostile_rpc){
		.path = "/csi.v1.Node/NodeGetVolumeStats", .valid = &q.base, .bytes = true, .min = 1000});
}
END_TEST

START_TEST(expand_volume)
{
	Csi__V1__NodeExpandVolumeRequest q;
	csi__v1__node_expand_volume_request__init(&q);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);

	staged = published = true;
	q.volume_id = mt.volume->id;
	q.volume_path = mt.target;
	q.staging_target_path = mt.staging;
	range.required_bytes = 1;
	q.capacity_range = &range;
	run((struct hostile_rpc){
		.path = "/csi.v1.Node/NodeExpandVolume", .valid = &q.base, .bytes = true, .min = 1000});
}
END_TEST

START_TEST(get_volume_health)
{
	Csi__V1__NodeGetVolumeHealthRequest q;
	csi__v1__node_get_volume_health_request__init(&q);

	staged = published = true;
	q.volume_id = mt.volume->id;
	q.volume_publish_path = mt.target;
	q.staging_target_path = mt.staging;
	run((struct hostile_rpc){
		.path = "/csi.v1.Node/NodeGetVolumeHealth", .valid = &q.base, .bytes = true, .min = 1000});
}
END_TEST

START_TEST(stage_block_volume)
{
	run_stage(/* again= */ true, 1000);
}
END_TEST

START_TEST(publish_block_volume)
{
	run_publish(/* again= */ false, 1000);
}
END_TEST

START_TEST(requests_without_fields)
{
	Csi__V1__NodeGetInfoRequest info;
	csi__v1__node_get_info_request__init(&info);
	Csi__V1__NodeGetCapabilitiesRequest capabilities;
	csi__v1__node_get_capabilities_request__init(&capabilities);

	run((struct hostile_rpc){.path = "/csi.v1.Node/NodeGetInfo", .valid = &info.base, .min = 10});
	run((struct hostile_rpc){
		.path = "/csi.v1.Node/NodeGetCapabilities", .valid = &capabilities.base, .min = 10});
}
END_TEST

static void add(TCase *tcase, const TTest *const *tests, size_t n)
{
	tcase_set_timeout(tcase, TIMEOUT_S);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);
}

int main(void)
{
	const TTest *const mounted[] = {stage_volume, stage_volume_that_is_staged, unstage_volume,
		publish_volume, publish_volume_that_is_published, unpublish_volume, get_volume_stats,
		get_volume_health, expand_volume, requests_without_fields};
	const TTest *const devices[] = {
		stage_block_volume, publish_block_volume, unpublish_volume, get_volume_stats, expand_volume};

	fixture_in_memory();
	TCase *tcase = fixture_case("csi/hostile_node", set_up);
	if (!tcase)
		return SKIP_STATUS;
	add(tcase, mounted, ARRAY_SIZE(mounted));
	add(fixture_more_cases("block", set_up_block), devices, ARRAY_SIZE(devices));
	return fixture_finish();
}
