/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is full of the data of earlier volumes: no volume shows any of them to a pod or a guest that
 * reads its device. */
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/content.h"
#include "unit/volume/mounts.h"
#include "volume/attachment/kata_image.h"

#define SIZE   MIB(64)
#define LARGER MIB(96)
#define OLD    'k'

static struct strmap direct;
static struct strmap kata;
static const struct strmap none;
static struct error *err;

static void fill_made(const struct device *d)
{
	content_fill(d, OLD);
}

static void done(void)
{
	strmap_done(&direct);
	strmap_done(&kata);
	volume_info_free(mt.volume);
	free(mt.staging);
	free(mt.target);
	mt = (struct mounts){0};
}

static void set_up(void)
{
	CLEANUP(free_charp) char *folder = NULL;

	fx.direct_volumes_dir = NULL;
	fixture_folder();
	fx.done = done;
	folder = fixture_path("direct/volumes");
	fx.direct_volumes_dir = folder;
	fixture_restart();
	fx.direct_volumes_dir = NULL;
	fx.faults.made = fill_made;
	strmap_set(&direct, "directVolume", "true");
	strmap_set(&kata, "kataContainers", "true");
	mt.staging = fixture_path("kubelet/staging");
	mt.target = fixture_path("kubelet/target");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
}

static struct volume_request request(const char *name, const struct strmap *parameters)
{
	struct volume_request q = fixture_request(name, SIZE);

	q.parameters = parameters;
	return q;
}

static void create(const struct volume_request *q)
{
	volume_info_free(TAKE_PTR(mt.volume));
	ASSERT_OK(volumes_create(fx.v, q, &mt.volume, &err));
}

static void stage(void)
{
	const struct use_request q = mounts_stage_request("ext4");

	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}

static size_t count_old(const char *id)
{
	CLEANUP(device_freep) struct device *d = fixture_device(id);

	return content_count(d, OLD);
}

static void assert_zero(const char *id)
{
	CLEANUP(device_freep) struct device *d = fixture_device(id);

	ck_assert_uint_eq(content_count(d, '\0'), d->size_bytes / CONTENT_BLOCK);
}

START_TEST(new_devices_that_are_seen_raw_are_zero)
{
	struct volume_request block = request("block", &none);
	const struct volume_request guest = request("guest", &direct);
	const struct volume_request files = request("files", &none);

	block.fs_type = NULL;
	block.block = true;
	create(&block);
	assert_zero(mt.volume->id);
	create(&guest);
	assert_zero(mt.volume->id);
	ck_assert(!mt.volume->may_be_block && !mt.volume->is_block_only);
	/* of these the file system is seen only */
	create(&files);
	ck_assert_uint_gt(count_old(mt.volume->id), 0);
}
END_TEST

START_TEST(guest_sees_nothing_old_beside_its_file_system)
{
	const struct volume_request q = request("guest", &direct);

	create(&q);
	stage();
	ck_assert_uint_eq(count_old(mt.volume->id), 0);
}
END_TEST

START_TEST(copies_that_are_larger_than_their_source_show_nothing_old)
{
	struct volume_request q = request("guest", &direct);
	CLEANUP(snapshot_info_freep) struct snapshot_info *taken = NULL;
	CLEANUP(free_charp) char *source = NULL;

	create(&q);
	stage();
	source = x_strdup(mt.volume->id);
	ASSERT_OK(volumes_unstage(fx.v, source, mt.staging, &err));
	q.name = "clone";
	q.source = source;
	q.required_bytes = LARGER;
	create(&q);
	ck_assert_uint_eq(count_old(mt.volume->id), 0);
	CLEANUP(volume_record_freep) struct volume_record *clone = mounts_record();
	ck_assert(clone->block_clean);
	const struct snapshot_request s = {.name = "snapshot", .source = source, .parameters = &none};
	ASSERT_OK(volumes_create_snapshot(fx.v, &s, &taken, &err));
	ck_assert_uint_eq(count_old(taken->id), 0);
	q.name = "restored";
	q.source = taken->id;
	q.source_is_snapshot = true;
	create(&q);
	ck_assert_uint_eq(count_old(mt.volume->id), 0);
}
END_TEST

START_TEST(image_for_a_guest_shows_nothing_old)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	CLEANUP(free_charp) char *image = x_asprintf("%s/" KATA_IMAGE_NAME, mt.staging);
	const struct volume_request q = request("image", &kata);
	char block[CONTENT_BLOCK];
	char old[CONTENT_BLOCK];

	/* as with mountPropagation: Bidirectional */
	ck_assert_int_eq(mount(state, state, NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(mount(NULL, state, NULL, MS_SHARED, NULL), 0);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	create(&q);
	stage();
	const struct use_request p = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);
	ASSERT_OK(volumes_publish(fx.v, &p, &err));
	ck_assert_uint_gt(count_old(mt.volume->id), 0);
	CLEANUP(fd_closep) int fd = open(image, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	memset(old, OLD, sizeof(old));
	for (off_t at = 0; pread(fd, block, sizeof(block), at) == (ssize_t)sizeof(block); at += sizeof(block))
		ck_assert(memcmp(block, old, sizeof(block)) != 0);
	close(TAKE_FD(fd));
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}
END_TEST

static void assert_growth(const struct volume_request *q, bool is_zeroed)
{
	struct expand_result result;

	create(q);
	const struct expand_request x = {.handle = mt.volume->id, .required_bytes = LARGER};
	ASSERT_OK(volumes_expand(fx.v, &x, &result, &err));
	ck_assert(fx.growth_is_zeroed == is_zeroed);
}

START_TEST(what_a_device_that_is_seen_raw_gains_is_zeroed)
{
	struct volume_request block = request("block", &none);
	const struct volume_request guest = request("guest", &direct);
	const struct volume_request files = request("files", &none);

	block.fs_type = NULL;
	block.block = true;
	assert_growth(&block, /* is_zeroed= */ true);
	assert_growth(&guest, /* is_zeroed= */ true);
	assert_growth(&files, /* is_zeroed= */ false);
}
END_TEST

static void fill_and_stop(const struct device *d)
{
	content_fill(d, OLD);
	volumes_stop(fx.v);
}

START_TEST(zeroing_that_was_cut_off_is_done_again)
{
	const struct volume_request q = request("guest", &direct);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;

	fx.faults.made = fill_and_stop;
	/* as a crash, it leaves the device and its record */
	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_create(fx.v, &q, &info, &err), ERR_UNAVAILABLE, "stopping");
	ck_assert_uint_eq(fixture_n_devices(), 1);
	fx.faults = (struct faults){.made = fill_made};
	CLEANUP(free_charp) char *folder = fixture_path("direct/volumes");
	fx.direct_volumes_dir = folder;
	fixture_restart();
	fx.direct_volumes_dir = NULL;
	create(&q);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	assert_zero(mt.volume->id);
}
END_TEST

/* An earlier version zeroed the ends only. */
START_TEST(direct_volume_of_an_earlier_version_is_zeroed_when_it_gets_its_file_system)
{
	static const char clean[] = ",\"blockClean\":true";
	const struct volume_request q = request("guest", &direct);

	create(&q);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	char *mark = strstr(text, clean);
	ck_assert_ptr_nonnull(mark);
	memmove(mark, mark + strlen(clean), strlen(mark + strlen(clean)) + 1);
	fixture_write(file, text);
	fixture_restart();
	CLEANUP(device_freep) struct device *d = fixture_device(mt.volume->id);
	CLEANUP(fd_closep) int fd = open(d->path, O_WRONLY | O_CLOEXEC);
	char block[CONTENT_BLOCK];
	memset(block, OLD, sizeof(block));
	ck_assert_int_eq(pwrite(fd, block, sizeof(block), MIB(32)), sizeof(block));
	ck_assert_int_eq(fsync(fd), 0);
	close(TAKE_FD(fd));
	stage();
	ck_assert_uint_eq(content_count(d, OLD), 0);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(r->block_clean);
}
END_TEST

FIXTURE_MAIN("volumes_raw", set_up, new_devices_that_are_seen_raw_are_zero,
	guest_sees_nothing_old_beside_its_file_system,
	copies_that_are_larger_than_their_source_show_nothing_old, image_for_a_guest_shows_nothing_old,
	what_a_device_that_is_seen_raw_gains_is_zeroed, zeroing_that_was_cut_off_is_done_again,
	direct_volume_of_an_earlier_version_is_zeroed_when_it_gets_its_file_system)
