/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/loop.h"

#include <assert.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <uv.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/process.h"

struct post {
	struct post *next;
	loop_fn fn;
	void *user;
};

struct loop {
	uv_loop_t uv;
	uv_async_t wake; /* keeps the loop running only while it is held */
	unsigned holds;
	bool stopped;
	bool in_round;
	pthread_mutex_t lock;
	struct post *posts; /* under lock, in order */
	struct post **posts_end;
};

struct loop_watch {
	uv_poll_t uv;
	loop_fd_fn fn;
	void *user;
};

struct loop_timer {
	uv_timer_t uv;
	loop_fn fn;
	void *user;
};

struct loop_signal {
	uv_signal_t uv;
	loop_fn fn;
	void *user;
};

struct loop_lookup {
	uv_getaddrinfo_t uv;
	int failed; /* to begin; 0: the thread reports it */
	char *host;
	uint16_t port;
	loop_lookup_fn fn; /* NULL: cancelled */
	void *user;
};

/* libuv's calls on handles that are set up fail only when they are used wrongly. */
static void must(int rv)
{
	assert(rv == 0);
	(void)rv;
}

/* Posts run between the rounds; the handle exists to end the wait. */
static void on_wake(uv_async_t *handle)
{
	(void)handle;
}

int loop_new(struct loop **ret, struct error **err)
{
	struct loop *l = x_calloc(1, sizeof(*l));
	int rv = uv_loop_init(&l->uv);

	if (rv < 0) {
		free(l);
		return err_set_errno(err, ERR_INTERNAL, -rv, "event loop");
	}
	rv = uv_async_init(&l->uv, &l->wake, on_wake);
	if (rv < 0) {
		must(uv_loop_close(&l->uv));
		free(l);
		return err_set_errno(err, ERR_INTERNAL, -rv, "event loop");
	}
	uv_unref((uv_handle_t *)&l->wake);
	pthread_mutex_init(&l->lock, NULL);
	l->posts_end = &l->posts;
	*ret = l;
	return 0;
}

static struct post *posts_take(struct loop *l)
{
	struct post *first;

	pthread_mutex_lock(&l->lock);
	first = l->posts;
	l->posts = NULL;
	l->posts_end = &l->posts;
	pthread_mutex_unlock(&l->lock);
	return first;
}

void loop_free(struct loop *l)
{
	struct post *next;

	if (!l)
		return;
	for (struct post *p = posts_take(l); p; p = next) {
		next = p->next;
		free(p);
	}
	uv_close((uv_handle_t *)&l->wake, NULL);
	uv_run(&l->uv, UV_RUN_DEFAULT);
	must(uv_loop_close(&l->uv));
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Runs only the functions that are queued now: functions that post themselves again must not starve the
 * descriptors. */
static bool posts_run(struct loop *l)
{
	struct post *first = posts_take(l);
	struct post *next;

	for (struct post *p = first; p; p = next) {
		next = p->next;
		p->fn(p->user);
		free(p);
	}
	return first != NULL;
}

void loop_run(struct loop *l)
{
	l->stopped = false;
	do {
		l->in_round = true;
		bool waiting = uv_run(&l->uv, UV_RUN_ONCE);
		l->in_round = false;
		bool posted = posts_run(l);

		if (!waiting && !posted)
			break;
	} while (!l->stopped);
}

/* A round begins with the timers that are due, and then waits, unless uv_stop() is called, too. libuv
 * remembers that call until the end of the round, so it must not be made between two rounds. */
void loop_stop(struct loop *l)
{
	l->stopped = true;
	if (l->in_round)
		uv_stop(&l->uv);
}

void loop_post(struct loop *l, loop_fn fn, void *user)
{
	struct post *p = x_calloc(1, sizeof(*p));
	bool first;

	p->fn = fn;
	p->user = user;
	pthread_mutex_lock(&l->lock);
	first = !l->posts;
	*l->posts_end = p;
	l->posts_end = &p->next;
	/* Under the lock, so that the loop cannot be freed between the two by what was posted. */
	if (first)
		must(uv_async_send(&l->wake));
	pthread_mutex_unlock(&l->lock);
}

void loop_hold(struct loop *l)
{
	if (l->holds++ == 0)
		uv_ref((uv_handle_t *)&l->wake);
}

void loop_release(struct loop *l)
{
	assert(l->holds > 0);
	if (--l->holds == 0)
		uv_unref((uv_handle_t *)&l->wake);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
	struct loop_watch *w = handle->data;
	unsigned ready = 0;

	if (events & UV_READABLE)
		ready |= LOOP_READ;
	if (events & UV_WRITABLE)
		ready |= LOOP_WRITE;
	w->fn(w->user, ready, status < 0);
}

int loop_watch_fd(struct loop *l, int fd, unsigned events, loop_fd_fn fn, void *user, struct loop_watch **ret,
	struct error **err)
{
	struct loop_watch *w = x_calloc(1, sizeof(*w));
	int rv = uv_poll_init(&l->uv, &w->uv, fd);

	if (rv < 0) {
		free(w);
		return err_set_errno(err, ERR_INTERNAL, -rv, "watch descriptor %d", fd);
	}
	w->uv.data = w;
	w->fn = fn;
	w->user = user;
	loop_watch_set(w, events);
	*ret = w;
	return 0;
}

void loop_watch_set(struct loop_watch *w, unsigned events)
{
	int wanted = 0;

	if (events & LOOP_READ)
		wanted |= UV_READABLE;
	if (events & LOOP_WRITE)
		wanted |= UV_WRITABLE;
	must(uv_poll_start(&w->uv, wanted, on_poll));
}

void loop_watch_close(struct loop_watch *w)
{
	if (w)
		uv_close((uv_handle_t *)&w->uv, on_closed);
}

static void on_timer(uv_timer_t *handle)
{
	struct loop_timer *t = handle->data;

	t->fn(t->user);
}

struct loop_timer *loop_timer_new(struct loop *l, loop_fn fn, void *user)
{
	struct loop_timer *t = x_calloc(1, sizeof(*t));

	must(uv_timer_init(&l->uv, &t->uv));
	t->uv.data = t;
	t->fn = fn;
	t->user = user;
	return t;
}

void loop_timer_set(struct loop_timer *t, uint64_t delay_ms, uint64_t repeat_ms)
{
	/* libuv counts from the start of the round, which may be long ago. */
	uv_update_time(t->uv.loop);
	must(uv_timer_start(&t->uv, on_timer, delay_ms, repeat_ms));
}

void loop_timer_stop(struct loop_timer *t)
{
	must(uv_timer_stop(&t->uv));
}

void loop_timer_detach(struct loop_timer *t)
{
	uv_unref((uv_handle_t *)&t->uv);
}

void loop_timer_close(struct loop_timer *t)
{
	if (t)
		uv_close((uv_handle_t *)&t->uv, on_closed);
}

static void on_signal(uv_signal_t *handle, int signum)
{
	struct loop_signal *s = handle->data;

	(void)signum;
	s->fn(s->user);
}

int loop_on_signal(
	struct loop *l, int signum, loop_fn fn, void *user, struct loop_signal **ret, struct error **err)
{
	struct loop_signal *s = x_calloc(1, sizeof(*s));
	int rv;

	must(uv_signal_init(&l->uv, &s->uv));
	s->uv.data = s;
	s->fn = fn;
	s->user = user;
	rv = uv_signal_start(&s->uv, on_signal, signum);
	if (rv < 0) {
		uv_close((uv_handle_t *)&s->uv, on_closed);
		return err_set_errno(err, ERR_INTERNAL, -rv, "watch signal %d", signum);
	}
	*ret = s;
	return 0;
}

void loop_signal_close(struct loop_signal *s)
{
	if (s)
		uv_close((uv_handle_t *)&s->uv, on_closed);
}

struct loop_stop_signals {
	struct loop_signal *signals[3];
};

int loop_on_stop(struct loop *l, loop_fn fn, void *user, struct loop_stop_signals **ret, struct error **err)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
	CLEANUP(loop_stop_signals_closep) struct loop_stop_signals *s = x_calloc(1, sizeof(*s));

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		if (numbers[i] == SIGHUP && !process_heeds_sighup())
			continue;
		if (loop_on_signal(l, numbers[i], fn, user, &s->signals[i], err) < 0)
			return -1;
	}
	*ret = TAKE_PTR(s);
	return 0;
}

void loop_stop_signals_close(struct loop_stop_signals *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(s->signals); i++)
		loop_signal_close(s->signals[i]);
	free(s);
}

static void add_endpoint(const struct addrinfo *a, uint16_t port, char ***endpoints)
{
	char host[NI_MAXHOST];

	if (getnameinfo(a->ai_addr, a->ai_addrlen, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0)
		return;
	CLEANUP(free_charp)
	char *endpoint = x_asprintf(a->ai_family == AF_INET6 ? "tcp://[%s]:%u" : "tcp://%s:%u", host, port);
	strv_add(endpoints, endpoint);
}

static void lookup_end(struct loop_lookup *u, int status, const struct addrinfo *list)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(strv_freep) char **endpoints = NULL;

	for (const struct addrinfo *a = list; status == 0 && a; a = a->ai_next)
		add_endpoint(a, u->port, &endpoints);
	if (!endpoints)
		err_set(&err, ERR_UNAVAILABLE, "no address of %s: %s", u->host,
			status < 0 ? uv_strerror(status) : "the look-up returned none");
	if (u->fn)
		u->fn(u->user, endpoints, err);
	free(u->host);
	free(u);
}

static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
	lookup_end(request->data, status, list);
	uv_freeaddrinfo(list);
}

static void on_lookup_failed(void *user)
{
	struct loop_lookup *u = user;

	lookup_end(u, u->failed, NULL);
}

struct loop_lookup *loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user)
{
	static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct loop_lookup *u = x_calloc(1, sizeof(*u));

	u->uv.data = u;
	u->host = x_strdup(host);
	u->port = port;
	u->fn = fn;
	u->user = user;
	/* It refuses names that are too long. */
	u->failed = uv_getaddrinfo(&l->uv, &u->uv, on_looked_up, host, NULL, &hints);
	if (u->failed < 0)
		loop_post(l, on_lookup_failed, u);
	return u;
}

void loop_lookup_cancel(struct loop_lookup *u)
{
	if (!u)
		return;
	u->fn = NULL;
	/* it fails when the thread runs it already: then it ends by itself */
	if (u->failed == 0)
		(void)uv_cancel((uv_req_t *)&u->uv);
}
