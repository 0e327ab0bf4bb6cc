/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/informer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "kube/informer_private.h"

#define PAGE_OBJECTS 200
#define PAGE_MS      60000

/* client-go tools/cache/reflector.go: so that not all watches of a server end at once. */
#define WATCH_MIN_S 300
#define WATCH_MAX_S 600
/* What the server may be late with the end that it was asked for. */
#define WATCH_LATE_MS 30000

#define METADATA "g=meta.k8s.io;v=v1,application/json"

static void next_request(void *user);

struct informer *informer_new(struct kube_client *client, const struct kube_kind *kind,
	const struct informer_events *events, void *user)
{
	struct informer *i = x_calloc(1, sizeof(*i));

	i->client = client;
	i->kind = kind;
	i->events = events;
	i->user = user;
	kube_store_init(&i->store, kind);
	i->items = KUBE_ITEMS;
	i->lines = KUBE_LINES;
	backoff_init(&i->backoff, kube_client_backoff_ms(client));
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
	kube_store_done(&i->store);
	kube_items_done(&i->items);
	kube_lines_done(&i->lines);
	error_free(i->fault);
	free(i->told);
	free(i->version);
	free(i->list_version);
	free(i->next_page);
	free(i);
}

bool informer_is_synced(const struct informer *i)
{
	return i->is_synced;
}

uint64_t informer_failing_ns(const struct informer *i)
{
	return i->failing_ns;
}

const void *informer_get(const struct informer *i, const char *key)
{
	const struct kube_stored *e = kube_store_get(&i->store, key);

	return e ? e->object : NULL;
}

void informer_each(const struct informer *i, void (*fn)(void *user, const void *object), void *user)
{
	for (const struct kube_stored *e = i->store.first; e; e = e->next)
		fn(user, e->object);
}

/* RFC 3986 section 2.3; tokens and selectors hold "=" and "/". */
static void add_escaped(struct buf *out, const char *text)
{
	for (const char *p = text; *p; p++) {
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
			strchr("-._~", *p))
			buf_addc(out, *p);
		else
			buf_addf(out, "%%%02X", (unsigned char)*p);
	}
}

static void add_selector(struct buf *path, const char *key, const char *selector)
{
	if (!selector)
		return;
	buf_addf(path, "%s=", key);
	add_escaped(path, selector);
	buf_adds(path, "&");
}

static void begin_path(const struct informer *i, struct buf *path)
{
	buf_adds(path, i->kind->path);
	buf_adds(path, "?");
	add_selector(path, "labelSelector", i->kind->label_selector);
	add_selector(path, "fieldSelector", i->kind->field_selector);
}

static void forget_versions(struct informer *i)
{
	free(TAKE_PTR(i->version));
	free(TAKE_PTR(i->list_version));
	free(TAKE_PTR(i->next_page));
}

static void tell(struct informer *i, const struct error *error)
{
	if (i->failing_ns == 0)
		i->failing_ns = clock_ns();
	if (str_eq(i->told, error->msg))
		return;
	free(i->told);
	i->told = x_strdup(error->msg);
	log_warn("objects of the cluster cannot be read; will be tried again", F_STR("kind", i->kind->what),
		F_ERR(error));
}

static void succeed(struct informer *i)
{
	backoff_reset(&i->backoff);
	if (!i->told)
		return;
	free(TAKE_PTR(i->told));
	log_info("objects of the cluster can be read again", F_STR("kind", i->kind->what));
}

static void retry_later(struct informer *i)
{
	uint64_t now_ns = clock_ns();

	backoff_fail(&i->backoff, now_ns);
	loop_timer_set(i->timer, (i->backoff.until_ns - now_ns) / NS_PER_MS + 1, 0);
}

/* A list that was not complete starts over: its pages may belong to different states by then. */
static void page_ended(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct informer *i = user;

	(void)status;
	(void)body;
	i->request = NULL;
	if (i->fault)
		err_set(&err, i->fault->code, "kube: list %s: %s", i->kind->what, i->fault->msg);
	else if (!error && informer_end_page(i, &err) < 0)
		err_wrap(&err, "kube: list %s", i->kind->what);
	if (err)
		error = err;
	kube_items_done(&i->items);
	i->items = KUBE_ITEMS;
	if (!error) {
		succeed(i);
		loop_timer_set(i->timer, 0, 0);
		return;
	}
	/* The pages took longer than the server keeps a state. */
	if (error->code != ERR_RANGE)
		tell(i, error);
	forget_versions(i);
	retry_later(i);
}

static void begin_reply(void *user)
{
	struct informer *i = user;

	i->failing_ns = 0;
}

static void list_page(struct informer *i)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(KUBE_MAX_ENVELOPE_BYTES);
	struct kube_call call = {
		.verb = "list",
		.what = i->kind->what,
		.method = "GET",
		.accept = i->kind->metadata_only ? "application/json;as=PartialObjectMetadataList;" METADATA
						 : NULL,
		.timeout_ms = PAGE_MS,
		.on_data = informer_take_page,
		.on_begin = begin_reply,
	};

	if (!i->next_page) {
		for (struct kube_stored *e = i->store.first; e; e = e->next)
			e->seen = false;
	}
	begin_path(i, &path);
	buf_addf(&path, "limit=%u", PAGE_OBJECTS);
	if (i->next_page) {
		buf_adds(&path, "&continue=");
		add_escaped(&path, i->next_page);
	}
	call.path = buf_str(&path);
	i->request = kube_client_call(i->client, &call, page_ended, i);
}

/* A watch that ended without an event or error, which the server could do for ever, is resumed after a wait.
 */
static void watch_ended(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct informer *i = user;
	bool is_expired;

	(void)body;
	i->request = NULL;
	if (i->fault) {
		err_set(&err, i->fault->code, "kube: watch %s: %s", i->kind->what, i->fault->msg);
		error = err;
	}
	kube_lines_done(&i->lines);
	is_expired = error && error->code == ERR_RANGE;
	if (i->got_line)
		succeed(i);
	if (error && !is_expired && !(error->code == ERR_DEADLINE && status == 200))
		tell(i, error);
	if (is_expired || i->is_unsure)
		forget_versions(i);
	if (i->got_line && (!error || is_expired))
		loop_timer_set(i->timer, 0, 0);
	else
		retry_later(i);
}

static bool take_watch(void *user, struct span data)
{
	struct informer *i = user;
	bool more = informer_take_watch(i, data);

	if (i->got_line && i->told)
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
		.accept =
			i->kind->metadata_only ? "application/json;as=PartialObjectMetadata;" METADATA : NULL,
		.timeout_ms = seconds * 1000 + WATCH_LATE_MS,
		.on_data = take_watch,
		.on_begin = begin_reply,
	};

	begin_path(i, &path);
	buf_addf(&path,
		"watch=true&allowWatchBookmarks=true&timeoutSeconds=%u&resourceVersion=", (unsigned)seconds);
	add_escaped(&path, i->version);
	call.path = buf_str(&path);
	i->request = kube_client_call(i->client, &call, watch_ended, i);
}

static void next_request(void *user)
{
	struct informer *i = user;

	error_clear(&i->fault);
	i->is_unsure = false;
	i->got_line = false;
	if (i->version)
		watch(i);
	else
		list_page(i);
}
