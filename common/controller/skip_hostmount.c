/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CreateVolume for a claim that asks by its annotation "skip-hostmount" for a direct volume: the claim is
 * read, and the parameter added.
 *
 * external-provisioner passes no annotations, but the name of the claim (--extra-create-metadata), and names
 * the volume after its UID. The claim is read at that moment, by any replica: a cache could show a
 * predecessor of the same name, or not have the claim yet.
 */
#include <string.h>

#include "base/str.h"
#include "controller/controller_private.h"
#include "csi/convert.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"
#include "volume/claim.h"
#include "volume/params.h"

#define READ_MS 5000

struct claim_question {
	struct controller *controller;
	struct waiter waiter;
	const Csi__V1__CreateVolumeRequest *request;
	Csi__V1__CreateVolumeResponse *reply;
	const char *claim; /* "namespace/name" */
};

static bool has_parameter(const Csi__V1__CreateVolumeRequest *request, const char *key)
{
	for (size_t i = 0; i < request->n_parameters; i++) {
		if (str_eq(request->parameters[i]->key, key))
			return true;
	}
	return false;
}

static const Csi__V1__CreateVolumeRequest *as_direct(
	const Csi__V1__CreateVolumeRequest *request, struct arena *arena)
{
	size_t n = request->n_parameters;
	Csi__V1__CreateVolumeRequest *q = arena_alloc(arena, sizeof(*q));
	Csi__V1__CreateVolumeRequest__ParametersEntry *e = arena_alloc(arena, sizeof(*e));

	*q = *request;
	q->parameters = arena_alloc(arena, (n + 1) * sizeof(*q->parameters));
	for (size_t i = 0; i < n; i++)
		q->parameters[i] = request->parameters[i];
	csi__v1__create_volume_request__parameters_entry__init(e);
	e->key = arena_strdup(arena, PARAMS_DIRECT);
	e->value = arena_strdup(arena, "true");
	q->parameters[n] = e;
	q->n_parameters = n + 1;
	return q;
}

/* A later claim of the same name has another UID, and does not count. */
static bool is_for(const struct kube_claim *claim, const char *volume_name)
{
	size_t n = strlen(volume_name);
	size_t n_uid = claim->meta.uid ? strlen(claim->meta.uid) : 0;

	return n_uid > 0 && n >= n_uid && str_eq(volume_name + n - n_uid, claim->meta.uid);
}

static int read_wish(const struct claim_question *q, struct span body, const struct error *error, bool *ret,
	struct error **err)
{
	struct kube_claim *claim;

	*ret = false;
	if (error && error->code == ERR_NOT_FOUND)
		return 0; /* external-provisioner goes on until it knows the outcome, and deletes the volume
			   */
	if (error)
		return err_set(err, ERR_UNAVAILABLE,
			"it is not known whether claim %s asks for a direct volume: %s", q->claim,
			error->msg);
	claim = kube_object_decode(&kube_kind_claims, body, err);
	if (!claim) {
		(void)err_wrap(err, "claim %s", q->claim);
		return err_recode(err, ERR_UNAVAILABLE);
	}
	*ret = claim->skips_hostmount && is_for(claim, q->request->name);
	kube_object_free(&kube_kind_claims, claim);
	return 0;
}

static void on_read(void *user, unsigned status, struct span body, const struct error *error)
{
	struct claim_question *q = user;
	const struct waiter *waiter = &q->waiter;
	struct error *err = NULL;
	bool is_direct;

	(void)status;
	if (read_wish(q, body, error, &is_direct, &err) < 0)
		waiter->finish(waiter->user, err);
	else
		controller_create(q->controller, waiter,
			is_direct ? as_direct(q->request, waiter->arena) : q->request, q->reply);
}

void controller_create_for_claim(struct controller *c, const struct waiter *waiter,
	const Csi__V1__CreateVolumeRequest *request, Csi__V1__CreateVolumeResponse *reply)
{
	CLEANUP(strmap_done) struct strmap map = {0};
	CLEANUP(claim_done) struct volume_claim claim = {0};
	CLEANUP(free_charp) char *text = NULL;

	CSI_READ_MAP(request, parameters, &map);
	claim_read(&map, CLAIM_PVC, &claim);
	claim_check(&claim);
	text = claim_text(&claim);
	if (!c->config.claims || !text || has_parameter(request, PARAMS_DIRECT)) {
		controller_create(c, waiter, request, reply);
		return;
	}
	struct claim_question *q = arena_alloc(waiter->arena, sizeof(*q));
	*q = (struct claim_question){c, *waiter, request, reply, arena_strdup(waiter->arena, text)};
	const struct kube_object_call call = {.verb = KUBE_GET,
		.kind = &kube_kind_claims,
		.namespace = claim.namespace,
		.name = claim.name,
		.timeout_ms = READ_MS};
	kube_object_call(c->config.claims, &call, on_read, q);
}
