#include "cluster/claim_lookup.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/kube/informer.h"
#include "cluster/kube/objects.h"

#define TIMEOUT_MS 10000
/* for all pages of the list */
#define LIST_TIMEOUT_MS 60000
#define NAME_PREFIX     "pvc-"

struct lookup {
	struct claim_reader *owner;
	char *name;
	claim_lookup_fn fn;
	void *user;
	struct kube_request *request; /* of the PV */
	bool waits;                   /* for a list of claims */
	bool listed;                  /* that list has begun after the PV was not found */
	bool has_claim;
	struct lookup *next;
};

struct claim_reader {
	struct kube_client *client;
	const char *driver_name;
	struct kube_kind kind;
	struct lookup *lookups;
	struct informer *list;    /* of all claims; NULL: none runs */
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
	free(l->name);
	free(l);
}

static void list_claims(struct claim_reader *c);

static void timer_fired(void *user)
{
	CLEANUP(error_freep) struct error *late = NULL;
	struct claim_reader *c = user;
	bool complete = informer_is_synced(c->list);
	struct lookup *next;

	informer_free(TAKE_PTR(c->list));
	if (!complete)
		(void)err_set(&late, ERR_DEADLINE, "kube: list persistentvolumeclaims: no answer in %d s",
			LIST_TIMEOUT_MS / 1000);
	for (struct lookup *l = c->lookups; l; l = next) {
		const struct claim_state state = {.has_claim = l->has_claim};

		next = l->next;
		if (l->listed)
			finish(l, complete ? &state : NULL, late);
	}
	list_claims(c);
}

static void visit_claim(void *user, const void *object)
{
	const struct kube_claim *claim = object;
	struct claim_reader *c = user;

	for (struct lookup *l = c->lookups; l; l = l->next) {
		if (l->listed && str_eq(l->name + strlen(NAME_PREFIX), claim->meta.uid))
			l->has_claim = true;
	}
}

static void synced(void *user)
{
	struct claim_reader *c = user;

	informer_each(c->list, visit_claim, c);
	loop_timer_set(c->timer, /* delay_ms= */ 0, /* repeat_ms= */ 0);
}

static void list_claims(struct claim_reader *c)
{
	static const struct informer_events events = {.synced = synced};
	bool any = false;

	if (c->list)
		return;
	for (struct lookup *l = c->lookups; l; l = l->next) {
		l->listed = l->waits;
		any = any || l->waits;
	}
	if (!any)
		return;
	loop_timer_set(c->timer, LIST_TIMEOUT_MS, /* repeat_ms= */ 0);
	c->list = informer_new(c->client, &c->kind, &events, c);
}

static void finish_with_volume(struct lookup *l, const struct kube_volume *volume)
{
	bool ours = str_eq(volume->driver, l->owner->driver_name);
	const struct claim_state state = {
		.has_volume = true,
		.handle = ours ? volume->handle : NULL,
		.node_ids = (const char *const *)volume->node_values,
		.n_node_ids = strv_len(volume->node_values),
		.has_claim = true, /* not looked for: the PV decides */
	};

	finish(l, &state, /* error= */ NULL);
}

static void got_volume(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct lookup *l = user;
	struct kube_volume *volume;

	(void)status;
	l->request = NULL;
	if (error && error->code == ERR_NOT_FOUND && str_starts(l->name, NAME_PREFIX)) {
		l->waits = true;
		list_claims(l->owner);
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
	finish_with_volume(l, volume);
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

static void look(void *self, const char *volume_name, claim_lookup_fn fn, void *user)
{
	CLEANUP(free_charp) char *path = path_of(volume_name);
	CLEANUP(free_charp) char *what = x_asprintf("persistentvolumes %s", volume_name);
	const struct kube_call call = {
		.verb = "get", .what = what, .method = "GET", .path = path, .timeout_ms = TIMEOUT_MS};
	struct claim_reader *c = self;
	struct lookup *l = x_calloc(1, sizeof(*l));

	*l = (struct lookup){
		.owner = c, .name = x_strdup(volume_name), .fn = fn, .user = user, .next = c->lookups};
	c->lookups = l;
	l->request = kube_client_call(c->client, &call, got_volume, l);
}

struct claim_reader *claim_reader_new(struct kube_client *client, const char *driver_name)
{
	struct claim_reader *c = x_calloc(1, sizeof(*c));

	c->client = client;
	c->driver_name = driver_name;
	c->kind = kube_kind_claims;
	c->kind.metadata_only = true;
	c->timer = loop_timer_new(kube_client_loop(client), timer_fired, c);
	return c;
}

void claim_reader_free(struct claim_reader *c)
{
	CLEANUP(error_freep) struct error *gone = NULL;

	if (!c)
		return;
	informer_free(c->list);
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
