/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/informer.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "kube/informer_copy.h"
#include "kube/list_page.h"
#include "pacing/backoff.h"

/* client-go tools/cache/reflector.go: so that not all watches of a server end at once. */
#define WATCH_MIN_S 300
#define WATCH_MAX_S 600
/* Milliseconds by which the server may end a watch later than timeoutSeconds of the request says. */
#define WATCH_LATE_MS 30000

struct informer {
	struct kube_client *client;
	const struct kube_kind *kind;
	struct informer_copy copy;
	struct loop_timer *timer; /* until the next request */
	struct kube_request *request;
	struct backoff backoff;
	char *logged;        /* the failure that was logged last; NULL: requests succeed */
	uint64_t failing_ns; /* since when requests fail; 0: they do not */
};

static void next_request(void *user);

struct informer *informer_new(struct kube_client *client, const struct kube_kind *kind,
	const struct informer_events *events, void *user)
{
	struct informer *i = x_calloc(1, sizeof(*i));

	i->client = client;
	i->kind = kind;
	informer_copy_init(&i->copy, kind, events, user);
	backoff_init(&i->backoff, kube_client_reconnect_backoff_ms(client));
	i->timer = loop_timer_new(kube_client_loop(client), next_request, i);
	loop_timer_set(i->timer, 0, 0);
	return i;
}

void informer_free(struct informer *i)
{
	if (!i)
		return;
	kube_request_cancel(i->request);
	loop_timer_close(i->timer);
	informer_copy_done(&i->copy);
	free(i->logged);
	free(i);
}

bool informer_is_synced(const struct informer *i)
{
	return i->copy.is_synced;
}

uint64_t informer_failing_ns(const struct informer *i)
{
	return i->failing_ns;
}

const void *informer_get(const struct informer *i, const char *key)
{
	const struct kube_stored *e = kube_store_get(&i->copy.store, key);

	return e ? e->object : NULL;
}

void informer_each(const struct informer *i, void (*fn)(void *user, const void *object), void *user)
{
	for (const struct kube_stored *e = i->copy.store.first; e; e = e->next)
		fn(user, e->object);
}

static void note_failing(struct informer *i)
{
	if (i->failing_ns == 0)
		i->failing_ns = clock_ns();
}

static void log_failure(struct informer *i, const struct error *error)
{
	note_failing(i);
	if (str_eq(i->logged, error->msg))
		return;
	free(i->logged);
	i->logged = x_strdup(error->msg);
	log_warn("cannot read objects from the Kubernetes API; will try again", F_STR("kind", i->kind->what),
		F_ERR(error));
}

static void succeed(struct informer *i)
{
	backoff_reset(&i->backoff);
	if (!i->logged)
		return;
	free(TAKE_PTR(i->logged));
	log_info("objects are read from the Kubernetes API again", F_STR("kind", i->kind->what));
}

static void retry_later(struct informer *i)
{
	uint64_t now_ns = clock_ns();

	backoff_fail(&i->backoff, now_ns);
	loop_timer_set(i->timer, (i->backoff.until_ns - now_ns) / NS_PER_MS + 1, 0);
}

/* Earlier pages of a list that is not complete are no success: the next one may fail each time. */
static void end_list(struct informer *i)
{
	i->failing_ns = 0;
	succeed(i);
}

/* A list that was not complete starts over: its pages may belong to different states by then. */
static void page_ended(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct informer *i = user;

	(void)status;
	(void)body;
	i->request = NULL;
	if (i->copy.fault)
		err_set(&err, i->copy.fault->code, "kube: list %s: %s", i->kind->what, i->copy.fault->msg);
	else if (!error && informer_copy_end_page(&i->copy, &err) < 0)
		err_wrap(&err, "kube: list %s", i->kind->what);
	if (err)
		error = err;
	informer_copy_end_request(&i->copy);
	if (!error) {
		if (i->copy.version)
			end_list(i);
		loop_timer_set(i->timer, 0, 0);
		return;
	}
	note_failing(i);
	/* The pages took longer than the server keeps a state. */
	if (error->code != ERR_RANGE)
		log_failure(i, error);
	informer_copy_forget_versions(&i->copy);
	retry_later(i);
}

static void accept_watch(void *user)
{
	struct informer *i = user;

	i->failing_ns = 0;
}

static void note_skipped(const struct informer *i, uint64_t n_before)
{
	if (i->copy.n_skipped > n_before)
		kube_client_note_skipped(i->client, i->kind->what, i->copy.n_skipped - n_before);
}

static bool take_page(void *user, struct span data)
{
	struct informer *i = user;
	uint64_t n_skipped = i->copy.n_skipped;
	bool more = informer_copy_take_page(&i->copy, data);

	note_skipped(i, n_skipped);
	return more;
}

static void list_page(struct informer *i)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(KUBE_MAX_ENVELOPE_BYTES);
	struct kube_call call = {
		.verb = "list",
		.what = i->kind->what,
		.method = "GET",
		.accept = kube_list_page_accept(i->kind),
		.timeout_ms = KUBE_PAGE_MS,
		.on_data = take_page,
	};

	if (!i->copy.next_page)
		informer_copy_begin_list(&i->copy);
	kube_list_page_path(i->kind, i->copy.next_page, &path);
	call.path = buf_str(&path);
	i->request = kube_client_call(i->client, &call, page_ended, i);
}

/* A watch that ended without an event or error, which the server could repeat for ever, is resumed after a
 * wait. */
static void watch_ended(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct informer *i = user;
	/* The server or its etcd was away, perhaps to be restored from a backup, which has other objects
	 * under the versions that this copy knows: a watch from there would say nothing until the server
	 * reaches its version again. 504 is the answer of a server that lags behind. */
	bool is_unanswered = error && (status == 0 || (status >= 500 && status != 504));
	bool is_expired;

	(void)body;
	i->request = NULL;
	if (i->copy.fault) {
		err_set(&err, i->copy.fault->code, "kube: watch %s: %s", i->kind->what, i->copy.fault->msg);
		error = err;
	}
	informer_copy_end_request(&i->copy);
	is_expired = error && error->code == ERR_RANGE;
	if (i->copy.got_line)
		succeed(i);
	if (error && !is_expired && !(error->code == ERR_DEADLINE && status == 200))
		log_failure(i, error);
	if (is_expired || i->copy.is_unsure || is_unanswered)
		informer_copy_forget_versions(&i->copy);
	if (i->copy.got_line && (!error || is_expired))
		loop_timer_set(i->timer, 0, 0);
	else
		retry_later(i);
}

static bool take_watch(void *user, struct span data)
{
	struct informer *i = user;
	uint64_t n_skipped = i->copy.n_skipped;
	bool more = informer_copy_take_watch(&i->copy, data);

	note_skipped(i, n_skipped);
	if (i->copy.got_line && i->logged)
		succeed(i);
	return more;
}

static void watch(struct informer *i)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(KUBE_MAX_ENVELOPE_BYTES);
	uint64_t seconds = WATCH_MIN_S + random_u64() % (WATCH_MAX_S - WATCH_MIN_S + 1);
	struct kube_call call = {
		.verb = "watch",
		.what = i->kind->what,
		.method = "GET",
		.accept = i->kind->metadata_only
				  ? "application/json;as=PartialObjectMetadata;" KUBE_METADATA_ACCEPT
				  : NULL,
		.timeout_ms = seconds * 1000 + WATCH_LATE_MS,
		.on_data = take_watch,
		.on_begin = accept_watch,
	};

	kube_query_begin(i->kind, &path);
	buf_addf(&path,
		"watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", (unsigned)seconds);
	kube_query_value(&path, i->copy.version);
	call.path = buf_str(&path);
	i->request = kube_client_call(i->client, &call, watch_ended, i);
}

static void next_request(void *user)
{
	struct informer *i = user;

	informer_copy_begin_request(&i->copy);
	if (i->copy.version)
		watch(i);
	else
		list_page(i);
}
