/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - the event loop: descriptors, timers, signals, and work posted from other threads. Over libuv.
 *
 * One thread runs a loop; every function here belongs to that thread, except loop_post(), which any thread
 * may call. Callbacks run on the loop thread and must not wait. Handles may be closed from inside their own
 * callback.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct loop;
struct loop_watch;
struct loop_timer;
struct loop_signal;
struct loop_stop_signals;
struct loop_lookup;

enum loop_events { LOOP_READ = 1, LOOP_WRITE = 2 };

/* @failed: an error is pending on the descriptor; a read or SO_ERROR returns it, and no further events are
 * reported. A hang-up is reported as readiness for all watched events. */
typedef void (*loop_fd_fn)(void *user, unsigned events, bool failed);
typedef void (*loop_fn)(void *user);

/** loop_new() - create a loop. Return: 0, or -1 with ERR_INTERNAL. @ret: loop_free() after all handles are
 * closed.
 */
int loop_new(struct loop **ret, struct error **err) MUST_CHECK;

/** loop_free() - destroy @l; NULL is allowed. Posted functions that have not run are dropped. */
void loop_free(struct loop *l);
DEFINE_CLEANUP(struct loop *, loop_free);

/** loop_run() - run until loop_stop(), or until nothing is left to wait for: no descriptor, active timer,
 * signal, hold or post. */
void loop_run(struct loop *l);

/** loop_stop() - make loop_run() return after the current round. */
void loop_stop(struct loop *l);

/** loop_post() - run @fn(@user) on the loop thread soon, in the order of the calls. Any thread. */
void loop_post(struct loop *l, loop_fn fn, void *user);

/** loop_hold() - another thread will post something: loop_run() does not end before loop_release() was called
 * as often. */
void loop_hold(struct loop *l);
void loop_release(struct loop *l);

/** loop_watch_fd() - watch @fd (borrowed) for @events. Return: 0, or -1 with ERR_INTERNAL. */
int loop_watch_fd(struct loop *l, int fd, unsigned events, loop_fd_fn fn, void *user, struct loop_watch **ret,
	struct error **err) MUST_CHECK;

/** loop_watch_set() - change the events that are watched; 0 pauses. */
void loop_watch_set(struct loop_watch *w, unsigned events);

/** loop_watch_close() - stop watching; the descriptor may be closed right after. NULL is allowed. */
void loop_watch_close(struct loop_watch *w);

/** loop_timer_new() - an inactive timer. Return: never NULL; loop_timer_close(). */
struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *user);

/** loop_timer_set() - fire once after @delay_ms, and then every @repeat_ms if that is not 0; restarts a
 * running one. */
void loop_timer_set(struct loop_timer *t, uint64_t delay_ms, uint64_t repeat_ms);

/** loop_timer_stop() - make @t inactive; it can be set again. */
void loop_timer_stop(struct loop_timer *t);

/** loop_timer_detach() - loop_run() may end although @t is active. */
void loop_timer_detach(struct loop_timer *t);

/** loop_timer_close() - destroy @t; NULL is allowed. */
void loop_timer_close(struct loop_timer *t);

/** loop_on_signal() - call @fn on the loop thread for @signum. Return: 0, or -1 with ERR_INTERNAL. */
int loop_on_signal(struct loop *l, int signum, loop_fn fn, void *user, struct loop_signal **ret,
	struct error **err) MUST_CHECK;

/** loop_signal_close() - stop catching; NULL is allowed. */
void loop_signal_close(struct loop_signal *s);

/**
 * loop_on_stop() - call @fn on the loop thread, once or more often, when the program is asked to end: by
 * SIGTERM, SIGINT, or SIGHUP, which comes when the terminal is closed in which a server was started by hand.
 * SIGHUP stays ignored if it was (nohup).
 * @ret: loop_stop_signals_close()
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int loop_on_stop(struct loop *l, loop_fn fn, void *user, struct loop_stop_signals **ret,
	struct error **err) MUST_CHECK;

/** loop_stop_signals_close() - stop catching; NULL is allowed. */
void loop_stop_signals_close(struct loop_stop_signals *s);
DEFINE_CLEANUP(struct loop_stop_signals *, loop_stop_signals_close);

/* @endpoints: "tcp://ADDRESS:PORT" of each address, in the order of getaddrinfo(3), NULL-terminated; NULL if
 * and only if @error is set (ERR_UNAVAILABLE). Both are borrowed for the time of the callback. */
typedef void (*loop_lookup_fn)(void *user, char *const *endpoints, const struct error *error);

/** loop_look_up() - find the TCP addresses of @host, a name or an address. @fn: called once, never before
 * this returned; the handle is invalid then. Return: never NULL. Source: getaddrinfo(3), on a thread of
 * libuv. */
struct loop_lookup *loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user);

/** loop_lookup_cancel() - @fn is not called; the loop waits for the thread all the same. NULL is allowed. */
void loop_lookup_cancel(struct loop_lookup *u);
