/* SPDX-License-Identifier: Apache-2.0 */
/* The extender believes only a controller that proves its name, and a controller tells only an extender. */
#include "base/clock.h"
#include "base/mem.h"
#include "net/grpc/grpc_server.h"
#include "nodes/registry.h"
#include "scheduler/node_watch.h"
#include "unit/net/tls/certs.h"
#include "unit/nodes/reports.h"
#include "unit/scheduler/fake_nodes.h"

static struct loop *loop;
static struct workers *workers;
static struct handshakes *handshakes;
static struct node_table *table;
static struct registry *registry;
static struct grpc_server *server;
static struct grpc_service services[2];
static struct sched_nodes *nodes;
static struct sched_node_watch *watch;
static bool drained;

static void call_nobody(void *self, const struct node *node, const char *path,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms,
	grpc_reply_fn fn, void *user)
{
	(void)self, (void)node, (void)path, (void)request, (void)reply_type, (void)timeout_ms;
	(void)fn, (void)user;
	ck_abort_msg("a node was called");
}

static void serve(struct tls_context *tls)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	workers = workers_new(0);
	handshakes = handshakes_new(loop);
	table = node_table_new();
	node_table_put(table, report_new("a"), clock_ns());
	registry = registry_new(
		&(struct registry_config){.loop = loop, .table = table, .caller = {call_nobody, NULL}});
	services[0] = registry_service(registry);
	server = grpc_server_new(&(struct grpc_server_config){
		.loop = loop, .workers = workers, .services = services, .handshakes = handshakes});
	ASSERT_OK(grpc_server_listen(server, "tcp://127.0.0.1:0", tls, &err));
}

static void look(struct tls_context *tls)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://127.0.0.1:%u", grpc_server_port(server));
	const struct sched_node_watch_config config = {.loop = loop,
		.endpoint = endpoint,
		.tls = tls,
		.handshakes = handshakes,
		.nodes = nodes = sched_nodes_new(),
		.backoff_ms = 1};

	ASSERT_OK(sched_node_watch_new(&config, &watch, &err));
}

static void on_drained(void *user)
{
	(void)user;
	drained = true;
	loop_stop(loop);
}

static void end(void)
{
	sched_node_watch_free(watch);
	sched_nodes_free(nodes);
	registry_stop(registry);
	grpc_server_drain(server, on_drained, NULL);
	while (!drained)
		loop_run(loop);
	grpc_server_free(server);
	registry_free(registry);
	node_table_free(table);
	handshakes_free(handshakes);
	workers_free(workers);
	loop_free(loop);
}

static void stop_if_decided(void *user)
{
	(void)user;
	if (sched_node_watch_is_synced(watch) || sched_node_watch_failure(watch))
		loop_stop(loop);
}

/* @text: of the failure; NULL: all goes well */
static void try_with(const char *server_leaf, const char *client_leaf, const char *text)
{
	static const char *const peers[] = {"pmem-scheduler", "pmem-node-controller", NULL};
	CLEANUP(tls_context_unrefp)
	struct tls_context *there = certs_context(&(struct certs_choice){
		.role = TLS_SERVER, .ca = "own", .leaf = server_leaf, .alpn = "h2", .peers = peers});
	CLEANUP(tls_context_unrefp)
	struct tls_context *here = certs_context(
		&(struct certs_choice){.role = TLS_CLIENT, .ca = "own", .leaf = client_leaf, .alpn = "h2"});
	struct loop_timer *tick;

	serve(there);
	look(here);
	tick = loop_timer_new(loop, stop_if_decided, NULL);
	loop_timer_set(tick, 0, 1);
	loop_run(loop);
	loop_timer_close(tick);
	if (text) {
		ck_assert_ptr_nonnull(sched_node_watch_failure(watch));
		ck_assert_msg(strstr(sched_node_watch_failure(watch), text) != NULL, "%s",
			sched_node_watch_failure(watch));
		ck_assert_str_eq(fake_nodes_told(nodes), "");
	} else {
		ck_assert_ptr_null(sched_node_watch_failure(watch));
		ck_assert_str_eq(fake_nodes_told(nodes), "begin\nput a 4294967296\nover\n");
	}
	end();
}

START_TEST(the_extender_is_told)
{
	try_with("own/pmem-registry", "own/pmem-scheduler", NULL);
}
END_TEST

START_TEST(a_server_of_another_name_is_not_believed)
{
	try_with("own/pmem-node-controller", "own/pmem-scheduler", "pmem-registry");
}
END_TEST

START_TEST(a_node_is_told_nothing)
{
	try_with("own/pmem-registry", "own/pmem-node-controller", "does not bear \"pmem-scheduler\"");
}
END_TEST

CERTS_MAIN("scheduler/node_watch_tls", the_extender_is_told, a_server_of_another_name_is_not_believed,
	a_node_is_told_nothing)
