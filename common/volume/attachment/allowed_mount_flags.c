/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/allowed_mount_flags.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "volume/attachment/mount_flags.h"

#define SHOWN_MAX_BYTES 64

/* atime and norelatime only take something back: a bind mount has what was staged */
static const char *const generic[] = {
	"sync", "async", "dirsync", "lazytime", "nolazytime", "defaults", "atime", "norelatime"};

/* Mount options of the file systems that affect only the volume itself. A name that ends with "=" takes a
 * number, also with a suffix. */
static const char *const ext4_only[] = {"dax", "dax=always", "dax=inode", "dax=never", "discard", "nodiscard",
	"errors=remount-ro", "errors=continue", "acl", "noacl", "user_xattr", "nouser_xattr",
	"journal_checksum", "nojournal_checksum", "delalloc", "nodelalloc", "barrier", "nobarrier",
	"barrier=", "commit=", "data=ordered", "data=journal", "data=writeback", "init_itable",
	"init_itable=", "noinit_itable", "auto_da_alloc", "noauto_da_alloc",
	"auto_da_alloc=", "block_validity", "noblock_validity", "dioread_lock", "dioread_nolock",
	"nodioread_nolock", "grpid", "nogrpid", "bsdgroups", "sysvgroups", "i_version",
	"inode_readahead_blks=", "journal_ioprio=", "max_batch_time=", "min_batch_time=", "max_dir_size_kb=",
	"mb_optimize_scan=", "nombcache", "no_mbcache", "stripe=", "prjquota", "noquota"};
static const char *const xfs_only[] = {"dax", "dax=always", "dax=inode", "dax=never", "discard", "nodiscard",
	"inode32", "inode64", "largeio", "nolargeio", "noquota", "attr2", "noattr2", "ikeep", "noikeep",
	"allocsize=", "logbufs=", "logbsize=", "sunit=", "swidth=", "noalign", "swalloc", "wsync",
	"filestreams", "grpid", "nogrpid", "bsdgroups", "sysvgroups", "uquota", "usrquota", "uqnoenforce",
	"gquota", "grpquota", "gqnoenforce", "pquota", "prjquota", "pqnoenforce"};

/* Digits, then at most one letter, as in "64k". */
static bool is_number(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n > 0 && (!s[n] || (strchr("kKmMgG", s[n]) && !s[n + 1]));
}

static bool is_in(const char *flag, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool takes_number = str_ends(list[i], "=");

		if (!takes_number && str_eq(flag, list[i]))
			return true;
		if (takes_number && str_starts(flag, list[i]) && is_number(flag + strlen(list[i])))
			return true;
	}
	return false;
}

static bool is_allowed(const char *flag, const char *fs_type)
{
	if (mount_flag_is_per_mount(flag) || is_in(flag, generic, ARRAY_SIZE(generic)))
		return true;
	if (!str_eq(fs_type, "ext4") && is_in(flag, xfs_only, ARRAY_SIZE(xfs_only)))
		return true;
	return !str_eq(fs_type, "xfs") && is_in(flag, ext4_only, ARRAY_SIZE(ext4_only));
}

/* CSI: mount_flags may hold secrets, and errors are logged. So only the name of a refused option is shown,
 * without its value. */
static int refuse(const char *flag, const char *fs_type, struct error **err)
{
	size_t n = strcspn(flag, "=");

	return err_set(err, ERR_INVALID_ARGUMENT, "mount flag \"%.*s%s\" is not allowed for %s",
		(int)(n < SHOWN_MAX_BYTES ? n : SHOWN_MAX_BYTES), flag, flag[n] ? "=..." : "",
		fs_type ? fs_type : "a file system of this driver");
}

int allowed_mount_flags_check(char *const *flags, const char *fs_type, struct error **err)
{
	for (size_t i = 0; flags && flags[i]; i++) {
		if (!is_allowed(flags[i], fs_type))
			return refuse(flags[i], fs_type, err);
	}
	return 0;
}

/* Up to the "=". mount(8), mount_namespaces(7); fs/ext4/super.c and fs/xfs/xfs_super.c for other devices. */
static const char *const dangerous[] = {"bind", "rbind", "remount", "move", "shared", "rshared", "private",
	"rprivate", "slave", "rslave", "unbindable", "runbindable", "loop", "offset", "sizelimit",
	"encryption", "journal_dev", "journal_path", "logdev", "rtdev", "sb"};

/* mount(8): words for fstab and for itself, which never reach the kernel */
static const char *const for_mount_program[] = {"auto", "noauto", "user", "nouser", "users", "owner",
	"noowner", "group", "nogroup", "nofail", "_netdev", "comment", "helper", "uhelper"};

static bool has_name_in(const char *flag, const char *const *list, size_t n)
{
	size_t len = strcspn(flag, "=");

	for (size_t i = 0; i < n; i++) {
		if (strlen(list[i]) == len && strncmp(flag, list[i], len) == 0)
			return true;
	}
	return false;
}

static bool is_for_kernel(const char *flag)
{
	return *flag && !str_starts(flag, "x-") &&
	       !has_name_in(flag, for_mount_program, ARRAY_SIZE(for_mount_program));
}

char **allowed_mount_flags_split(char *const *flags)
{
	char **out = NULL;

	for (size_t i = 0; flags && flags[i]; i++) {
		for (const char *at = flags[i]; at;) {
			CLEANUP(free_charp) char *one = x_strndup(at, strcspn(at, ","));

			if (is_for_kernel(one))
				strv_add(&out, one);
			at = strchr(at, ',');
			at = at ? at + 1 : NULL;
		}
	}
	return out;
}

int allowed_mount_flags_check_taken_over(char *const *flags, struct error **err)
{
	for (size_t i = 0; flags && flags[i]; i++) {
		if (has_name_in(flags[i], dangerous, ARRAY_SIZE(dangerous)) ||
			str_eq(flags[i], "errors=panic") || str_starts(flags[i], "X-"))
			return refuse(flags[i], "a mount of a volume", err);
	}
	return 0;
}
