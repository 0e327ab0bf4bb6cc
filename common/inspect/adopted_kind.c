/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/adopted_kind.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/copy/fs_detached.h"
#include "os/fs.h"
#include "pmem/device/device.h"
#include "volume/attachment/kata.h"
#include "volume/attachment/kata_image.h"
#include "volume/params.h"
#include "volume/state.h"

const char *adopted_kind_noun(enum adopted_kind kind)
{
	static const char *const nouns[] = {[ADOPTED_AS_FOUND] = "volume",
		[ADOPTED_BLOCK] = "block volume",
		[ADOPTED_FILESYSTEM] = "volume that the node mounts",
		[ADOPTED_DIRECT] = "volume that guests are given"};

	return nouns[kind];
}

bool adopted_kind_is(const struct volume_record *r, enum adopted_kind kind)
{
	switch (kind) {
	case ADOPTED_AS_FOUND:
		return true;
	case ADOPTED_BLOCK:
		return r->block_clean && !r->direct && !r->fs_type;
	case ADOPTED_FILESYSTEM:
		return kata_has_image(r);
	case ADOPTED_DIRECT:
		return r->direct;
	}
	return false;
}

static void forget_kind(struct volume_record *r)
{
	free(TAKE_PTR(r->fs_type));
	if (strmap_get(&r->parameters, PARAMS_KATA))
		strmap_set(&r->parameters, PARAMS_KATA, "false");
	r->image_bytes = 0;
	r->direct = false;
	r->block_clean = false;
}

/* Looks for an image in the file system. @replay: whether its log is replayed, since the name of the image
 * may be only in the log */
static int find_image(
	const char *fs_type, const char *device, bool replay, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(error_freep) struct error *failure = NULL;
	int dir_fd;

	if ((replay ? fs_open_detached(fs_type, device, /* readonly= */ true, &dir_fd, err)
		    : fs_open_unchanged(fs_type, device, &dir_fd, err)) < 0)
		return err_wrap(err, "look for an image for Kata Containers in its file system");
	int rc = kata_image_find(dir_fd, ret_bytes, &failure);
	if (fs_close_detached(dir_fd, device, err) < 0)
		return -1;
	if (rc < 0)
		*err = TAKE_PTR(failure);
	return rc;
}

static int settle_mounted(struct volume_record *r, const char *device, bool asked, struct error **err)
{
	uint64_t image_bytes;

	if (find_image(r->fs_type, device, asked, &image_bytes, err) < 0)
		return -1;
	if (image_bytes == 0 && !asked)
		return err_set(err, ERR_PRECONDITION,
			"it holds %s, and nothing on it shows whether the node or a guest mounts that: repair it "
			"with -direct if %s has " PARAMS_DIRECT
			"=true among the volumeAttributes, and otherwise with -filesystem",
			r->fs_type,
			r->snapshot ? "the PersistentVolume of its source" : "its PersistentVolume");
	if (image_bytes > 0)
		strmap_set(&r->parameters, PARAMS_KATA, "true");
	r->image_bytes = image_bytes;
	return 0;
}

int adopted_kind_settle(struct volume_record *r, const struct device *d, const char *found,
	enum adopted_kind kind, struct error **err)
{
	forget_kind(r);
	r->block_clean = kind == ADOPTED_BLOCK;
	r->direct = kind == ADOPTED_DIRECT;
	if (kind == ADOPTED_BLOCK || !found || !fs_known(found))
		return 0;
	r->fs_type = x_strdup(found);
	return r->direct ? 0 : settle_mounted(r, d->path, kind == ADOPTED_FILESYSTEM, err);
}
