/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/extender_service.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "scheduler/extender_reply.h"

/* Names that are looked up together. */
#define FIND_AT_ONCE 64

/* How many pods with a single node are kept: more than kube-scheduler retries within a few seconds. */
#define KEPT_MAX 256

/* A request that is being answered. */
struct asked {
	struct asked *next; /* of those that wait */
	struct extender_service *service;
	struct http_call *call;
	const char *verb;
	uint64_t begin_ns;
	struct extender_request args;
	struct pod_needs needs;
	char *pod_uid;
	bool again;                        /* no node is left out: the one that the pod had before was
					    * rejected, or it is about preemption */
	struct node_candidate *candidates; /* one for each node of args, as in all arrays here */
	enum sched_fit *fits;
};

struct extender_service {
	struct extender_service_config config;
	struct asked *waiting; /* oldest first */
	struct loop_timer *timer;
	char *kept[KEPT_MAX]; /* UIDs of pods that were not given all nodes that fit */
	size_t next_kept;
};

static void asked_free(struct asked *a)
{
	if (!a)
		return;
	extender_request_done(&a->args);
	pod_needs_done(&a->needs);
	free(a->pod_uid);
	free(a->candidates);
	free(a->fits);
	free(a);
}

static struct asked *asked_new(struct extender_service *s, struct http_call *call, const char *verb)
{
	struct asked *a = x_calloc(1, sizeof(*a));

	a->service = s;
	a->call = call;
	a->verb = verb;
	a->begin_ns = clock_ns();
	return a;
}

/* A pod without volumes of our driver passes, whatever is known of nodes. */
static bool needs_nothing(const struct asked *a)
{
	return a->needs.n == 0 && a->needs.n_homes == 0;
}

/* Looked up each time: while a request waits, nodes come and are forgotten. */
static void find_nodes(struct asked *a)
{
	struct span names[FIND_AT_ONCE];
	const struct sched_node *nodes[FIND_AT_ONCE];

	for (size_t i = 0; i < a->args.n; i += FIND_AT_ONCE) {
		size_t some = a->args.n - i < FIND_AT_ONCE ? a->args.n - i : FIND_AT_ONCE;

		for (size_t k = 0; k < some; k++)
			names[k] = a->args.nodes[i + k].name;
		sched_nodes_find(a->service->config.nodes, names, some, nodes);
		for (size_t k = 0; k < some; k++)
			a->candidates[i + k] = (struct node_candidate){names[k], nodes[k]};
	}
}

/* @read: parses the request */
static int prepare(struct asked *a,
	int (*read)(struct span body, struct extender_request *ret, struct error **err), struct error **err)
{
	struct span body = http_call_request(a->call)->body;
	const struct extender_service_config *config = &a->service->config;

	if (read(body, &a->args, err) < 0)
		return -1;
	if (cluster_view_pod_needs(config->cluster, a->args.pod, &a->needs, &a->pod_uid, err) < 0)
		return -1;
	if (needs_nothing(a))
		return 0;
	a->candidates = x_calloc(a->args.n + 1, sizeof(*a->candidates));
	a->fits = x_calloc(a->args.n + 1, sizeof(*a->fits));
	find_nodes(a);
	return 0;
}

static struct node_choice question_of(const struct asked *a)
{
	const struct extender_service_config *config = &a->service->config;

	return (struct node_choice){.reservations = config->reservations,
		.needs = &a->needs,
		.candidates = a->candidates,
		.n = a->args.n,
		.policy = config->policy,
		.all = a->again};
}

/* The request ends with @a. */
static void finish(struct asked *a, struct http_reply *reply, bool failed)
{
	const struct extender_service_observer *observer = &a->service->config.observer;

	reply->content_type = "application/json";
	http_call_reply(a->call, reply);
	if (observer->ended)
		observer->ended(observer->user, a->verb, failed, clock_ns() - a->begin_ns);
	asked_free(a);
}

static void answer_error(struct asked *a, const struct error *e)
{
	struct http_reply reply = HTTP_REPLY;

	extender_reply_error(e->msg, &reply.body);
	finish(a, &reply, /* failed= */ true);
}

/* Return: which nodes the pod may go to; caller frees. */
static bool *passes_of(const struct asked *a)
{
	bool *passes = x_calloc(a->args.n + 1, sizeof(*passes));

	for (size_t i = 0; i < a->args.n; i++)
		passes[i] = !a->fits || a->fits[i] == SCHED_FITS;
	return passes;
}

static void explain(void *user, size_t i, struct buf *out)
{
	const struct asked *a = user;
	struct node_choice q = question_of(a);

	node_choice_explain(&q, i, a->fits[i], out);
}

static void keep(struct extender_service *s, const char *pod_uid)
{
	free(s->kept[s->next_kept]);
	s->kept[s->next_kept] = x_strdup(pod_uid);
	s->next_kept = (s->next_kept + 1) % KEPT_MAX;
}

/* Return: the entry that says that the pod did not get all nodes that fit, or NULL. If kube-scheduler asks
 * again, the node that it got was rejected for a reason that is not known here, and it then gets all nodes
 * that fit. */
static char **find_kept(struct extender_service *s, const char *pod_uid)
{
	for (size_t i = 0; i < KEPT_MAX; i++) {
		if (s->kept[i] && str_eq(s->kept[i], pod_uid))
			return &s->kept[i];
	}
	return NULL;
}

/* A request with one node, as after an eviction, leaves no choice. */
static void forget_kept(struct extender_service *s, const struct asked *a)
{
	char **kept = find_kept(s, a->pod_uid);

	if (kept && a->args.n > 1)
		free(TAKE_PTR(*kept));
}

/* Reserves the space of the pod on each of the nodes that it may go to. */
static void reserve(const struct asked *a)
{
	const struct sched_node **nodes = x_calloc(a->args.n + 1, sizeof(*nodes));
	size_t n = 0;
	bool held_back = false;

	for (size_t i = 0; i < a->args.n; i++) {
		held_back |= a->fits[i] == SCHED_HELD_BACK;
		if (a->fits[i] == SCHED_FITS)
			nodes[n++] = a->candidates[i].node;
	}
	if (n > 0 && a->again)
		forget_kept(a->service, a);
	else if (n > 0 && held_back)
		keep(a->service, a->pod_uid);
	if (a->needs.n > 0 && n > 0)
		reservations_add_pod(
			a->service->config.reservations, a->pod_uid, &a->needs, nodes, n, clock_ns());
	free(nodes);
}

static void answer_filter(struct asked *a)
{
	struct http_reply reply = HTTP_REPLY;
	bool *passes = passes_of(a);
	const struct extender_verdicts verdicts = {.passes = passes, .explain = explain, .user = a};

	extender_reply_filter(&a->args, &verdicts, &reply.body);
	free(passes);
	finish(a, &reply, /* failed= */ false);
}

/* The connection is gone: the reply goes nowhere. */
static void give_up(struct asked *a)
{
	struct http_reply reply = HTTP_REPLY;

	finish(a, &reply, /* failed= */ true);
}

/* Return: whether the pod has to wait; otherwise it is decided, and has its reservation. */
static bool must_wait(struct asked *a, uint64_t now_ns)
{
	struct node_choice q = question_of(a);
	enum sched_outcome outcome = node_choice_filter(&q, a->fits);

	if (outcome == SCHED_PASS)
		reserve(a);
	return outcome == SCHED_WAIT && now_ns < a->begin_ns + SCHED_WAIT_MS * NS_PER_MS;
}

/* Decides the waiting requests again, in the order in which they came: the reservation of one that is decided
 * counts for those after it. A request is removed from the list before it is answered, because the answer
 * lets the next request of its connection begin. */
static void look_again(void *user)
{
	struct extender_service *s = user;
	uint64_t now = clock_ns();
	struct asked **at = &s->waiting;

	while (*at) {
		struct asked *a = *at;
		bool gone = http_call_gone(a->call);

		if (!gone)
			find_nodes(a);
		if (!gone && must_wait(a, now)) {
			at = &a->next;
			continue;
		}
		*at = a->next;
		if (gone)
			give_up(a);
		else
			answer_filter(a);
	}
	if (s->waiting) {
		uint64_t end = s->waiting->begin_ns + SCHED_WAIT_MS * NS_PER_MS;
		loop_timer_set(s->timer, end > now ? (end - now) / NS_PER_MS + 1 : 1, /* repeat_ms= */ 0);
	}
}

static void park(struct asked *a)
{
	struct extender_service *s = a->service;
	struct asked **at = &s->waiting;

	if (!*at)
		loop_timer_set(s->timer, SCHED_WAIT_MS, /* repeat_ms= */ 0);
	while (*at)
		at = &(*at)->next;
	*at = a;
}

void extender_service_reservations_changed(struct extender_service *s)
{
	if (s->waiting)
		loop_timer_set(s->timer, 0, /* repeat_ms= */ 0);
}

void extender_service_filter(void *self, struct http_call *call)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct extender_service *s = self;
	struct asked *a = asked_new(s, call, "filter");

	if (prepare(a, extender_request_read, &err) < 0) {
		answer_error(a, err);
		return;
	}
	/* its previous reservation belongs to an attempt that failed */
	reservations_drop_pod(s->config.reservations, a->pod_uid);
	a->again = find_kept(s, a->pod_uid) != NULL;
	if (a->needs.n > 0 && reservations_check_limit(s->config.reservations, s->config.max_pods, &err) < 0)
		answer_error(a, err);
	else if (!needs_nothing(a) && must_wait(a, a->begin_ns))
		park(a);
	else
		answer_filter(a);
}

void extender_service_prioritize(void *self, struct http_call *call)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct asked *a = asked_new(self, call, "prioritize");
	bool failed = prepare(a, extender_request_read, &err) < 0;
	struct http_reply reply = HTTP_REPLY;
	int *scores;

	/* The reply has no place for an error: then all nodes are equal. */
	scores = x_calloc(a->args.n + 1, sizeof(*scores));
	if (!failed && !needs_nothing(a)) {
		struct node_choice q = question_of(a);
		node_choice_score(&q, scores);
	}
	extender_reply_scores(&a->args, scores, &reply.body);
	free(scores);
	finish(a, &reply, failed);
}

/* kube-scheduler is not shown the text, so that it is in the log. */
static void refuse_preemption(struct asked *a, const struct error *e)
{
	struct http_reply reply = HTTP_REPLY;

	log_warn("preemption is refused: it is not known where the pod's volumes fit", F_ERR(e));
	reply.status = e->code == ERR_INVALID_ARGUMENT ? 400 : 503;
	extender_reply_error(e->msg, &reply.body);
	finish(a, &reply, /* failed= */ true);
}

void extender_service_preempt(void *self, struct http_call *call)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct extender_service *s = self;
	struct asked *a = asked_new(s, call, "preempt");
	struct http_reply reply = HTTP_REPLY;
	bool *passes;

	if (prepare(a, extender_request_read_preemption, &err) < 0) {
		refuse_preemption(a, err);
		return;
	}
	if (!needs_nothing(a)) {
		/* the attempt that it has a reservation for came to nothing */
		reservations_drop_pod(s->config.reservations, a->pod_uid);
		a->again = true;
		struct node_choice q = question_of(a);
		node_choice_filter(&q, a->fits);
	}
	passes = passes_of(a);
	extender_reply_preemption(&a->args, passes, &reply.body);
	free(passes);
	finish(a, &reply, /* failed= */ false);
}

struct extender_service *extender_service_new(const struct extender_service_config *config)
{
	struct extender_service *s = x_calloc(1, sizeof(*s));

	s->config = *config;
	s->timer = loop_timer_new(config->loop, look_again, s);
	return s;
}

void extender_service_free(struct extender_service *s)
{
	if (!s)
		return;
	while (s->waiting) {
		struct asked *a = s->waiting;
		s->waiting = a->next;
		give_up(a);
	}
	loop_timer_close(s->timer);
	for (size_t i = 0; i < KEPT_MAX; i++)
		free(s->kept[i]);
	free(s);
}
