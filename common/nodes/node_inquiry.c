/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/node_inquiry.h"

#include "csi.pb-c.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "nodes/registry_private.h"
#include "volume/id.h"

struct inquiry {
	struct node_caller caller;
	struct node_report *report;
	uint64_t timeout_ms; /* of each call */
	char *token;         /* of the page that is asked for */
	unsigned pages;
	node_inquiry_fn fn;
	void *user;
};

static void inquiry_end(struct inquiry *q, const struct error *error)
{
	if (error)
		q->fn(q->user, NULL, error);
	else
		q->fn(q->user, TAKE_PTR(q->report), NULL);
	node_report_free(q->report);
	free(q->token);
	free(q);
}

static void ask(struct inquiry *q, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, grpc_reply_fn fn)
{
	const struct node node = {.report = *q->report};

	q->caller.call(q->caller.self, &node, path, request, reply_type, q->timeout_ms, fn, q);
}

static uint64_t bytes_of(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

/* What the node said of itself when it registered. */
static void drop_pools(struct node_report *r)
{
	while (r->n_pools > 0)
		pool_report_done(&r->pools[--r->n_pools]);
	free(TAKE_PTR(r->pools));
}

static void on_capacity(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	const Csi__V1__GetCapacityResponse *m = (const void *)reply;
	struct inquiry *q = user;
	struct node_report *r = q->report;
	struct pool_report pool;

	if (error) {
		inquiry_end(q, error);
		return;
	}
	/* Releases up to 0.9 say how large one volume can be, and call it what is available. */
	pool = (struct pool_report){
		.name = x_strdup(""), .capacity.available_bytes = bytes_of(m->available_capacity)};
	pool.capacity.max_volume_bytes = m->maximum_volume_size ? bytes_of(m->maximum_volume_size->value)
								: pool.capacity.available_bytes;
	pool.capacity.max_sector_volume_bytes = pool.capacity.max_volume_bytes;
	drop_pools(r);
	r->pools = x_calloc(1, sizeof(*r->pools));
	r->pools[0] = pool;
	r->n_pools = 1;
	inquiry_end(q, NULL);
}

static void ask_capacity(struct inquiry *q)
{
	static const Csi__V1__GetCapacityRequest request = CSI__V1__GET_CAPACITY_REQUEST__INIT;

	q->report->has_inventory = true;
	ask(q, "/csi.v1.Controller/GetCapacity", &request.base, &csi__v1__get_capacity_response__descriptor,
		on_capacity);
}

static const char *name_of(const Csi__V1__Volume *v)
{
	const char *old = "";

	for (size_t i = 0; i < v->n_volume_context; i++) {
		if (str_eq(v->volume_context[i]->key, "name"))
			return v->volume_context[i]->value;
		if (str_eq(v->volume_context[i]->key, "Name"))
			old = v->volume_context[i]->value;
	}
	return old;
}

static int add_volume(struct node_report *r, const Csi__V1__Volume *v, struct error **err)
{
	if (!v || !volume_handle_valid(v->volume_id) || strlen(name_of(v)) > VOLUME_NAME_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "it lists a volume whose ID or name is not valid");
	if (r->n_volumes >= REGISTRY_MAX_VOLUMES)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "it lists more than %d volumes", REGISTRY_MAX_VOLUMES);
	r->volumes = x_realloc(r->volumes, r->n_volumes + 1, sizeof(*r->volumes));
	/* A Go driver keeps no record of what was staged: any volume may hold data. */
	r->volumes[r->n_volumes++] = (struct volume_report){.id = x_strdup(v->volume_id),
		.name = x_strdup(name_of(v)),
		.size_bytes = bytes_of(v->capacity_bytes),
		.phase = PHASE_READY,
		.ever_staged = true};
	return 0;
}

static int add_page(struct inquiry *q, const Csi__V1__ListVolumesResponse *m, struct error **err)
{
	for (size_t i = 0; i < m->n_entries; i++) {
		if (add_volume(q->report, m->entries[i]->volume, err) < 0)
			return -1;
	}
	if (++q->pages > REGISTRY_MAX_VOLUMES || str_eq(m->next_token, q->token))
		return err_set(err, ERR_INVALID_ARGUMENT, "its list of volumes does not end");
	return 0;
}

static void ask_page(struct inquiry *q);

static void on_page(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	const Csi__V1__ListVolumesResponse *m = (const void *)reply;
	CLEANUP(error_freep) struct error *err = NULL;
	struct inquiry *q = user;

	if (error || add_page(q, m, &err) < 0) {
		inquiry_end(q, error ? error : err);
		return;
	}
	if (str_empty(m->next_token)) {
		ask_capacity(q);
		return;
	}
	free(q->token);
	q->token = x_strdup(m->next_token);
	ask_page(q);
}

static void ask_page(struct inquiry *q)
{
	static char none[] = "";
	Csi__V1__ListVolumesRequest request;
	csi__v1__list_volumes_request__init(&request);

	request.starting_token = q->token ? q->token : none;
	ask(q, "/csi.v1.Controller/ListVolumes", &request.base, &csi__v1__list_volumes_response__descriptor,
		on_page);
}

void node_inquire(const struct node_caller *caller, struct node_report *report, uint64_t timeout_ms,
	node_inquiry_fn fn, void *user)
{
	struct inquiry *q = x_calloc(1, sizeof(*q));

	*q = (struct inquiry){
		.caller = *caller, .report = report, .timeout_ms = timeout_ms, .fn = fn, .user = user};
	ask_page(q);
}
