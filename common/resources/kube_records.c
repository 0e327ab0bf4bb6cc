/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/object_call.h"
#include "resources/volume_records.h"

/* external-provisioner waits for 10 s by default, and asks again then. */
#define TIMEOUT_MS 8000
#define BODY_MAX   (1U << 20)

struct kube_records {
	struct kube_client *client;
	const char *driver_name;
};

struct record_call {
	struct kube_records *records;
	volume_record_fn fn;
	void *user;
};

static struct record_call *call_new(struct kube_records *k, volume_record_fn fn, void *user)
{
	struct record_call *c = x_malloc(sizeof(*c));

	*c = (struct record_call){.records = k, .fn = fn, .user = user};
	return c;
}

static void end_call(struct record_call *c, struct pmem_volume *record, const struct error *error)
{
	volume_record_fn fn = c->fn;
	void *user = c->user;

	free(c);
	fn(user, record, error);
}

static void ask(struct record_call *c, enum kube_verb verb, const char *name, const char *subresource,
	struct span body, kube_reply_fn fn)
{
	const struct kube_object_call call = {.verb = verb,
		.kind = &kube_kind_pmem_volumes,
		.name = name,
		.subresource = subresource,
		.body = body,
		.timeout_ms = TIMEOUT_MS};

	kube_object_call(c->records->client, &call, fn, c);
}

static void on_record(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct record_call *c = user;
	struct pmem_volume *record = NULL;

	(void)status;
	if (!error) {
		record = kube_object_decode(&kube_kind_pmem_volumes, body, &err);
		error = err;
	}
	end_call(c, record, error);
}

static void on_read(void *user, unsigned status, struct span body, const struct error *error)
{
	if (error && error->code == ERR_NOT_FOUND)
		end_call(user, NULL, NULL);
	else
		on_record(user, status, body, error);
}

static void read_record(void *self, const char *key, volume_record_fn fn, void *user)
{
	struct kube_records *k = self;
	CLEANUP(free_charp) char *name = pmem_volume_object_name(key, k->driver_name);

	ask(call_new(k, fn, user), KUBE_GET, name, /* subresource= */ NULL, (struct span){0}, on_read);
}

struct node_read {
	char *node_id;
	shown_node_fn fn;
	void *user;
};

/* Passes on the PmemNode. An object whose spec names another node is ignored: no controller has written it
 * for this one. */
static void on_node(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct node_read *r = user;
	struct pmem_node *node = NULL;

	(void)status;
	if (!error)
		node = kube_object_decode(&kube_kind_pmem_nodes, body, &err);
	if (node && !str_eq(node->node, r->node_id))
		pmem_node_free(TAKE_PTR(node));
	r->fn(r->user, node);
	free(r->node_id);
	free(r);
}

static void read_node(void *self, const char *node_id, shown_node_fn fn, void *user)
{
	struct kube_records *k = self;
	CLEANUP(free_charp) char *name = pmem_node_object_name(node_id, k->driver_name);
	struct node_read *r = x_malloc(sizeof(*r));
	const struct kube_object_call call = {
		.verb = KUBE_GET, .kind = &kube_kind_pmem_nodes, .name = name, .timeout_ms = TIMEOUT_MS};

	*r = (struct node_read){.node_id = x_strdup(node_id), .fn = fn, .user = user};
	kube_object_call(k->client, &call, on_node, r);
}

static void on_gone(void *user, unsigned status, struct span body, const struct error *error)
{
	(void)status;
	(void)body;
	end_call(user, NULL, error && error->code == ERR_NOT_FOUND ? NULL : error);
}

/* An object that is being deleted goes with its last finalizer. Another one is deleted as it is now: a
 * replica that has written it or made another one since keeps it. */
static void on_released(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(buf_done) struct buf preconditions = BUF_INIT(BODY_MAX);
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	struct record_call *c = user;

	if (error) {
		on_gone(user, status, body, error);
		return;
	}
	v = kube_object_decode(&kube_kind_pmem_volumes, body, &err);
	if (!v || v->meta.deleting) {
		end_call(c, NULL, err);
		return;
	}
	kube_write_preconditions(&v->meta, v->meta.resource_version, &preconditions);
	ask(c, KUBE_DELETE, v->meta.name, /* subresource= */ NULL, buf_span(&preconditions), on_gone);
}

static void write_record(void *self, enum volume_record_write what, const struct pmem_volume *v,
	volume_record_fn fn, void *user)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(BODY_MAX);
	struct record_call *c = call_new(self, fn, user);

	switch (what) {
	case RECORD_CREATE:
		pmem_volume_write_new(v, &body);
		ask(c, KUBE_CREATE, v->meta.name, /* subresource= */ NULL, buf_span(&body), on_record);
		return;
	case RECORD_SPEC:
		pmem_volume_write_spec(v, &body);
		ask(c, KUBE_PATCH, v->meta.name, /* subresource= */ NULL, buf_span(&body), on_record);
		return;
	case RECORD_STATUS:
		pmem_volume_write_status(v, &body);
		ask(c, KUBE_PATCH, v->meta.name, "status", buf_span(&body), on_record);
		return;
	case RECORD_RELEASE:
		pmem_volume_write_release(v, &body);
		ask(c, KUBE_PATCH, v->meta.name, /* subresource= */ NULL, buf_span(&body), on_released);
		return;
	}
}

struct kube_records *kube_records_new(struct kube_client *client, const char *driver_name)
{
	struct kube_records *k = x_malloc(sizeof(*k));

	*k = (struct kube_records){.client = client, .driver_name = driver_name};
	return k;
}

void kube_records_free(struct kube_records *k)
{
	free(k);
}

struct volume_records kube_records_interface(struct kube_records *k)
{
	return (struct volume_records){
		.read = read_record, .write = write_record, .read_node = read_node, .self = k};
}
