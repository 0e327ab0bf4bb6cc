/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "net/core/loop.h"
#include "unit/unit.h"

struct note {
	struct loop *loop;
	struct buf *log;
	char letter;
	struct note *again; /* posted when this one runs */
	bool stop;
};

static void on_note(void *user)
{
	struct note *note = user;

	buf_addc(note->log, note->letter);
	if (note->again)
		loop_post(note->loop, on_note, note->again);
	if (note->stop)
		loop_stop(note->loop);
}

static struct loop *loop_make(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct loop *l;

	ASSERT_OK(loop_new(&l, &err));
	return l;
}

START_TEST(run_returns_when_nothing_is_left)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();

	loop_run(l);
}
END_TEST

START_TEST(posts_run_in_order_and_may_post)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct buf log = BUF_INIT(64);
	struct note c = {l, &log, 'c', NULL, false};
	struct note a = {l, &log, 'a', &c, false};
	struct note b = {l, &log, 'b', NULL, false};

	loop_post(l, on_note, &a);
	loop_post(l, on_note, &b);
	loop_run(l);
	ck_assert_str_eq(buf_str(&log), "abc");
	buf_done(&log);
}
END_TEST

START_TEST(stop_ends_the_run_and_the_next_run_goes_on)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct buf log = BUF_INIT(64);
	struct note b = {l, &log, 'b', NULL, false};
	struct note a = {l, &log, 'a', &b, true};

	loop_post(l, on_note, &a);
	loop_run(l);
	ck_assert_str_eq(buf_str(&log), "a");
	loop_run(l);
	ck_assert_str_eq(buf_str(&log), "ab");
	buf_done(&log);
}
END_TEST

START_TEST(posts_that_did_not_run_are_forgotten)
{
	struct loop *l = loop_make();
	struct buf log = BUF_INIT(64);
	struct note a = {l, &log, 'a', NULL, false};

	loop_post(l, on_note, &a);
	loop_free(l);
	ck_assert_uint_eq(log.len, 0);
}
END_TEST

struct poster {
	struct loop *loop;
	unsigned seen;
	unsigned wanted;
};

static void on_posted(void *user)
{
	struct poster *p = user;

	if (++p->seen == p->wanted)
		loop_release(p->loop);
}

static void *post_many(void *user)
{
	struct poster *p = user;

	for (int i = 0; i < 1000; i++)
		loop_post(p->loop, on_posted, p);
	return NULL;
}

START_TEST(a_held_loop_waits_for_posts_of_other_threads)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct poster p = {.loop = l, .wanted = 4000};
	pthread_t threads[4];

	loop_hold(l);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, post_many, &p), 0);
	loop_run(l);
	ck_assert_uint_eq(p.seen, 4000);
	for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
}
END_TEST

struct watched {
	struct loop_watch *watch;
	int fd;
	unsigned calls;
	unsigned events; /* of the last call */
	bool failed;
	unsigned then; /* events to watch after the first call */
};

static void on_watched(void *user, unsigned events, bool failed)
{
	struct watched *w = user;

	w->calls++;
	w->events = events;
	w->failed = failed;
	if (w->calls == 1 && w->then) {
		loop_watch_set(w->watch, w->then);
		return;
	}
	loop_watch_close(w->watch);
	close(w->fd);
}

static void pair_make(int fds[2])
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

START_TEST(a_readable_descriptor_is_reported)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct watched w = {0};
	int fds[2];

	pair_make(fds);
	w.fd = fds[0];
	ASSERT_OK(loop_watch_fd(l, fds[0], LOOP_READ, on_watched, &w, &w.watch, &err));
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	loop_run(l);
	ck_assert_uint_eq(w.calls, 1);
	ck_assert_uint_eq(w.events, LOOP_READ);
	ck_assert(!w.failed);
	close(fds[1]);
}
END_TEST

START_TEST(what_is_watched_can_be_changed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct watched w = {.then = LOOP_WRITE};
	int fds[2];

	pair_make(fds);
	w.fd = fds[0];
	ASSERT_OK(loop_watch_fd(l, fds[0], LOOP_READ, on_watched, &w, &w.watch, &err));
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	loop_run(l);
	ck_assert_uint_eq(w.calls, 2);
	ck_assert_uint_eq(w.events, LOOP_WRITE);
	close(fds[1]);
}
END_TEST

START_TEST(a_paused_watch_keeps_nothing_waiting)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct watched w = {0};
	int fds[2];

	pair_make(fds);
	ASSERT_OK(loop_watch_fd(l, fds[0], 0, on_watched, &w, &w.watch, &err));
	ck_assert_int_eq(write(fds[1], "x", 1), 1);
	loop_run(l);
	ck_assert_uint_eq(w.calls, 0);
	loop_watch_close(w.watch);
	close(fds[0]);
	close(fds[1]);
}
END_TEST

START_TEST(a_hang_up_makes_the_descriptor_readable)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct watched w = {0};
	int fds[2];

	pair_make(fds);
	w.fd = fds[0];
	ASSERT_OK(loop_watch_fd(l, fds[0], LOOP_READ, on_watched, &w, &w.watch, &err));
	close(fds[1]);
	loop_run(l);
	ck_assert_uint_eq(w.events, LOOP_READ);
}
END_TEST

START_TEST(a_descriptor_that_cannot_be_watched_is_an_error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct loop_watch *w = NULL;

	ASSERT_FAILS(loop_watch_fd(l, 9999, LOOP_READ, on_watched, NULL, &w, &err), ERR_INTERNAL, "9999");
	ck_assert_ptr_null(w);
}
END_TEST

struct ticker {
	struct loop_timer *timer;
	unsigned ticks;
	unsigned wanted;
};

static void on_tick(void *user)
{
	struct ticker *t = user;

	if (++t->ticks == t->wanted)
		loop_timer_close(t->timer);
}

START_TEST(a_timer_fires_after_its_delay_and_repeats)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct ticker t = {.wanted = 3};
	uint64_t begin = clock_ns();

	t.timer = loop_timer_new(l, on_tick, &t);
	loop_timer_set(t.timer, 5, 2);
	loop_run(l);
	ck_assert_uint_eq(t.ticks, 3);
	ck_assert_uint_ge(clock_ns() - begin, 7 * NS_PER_MS);
}
END_TEST

START_TEST(a_stopped_timer_does_not_fire)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct ticker t = {.wanted = 1};

	t.timer = loop_timer_new(l, on_tick, &t);
	loop_timer_set(t.timer, 0, 0);
	loop_timer_stop(t.timer);
	loop_run(l);
	ck_assert_uint_eq(t.ticks, 0);
	loop_timer_close(t.timer);
}
END_TEST

static void on_stop_tick(void *user)
{
	loop_stop(user);
}

START_TEST(stop_in_a_timer_that_is_due_waits_for_nothing)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct ticker late = {.wanted = 1};
	struct loop_timer *due = loop_timer_new(l, on_stop_tick, l);

	late.timer = loop_timer_new(l, on_tick, &late);
	loop_timer_set(late.timer, 3600 * 1000, 0);
	loop_timer_set(due, 0, 0);
	loop_run(l);
	ck_assert_uint_eq(late.ticks, 0);
	loop_timer_close(due);
	loop_timer_close(late.timer);
}
END_TEST

struct catcher {
	struct loop_signal *signal;
	unsigned caught;
};

static void on_caught(void *user)
{
	struct catcher *c = user;

	c->caught++;
	loop_signal_close(c->signal);
}

START_TEST(a_signal_reaches_the_loop)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct catcher c = {0};

	ASSERT_OK(loop_on_signal(l, SIGUSR1, on_caught, &c, &c.signal, &err));
	raise(SIGUSR1);
	loop_run(l);
	ck_assert_uint_eq(c.caught, 1);
}
END_TEST

START_TEST(a_signal_that_cannot_be_caught_is_an_error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct loop_signal *s = NULL;

	ASSERT_FAILS(loop_on_signal(l, SIGKILL, on_caught, NULL, &s, &err), ERR_INTERNAL, "signal 9");
	ck_assert_ptr_null(s);
}
END_TEST

struct found {
	char **endpoints;
	struct error *error;
	unsigned calls;
};

static void on_found(void *user, char *const *endpoints, const struct error *error)
{
	struct found *found = user;

	found->calls++;
	ck_assert_int_eq(endpoints != NULL, error == NULL);
	for (size_t i = 0; endpoints && endpoints[i]; i++)
		strv_add(&found->endpoints, endpoints[i]);
	if (error && err_set(&found->error, error->code, "%s", error->msg) == 0)
		ck_abort();
}

static struct found look_up(const char *host)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct found found = {0};

	loop_look_up(l, host, 10000, on_found, &found);
	ck_assert_uint_eq(found.calls, 0);
	loop_run(l);
	ck_assert_uint_eq(found.calls, 1);
	return found;
}

START_TEST(hosts_become_endpoints)
{
	static const struct {
		const char *host;
		const char *endpoint;
	} cases[] = {{"127.0.0.2", "tcp://127.0.0.2:10000"}, {"::1", "tcp://[::1]:10000"}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct found found = look_up(cases[i].host);

		ck_assert_ptr_null(found.error);
		ck_assert_uint_eq(strv_len(found.endpoints), 1);
		ck_assert_str_eq(found.endpoints[0], cases[i].endpoint);
		strv_free(found.endpoints);
	}
	struct found found = look_up("localhost");
	ck_assert_ptr_null(found.error);
	ck_assert(strv_contains(found.endpoints, "tcp://127.0.0.1:10000"));
	strv_free(found.endpoints);
}
END_TEST

START_TEST(a_host_that_cannot_be_found_is_named)
{
	char too_long[2000];
	const char *const hosts[] = {"no-such-host.invalid", too_long};

	memset(too_long, 'x', sizeof(too_long) - 1);
	too_long[sizeof(too_long) - 1] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		struct found found = look_up(hosts[i]);

		ck_assert_ptr_null(found.endpoints);
		ck_assert_int_eq(found.error->code, ERR_UNAVAILABLE);
		ck_assert_ptr_nonnull(strstr(found.error->msg, hosts[i]));
		error_free(found.error);
	}
}
END_TEST

START_TEST(a_cancelled_lookup_tells_nobody)
{
	CLEANUP(loop_freep) struct loop *l = loop_make();
	struct found found = {0};

	loop_lookup_cancel(loop_look_up(l, "localhost", 1, on_found, &found));
	loop_run(l);
	ck_assert_uint_eq(found.calls, 0);
}
END_TEST

UNIT_MAIN("loop", run_returns_when_nothing_is_left, posts_run_in_order_and_may_post,
	stop_ends_the_run_and_the_next_run_goes_on, posts_that_did_not_run_are_forgotten,
	a_held_loop_waits_for_posts_of_other_threads, a_readable_descriptor_is_reported,
	what_is_watched_can_be_changed, a_paused_watch_keeps_nothing_waiting,
	a_hang_up_makes_the_descriptor_readable, a_descriptor_that_cannot_be_watched_is_an_error,
	a_timer_fires_after_its_delay_and_repeats, a_stopped_timer_does_not_fire,
	stop_in_a_timer_that_is_due_waits_for_nothing, a_signal_reaches_the_loop,
	a_signal_that_cannot_be_caught_is_an_error, hosts_become_endpoints,
	a_host_that_cannot_be_found_is_named, a_cancelled_lookup_tells_nobody)
