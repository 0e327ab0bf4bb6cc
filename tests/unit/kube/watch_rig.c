/* SPDX-License-Identifier: Apache-2.0 */
#include "watch_rig.h"

#include "base/mem.h"

static const struct kube_field thing_fields[] = {KUBE_META(names), KUBE_FIELDS_END};

const struct kube_kind watch_rig_kind = {
	.path = "/api/v1/things",
	.what = "things",
	.size = sizeof(struct thing),
	.fields = thing_fields,
};

static void changed(void *user, const char *key, const void *old, const void *new)
{
	struct watch_rig *w = user;
	const struct thing *t = new;

	if (!new)
		buf_addf(&w->reported, "-%s\n", key);
	else
		buf_addf(&w->reported, "%c%s %s\n", old ? '*' : '+', key, t->meta.resource_version);
}

static void synced(void *user)
{
	struct watch_rig *w = user;

	buf_adds(&w->reported, "synced\n");
}

static const struct informer_events events = {changed, synced};

void watch_rig_open(struct watch_rig *w, const struct kube_kind *kind,
	void (*serve)(struct fake_api *api, const struct fake_request *r))
{
	w->reported = BUF_INIT(4u << 20);
	w->counts = kube_request_counts_new();
	fake_api_open(&w->api, serve,
		(struct kube_client_config){.observer = kube_request_counts_observer(w->counts)});
	w->informer = informer_new(w->api.client, kind ? kind : &watch_rig_kind, &events, w);
}

void watch_rig_close(struct watch_rig *w)
{
	informer_free(w->informer);
	fake_api_close(&w->api);
	kube_request_counts_free(w->counts);
	buf_done(&w->reported);
}

struct telling {
	const struct watch_rig *rig;
	const char *text;
};

static bool is_told(void *user)
{
	const struct telling *t = user;

	return strstr(buf_str(&t->rig->reported), t->text) != NULL;
}

void watch_rig_until(struct watch_rig *w, const char *text)
{
	struct telling t = {w, text};

	fake_until(&w->api, is_told, &t);
}

void watch_rig_send(const struct fake_request *r, const char *text)
{
	fake_say(r, text);
	h2_peer_flush((struct h2_peer_conn *)r->side);
}
