/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/mount_flags.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/mount.h"
#include "os/mount_table.h"
#include "volume/state.h"

/* mount_setattr(2) and mount(8), "filesystem-independent mount options"; what mount_bind() can set */
static const char *const per_mount[] = {"ro", "rw", "nosuid", "suid", "nodev", "dev", "noexec", "exec",
	"noatime", "relatime", "strictatime", "nodiratime", "diratime"};

bool mount_flag_is_per_mount(const char *flag)
{
	for (size_t i = 0; i < ARRAY_SIZE(per_mount); i++) {
		if (str_eq(flag, per_mount[i]))
			return true;
	}
	return false;
}

bool mount_flag_is_no_option(const char *flag)
{
	return str_eq(flag, "defaults") || str_eq(flag, "atime") || str_eq(flag, "norelatime");
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

int mount_flags_check_known(char *const *flags, const char *fs_type, struct error **err)
{
	for (size_t i = 0; flags && flags[i]; i++) {
		CLEANUP(free_charp)
		char *why =
			mount_flag_is_no_option(flags[i]) ? NULL : mount_option_refusal(fs_type, flags[i]);

		if (why)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"mount flag \"%s\" is not supported for %s by the kernel of this node (%s)",
				flags[i], fs_type, why);
	}
	return 0;
}

int mount_flags_fit_kernel(
	const struct volume_record *r, const char *fs_type, char ***flags, struct error **err)
{
	CLEANUP(strv_freep) char **asked = *flags;

	*flags = NULL;
	for (size_t i = 0; asked && asked[i]; i++) {
		char *const one[] = {asked[i], NULL};
		CLEANUP(error_freep) struct error *refusal = NULL;

		if (mount_flags_check_known(one, fs_type, &refusal) == 0) {
			strv_add(flags, asked[i]);
		} else if (r->ever_staged || volume_record_is_taken_over(r)) {
			log_warn("a mount flag that this kernel no longer supports is omitted",
				F_STR("volume", r->id), F_STR("flag", asked[i]), F_STR("fs", fs_type));
		} else {
			*err = TAKE_PTR(refusal);
			return -1;
		}
	}
	return 0;
}

/* The order is that of struct mount_attributes. */
static const struct {
	const char *set;
	const char *clear;
} attribute_words[] = {
	{"ro", "rw"}, {"nosuid", "suid"}, {"nodev", "dev"}, {"noexec", "exec"}, {"nodiratime", "diratime"}};

static const char *const atime_words[] = {
	[ATIME_RELATIVE] = "relatime", [ATIME_NEVER] = "noatime", [ATIME_STRICT] = "strictatime"};

static bool *attribute(struct mount_attributes *a, size_t i)
{
	bool *const at[] = {&a->readonly, &a->nosuid, &a->nodev, &a->noexec, &a->nodiratime};

	return at[i];
}

struct mount_attributes mount_attributes_of_flags(char *const *flags)
{
	struct mount_attributes a = {0};

	for (size_t k = 0; flags && flags[k]; k++) {
		for (size_t i = 0; i < ARRAY_SIZE(attribute_words); i++) {
			if (str_eq(flags[k], attribute_words[i].set))
				*attribute(&a, i) = true;
			if (str_eq(flags[k], attribute_words[i].clear))
				*attribute(&a, i) = false;
		}
		for (size_t i = 0; i < ARRAY_SIZE(atime_words); i++) {
			if (str_eq(flags[k], atime_words[i]))
				a.atime = i;
		}
		/* they take something back, and fs/namespace.c, path_mount(), gives what is left relatime */
		if (str_eq(flags[k], "atime") || str_eq(flags[k], "norelatime"))
			a.atime = ATIME_RELATIVE;
	}
	return a;
}

struct mount_attributes mount_attributes_in_force(const struct mount_entry *e)
{
	struct mount_attributes a = {.readonly = mount_entry_is_readonly(e),
		.nosuid = mount_entry_has(e, "nosuid"),
		.nodev = mount_entry_has(e, "nodev"),
		.noexec = mount_entry_has(e, "noexec"),
		.nodiratime = mount_entry_has(e, "nodiratime"),
		.atime = ATIME_STRICT};

	if (mount_entry_has(e, "noatime"))
		a.atime = ATIME_NEVER;
	else if (mount_entry_has(e, "relatime"))
		a.atime = ATIME_RELATIVE;
	return a;
}

const char *mount_attributes_differ(
	const struct mount_attributes *wanted, const struct mount_attributes *is, const char **ret_is)
{
	struct mount_attributes w = *wanted;
	struct mount_attributes now = *is;

	for (size_t i = 0; i < ARRAY_SIZE(attribute_words); i++) {
		if (*attribute(&w, i) == *attribute(&now, i))
			continue;
		*ret_is = *attribute(&now, i) ? attribute_words[i].set : attribute_words[i].clear;
		return *attribute(&w, i) ? attribute_words[i].set : attribute_words[i].clear;
	}
	if (w.atime == now.atime)
		return NULL;
	*ret_is = atime_words[now.atime];
	return atime_words[w.atime];
}

void mount_attributes_to_flags(const struct mount_attributes *a, bool all, char ***out)
{
	struct mount_attributes w = *a;

	for (size_t i = 0; i < ARRAY_SIZE(attribute_words); i++) {
		if (*attribute(&w, i))
			strv_add(out, attribute_words[i].set);
		else if (all)
			strv_add(out, attribute_words[i].clear);
	}
	if (all || w.atime != ATIME_RELATIVE)
		strv_add(out, atime_words[w.atime]);
}
