/* SPDX-License-Identifier: Apache-2.0 */
#include "os/copy/fs_freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdatomic.h>
#include <sys/ioctl.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/thread.h"
#include "os/blockdev.h"

#define STACK_BYTES (64U << 10)
/* Between two tries of the watchdog. */
#define AGAIN_NS NS_PER_S

enum freeze_state {
	FREEZE_BEGINS,  /* the kernel waits for writers, and writes; that cannot be interrupted */
	FREEZE_HOLDS,   /* the watchdog thaws it in time */
	FREEZE_EXPIRED, /* the watchdog's time was over */
	FREEZE_ENDED,
};

struct fs_freeze {
	pthread_mutex_t mutex; /* held while the file system is thawed, so that both threads never do it */
	pthread_cond_t ended;
	unsigned users; /* the owner and the watchdog; the last one frees it */
	int fd;         /* of a file system; for the watchdog in FREEZE_HOLDS only */
	dev_t dev;      /* the mapped device that is suspended instead; 0: none */
	enum freeze_state state;
	int thaw_errno; /* 0: thawed */
	uint64_t begun_ns;
	uint64_t deadline_ns;
	uint64_t thawed_ns;
	atomic_bool holds;
};

/* The caller has the mutex, and loses it. */
static void release(struct fs_freeze *f)
{
	bool last = --f->users == 0;

	pthread_mutex_unlock(&f->mutex);
	if (!last)
		return;
	pthread_cond_destroy(&f->ended);
	pthread_mutex_destroy(&f->mutex);
	free(f);
}

/* Return: errno as FITHAW; 0: resumed */
static int resume_device(dev_t dev)
{
	CLEANUP(error_freep) struct error *err = NULL;
	bool was_suspended = false;

	if (dm_resume(dev, &was_suspended, &err) < 0)
		return err->os_errno ? err->os_errno : EIO;
	return was_suspended ? 0 : EINVAL;
}

static int thaw_fs(int fd)
{
	return STEP("thaw", ioctl(fd, FITHAW, 0)) < 0 ? errno : 0;
}

/* The caller has the mutex. */
static void thaw(struct fs_freeze *f)
{
	f->holds = false;
	f->thaw_errno = f->dev ? resume_device(f->dev) : thaw_fs(f->fd);
	f->thawed_ns = clock_ns();
}

static void *watch(void *user)
{
	struct fs_freeze *f = user;
	bool in_time = true;

	pthread_mutex_lock(&f->mutex);
	while (in_time && f->state != FREEZE_ENDED)
		in_time = thread_wait_until(&f->ended, &f->mutex, f->deadline_ns);
	if (f->state == FREEZE_HOLDS)
		thaw(f);
	while (f->state == FREEZE_HOLDS && f->thaw_errno != 0 && f->thaw_errno != EINVAL) {
		(void)thread_wait_until(&f->ended, &f->mutex, clock_ns() + AGAIN_NS);
		if (f->state == FREEZE_HOLDS)
			thaw(f);
	}
	if (f->state != FREEZE_ENDED)
		f->state = FREEZE_EXPIRED;
	release(f);
	return NULL;
}

/* The caller has the mutex, and loses it. */
static void end(struct fs_freeze *f)
{
	f->state = FREEZE_ENDED;
	pthread_cond_signal(&f->ended);
	fd_closep(&f->fd);
	release(f);
}

static int freeze_fs(int fd, struct error **err)
{
	if (STEP("freeze", ioctl(fd, FIFREEZE, 0)) == 0)
		return 0;
	switch (errno) {
	case EBUSY:
		return err_set_errno(err, ERR_ABORTED, errno,
			"the file system is frozen by another program, which has to thaw it (fsfreeze -u does)");
	case EOPNOTSUPP:
		return err_set_errno(err, ERR_PRECONDITION, errno, "the file system cannot be frozen");
	default:
		return err_set_errno(err, ERR_INTERNAL, errno, "freeze the file system");
	}
}

static const char *noun(const struct fs_freeze *f)
{
	return f->dev ? "device" : "file system";
}

static int fail_to_thaw(const struct fs_freeze *f, struct error **err)
{
	if (f->thaw_errno == EINVAL)
		return err_set(err, ERR_ABORTED, "another program has %s the %s",
			f->dev ? "resumed" : "thawed", noun(f));
	return err_set_errno(
		err, ERR_INTERNAL, f->thaw_errno, "%s the %s", f->dev ? "resume" : "thaw", noun(f));
}

/* The caller has the mutex. It is frozen. */
static int begin_to_hold(struct fs_freeze *f, struct error **err)
{
	if (f->state == FREEZE_BEGINS) {
		f->state = FREEZE_HOLDS;
		f->holds = true;
		return 0;
	}
	thaw(f);
	if (f->thaw_errno != 0)
		return fail_to_thaw(f, err);
	return err_set(err, ERR_DEADLINE, "%s the %s took longer than %ju ms",
		f->dev ? "suspending" : "freezing", noun(f),
		(uintmax_t)((f->deadline_ns - f->begun_ns) / NS_PER_MS));
}

static int freeze(struct fs_freeze *f, struct error **err)
{
	if ((f->dev ? dm_suspend(f->dev, err) : freeze_fs(f->fd, err)) < 0)
		return -1;
	pthread_mutex_lock(&f->mutex);
	int rc = begin_to_hold(f, err);
	pthread_mutex_unlock(&f->mutex);
	return rc;
}

/* @fd: taken over; -1: @dev is suspended */
static struct fs_freeze *freeze_new(int fd, dev_t dev, int max_pause_ms)
{
	struct fs_freeze *f = x_calloc(1, sizeof(*f));

	pthread_mutex_init(&f->mutex, NULL);
	thread_cond_init(&f->ended);
	f->users = 1;
	f->fd = fd;
	f->dev = dev;
	f->begun_ns = clock_ns();
	f->deadline_ns = f->begun_ns + (uint64_t)max_pause_ms * NS_PER_MS;
	return f;
}

static void freeze_free(struct fs_freeze *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->mutex);
	end(f);
}
DEFINE_CLEANUP(struct fs_freeze *, freeze_free);

static int begin(int fd, dev_t dev, int max_pause_ms, struct fs_freeze **ret, struct error **err)
{
	CLEANUP(freeze_freep) struct fs_freeze *f = freeze_new(fd, dev, max_pause_ms);

	f->users++;
	int why = thread_start(watch, f, STACK_BYTES);
	if (why != 0) {
		f->users--;
		return err_set_errno(err, ERR_UNAVAILABLE, why, "start a thread");
	}
	if (freeze(f, err) < 0)
		return -1;
	*ret = TAKE_PTR(f);
	return 0;
}

int fs_freeze_begin(int dir_fd, int max_pause_ms, struct fs_freeze **ret, struct error **err)
{
	int fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "duplicate a descriptor");
	return begin(fd, /* dev= */ 0, max_pause_ms, ret, err);
}

int fs_freeze_begin_device(dev_t dev, int max_pause_ms, struct fs_freeze **ret, struct error **err)
{
	return begin(/* fd= */ -1, dev, max_pause_ms, ret, err);
}

bool fs_freeze_holds(const struct fs_freeze *f)
{
	return f->holds;
}

/* The caller has the mutex. */
static int stop_holding(struct fs_freeze *f, struct error **err)
{
	bool expired = f->state == FREEZE_EXPIRED;

	if (!expired || f->thaw_errno != 0)
		thaw(f);
	if (f->thaw_errno != 0)
		return fail_to_thaw(f, err);
	if (expired)
		return err_set(err, ERR_DEADLINE, "the %s was %s after %ju ms, before the end of the copy",
			noun(f), f->dev ? "resumed" : "thawed",
			(uintmax_t)((f->thawed_ns - f->begun_ns) / NS_PER_MS));
	return 0;
}

int fs_freeze_end(struct fs_freeze *f, uint64_t *ret_pause_ns, struct error **err)
{
	pthread_mutex_lock(&f->mutex);
	int rc = stop_holding(f, err);
	if (ret_pause_ns)
		*ret_pause_ns = f->thawed_ns - f->begun_ns;
	end(f);
	return rc;
}

int fs_thaw(int dir_fd, bool *ret_was_frozen, struct error **err)
{
	if (STEP("thaw-left", ioctl(dir_fd, FITHAW, 0)) == 0) {
		*ret_was_frozen = true;
		return 0;
	}
	if (errno != EINVAL)
		return err_set_errno(err, ERR_INTERNAL, errno, "thaw the file system");
	*ret_was_frozen = false;
	return 0;
}
