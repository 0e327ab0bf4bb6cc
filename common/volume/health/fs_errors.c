/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/health/fs_errors.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"

#define ATTRIBUTE_MAX_BYTES 128

/* The kernel's name of a device, such as dm-3, under which ext4 has a folder. Return: caller frees; NULL: the
 * device has gone. */
static char *kernel_name(dev_t dev)
{
	CLEANUP(free_charp) char *link = x_asprintf("/sys/dev/block/%u:%u", major(dev), minor(dev));
	char target[PATH_MAX];
	ssize_t n = readlink(link, target, sizeof(target) - 1);

	if (n < 0)
		return NULL;
	target[n] = '\0';
	const char *slash = strrchr(target, '/');
	return x_strdup(slash ? slash + 1 : target);
}

int fs_has_errors(const struct mount_entry *e, bool *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(ATTRIBUTE_MAX_BYTES);
	CLEANUP(free_charp) char *name = str_eq(e->fstype, "ext4") ? kernel_name(e->dev) : NULL;
	CLEANUP(free_charp) char *path = NULL;
	CLEANUP(free_charp) char *number = NULL;
	uint64_t n;

	*ret = false;
	if (!name)
		return 0;
	path = x_asprintf("/sys/fs/ext4/%s/errors_count", name);
	if (file_read(AT_FDCWD, path, &text, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		/* unmounted since */
		error_clear(err);
		return 0;
	}
	number = x_strndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
	if (parse_u64(number, &n, err) < 0) {
		err_recode(err, ERR_INTERNAL);
		return err_wrap(err, "%s", path);
	}
	*ret = n > 0;
	return 0;
}

/* The list of options of the superblock, whatever those of the mount are. */
static bool super_has(const struct mount_entry *e, const char *option)
{
	size_t len = strlen(option);

	for (const char *at = e->fs_options; at && *at;) {
		size_t n = strcspn(at, ",");

		if (n == len && memcmp(at, option, len) == 0)
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

bool fs_turned_readonly(const struct mount_entry *e)
{
	return !mount_entry_is_readonly(e) && (super_has(e, "ro") || super_has(e, "emergency_ro"));
}

bool fs_is_shut_down(const struct mount_entry *e)
{
	return super_has(e, "shutdown");
}
