/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/attachment/attachment_dax.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/kmsg.h"
#include "os/mount_table.h"
#include "volume/volumes_private.h"

bool attachment_dax_is_flag(const char *flag)
{
	return str_eq(flag, "dax") || str_starts(flag, "dax=");
}

bool attachment_dax_has_flag(char *const *flags)
{
	for (size_t i = 0; flags && flags[i]; i++) {
		if (attachment_dax_is_flag(flags[i]))
			return true;
	}
	return false;
}

enum dax_wish attachment_dax_choose(const char *mode, enum volume_usage usage, char *const *flags)
{
	bool is_real = !str_eq(mode, "fake");

	if (usage != USAGE_APP_DIRECT)
		return DAX_AS_IT_IS;
	for (size_t i = 0; flags && flags[i]; i++) {
		const char *flag = flags[i];

		if (attachment_dax_is_flag(flag) && !str_eq(flag, "dax") && !str_eq(flag, "dax=always"))
			return DAX_AS_IT_IS;
	}
	return is_real ? DAX_REQUIRED : DAX_IF_THERE;
}

int attachment_dax_check_device(enum dax_wish wish, struct volumes *v, const struct volume_record *r,
	const struct device *d, const struct blockdev_info *info, struct error **err)
{
	if (wish != DAX_REQUIRED || info->has_dax)
		return 0;
	/* a copy of it on another disk has none, and is not what to blame */
	if (device_view_confirm_path(v->device_view, r, d, err) < 0)
		return -1;
	return err_set(err, ERR_PRECONDITION,
		"%s of volume %s does not support DAX (its queue/dax in sysfs is 0), which "
		"usage=AppDirect requires; use usage=FileIO instead",
		d->path, r->id);
}

bool attachment_dax_add_flag(enum dax_wish wish, const struct blockdev_info *info, char ***flags)
{
	if (wish == DAX_AS_IT_IS || !info->has_dax || attachment_dax_has_flag(*flags))
		return false;
	strv_add(flags, "dax");
	return true;
}

int attachment_dax_check_mount(
	enum dax_wish wish, const char *id, const struct mount_entry *e, struct error **err)
{
	/* what the file systems show is their state, not what was asked for: fs/xfs/xfs_super.c,
	 * xfs_setup_dax_always(); fs/ext4/super.c refuses the mount */
	if (wish != DAX_REQUIRED || mount_entry_has(e, "dax=always"))
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"volume %s is mounted at %s without DAX, which usage=AppDirect requires", id, e->target);
}

int attachment_dax_explain(const struct blockdev_info *info, int kmsg_fd, struct error **err)
{
	CLEANUP(free_charp) char *said = kmsg_since(kmsg_fd, info->dev);

	if (said)
		return err_wrap(err, "the kernel says \"%s\"", said);
	return err_wrap(err, "the device %s DAX, and the kernel requires blocks as large as its pages",
		info->has_dax ? "supports" : "does not support");
}

void attachment_dax_warn(
	enum dax_wish wish, const char *id, const struct device *d, const struct mount_entry *e)
{
	if (wish == DAX_IF_THERE && !mount_entry_has(e, "dax=always"))
		log_warn("the volume is mounted without DAX because its device does not support it",
			F_STR("volume", id), F_STR("device", d->path));
}
