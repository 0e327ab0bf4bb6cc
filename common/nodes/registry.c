/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/registry.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "nodes/registry_private.h"

#define LOGGED_PER_S 50
#define PEER_MAX     128

uint64_t registry_now(const struct registry *r)
{
	return r->config.now_ns ? r->config.now_ns(r->config.user) : clock_ns();
}

static int check_room(const struct registry *r, const struct node_report *report, struct error **err)
{
	const struct node *const *unused;

	if (!node_table_get(r->config.table, report->node_id) &&
		node_table_nodes(r->config.table, &unused) >= REGISTRY_MAX_NODES)
		return err_set(err, ERR_EXHAUSTED, "the limit of %d nodes is reached", REGISTRY_MAX_NODES);
	return 0;
}

/* The driver of another name has other volumes and another state folder. */
static int check_driver(
	const struct registry *r, const Registry__V0__RegisterControllerRequest *m, struct error **err)
{
	const char *own = r->config.driver_name;

	if (!own || str_empty(m->driver_name) || str_eq(m->driver_name, own))
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"node \"%s\" runs driver \"%s\", and this is the controller of \"%s\": give both the same -drivername, or "
		"the node the controller of its driver",
		m->node_id, m->driver_name, own);
}

static int read_report(const struct registry *r, const Registry__V0__RegisterControllerRequest *m,
	struct node_report **ret, struct error **err)
{
	CLEANUP(node_report_freep) struct node_report *report = NULL;

	if (registry_report_read(m, &report, err) < 0 || check_driver(r, m, err) < 0 ||
		check_room(r, report, err) < 0)
		return -1;
	*ret = TAKE_PTR(report);
	return 0;
}

static void refuse(struct grpc_call *call, struct error *err)
{
	err_wrap(&err, "registry");
	grpc_call_finish(call, err);
}

/* A call of a driver, until it is clear whether it comes from the node that it names: one of three. The data
 * of the call live as long as this. */
struct applicant {
	struct registry *registry;
	struct grpc_call *call;
	struct node_report *report; /* that it registers */
	const Registry__V0__UnregisterControllerRequest *leaving;
	const Registry__V0__DescribePodRequest *asking;
	Registry__V0__DescribePodReply *answer;
};

static void on_pod(void *user, const struct kube_pod_runtime *pod, const struct error *error)
{
	struct applicant *a = user;
	struct error *err = NULL;

	if (error)
		(void)err_set(&err, error->code, "%s", error->msg);
	if (error || pod_reader_fill(pod, a->answer, a->call->arena, &err) < 0)
		refuse(a->call, err);
	else
		grpc_call_finish(a->call, /* error= */ NULL);
	free(a);
}

static void describe_pod_of(const struct applicant *a)
{
	const Registry__V0__DescribePodRequest *m = a->asking;
	const struct pod_query query = {
		.node_id = m->node_id, .namespace = m->namespace_, .name = m->name, .uid = m->uid};
	struct applicant *copy = x_malloc(sizeof(*copy));

	*copy = *a;
	pod_reader_ask(a->registry->config.pods, &query, on_pod, copy);
}

/* Whose call @a is has been found out. A driver that does not wait for the answer may be gone, and is not
 * registered any more; but one that unregisters may well go at once. */
static void applicant_admit(const struct applicant *a)
{
	struct error *err = NULL;

	if (a->asking) {
		describe_pod_of(a);
		return;
	}
	if (a->leaving)
		registry_dismiss(a->registry, a->leaving);
	if (!a->report || !grpc_call_is_wanted(a->call)) {
		node_report_free(a->report);
	} else if (registry_check_lease(a->registry, a->report, &err) < 0) {
		node_report_free(a->report);
		err_wrap(&err, "registry");
	} else {
		registry_admit(a->registry, a->report);
	}
	grpc_call_finish(a->call, err);
}

static void on_checked(void *user, const struct error *error)
{
	const struct applicant a = *(const struct applicant *)user;
	struct error *err = NULL;

	free(user);
	if (!error) {
		applicant_admit(&a);
		return;
	}
	node_report_free(a.report);
	(void)err_set(&err, error->code, "%s", error->msg);
	refuse(a.call, err);
}

/* Finishes the call of @a in the end. */
static void check_token(const struct applicant *a, const struct node_claim *claim)
{
	struct applicant *copy = x_malloc(sizeof(*copy));
	struct error *err = NULL;

	*copy = *a;
	switch (node_tokens_check(a->registry->config.tokens, claim, on_checked, copy, &err)) {
	case NODE_ASKING:
		return;
	case NODE_GENUINE:
	case NODE_REFUSED:
		break;
	}
	on_checked(copy, err);
	error_free(err);
}

/* Takes the report of @a, and finishes its call in the end. */
static void apply(const struct applicant *a, struct node_claim *claim)
{
	enum registry_standing standing;
	struct error *err = NULL;

	if (registry_check_node(a->registry, a->call, claim->node_id, &standing, &err) < 0) {
		node_report_free(a->report);
		refuse(a->call, err);
		return;
	}
	if (standing == REGISTRY_NEEDS_TOKEN) {
		claim->authorization = a->call->authorization;
		claim->has_lease = registry_has_lease(a->registry, claim);
		check_token(a, claim);
		return;
	}
	if (a->report)
		a->report->bound = standing == REGISTRY_IS_NODE;
	applicant_admit(a);
}

/* Whether @call comes from the host of @endpoint. */
static bool is_at(const struct grpc_call *call, const char *endpoint)
{
	CLEANUP(buf_done) struct buf peer = BUF_INIT(PEER_MAX);
	CLEANUP(error_freep) struct error *malformed = NULL;
	CLEANUP(addr_done) struct addr a = {0};

	grpc_call_peer(call, &peer);
	return addr_parse(endpoint, &a, &malformed) == 0 && addr_is_peer_host(&a, buf_str(&peer));
}

static void register_controller(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct applicant a = {.registry = self, .call = call};
	struct error *err = NULL;

	(void)reply;
	/* the fields first: the names of the peer are compared with one of them */
	if (read_report(self, request, &a.report, &err) < 0) {
		refuse(call, err);
		return;
	}
	a.report->is_at_endpoint = is_at(call, a.report->endpoint);
	struct node_claim claim = {
		.node_id = a.report->node_id, .endpoint = a.report->endpoint, .instance = a.report->instance};
	apply(&a, &claim);
}

static void unregister_controller(void *self, struct grpc_call *call, const void *request, void *reply)
{
	const Registry__V0__UnregisterControllerRequest *m = request;
	const struct applicant a = {.registry = self, .call = call, .leaving = m};
	struct node_claim claim = {.node_id = m->node_id, .endpoint = m->endpoint, .instance = m->instance};
	struct error *err = NULL;

	(void)reply;
	if (registry_check_leaving(m, &err) < 0)
		refuse(call, err);
	else
		apply(&a, &claim);
}

static void describe_pod(void *self, struct grpc_call *call, const void *request, void *reply)
{
	const Registry__V0__DescribePodRequest *m = request;
	const struct applicant a = {.registry = self, .call = call, .asking = m, .answer = reply};
	struct node_claim claim = {.node_id = m->node_id, .endpoint = m->endpoint, .instance = m->instance};
	struct error *err = NULL;

	if (registry_check_asking(m, &err) < 0)
		refuse(call, err);
	else
		apply(&a, &claim);
}

static const struct grpc_method methods[] = {
	{.path = "/registry.v0.Registry/RegisterController",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__register_controller_request__descriptor,
		.reply = &registry__v0__register_controller_reply__descriptor,
		.start = register_controller},
	{.path = "/registry.v0.Registry/UnregisterController",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__unregister_controller_request__descriptor,
		.reply = &registry__v0__unregister_controller_reply__descriptor,
		.start = unregister_controller},
	{.path = "/registry.v0.Registry/DescribePod",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__describe_pod_request__descriptor,
		.reply = &registry__v0__describe_pod_reply__descriptor,
		.start = describe_pod},
	{0},
};

struct registry *registry_new(const struct registry_config *config)
{
	const struct log_quota_config quota = {
		.loop = config->loop, .max = LOGGED_PER_S, .missed_msg = "further messages about nodes"};
	struct registry *r = x_calloc(1, sizeof(*r));

	r->config = *config;
	r->log = log_quota_new(&quota);
	return r;
}

void registry_free(struct registry *r)
{
	if (!r)
		return;
	log_quota_free(r->log);
	free(r);
}

struct grpc_service registry_service(struct registry *r)
{
	return (struct grpc_service){.methods = methods, .self = r};
}

void registry_tick(struct registry *r)
{
	registry_expire(r, registry_now(r));
}
