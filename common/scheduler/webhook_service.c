/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook_service.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/object_call.h"
#include "kube/objects/objects.h"
#include "net/core/log_quota.h"
#include "nodes/class_capacity.h"
#include "scheduler/absent_names.h"
#include "scheduler/look_budget.h"
#include "scheduler/webhook_review.h"

/* Look-ups for one request. A pod has a volume or two, and any peer of the port decides how many it names. */
#define MAX_LOOKS 8
/* Any peer of the port can have a review fail, as often as it likes. */
#define MAX_FAILURE_LINES_PER_S 5

struct look {
	struct review *review;
	struct kube_request *request; /* NULL: it has ended, or was not needed */
	char *key;                    /* "namespace/name" of a claim, or NULL */
	char *name;                   /* of a class, or NULL */
	char *party;                  /* the namespace that was charged for it, as its peer names it */
	struct kube_claim *claim;     /* what was found */
	struct kube_class *class;
	struct error *failure; /* why its existence is not known; NULL: it is known */
};

/* A request for which something is looked up. */
struct review {
	struct review *next;
	struct webhook_service *service;
	struct http_call *call;
	char *peer; /* its address */
	struct look looks[MAX_LOOKS];
	size_t n_looks;
	size_t open;
	bool is_too_much;    /* more is unknown than is looked up */
	bool is_over_budget; /* more is unknown than its peer or namespace may look up now */
};

struct webhook_service {
	struct webhook_service_config config;
	struct webhook_cluster watched;
	struct review *reviews;
	struct absent_names absent; /* claims with their namespaces, and classes */
	/* API servers have few addresses for the pods of all tenants, and any pod may name any namespace, so
	 * that a share of each is needed */
	struct look_budget peers;
	struct look_budget namespaces; /* "address namespace" */
	struct log_quota *failures;
};

/* A look-up that has found nothing yet was not in vain. */
static void give_back(struct look *l)
{
	look_budget_give_back(&l->review->service->peers, l->review->peer);
	look_budget_give_back(&l->review->service->namespaces, l->party);
}

static void look_done(struct look *l)
{
	if (l->request)
		give_back(l);
	kube_request_cancel(l->request);
	if (l->claim)
		kube_object_free(&kube_kind_claims, l->claim);
	if (l->class)
		kube_object_free(&kube_kind_classes, l->class);
	error_free(l->failure);
	free(l->key);
	free(l->name);
	free(l->party);
}

static void review_free(struct review *r)
{
	struct review **at = &r->service->reviews;

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	for (size_t i = 0; i < r->n_looks; i++)
		look_done(&r->looks[i]);
	free(r->peer);
	free(r);
}

static enum webhook_claim find_claim(
	void *user, const char *namespace, const char *name, const char **ret_class)
{
	const struct review *r = user;
	CLEANUP(free_charp) char *key = x_asprintf("%s/%s", namespace, name);

	for (size_t i = 0; i < r->n_looks; i++) {
		const struct look *l = &r->looks[i];
		if (l->claim && str_eq(l->key, key)) {
			*ret_class = l->claim->storage_class;
			return str_empty(l->claim->volume_name) ? WEBHOOK_CLAIM_UNBOUND : WEBHOOK_CLAIM_BOUND;
		}
	}
	return r->service->watched.claim(r->service->watched.user, namespace, name, ret_class);
}

static enum webhook_class find_class(void *user, const char *name)
{
	const struct review *r = user;
	enum webhook_class found = r->service->watched.class(r->service->watched.user, name);

	for (size_t i = 0; name && found == WEBHOOK_CLASS_UNKNOWN && i < r->n_looks; i++) {
		const struct kube_class *class = r->looks[i].class;
		if (class && str_eq(r->looks[i].name, name))
			found = class_is_ours(class, r->service->config.rules.driver_name) &&
						class->waits_for_consumer
					? WEBHOOK_CLASS_OURS
					: WEBHOOK_CLASS_OTHER;
	}
	return found;
}

static void review_again(struct review *r);

static void look_ended(void *user, unsigned status, struct span body, const struct error *error)
{
	struct look *l = user;
	struct review *r = l->review;

	(void)status;
	l->request = NULL;
	if (!error || error->code != ERR_NOT_FOUND) {
		give_back(l);
	}
	if (error && error->code == ERR_NOT_FOUND)
		absent_names_add(&r->service->absent, l->key ? l->key : l->name, clock_ns());
	else if (error)
		err_set(&l->failure, error->code, "%s", error->msg);
	else if (!error && l->key)
		l->claim = kube_object_decode(&kube_kind_claims, body, &l->failure);
	else if (!error)
		l->class = kube_object_decode(&kube_kind_classes, body, &l->failure);
	if (--r->open == 0)
		review_again(r);
}

static void look_up(struct review *r, struct look *l, const struct kube_kind *kind, const char *namespace,
	const char *name)
{
	const struct kube_object_call call = {.verb = KUBE_GET,
		.kind = kind,
		.namespace = namespace,
		.name = name,
		.timeout_ms = WEBHOOK_LOOKUP_MS};

	l->review = r;
	r->open++;
	l->request = kube_object_call(r->service->config.client, &call, look_ended, l);
}

static void look_up_claim(struct review *r, struct look *l, const char *namespace, const char *name)
{
	l->key = x_asprintf("%s/%s", namespace, name);
	look_up(r, l, &kube_kind_claims, namespace, name);
}

static void look_up_class(struct review *r, struct look *l, const char *name)
{
	l->name = x_strdup(name);
	look_up(r, l, &kube_kind_classes, /* namespace= */ NULL, name);
}

static const struct look *find_look(
	const struct review *r, const char *namespace, const char *claim, const char *class)
{
	CLEANUP(free_charp) char *key = claim ? x_asprintf("%s/%s", namespace, claim) : NULL;

	for (size_t i = 0; i < r->n_looks; i++) {
		if (key ? str_eq(r->looks[i].key, key) : str_eq(r->looks[i].name, class))
			return &r->looks[i];
	}
	return NULL;
}

/* Names become parts of paths, so names that objects cannot have are not looked up. */
static bool is_to_look_up(const struct review *r, const char *namespace, const char *claim, const char *class)
{
	CLEANUP(free_charp) char *key = claim ? x_asprintf("%s/%s", namespace, claim) : x_strdup(class);

	return kube_is_name(claim ? claim : class) && (!claim || kube_is_name(namespace)) &&
	       !find_look(r, namespace, claim, class) &&
	       !absent_names_has(&r->service->absent, key, clock_ns());
}

static bool charge_look(struct review *r, const char *party)
{
	struct webhook_service *h = r->service;
	uint64_t now_ns = clock_ns();

	if (!look_budget_take(&h->peers, r->peer, now_ns))
		return false;
	if (look_budget_take(&h->namespaces, party, now_ns))
		return true;
	look_budget_give_back(&h->peers, r->peer);
	return false;
}

/* An object that is not looked up would count as absent, so too many of them make the review fail. Return:
 * where the next look-up goes; NULL: none may begin. */
static struct look *begin_look(struct review *r, const char *namespace)
{
	CLEANUP(free_charp) char *party = x_asprintf("%s %s", r->peer, namespace ? namespace : "");

	r->is_too_much |= r->n_looks == MAX_LOOKS;
	if (r->is_too_much || r->is_over_budget)
		return NULL;
	r->is_over_budget = !charge_look(r, party);
	if (r->is_over_budget)
		return NULL;
	struct look *l = &r->looks[r->n_looks++];
	l->party = TAKE_PTR(party);
	return l;
}

/* Looks up what was not looked up yet. A claim that was found may name another unknown class. */
static void look_up_missing(struct review *r, const struct webhook_missing *m)
{
	struct look *l;

	for (char **claim = m->claims; claim && *claim; claim++) {
		if (is_to_look_up(r, m->namespace, *claim, NULL) && (l = begin_look(r, m->namespace)))
			look_up_claim(r, l, m->namespace, *claim);
	}
	for (char **class = m->classes; class && *class; class ++) {
		if (is_to_look_up(r, NULL, NULL, *class) && (l = begin_look(r, m->namespace)))
			look_up_class(r, l, *class);
	}
}

static const struct error *failure_of(const struct look *l)
{
	return l ? l->failure : NULL;
}

/* Return: 0, or -1 and why something on which the answer depends is not known. */
static int find_failure(const struct review *r, const struct webhook_missing *m, struct error **err)
{
	const struct error *failure = NULL;

	for (char **claim = m->claims; !failure && claim && *claim; claim++)
		failure = failure_of(find_look(r, m->namespace, *claim, NULL));
	for (char **class = m->classes; !failure && class && *class; class ++)
		failure = failure_of(find_look(r, NULL, NULL, *class));
	if (failure)
		return err_set(err, failure->code, "%s", failure->msg);
	/* If no claim and no class is missing, the answer does not depend on look-ups. */
	if (!m->claims && !m->classes)
		return 0;
	if (r->is_over_budget)
		return err_set(err, ERR_EXHAUSTED,
			"too many look-ups of namespace %s, or of the peer %s, found nothing in the last "
			"seconds; create the pod again when its claims have existed for a second",
			m->namespace ? m->namespace : "(none)", r->peer);
	if (r->is_too_much)
		return err_set(err, ERR_EXHAUSTED,
			"more than %d claims and classes of the pod have to be looked up; create the pod "
			"again when "
			"its claims have existed for a second",
			MAX_LOOKS);
	return 0;
}

/* The API server does not take this as an answer, and applies the webhook's failure policy. */
static void be_unavailable(struct http_call *call, const char *why)
{
	struct http_reply reply = HTTP_REPLY;

	reply.status = 503;
	buf_addf(&reply.body, "%s\n", why);
	http_call_reply(call, &reply);
}

static void review_again(struct review *r)
{
	CLEANUP(webhook_missing_done) struct webhook_missing missing = {0};
	const struct webhook_cluster cluster = {find_claim, find_class, r};
	struct http_reply reply = HTTP_REPLY;

	reply.content_type = "application/json";
	reply.status = webhook_review(
		&cluster, &r->service->config.rules, http_call_request(r->call)->body, &missing, &reply.body);
	if (!http_call_gone(r->call))
		look_up_missing(r, &missing);
	if (r->open > 0) {
		buf_done(&reply.body);
		return;
	}
	CLEANUP(error_freep) struct error *failure = NULL;

	if (find_failure(r, &missing, &failure) < 0) {
		if (log_quota_take(r->service->failures, clock_ns()))
			log_warn("it is not known whether a pod needs persistent memory", F_ERR(failure));
		buf_done(&reply.body);
		be_unavailable(r->call, failure->msg);
	} else {
		http_call_reply(r->call, &reply);
	}
	review_free(r);
}

void webhook_service_handle(void *self, struct http_call *call)
{
	struct webhook_service *h = self;
	struct review *r;

	if (!cluster_view_is_synced(h->config.cluster)) {
		be_unavailable(call, "the cluster's objects are still being read");
		return;
	}
	r = x_calloc(1, sizeof(*r));
	r->service = h;
	r->call = call;
	r->peer = x_strdup(http_call_peer(call));
	r->next = h->reviews;
	h->reviews = r;
	review_again(r);
}

struct webhook_service *webhook_service_new(const struct webhook_service_config *config)
{
	struct webhook_service *h = x_calloc(1, sizeof(*h));

	h->config = *config;
	/* one peer, or one namespace of an API server, leaves at least half of the requests to others */
	h->peers = (struct look_budget){.per_second = (config->qps + 1) / 2, .burst = config->burst};
	h->namespaces =
		(struct look_budget){.per_second = (config->qps + 3) / 4, .burst = (config->burst + 1) / 2};
	h->failures = log_quota_new(&(struct log_quota_config){.loop = kube_client_loop(config->client),
		.max = MAX_FAILURE_LINES_PER_S,
		.missed_msg = "more pods of which it is not known whether they need persistent memory"});
	h->watched = cluster_view_webhook(config->cluster);
	return h;
}

void webhook_service_free(struct webhook_service *h)
{
	if (!h)
		return;
	while (h->reviews) {
		struct http_reply reply = HTTP_REPLY;

		reply.status = 503;
		http_call_reply(h->reviews->call, &reply);
		review_free(h->reviews);
	}
	absent_names_done(&h->absent);
	look_budget_done(&h->peers);
	look_budget_done(&h->namespaces);
	log_quota_free(h->failures);
	free(h);
}
