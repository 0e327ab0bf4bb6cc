/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/fake_kube.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

struct kube_request {
	struct fake_request shown;
	struct kube_client *client;
	kube_reply_fn fn;
	void *user;
	struct kube_request *next;
	bool (*on_data)(void *user, struct span data); /* NULL: the body is given at the end */
};

struct informer {
	struct kube_client *client;
	const struct kube_kind *kind;
	struct informer_events events;
	void *user;
	void **objects; /* begin with a struct kube_meta */
	size_t n;
	size_t *visits; /* allocated: informer_each() is given a constant informer */
	bool synced;
	uint64_t failing_ns;
	struct informer *next;
};

struct kube_client {
	struct loop *loop;
	struct kube_request *requests; /* oldest first */
	struct informer *informers;
};

struct kube_client *fake_kube_new(struct loop *loop)
{
	struct kube_client *c = x_calloc(1, sizeof(*c));

	c->loop = loop;
	return c;
}

static void request_free(struct kube_request *r)
{
	struct kube_request **at = &r->client->requests;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	free(r->shown.verb);
	free(r->shown.method);
	free(r->shown.path);
	free(r->shown.content_type);
	free(r->shown.body);
	free(r);
}

void kube_client_free(struct kube_client *c)
{
	if (!c)
		return;
	assert(!c->requests);
	assert(!c->informers);
	free(c);
}

struct loop *kube_client_loop(const struct kube_client *c)
{
	return c->loop;
}

uint64_t kube_client_reconnect_backoff_ms(const struct kube_client *c)
{
	(void)c;
	return 0;
}

const char *kube_client_namespace(const struct kube_client *c)
{
	(void)c;
	return FAKE_KUBE_NAMESPACE;
}

struct kube_request *kube_client_call(
	struct kube_client *c, const struct kube_call *call, kube_reply_fn fn, void *user)
{
	struct kube_request *r = x_calloc(1, sizeof(*r));
	struct kube_request **at = &c->requests;

	while (*at)
		at = &(*at)->next;
	*at = r;
	r->client = c;
	r->fn = fn;
	r->user = user;
	r->on_data = call->on_data;
	r->shown = (struct fake_request){
		.verb = x_strdup(call->verb),
		.method = x_strdup(call->method),
		.path = x_strdup(call->path),
		.content_type = x_strdup(call->content_type ? call->content_type : ""),
		.body = x_strndup(call->body.n > 0 ? (const char *)call->body.p : "", call->body.n),
	};
	return r;
}

void kube_request_cancel(struct kube_request *r)
{
	if (r)
		request_free(r);
}

const struct fake_request *fake_kube_next(const struct kube_client *c)
{
	return c->requests ? &c->requests->shown : NULL;
}

size_t fake_kube_count(const struct kube_client *c)
{
	size_t n = 0;

	for (const struct kube_request *r = c->requests; r; r = r->next)
		n++;
	return n;
}

static enum err_code code_of(unsigned status, const char *verb)
{
	switch (status) {
	case 403:
		return ERR_PERMISSION;
	case 404:
		return ERR_NOT_FOUND;
	case 409:
		return str_eq(verb, "create") ? ERR_EXISTS : ERR_ABORTED;
	case 422:
		return ERR_INVALID_ARGUMENT;
	default:
		return ERR_UNAVAILABLE;
	}
}

/* @body: of a success. @error: of a failure, borrowed */
static void end_request(struct kube_request *r, unsigned status, const char *body, const struct error *error)
{
	kube_reply_fn fn = r->fn;
	void *user = r->user;

	request_free(r);
	fn(user, status, error ? (struct span){0} : span_of(body), error);
}

void fake_kube_answer(struct kube_client *c, unsigned status, const char *body)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_request *r = c->requests;
	bool ok = status >= 200 && status < 300;

	assert(r);
	if (!ok)
		(void)err_set(&err, code_of(status, r->shown.verb), "kube: %s: %u", r->shown.verb, status);
	if (ok && r->on_data) {
		r->on_data(r->user, span_of(body));
		body = "";
	}
	end_request(r, status, body, err);
}

void fake_kube_cancel(struct kube_client *c)
{
	CLEANUP(error_freep) struct error *err = NULL;

	(void)err_set(&err, ERR_CANCELLED, "kube: the client was closed");
	while (c->requests)
		end_request(c->requests, /* status= */ 0, /* body= */ NULL, err);
}

struct informer *informer_new(struct kube_client *client, const struct kube_kind *kind,
	const struct informer_events *events, void *user)
{
	struct informer *i = x_calloc(1, sizeof(*i));

	*i = (struct informer){
		.client = client, .kind = kind, .events = *events, .user = user, .next = client->informers};
	i->visits = x_calloc(1, sizeof(*i->visits));
	client->informers = i;
	return i;
}

void informer_free(struct informer *i)
{
	struct informer **at;

	if (!i)
		return;
	at = &i->client->informers;
	while (*at != i)
		at = &(*at)->next;
	*at = i->next;
	for (size_t n = 0; n < i->n; n++)
		kube_object_free(i->kind, i->objects[n]);
	free(i->objects);
	free(i->visits);
	free(i);
}

void fake_informer_fail(struct informer *i, uint64_t failing_ns)
{
	i->failing_ns = failing_ns;
}

uint64_t informer_failing_ns(const struct informer *i)
{
	return i->failing_ns;
}

bool informer_is_synced(const struct informer *i)
{
	return i->synced;
}

/* Whether kube_meta_key() of @m is @key. No memory is allocated, since tests have thousands of objects. */
static bool has_key(const struct kube_meta *m, const char *key)
{
	size_t n = m->namespace ? strlen(m->namespace) : 0;

	if (n == 0)
		return str_eq(m->name, key);
	return strncmp(m->namespace, key, n) == 0 && key[n] == '/' && str_eq(m->name, key + n + 1);
}

static size_t find(const struct informer *i, const char *key)
{
	size_t at = 0;

	while (at < i->n && !has_key(i->objects[at], key))
		at++;
	return at;
}

const void *informer_get(const struct informer *i, const char *key)
{
	size_t at = find(i, key);

	return at < i->n ? i->objects[at] : NULL;
}

void informer_each(const struct informer *i, void (*fn)(void *user, const void *object), void *user)
{
	*i->visits += i->n;
	for (size_t n = 0; n < i->n; n++)
		fn(user, i->objects[n]);
}

size_t fake_informer_visits(const struct informer *i)
{
	return *i->visits;
}

static void tell_changed(const struct informer *i, const char *key, const void *old, const void *new)
{
	if (i->events.changed)
		i->events.changed(i->user, key, old, new);
}

struct informer *fake_kube_informer(const struct kube_client *c, const char *what)
{
	struct informer *i = c->informers;

	while (i && !str_eq(i->kind->what, what))
		i = i->next;
	return i;
}

const struct kube_kind *fake_informer_kind(const struct informer *i)
{
	return i->kind;
}

static void leave_out(struct informer *i, const char *key, void *object)
{
	size_t at = find(i, key);

	if (at < i->n) {
		void *old = i->objects[at];

		i->objects[at] = i->objects[--i->n];
		tell_changed(i, key, old, object);
		kube_object_free(i->kind, old);
	}
	kube_object_free(i->kind, object);
}

void fake_informer_put(struct informer *i, const char *json)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of(json));
	CLEANUP(error_freep) struct error *err = NULL;
	void *object = kube_object_read(i->kind, r, &err);
	CLEANUP(free_charp) char *key = NULL;
	void *old = NULL;
	size_t at;

	assert(object);
	key = kube_meta_key(object);
	if (i->kind->keeps && !i->kind->keeps(i->kind->keeps_user, object)) {
		leave_out(i, key, object);
		return;
	}
	at = find(i, key);
	if (at == i->n) {
		i->objects = x_realloc(i->objects, i->n + 1, sizeof(void *));
		i->n++;
	} else {
		old = i->objects[at];
	}
	i->objects[at] = object;
	tell_changed(i, key, old, object);
	if (old)
		kube_object_free(i->kind, old);
}

void fake_informer_remove(struct informer *i, const char *key)
{
	size_t at = find(i, key);
	void *old;

	assert(at < i->n);
	old = i->objects[at];
	i->objects[at] = i->objects[--i->n];
	tell_changed(i, key, old, NULL);
	kube_object_free(i->kind, old);
}

void fake_informer_sync(struct informer *i)
{
	i->synced = true;
	if (i->events.synced)
		i->events.synced(i->user);
}
