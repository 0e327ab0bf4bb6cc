/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/nd_sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"
#include "os/spawn.h"

#define ND_SYSFS_DRIVER "/sys/bus/nd/drivers/nd_pmem"
#define LOAD_TIMEOUT_MS 30000

#define ATTRIBUTE_MAX_BYTES 4096
/* Longer than the path of any device. */
#define LINK_MAX_BYTES 4096

int nd_attr(const char *device, const char *attribute, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/%s", device, attribute);
	CLEANUP(buf_done) struct buf b = BUF_INIT(ATTRIBUTE_MAX_BYTES);

	if (file_read(AT_FDCWD, path, &b, err) < 0)
		return -1;
	size_t len = strlen(buf_str(&b));
	if (len > 0 && buf_str(&b)[len - 1] == '\n')
		len--;
	*ret = x_strndup(buf_str(&b), len);
	return 0;
}

int nd_attr_number(const char *device, const char *attribute, uint64_t *ret, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;

	if (nd_attr(device, attribute, &text, err) < 0)
		return -1;
	return parse_number(text, ret, err) < 0 ? err_wrap(err, "%s of %s", attribute, device) : 0;
}

char *nd_attr_hint(const char *device, const char *attribute)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	char *text = NULL;

	return nd_attr(device, attribute, &text, &ignored) == 0 ? text : x_strdup("");
}

uint64_t nd_attr_hint_number(const char *device, const char *attribute, uint64_t otherwise)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t n = 0;

	return nd_attr_number(device, attribute, &n, &ignored) == 0 ? n : otherwise;
}

int nd_attr_names(const char *device, const char *folder, char ***ret, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/%s", device, folder);
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(path, false, 0, &fd, err) == 0)
		return dir_list(fd, ret, err) < 0 ? err_wrap(err, "%s", path) : 0;
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	*ret = x_calloc(1, sizeof(**ret));
	return 0;
}

bool nd_has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text + strspn(text, " "); *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		if (n == len && memcmp(p, word, n) == 0)
			return true;
		p += n;
	}
	return false;
}

static int write_text(const char *path, const char *text, struct error **err)
{
	/* a write of 0 bytes does not reach the kernel; a newline has the same meaning for it */
	const char *content = *text ? text : "\n";
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", path);
	if (write(fd, content, strlen(content)) < 0)
		return err_set_errno(
			err, errno == ENOSPC ? ERR_EXHAUSTED : ERR_INTERNAL, errno, "write to %s", path);
	return 0;
}

int nd_attr_write(const char *device, const char *attribute, const char *text, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/%s", device, attribute);

	return write_text(path, text, err);
}

int nd_attr_write_number(const char *device, const char *attribute, uint64_t number, struct error **err)
{
	CLEANUP(free_charp) char *text = x_asprintf("%ju", (uintmax_t)number);

	return nd_attr_write(device, attribute, text, err);
}

int nd_load_driver(struct error **err)
{
	const char *const argv[] = {"modprobe", "nd_pmem", NULL};

	if (access(ND_SYSFS_DRIVER, F_OK) == 0)
		return 0;
	if (STEP("nd-load-driver", spawn_check(argv, /* out= */ NULL, LOAD_TIMEOUT_MS, err)) == 0)
		return 0;
	err_recode(err, ERR_UNAVAILABLE);
	return err_wrap(err, "the persistent memory driver is not loaded");
}

int nd_wait_probed(const char *bus, struct error **err)
{
	/* it waits for what is queued first, and for regions that are being enabled, which queue more, then
	 */
	for (int i = 0; i < 2; i++) {
		CLEANUP(free_charp) char *text = NULL;

		if (nd_attr(bus, "wait_probe", &text, err) < 0)
			return -1;
	}
	return 0;
}

int nd_bind(const char *device, struct error **err)
{
	if (write_text(ND_SYSFS_DRIVER "/bind", device, err) < 0)
		return err_wrap(err, "enable %s", device);
	return 0;
}

int nd_unbind(const char *device, struct error **err)
{
	return nd_attr_write(device, "driver/unbind", device, err);
}

int nd_link(const char *path, char **ret, struct error **err)
{
	char target[LINK_MAX_BYTES];
	ssize_t n = readlink(path, target, sizeof(target));

	if (n < 0)
		return err_set_errno(
			err, errno == ENOENT ? ERR_NOT_FOUND : ERR_INTERNAL, errno, "readlink %s", path);
	*ret = x_strndup(target, (size_t)n);
	return 0;
}

int nd_parent(const char *device, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s", device);
	CLEANUP(free_charp) char *target = NULL;

	if (nd_link(path, &target, err) < 0)
		return -1;
	char *end = strrchr(target, '/');
	if (end)
		*end = '\0';
	const char *parent = end ? strrchr(target, '/') : NULL;
	if (!parent)
		return err_set(err, ERR_INTERNAL, "%s has no parent device", device);
	*ret = x_strdup(parent + 1);
	return 0;
}

bool nd_is_bound(const char *device)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/driver", device);

	return access(path, F_OK) == 0;
}

char *nd_module_of(const char *region, unsigned i)
{
	CLEANUP(free_charp) char *attribute = x_asprintf("mapping%u", i);
	CLEANUP(free_charp) char *text = nd_attr_hint(region, attribute);

	return x_strndup(text, strcspn(text, ","));
}
