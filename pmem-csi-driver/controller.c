/* SPDX-License-Identifier: Apache-2.0 */
#include "controller.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "controller/controller.h"
#include "controller_kube.h"
#include "controller_metrics.h"
#include "metrics.h"
#include "net/core/cert_expiry.h"
#include "net/core/shutdown.h"
#include "net/grpc/grpc_server.h"
#include "net/http1/http_server.h"
#include "net/limits.h"
#include "nodes/node_clients.h"
#include "nodes/registry.h"
#include "open_tls.h"
#include "os/process.h"
#include "probes.h"

#define TICK_MS 1000

/* A lease: until then a node that has not registered may be about to. */
#define START_WINDOW_MS 90000

/* Each node keeps one connection, and may be called over another one. */
#define MAX_NODES 8192
#define DESCRIPTORS                                                                                          \
	(2 * MAX_NODES + LIMIT_CONNECTIONS + LIMIT_HTTP1_CONNECTIONS + LIMIT_PROBE_CONNECTIONS + 64)

/* From SIGTERM on, for calls that run; and then for what is closed. Together less than the 30 s after which
 * kubelet sends SIGKILL. */
#define STOP_GRACE_MS 20000
#define CLOSE_GRACE_S 5

/* Files for the metrics are read by one. */
#define THREADS 2

struct program {
	const struct options *options;
	struct loop *loop;
	struct workers *workers;
	struct handshakes *handshakes;
	struct tls_context *server_tls; /* NULL: plain */
	struct tls_context *csi_tls;    /* for CSI over TCP; NULL: plain, or a unix socket */
	struct tls_context *client_tls;
	struct node_table *nodes;
	struct node_clients *clients;
	struct node_caller caller;
	struct registry *registry;
	struct controller_kube *kube;
	struct controller *controller;
	/* each ends with an empty one */
	struct grpc_service services[4];
	struct grpc_service registry_services[2];
	struct grpc_service counted_services[5]; /* for the metrics: of both servers */
	struct grpc_server *server;
	struct grpc_server *registry_server;
	struct controller_metrics *node_metrics;
	struct metrics *metrics; /* NULL: none */
	struct http_server *http;
	struct probes *probes; /* NULL: none */
	struct cert_expiry *certs;
	struct loop_timer *tick;
	struct shutdown *shutdown;
};

static void tick(void *user)
{
	struct program *p = user;
	uint64_t now = clock_ns();

	registry_tick(p->registry);
	controller_tick(p->controller);
	controller_kube_tick(p->kube, now);
}

static void count_work(void *user, struct metrics_work *ret)
{
	struct program *p = user;

	*ret = (struct metrics_work){0};
	workers_usage(p->workers, &ret->workers);
	metrics_count_server(p->server, ret);
	metrics_count_server(p->registry_server, ret);
}

static int require_ready(void *user, struct error **err)
{
	struct program *p = user;

	if (controller_require_ready(p->controller, err) < 0)
		return -1;
	return controller_kube_require_served(p->kube, err);
}

static void add_metrics(void *user, struct buf *out)
{
	const struct program *p = user;
	const struct controller_metrics_kube kube = {.leads = controller_kube_leads(p->kube),
		.capacities_pending = controller_kube_capacities_pending(p->kube),
		.nodes_pending = controller_kube_nodes_pending(p->kube),
		.volumes_pending = controller_kube_volumes_pending(p->kube),
		.cluster = controller_kube_cluster(p->kube)};

	metrics_certificates(p->metrics, p->certs, out);
	controller_metrics_add(p->node_metrics, &kube, clock_ns(), out);
}

static void shutdown_is_overdue(void *user)
{
	(void)user;
	log_error("ending although calls are still running");
}

static void begin_shutdown(void *user)
{
	struct program *p = user;

	log_info("stopping: running calls are finished first");
	loop_timer_stop(p->tick);
	shutdown_expect(p->shutdown, 3U + (p->http != NULL));
	grpc_server_drain(p->server, shutdown_part_ended, p->shutdown);
	grpc_server_drain(p->registry_server, shutdown_part_ended, p->shutdown);
	if (p->http)
		http_server_drain(p->http, shutdown_part_ended, p->shutdown);
	controller_kube_stop(p->kube, shutdown_part_ended, p->shutdown);
}

static int start_server(struct program *p, const char *endpoint, struct tls_context *tls,
	const struct grpc_service *services, struct grpc_server **ret, struct error **err)
{
	const struct grpc_server_config config = {.name = "controller",
		.loop = p->loop,
		.workers = p->workers,
		.services = services,
		.allow_plain_tcp = p->options->insecure,
		.handshakes = p->handshakes,
		.observer = p->metrics ? metrics_observer(p->metrics) : (struct grpc_observer){0},
		.max_connections = tls ? MAX_NODES : 0};

	*ret = grpc_server_new(&config);
	if (grpc_server_listen(*ret, endpoint, tls, err) < 0)
		return err_wrap(err, "endpoint %s", endpoint);
	log_info("serving", F_STR("endpoint", endpoint), F_U64("port", grpc_server_port(*ret)),
		F_STR("tls", tls ? "mutual" : "none"), F_STR("driver", p->options->driver_name));
	return 0;
}

static int start_http(struct program *p, struct error **err)
{
	const struct options *o = p->options;
	const struct metrics_config config = {
		.path = o->metrics_path,
		.version = PMEM_VERSION,
		.driver_name = o->driver_name,
		.node_id = o->node_id,
		.services = p->counted_services,
		.loop = p->loop,
		.threads = p->workers,
		.work = count_work,
		.work_user = p,
		.ready = {require_ready, p},
		.add = add_metrics,
		.add_user = p,
	};

	if (str_empty(o->metrics_listen))
		return 0;
	p->metrics = metrics_new(&config);
	return metrics_serve(p->metrics, p->loop, o->metrics_listen, &p->http, err);
}

/* Clients may delete volumes on every node: as on a node, only a controller's certificate gives access. */
static int open_csi_tls(struct program *p, struct error **err)
{
	static const char *const controllers[] = {"pmem-registry", NULL};

	if (!str_starts(p->options->endpoint, "tcp://"))
		return 0;
	return open_tls(p->options, TLS_SERVER, controllers, &p->csi_tls, err);
}

static int start_servers(struct program *p, struct error **err)
{
	const struct options *o = p->options;
	const char *registry = str_empty(o->registry_endpoint) ? DEFAULT_REGISTRY : o->registry_endpoint;

	/* The registry is not served where CSI is: the same process does both, but not for the same peers. */
	p->services[0] = p->counted_services[0] = controller_identity_service(p->controller);
	p->services[1] = p->counted_services[1] = controller_service(p->controller);
	p->services[2] = p->counted_services[2] = controller_group_service(p->controller);
	p->registry_services[0] = p->counted_services[3] = registry_service(p->registry);
	const struct readiness ready = {require_ready, p};
	if (start_http(p, err) < 0 || probes_start(p->loop, o->probe_listen, &ready, &p->probes, err) < 0)
		return -1;
	if (start_server(p, registry, p->server_tls, p->registry_services, &p->registry_server, err) < 0)
		return -1;
	if (open_csi_tls(p, err) < 0)
		return -1;
	return start_server(p, o->endpoint, p->csi_tls, p->services, &p->server, err);
}

/* Opens the table of nodes, the clients of the nodes and the TLS contexts for both directions. No names of
 * peers are required here, because the registry checks which peer may do what by the names in its
 * certificate. */
static int open_nodes(struct program *p, struct error **err)
{
	if (open_tls(p->options, TLS_SERVER, /* peer_names= */ NULL, &p->server_tls, err) < 0 ||
		open_tls(p->options, TLS_CLIENT, /* peer_names= */ NULL, &p->client_tls, err) < 0)
		return -1;
	const struct node_clients_config clients = {
		.loop = p->loop, .tls = p->client_tls, .handshakes = p->handshakes};
	p->nodes = node_table_new();
	p->clients = node_clients_new(&clients);
	p->caller = node_clients_caller(p->clients);
	p->node_metrics = controller_metrics_new(p->nodes);
	return 0;
}

static enum registry_proof proof_of(const struct program *p)
{
	const char *how = p->options->node_authentication;

	if (str_eq(how, "role"))
		return REGISTRY_PROOF_ROLE;
	return str_eq(how, "certificate") ? REGISTRY_PROOF_CERTIFICATE : REGISTRY_PROOF_TOKEN;
}

static void open_registry(struct program *p)
{
	const struct registry_config config = {.loop = p->loop,
		.driver_name = p->options->driver_name,
		.table = p->nodes,
		.proof = proof_of(p),
		.tokens = controller_kube_tokens(p->kube),
		.pods = controller_kube_pods(p->kube)};

	if (config.proof == REGISTRY_PROOF_ROLE)
		log_warn("-nodeAuthentication=role: every node can register and unregister every other node");
	p->registry = registry_new(&config);
}

static int open_kube(struct program *p, struct error **err)
{
	const struct controller_kube_config config = {.options = p->options,
		.loop = p->loop,
		.handshakes = p->handshakes,
		.nodes = p->nodes,
		.observer = controller_metrics_observer(p->node_metrics),
		.start_window_ms = START_WINDOW_MS,
		.checks_tokens = proof_of(p) == REGISTRY_PROOF_TOKEN};

	if (controller_kube_new(&config, &p->kube, err) < 0)
		return err_wrap(err, "Kubernetes");
	return 0;
}

static int may_create(void *user, struct error **err)
{
	const struct program *p = user;

	return p->kube ? controller_kube_require_records(p->kube, err) : 0;
}

static void open_controller(struct program *p)
{
	const struct controller_config config = {.driver_name = p->options->driver_name,
		.version = PMEM_VERSION,
		.nodes = p->nodes,
		.caller = &p->caller,
		.cluster = controller_kube_cluster(p->kube),
		.records = controller_kube_records(p->kube),
		.start_window_ms = START_WINDOW_MS,
		.may_create = may_create,
		.may_create_user = p,
		.forget_gone_nodes = p->options->forget_gone_nodes,
		.claims = p->options->skip_hostmount ? controller_kube_client(p->kube) : NULL,
		.offers_health = p->options->volume_health};

	p->controller = controller_new(&config);
}

static int serve(struct program *p, struct error **err)
{
	const struct shutdown_config shutdown = {.loop = p->loop,
		.grace_ms = STOP_GRACE_MS,
		.begin = begin_shutdown,
		.overdue = shutdown_is_overdue,
		.user = p};

	if (shutdown_new(&shutdown, &p->shutdown, err) < 0)
		return -1;
	p->tick = loop_timer_new(p->loop, tick, p);
	if (open_nodes(p, err) < 0 || open_kube(p, err) < 0)
		return -1;
	open_registry(p);
	open_controller(p);
	if (start_servers(p, err) < 0)
		return -1;
	controller_kube_start(p->kube, p->controller);
	loop_timer_set(p->tick, TICK_MS, TICK_MS);
	loop_run(p->loop);
	return 0;
}

/* Callers are freed before what they call; the nodes' clients end the calls whose callers have gone.
 */
static void program_done(struct program *p)
{
	process_limit_closing(CLOSE_GRACE_S);
	workers_free(p->workers);
	/* calls to nodes end first: their outcome may have to be recorded */
	if (p->clients)
		node_clients_free(p->clients);
	controller_kube_free(p->kube);
	grpc_server_free(p->server);
	grpc_server_free(p->registry_server);
	http_server_free(p->http);
	probes_free(p->probes);
	cert_expiry_free(p->certs);
	registry_free(p->registry);
	controller_free(p->controller);
	handshakes_free(p->handshakes);
	metrics_free(p->metrics);
	controller_metrics_free(p->node_metrics);
	node_table_free(p->nodes);
	tls_context_unref(p->server_tls);
	tls_context_unref(p->csi_tls);
	tls_context_unref(p->client_tls);
	loop_timer_close(p->tick);
	shutdown_free(p->shutdown);
	loop_free(p->loop);
	process_limit_closing(0);
}

int controller_run(const struct options *o, struct error **err)
{
	CLEANUP(program_done) struct program p = {.options = o};

	process_set_up(DESCRIPTORS);
	if (loop_new(&p.loop, err) < 0)
		return -1;
	p.workers = workers_new(THREADS);
	p.handshakes = handshakes_new(p.loop);
	p.certs = watch_certificates(o, p.loop, p.workers);
	return serve(&p, err);
}
