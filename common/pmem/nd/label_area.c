/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/label_area.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ndctl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"
#include "pmem/nd/nd_sysfs.h"

/* Modules have 128 KiB, and emulated ones 2 MiB. */
#define AREA_MAX_BYTES (16U << 20)
/* The firmware is asked for so many bytes at a time; ACPI leaves the limit to the module. */
#define TRANSFER_MAX_BYTES (64U << 10)

/* Both index blocks of an area of 2 MiB, and the first labels; the kernel takes the first slot that is free
 * (nd_label_alloc_slot() of drivers/nvdimm/label.c). */
#define GLANCE_BYTES (16U << 10)

#define LABEL_OFFSET_AT 48
#define LABEL_MIN_BYTES 128
#define INDEX_ALIGN     256

static bool is_filled_with(const uint8_t *bytes, size_t n, uint8_t value)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i] != value)
			return false;
	return true;
}

static bool is_blank(const uint8_t *bytes, size_t n)
{
	return is_filled_with(bytes, n, 0) || is_filled_with(bytes, n, 0xff);
}

static uint64_t little_endian(const uint8_t *bytes, size_t n)
{
	uint64_t value = 0;

	while (n > 0)
		value = value << 8 | bytes[--n];
	return value;
}

/* The largest place at which labels can begin: behind two index blocks with a bit for each label. */
static uint64_t max_label_offset(size_t n_bytes)
{
	return 2 * layout_round_up(LABEL_INDEX_BYTES + 8 + n_bytes / LABEL_MIN_BYTES / 8 + 1, INDEX_ALIGN);
}

/* An index block tells where labels begin, which is not taken for granted: a label before that would be
 * overlooked. */
static bool has_no_label(const uint8_t *area, size_t n_bytes, size_t total_bytes)
{
	if (n_bytes < 2 * INDEX_ALIGN ||
		memcmp(area, LABEL_INDEX_SIGNATURE, sizeof(LABEL_INDEX_SIGNATURE)) != 0)
		return false;
	uint64_t start = little_endian(area + LABEL_OFFSET_AT, 8);
	return start >= 2 * INDEX_ALIGN && start <= max_label_offset(total_bytes) && start < n_bytes &&
	       is_blank(area + start, n_bytes - start);
}

enum label_area label_area_judge(const uint8_t *area, size_t n_bytes, size_t total_bytes)
{
	if (n_bytes == 0)
		return LABEL_AREA_NONE;
	if (is_blank(area, n_bytes))
		return LABEL_AREA_BLANK;
	return has_no_label(area, n_bytes, total_bytes) ? LABEL_AREA_EMPTY : LABEL_AREA_USED;
}

/* For writing, too, although nothing is written: the kernel refuses ND_CMD_GET_CONFIG_SIZE on a descriptor
 * for reading, since it has the number of ND_CMD_CLEAR_ERROR (__nd_ioctl() of drivers/nvdimm/bus.c). */
static int open_module(const char *module, int *ret_fd, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("/dev/%s", module);

	*ret_fd = open(path, O_RDWR | O_CLOEXEC);
	return *ret_fd < 0 ? err_set_errno(err, ERR_INTERNAL, errno, "open %s", path) : 0;
}

static int read_part(int fd, uint32_t offset_bytes, uint32_t n_bytes, uint8_t *ret, struct error **err)
{
	CLEANUP(free_charp) char *memory = x_calloc(1, sizeof(struct nd_cmd_get_config_data_hdr) + n_bytes);
	struct nd_cmd_get_config_data_hdr *cmd = (struct nd_cmd_get_config_data_hdr *)(void *)memory;

	cmd->in_offset = offset_bytes;
	cmd->in_length = n_bytes;
	if (ioctl(fd, ND_IOCTL_GET_CONFIG_DATA, cmd) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "read");
	if (cmd->status != 0)
		return err_set(err, ERR_INTERNAL, "the module refuses to be read: status %u", cmd->status);
	memcpy(ret, cmd->out_buf, n_bytes);
	return 0;
}

int label_area_peek(
	const char *module, uint32_t offset_bytes, uint32_t n_bytes, uint8_t *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (open_module(module, &fd, err) < 0)
		return -1;
	return read_part(fd, offset_bytes, n_bytes, ret, err);
}

static int read_size(int fd, struct nd_cmd_get_config_size *ret, struct error **err)
{
	*ret = (struct nd_cmd_get_config_size){0};
	if (ioctl(fd, ND_IOCTL_GET_CONFIG_SIZE, ret) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "ask for the size");
	if (ret->status != 0)
		return err_set(
			err, ERR_INTERNAL, "the module does not tell the size: status %u", ret->status);
	if (ret->config_size > AREA_MAX_BYTES)
		return err_set(err, ERR_INTERNAL, "%u bytes are more than any module has", ret->config_size);
	if (ret->config_size > 0 && ret->max_xfer == 0)
		return err_set(err, ERR_INTERNAL, "the module transfers nothing");
	return 0;
}

/* Return: whether @module says that it has a label area which can be read and written. */
static bool has_area(const char *module)
{
	static const char *const wanted[] = {"get_size", "get_data", "set_data"};
	CLEANUP(free_charp) char *commands = nd_attr_hint(module, "commands");

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		if (!nd_has_word(commands, wanted[i]))
			return false;
	return true;
}

static int read_area(int fd, bool whole, enum label_area *ret, struct error **err)
{
	struct nd_cmd_get_config_size size;

	if (read_size(fd, &size, err) < 0)
		return -1;
	uint32_t total = size.config_size;
	uint32_t n_bytes = whole || total < GLANCE_BYTES ? total : GLANCE_BYTES;
	CLEANUP(free_charp) char *memory = x_calloc(1, (size_t)n_bytes + 1);
	uint8_t *area = (uint8_t *)memory;
	uint32_t step = size.max_xfer < TRANSFER_MAX_BYTES ? size.max_xfer : TRANSFER_MAX_BYTES;
	for (uint32_t at = 0; at < n_bytes;) {
		uint32_t n = n_bytes - at < step ? n_bytes - at : step;

		if (read_part(fd, at, n, area + at, err) < 0)
			return -1;
		at += n;
	}
	*ret = label_area_judge(area, n_bytes, total);
	return 0;
}

int label_area_read(const char *module, bool whole, enum label_area *ret, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	*ret = LABEL_AREA_NONE;
	if (!has_area(module))
		return 0;
	if (open_module(module, &fd, err) < 0 || read_area(fd, whole, ret, err) < 0)
		return err_wrap(err, "label area of %s", module);
	return 0;
}
