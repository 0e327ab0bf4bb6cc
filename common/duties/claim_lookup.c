/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/claim_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "kube/list.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"

#define TIMEOUT_MS  10000
#define NAME_PREFIX "pvc-"

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
	struct lookup *lookups;
	struct kube_list *claims;  /* all of them; NULL: it does not run, or has ended */
	struct kube_list *volumes; /* likewise */
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
		kube_object_free(&kube_kind_volumes, l->volume);
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
		.node_ids = v ? (const char *const *)v->node_ids : NULL,
		.n_node_ids = v ? strv_len(v->node_ids) : 0,
		.has_claim = v || l->has_claim, /* not looked for: the PV decides */
		.is_referenced = l->is_referenced,
	};

	finish(l, &state, /* error= */ NULL);
}

static void start_lists(struct claim_reader *c);

/* @error: NULL: both lists are complete */
static void answer_listed(struct claim_reader *c, const struct error *error)
{
	struct lookup *next;

	for (struct lookup *l = c->lookups; l; l = next) {
		next = l->next;
		if (!l->listed)
			continue;
		if (error)
			finish(l, /* state= */ NULL, error);
		else
			finish_with(l, l->volume);
	}
	start_lists(c);
}

static void end_list(struct claim_reader *c, struct kube_list **list, const struct error *error)
{
	kube_list_free(TAKE_PTR(*list));
	if (error) {
		kube_list_free(TAKE_PTR(c->claims));
		kube_list_free(TAKE_PTR(c->volumes));
	}
	if (!c->claims && !c->volumes)
		answer_listed(c, error);
}

static void claims_ended(void *user, const struct error *error)
{
	struct claim_reader *c = user;

	end_list(c, &c->claims, error);
}

static void volumes_ended(void *user, const struct error *error)
{
	struct claim_reader *c = user;

	end_list(c, &c->volumes, error);
}

static void take_claim(void *user, void *object)
{
	struct kube_claim *claim = object;
	struct claim_reader *c = user;

	for (struct lookup *l = c->lookups; l; l = l->next) {
		if (l->listed && str_starts(l->name, NAME_PREFIX) &&
			str_eq(l->name + strlen(NAME_PREFIX), claim->meta.uid))
			l->has_claim = true;
	}
	kube_object_free(&c->claim_kind, claim);
}

/* The PV of the name itself was read on its own. */
static bool refers_to(const struct kube_volume *v, const struct lookup *l)
{
	return str_eq(v->driver, l->owner->driver_name) && str_eq(v->handle, l->handle) &&
	       !str_eq(v->meta.name, l->name);
}

static void take_volume(void *user, void *object)
{
	struct kube_volume *volume = object;
	struct claim_reader *c = user;

	for (struct lookup *l = c->lookups; l; l = l->next)
		l->is_referenced = l->is_referenced || (l->listed && refers_to(volume, l));
	kube_object_free(&kube_kind_volumes, volume);
}

static void start_lists(struct claim_reader *c)
{
	static const struct kube_list_events claim_events = {take_claim, claims_ended};
	static const struct kube_list_events volume_events = {take_volume, volumes_ended};
	bool any = false;

	if (c->claims || c->volumes)
		return;
	for (struct lookup *l = c->lookups; l; l = l->next) {
		l->listed = l->waits;
		any = any || l->waits;
	}
	if (!any)
		return;
	c->claims = kube_list_new(c->client, &c->claim_kind, &claim_events, c);
	c->volumes = kube_list_new(c->client, &kube_kind_volumes, &volume_events, c);
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
	volume = kube_object_decode(&kube_kind_volumes, body, &err);
	if (!volume) {
		finish(l, /* state= */ NULL, err);
		return;
	}
	if (!str_eq(volume->driver, l->owner->driver_name) || !str_eq(volume->handle, l->handle)) {
		wait_for_lists(l, volume);
		return;
	}
	finish_with(l, volume);
	kube_object_free(&kube_kind_volumes, volume);
}

static void look_up(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user)
{
	/* the name comes from a node */
	const struct kube_object_call call = {
		.verb = KUBE_GET, .kind = &kube_kind_volumes, .name = volume_name, .timeout_ms = TIMEOUT_MS};
	struct claim_reader *c = self;
	struct lookup *l = x_calloc(1, sizeof(*l));

	*l = (struct lookup){.owner = c,
		.name = x_strdup(volume_name),
		.handle = x_strdup(handle),
		.fn = fn,
		.user = user,
		.next = c->lookups};
	c->lookups = l;
	l->request = kube_object_call(c->client, &call, got_volume, l);
}

struct claim_reader *claim_reader_new(struct kube_client *client, const char *driver_name)
{
	struct claim_reader *c = x_calloc(1, sizeof(*c));

	c->client = client;
	c->driver_name = driver_name;
	c->claim_kind = kube_kind_claims;
	c->claim_kind.metadata_only = true;
	return c;
}

void claim_reader_free(struct claim_reader *c)
{
	CLEANUP(error_freep) struct error *gone = NULL;

	if (!c)
		return;
	kube_list_free(c->claims);
	kube_list_free(c->volumes);
	(void)err_set(&gone, ERR_CANCELLED, "the client is being freed");
	while (c->lookups)
		finish(c->lookups, /* state= */ NULL, gone);
	free(c);
}

bool claim_lookup_finds(const char *volume_name)
{
	return str_starts(volume_name, NAME_PREFIX) &&
	       strlen(volume_name) == strlen(NAME_PREFIX) + UUID_TEXT_LEN &&
	       strspn(volume_name + strlen(NAME_PREFIX), "0123456789abcdef-") == UUID_TEXT_LEN;
}

struct claim_lookup claim_reader_lookup(struct claim_reader *c)
{
	return (struct claim_lookup){.look = look_up, .self = c};
}
