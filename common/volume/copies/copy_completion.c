/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/copies/copy_completion.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/copy/data_copy.h"
#include "os/copy/fs_uuid.h"
#include "os/fs.h"
#include "volume/volumes_private.h"

/* A power cut in the middle of the last step may leave some cache lines of the mark and some of the content.
 */
#define LINE_BYTES 64

struct head {
	_Alignas(DATA_COPY_HEAD_BYTES) char bytes[DATA_COPY_HEAD_BYTES];
};

/* No tenant knows the identity before the mark is gone, so that none can have written this. */
static void format_line(const char *identity, char out[static LINE_BYTES + 1])
{
	snprintf(out, LINE_BYTES + 1, "pmem-csi: unfinished copy %-37.37s\n", identity);
}

static int write_head(int fd, const void *bytes, struct error **err)
{
	struct head head;

	memcpy(head.bytes, bytes, sizeof(head.bytes));
	ssize_t n = STEP("copy-head", pwrite(fd, head.bytes, sizeof(head.bytes), 0));
	if (n != (ssize_t)sizeof(head.bytes))
		return err_set_errno(
			err, ERR_INTERNAL, n < 0 ? errno : ENOSPC, "write the beginning of the copy");
	if (STEP("copy-head-sync", fdatasync(fd)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "flush the beginning of the copy");
	return 0;
}

int copy_completion_mark(const char *device, const char *identity, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	char line[LINE_BYTES + 1];
	struct head head;

	format_line(identity, line);
	for (size_t at = 0; at < sizeof(head.bytes); at += LINE_BYTES)
		memcpy(head.bytes + at, line, LINE_BYTES);
	if (blockdev_open_exclusive(device, &fd, err) < 0)
		return -1;
	return write_head(fd, head.bytes, err);
}

int copy_completion_is_marked(const char *device, const char *identity, bool *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = open(device, O_RDONLY | O_CLOEXEC);
	char line[LINE_BYTES + 1];
	struct head head;

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", device);
	if (pread(fd, head.bytes, sizeof(head.bytes), 0) != (ssize_t)sizeof(head.bytes))
		return err_set_errno(err, ERR_INTERNAL, errno ? errno : EIO, "read %s", device);
	format_line(identity, line);
	*ret = false;
	for (size_t at = 0; at < sizeof(head.bytes) && !*ret; at += LINE_BYTES)
		*ret = memcmp(head.bytes + at, line, LINE_BYTES) == 0;
	return 0;
}

/* Between the creation of the device and its mark. */
static bool is_just_made(const struct volume_record *r)
{
	return r->copy_shows && !r->copy_marked;
}

/* No pod sees the device of a volume with a file system, and can have written anything else to it. Guests can
 * do with theirs what they like, and earlier versions recorded no UUID beforehand. */
static bool only_fs_counts(const struct volume_record *r)
{
	return r->fs_uuid && (!r->direct || is_just_made(r));
}

/* There is neither a mark nor a file system. */
static int look_at_bytes(
	const struct volume_record *r, const char *device, enum copy_completion *ret, struct error **err)
{
	bool zero;

	*ret = COPY_UNFINISHED;
	if (is_just_made(r))
		return 0;
	if (blockdev_starts_zero(device, SIZE_MAX, &zero, err) < 0)
		return -1;
	*ret = zero ? COPY_UNFINISHED : COPY_UNKNOWN;
	return 0;
}

/* The copy of an empty volume is as empty, and the last step alone removes a mark. */
static int look_at_nothing(
	const struct volume_record *r, const char *device, enum copy_completion *ret, struct error **err)
{
	if (!only_fs_counts(r))
		return look_at_bytes(r, device, ret, err);
	*ret = r->copy_marked && !r->ever_staged ? COPY_FINISHED : COPY_UNFINISHED;
	return 0;
}

/* @found: type of a file system that is on the device */
static int look_at_uuid(const struct volume_record *r, const char *source_uuid, const char *device,
	const char *found, enum copy_completion *ret, struct error **err)
{
	struct fs_super super;

	if (fs_read_super(found, device, &super, err) < 0)
		return -1;
	if (str_eq(super.uuid, r->fs_uuid))
		*ret = COPY_FINISHED;
	else
		*ret = only_fs_counts(r) || str_eq(super.uuid, source_uuid) ? COPY_UNFINISHED : COPY_UNKNOWN;
	return 0;
}

static int look_at_fs(const struct volume_record *r, const char *source_uuid, const char *device,
	enum copy_completion *ret, struct error **err)
{
	CLEANUP(error_freep) struct error *failure = NULL;
	CLEANUP(free_charp) char *found = NULL;
	int rc = volumes_recognise(r, device, &found, &failure);

	if (rc < 0 && failure->code != ERR_PRECONDITION) {
		*err = TAKE_PTR(failure);
		return -1;
	}
	if (rc == 0 && fs_known(found))
		return look_at_uuid(r, source_uuid, device, found, ret, err);
	if (rc == 0 && !*found)
		return look_at_nothing(r, device, ret, err);
	*ret = only_fs_counts(r) ? COPY_UNFINISHED : COPY_UNKNOWN;
	return 0;
}

int copy_completion_look(const struct volume_record *r, const char *source_uuid, const char *device,
	enum copy_completion *ret, struct error **err)
{
	bool marked;

	if (copy_completion_is_marked(device, r->identity, &marked, err) < 0)
		return -1;
	*ret = marked ? COPY_UNFINISHED : COPY_FINISHED;
	if (marked)
		return 0;
	if (r->fs_uuid || r->fs_type || r->direct)
		return look_at_fs(r, source_uuid, device, ret, err);
	/* the last step alone removes a mark */
	return r->copy_marked ? 0 : look_at_bytes(r, device, ret, err);
}

int copy_completion_finish(struct volumes *v, const struct copy_last_step *s, struct error **err)
{
	struct volume_record *r = s->r;

	if (records_save(v->records, r, err) < 0)
		return -1;
	STEP_POINT("copy-last-step");
	if (write_head(*s->to_fd, s->head, err) < 0)
		return -1;
	/* the tools that set the UUID claim the device */
	fd_closep(s->to_fd);
	if (!s->fs_type)
		return 0;
	volume_lock_set_step(v->locks, r->id, "setting the UUID of its file system");
	return fs_set_uuid(s->fs_type, s->to->path, r->fs_uuid, v->mkfs_timeout_ms, err);
}
