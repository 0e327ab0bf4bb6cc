#include "csi/capability.h"

#include "base/str.h"
#include "os/fs.h"
#include "volume/mount_flags.h"

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
	};

	for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
		if (c->access_mode->mode == modes[i].wire) {
			*ret = modes[i].ours;
			return 0;
		}
	}
	return err_set(err, ERR_INVALID_ARGUMENT, "access mode %d is not supported: volumes live on one node",
		(int)c->access_mode->mode);
}

static int require_fields(const Csi__V1__VolumeCapability *c, struct error **err)
{
	if (c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET)
		return err_set(err, ERR_INVALID_ARGUMENT, "access_type is missing in a volume capability");
	if (!c->access_mode || c->access_mode->mode == MODE(UNKNOWN))
		return err_set(err, ERR_INVALID_ARGUMENT, "access_mode is missing in a volume capability");
	return 0;
}

int capabilities_require(Csi__V1__VolumeCapability *const *list, size_t n, struct error **err)
{
	for (size_t i = 0; i < n; i++) {
		if (require_fields(list[i], err) < 0)
			return -1;
	}
	return 0;
}

int capability_read(const Csi__V1__VolumeCapability *c, struct capability *ret, struct error **err)
{
	struct capability cap = {0};

	if (!c)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume_capability is missing");
	if (require_fields(c, err) < 0)
		return -1;
	if (c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
		return err_set(err, ERR_INVALID_ARGUMENT, "block volumes are not supported");
	/* only for plugins with the capability VOLUME_MOUNT_GROUP; ignored, files would have the wrong group
	 */
	if (!str_empty(c->mount->volume_mount_group))
		return err_set(err, ERR_INVALID_ARGUMENT, "volume_mount_group is not supported");
	if (read_access_mode(c, &cap.access_mode, err) < 0)
		return -1;
	cap.fs_type = c->mount->fs_type;
	for (size_t i = 0; i < c->mount->n_mount_flags; i++)
		strv_add(&cap.mount_flags, c->mount->mount_flags[i]);
	*ret = cap;
	return 0;
}

void capability_done(struct capability *c)
{
	strv_free(c->mount_flags);
	*c = (struct capability){0};
}

int capabilities_check(
	Csi__V1__VolumeCapability *const *list, size_t n, const char **ret_fs_type, struct error **err)
{
	const char *fs_type = NULL;

	if (n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume_capabilities is missing");
	for (size_t i = 0; i < n; i++) {
		CLEANUP(capability_done) struct capability c = {0};

		if (capability_read(list[i], &c, err) < 0)
			return -1;
		const char *type = str_empty(c.fs_type) ? VOLUME_DEFAULT_FS : c.fs_type;
		if (!fs_known(type))
			return err_set(err, ERR_INVALID_ARGUMENT,
				"file system \"%s\" is neither ext4 nor xfs", type);
		if (fs_type && !str_eq(fs_type, type))
			return err_set(err, ERR_INVALID_ARGUMENT, "a volume cannot be %s and %s at once",
				fs_type, type);
		if (mount_flags_check(c.mount_flags, type, err) < 0)
			return -1;
		fs_type = type;
	}
	*ret_fs_type = fs_type;
	return 0;
}
