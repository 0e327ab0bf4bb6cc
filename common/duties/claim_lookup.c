/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/claim_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/informer.h"
#include "kube/objects/objects.h"

#define TIMEOUT_MS 10000
/* for all pages of the list */
#define LIST_TIMEOUT_MS 60000
#define NAME_PREFIX     "pvc-"

struct lookup {
	struct claim_reader *owner;
	char *name;
	char *handle;
	claim_lookup_fn fn;
	void *user;
	struct kube_request *request; /* of the PV */
	struct kube_volume *volume;   /* of that name, but another one; NULL if none */
	bool waits;                   /* for the lists */
	bool listed;                  /* the lists have begun after the PV was asked for */
	bool has_claim;
	bool is_referenced;
	struct lookup *next;
};

struct claim_reader {
	struct kube_client *client;
	const char *driver_name;
	struct kube_kind claim_kind;
	struct kube_kind volume_kind;
	struct lookup *lookups;
	struct informer *claims;  /* a list of all; NULL: none runs */
	struct informer *volumes; /* those whose handles are looked for; runs with it */
	struct loop_timer *timer; /* an informer may not be freed from its own calls */
};

static void finish(struct lookup *l, const struct claim_state *state, const struct error *error)
{
	struct lookup **at = &l->owner->lookups;

	while (*at != l)
		at = &(*at)->next;
	*at = l->next;
	kube_request_cancel(l->request);
	l->fn(l->user, state, error);
	if (l->volume)
		kube_kind_volumes.free(l->volume);
	free(l->name);
	free(l->handle);
	free(l);
}

/* @v: the PV of the name; NULL if none */
static void finish_with(struct lookup *l, const struct kube_volume *v)
{
	bool ours = v && str_eq(v->driver, l->owner->driver_name);
	const struct claim_state state = {
		.has_volume = v != NULL,
		.handle = ours ? v->handle : NULL,
		.node_ids = v ? (const char *const *)v->node_values : NULL,
		.n_node_ids = v ? strv_len(v->node_values) : 0,
		.has_claim = v || l->has_claim, /* not looked for: the PV decides */
		.is_referenced = l->is_referenced,
	};

	finish(l, &state, /* error= */ NULL);
}

static void start_lists(struct claim_reader *c);

static bool are_complete(const struct claim_reader *c)
{
	return informer_is_synced(c->claims) && informer_is_synced(c->volumes);
}

static void timer_fired(void *user)
{
	CLEANUP(error_freep) struct error *late = NULL;
	struct claim_reader *c = user;
	bool complete = are_complete(c);
	struct lookup *next;

	informer_free(TAKE_PTR(c->claims));
	informer_free(TAKE_PTR(c->volumes));
	if (!complete)
		(void)err_set(&late, ERR_DEADLINE,
			"kube: list persistentvolumes and persistentvolumeclaims: no answer in %d s",
			LIST_TIMEOUT_MS / 1000);
	for (struct lookup *l = c->lookups; l; l = next) {
		next = l->next;
		if (!l->listed)
			continue;
		if (complete)
			finish_with(l, l->volume);
		else
			finish(l, NULL, late);
	}
	start_lists(c);
}

static void visit_claim(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	struct claim_reader *c = user;

	for (struct lookup *l = c->lookups; l; l = l->next) {
		if (l->listed && str_starts(l->name, NAME_PREFIX) &&
			str_eq(l->name + strlen(NAME_PREFIX), claim->meta.uid))
			l->has_claim = true;
	}
}

/* The PV of the name itself was read on its own. */
static bool refers_to(const struct kube_volume *v, const struct lookup *l)
{
	return str_eq(v->driver, l->owner->driver_name) && str_eq(v->handle, l->handle) &&
	       !str_eq(v->meta.name, l->name);
}

static void visit_volume(void *user, const void *object)
{
	struct claim_reader *c = user;

	for (struct lookup *l = c->lookups; l; l = l->next)
		l->is_referenced = l->is_referenced || (l->listed && refers_to(object, l));
}

static bool is_of_interest(const void *user, const void *object)
{
	const struct claim_reader *c = user;

	for (const struct lookup *l = c->lookups; l; l = l->next) {
		if (refers_to(object, l))
			return true;
	}
	return false;
}

static void synced(void *user)
{
	struct claim_reader *c = user;

	if (!are_complete(c))
		return;
	informer_each(c->claims, visit_claim, c);
	informer_each(c->volumes, visit_volume, c);
	loop_timer_set(c->timer, /* delay_ms= */ 0, /* repeat_ms= */ 0);
}

static void start_lists(struct claim_reader *c)
{
	static const struct informer_events events = {.synced = synced};
	bool any = false;

	if (c->claims)
		return;
	for (struct lookup *l = c->lookups; l; l = l->next) {
		l->listed = l->waits;
		any = any || l->waits;
	}
	if (!any)
		return;
	loop_timer_set(c->timer, LIST_TIMEOUT_MS, /* repeat_ms= */ 0);
	c->claims = informer_new(c->client, &c->claim_kind, &events, c);
	c->volumes = informer_new(c->client, &c->volume_kind, &events, c);
}

static void wait_for_lists(struct lookup *l, struct kube_volume *other)
{
	l->volume = other;
	l->waits = true;
	start_lists(l->owner);
}

static void got_volume(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct lookup *l = user;
	struct kube_volume *volume;

	(void)status;
	l->request = NULL;
	if (error && error->code == ERR_NOT_FOUND) {
		wait_for_lists(l, /* other= */ NULL);
		return;
	}
	if (error) {
		finish(l, /* state= */ NULL, error);
		return;
	}
	volume = kube_volume_decode(body, &err);
	if (!volume) {
		finish(l, /* state= */ NULL, err);
		return;
	}
	if (!str_eq(volume->driver, l->owner->driver_name) || !str_eq(volume->handle, l->handle)) {
		wait_for_lists(l, volume);
		return;
	}
	finish_with(l, volume);
	kube_kind_volumes.free(volume);
}

/* The name comes from a node: it must not lead to another object. */
static char *path_of(const char *name)
{
	static const char unreserved[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	struct buf path = BUF_INIT(4096);
	char *text;

	buf_adds(&path, "/api/v1/persistentvolumes/");
	for (const char *p = name; *p; p++) {
		if (strchr(unreserved, *p))
			buf_addc(&path, *p);
		else
			buf_addf(&path, "%%%02X", (unsigned char)*p);
	}
	text = x_strdup(buf_str(&path));
	buf_done(&path);
	return text;
}

static void look(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user)
{
	CLEANUP(free_charp) char *path = path_of(volume_name);
	CLEANUP(free_charp) char *what = x_asprintf("persistentvolumes %s", volume_name);
	const struct kube_call call = {
		.verb = "get", .what = what, .method = "GET", .path = path, .timeout_ms = TIMEOUT_MS};
	struct claim_reader *c = self;
	struct lookup *l = x_calloc(1, sizeof(*l));

	*l = (struct lookup){.owner = c,
		.name = x_strdup(volume_name),
		.handle = x_strdup(handle),
		.fn = fn,
		.user = user,
		.next = c->lookups};
	c->lookups = l;
	l->request = kube_client_call(c->client, &call, got_volume, l);
}

struct claim_reader *claim_reader_new(struct kube_client *client, const char *driver_name)
{
	struct claim_reader *c = x_calloc(1, sizeof(*c));

	c->client = client;
	c->driver_name = driver_name;
	c->claim_kind = kube_kind_claims;
	c->claim_kind.metadata_only = true;
	c->volume_kind = kube_kind_volumes;
	c->volume_kind.keeps = is_of_interest;
	c->volume_kind.keeps_user = c;
	c->timer = loop_timer_new(kube_client_loop(client), timer_fired, c);
	return c;
}

void claim_reader_free(struct claim_reader *c)
{
	CLEANUP(error_freep) struct error *gone = NULL;

	if (!c)
		return;
	informer_free(c->claims);
	informer_free(c->volumes);
	(void)err_set(&gone, ERR_CANCELLED, "the client is being freed");
	while (c->lookups)
		finish(c->lookups, /* state= */ NULL, gone);
	loop_timer_close(c->timer);
	free(c);
}

struct claim_lookup claim_reader_lookup(struct claim_reader *c)
{
	return (struct claim_lookup){.look = look, .self = c};
}
