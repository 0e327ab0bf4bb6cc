/* SPDX-License-Identifier: Apache-2.0 */
#include "os/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define RECORD_MAX_BYTES 8192 /* kernel/printk: a record that does not fit is refused */
#define RECORDS_MAX      1000
#define KEPT_MAX         4
#define KEPT_BYTES       1024
#define LINK_MAX_BYTES   4096

int kmsg_mark(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	if (fd >= 0 && lseek(fd, 0, SEEK_END) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

/* As the kernel calls it: "pmem0", "dm-3". Return: caller frees; NULL: not known. */
static char *kernel_name(dev_t dev)
{
	CLEANUP(free_charp) char *link = x_asprintf("/sys/dev/block/%u:%u", major(dev), minor(dev));
	char folder[LINK_MAX_BYTES];
	ssize_t n = readlink(link, folder, sizeof(folder) - 1);

	if (n < 0)
		return NULL;
	folder[n] = '\0';
	const char *slash = strrchr(folder, '/');
	return x_strdup(slash ? slash + 1 : folder);
}

/* As in "XFS (dm-3): ..." and "EXT4-fs (pmem0): ...". */
static bool is_about(const char *text, const char *name)
{
	CLEANUP(free_charp) char *mark = x_asprintf("(%s): ", name);

	return strstr(text, mark) != NULL;
}

/* Messages about mount options that ext4 prints before it has read the superblock do not name the device:
 * "EXT4-fs: Project quota feature not enabled. ...". Such a message may be about another mount that is made
 * at the same time. */
static bool is_about_options(const char *text)
{
	return str_starts(text, "EXT4-fs: ") || str_starts(text, "XFS: ");
}

/* "PRIORITY,SEQUENCE,TIME,FLAGS;TEXT\n KEY=VALUE\n". Return: TEXT, within @record. */
static char *text_of(char *record)
{
	char *text = strchr(record, ';');

	if (!text)
		return record;
	text++;
	text[strcspn(text, "\n")] = '\0';
	/* an end of line within the message is written as an escape */
	char *end = strstr(text, "\\x0a");
	if (end)
		*end = '\0';
	return text;
}

struct messages {
	struct buf text;
	size_t n;
};

static void keep(struct messages *m, char *text)
{
	str_clean(text);
	buf_addf(&m->text, "%s%s", m->n > 0 ? "; " : "", text);
	m->n++;
}

static char *take(struct messages *m)
{
	return m->n > 0 ? x_strdup(buf_str(&m->text)) : NULL;
}

static void messages_done(struct messages *m)
{
	buf_done(&m->text);
}

/* Return: whether there may be more. */
static bool read_one(int mark_fd, const char *name, struct messages *device, struct messages *options)
{
	char record[RECORD_MAX_BYTES + 1];
	ssize_t n = read(mark_fd, record, RECORD_MAX_BYTES);

	/* EPIPE: records were overwritten before they were read */
	if (n <= 0)
		return n < 0 && (errno == EPIPE || errno == EINTR);
	record[n] = '\0';
	char *text = text_of(record);
	if (is_about(text, name))
		keep(device, text);
	else if (is_about_options(text) && options->n < KEPT_MAX)
		keep(options, text);
	return device->n < KEPT_MAX;
}

char *kmsg_since(int mark_fd, dev_t dev)
{
	CLEANUP(free_charp) char *name = kernel_name(dev);
	CLEANUP(messages_done) struct messages device = {.text = BUF_INIT(KEPT_BYTES)};
	CLEANUP(messages_done) struct messages options = {.text = BUF_INIT(KEPT_BYTES)};

	if (!name || mark_fd < 0)
		return NULL;
	for (unsigned i = 0; i < RECORDS_MAX && read_one(mark_fd, name, &device, &options); i++)
		;
	return device.n > 0 ? take(&device) : take(&options);
}
