/* SPDX-License-Identifier: Apache-2.0 */
/* DeleteVolume: what is in use stays, what is deleted is unreadable, and every step can be repeated. */
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "unit/volume/content.h"
#include "unit/volume/fixture.h"
#include "volume/id.h"

#define SIZE         MIB(16)
#define MKFS_TIME_MS 60000

static struct volume_info *create_with(const char *name, const char *key, const char *value)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request(name, SIZE);
	struct volume_info *info = NULL;
	struct error *err = NULL;

	strmap_set(&parameters, key, value);
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	return info;
}

static void assert_gone(void)
{
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
}

START_TEST(deleted_volume_is_gone_and_deleting_it_again_succeeds)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *other = fixture_create("pvc-2", SIZE);
	struct capacity capacity;
	struct error *err = NULL;

	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	ASSERT_OK(volumes_delete(fx.v, other->id, &err));
	assert_gone();
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &capacity));
	ck_assert_uint_eq(capacity.available_bytes, N_POOLS * REGION_BYTES);
	CLEANUP(volume_info_freep) struct volume_info *again = fixture_create("pvc-1", SIZE);
	ck_assert_str_eq(again->id, info->id);
}
END_TEST

START_TEST(handles_that_mean_no_volume_are_success)
{
	CLEANUP(free_charp) char *longest = x_asprintf("%0300d", 0);
	const char *const handles[] = {"unknown", "..", "/", "../../etc/passwd", "a b", longest,
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee.3eafcf75"};
	fixture_make("pvc-1", SIZE);
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(handles); i++)
		ASSERT_OK(volumes_delete(fx.v, handles[i], &err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
}
END_TEST

static void delete_meanwhile(void)
{
	char id[VOLUME_ID_MAX + 1];
	struct error *err = NULL;

	fx.faults.in_list = NULL;
	volume_id_mint("pvc-1", NODE_ID, id);
	ASSERT_FAILS(volumes_delete(fx.v, id, &err), ERR_ABORTED, id);
}

START_TEST(volume_that_is_about_to_be_made_is_not_unknown)
{
	const struct volume_request q = fixture_request("pvc-1", N_POOLS * REGION_BYTES);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	fx.faults.in_list = delete_meanwhile;
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_EXHAUSTED, "not enough space");
	ck_assert_ptr_null(fx.faults.in_list);
}
END_TEST

/* kubelet's handle of an inline volume is 68 bytes long. */
START_TEST(handle_that_is_no_id_is_a_name)
{
	static const char *const handle =
		"csi-0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create(handle, SIZE);
	CLEANUP(volume_info_freep) struct volume_info *found = NULL;
	fixture_make("pvc-1", SIZE);
	struct error *err = NULL;

	ASSERT_OK(volumes_get(fx.v, handle, &found, &err));
	ck_assert_str_eq(found->id, info->id);
	ASSERT_OK(volumes_delete(fx.v, handle, &err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ASSERT_OK(volumes_delete(fx.v, "pvc-1", &err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

/* The device outlives its erasure when the last step fails. */
START_TEST(all_content_is_erased)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	content_fill(d, 'x');
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_INTERNAL, info->id);
	ck_assert_uint_eq(content_count(d, '\0'), SIZE / CONTENT_BLOCK);
}
END_TEST

START_TEST(without_eraseafter_both_ends_are_erased)
{
	CLEANUP(volume_info_freep) struct volume_info *info = create_with("pvc-1", "eraseafter", "false");
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	content_fill(d, 'x');
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_INTERNAL, info->id);
	ck_assert_uint_eq(content_count(d, '\0'), MIB(2) / CONTENT_BLOCK);
	ck_assert_uint_eq(content_count(d, 'x'), (SIZE - MIB(2)) / CONTENT_BLOCK);
}
END_TEST

static void leave_content(const struct device *d)
{
	content_fill(d, 'x');
}

START_TEST(new_volume_shows_nothing_of_a_former_owner_at_its_ends)
{
	fx.faults.made = leave_content;
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);

	ck_assert_uint_eq(content_count(d, '\0'), MIB(2) / CONTENT_BLOCK);
}
END_TEST

START_TEST(failed_deletion_hides_the_volume_and_can_be_repeated)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *found = NULL;
	CLEANUP(free_charp) char *file = x_asprintf("%s.erasing", info->id);
	const struct volume_request q = fixture_request("pvc-1", SIZE);
	struct capacity capacity;
	struct error *err = NULL;

	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_INTERNAL, info->id);
	ck_assert(fixture_exists(file));
	ck_assert_uint_eq(fixture_n_files(), 1);
	ASSERT_FAILS(volumes_get(fx.v, info->id, &found, &err), ERR_NOT_FOUND, info->id);
	ASSERT_FAILS(volumes_create(fx.v, &q, &found, &err), ERR_ABORTED, "erased");
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &capacity));
	ck_assert_uint_eq(capacity.available_bytes, N_POOLS * REGION_BYTES - SIZE);
	fx.faults.destroy = 0;
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	assert_gone();
}
END_TEST

static void assert_refused(const struct volume_info *info, const struct device *d)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", info->id);
	struct error *err = NULL;

	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_PRECONDITION, "in use");
	ck_assert(fixture_exists(file));
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fx.n_destroys, 0);
	ck_assert_uint_eq(content_count(d, 'x') + content_count(d, '\0'), SIZE / CONTENT_BLOCK);
}

START_TEST(volume_that_is_open_exclusively_is_not_touched)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;
	int fd = -1;

	content_fill(d, 'x');
	ASSERT_OK(blockdev_open_exclusive(d->path, &fd, &err));
	assert_refused(info, d);
	ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
	close(fd);
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	assert_gone();
}
END_TEST

/* The path that was listed may belong to another device by now. */
START_TEST(volume_whose_device_has_moved_is_not_touched)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	content_fill(d, 'x');
	fx.faults.moved_path = "/dev/pmem9";
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_UNAVAILABLE, "no longer /dev/");
	ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
	fx.faults.moved_path = NULL;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	assert_gone();
}
END_TEST

START_TEST(volume_whose_node_is_bound_somewhere_is_not_touched)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	CLEANUP(free_charp) char *target = fixture_path("node");
	struct error *err = NULL;

	content_fill(d, 'x');
	close(open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	ck_assert_int_eq(mount(d->path, target, NULL, MS_BIND, NULL), 0);
	assert_refused(info, d);
	ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
	ck_assert_int_eq(umount(target), 0);
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	assert_gone();
}
END_TEST

/* A volume that the mount table shows as mounted is not deleted, although the driver did not mount it and its
 * record does not say so. */
START_TEST(mounted_volume_is_not_touched)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	CLEANUP(free_charp) char *target = fixture_path("kubelet");
	CLEANUP(free_charp) char *file = x_asprintf("%s/data", target);
	struct error *err = NULL;
	char back[8] = "";

	ASSERT_OK(fs_make("ext4", d->path, NULL, MKFS_TIME_MS, &err));
	ck_assert_int_eq(mount(d->path, target, "ext4", 0, NULL), 0);
	int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, "content", 7), 7);
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_PRECONDITION, target);
	ck_assert_int_eq(fsync(fd), 0);
	ck_assert_int_eq(pread(fd, back, 7, 0), 7);
	ck_assert_str_eq(back, "content");
	close(fd);
	ck_assert_int_eq(umount(target), 0);
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	assert_gone();
}
END_TEST

START_TEST(volume_that_was_never_staged_is_deleted_on_that_condition)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	struct error *err = NULL;

	ASSERT_OK(volumes_delete_if_never_staged(fx.v, info->id, &err));
	assert_gone();
	ASSERT_OK(volumes_delete_if_never_staged(fx.v, info->id, &err));
	ASSERT_OK(volumes_delete_if_never_staged(fx.v, "unknown", &err));
}
END_TEST

/* That is decided before its device is looked for. */
START_TEST(volume_that_may_hold_data_is_not_deleted_if_never_staged)
{
	static const char *const handles[] = {"go", "adopted", "used", "damaged"};
	struct error *err = NULL;

	fixture_write("go.json", "{\"id\":\"go\",\"size\":16777216,\"parameters\":{\"name\":\"n\"}}\n");
	fixture_write("adopted.json",
		"{\"id\":\"adopted\",\"size\":1,\"parameters\":{},\"identity\":\"x\",\"adopted\":true}\n");
	fixture_write("used.json",
		"{\"id\":\"used\",\"size\":1,\"parameters\":{},\"identity\":\"x\",\"stagedEver\":true}\n");
	fixture_write("damaged.json", "{");
	fixture_restart();
	for (size_t i = 0; i < ARRAY_SIZE(handles); i++)
		ASSERT_FAILS(
			volumes_delete_if_never_staged(fx.v, handles[i], &err), ERR_PRECONDITION, handles[i]);
	ck_assert_uint_eq(fixture_n_files(), ARRAY_SIZE(handles));
}
END_TEST

START_TEST(missing_volume_is_unavailable_until_its_pool_proves_it_gone)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	fx.faults.absent_pool = d->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_UNAVAILABLE, "missing");
	fx.faults.absent_pool = NULL;
	fx.faults.incomplete_pool = d->pool;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_UNAVAILABLE, "missing");
	fx.faults.list = ERR_DEADLINE;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_UNAVAILABLE, "list");
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);

	fx.faults = (struct faults){0};
	ASSERT_OK(device_destroy(fx.fake, d, -1, &err));
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	assert_gone();
}
END_TEST

START_TEST(device_without_state_is_refused_and_left_alone)
{
	CLEANUP(device_freep) struct device *d = fixture_add_device(MINTED_ID("pvc-12"), 0, "theirs", SIZE);
	struct error *err = NULL;

	content_fill(d, 'x');
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(volumes_delete(fx.v, MINTED_ID("pvc-12"), &err), ERR_PRECONDITION, "check -repair");
	ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
}
END_TEST

/* LVM takes names that are no IDs of ours. */
START_TEST(handle_in_no_form_of_ours_is_deleted_already_whatever_bears_that_name)
{
	static const char *const names[] = {"_stranger", "database", "0f9a4c1e-5c1b-4c5e-8a57-3d1f6f0d9a11"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CLEANUP(device_freep) struct device *d = fixture_add_device(names[i], 0, "theirs", SIZE);

		content_fill(d, 'x');
		ASSERT_OK(volumes_refresh(fx.v, &err));
		ASSERT_OK(volumes_delete(fx.v, names[i], &err));
		ASSERT_OK(volumes_delete_snapshot(fx.v, names[i], &err));
		ASSERT_OK(volumes_delete_if_never_staged(fx.v, names[i], &err));
		ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
		ck_assert_uint_eq(fixture_n_devices(), i + 1);
	}
	ck_assert_uint_eq(fx.n_destroys, 0);
}
END_TEST

/* Earlier versions wrote such a record when an administrator asked for it. */
START_TEST(foreign_device_that_was_adopted_is_not_erased)
{
	CLEANUP(device_freep) struct device *d = fixture_add_device("database", 0, "theirs", SIZE);
	struct error *err = NULL;

	content_fill(d, 'x');
	fixture_write("database.json",
		"{\"id\":\"database\",\"size\":16777216,\"parameters\":{},\"identity\":\"theirs\","
		"\"adopted\":true}\n");
	fixture_restart();
	ASSERT_OK(volumes_start(fx.v, &err));
	ASSERT_FAILS(volumes_delete(fx.v, "database", &err), ERR_PRECONDITION, "check -forget database");
	ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
	ck_assert(fixture_exists("database.json"));
}
END_TEST

START_TEST(device_of_another_identity_is_left_alone)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *ours = fixture_device(info->id);
	struct error *err = NULL;

	ASSERT_OK(device_destroy(fx.fake, ours, -1, &err));
	CLEANUP(device_freep) struct device *theirs = fixture_add_device(info->id, 0, "theirs", SIZE);
	content_fill(theirs, 'x');
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_PRECONDITION, "check -repair");
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(content_count(theirs, 'x'), SIZE / CONTENT_BLOCK);
}
END_TEST

/* The other's identity proves that the volume's own device is gone. */
START_TEST(deletion_ends_when_another_device_took_the_place_of_the_own)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *own = fixture_device(info->id);
	struct error *err = NULL;

	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_INTERNAL, info->id);
	fx.faults.destroy = 0;
	ASSERT_OK(device_destroy(fx.fake, own, -1, &err));
	fixture_make_device(info->id, str_eq(own->pool, fx.pools[1]), "theirs", SIZE);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ck_assert_uint_eq(fixture_n_files(), 0);
	/* what has no state now is never removed */
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_PRECONDITION, "exists, but has no state file");
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fx.n_destroys, 1);
}
END_TEST

START_TEST(volume_of_the_go_driver_is_erased_and_deleted)
{
	CLEANUP(device_freep) struct device *d = fixture_add_device("pvc-go", 0, "", SIZE);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	struct error *err = NULL;

	content_fill(d, 'x');
	fixture_write(
		"pvc-go.json", "{\"id\":\"pvc-go\",\"size\":16777216,\"parameters\":{\"name\":\"n\"}}\n");
	fx.faults.absent_pool = d->pool;
	fixture_restart();
	fx.faults.absent_pool = NULL;
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, "pvc-go", &err), ERR_INTERNAL, "pvc-go");
	ck_assert_uint_eq(content_count(d, '\0'), SIZE / CONTENT_BLOCK);
	CLEANUP(free_charp) char *text = fixture_read("pvc-go.erasing");
	ASSERT_OK(state_parse(span_of(text), &r, &err));
	ck_assert_str_eq(r->pool, d->pool);
	fx.faults.destroy = 0;
	ASSERT_OK(volumes_delete(fx.v, "pvc-go", &err));
	assert_gone();
}
END_TEST

START_TEST(parameters_that_cannot_be_understood_do_not_keep_content)
{
	CLEANUP(device_freep) struct device *d = fixture_add_device("odd", 0, "", SIZE);
	struct error *err = NULL;

	content_fill(d, 'x');
	fixture_write(
		"odd.json", "{\"id\":\"odd\",\"size\":16777216,\"parameters\":{\"eraseafter\":\"never\"}}\n");
	fixture_restart();
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, "odd", &err), ERR_INTERNAL, "odd");
	ck_assert_uint_eq(content_count(d, '\0'), SIZE / CONTENT_BLOCK);
}
END_TEST

FIXTURE_MAIN("volumes_delete", fixture_folder, deleted_volume_is_gone_and_deleting_it_again_succeeds,
	handles_that_mean_no_volume_are_success, volume_that_is_about_to_be_made_is_not_unknown,
	handle_that_is_no_id_is_a_name, all_content_is_erased, without_eraseafter_both_ends_are_erased,
	new_volume_shows_nothing_of_a_former_owner_at_its_ends,
	failed_deletion_hides_the_volume_and_can_be_repeated, volume_that_is_open_exclusively_is_not_touched,
	volume_whose_device_has_moved_is_not_touched, volume_whose_node_is_bound_somewhere_is_not_touched,
	mounted_volume_is_not_touched, volume_that_was_never_staged_is_deleted_on_that_condition,
	volume_that_may_hold_data_is_not_deleted_if_never_staged,
	missing_volume_is_unavailable_until_its_pool_proves_it_gone,
	device_without_state_is_refused_and_left_alone,
	handle_in_no_form_of_ours_is_deleted_already_whatever_bears_that_name,
	foreign_device_that_was_adopted_is_not_erased, device_of_another_identity_is_left_alone,
	deletion_ends_when_another_device_took_the_place_of_the_own,
	volume_of_the_go_driver_is_erased_and_deleted,
	parameters_that_cannot_be_understood_do_not_keep_content)
