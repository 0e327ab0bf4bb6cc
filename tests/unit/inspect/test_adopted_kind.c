/* SPDX-License-Identifier: Apache-2.0 */
/* A volume whose record was lost is repaired as each kind. Then it is served as before, or it is refused with
 * the command that repairs it. It is never mounted by the node while a guest may have it. */
#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/repair.h"
#include "os/mount_table.h"
#include "os/spawn.h"
#include "unit/volume/mounts.h"
#include "volume/attachment/kata_image.h"

#define SIZE     MIB(64)
#define XFS_SIZE MIB(480)

enum made { ORDINARY, KATA, KATA_UNUSED, DIRECT, BLOCK };

/* The way in which the volume is served after the repair. */
enum served { REFUSED, MOUNTED, IMAGE, GIVEN };

static const struct row {
	enum made made;
	enum adopted_kind asked;
	const char *left;    /* text of a repair that writes no record; NULL: it writes one */
	enum served staged;  /* how staging serves it with the context of its PersistentVolume */
	const char *refusal; /* error text of staging; NULL: it is not refused, or not tried */
} rows[] = {
	{ORDINARY, ADOPTED_AS_FOUND, "otherwise with -filesystem", REFUSED, NULL},
	{ORDINARY, ADOPTED_FILESYSTEM, NULL, MOUNTED, NULL},
	{ORDINARY, ADOPTED_DIRECT, NULL, GIVEN, NULL},
	{KATA, ADOPTED_AS_FOUND, NULL, IMAGE, NULL},
	{KATA, ADOPTED_FILESYSTEM, NULL, IMAGE, NULL},
	{KATA, ADOPTED_DIRECT, NULL, REFUSED, "check -repair ID -filesystem"},
	{KATA_UNUSED, ADOPTED_AS_FOUND, "otherwise with -filesystem", REFUSED, NULL},
	{KATA_UNUSED, ADOPTED_FILESYSTEM, NULL, REFUSED, "check -repair ID -filesystem"},
	{DIRECT, ADOPTED_AS_FOUND, "with -direct if its PersistentVolume has directVolume=true", REFUSED,
		NULL},
	{DIRECT, ADOPTED_FILESYSTEM, NULL, REFUSED, "check -repair ID -direct"},
	{DIRECT, ADOPTED_DIRECT, NULL, GIVEN, NULL},
	{BLOCK, ADOPTED_AS_FOUND, NULL, REFUSED, "it is not formatted again"},
	{BLOCK, ADOPTED_FILESYSTEM, NULL, REFUSED, "it is not formatted again"},
	{BLOCK, ADOPTED_DIRECT, NULL, REFUSED, "it is not formatted again"},
	{BLOCK, ADOPTED_BLOCK, NULL, REFUSED, "created for block access only"},
};

static const char *const types[] = {"ext4", "xfs"};
#define N_TYPES ((int)ARRAY_SIZE(types))

static const struct row *row;
static const char *fs_type;
static struct repair_report report;
static struct strmap context;
static struct error *err;
static char *folder;

static int no_guest(void *user, const struct strmap *of, bool *ret, struct error **ret_err)
{
	(void)user;
	(void)of;
	(void)ret_err;
	*ret = false;
	return 0;
}

static const struct volume_pods pods = {.runs_in_guest = no_guest};

static void done(void)
{
	repair_report_done(&report);
	strmap_done(&context);
	volume_info_free(mt.volume);
	free(mt.staging);
	free(mt.target);
	free(TAKE_PTR(folder));
	mt = (struct mounts){0};
}

static void set_up(void)
{
	CLEANUP(free_charp) char *state = NULL;

	fx.pods = &pods;
	fx.direct_volumes_dir = NULL;
	fixture_folder();
	fx.done = done;
	folder = fixture_path("direct/volumes");
	fx.direct_volumes_dir = folder;
	mt.staging = fixture_path("kubelet/staging");
	mt.target = fixture_path("kubelet/target");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
	state = fixture_path("state");
	ck_assert_int_eq(mount(state, state, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(mount(NULL, state, NULL, MS_SHARED, NULL), 0);
	fixture_restart();
}

static int stage(void)
{
	struct use_request q = mounts_stage_request(fs_type);

	q.context = &context;
	return volumes_stage(fx.v, &q, &err);
}

static void publish(void)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);

	q.fs_type = fs_type;
	q.context = &context;
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
}

static void end_use(void)
{
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

static void make(void)
{
	struct volume_request q = fixture_request("pvc-1", str_eq(fs_type, "xfs") ? XFS_SIZE : SIZE);
	CLEANUP(strmap_done) struct strmap parameters = {0};

	if (row->made == KATA || row->made == KATA_UNUSED)
		strmap_set(&parameters, "kataContainers", "true");
	if (row->made == DIRECT)
		strmap_set(&parameters, "directVolume", "true");
	q.parameters = &parameters;
	q.fs_type = row->made == BLOCK ? NULL : fs_type;
	q.block = row->made == BLOCK;
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	strmap_copy(&context, &mt.volume->context);
}

static void use_first(void)
{
	if (row->made == BLOCK)
		return;
	ASSERT_OK(stage());
	if (row->made == ORDINARY || row->made == KATA) {
		publish();
		ck_assert_int_eq(mounts_write(mt.target), 0);
		end_use();
		return;
	}
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

static void lose_record(void)
{
	CLEANUP(free_charp) char *name = x_asprintf("state/%s.json", mt.volume->id);
	CLEANUP(free_charp) char *path = fixture_path(name);

	fixture_stop();
	ck_assert_int_eq(unlink(path), 0);
	fixture_open();
}

static void repair(enum adopted_kind kind)
{
	repair_report_done(&report);
	ASSERT_OK(volumes_repair(fx.v, mt.volume->id, kind, &report, &err));
}

static void assert_left(const char *text)
{
	ck_assert(!report.done && report.left);
	ck_assert_msg(strstr(report.left[0], text), "%s", report.left[0]);
	ck_assert_uint_eq(fixture_n_files(), 0);
}

static void assert_refused(void)
{
	const char *id_at = strstr(row->refusal, "ID");
	CLEANUP(free_charp)
	char *text = !id_at ? x_strdup(row->refusal)
			    : x_asprintf("%.*s%s%s", (int)(id_at - row->refusal), row->refusal, mt.volume->id,
				      id_at + 2);

	ck_assert_int_eq(stage(), -1);
	ck_assert_msg((err->code == ERR_PRECONDITION || err->code == ERR_INVALID_ARGUMENT) &&
			      strstr(err->msg, text),
		"%s", err->msg);
	error_clear(&err);
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
}

static void assert_served(void)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	ASSERT_OK(stage());
	ck_assert_uint_eq(mounts_count(mt.staging), row->staged != GIVEN);
	r = mounts_record();
	ck_assert(r->direct == (row->staged == GIVEN));
	ck_assert((r->image_bytes > 0) == (row->staged == IMAGE));
	if (row->staged == GIVEN) {
		ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
		return;
	}
	publish();
	ck_assert(mounts_has_file(mt.target));
	ck_assert(str_starts(mounts_top(mt.target)->source, "/dev/loop"));
	end_use();
}

/* The other answers may be given later. */
static void ask_again(void)
{
	fixture_stop();
	fixture_open();
	repair(row->asked);
	ck_assert_msg(!report.done && !report.left, "%s", report.done ? report.done[0] : report.left[0]);
}

START_TEST(volume_is_served_as_it_was_or_refused)
{
	row = &rows[_i / N_TYPES];
	fs_type = types[_i % N_TYPES];
	make();
	use_first();
	lose_record();
	repair(row->asked);
	if (row->left) {
		assert_left(row->left);
		return;
	}
	ck_assert_msg(report.done && !report.left, "%s", report.left ? report.left[0] : "nothing is done");
	ask_again();
	fixture_restart();
	if (row->staged == REFUSED)
		assert_refused();
	else
		assert_served();
}
END_TEST

/* Staging refuses the wrong kind and says how to repair the volume again. After that repair it is served. */
START_TEST(volume_that_was_repaired_as_another_kind_is_repaired_again)
{
	static const struct row made[] = {{.made = DIRECT, .asked = ADOPTED_DIRECT, .staged = GIVEN},
		{.made = KATA, .asked = ADOPTED_FILESYSTEM, .staged = IMAGE}};
	static const enum adopted_kind wrong[] = {ADOPTED_FILESYSTEM, ADOPTED_DIRECT};

	row = &made[_i];
	fs_type = "ext4";
	make();
	use_first();
	lose_record();
	repair(wrong[_i]);
	ck_assert_ptr_nonnull(report.done);
	fixture_restart();
	ck_assert_int_eq(stage(), -1);
	error_clear(&err);
	fixture_stop();
	fixture_open();
	repair(row->asked);
	ck_assert_msg(report.done && !report.left, "%s", report.left ? report.left[0] : "nothing is done");
	fixture_restart();
	assert_served();
}
END_TEST

/* The guest opens the device, and does not open it exclusively. */
START_TEST(device_that_a_guest_still_has_is_not_adopted)
{
	static const struct row direct = {.made = DIRECT};
	CLEANUP(device_freep) struct device *d = NULL;
	struct child guest = CHILD_INIT;
	char byte;

	row = &direct;
	fs_type = "ext4";
	make();
	use_first();
	lose_record();
	d = fixture_device(mt.volume->id);
	const char *const argv[] = {
		"sh", "-c", "exec 9<>\"$1\" && echo ready && exec cat", "sh", d->path, NULL};
	ASSERT_OK(child_start(argv, NULL, &guest, &err));
	ck_assert_int_eq(poll(&(struct pollfd){.fd = guest.stdout_fd, .events = POLLIN}, 1, 10000), 1);
	ck_assert_int_eq(read(guest.stdout_fd, &byte, 1), 1);
	repair(ADOPTED_DIRECT);
	child_stop(&guest, 1000);
	assert_left("is in use: process");
}
END_TEST

/* No PersistentVolume names a snapshot. A refused repair leaves the damaged file, which shows that it is one.
 */
START_TEST(snapshot_is_repaired_by_the_kind_of_its_source)
{
	static const struct row ordinary = {.made = ORDINARY};
	CLEANUP(free_charp) char *file = NULL;
	CLEANUP(free_charp) char *text = NULL;

	row = &ordinary;
	fs_type = "ext4";
	make();
	use_first();
	lose_record();
	file = x_asprintf("%s.snapshot", mt.volume->id);
	fixture_write(file, "{\"id\":");
	repair(ADOPTED_AS_FOUND);
	ck_assert(!report.done && report.left);
	ck_assert_msg(strstr(report.left[0], "with -direct if the PersistentVolume of its source has"), "%s",
		report.left[0]);
	repair(ADOPTED_FILESYSTEM);
	ck_assert_msg(report.done && !report.left, "%s", report.left ? report.left[0] : "nothing is done");
	text = fixture_read(file);
	ck_assert_msg(strstr(text, "\"snapshot\":true") && strstr(text, "\"ext4\""), "%s", text);
}
END_TEST

START_TEST(volume_with_a_record_does_not_change_its_kind)
{
	static const struct row ordinary = {.made = ORDINARY};

	row = &ordinary;
	fs_type = "ext4";
	make();
	fixture_stop();
	fixture_open();
	repair(ADOPTED_DIRECT);
	ck_assert(
		!report.done && strstr(report.left[0], "was not created as a volume that guests are given"));
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("adopted_kind", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_loop_test(tcase, volume_is_served_as_it_was_or_refused, 0, (int)ARRAY_SIZE(rows) * N_TYPES);
	tcase_add_loop_test(tcase, volume_that_was_repaired_as_another_kind_is_repaired_again, 0, 2);
	tcase_add_test(tcase, device_that_a_guest_still_has_is_not_adopted);
	tcase_add_test(tcase, snapshot_is_repaired_by_the_kind_of_its_source);
	tcase_add_test(tcase, volume_with_a_record_does_not_change_its_kind);
	return fixture_finish();
}
