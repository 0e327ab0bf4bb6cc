/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes whose device is given to guests: what the runtime reads, what the host leaves alone meanwhile,
 * and what is left over in no way that a pod, a guest or the driver can end. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "os/fs.h"
#include "os/spawn.h"
#include "unit/volume/mounts.h"
#include "volume/direct/direct_folder.h"

#define SIZE     MIB(64)
#define XFS_SIZE MIB(480)
#define SANDBOX  "4f0a9c"

static struct strmap parameters;
static const char *fs_type;
static char *folder;
static const char *running; /* the sandbox that answers; NULL: none does */
static enum err_code guest_fails;
static char *asked; /* the device string of the last question */
static uint64_t asked_bytes;
static struct child guest;

static bool runs(void *user, const char *sandbox)
{
	(void)user;
	return str_eq(running, sandbox);
}

static int note(const char *sandbox, const char *device, uint64_t bytes, struct error **err)
{
	ck_assert_str_eq(sandbox, running);
	free(asked);
	asked = x_strdup(device);
	asked_bytes = bytes;
	return guest_fails ? err_set(err, guest_fails, "the guest says no") : 0;
}

static int stats(
	void *user, const char *sandbox, const char *device, struct fs_usage *ret, struct error **err)
{
	(void)user;
	*ret = (struct fs_usage){.total_bytes = 4711};
	return note(sandbox, device, 0, err);
}

static int resize(void *user, const char *sandbox, const char *device, uint64_t bytes, struct error **err)
{
	(void)user;
	return note(sandbox, device, bytes, err);
}

static const struct volume_guests guests = {.runs = runs, .stats = stats, .resize = resize};

static int fs_group(
	void *user, const struct strmap *context, char **ret_group, char **ret_policy, struct error **err)
{
	(void)user;
	(void)context;
	(void)err;
	*ret_group = x_strdup("2000");
	*ret_policy = x_strdup("OnRootMismatch");
	return 0;
}

static const struct volume_pods pods = {.fs_group = fs_group};

static void end_guest(void)
{
	if (guest.pid > 0)
		child_stop(&guest, 1000);
}

static void done(void)
{
	end_guest();
	strmap_done(&parameters);
	volume_info_free(mt.volume);
	free(mt.staging);
	free(mt.target);
	free(mt.other);
	free(TAKE_PTR(folder));
	free(TAKE_PTR(asked));
	mt = (struct mounts){0};
}

static struct volume_request wanted(const char *name, uint64_t size_bytes)
{
	struct volume_request q = fixture_request(name, size_bytes);

	strmap_set(&parameters, "directVolume", "true");
	q.parameters = &parameters;
	q.fs_type = fs_type;
	return q;
}

static void set_up_folder(void)
{
	guest = CHILD_INIT;
	fx.guests = &guests;
	fx.pods = NULL;
	running = NULL;
	guest_fails = 0;
	fx.direct_volumes_dir = NULL;
	fixture_folder();
	fx.done = done;
	folder = fixture_path("direct/volumes");
	fx.direct_volumes_dir = folder;
	fixture_restart();
	mt.staging = fixture_path("kubelet/staging");
	mt.target = fixture_path("kubelet/target");
	mt.other = fixture_path("kubelet/other");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
}

static int stage(struct error **err)
{
	struct use_request q = mounts_stage_request(fs_type);

	return volumes_stage(fx.v, &q, err);
}

static void set_up_sized(uint64_t size_bytes)
{
	struct error *err = NULL;

	set_up_folder();
	const struct volume_request q = wanted("pvc-1", size_bytes);
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	ASSERT_OK(stage(&err));
}

static void set_up(void)
{
	fs_type = "ext4";
	set_up_sized(SIZE);
}

static void set_up_xfs(void)
{
	fs_type = "xfs";
	set_up_sized(XFS_SIZE);
}

static int publish_at(const char *target, struct error **err)
{
	struct use_request q = mounts_publish_request(target, ACCESS_SINGLE_WRITER);

	q.fs_type = fs_type;
	return volumes_publish(fx.v, &q, err);
}

static void publish(void)
{
	struct error *err = NULL;

	ASSERT_OK(publish_at(mt.target, &err));
}

static void unpublish(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
}

static char *entry_of(const char *target)
{
	CLEANUP(free_charp) char *name = NULL;
	struct error *err = NULL;

	ASSERT_OK(direct_entry_name(target, &name, &err));
	return x_asprintf("%s/%s", folder, name);
}

static void touch(const char *dir, const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", dir, name);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
}

static char *mount_info(const char *entry)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/mountInfo.json", entry);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	struct error *err = NULL;

	ASSERT_OK(file_read(AT_FDCWD, path, &text, &err));
	return x_strdup(buf_str(&text));
}

static size_t n_entries(void)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct error *err = NULL;

	ck_assert_int_ge(fd, 0);
	ASSERT_OK(dir_list(fd, &names, &err));
	return strv_len(names);
}

static void assert_nothing_left(void)
{
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();

	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ck_assert_int_ne(access(mt.target, F_OK), 0);
	ck_assert_uint_eq(n_entries(), 0);
	ck_assert_ptr_null(r->direct_entry);
	ck_assert_uint_eq(strv_len(r->targets), 0);
}

static char *device_path(void)
{
	CLEANUP(device_freep) struct device *d = fixture_device(mt.volume->id);

	return x_strdup(d->path);
}

/* As a hypervisor has its disk: not exclusively. */
static void begin_guest(void)
{
	CLEANUP(free_charp) char *path = device_path();
	const char *const argv[] = {"sh", "-c", "exec 9<>\"$1\" && echo ready && exec cat", "sh", path, NULL};
	struct error *err = NULL;
	char byte;

	ASSERT_OK(child_start(argv, NULL, &guest, &err));
	ck_assert_int_eq(poll(&(struct pollfd){.fd = guest.stdout_fd, .events = POLLIN}, 1, 10000), 1);
	ck_assert_int_eq(read(guest.stdout_fd, &byte, 1), 1);
}

START_TEST(kinds_that_cannot_be_direct_are_refused)
{
	struct volume_request q = wanted("pvc-2", SIZE);
	struct error *err = NULL;

	q.block = true;
	ASSERT_FAILS(volumes_create(fx.v, &q, &mt.volume, &err), ERR_INVALID_ARGUMENT, "directVolume");
	q.block = false;
	strmap_set(&parameters, "kataContainers", "true");
	ASSERT_FAILS(volumes_create(fx.v, &q, &mt.volume, &err), ERR_INVALID_ARGUMENT, "kataContainers");
	strmap_set(&parameters, "kataContainers", "false");
	strmap_set(&parameters, "persistencyModel", "cache");
	ASSERT_FAILS(volumes_create(fx.v, &q, &mt.volume, &err), ERR_INVALID_ARGUMENT, "cache");
	ck_assert_uint_eq(fixture_n_files(), 0);
}
END_TEST

START_TEST(inline_volume_cannot_be_direct)
{
	CLEANUP(strmap_done) struct strmap context = {0};
	struct use_request q = {
		.handle = "csi-inline", .target_path = mt.target, .fs_type = "ext4", .context = &context};
	struct error *err = NULL;

	strmap_set(&context, "csi.storage.k8s.io/ephemeral", "true");
	strmap_set(&context, "size", "64Mi");
	strmap_set(&context, "directVolume", "true");
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_INVALID_ARGUMENT, "directVolume");
}
END_TEST

START_TEST(node_without_a_folder_offers_none)
{
	const struct volume_request q = wanted("pvc-1", SIZE);
	CLEANUP(free_charp) char *why = NULL;
	CLEANUP(free_charp) char *parent = fixture_path("direct");
	struct error *err = NULL;

	fx.direct_volumes_dir = NULL;
	fixture_restart();
	ck_assert(!volumes_offers_direct(fx.v, &why));
	ck_assert_ptr_nonnull(strstr(why, "-directVolumesDir"));
	ASSERT_FAILS(volumes_create(fx.v, &q, &mt.volume, &err), ERR_EXHAUSTED, "-directVolumesDir");
	fx.direct_volumes_dir = folder;
	fixture_restart();
	ck_assert_int_eq(mkdir(parent, 0700), 0);
	ck_assert_int_eq(symlink("/tmp", folder), 0);
	ASSERT_FAILS(volumes_create(fx.v, &q, &mt.volume, &err), ERR_EXHAUSTED, "symbolic link");
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_int_eq(unlink(folder), 0);
	ASSERT_OK(volumes_create(fx.v, &q, &mt.volume, &err));
	ck_assert_str_eq(strmap_get(&mt.volume->context, "directVolume"), "true");
}
END_TEST

START_TEST(staging_formats_and_mounts_nothing)
{
	CLEANUP(free_charp) char *path = device_path();
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	CLEANUP(free_charp) char *found = NULL;
	struct error *err = NULL;

	ck_assert(r->direct && r->staged_block && r->ever_staged);
	ck_assert_str_eq(r->staging_path, mt.staging);
	ASSERT_OK(fs_probe(path, &found, &err));
	ck_assert_str_eq(found, fs_type);
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
	ASSERT_OK(stage(&err));
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
	ASSERT_FAILS(publish_at(mt.target, &err), ERR_PRECONDITION, "not staged");
}
END_TEST

START_TEST(publishing_names_the_device_and_shows_nothing)
{
	CLEANUP(free_charp) char *path = device_path();
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	CLEANUP(free_charp)
	char *wants = x_asprintf(
		"{\"volume-type\":\"directvol\",\"device\":\"%s\",\"fstype\":\"%s\",\"metadata\":{"
		"\"fsGroup\":\"2000\",\"fsGroupChangePolicy\":\"OnRootMismatch\"},\"options\":[\"noatime\",\"ro\"]}",
		path, fs_type);
	char noatime[] = "noatime", defaults[] = "defaults";
	char *flags[] = {noatime, defaults, NULL};
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	struct error *err = NULL;

	fx.pods = &pods;
	fixture_restart();
	q.fs_type = fs_type;
	q.mount_flags = flags;
	q.readonly = true;
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	CLEANUP(free_charp) char *is = mount_info(entry);
	ck_assert_str_eq(is, wants);
	const struct mount_entry *e = mounts_top(mt.target);
	ck_assert_str_eq(e->fstype, "tmpfs");
	ck_assert(mount_entry_is_readonly(e));
	ck_assert_ptr_nonnull(strstr(e->options, "nosuid"));
	ck_assert_ptr_nonnull(strstr(e->options, "nodev"));
	ck_assert_ptr_nonnull(strstr(e->options, "noexec"));
	ck_assert_int_eq(mounts_write(mt.target), EROFS);
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	q.readonly = false;
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_EXISTS, "another way");
	unpublish();
	assert_nothing_left();
	unpublish();
}
END_TEST

START_TEST(one_pod_at_a_time)
{
	struct use_request q = mounts_publish_request(mt.other, ACCESS_SINGLE_NODE_MULTI_WRITER);
	struct error *err = NULL;

	publish();
	q.fs_type = fs_type;
	ASSERT_FAILS(volumes_publish(fx.v, &q, &err), ERR_PRECONDITION, mt.target);
	ck_assert_uint_eq(n_entries(), 1);
	ck_assert_int_ne(access(mt.other, F_OK), 0);
	unpublish();
	ASSERT_OK(volumes_publish(fx.v, &q, &err));
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.other, &err));
}
END_TEST

START_TEST(target_with_content_is_not_covered)
{
	struct error *err = NULL;

	ck_assert_int_eq(mkdir(mt.target, 0755), 0);
	ck_assert_int_eq(mounts_write(mt.target), 0);
	ASSERT_FAILS(publish_at(mt.target, &err), ERR_PRECONDITION, "not empty");
	ck_assert(mounts_has_file(mt.target));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_ptr_null(r->direct_entry);
}
END_TEST

START_TEST(target_that_is_too_long_is_refused)
{
	char name[200];
	struct error *err = NULL;

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	CLEANUP(free_charp) char *target = x_asprintf("%s-%s", mt.target, name);
	ASSERT_FAILS(publish_at(target, &err), ERR_INVALID_ARGUMENT, "too long");
	ck_assert_int_ne(access(target, F_OK), 0);
}
END_TEST

START_TEST(guest_that_outlives_its_pod_keeps_the_device)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	struct snapshot_request snapshot = {
		.name = "snap-1", .source = mt.volume->id, .parameters = &(struct strmap){0}};
	struct error *err = NULL;

	publish();
	running = SANDBOX;
	touch(entry, "0ther");
	touch(entry, SANDBOX);
	unpublish();
	assert_nothing_left();
	for (unsigned i = 0; i < 2; i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();

		ck_assert_uint_eq(strv_len(r->sandboxes), 1);
		ASSERT_FAILS(publish_at(mt.target, &err), ERR_PRECONDITION, SANDBOX);
		ASSERT_FAILS(volumes_create_snapshot(fx.v, &snapshot, &(struct snapshot_info *){NULL}, &err),
			ERR_PRECONDITION, SANDBOX);
		ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, SANDBOX);
		/* it is staged there already */
		ASSERT_OK(stage(&err));
		fixture_restart();
	}
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
	ASSERT_FAILS(stage(&err), ERR_PRECONDITION, SANDBOX);
	running = NULL;
	ASSERT_OK(stage(&err));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_uint_eq(strv_len(r->sandboxes), 0);
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
}
END_TEST

/* A shim of another sandbox may answer there by then. */
START_TEST(guests_end_with_the_node)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	struct error *err = NULL;

	publish();
	running = SANDBOX;
	touch(entry, SANDBOX);
	unpublish();
	CLEANUP(free_charp) char *text = fixture_read(file);
	char *boot = strstr(text, "\"sandboxBoot\":\"");
	ck_assert_ptr_nonnull(boot);
	boot[strlen("\"sandboxBoot\":\"")] = 'x';
	fixture_stop();
	fixture_write(file, text);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	publish();
	unpublish();
}
END_TEST

/* As in a container from which the folder is taken away: the entry is still on the host, and what it says of
 * guests is not known. */
START_TEST(folder_that_is_not_seen_any_more_keeps_the_device)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	CLEANUP(free_charp) char *parent = fixture_path("direct");
	struct error *err = NULL;

	publish();
	running = SANDBOX;
	touch(entry, SANDBOX);
	ck_assert_int_eq(mount("none", parent, "tmpfs", MS_RDONLY, NULL), 0);
	unpublish();
	ASSERT_FAILS(publish_at(mt.target, &err), ERR_PRECONDITION, "Read-only");
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, "component kata");
	ck_assert_int_eq(umount(parent), 0);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	assert_nothing_left();
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, SANDBOX);
	running = NULL;
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
}
END_TEST

/* A boot empties it, and ends the guests. */
START_TEST(folder_that_ended_with_the_node_keeps_nothing)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	CLEANUP(free_charp) char *parent = fixture_path("direct");
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	struct error *err = NULL;

	publish();
	running = SANDBOX;
	touch(entry, SANDBOX);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fixture_stop();
	CLEANUP(free_charp) char *text = fixture_read(file);
	char *boot = strstr(text, "\"sandboxBoot\":\"");
	ck_assert_ptr_nonnull(boot);
	boot[strlen("\"sandboxBoot\":\"")] = 'x';
	fixture_write(file, text);
	/* its guests may be looked for before it ends */
	if (_i == 0)
		ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(mount("none", parent, "tmpfs", MS_RDONLY, NULL), 0);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	if (_i == 1)
		unpublish();
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	ck_assert_int_eq(umount(parent), 0);
}
END_TEST

/* As earlier versions have written it. */
START_TEST(boot_of_an_entry_is_recorded_later)
{
	CLEANUP(free_charp) char *parent = fixture_path("direct");
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	struct error *err = NULL;

	publish();
	fixture_stop();
	CLEANUP(free_charp) char *text = fixture_read(file);
	char *boot = strstr(text, "\"sandboxBoot\":");
	ck_assert_ptr_nonnull(boot);
	/* a key that is not known is kept, and means nothing */
	memcpy(boot, "\"sandboxB00t\":", strlen("\"sandboxB00t\":"));
	fixture_write(file, text);
	/* a pod that has ended meanwhile shows no boot: then it is not known that the guests have ended */
	if (_i == 1)
		ck_assert_int_eq(umount(mt.target), 0);
	ck_assert_int_eq(mount("none", parent, "tmpfs", MS_RDONLY, NULL), 0);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	unpublish();
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, "component kata");
	ck_assert_int_eq(umount(parent), 0);
	CLEANUP(free_charp) char *after = fixture_read(file);
	ck_assert(_i == 1 || strstr(after, "\"sandboxBoot\":"));
}
END_TEST

/* Also when another program removes the entry, by which the runtime knows it, in the meantime. */
START_TEST(guest_is_recorded_when_it_is_seen)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	CLEANUP(free_charp) char *info = x_asprintf("%s/mountInfo.json", entry);
	CLEANUP(free_charp) char *file = x_asprintf("%s/" SANDBOX, entry);
	struct error *err = NULL;

	publish();
	running = SANDBOX;
	touch(entry, SANDBOX);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ck_assert_int_eq(unlink(file), 0);
	ck_assert_int_eq(unlink(info), 0);
	ck_assert_int_eq(rmdir(entry), 0);
	unpublish();
	assert_nothing_left();
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, SANDBOX);
}
END_TEST

/* runtime-rs leaves no sandbox's ID. */
START_TEST(process_that_has_the_device_open_keeps_it)
{
	struct snapshot_request snapshot = {
		.name = "snap-1", .source = mt.volume->id, .parameters = &(struct strmap){0}};
	struct error *err = NULL;

	publish();
	begin_guest();
	unpublish();
	CLEANUP(free_charp) char *process = x_asprintf("process %d", guest.pid);
	ASSERT_FAILS(publish_at(mt.target, &err), ERR_PRECONDITION, process);
	ASSERT_FAILS(volumes_create_snapshot(fx.v, &snapshot, &(struct snapshot_info *){NULL}, &err),
		ERR_PRECONDITION, process);
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, process);
	end_guest();
	publish();
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, mt.target);
	unpublish();
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
}
END_TEST

START_TEST(entries_of_others_stay)
{
	CLEANUP(free_charp) char *other = entry_of(mt.other);
	CLEANUP(free_charp) char *ours = entry_of(mt.target);
	CLEANUP(free_charp) char *file = x_asprintf("%s/mountInfo.json", other);
	struct error *err = NULL;

	ck_assert_int_eq(mkdir(other, 0700), 0);
	touch(other, "mountInfo.json");
	publish();
	unpublish();
	ASSERT_FAILS(publish_at(mt.other, &err), ERR_PRECONDITION, "not of this driver");
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.other, &err));
	ck_assert_int_eq(access(file, F_OK), 0);
	fixture_restart();
	ck_assert_int_eq(access(file, F_OK), 0);
	/* what lies in ours stays, too, and keeps no pod from ending */
	publish();
	CLEANUP(free_charp) char *left = x_asprintf("%s/folder", ours);
	ck_assert_int_eq(mkdir(left, 0700), 0);
	unpublish();
	ck_assert_int_eq(access(left, F_OK), 0);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_ptr_null(r->direct_entry);
}
END_TEST

/* Its guests cannot be known then, so that nothing is done to the device. */
START_TEST(link_in_place_of_our_entry_keeps_no_pod_from_ending)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	CLEANUP(free_charp) char *elsewhere = fixture_path("elsewhere");
	CLEANUP(free_charp) char *file = fixture_path("elsewhere/mountInfo.json");
	struct error *err = NULL;

	publish();
	ck_assert_int_eq(rename(entry, elsewhere), 0);
	ck_assert_int_eq(symlink(elsewhere, entry), 0);
	unpublish();
	ck_assert_int_eq(access(file, F_OK), 0);
	ck_assert_uint_eq(mounts_count(mt.target), 0);
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, "symbolic link");
	ASSERT_FAILS(publish_at(mt.target, &err), ERR_PRECONDITION, "symbolic link");
	ck_assert_int_eq(unlink(entry), 0);
	publish();
	unpublish();
	assert_nothing_left();
}
END_TEST

/* An entry with content of another size, or without content, is compared with the expected one and never
 * taken over. */
START_TEST(entry_with_other_content_is_not_taken_for_ours)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	CLEANUP(free_charp) char *file = x_asprintf("%s/" DIRECT_MOUNT_INFO, entry);
	struct error *err = NULL;

	publish();
	ck_assert_int_eq(truncate(file, (off_t)MIB(64)), 0);
	ck_assert_int_lt(publish_at(mt.target, &err), 0);
	error_clear(&err);
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert_int_eq(truncate(file, 0), 0);
	ASSERT_FAILS(publish_at(mt.target, &err), ERR_PRECONDITION, "is gone");
	unpublish();
	assert_nothing_left();
}
END_TEST

/* As after a kill, or when a pod's mounts are gone after the node has started again. */
START_TEST(entry_whose_target_is_no_mount_goes_at_the_start)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	struct error *err = NULL;

	publish();
	touch(entry, SANDBOX);
	running = SANDBOX;
	fixture_restart();
	ck_assert_int_eq(access(entry, F_OK), 0);
	fixture_stop();
	ck_assert_int_eq(umount(mt.target), 0);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	ck_assert_uint_eq(n_entries(), 0);
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_PRECONDITION, SANDBOX);
	running = NULL;
	unpublish();
	assert_nothing_left();
}
END_TEST

START_TEST(what_cannot_be_recorded_is_unpublished)
{
	CLEANUP(free_charp) char *state = x_asprintf("state/%s.json", mt.volume->id);
	CLEANUP(free_charp) char *path = fixture_path(state);
	CLEANUP(fd_closep) int fd = -1;
	struct error *err = NULL;

	publish();
	fixture_stop();
	fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	ck_assert_uint_eq(mounts_count(mt.target), 0);
}
END_TEST

START_TEST(statistics_come_from_the_guest)
{
	CLEANUP(free_charp) char *path = device_path();
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	struct volume_stats is;
	struct error *err = NULL;

	ASSERT_FAILS(
		volumes_stats(fx.v, mt.volume->id, mt.target, &is, &err), ERR_NOT_FOUND, "not published");
	publish();
	ASSERT_FAILS(volumes_stats(fx.v, mt.volume->id, mt.target, &is, &err), ERR_UNAVAILABLE, "runtime");
	touch(entry, "0ther");
	touch(entry, SANDBOX);
	ASSERT_FAILS(volumes_stats(fx.v, mt.volume->id, mt.target, &is, &err), ERR_UNAVAILABLE, "runtime");
	running = SANDBOX;
	ASSERT_OK(volumes_stats(fx.v, mt.volume->id, mt.target, &is, &err));
	ck_assert_uint_eq(is.usage.total_bytes, 4711);
	ck_assert_str_eq(asked, path);
	guest_fails = ERR_DEADLINE;
	ASSERT_FAILS(volumes_stats(fx.v, mt.volume->id, mt.target, &is, &err), ERR_DEADLINE, "says no");
}
END_TEST

static uint64_t fs_bytes(void)
{
	CLEANUP(free_charp) char *path = device_path();
	struct fs_super super;
	struct error *err = NULL;

	ASSERT_OK(fs_read_super(fs_type, path, &super, &err));
	return super.size_bytes;
}

static int node_expand(const char *path, uint64_t bytes, struct error **err)
{
	const struct node_expand_request q = {.handle = mt.volume->id, .path = path, .required_bytes = bytes};
	uint64_t is_bytes;

	return volumes_node_expand(fx.v, &q, &is_bytes, err);
}

START_TEST(file_system_grows_in_the_guest_or_when_none_uses_it)
{
	CLEANUP(free_charp) char *entry = entry_of(mt.target);
	uint64_t had_bytes = fs_bytes();
	const struct expand_request q = {.handle = mt.volume->id, .required_bytes = 2 * had_bytes};
	struct expand_result grown;
	struct error *err = NULL;

	publish();
	touch(entry, SANDBOX);
	ASSERT_OK(volumes_expand(fx.v, &q, &grown, &err));
	ASSERT_FAILS(node_expand(mt.target, 0, &err), ERR_PRECONDITION, "no guest uses it");
	running = SANDBOX;
	ASSERT_OK(node_expand(mt.target, grown.size_bytes, &err));
	ck_assert_uint_eq(asked_bytes, grown.size_bytes);
	guest_fails = ERR_UNIMPLEMENTED;
	ASSERT_FAILS(node_expand(mt.target, 0, &err), ERR_PRECONDITION, "says no");
	ASSERT_FAILS(node_expand(mt.staging, 0, &err), ERR_PRECONDITION, "says no");
	guest_fails = ERR_DEADLINE;
	ASSERT_FAILS(node_expand(mt.target, 0, &err), ERR_DEADLINE, "says no");
	ASSERT_FAILS(node_expand(mt.other, 0, &err), ERR_NOT_FOUND, mt.other);
	unpublish();
	ASSERT_FAILS(node_expand(mt.staging, 0, &err), ERR_PRECONDITION, SANDBOX);
	ck_assert_uint_eq(fs_bytes(), had_bytes);
	running = NULL;
	if (_i == 1)
		ASSERT_OK(stage(&err));
	if (node_expand(mt.staging, 0, &err) < 0) {
		/* ext4 grows for processes with CAP_SYS_RESOURCE only */
		ck_assert_msg(strstr(err->msg, "SYS_RESOURCE"), "%s", err->msg);
		error_clear(&err);
		return;
	}
	ck_assert_uint_gt(fs_bytes(), had_bytes + had_bytes / 2);
	ck_assert_uint_eq(mounts_count(mt.staging), 0);
}
END_TEST

START_TEST(copies_are_direct_volumes_too)
{
	struct volume_request q = wanted("pvc-2", 0);
	CLEANUP(volume_info_freep) struct volume_info *clone = NULL;
	CLEANUP(strmap_done) struct strmap none = {0};
	struct error *err = NULL;

	q.source = mt.volume->id;
	q.parameters = &none;
	ASSERT_FAILS(volumes_create(fx.v, &q, &clone, &err), ERR_INVALID_ARGUMENT, "directVolume=true");
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &clone, &err));
	ck_assert_str_eq(strmap_get(&clone->context, "directVolume"), "true");
	struct use_request use = mounts_stage_request(fs_type);
	use.handle = clone->id;
	ASSERT_OK(volumes_stage(fx.v, &use, &err));
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("direct_offered", set_up_folder);

	if (!tcase)
		return SKIP_STATUS;
	fs_type = "ext4";
	tcase_add_test(tcase, kinds_that_cannot_be_direct_are_refused);
	tcase_add_test(tcase, inline_volume_cannot_be_direct);
	tcase_add_test(tcase, node_without_a_folder_offers_none);
	tcase = fixture_more_cases("direct", set_up);
	tcase_add_test(tcase, staging_formats_and_mounts_nothing);
	tcase_add_test(tcase, publishing_names_the_device_and_shows_nothing);
	tcase_add_test(tcase, one_pod_at_a_time);
	tcase_add_test(tcase, target_with_content_is_not_covered);
	tcase_add_test(tcase, target_that_is_too_long_is_refused);
	tcase_add_test(tcase, guest_that_outlives_its_pod_keeps_the_device);
	tcase_add_test(tcase, guests_end_with_the_node);
	tcase_add_test(tcase, folder_that_is_not_seen_any_more_keeps_the_device);
	tcase_add_loop_test(tcase, folder_that_ended_with_the_node_keeps_nothing, 0, 2);
	tcase_add_loop_test(tcase, boot_of_an_entry_is_recorded_later, 0, 2);
	tcase_add_test(tcase, guest_is_recorded_when_it_is_seen);
	tcase_add_test(tcase, process_that_has_the_device_open_keeps_it);
	tcase_add_test(tcase, entries_of_others_stay);
	tcase_add_test(tcase, link_in_place_of_our_entry_keeps_no_pod_from_ending);
	tcase_add_test(tcase, entry_with_other_content_is_not_taken_for_ours);
	tcase_add_test(tcase, entry_whose_target_is_no_mount_goes_at_the_start);
	tcase_add_test(tcase, what_cannot_be_recorded_is_unpublished);
	tcase_add_test(tcase, statistics_come_from_the_guest);
	tcase_add_loop_test(tcase, file_system_grows_in_the_guest_or_when_none_uses_it, 0, 2);
	tcase_add_test(tcase, copies_are_direct_volumes_too);
	tcase = fixture_more_cases("direct_xfs", set_up_xfs);
	tcase_add_test(tcase, staging_formats_and_mounts_nothing);
	tcase_add_loop_test(tcase, file_system_grows_in_the_guest_or_when_none_uses_it, 0, 2);
	tcase_add_test(tcase, copies_are_direct_volumes_too);
	return fixture_finish();
}
