/* SPDX-License-Identifier: Apache-2.0 */
#include "csi/capability.h"

#include "base/str.h"
#include "os/fs.h"
#include "volume/attachment/allowed_mount_flags.h"

#define MODE(name) CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__##name

static int read_access_mode(const Csi__V1__VolumeCapability *c, enum access_mode *ret, struct error **err)
{
	static const struct {
		Csi__V1__VolumeCapability__AccessMode__Mode wire;
		enum access_mode ours;
	} modes[] = {
		{MODE(SINGLE_NODE_WRITER), ACCESS_SINGLE_WRITER},
		{MODE(SINGLE_NODE_READER_ONLY), ACCESS_SINGLE_NODE_READER},
		{MODE(SINGLE_NODE_SINGLE_WRITER), ACCESS_SINGLE_NODE_SINGLE_WRITER},
		{MODE(SINGLE_NODE_MULTI_WRITER), ACCESS_SINGLE_NODE_MULTI_WRITER},
		{MODE(MULTI_NODE_READER_ONLY), ACCESS_MULTI_NODE_READER},
		{MODE(MULTI_NODE_SINGLE_WRITER), ACCESS_MULTI_NODE_WRITER},
		{MODE(MULTI_NODE_MULTI_WRITER), ACCESS_MULTI_NODE_WRITER},
	};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (c->access_mode->mode == modes[i].wire) {
			*ret = modes[i].ours;
			return 0;
		}
	}
	return err_set(
		err, ERR_INVALID_ARGUMENT, "access mode %d is not supported", (int)c->access_mode->mode);
}

static bool has_mode(const Csi__V1__VolumeCapability *c)
{
	return c->access_mode && c->access_mode->mode != MODE(UNKNOWN);
}

static int require_fields(const Csi__V1__VolumeCapability *c, bool any_mode, struct error **err)
{
	if (c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET)
		return err_set(err, ERR_INVALID_ARGUMENT, "access_type is missing in a volume capability");
	if (!any_mode && !has_mode(c))
		return err_set(err, ERR_INVALID_ARGUMENT, "access_mode is missing in a volume capability");
	return 0;
}

int capabilities_require(Csi__V1__VolumeCapability *const *list, size_t n, bool any_mode, struct error **err)
{
	for (size_t i = 0; i < n; i++) {
		if (require_fields(list[i], any_mode, err) < 0)
			return -1;
	}
	return 0;
}

static int read_mount(
	const Csi__V1__VolumeCapability__MountVolume *m, struct capability *cap, struct error **err)
{
	CLEANUP(strv_freep) char **given = NULL;

	/* only for plugins with the capability VOLUME_MOUNT_GROUP; ignored, files would have the wrong group
	 */
	if (!str_empty(m->volume_mount_group))
		return err_set(err, ERR_INVALID_ARGUMENT, "volume_mount_group is not supported");
	cap->fs_type = m->fs_type;
	for (size_t i = 0; i < m->n_mount_flags; i++)
		strv_add(&given, m->mount_flags[i]);
	cap->mount_flags = allowed_mount_flags_split(given);
	return 0;
}

static int read_capability(
	const Csi__V1__VolumeCapability *c, bool any_mode, struct capability *ret, struct error **err)
{
	struct capability cap = {.fs_type = ""};

	if (require_fields(c, any_mode, err) < 0)
		return -1;
	if (has_mode(c) && read_access_mode(c, &cap.access_mode, err) < 0)
		return -1;
	cap.block = c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
	if (!cap.block && read_mount(c->mount, &cap, err) < 0)
		return -1;
	*ret = cap;
	return 0;
}

int capability_read(const Csi__V1__VolumeCapability *c, struct capability *ret, struct error **err)
{
	if (!c)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume_capability is missing");
	return read_capability(c, /* any_mode= */ false, ret, err);
}

void capability_done(struct capability *c)
{
	strv_free(c->mount_flags);
	*c = (struct capability){0};
}

void capability_set_done(struct capability_set *set)
{
	strv_free(TAKE_PTR(set->mount_flags));
}

int capability_set_check_flags(const struct capability_set *set, const char *fs_type, struct error **err)
{
	return allowed_mount_flags_check(set->mount_flags, fs_type, err);
}

static int check_mount(const struct capability *c, struct capability_set *set, struct error **err)
{
	const char *type = str_empty(c->fs_type) ? VOLUME_DEFAULT_FS : c->fs_type;

	if (!fs_known(type))
		return err_set(err, ERR_INVALID_ARGUMENT, "file system \"%s\" is neither ext4 nor xfs", type);
	if (set->fs_type && !str_eq(set->fs_type, type))
		return err_set(err, ERR_INVALID_ARGUMENT, "a volume cannot be %s and %s at once",
			set->fs_type, type);
	if (allowed_mount_flags_check(c->mount_flags, str_empty(c->fs_type) ? NULL : type, err) < 0)
		return -1;
	for (size_t i = 0; c->mount_flags && c->mount_flags[i]; i++)
		strv_add(&set->mount_flags, c->mount_flags[i]);
	set->fs_type = type;
	if (!str_empty(c->fs_type))
		set->asked_fs_type = type;
	return 0;
}

int capabilities_check(Csi__V1__VolumeCapability *const *list, size_t n, bool any_mode,
	struct capability_set *ret, struct error **err)
{
	CLEANUP(capability_set_done) struct capability_set set = {0};

	if (n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume_capabilities is missing");
	for (size_t i = 0; i < n; i++) {
		CLEANUP(capability_done) struct capability c = {0};

		if (read_capability(list[i], any_mode, &c, err) < 0)
			return -1;
		if (!c.block && check_mount(&c, &set, err) < 0)
			return -1;
		set.block = set.block || c.block;
		set.spans_nodes = set.spans_nodes || access_mode_spans_nodes(c.access_mode);
	}
	*ret = set;
	set.mount_flags = NULL;
	return 0;
}
