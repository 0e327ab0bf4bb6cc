#include "volume/mount_flags.h"

#include "base/str.h"

/* mount_setattr(2) and mount(8), "filesystem-independent mount options" */
static const char *const per_mount[] = {"ro", "rw", "nosuid", "suid", "nodev", "dev", "noexec", "exec",
	"noatime", "atime", "relatime", "norelatime", "strictatime", "nodiratime", "diratime"};

static const char *const generic[] = {"sync", "async", "dirsync", "lazytime", "nolazytime", "defaults"};

/* Of the file systems' own options only those that neither weaken integrity nor reach outside the volume. */
static const char *const ext4_only[] = {"dax", "dax=always", "dax=inode", "dax=never", "discard", "nodiscard",
	"errors=remount-ro", "errors=continue", "acl", "user_xattr", "journal_checksum", "delalloc",
	"nodelalloc"};
static const char *const xfs_only[] = {"dax", "dax=always", "dax=inode", "dax=never", "discard", "nodiscard",
	"inode64", "largeio", "nolargeio", "noquota", "attr2", "ikeep", "noikeep"};

static bool is_in(const char *flag, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (str_eq(flag, list[i]))
			return true;
	}
	return false;
}

bool mount_flag_is_per_mount(const char *flag)
{
	return is_in(flag, per_mount, ARRAY_SIZE(per_mount));
}

static bool is_allowed(const char *flag, const char *fs_type)
{
	if (mount_flag_is_per_mount(flag) || is_in(flag, generic, ARRAY_SIZE(generic)))
		return true;
	if (str_eq(fs_type, "xfs"))
		return is_in(flag, xfs_only, ARRAY_SIZE(xfs_only));
	return is_in(flag, ext4_only, ARRAY_SIZE(ext4_only));
}

int mount_flags_check(char *const *flags, const char *fs_type, struct error **err)
{
	for (size_t i = 0; flags && flags[i]; i++) {
		if (!is_allowed(flags[i], fs_type))
			return err_set(err, ERR_INVALID_ARGUMENT, "mount flag \"%s\" is not allowed for %s",
				flags[i], fs_type);
	}
	return 0;
}
