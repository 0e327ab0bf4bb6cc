/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/raw_content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "pmem/pool/pool_backup.h"

/* Length of the signatures in drivers/nvdimm/btt.h and drivers/nvdimm/pfn.h. */
#define INFO_SIGNATURE_LEN 14

/* Info blocks begin at the offsets of drivers/nvdimm/btt_devs.c and drivers/nvdimm/pfn_devs.c. The kernel
 * shows a namespace as raw, too, if it does not recognise the info block, or was set to raw mode.
 */
static int find_info_block(const char *path, bool *ret, struct error **err)
{
	static const char *const signatures[] = {"BTT_ARENA_INFO", "NVDIMM_PFN_INFO", "NVDIMM_DAX_INFO"};
	static const off_t offsets[] = {0, 4096};
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char found[INFO_SIGNATURE_LEN];

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	*ret = false;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		if (pread(fd, found, sizeof(found), offsets[i]) != (ssize_t)sizeof(found))
			return err_set_errno(err, ERR_INTERNAL, errno, "read %s", path);
		for (size_t k = 0; k < ARRAY_SIZE(signatures); k++)
			*ret |= memcmp(found, signatures[k], sizeof(found)) == 0;
	}
	return 0;
}

int raw_content_find(const char *path, char **ret, struct error **err)
{
	bool has_info = false;

	if (find_info_block(path, &has_info, err) < 0)
		return -1;
	if (!has_info)
		return fs_probe(path, ret, err);
	*ret = x_strdup("the info block of a namespace of another mode");
	return 0;
}

int raw_content_check_unused(const char *path, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	return blockdev_open_exclusive(path, &fd, err);
}

/* Without the info block the data begin elsewhere, and LVM's label cannot be looked for. */
char *raw_content_former_group(
	const char *folder, const struct nd_region *region, const struct nd_namespace *ns)
{
	CLEANUP(pool_record_done) struct pool_record record = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	if (pool_backup_find(folder, region, ns, &record, &err) < 0)
		return x_strdup(err->msg);
	if (!record.group)
		return NULL;
	return x_asprintf("was in volume group %s when it was fsdax, and its volumes may still be there; "
			  "if they may be lost: pmem-ns-init -force convert %s",
		record.group, ns->dev);
}
