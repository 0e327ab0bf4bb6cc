/* SPDX-License-Identifier: Apache-2.0 */
#include "os/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <libmount.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/kmsg.h"

#define BUSY_TRIES    25
#define BUSY_PAUSE_NS 20000000

#define SAID_MAX_BYTES 512

#define OPTIONS_MAX_BYTES 4096 /* the kernel takes one page (fs/namespace.c, copy_mount_options()) */

/* Flags that select the operation of mount(2) instead of a property of the mount; as an option they would
 * cause another operation. */
#define VERBS (MS_REMOUNT | MS_BIND | MS_MOVE | MS_REC | MS_PRIVATE | MS_SLAVE | MS_SHARED | MS_UNBINDABLE)

struct split_options {
	unsigned long flags;
	char *data; /* for the file system; may be NULL */
};

static void split_options_done(struct split_options *s)
{
	free(s->data);
}

static int split_one(const char *option, struct split_options *s, struct error **err)
{
	CLEANUP(free_charp) char *user = NULL;
	CLEANUP(free_charp) char *generic = NULL;
	CLEANUP(free_charp) char *own = NULL;
	unsigned long flags = s->flags;
	int rc = -EINVAL;

	if (!str_empty(option) && !strchr(option, ','))
		rc = mnt_split_optstr(option, &user, &generic, &own, 0, 0);
	if (rc == -ENOMEM)
		return err_set_errno(err, ERR_INTERNAL, ENOMEM, "mount option \"%s\"", option);
	if (rc != 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "malformed mount option \"%s\"", option);
	if (user)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "mount option \"%s\" is not known to the kernel", option);
	if (generic && mnt_optstr_get_flags(generic, &flags, mnt_get_builtin_optmap(MNT_LINUX_MAP)) != 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "malformed mount option \"%s\"", option);
	if (flags & VERBS)
		return err_set(err, ERR_INVALID_ARGUMENT, "mount option \"%s\" is not a property of a mount",
			option);
	if (own && mnt_optstr_append_option(&s->data, own, NULL) != 0)
		return err_set_errno(err, ERR_INTERNAL, ENOMEM, "mount option \"%s\"", option);
	s->flags = flags;
	return 0;
}

static char *join(const char *const *options)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(OPTIONS_MAX_BYTES);

	for (; options && *options; options++)
		buf_addf(&b, "%s%s", b.len ? "," : "", *options);
	if (b.overflowed)
		return x_strdup("that are too long to be shown");
	return x_strdup(b.len ? buf_str(&b) : "none");
}

static enum err_code mount_error_code(int os_errno)
{
	switch (os_errno) {
	case EINVAL:
		return ERR_INVALID_ARGUMENT;
	case EBUSY:
		return ERR_UNAVAILABLE; /* another program holds the device */
	default:
		return ERR_INTERNAL;
	}
}

static int set_option(int context_fd, const char *own)
{
	const char *value = strchr(own, '=');
	CLEANUP(free_charp) char *key = x_strndup(own, strcspn(own, "="));

	if (value)
		return fsconfig(context_fd, FSCONFIG_SET_STRING, key, value + 1, 0);
	return fsconfig(context_fd, FSCONFIG_SET_FLAG, key, NULL, 0);
}

/* A message begins with its severity, a letter: "e ext4: Unknown parameter 'noacl'". */
static char *read_refusal(int context_fd)
{
	char said[SAID_MAX_BYTES];
	ssize_t n = read(context_fd, said, sizeof(said) - 1);

	if (n < 2)
		return x_strdup("Invalid argument");
	said[n] = '\0';
	said[strcspn(said, "\n")] = '\0';
	str_clean(said);
	return x_strdup(said + 2);
}

char *mount_option_refusal(const char *fstype, const char *option)
{
	CLEANUP(split_options_done) struct split_options split = {0};
	CLEANUP(error_freep) struct error *malformed = NULL;
	CLEANUP(fd_closep) int context_fd = -1;

	if (split_one(option, &split, &malformed) < 0)
		return x_strdup(malformed->msg);
	if (split.data)
		context_fd = fsopen(fstype, FSOPEN_CLOEXEC);
	if (context_fd < 0 || set_option(context_fd, split.data) == 0 || errno != EINVAL)
		return NULL;
	return read_refusal(context_fd);
}

/* mount(2) itself says EINVAL for all of them, and the kernel's log does not name the device then. */
static void name_refused(const char *fstype, const char *const *options, struct error **err)
{
	for (const char *const *o = options; o && *o; o++) {
		CLEANUP(free_charp) char *why = mount_option_refusal(fstype, *o);

		if (why) {
			err_wrap(err, "the kernel does not take \"%s\" for %s (%s)", *o, fstype, why);
			return;
		}
	}
}

static void add_log(int kmsg_fd, const char *device, struct error **err)
{
	struct stat st;
	CLEANUP(free_charp) char *said = stat(device, &st) == 0 ? kmsg_since(kmsg_fd, st.st_rdev) : NULL;

	if (said)
		err_wrap(err, "the kernel says \"%s\"", said);
}

int mount_device(
	const char *device, int target_fd, const char *fstype, const char *const *options, struct error **err)
{
	CLEANUP(fd_closep) int kmsg_fd = kmsg_mark();
	CLEANUP(split_options_done) struct split_options split = {0};
	CLEANUP(free_charp) char *target = x_asprintf("/proc/self/fd/%d", target_fd);

	for (const char *const *o = options; o && *o; o++)
		if (split_one(*o, &split, err) < 0)
			return -1;
	if (split.data && strlen(split.data) >= OPTIONS_MAX_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "mount options are longer than %d bytes",
			OPTIONS_MAX_BYTES);
	if (STEP("mount", mount(device, target, fstype, split.flags, split.data)) < 0) {
		int os_errno = errno;
		CLEANUP(free_charp) char *names = join(options);
		err_set_errno(err, mount_error_code(os_errno), os_errno, "mount %s as %s with options %s",
			device, fstype, names);
		if (os_errno == EINVAL)
			name_refused(fstype, options, err);
		add_log(kmsg_fd, device, err);
		return -1;
	}
	return 0;
}

struct bind_flag {
	const char *name;
	uint64_t set;
	uint64_t clear;
};

/* The access time modes are one field, not bits (mount_setattr(2)): each first clears it. */
static const struct bind_flag bind_flags[] = {
	{"ro", MOUNT_ATTR_RDONLY, 0},
	{"rw", 0, MOUNT_ATTR_RDONLY},
	{"nosuid", MOUNT_ATTR_NOSUID, 0},
	{"suid", 0, MOUNT_ATTR_NOSUID},
	{"nodev", MOUNT_ATTR_NODEV, 0},
	{"dev", 0, MOUNT_ATTR_NODEV},
	{"noexec", MOUNT_ATTR_NOEXEC, 0},
	{"exec", 0, MOUNT_ATTR_NOEXEC},
	{"nodiratime", MOUNT_ATTR_NODIRATIME, 0},
	{"diratime", 0, MOUNT_ATTR_NODIRATIME},
	{"relatime", MOUNT_ATTR_RELATIME, MOUNT_ATTR__ATIME},
	{"noatime", MOUNT_ATTR_NOATIME, MOUNT_ATTR__ATIME},
	{"strictatime", MOUNT_ATTR_STRICTATIME, MOUNT_ATTR__ATIME},
};

static int add_bind_flag(struct mount_attr *attr, const char *name, struct error **err)
{
	for (size_t i = 0; i < ARRAY_SIZE(bind_flags); i++) {
		const struct bind_flag *f = &bind_flags[i];
		if (!str_eq(f->name, name))
			continue;
		attr->attr_set = (attr->attr_set & ~f->clear) | f->set;
		attr->attr_clr = (attr->attr_clr & ~f->set) | f->clear;
		return 0;
	}
	return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not an option of a bind mount", name);
}

int mount_bind(int source_fd, int target_fd, const char *const *flags, struct error **err)
{
	struct mount_attr attr = {0};

	for (; flags && *flags; flags++)
		if (add_bind_flag(&attr, *flags, err) < 0)
			return -1;

	CLEANUP(fd_closep)
	int tree_fd = open_tree(source_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree_fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "clone the mount for a bind mount");
	if ((attr.attr_set || attr.attr_clr) &&
		mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "set the options of a bind mount");
	if (STEP("bind", move_mount(tree_fd, "", target_fd, "",
				 MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "move the bind mount to the target");
	return 0;
}

int mount_empty(const char *source, int target_fd, struct error **err)
{
	CLEANUP(free_charp) char *target = x_asprintf("/proc/self/fd/%d", target_fd);

	if (STEP("mount-empty", mount(source, target, "tmpfs", MS_RDONLY | MS_NODEV | MS_NOSUID | MS_NOEXEC,
					"mode=0755,size=4096,nr_inodes=1")) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "mount an empty file system");
	return 0;
}

/* EINVAL is the kernel's word for "no mount point" and for refusals (umount(2)). */
static int explain_einval(int parent_fd, const char *name, const char *target, struct error **err)
{
	struct statx stx = {0};

	if (statx(parent_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, &stx) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "stat %s", target);
	if (stx.stx_attributes & STATX_ATTR_MOUNT_ROOT)
		return err_set_errno(err, ERR_INTERNAL, EINVAL, "unmount %s", target);
	return 0;
}

/*
 * umount2(2) takes a path only, and a descriptor of the mount itself would keep it busy. So the parent is
 * held by descriptor, and UMOUNT_NOFOLLOW covers the last component.
 */
int mount_open_parent(const char *target, int *ret_fd, struct error **err)
{
	const char *slash = strrchr(target, '/');
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};

	if (!slash || !slash[1])
		return err_set(err, ERR_INTERNAL, "unmount %s: not a canonical path", target);

	CLEANUP(free_charp) char *parent = x_strndup(target, (size_t)(slash - target) + 1);
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, parent, &how, sizeof(how));
	if (fd < 0 && errno != ENOENT && errno != ENOTDIR)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", parent);
	*ret_fd = fd;
	return 0;
}

/* A descriptor of the mount that was closed a moment ago may still be held: by the copy that a child which
 * another thread starts has until it runs its program (posix_spawn(3), FD_CLOEXEC). */
static int unmount_patiently(const char *path)
{
	const struct timespec pause = {.tv_nsec = BUSY_PAUSE_NS};
	int rc = STEP("unmount", umount2(path, UMOUNT_NOFOLLOW));

	for (unsigned tries = 0; rc < 0 && errno == EBUSY && tries < BUSY_TRIES; tries++) {
		(void)!nanosleep(&pause, NULL);
		rc = STEP("unmount-again", umount2(path, UMOUNT_NOFOLLOW));
	}
	return rc;
}

int mount_remove_from(int parent_fd, const char *target, struct error **err)
{
	const char *name = strrchr(target, '/') + 1;
	CLEANUP(free_charp) char *path = x_asprintf("/proc/self/fd/%d/%s", parent_fd, name);

	if (parent_fd < 0 || unmount_patiently(path) == 0 || errno == ENOENT)
		return 0;
	if (errno == EINVAL)
		return explain_einval(parent_fd, name, target, err);
	return err_set_errno(
		err, errno == EBUSY ? ERR_PRECONDITION : ERR_INTERNAL, errno, "unmount %s", target);
}

int mount_remove(const char *target, struct error **err)
{
	CLEANUP(fd_closep) int parent_fd = -1;

	if (mount_open_parent(target, &parent_fd, err) < 0)
		return -1;
	return mount_remove_from(parent_fd, target, err);
}

int mount_open_apart(int root_fd, int *ret_fd, struct error **err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOATIME,
		.attr_clr = MOUNT_ATTR__ATIME};
	CLEANUP(fd_closep)
	int tree_fd = open_tree(root_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);

	if (tree_fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "clone the mount of the file system");
	if (mount_setattr(tree_fd, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "set the options of a mount");

	/* most system calls take no descriptor with O_PATH; this one keeps the mount */
	int fd = openat(tree_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open the root of the file system");
	*ret_fd = fd;
	return 0;
}
