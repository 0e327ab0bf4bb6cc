/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/events.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "kube/object_call.h"

#define MAX_REMEMBERED    1024
#define AGAIN_NS          (60 * NS_PER_S)
#define MAX_MESSAGE_BYTES 1024 /* core/v1: what the API server takes */
#define MAX_NAME_BYTES    200  /* of 253, so that there is room for the number behind it */
#define MAX_BODY_BYTES    (64u << 10)
#define REQUEST_MS        10000

/* The Events with one reason about one object. */
struct sent {
	struct sent *next; /* the latest comes first */
	struct kube_events *events;
	char *api_version;
	char *kind;
	char *namespace; /* of the object, or NULL */
	char *object;
	char *uid;
	char *reason;
	char *type;
	char *message;
	char *place; /* namespace of the Event */
	char *name;  /* of the Event */
	char first_time[KUBE_TIME_LEN + 1];
	uint64_t posted_ns;
	uint64_t count;
	struct kube_request *request;
};

struct kube_events {
	struct kube_client *client;
	char *component;
	char *instance;
	struct sent *first;
	size_t n;
};

struct kube_events *kube_events_new(struct kube_client *client, const char *component, const char *instance)
{
	struct kube_events *e = x_calloc(1, sizeof(*e));

	e->client = client;
	e->component = x_strdup(component);
	e->instance = x_strdup(instance);
	return e;
}

static void sent_free(struct sent *t)
{
	kube_request_cancel(t->request);
	free(t->api_version);
	free(t->kind);
	free(t->namespace);
	free(t->object);
	free(t->uid);
	free(t->reason);
	free(t->type);
	free(t->message);
	free(t->place);
	free(t->name);
	free(t);
}

void kube_events_free(struct kube_events *e)
{
	struct sent *t;

	if (!e)
		return;
	while ((t = e->first)) {
		e->first = t->next;
		sent_free(t);
	}
	free(e->component);
	free(e->instance);
	free(e);
}

static bool is_of(const struct sent *t, const struct kube_reference *object, const char *reason)
{
	return str_eq(t->uid, object->uid) && str_eq(t->object, object->name) &&
	       str_eq(t->namespace, object->namespace) && str_eq(t->kind, object->kind) &&
	       str_eq(t->reason, reason);
}

/* Return: what it is, taken out of the list, or NULL. */
static struct sent *take(struct kube_events *e, const struct kube_reference *object, const char *reason)
{
	for (struct sent **place = &e->first; *place; place = &(*place)->next) {
		struct sent *t = *place;

		if (!is_of(t, object, reason))
			continue;
		*place = t->next;
		e->n--;
		return t;
	}
	return NULL;
}

static void forget_oldest(struct kube_events *e)
{
	for (struct sent **place = &e->first; *place; place = &(*place)->next) {
		if ((*place)->next)
			continue;
		sent_free(TAKE_PTR(*place));
		e->n--;
		return;
	}
}

static void remember(struct kube_events *e, struct sent *t)
{
	if (e->n == MAX_REMEMBERED)
		forget_oldest(e);
	t->next = e->first;
	e->first = t;
	e->n++;
}

static void add_object(struct json_writer *w, const struct sent *t)
{
	json_key(w, "involvedObject");
	json_object(w);
	json_key_str(w, "apiVersion", t->api_version);
	json_key_str(w, "kind", t->kind);
	if (t->namespace)
		json_key_str(w, "namespace", t->namespace);
	json_key_str(w, "name", t->object);
	if (t->uid)
		json_key_str(w, "uid", t->uid);
	json_object_end(w);
}

static void add_source(struct json_writer *w, const struct sent *t)
{
	json_key(w, "source");
	json_object(w);
	json_key_str(w, "component", t->events->component);
	json_object_end(w);
	json_key_str(w, "reportingComponent", t->events->component);
	json_key_str(w, "reportingInstance", t->events->instance);
}

static void add_occurrence(struct json_writer *w, const struct sent *t)
{
	char now[KUBE_TIME_LEN + 1];

	kube_now_format(now);
	json_key_str(w, "message", t->message);
	json_key_str(w, "lastTimestamp", now);
	json_key_u64(w, "count", t->count);
}

static void write_event(const struct sent *t, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key_str(&w, "apiVersion", "v1");
	json_key_str(&w, "kind", "Event");
	json_key(&w, "metadata");
	json_object(&w);
	json_key_str(&w, "namespace", t->place);
	json_key_str(&w, "name", t->name);
	json_object_end(&w);
	add_object(&w, t);
	add_source(&w, t);
	json_key_str(&w, "type", t->type);
	json_key_str(&w, "reason", t->reason);
	json_key_str(&w, "firstTimestamp", t->first_time);
	add_occurrence(&w, t);
	json_object_end(&w);
}

static void on_reply(void *user, unsigned status, struct span body, const struct error *error);

static void request(struct sent *t, enum kube_verb verb, struct span body)
{
	static const struct kube_kind kind = {.path = "/api/v1/events", .what = "events"};
	const struct kube_object_call call = {.verb = verb,
		.kind = &kind,
		.namespace = t->place,
		.name = t->name,
		.body = body,
		.timeout_ms = REQUEST_MS};

	t->request = kube_object_call(t->events->client, &call, on_reply, t);
}

static void create(struct sent *t)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(MAX_BODY_BYTES);

	free(t->name);
	t->name = x_asprintf("%.*s.%016" PRIx64, MAX_NAME_BYTES, t->object, random_u64());
	write_event(t, &body);
	request(t, KUBE_CREATE, buf_span(&body));
}

static void update(struct sent *t)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(MAX_BODY_BYTES);
	struct json_writer w = JSON_WRITER(&body);

	json_object(&w);
	add_occurrence(&w, t);
	json_object_end(&w);
	request(t, KUBE_PATCH, buf_span(&body));
}

/* Events live for an hour: one that is repeated later is created again. */
static void on_reply(void *user, unsigned status, struct span body, const struct error *error)
{
	struct sent *t = user;
	bool is_patch = t->count > 1;

	(void)body;
	t->request = NULL;
	if (!error)
		return;
	if (status == 404 && is_patch) {
		t->count = 1;
		kube_now_format(t->first_time);
		create(t);
		return;
	}
	log_debug("could not write an Event", F_ERR(error));
}

static struct sent *sent_new(
	struct kube_events *e, const struct kube_reference *object, const char *type, const char *reason)
{
	struct sent *t = x_calloc(1, sizeof(*t));

	t->events = e;
	t->api_version = x_strdup(object->api_version);
	t->kind = x_strdup(object->kind);
	t->namespace = x_strdup(object->namespace);
	t->object = x_strdup(object->name);
	t->uid = x_strdup(object->uid);
	t->reason = x_strdup(reason);
	t->type = x_strdup(type);
	t->place = x_strdup(object->namespace ? object->namespace : "default");
	kube_now_format(t->first_time);
	return t;
}

/* Cuts the message at its limit, but not in the middle of a UTF-8 character. */
static char *cut(const char *message)
{
	size_t n = strnlen(message, MAX_MESSAGE_BYTES + 1);

	if (n > MAX_MESSAGE_BYTES) {
		n = MAX_MESSAGE_BYTES;
		while (n > 0 && ((unsigned char)message[n] & 0xc0) == 0x80)
			n--;
	}
	return x_strndup(message, n);
}

void kube_event_post(struct kube_events *e, const struct kube_reference *object, const char *type,
	const char *reason, const char *message, uint64_t now_ns)
{
	struct sent *t = take(e, object, reason);
	bool is_new = !t;

	if (is_new)
		t = sent_new(e, object, type, reason);
	remember(e, t);
	t->count++;
	if (!is_new && (t->request || now_ns - t->posted_ns < AGAIN_NS))
		return;
	t->posted_ns = now_ns;
	free(t->message);
	t->message = cut(message);
	if (t->name)
		update(t);
	else
		create(t);
}
