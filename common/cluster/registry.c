#include "cluster/registry.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/registry_private.h"

#define LOGGED_PER_S 50

uint64_t registry_now(const struct registry *r)
{
	return r->config.now_ns ? r->config.now_ns(r->config.user) : clock_ns();
}

static int check_room(const struct registry *r, const struct node_report *report, struct error **err)
{
	const struct node *const *unused;

	if (!node_table_get(r->config.table, report->node_id) &&
		node_table_nodes(r->config.table, &unused) >= REGISTRY_MAX_NODES)
		return err_set(err, ERR_EXHAUSTED, "%d nodes are known already", REGISTRY_MAX_NODES);
	return 0;
}

static int read_report(const struct registry *r, const struct grpc_call *call,
	const Registry__V0__RegisterControllerRequest *m, struct node_report **ret, struct error **err)
{
	CLEANUP(node_report_freep) struct node_report *report = NULL;
	bool bound;

	/* the fields first: the names of the peer are compared with one of them */
	if (registry_report_read(m, &report, err) < 0 ||
		registry_check_node(r, call, report->node_id, &bound, err) < 0 ||
		check_room(r, report, err) < 0)
		return -1;
	report->bound = bound;
	*ret = TAKE_PTR(report);
	return 0;
}

static void register_controller(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct node_report *report;
	struct error *err = NULL;
	struct registry *r = self;

	(void)reply;
	if (read_report(r, call, request, &report, &err) < 0) {
		err_wrap(&err, "registry");
		grpc_call_finish(call, err);
		return;
	}
	switch (registry_judge(r, report)) {
	case REGISTRY_ASK:
		registry_move(r, report, call);
		return;
	case REGISTRY_TAKE:
		registry_admit(r, report);
		break;
	case REGISTRY_NOTHING:
		node_report_free(report);
		break;
	}
	grpc_call_finish(call, NULL);
}

static int unregister_controller(
	void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Registry__V0__UnregisterControllerRequest *m = request;
	struct registry *r = self;
	bool bound;

	(void)reply;
	if (str_empty(m->node_id))
		return err_set(err, ERR_INVALID_ARGUMENT, "registry: node_id is empty");
	if (registry_check_node(r, call, m->node_id, &bound, err) < 0)
		return err_wrap(err, "registry");
	registry_dismiss(r, m);
	return 0;
}

static const struct grpc_method methods[] = {
	{.path = "/registry.v0.Registry/RegisterController",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__register_controller_request__descriptor,
		.reply = &registry__v0__register_controller_reply__descriptor,
		.start = register_controller},
	{.path = "/registry.v0.Registry/UnregisterController",
		.kind = GRPC_INLINE,
		.request = &registry__v0__unregister_controller_request__descriptor,
		.reply = &registry__v0__unregister_controller_reply__descriptor,
		.handle = unregister_controller},
	{.path = "/registry.v0.Registry/WatchNodes",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__watch_nodes_request__descriptor,
		.reply = &registry__v0__watch_nodes_reply__descriptor,
		.start = registry_watch_start},
	{0},
};

struct registry *registry_new(const struct registry_config *config)
{
	const struct log_quota_config quota = {
		.loop = config->loop, .max = LOGGED_PER_S, .missed_msg = "further news of nodes"};
	struct registry *r = x_calloc(1, sizeof(*r));

	r->config = *config;
	r->log = log_quota_new(&quota);
	registry_watch_init(r);
	return r;
}

void registry_free(struct registry *r)
{
	if (!r)
		return;
	assert(!r->moves);
	registry_poll_free(r);
	registry_watch_done(r);
	log_quota_free(r->log);
	free(r);
}

struct grpc_service registry_service(struct registry *r)
{
	return (struct grpc_service){.methods = methods, .self = r};
}

void registry_tick(struct registry *r)
{
	uint64_t now_ns = registry_now(r);

	registry_expire(r, now_ns);
	registry_poll_tick(r, now_ns);
	registry_watch_answer(r, now_ns);
}

void registry_stop(struct registry *r)
{
	r->stopping = true;
	registry_watch_answer(r, registry_now(r));
}
