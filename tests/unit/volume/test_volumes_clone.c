/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume from a volume: what the clone has, what happens to the writers, and what is left after
 * failures. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "unit/volume/content.h"
#include "unit/volume/mounts.h"
#include "volume/volumes_private.h"

#define SIZE   MIB(64)
#define LARGER MIB(96)
#define OLD    'k'
#define DATA   'd'
#define N_DATA MIB(8)

#define N_FILES 30
#define SLOW_US 50000

static unsigned slow_us;

int __real_sync_file_range(int fd, off64_t from, off64_t n, unsigned flags);
int __wrap_sync_file_range(int fd, off64_t from, off64_t n, unsigned flags);

int __wrap_sync_file_range(int fd, off64_t from, off64_t n, unsigned flags)
{
	usleep(slow_us);
	return __real_sync_file_range(fd, from, n, flags);
}

static struct error *err;
static struct volume_info *copy;
static struct device *copy_device;
static char *copy_staging;
static const struct strmap no_context;

static void fill_made(const struct device *d)
{
	content_fill(d, OLD);
}

static void set_up(void)
{
	mounts_set_up(SIZE);
	fx.faults.made = fill_made;
	copy_staging = fixture_path("kubelet/copy");
	ck_assert_int_eq(mkdir(copy_staging, 0755), 0);
}

static void set_up_block(void)
{
	mounts_set_up_block(SIZE);
	fx.faults.made = fill_made;
}

static void stage_source(void)
{
	const struct use_request s = mounts_stage_request("ext4");

	ASSERT_OK(volumes_stage(fx.v, &s, &err));
}

static void unstage_source(void)
{
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

static void write_data(void)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/data", mt.staging);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char block[CONTENT_BLOCK];

	memset(block, DATA, sizeof(block));
	for (uint64_t at = 0; at < N_DATA; at += sizeof(block))
		ck_assert_int_eq(write(fd, block, sizeof(block)), sizeof(block));
	ck_assert_int_eq(fsync(fd), 0);
}

static int try_copy(uint64_t size_bytes)
{
	struct volume_request q = fixture_request("copy", size_bytes);

	q.source = mt.volume->id;
	return volumes_create(fx.v, &q, &copy, &err);
}

static void make_copy(uint64_t size_bytes)
{
	ASSERT_OK(try_copy(size_bytes));
	copy_device = fixture_device(copy->id);
}

static void assert_refused(int rc, enum err_code code, const char *text)
{
	ck_assert_int_eq(rc, -1);
	ck_assert_msg(
		err->code == code && strstr(err->msg, text), "%s: %s", err_code_name(err->code), err->msg);
	error_clear(&err);
}

static void stage_copy(void)
{
	const struct use_request s = {
		.handle = copy->id, .staging_path = copy_staging, .fs_type = "ext4", .context = &no_context};

	ASSERT_OK(volumes_stage(fx.v, &s, &err));
}

static void assert_has_data(const char *folder)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/data", folder);
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	char block[CONTENT_BLOCK];
	uint64_t n = 0;

	ck_assert_int_ge(fd, 0);
	for (; read(fd, block, sizeof(block)) == sizeof(block); n += sizeof(block)) {
		ck_assert_int_eq(block[0], DATA);
		ck_assert_int_eq(memcmp(block, block + 1, sizeof(block) - 1), 0);
	}
	ck_assert_uint_eq(n, N_DATA);
}

/* Nothing is left of a clone that failed, and the source is as it was. */
static void assert_no_copy(void)
{
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->freezing);
}

static void assert_other_uuid(void)
{
	struct fs_super a;
	struct fs_super b;

	ASSERT_OK(fs_read_super("ext4", mt.device->path, &a, &err));
	ASSERT_OK(fs_read_super("ext4", copy_device->path, &b, &err));
	ck_assert_str_ne(a.uuid, b.uuid);
}

START_TEST(volume_that_is_not_mounted_is_copied)
{
	stage_source();
	write_data();
	unstage_source();
	make_copy(LARGER);
	ck_assert_uint_eq(copy->size_bytes, LARGER);
	ck_assert_str_eq(copy->source, mt.volume->id);
	ck_assert_uint_eq(content_count(copy_device, OLD), 0);
	ck_assert_uint_ge(content_count(copy_device, DATA), N_DATA / CONTENT_BLOCK);
	assert_other_uuid();
	stage_copy();
	stage_source();
	assert_has_data(copy_staging);
	assert_has_data(mt.staging);
}
END_TEST

static atomic_bool stop;
static atomic_uint n_written;

/* A number is in the first file before it is in the second. */
static void *write_numbers(void *user)
{
	const int *fds = user;

	for (unsigned n = 1; !stop; n++) {
		for (unsigned i = 0; i < 2; i++) {
			ck_assert_int_eq(pwrite(fds[i], &n, sizeof(n), 0), sizeof(n));
			ck_assert_int_eq(fsync(fds[i]), 0);
		}
		n_written = n;
	}
	return NULL;
}

static unsigned read_number(const char *folder, unsigned i)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/number-%u", folder, i);
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	unsigned n;

	ck_assert_int_eq(pread(fd, &n, sizeof(n), 0), sizeof(n));
	return n;
}

static void await_more(unsigned than)
{
	while (n_written <= than)
		usleep(1000);
}

/* What is reported of the volume @id. Return: volume_report_done() */
static struct volume_report report_of(const char *id)
{
	CLEANUP(volumes_report_done) struct volumes_report all = {0};

	ck_assert(volumes_report(fx.v, &all));
	for (size_t i = 0; i < all.n_volumes; i++) {
		struct volume_report v = all.volumes[i];

		if (!str_eq(v.id, id))
			continue;
		all.volumes[i] = (struct volume_report){0};
		return v;
	}
	ck_abort_msg("%s is not in the report", id);
	return (struct volume_report){0};
}

static void check_pause(uint64_t ns)
{
	CLEANUP(volume_report_done) struct volume_report source = report_of(mt.volume->id);
	CLEANUP(volume_report_done) struct volume_report made = report_of(copy->id);

	ck_assert_uint_eq(source.pause.ms, (ns + NS_PER_MS - 1) / NS_PER_MS);
	ck_assert_uint_ge(source.pause.ended_ms / 1000, (uint64_t)time(NULL) - 60);
	ck_assert_uint_le(source.pause.ended_ms / 1000, (uint64_t)time(NULL));
	ck_assert_uint_eq(made.pause.ended_ms, 0);
	ck_assert_uint_eq(made.filling.total_bytes, 0);
}

START_TEST(copy_shows_one_moment_of_its_writers)
{
	pthread_t writer;
	int fds[2];

	stage_source();
	write_data();
	for (unsigned i = 0; i < 2; i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/number-%u", mt.staging, i);
		fds[i] = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	}
	ck_assert_int_eq(pthread_create(&writer, NULL, write_numbers, fds), 0);
	await_more(0);
	make_copy(SIZE);
	await_more(n_written);
	stop = true;
	ck_assert_int_eq(pthread_join(writer, NULL), 0);
	for (unsigned i = 0; i < 2; i++)
		close(fds[i]);
	stage_copy();
	assert_has_data(copy_staging);
	unsigned first = read_number(copy_staging, 0);
	unsigned second = read_number(copy_staging, 1);
	ck_assert_msg(first == second || first == second + 1, "%u after %u", first, second);
	ck_assert_uint_ge(n_written, first);
	struct volumes_overview o;
	volumes_overview(fx.v, &o);
	ck_assert_uint_eq(o.copy_pauses, 1);
	ck_assert_uint_gt(o.copy_pause_ns, 0);
	ck_assert_uint_ge(o.copied_bytes, N_DATA);
	check_pause(o.copy_pause_ns);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->freezing);
}
END_TEST

static void *copy_in_background(void *user)
{
	(void)user;
	ASSERT_OK(try_copy(LARGER));
	return NULL;
}

static bool is_zeroing(void)
{
	CLEANUP(free_charp) char *step = volume_lock_current_step(fx.v->locks, NULL);

	return step && strstr(step, "zeroing what the clone does not use");
}

static uint64_t left_bytes(void)
{
	struct volumes_overview o;

	volumes_overview(fx.v, &o);
	return o.to_copy_bytes;
}

/* The pod's end need not wait for that. */
START_TEST(source_is_unmounted_while_its_copy_is_zeroed)
{
	pthread_t thread;

	stage_source();
	write_data();
	fx.v->copy_bytes_per_s = MIB(32);
	ck_assert_int_eq(pthread_create(&thread, NULL, copy_in_background, NULL), 0);
	while (!is_zeroing())
		usleep(1000);
	unstage_source();
	ck_assert(is_zeroing());
	ck_assert_uint_gt(left_bytes(), 0);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(left_bytes(), 0);
	copy_device = fixture_device(copy->id);
	stage_copy();
	assert_has_data(copy_staging);
}
END_TEST

/* As if the copy had begun ten seconds ago. */
static void age_copy(void)
{
	pthread_mutex_lock(&fx.v->shared.mutex);
	LIST_FIRST(&fx.v->copy_reports.under_way)->shown_ns -= COPY_REPORT_NS;
	pthread_mutex_unlock(&fx.v->shared.mutex);
}

static struct volume_filling filling(void)
{
	CLEANUP(volumes_report_done) struct volumes_report all = {0};

	ck_assert(volumes_report(fx.v, &all));
	for (size_t i = 0; i < all.n_volumes; i++) {
		const struct volume_report *v = &all.volumes[i];

		if (str_eq(v->id, mt.volume->id))
			ck_assert_uint_eq(v->filling.total_bytes, 0);
		else if (v->phase == PHASE_CREATING)
			return v->filling;
	}
	return (struct volume_filling){0};
}

START_TEST(copy_that_takes_long_shows_how_far_it_is)
{
	pthread_t thread;

	stage_source();
	write_data();
	unstage_source();
	fx.v->copy_bytes_per_s = MIB(32);
	ck_assert_int_eq(pthread_create(&thread, NULL, copy_in_background, NULL), 0);
	while (!is_zeroing())
		usleep(1000);
	ck_assert_uint_eq(filling().total_bytes, 0);
	unsigned before = fx.n_changes;
	age_copy();
	while (filling().total_bytes == 0)
		usleep(1000);
	struct volume_filling f = filling();
	ck_assert_uint_eq(f.total_bytes, LARGER);
	ck_assert_uint_ge(f.done_bytes, N_DATA);
	ck_assert_uint_lt(f.done_bytes, LARGER);
	usleep(200000);
	/* it goes on, and nothing is reported */
	ck_assert_uint_eq(filling().done_bytes, f.done_bytes);
	ck_assert_uint_eq(fx.n_changes, before + 1);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(filling().total_bytes, 0);
}
END_TEST

START_TEST(name_of_a_copy_means_that_copy)
{
	CLEANUP(volume_info_freep) struct volume_info *other = NULL;
	CLEANUP(volume_info_freep) struct volume_info *again = NULL;
	struct volume_request q = fixture_request("copy", SIZE);

	make_copy(SIZE);
	q.source = mt.volume->id;
	ASSERT_OK(volumes_create(fx.v, &q, &again, &err));
	ck_assert_str_eq(again->id, copy->id);
	q.source = NULL;
	assert_refused(volumes_create(fx.v, &q, &again, &err), ERR_EXISTS, "a copy of volume pvc-1");
	other = fixture_create("other", SIZE);
	q.source = other->id;
	assert_refused(volumes_create(fx.v, &q, &again, &err), ERR_EXISTS, "a copy of volume pvc-1");
	q.name = "other";
	assert_refused(volumes_create(fx.v, &q, &again, &err), ERR_EXISTS, "no copy of a volume");
	/* the source may go, and the call may come again */
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	q = fixture_request("copy", SIZE);
	q.source = mt.volume->id;
	volume_info_free(TAKE_PTR(again));
	ASSERT_OK(volumes_create(fx.v, &q, &again, &err));
}
END_TEST

START_TEST(copy_counts_as_staged)
{
	make_copy(SIZE);
	assert_refused(volumes_delete_if_never_staged(fx.v, copy->id, &err), ERR_PRECONDITION, "");
	ASSERT_OK(volumes_delete(fx.v, copy->id, &err));
	assert_no_copy();
}
END_TEST

START_TEST(copy_of_an_empty_volume_is_empty)
{
	make_copy(SIZE);
	stage_copy();
	stage_source();
	ck_assert(!mounts_has_file(copy_staging));
}
END_TEST

START_TEST(copy_that_cannot_be_is_refused)
{
	struct volume_request q = fixture_request("copy", 0);
	CLEANUP(strmap_done) struct strmap cache = {0};

	q.source = "pvc-9";
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_NOT_FOUND, "volume pvc-9 does not exist");
	/* of another node: one that has the source may have room */
	q.source = "pvc-1-b7783e87d0854d7b8710b12bdd62be86b775ae5a7cf1bcf.00000000";
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_EXHAUSTED, "on another node");
	q.source = mt.volume->id;
	q.limit_bytes = SIZE / 2;
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_RANGE, "limit_bytes");
	q.limit_bytes = 0;
	q.fs_type = "xfs";
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_INVALID_ARGUMENT, "has ext4");
	q.fs_type = NULL;
	q.block = true;
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_INVALID_ARGUMENT, "has a file system");
	q.block = false;
	q.fs_type = "ext4";
	strmap_set(&cache, "persistencyModel", "cache");
	q.parameters = &cache;
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_INVALID_ARGUMENT, "cache volume");
	assert_no_copy();
}
END_TEST

static int open_source(void)
{
	return open(mt.staging, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

START_TEST(file_system_that_others_have_frozen_stays_frozen)
{
	CLEANUP(fd_closep) int fd = -1;

	stage_source();
	write_data();
	fd = open_source();
	ck_assert_int_eq(ioctl(fd, FIFREEZE, 0), 0);
	assert_refused(try_copy(SIZE), ERR_ABORTED, "frozen");
	ck_assert_int_eq(ioctl(fd, FITHAW, 0), 0);
	assert_no_copy();
	make_copy(SIZE);
}
END_TEST

static int source_wait_ms; /* for which the lock of the source was waited for last */

int __real_volume_lock(struct volume_locks *t, const char *id, int wait_ms, struct volume_lock **ret,
	struct error **ret_err);
int __wrap_volume_lock(struct volume_locks *t, const char *id, int wait_ms, struct volume_lock **ret,
	struct error **ret_err);

int __wrap_volume_lock(
	struct volume_locks *t, const char *id, int wait_ms, struct volume_lock **ret, struct error **ret_err)
{
	if (mt.volume && str_eq(id, mt.volume->id))
		source_wait_ms = wait_ms;
	return __real_volume_lock(t, id, wait_ms, ret, ret_err);
}

/* Others hold no threads, as a crowd of clones of one volume would. */
START_TEST(few_calls_wait_for_one_source)
{
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	struct source_wait waiting[4];

	for (size_t i = 0; i < ARRAY_SIZE(waiting); i++) {
		waiting[i] = (struct source_wait){.source = mt.volume->id};
		ck_assert(source_waits_enter(&fx.v->source_waits, &waiting[i]));
	}
	ASSERT_OK(__real_volume_lock(fx.v->locks, mt.volume->id, 0, &lock, &err));
	source_wait_ms = -1;
	assert_refused(try_copy(SIZE), ERR_ABORTED, "an operation on volume");
	ck_assert_int_eq(source_wait_ms, 0);
	volume_unlock(TAKE_PTR(lock));
	source_waits_leave(&fx.v->source_waits, &waiting[1]);
	make_copy(SIZE);
	ck_assert_int_gt(source_wait_ms, 0);
	/* and it has left */
	waiting[1].next = NULL;
	ck_assert(source_waits_enter(&fx.v->source_waits, &waiting[1]));
	ck_assert(!source_waits_enter(&fx.v->source_waits, &(struct source_wait){.source = mt.volume->id}));
	struct source_wait others[8];
	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		others[i] = (struct source_wait){.source = i < 4 ? "other" : "third"};
		ck_assert(source_waits_enter(&fx.v->source_waits, &others[i]));
	}
	ck_assert(!source_waits_enter(&fx.v->source_waits, &(struct source_wait){.source = "last"}));
	fx.v->source_waits.first = NULL;
}
END_TEST

static void limit_speed(uint64_t bytes_per_s)
{
	fx.copy_bytes_per_s = bytes_per_s;
	fixture_restart();
}

/* Large enough to find out how fast it is copied. */
static void write_more_data(void)
{
	for (unsigned i = 0; i < 5; i++) {
		CLEANUP(free_charp) char *from = x_asprintf("%s/data", mt.staging);
		CLEANUP(free_charp) char *to = x_asprintf("%s/data-%u", mt.staging, i);

		write_data();
		ck_assert_int_eq(rename(from, to), 0);
	}
}

static size_t n_data, n_old;

static void fill_and_keep(const struct device *d)
{
	copy_device = device_dup(d);
	content_fill(d, OLD);
}

static void count_content(void)
{
	n_data = content_count(copy_device, DATA);
	n_old = content_count(copy_device, OLD);
}

START_TEST(only_what_was_copied_is_erased_after_a_failure)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request("copy", SIZE + LARGER);

	limit_speed(MIB(20));
	stage_source();
	write_more_data();
	fx.faults.made = fill_and_keep;
	fx.faults.in_destroy = count_content;
	strmap_set(&parameters, "maxPause", "1s");
	q.parameters = &parameters;
	q.source = mt.volume->id;
	n_data = 1;
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_PRECONDITION, "nothing was stopped");
	assert_no_copy();
	ck_assert_uint_eq(n_data, 0);
	/* a part was copied, and the new device is larger */
	ck_assert_uint_ge(n_old, LARGER / CONTENT_BLOCK);
	ck_assert_uint_lt(n_old, (SIZE + LARGER) / CONTENT_BLOCK);
}
END_TEST

START_TEST(pause_that_would_be_too_long_is_refused)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	CLEANUP(fd_closep) int fd = -1;
	struct volume_request q = fixture_request("copy", SIZE);

	limit_speed(MIB(20));
	stage_source();
	write_more_data();
	strmap_set(&parameters, "maxPause", "1s");
	q.parameters = &parameters;
	q.source = mt.volume->id;
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_PRECONDITION, "nothing was stopped");
	struct volumes_overview o;
	volumes_overview(fx.v, &o);
	ck_assert_uint_eq(o.copy_pauses, 0);
	assert_no_copy();
	fd = open_source();
	ck_assert_int_eq(ioctl(fd, FITHAW, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
}
END_TEST

/* The node was busy once. */
START_TEST(slow_copy_keeps_no_small_one_from_being_made)
{
	stage_source();
	write_data();
	fx.v->copied.pace = (struct copy_pace){.bytes_per_s = 1000, .measured_ns = clock_ns()};
	make_copy(SIZE);
}
END_TEST

START_TEST(files_that_cannot_be_flushed_in_time_stop_nothing)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request("copy", SIZE);
	struct volumes_overview o;

	stage_source();
	for (unsigned i = 0; i < N_FILES; i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/file-%u", mt.staging, i);
		CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		ck_assert_int_ge(fd, 0);
	}
	slow_us = SLOW_US;
	strmap_set(&parameters, "maxPause", "1s");
	q.parameters = &parameters;
	q.source = mt.volume->id;
	assert_refused(volumes_create(fx.v, &q, &copy, &err), ERR_PRECONDITION,
		"its files cannot all be flushed within maxPause, 1000 ms: nothing was stopped");
	volumes_overview(fx.v, &o);
	ck_assert_uint_eq(o.copy_pauses, 0);
	assert_no_copy();
	/* nothing of that is kept */
	slow_us = 0;
	make_copy(SIZE);
}
END_TEST

static void rewrite_record(const char *from, const char *to, const char *text)
{
	CLEANUP(free_charp) char *old = fixture_read(from);
	CLEANUP(free_charp) char *new = x_asprintf("{%s,%s", text, old + 1);
	CLEANUP(free_charp) char *gone = x_asprintf("state/%s", from);
	CLEANUP(free_charp) char *path = fixture_path(gone);

	fixture_write(to, new);
	if (!str_eq(from, to))
		ck_assert_int_eq(unlink(path), 0);
}

START_TEST(file_system_that_a_crash_has_left_frozen_is_thawed)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	CLEANUP(fd_closep) int fd = -1;

	stage_source();
	fd = open_source();
	ck_assert_int_eq(ioctl(fd, FIFREEZE, 0), 0);
	fixture_stop();
	rewrite_record(file, file, "\"freezing\":true");
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	ck_assert_int_eq(ioctl(fd, FITHAW, 0), -1);
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(mounts_write(mt.staging), 0);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->freezing);
}
END_TEST

/* It was unmounted while it was frozen, and stays so. */
START_TEST(file_system_that_is_frozen_and_not_mounted_is_thawed)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);
	int fd;

	stage_source();
	fd = open_source();
	ck_assert_int_eq(ioctl(fd, FIFREEZE, 0), 0);
	close(fd);
	unstage_source();
	fixture_stop();
	rewrite_record(file, file, "\"freezing\":true");
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	stage_source();
	ck_assert_int_eq(mounts_write(mt.staging), 0);
}
END_TEST

static void stage_block(bool publish)
{
	struct use_request s = mounts_stage_request("");
	struct use_request p = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);

	s.block = p.block = true;
	p.fs_type = "";
	ASSERT_OK(volumes_stage(fx.v, &s, &err));
	if (publish)
		ASSERT_OK(volumes_publish(fx.v, &p, &err));
}

static int try_copy_block(uint64_t size_bytes)
{
	struct volume_request q = fixture_request("copy", size_bytes);

	q.fs_type = NULL;
	q.block = true;
	q.source = mt.volume->id;
	return volumes_create(fx.v, &q, &copy, &err);
}

START_TEST(block_volume_is_copied_unless_a_pod_has_it)
{
	stage_block(/* publish= */ true);
	/* which is no mapped device here */
	assert_refused(
		try_copy_block(SIZE), ERR_PRECONDITION, "the writers of a namespace cannot be stopped");
	assert_no_copy();
	ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
	content_fill(mt.device, DATA);
	ASSERT_OK(try_copy_block(LARGER));
	copy_device = fixture_device(copy->id);
	ck_assert_uint_eq(content_count(copy_device, DATA), SIZE / CONTENT_BLOCK);
	ck_assert_uint_eq(content_count(copy_device, '\0'), (LARGER - SIZE) / CONTENT_BLOCK);
}
END_TEST

/* Its pod ended while the driver could not record that. */
START_TEST(recorded_target_without_a_mount_is_no_use)
{
	stage_block(/* publish= */ true);
	ck_assert_int_eq(umount2(mt.target, UMOUNT_NOFOLLOW), 0);
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_ptr_nonnull(r->targets);
	ASSERT_OK(try_copy_block(SIZE));
}
END_TEST

START_TEST(mark_of_a_device_that_is_not_suspended_any_more_goes)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", mt.volume->id);

	stage_block(/* publish= */ true);
	fixture_stop();
	rewrite_record(file, file, "\"suspending\":true");
	fixture_open();
	ASSERT_OK(volumes_start(fx.v, &err));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert(!r->suspending);
}
END_TEST

START_TEST(block_volume_that_was_never_used_is_copied_as_zeros)
{
	ASSERT_OK(try_copy_block(SIZE));
	copy_device = fixture_device(copy->id);
	ck_assert_uint_eq(content_count(copy_device, '\0'), SIZE / CONTENT_BLOCK);
	struct volume_request q = fixture_request("other", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *other = NULL;
	q.source = mt.volume->id;
	assert_refused(volumes_create(fx.v, &q, &other, &err), ERR_INVALID_ARGUMENT, "is for block access");
}
END_TEST

int main(void)
{
	TCase *tc = fixture_case("copies", set_up);

	if (!tc)
		return SKIP_STATUS;
	tcase_add_test(tc, volume_that_is_not_mounted_is_copied);
	tcase_add_test(tc, copy_shows_one_moment_of_its_writers);
	tcase_add_test(tc, source_is_unmounted_while_its_copy_is_zeroed);
	tcase_add_test(tc, copy_that_takes_long_shows_how_far_it_is);
	tcase_add_test(tc, name_of_a_copy_means_that_copy);
	tcase_add_test(tc, copy_counts_as_staged);
	tcase_add_test(tc, copy_of_an_empty_volume_is_empty);
	tcase_add_test(tc, copy_that_cannot_be_is_refused);
	tcase_add_test(tc, file_system_that_others_have_frozen_stays_frozen);
	tcase_add_test(tc, only_what_was_copied_is_erased_after_a_failure);
	tcase_add_test(tc, few_calls_wait_for_one_source);
	tcase_add_test(tc, pause_that_would_be_too_long_is_refused);
	tcase_add_test(tc, slow_copy_keeps_no_small_one_from_being_made);
	tcase_add_test(tc, files_that_cannot_be_flushed_in_time_stop_nothing);
	tcase_add_test(tc, file_system_that_a_crash_has_left_frozen_is_thawed);
	tcase_add_test(tc, file_system_that_is_frozen_and_not_mounted_is_thawed);
	tc = fixture_more_cases("copies of block volumes", set_up_block);
	tcase_add_test(tc, block_volume_is_copied_unless_a_pod_has_it);
	tcase_add_test(tc, recorded_target_without_a_mount_is_no_use);
	tcase_add_test(tc, mark_of_a_device_that_is_not_suspended_any_more_goes);
	tcase_add_test(tc, block_volume_that_was_never_used_is_copied_as_zeros);
	return fixture_finish();
}
