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

char *kmsg_since(int mark_fd, dev_t dev)
{
	CLEANUP(free_charp) char *name = kernel_name(dev);
	CLEANUP(buf_done) struct buf said = BUF_INIT(KEPT_BYTES);
	size_t n_kept = 0;

	for (unsigned i = 0; name && mark_fd >= 0 && i < RECORDS_MAX && n_kept < KEPT_MAX; i++) {
		char record[RECORD_MAX_BYTES + 1];
		ssize_t n = read(mark_fd, record, RECORD_MAX_BYTES);

		/* EPIPE: records were overwritten before they were read */
		if (n < 0 && (errno == EPIPE || errno == EINTR))
			continue;
		if (n <= 0)
			break;
		record[n] = '\0';
		char *text = text_of(record);
		if (!is_about(text, name))
			continue;
		str_clean(text);
		buf_addf(&said, "%s%s", n_kept > 0 ? "; " : "", text);
		n_kept++;
	}
	return n_kept > 0 ? x_strdup(buf_str(&said)) : NULL;
}
