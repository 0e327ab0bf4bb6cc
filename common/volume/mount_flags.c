#include "volume/mount_flags.h"

#include "base/str.h"
#include "os/mount_table.h"

#define SHOWN_MAX_BYTES 64

/* mount_setattr(2) and mount(8), "filesystem-independent mount options"; what mount_bind() can set */
static const char *const per_mount[] = {"ro", "rw", "nosuid", "suid", "nodev", "dev", "noexec", "exec",
	"noatime", "relatime", "strictatime", "nodiratime", "diratime"};

/* atime and norelatime only take something back: a bind mount has what was staged */
static const char *const generic[] = {
	"sync", "async", "dirsync", "lazytime", "nolazytime", "defaults", "atime", "norelatime"};

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

/* CSI: mount_flags may hold secrets, and errors are logged. Of what is not ours only the name is shown. */
static int refuse(const char *flag, const char *fs_type, struct error **err)
{
	size_t n = strcspn(flag, "=");

	return err_set(err, ERR_INVALID_ARGUMENT, "mount flag \"%.*s%s\" is not allowed for %s",
		(int)(n < SHOWN_MAX_BYTES ? n : SHOWN_MAX_BYTES), flag, flag[n] ? "=..." : "", fs_type);
}

int mount_flags_check(char *const *flags, const char *fs_type, struct error **err)
{
	for (size_t i = 0; flags && flags[i]; i++) {
		if (!is_allowed(flags[i], fs_type))
			return refuse(flags[i], fs_type, err);
	}
	return 0;
}

/* fs/proc_namespace.c, show_mnt_opts() and show_sb_opts(); fs/ext4/super.c, _ext4_show_options();
 * fs/xfs/xfs_super.c, xfs_fs_show_options() */
static const struct {
	const char *flag;
	const char *opposite;
} unseen[] = {
	{"suid", "nosuid"},
	{"dev", "nodev"},
	{"exec", "noexec"},
	{"atime", "noatime"},
	{"norelatime", "noatime"},
	{"strictatime", "relatime"},
	{"strictatime", "noatime"},
	{"diratime", "nodiratime"},
	{"async", "sync"},
	{"nolazytime", "lazytime"},
	{"dax=inode", "dax=always"},
	{"dax=inode", "dax=never"},
	{"nodiscard", "discard"},
	{"errors=continue", "errors=remount-ro"},
	{"acl", "noacl"},
	{"user_xattr", "nouser_xattr"},
	{"delalloc", "nodelalloc"},
	{"nolargeio", "largeio"},
	{"journal_checksum", "nojournal_checksum"},
	{"noquota", "usrquota"},
	/* taken and ignored since Linux 6.18 */
	{"ikeep", "noikeep"},
	{"noikeep", "ikeep"},
	{"attr2", "noattr2"},
};

bool mount_flag_in_force(const struct mount_entry *e, const char *flag)
{
	bool is_default = false;

	if (mount_entry_has(e, flag))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(unseen); i++) {
		if (!str_eq(flag, unseen[i].flag))
			continue;
		if (mount_entry_has(e, unseen[i].opposite))
			return false;
		is_default = true;
	}
	return is_default;
}
