/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/raw_content.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "pmem/pool/pool_backup.h"

/* Length of the signatures in drivers/nvdimm/btt.h and drivers/nvdimm/pfn.h. */
#define INFO_SIGNATURE_LEN 14

/* Programs that write no signature begin at the beginning, too. */
#define HEAD_BYTES  (64U << 10)
#define CHUNK_BYTES 4096

/* Namespaces begin at multiples of it (SUBSECTION_SIZE of the kernel's include/linux/mmzone.h). */
#define PLACE_BYTES ((off_t)2 << 20)

static int open_device(const char *path, int *ret_fd, struct error **err)
{
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_set_errno(err, ERR_INTERNAL, errno, "open %s", path) : 0;
}

static int read_at(int fd, const char *path, off_t at, void *ret, size_t n, struct error **err)
{
	if (pread(fd, ret, n, at) != (ssize_t)n)
		return err_set_errno(err, ERR_INTERNAL, errno, "read %s", path);
	return 0;
}

/* Info blocks begin at the offsets of drivers/nvdimm/btt_devs.c and drivers/nvdimm/pfn_devs.c. The kernel
 * shows a namespace as raw, too, if it does not recognise the info block, or was set to raw mode.
 * @start: of a namespace, on the device
 */
static int find_info_block(int fd, const char *path, off_t start, bool *ret, struct error **err)
{
	static const char *const signatures[] = {"BTT_ARENA_INFO", "NVDIMM_PFN_INFO", "NVDIMM_DAX_INFO"};
	static const off_t offsets[] = {0, 4096};
	char found[INFO_SIGNATURE_LEN];

	*ret = false;
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++) {
		if (read_at(fd, path, start + offsets[i], found, sizeof(found), err) < 0)
			return -1;
		for (size_t k = 0; k < ARRAY_SIZE(signatures); k++)
			*ret |= memcmp(found, signatures[k], sizeof(found)) == 0;
	}
	return 0;
}

/* @ret: whether the beginning has only zeros, or only ones */
static int is_head_blank(int fd, const char *path, bool *ret, struct error **err)
{
	uint8_t chunk[CHUNK_BYTES];
	uint8_t first = 0;

	*ret = true;
	for (off_t at = 0; *ret && at < HEAD_BYTES; at += CHUNK_BYTES) {
		if (read_at(fd, path, at, chunk, sizeof(chunk), err) < 0)
			return -1;
		first = at == 0 ? chunk[0] : first;
		*ret = (first == 0 || first == 0xff) && chunk[0] == first &&
		       memcmp(chunk, chunk + 1, sizeof(chunk) - 1) == 0;
	}
	return 0;
}

/* A region without labels has the identity PROVIDER/NAME (nd_list.c). */
bool raw_content_may_hide(const struct nd_region *region, const struct nd_namespace *ns)
{
	return ns->bare && !region->has_labels && !str_starts(region->identity, "e820/");
}

int raw_content_find_hidden(const char *path, char **ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	bool has_info = false;
	bool is_blank;

	if (open_device(path, &fd, err) < 0 || is_head_blank(fd, path, &is_blank, err) < 0)
		return -1;
	if (!is_blank) {
		*ret = x_strdup("data of an unknown kind");
		return 0;
	}
	off_t end = lseek(fd, 0, SEEK_END);
	off_t at = PLACE_BYTES;
	for (; !has_info && at + PLACE_BYTES <= end; at += PLACE_BYTES)
		if (find_info_block(fd, path, at, &has_info, err) < 0)
			return -1;
	*ret = has_info ? x_asprintf("the info block of a namespace that began at byte %ju",
				  (uintmax_t)(at - PLACE_BYTES))
			: x_strdup("");
	return 0;
}

int raw_content_find(const char *path, char **ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	bool has_info = false;

	if (open_device(path, &fd, err) < 0 || find_info_block(fd, path, 0, &has_info, err) < 0)
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
