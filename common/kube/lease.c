/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/lease.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "kube/lease_record.h"
#include "kube/object_call.h"

#define DURATION_MS 15000
#define RENEW_MS    10000
#define RETRY_MS    5000
#define RELEASE_MS  1000
#define MIN_PING_MS 500
#define MAX_BODY    (128u << 10)

struct lease {
	struct lease_config config; /* its strings are those below */
	struct kube_client *client; /* our own */
	char *namespace;
	char *name;
	char *identity;
	struct lease_record record;
	struct loop_timer *timer;    /* next request; while stopping: the end of it */
	struct loop_timer *deadline; /* end of leading */
	struct kube_request *request;
	bool is_writing;   /* that request may change the Lease */
	bool must_read;    /* what we know of it is old */
	uint64_t asked_ns; /* when that request was made */
	uint64_t until_ns; /* end of leading */
	bool leading;
	char *logged;             /* the failure that was logged last */
	void (*done)(void *user); /* stopping, or NULL */
	void *done_user;
};

static void tick(void *user);

static void set_leading(struct lease *l, bool leading)
{
	if (l->leading == leading)
		return;
	l->leading = leading;
	if (!leading)
		loop_timer_stop(l->deadline);
	l->config.changed(l->config.user, leading);
}

static void on_deadline(void *user)
{
	set_leading(user, false);
}

struct lease *lease_new(const struct lease_config *config)
{
	struct lease *l = x_calloc(1, sizeof(*l));
	struct loop *loop = kube_client_loop(config->client);
	uint64_t ping_ms;

	l->config = *config;
	l->config.duration_ms = config->duration_ms ? config->duration_ms : DURATION_MS;
	l->config.renew_ms = config->renew_ms ? config->renew_ms : RENEW_MS;
	l->config.retry_ms = config->retry_ms ? config->retry_ms : RETRY_MS;
	ping_ms = l->config.retry_ms * 3 / 10;
	if (ping_ms < MIN_PING_MS)
		ping_ms = MIN_PING_MS;
	l->client = kube_client_sibling(config->client, ping_ms, ping_ms);
	l->namespace = x_strdup(config->namespace);
	l->name = x_strdup(config->name);
	l->identity = x_strdup(config->identity);
	l->record = LEASE_RECORD;
	l->must_read = true;
	l->timer = loop_timer_new(loop, tick, l);
	l->deadline = loop_timer_new(loop, on_deadline, l);
	loop_timer_set(l->timer, 0, 0);
	return l;
}

void lease_free(struct lease *l)
{
	if (!l)
		return;
	kube_request_cancel(l->request);
	kube_client_free(l->client);
	loop_timer_close(l->timer);
	loop_timer_close(l->deadline);
	lease_record_done(&l->record);
	free(l->namespace);
	free(l->name);
	free(l->identity);
	free(l->logged);
	free(l);
}

/* A process that was stopped for long finds out here, before its timers run. */
bool lease_is_leading(const struct lease *l)
{
	return l->leading && clock_ns() < l->until_ns;
}

static void log_failure(struct lease *l, const struct error *error)
{
	if (str_eq(l->logged, error->msg))
		return;
	free(l->logged);
	l->logged = x_strdup(error->msg);
	log_warn("cannot read or renew the leader's Lease; will try again", F_ERR(error));
}

/* Candidates that began together must not stay together. */
static void wait_for_next(struct lease *l, bool soon)
{
	uint64_t wait_ms = soon ? l->config.retry_ms / 10 : l->config.retry_ms;

	if (!l->leading)
		wait_ms += random_u64() % (wait_ms / 5 + 1);
	loop_timer_set(l->timer, wait_ms, 0);
}

static void call(struct lease *l, enum kube_verb verb, struct span body, kube_reply_fn fn)
{
	static const struct kube_kind kind = {
		.path = "/apis/coordination.k8s.io/v1/leases", .what = "leases"};
	const struct kube_object_call request = {.verb = verb,
		.kind = &kind,
		.namespace = l->namespace,
		.name = l->name,
		.body = body,
		.timeout_ms = l->config.retry_ms};

	l->asked_ns = clock_ns();
	l->request = kube_object_call(l->client, &request, fn, l);
	l->is_writing = body.n > 0;
}

static void write_lease(struct lease *l, bool is_new, const char *identity, kube_reply_fn fn)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(MAX_BODY);
	char now[KUBE_TIME_LEN + 1];

	kube_now_format(now);
	lease_record_write(is_new ? NULL : &l->record, l->namespace, l->name, identity,
		(uint32_t)((l->config.duration_ms + 999) / 1000), now, &body);
	call(l, is_new ? KUBE_CREATE : KUBE_UPDATE, buf_span(&body), fn);
}

static void on_stopped(void *user, unsigned status, struct span body, const struct error *error)
{
	struct lease *l = user;

	(void)status;
	(void)body;
	l->request = NULL;
	loop_timer_stop(l->timer);
	if (error)
		log_debug("the Lease was not released", F_ERR(error));
	l->done(l->done_user);
}

/* The timer may end it before the server does. */
static void release(struct lease *l)
{
	if (str_eq(l->record.holder, l->identity))
		write_lease(l, false, "", on_stopped);
	else
		loop_timer_set(l->timer, 0, 0);
}

static void lead(struct lease *l)
{
	uint64_t now_ns = clock_ns();

	l->until_ns = l->asked_ns + l->config.renew_ms * NS_PER_MS;
	if (now_ns >= l->until_ns)
		return;
	loop_timer_set(l->deadline, (l->until_ns - now_ns) / NS_PER_MS, 0);
	set_leading(l, true);
}

/* When the version did not match (409), another replica was faster: the Lease has to be read again. */
static void on_written(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct lease *l = user;
	bool lost_race = status == 409 || (status == 404 && l->leading);

	l->request = NULL;
	l->must_read = error != NULL;
	if (error) {
		if (!lost_race)
			log_failure(l, error);
	} else if (lease_record_read(&l->record, body, clock_ns(), &err) < 0) {
		l->must_read = true;
		log_failure(l, err);
	} else if (!l->done) {
		free(TAKE_PTR(l->logged));
		lead(l);
	}
	/* changed() may have stopped us. */
	if (l->request)
		return;
	if (l->done)
		release(l);
	else
		wait_for_next(l, error && l->leading);
}

static void on_read(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct lease *l = user;

	l->request = NULL;
	if (status == 404) {
		lease_record_done(&l->record);
		write_lease(l, true, l->identity, on_written);
		return;
	}
	if (!error && lease_record_read(&l->record, body, clock_ns(), &err) < 0)
		error = err;
	if (error) {
		log_failure(l, error);
		wait_for_next(l, l->leading);
		return;
	}
	if (!str_eq(l->record.holder, l->identity)) {
		set_leading(l, false);
		if (l->done)
			return;
	}
	if (lease_record_may_take(&l->record, l->identity, clock_ns()))
		write_lease(l, false, l->identity, on_written);
	else
		wait_for_next(l, false);
}

static void tick(void *user)
{
	struct lease *l = user;

	if (l->done) {
		kube_request_cancel(TAKE_PTR(l->request));
		l->done(l->done_user);
	} else if (l->leading && !l->must_read) {
		write_lease(l, false, l->identity, on_written);
	} else {
		call(l, KUBE_GET, (struct span){0}, on_read);
	}
}

void lease_stop(struct lease *l, void (*done)(void *user), void *user)
{
	l->done = done;
	l->done_user = user;
	set_leading(l, false);
	loop_timer_set(l->timer, RELEASE_MS, 0);
	/* The outcome of a write in flight has to be known before the Lease can be released. */
	if (l->request && l->is_writing)
		return;
	kube_request_cancel(TAKE_PTR(l->request));
	release(l);
}
