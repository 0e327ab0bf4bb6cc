/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/node_watch.h"

#include <assert.h>
#include <stdlib.h>

#include "registry.pb-c.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "net/grpc/grpc_client.h"
#include "nodes/registry.h"
#include "pacing/backoff.h"
#include "pacing/wait_log.h"

#define SERVER_NAME "pmem-registry"
#define PATH        "/registry.v0.Registry/WatchNodes"

/* How long a controller that has nothing new lets us wait, and how much longer we wait for it: together well
 * below the lease time. */
#define POLL_MS 30000
#define LATE_MS 15000

/* A node that does not come back is forgotten after one to two of these. */
#define SWEEP_MS 3600000

struct sched_node_watch {
	struct sched_node_watch_config config; /* its endpoint is the one below */
	char *endpoint;
	struct addr addr; /* its host may be a name */
	struct loop_lookup *lookup;
	char **addresses; /* strv */
	size_t at;        /* of them */
	struct grpc_client *client;
	struct grpc_client_call *call;
	struct backoff backoff;
	struct wait_log waiting;
	struct loop_timer *retry;
	struct loop_timer *stale; /* nothing was heard for the lease time */
	struct loop_timer *grace; /* nodes had the time to register again */
	struct loop_timer *sweep;
	char *instance; /* of the table that is followed; NULL: none */
	uint64_t generation;
	uint64_t heard_ns;
	bool grace_runs;  /* sched_nodes_end_table() is due then */
	bool is_complete; /* all of this instance was told */
	bool is_synced;   /* so it was of any */
	bool ending;
};

/* The next address is tried at once; after the last one, all of them are tried again later. */
static void failed(struct sched_node_watch *w, const struct error *e)
{
	uint64_t now_ns = clock_ns();
	uint64_t delay_ms = 0;

	if (wait_log_due(&w->waiting, e->msg, now_ns))
		log_warn("waiting for a controller to report the nodes", F_STR("endpoint", w->endpoint),
			F_U64("waited_s", (now_ns - w->waiting.since_ns) / NS_PER_S), F_ERR(e));
	grpc_client_free(TAKE_PTR(w->client));
	if (w->at < strv_len(w->addresses))
		w->at++;
	if (w->at == strv_len(w->addresses)) {
		backoff_fail(&w->backoff, now_ns);
		delay_ms = (w->backoff.until_ns - now_ns) / NS_PER_MS + 1;
	}
	loop_timer_set(w->retry, delay_ms, /* repeat_ms= */ 0);
}

static void end_grace(void *user)
{
	struct sched_node_watch *w = user;

	w->grace_runs = false;
	loop_timer_stop(w->grace);
	sched_nodes_end_table(w->config.nodes);
}

static void sweep(void *user)
{
	struct sched_node_watch *w = user;

	sched_nodes_sweep(w->config.nodes);
}

/* Whatever controller is heard next tells all it knows: what it has not changed meanwhile must come back,
 * too.
 */
static void on_stale(void *user)
{
	struct sched_node_watch *w = user;

	if (w->grace_runs)
		end_grace(w);
	sched_nodes_begin_table(w->config.nodes);
	sched_nodes_end_table(w->config.nodes);
	free(TAKE_PTR(w->instance));
	w->generation = 0;
	if (w->call)
		grpc_client_cancel(w->call);
}

/* The first table is what there is. Those of later runs are filled by nodes that find their way there. */
static void begin_table(struct sched_node_watch *w, const char *instance)
{
	free(w->instance);
	w->instance = x_strdup(instance);
	w->is_complete = false;
	sched_nodes_begin_table(w->config.nodes);
	if (!w->is_synced)
		return;
	w->grace_runs = true;
	loop_timer_set(w->grace, w->config.lease_ms, /* repeat_ms= */ 0);
}

static void end_table(struct sched_node_watch *w)
{
	w->is_complete = true;
	if (!w->is_synced)
		sched_nodes_end_table(w->config.nodes);
	w->is_synced = true;
}

static void take_node(struct sched_node_watch *w, const Registry__V0__NodeEntry *entry)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct node_report *report;

	if (registry_entry_read(entry, &report, &err) == 0) {
		sched_nodes_put(w->config.nodes, report);
		return;
	}
	log_debug("the controller sent an invalid report of a node", F_ERR(err));
	sched_nodes_end(w->config.nodes, entry->node_id);
}

static void take(struct sched_node_watch *w, const Registry__V0__WatchNodesReply *m)
{
	if (!str_eq(w->instance, m->instance))
		begin_table(w, m->instance);
	w->generation = m->generation;
	for (size_t i = 0; i < m->n_changed; i++)
		take_node(w, m->changed[i]);
	for (size_t i = 0; i < m->n_removed_node_ids; i++)
		sched_nodes_end(w->config.nodes, m->removed_node_ids[i]);
	/* One that says something may be followed by more, which was too much for it. */
	if (!w->is_complete && m->n_changed + m->n_removed_node_ids == 0)
		end_table(w);
}

static void ask(struct sched_node_watch *w);

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct sched_node_watch *w = user;

	w->call = NULL;
	if (w->ending)
		return;
	if (error) {
		failed(w, error);
		return;
	}
	if (wait_log_over(&w->waiting) || w->heard_ns == 0)
		log_info("a controller reports the nodes", F_STR("address", w->addresses[w->at]));
	backoff_reset(&w->backoff);
	w->heard_ns = clock_ns();
	loop_timer_set(w->stale, w->config.lease_ms, /* repeat_ms= */ 0);
	take(w, (const Registry__V0__WatchNodesReply *)(const void *)reply);
	ask(w);
}

static int connect_to(struct sched_node_watch *w, struct error **err)
{
	assert(w->addresses); /* a look-up without an error finds one */

	const struct h2_channel_config config = {
		.loop = w->config.loop,
		.endpoint = w->addresses[w->at],
		.tls = w->config.tls,
		.tls_name = SERVER_NAME,
		.handshakes = w->config.handshakes,
	};

	return grpc_client_new(&config, &w->client, err);
}

static void ask(struct sched_node_watch *w)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *instance = x_strdup(w->instance ? w->instance : "");
	Registry__V0__WatchNodesRequest request;

	if (!w->client && connect_to(w, &err) < 0) {
		failed(w, err);
		return;
	}
	registry__v0__watch_nodes_request__init(&request);
	request.instance = instance;
	request.generation = w->generation;
	request.timeout_ms = w->is_complete ? POLL_MS : 0;
	w->call = grpc_client_call(w->client, PATH, &request.base,
		&registry__v0__watch_nodes_reply__descriptor, POLL_MS + LATE_MS, on_reply, w);
}

static void on_addresses(void *user, char *const *addresses, const struct error *error)
{
	struct sched_node_watch *w = user;

	w->lookup = NULL;
	strv_free(TAKE_PTR(w->addresses));
	w->at = 0;
	if (error) {
		failed(w, error);
		return;
	}
	for (size_t i = 0; addresses[i]; i++)
		strv_add(&w->addresses, addresses[i]);
	ask(w);
}

static void go_on(void *user)
{
	struct sched_node_watch *w = user;

	if (w->at < strv_len(w->addresses)) {
		ask(w);
		return;
	}
	w->lookup = loop_look_up(w->config.loop, w->addr.host, w->addr.port, on_addresses, w);
}

int sched_node_watch_new(
	const struct sched_node_watch_config *config, struct sched_node_watch **ret, struct error **err)
{
	struct addr addr;
	struct sched_node_watch *w;

	if (addr_parse_name(config->endpoint, &addr, err) < 0)
		return -1;
	w = x_calloc(1, sizeof(*w));
	w->addr = addr;
	w->endpoint = x_strdup(config->endpoint);
	w->config = *config;
	w->config.endpoint = w->endpoint;
	if (w->config.lease_ms == 0)
		w->config.lease_ms = SCHED_NODE_WATCH_LEASE_MS;
	if (config->tls)
		tls_context_ref(config->tls);
	backoff_init(&w->backoff, config->backoff_ms);
	w->retry = loop_timer_new(config->loop, go_on, w);
	w->stale = loop_timer_new(config->loop, on_stale, w);
	w->grace = loop_timer_new(config->loop, end_grace, w);
	w->sweep = loop_timer_new(config->loop, sweep, w);
	loop_timer_set(w->sweep, SWEEP_MS, SWEEP_MS);
	go_on(w);
	*ret = w;
	return 0;
}

void sched_node_watch_free(struct sched_node_watch *w)
{
	if (!w)
		return;
	w->ending = true;
	loop_lookup_cancel(w->lookup);
	grpc_client_free(w->client);
	loop_timer_close(w->retry);
	loop_timer_close(w->stale);
	loop_timer_close(w->grace);
	loop_timer_close(w->sweep);
	tls_context_unref(w->config.tls);
	wait_log_over(&w->waiting);
	addr_done(&w->addr);
	strv_free(w->addresses);
	free(w->instance);
	free(w->endpoint);
	free(w);
}

bool sched_node_watch_is_synced(const struct sched_node_watch *w)
{
	return w->is_synced;
}

uint64_t sched_node_watch_heard_ns(const struct sched_node_watch *w)
{
	return w->heard_ns;
}

const char *sched_node_watch_failure(const struct sched_node_watch *w)
{
	return w->waiting.why;
}
