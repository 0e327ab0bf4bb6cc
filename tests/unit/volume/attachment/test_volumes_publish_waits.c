/* SPDX-License-Identifier: Apache-2.0 */
/* NodePublish and NodeUnpublish while another operation has locked the volume. */
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/file.h"
#include "unit/volume/mounts.h"

#define SIZE MIB(16)

static void stage(void)
{
	const struct use_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	ASSERT_OK(volumes_stage(fx.v, &q, &err));
}

static void set_up(void)
{
	mounts_set_up(SIZE);
	stage();
}

static int publish(const char *path, enum access_mode mode, struct error **err)
{
	const struct use_request q = mounts_publish_request(path, mode);

	return volumes_publish(fx.v, &q, err);
}

static int unpublish(const char *path, struct error **err)
{
	return volumes_unpublish(fx.v, mt.volume->id, path, err);
}

static sem_t begun;
static pid_t publisher;

static void *publish_both(void *user)
{
	struct error **err = user;

	publisher = (pid_t)syscall(SYS_gettid);
	sem_post(&begun);
	if (publish(mt.target, ACCESS_SINGLE_WRITER, err) == 0)
		(void)!publish(mt.other, ACCESS_SINGLE_WRITER, err);
	return NULL;
}

static bool is_asleep(pid_t tid)
{
	CLEANUP(free_charp) char *path = x_asprintf("/proc/self/task/%d/stat", tid);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	struct error *err = NULL;

	ASSERT_OK(file_read(AT_FDCWD, path, &text, &err));
	return strstr(buf_str(&text), ") S ");
}

static pthread_t thread;
static struct error *thread_err;

/* The volume's lock is held by the stage call that brought us here. */
static void publish_meanwhile(void)
{
	ck_assert_int_eq(pthread_create(&thread, NULL, publish_both, &thread_err), 0);
	sem_wait(&begun);
	while (!is_asleep(publisher))
		sched_yield();
}

START_TEST(publishing_waits_for_the_operation_before_it)
{
	struct error *err = NULL;

	sem_init(&begun, 0, 0);
	fx.faults.inactive = true;
	fx.faults.in_activate = publish_meanwhile;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	stage();
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_msg(!thread_err, "%s", thread_err ? thread_err->msg : "");
	ck_assert_uint_eq(mounts_count(mt.target), 1);
	ck_assert_uint_eq(mounts_count(mt.other), 1);
}
END_TEST

static void call_all_meanwhile(void)
{
	const struct use_request q = mounts_stage_request("ext4");
	struct error *err = NULL;

	fx.faults.in_activate = NULL;
	ASSERT_FAILS(volumes_stage(fx.v, &q, &err), ERR_ABORTED, mt.volume->id);
	ASSERT_FAILS(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err), ERR_ABORTED, mt.volume->id);
	ASSERT_FAILS(volumes_delete(fx.v, mt.volume->id, &err), ERR_ABORTED, mt.volume->id);
	ASSERT_FAILS(publish(mt.target, ACCESS_SINGLE_WRITER, &err), ERR_ABORTED, mt.volume->id);
	ASSERT_FAILS(unpublish(mt.target, &err), ERR_ABORTED, mt.volume->id);
}

START_TEST(calls_during_a_long_operation_are_aborted)
{
	struct error *err = NULL;

	fx.faults.inactive = true;
	fx.faults.in_activate = call_all_meanwhile;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	stage();
	ASSERT_OK(publish(mt.target, ACCESS_SINGLE_WRITER, &err));
}
END_TEST

FIXTURE_MAIN("volumes_publish_waits", set_up, publishing_waits_for_the_operation_before_it,
	calls_during_a_long_operation_are_aborted)
