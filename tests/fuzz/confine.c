/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SKIP_STATUS 77

static int make_read_only(void)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};

	return mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &attr, sizeof(attr));
}

static int make_writable(const char *path)
{
	struct mount_attr attr = {.attr_clr = MOUNT_ATTR_RDONLY};

	return mount_setattr(AT_FDCWD, path, 0, &attr, sizeof(attr));
}

static int drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

	return (int)syscall(SYS_capset, &header, none);
}

static int try_confine(void)
{
	CLEANUP(free_charp) char *cwd = getcwd(NULL, 0);

	if (!cwd || unshare(CLONE_NEWNS) < 0)
		return -1;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return -1;
	if (mount("none", CONFINED_DIR, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") < 0)
		return -1;
	if (mount(cwd, cwd, NULL, MS_BIND, NULL) < 0)
		return -1;
	if (make_read_only() < 0 || make_writable(CONFINED_DIR) < 0 || make_writable(cwd) < 0)
		return -1;
	/* the old one is below the new mount */
	if (chdir(cwd) < 0)
		return -1;
	return drop_capabilities();
}

void confine(void)
{
	if (try_confine() == 0)
		return;
	printf("skipped: cannot keep the host out of reach: %s\n", strerror(errno));
	exit(SKIP_STATUS);
}
