/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/volume/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

struct mounts mt;

static const struct strmap no_context;
static struct mount_table *table;

static void done(void)
{
	volume_info_free(mt.volume);
	device_free(mt.device);
	free(mt.staging);
	free(mt.target);
	free(mt.other);
	mount_table_free(table);
}

static void set_up(const struct volume_request *q)
{
	struct error *err = NULL;

	fixture_folder();
	fx.done = done;
	ASSERT_OK(volumes_create(fx.v, q, &mt.volume, &err));
	mt.device = fixture_device(mt.volume->id);
	mt.staging = fixture_path("kubelet/staging");
	mt.target = fixture_path("kubelet/target");
	mt.other = fixture_path("kubelet/other");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
}

void mounts_set_up(uint64_t size_bytes)
{
	const struct volume_request q = fixture_request("pvc-1", size_bytes);

	set_up(&q);
}

void mounts_set_up_block(uint64_t size_bytes)
{
	struct volume_request q = fixture_request("pvc-1", size_bytes);

	q.fs_type = NULL;
	q.block = true;
	set_up(&q);
}

struct use_request mounts_stage_request(const char *fs_type)
{
	return (struct use_request){.handle = mt.volume->id,
		.staging_path = mt.staging,
		.fs_type = fs_type,
		.context = &no_context};
}

struct use_request mounts_publish_request(const char *target, enum access_mode mode)
{
	return (struct use_request){.handle = mt.volume->id,
		.staging_path = mt.staging,
		.target_path = target,
		.fs_type = "ext4",
		.access_mode = mode,
		.context = &no_context};
}

static void read_table(void)
{
	struct error *err = NULL;

	mount_table_free(TAKE_PTR(table));
	ASSERT_OK(mount_table_read(&table, &err));
}

size_t mounts_count(const char *path)
{
	size_t n = 0;

	read_table();
	for (size_t i = 0; i < table->n; i++)
		n += str_eq(table->entries[i].target, path);
	return n;
}

const struct mount_entry *mounts_top(const char *path)
{
	read_table();
	const struct mount_entry *top = mount_table_at(table, path);
	ck_assert_ptr_nonnull(top);
	return top;
}

struct volume_record *mounts_record(void)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct volume_record *r = NULL;
	struct error *err = NULL;

	ASSERT_OK(state_parse(span_of(text), &r, &err));
	return r;
}

bool mounts_has_target(const char *path)
{
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();

	return strv_contains(r->targets, path);
}

int mounts_write(const char *folder)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/data", folder);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	return fd < 0 ? errno : 0;
}

bool mounts_has_file(const char *folder)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/data", folder);

	return access(path, F_OK) == 0;
}

void mounts_damage(uint64_t offset_bytes, uint64_t length_bytes)
{
	CLEANUP(free_charp) char *path = fixture_path("fake/badblocks");
	uint64_t start = str_eq(mt.device->pool, fx.pools[0]) ? 0 : REGION_BYTES;
	FILE *list = fopen(path, "ae");

	ck_assert_ptr_nonnull(list);
	fprintf(list, "%ju %ju\n", (uintmax_t)(start + offset_bytes) / 512, (uintmax_t)length_bytes / 512);
	ck_assert_int_eq(fclose(list), 0);
}
