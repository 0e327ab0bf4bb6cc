/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/args.h"
#include "sim.h"

#define LOOK_MS      100
#define NODES_PER_IP 250

static int open_tls(struct sim *sim, struct error **err)
{
	static const char *const peers[] = {"pmem-registry", NULL};
	const struct options *o = sim->options;
	struct tls_config config = {.role = TLS_CLIENT,
		.ca_file = o->ca_file,
		.cert_file = o->cert_file,
		.key_file = o->key_file,
		.alpn = "h2"};

	if (!o->ca_file)
		return 0;
	if (tls_context_new(&config, &sim->client_tls, err) < 0)
		return -1;
	config.role = TLS_SERVER;
	config.peer_names = peers;
	return tls_context_new(&config, &sim->server_tls, err);
}

/* They take half of what the node has. */
static int add_volumes(struct node *n, struct error **err)
{
	const struct options *o = n->sim->options;
	uint64_t free_bytes;

	node_room(n, &free_bytes);
	for (uint32_t i = 0; i < o->volumes; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("pvc-%s-%u", n->id, i);

		if (!node_add_volume(n, name, free_bytes / 2 / o->volumes))
			return err_set(err, ERR_INVALID_ARGUMENT, "-volumes: there is no room for so many");
	}
	return 0;
}

static int open_node(struct sim *sim, uint32_t number, struct error **err)
{
	const struct options *o = sim->options;
	struct node *n = &sim->nodes[number];

	n->sim = sim;
	n->id = x_asprintf("%s%u", o->prefix, number);
	n->endpoint =
		x_asprintf("tcp://127.1.%u.%u:%u", number / NODES_PER_IP, 1 + number % NODES_PER_IP, o->port);
	if (node_add_regions(n, err) < 0 || add_volumes(n, err) < 0)
		return -1;
	node_services(n);
	n->server = grpc_server_new(&(struct grpc_server_config){.loop = sim->loop,
		.workers = sim->workers,
		.services = n->services,
		.handshakes = sim->handshakes});
	if (grpc_server_listen(n->server, n->endpoint, sim->server_tls, err) < 0)
		return -1;
	return registration_new(&(struct registration_config){.loop = sim->loop,
					.endpoint = o->registry,
					.node_id = n->id,
					.tls = sim->client_tls,
					.handshakes = sim->handshakes,
					.heartbeat_ms = o->heartbeat_ms,
					.fill = node_fill,
					.user = n},
		&n->registration, err);
}

static bool is_registered(const struct node *n)
{
	struct registration_peer *peers;
	size_t count = registration_peers(n->registration, &peers);
	bool yes = count > 0;

	for (size_t i = 0; i < count; i++)
		yes &= peers[i].registered;
	free(peers);
	return yes;
}

static uint32_t count_registered(const struct sim *sim)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < sim->n_nodes; i++)
		n += is_registered(&sim->nodes[i]);
	return n;
}

static void print_figures(const struct sim *sim, const char *event)
{
	struct buf text = BUF_INIT(4096);
	struct json_writer w = JSON_WRITER(&text);
	size_t volumes = 0;

	for (uint32_t i = 0; i < sim->n_nodes; i++)
		volumes += sim->nodes[i].n_volumes;
	json_object(&w);
	json_key_str(&w, "event", event);
	json_key_u64(&w, "nodes", sim->n_nodes);
	json_key_u64(&w, "registered", count_registered(sim));
	json_key_u64(&w, "all_registered_ms",
		sim->all_registered_ns ? (sim->all_registered_ns - sim->begin_ns) / NS_PER_MS : 0);
	json_key_u64(&w, "volumes", volumes);
	json_key_u64(&w, "created", sim->created);
	json_key_u64(&w, "deleted", sim->deleted);
	json_key_u64(&w, "failed", sim->failed);
	json_key_u64(&w, "refused", sim->refused);
	json_object_end(&w);
	puts(buf_str(&text));
	fflush(stdout);
	buf_done(&text);
}

static void on_look(void *user)
{
	struct sim *sim = user;

	if (sim->all_registered_ns || count_registered(sim) < sim->n_nodes)
		return;
	sim->all_registered_ns = clock_ns();
	print_figures(sim, "registered");
}

/* Changes the health of all volumes of all nodes at once. */
static void on_health(void *user)
{
	struct sim *sim = user;

	sim->is_sick = !sim->is_sick;
	for (uint32_t i = 0; i < sim->n_nodes; i++)
		registration_touch(sim->nodes[i].registration);
}

static void on_end(void *user)
{
	struct sim *sim = user;

	loop_stop(sim->loop);
}

static void on_stopped(void *user)
{
	struct node *n = user;

	n->stopped = true;
	if (++n->sim->ended == n->sim->n_nodes)
		loop_stop(n->sim->loop);
}

static void close_nodes(struct sim *sim)
{
	for (uint32_t i = 0; i < sim->n_nodes; i++)
		registration_stop(sim->nodes[i].registration, on_stopped, &sim->nodes[i]);
	while (sim->ended < sim->n_nodes)
		loop_run(sim->loop);
}

static int run(struct sim *sim, struct error **err)
{
	struct loop_timer *look = loop_timer_new(sim->loop, on_look, sim);
	struct loop_timer *end = loop_timer_new(sim->loop, on_end, sim);
	struct loop_timer *health = loop_timer_new(sim->loop, on_health, sim);
	struct loop_signal *term;
	struct loop_signal *interrupt;

	if (loop_on_signal(sim->loop, SIGTERM, on_end, sim, &term, err) < 0 ||
		loop_on_signal(sim->loop, SIGINT, on_end, sim, &interrupt, err) < 0)
		return -1;
	sim->begin_ns = clock_ns();
	for (; sim->n_nodes < sim->options->count; sim->n_nodes++) {
		if (open_node(sim, sim->n_nodes, err) < 0)
			return -1;
	}
	loop_timer_set(look, LOOK_MS, LOOK_MS);
	if (sim->options->health_ms > 0)
		loop_timer_set(health, sim->options->health_ms, sim->options->health_ms);
	if (sim->options->run_ms > 0)
		loop_timer_set(end, sim->options->run_ms, 0);
	loop_run(sim->loop);
	print_figures(sim, "end");
	close_nodes(sim);
	return 0;
}

int main(int argc, char **argv)
{
	static struct options o = {.driver_name = "pmem-csi.intel.com",
		.prefix = "sim-",
		.count = 1000,
		.capacity_bytes = 64ULL << 30,
		.port = 10100};
	const struct opt table[] = {
		{"registryEndpoint", OPT_STR, &o.registry, "ENDPOINT", "registry, tcp://host:port"},
		{"caFile", OPT_STR, &o.ca_file, "FILE", "authority; none: no TLS"},
		{"certFile", OPT_STR, &o.cert_file, "FILE", "certificate of all nodes"},
		{"keyFile", OPT_STR, &o.key_file, "FILE", "its key"},
		{"drivername", OPT_STR, &o.driver_name, "NAME", "in topologies"},
		{"prefix", OPT_STR, &o.prefix, "TEXT", "of node IDs (sim-)"},
		{"count", OPT_U32, &o.count, "N", "nodes (1000)"},
		{"volumes", OPT_U32, &o.volumes, "N", "that each node has at the start (0)"},
		{"capacity", OPT_SIZE, &o.capacity_bytes, "SIZE", "of each node's only region (64Gi)"},
		{"region", OPT_STRS, &o.region_sizes, "SIZE", "of each node, instead; may be repeated"},
		{"heartbeat", OPT_DURATION, &o.heartbeat_ms, "DURATION", "default as the driver's"},
		{"delay", OPT_DURATION, &o.delay_ms, "DURATION", "of creating and deleting (0)"},
		{"failureRate", OPT_PERCENT, &o.failure_rate, "PERCENT", "of these that fail (0)"},
		{"healthChange", OPT_DURATION, &o.health_ms, "DURATION",
			"after which the health of all volumes changes each time (0: never)"},
		{"duration", OPT_DURATION, &o.run_ms, "DURATION", "0: until SIGTERM"},
		{"port", OPT_U32, &o.port, "PORT", "of the nodes, at 127.1.x.y (10100)"},
		{"h", OPT_BOOL, &o.show_help, NULL, "this text"},
		{0},
	};
	CLEANUP(args_done) struct args args = {0};
	CLEANUP(error_freep) struct error *err = NULL;
	struct sim sim = {.options = &o};

	if (args_parse(table, argc, argv, &args, &err) < 0) {
		fprintf(stderr, "node-sim: %s\n", err->msg);
		return 2;
	}
	if (o.show_help || !o.registry || o.count == 0 || args.rest[0]) {
		CLEANUP(free_charp) char *help = args_help("usage: node-sim [FLAG]...", table);
		fputs(help, stdout);
		return o.show_help ? 0 : 2;
	}
	log_init("node-sim", LOG_TEXT, 0);
	mem_tune(MEM_LARGE_BYTES);
	sim.nodes = x_calloc(o.count, sizeof(*sim.nodes));
	if (loop_new(&sim.loop, &err) < 0 || open_tls(&sim, &err) < 0) {
		fprintf(stderr, "node-sim: %s\n", err->msg);
		return 1;
	}
	sim.workers = workers_new(0);
	sim.handshakes = handshakes_new(sim.loop);
	if (run(&sim, &err) < 0) {
		fprintf(stderr, "node-sim: %s\n", err->msg);
		return 1;
	}
	/* what is left is the process's */
	return 0;
}
