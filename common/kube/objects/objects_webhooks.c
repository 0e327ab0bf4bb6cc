/* SPDX-License-Identifier: Apache-2.0 */
/* MutatingWebhookConfigurations. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects_private.h"

/* Nobody has as many; the others are left as they are. */
#define MAX_HOOKS 1024

static void webhook_done(struct kube_webhook *h)
{
	free(h->name);
	free(h->service_namespace);
	free(h->service_name);
	free(h->ca_bundle);
}

static void free_webhooks(void *object)
{
	struct kube_webhooks *h = object;

	for (size_t i = 0; i < h->n; i++)
		webhook_done(&h->webhooks[i]);
	free(h->webhooks);
	kube_meta_done(&h->meta);
	free(h);
}

static int read_service(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_webhook *h = user;

	if (str_eq(key, "namespace"))
		return kube_read_text(r, &h->service_namespace, err);
	if (str_eq(key, "name"))
		return kube_read_text(r, &h->service_name, err);
	return json_skip_value(r, err);
}

static int read_client(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_webhook *h = user;

	if (str_eq(key, "service"))
		return kube_read_object(r, read_service, h, err);
	if (str_eq(key, "caBundle"))
		return kube_read_text(r, &h->ca_bundle, err);
	return json_skip_value(r, err);
}

static int read_webhook_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct kube_webhook *h = user;

	if (str_eq(key, "name"))
		return kube_read_text(r, &h->name, err);
	if (str_eq(key, "clientConfig"))
		return kube_read_object(r, read_client, h, err);
	return json_skip_value(r, err);
}

static int read_webhook(void *user, struct json_reader *r, struct error **err)
{
	struct kube_webhooks *all = user;
	struct kube_webhook h = {0};
	int rv = kube_read_members(r, read_webhook_member, &h, err);

	if (rv < 0 || !h.name || all->n == MAX_HOOKS) {
		webhook_done(&h);
		return rv;
	}
	all->webhooks = x_realloc(all->webhooks, all->n + 1, sizeof(*all->webhooks));
	all->webhooks[all->n++] = h;
	return 0;
}

static int read_webhooks(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "webhooks"))
		return kube_read_array(r, read_webhook, user, err);
	return json_skip_value(r, err);
}

static void *decode_webhooks(struct json_reader *r, struct error **err)
{
	struct kube_webhooks *h = x_calloc(1, sizeof(*h));

	if (kube_object_read(r, &h->meta, KUBE_KEEP_ANNOTATIONS, read_webhooks, h, err) == 0)
		return h;
	free_webhooks(h);
	return NULL;
}

const struct kube_kind kube_kind_webhooks = {
	.path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
	.what = "mutatingwebhookconfigurations",
	.decode = decode_webhooks,
	.free = free_webhooks,
};
