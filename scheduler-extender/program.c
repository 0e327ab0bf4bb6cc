/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "kube/config.h"
#include "metrics.h"
#include "net/core/addr.h"
#include "net/core/cert_expiry.h"
#include "net/core/shutdown.h"
#include "net/limits.h"
#include "os/process.h"
#include "resources/api_check.h"
#include "scheduler/extender_service.h"
#include "scheduler/webhook_ca_bundle.h"
#include "scheduler/webhook_service.h"

#define TICK_MS 1000

/* A probe has no body, but a peer that sends one gets an error that says what is wrong. */
#define MAX_PROBE_BODY 4096

/* Connections of both servers, and as many again for work. */
#define DESCRIPTORS (4 * LIMIT_CONNECTIONS + LIMIT_PROBE_CONNECTIONS + 64)

/* The largest request, its reply, and what the webhook is asked meanwhile. */
#define MAX_BUFFERED_BYTES (2 * LIMIT_HTTP1_BODY_BYTES + LIMIT_BUFFERED_BYTES)

/* From SIGTERM on. Nothing takes longer to answer than SCHED_WAIT_MS. */
#define STOP_GRACE_MS 5000
#define CLOSE_GRACE_S 5

struct program {
	const struct options *options;
	struct loop *loop;
	struct handshakes *handshakes;
	struct workers *workers; /* that read certificates now and then */
	struct cert_expiry *certs;
	struct tls_context *server_tls;
	struct kube_config *kube;
	struct kube_client *client;
	struct cluster_view *cluster;
	/* NULL where the webhook alone is served: */
	struct sched_nodes *nodes;
	struct reservations *reservations;
	struct api_check *api_check;
	struct extender_service *service;
	struct webhook_service *webhook_service;
	struct webhook_ca_bundle *trust; /* NULL: the caBundle is others' business */
	struct metrics *metrics;
	struct http_route scheduler_routes[9];
	struct http_server *scheduler; /* for kube-scheduler; NULL: none */
	struct http_route webhook_routes[6];
	struct http_server *webhook; /* for kube-apiserver; NULL: none of its own */
	struct http_route probe_routes[4];
	struct http_server *probes; /* NULL: none */
	struct loop_timer *tick;
	struct shutdown *shutdown;
};

static void tick(void *user)
{
	struct program *p = user;
	uint64_t now = clock_ns();

	cluster_view_tick(p->cluster, now);
	if (p->api_check)
		api_check_tick(p->api_check, now);
}

static void reservations_changed(void *user)
{
	struct program *p = user;

	if (p->service)
		extender_service_reservations_changed(p->service);
}

static void shutdown_is_overdue(void *user)
{
	(void)user;
	log_error("ending although requests are still running");
}

static void begin_shutdown(void *user)
{
	struct program *p = user;

	log_info("stopping: running requests are finished first");
	loop_timer_stop(p->tick);
	shutdown_expect(p->shutdown, (p->scheduler != NULL) + (p->webhook != NULL));
	if (p->webhook)
		http_server_drain(p->webhook, shutdown_part_ended, p->shutdown);
	if (p->scheduler)
		http_server_drain(p->scheduler, shutdown_part_ended, p->shutdown);
}

static int open_server_tls(const struct options *o, struct tls_context **ret, struct error **err)
{
	const struct tls_config config = {.role = TLS_SERVER,
		.ca_file = str_empty(o->client_ca_file) ? NULL : o->client_ca_file,
		.cert_file = o->cert_file,
		.key_file = o->key_file,
		.alpn = "http/1.1",
		.strict_keys = o->strict_keys};

	return tls_context_new(&config, ret, err);
}

static int open_kube(struct program *p, struct error **err)
{
	if (kube_config_find(&p->kube, err) < 0)
		return -1;
	const struct kube_client_config config = {.loop = p->loop,
		.handshakes = p->handshakes,
		.kube = p->kube,
		.qps = p->options->kube_qps,
		.burst = p->options->kube_burst,
		.observer = metrics_kube_observer(p->metrics)};
	return kube_client_new(&config, &p->client, err);
}

/* Opens the service for the requests of kube-scheduler. The view of the cluster exists already. */
static void open_service(struct program *p)
{
	const struct extender_service_config config = {.loop = p->loop,
		.cluster = p->cluster,
		.nodes = p->nodes,
		.reservations = p->reservations,
		.policy = p->options->policy,
		.observer = metrics_service_observer(p->metrics)};
	p->service = extender_service_new(&config);
	p->api_check = api_check_new(p->client);
}

static void open_webhook_service(struct program *p)
{
	const struct options *o = p->options;
	const struct webhook_service_config webhook_service = {.cluster = p->cluster,
		.client = p->client,
		.rules = {o->driver_name, o->scheduler_names},
		.qps = o->kube_qps,
		.burst = o->kube_burst};
	const struct webhook_ca_bundle_config trust = {.client = p->client,
		.configuration = o->webhook_configuration,
		.service = o->webhook_service,
		.ca_file = o->ca_file,
		.cert_file = o->cert_file};

	p->webhook_service = webhook_service_new(&webhook_service);
	if (!str_empty(o->webhook_configuration))
		p->trust = webhook_ca_bundle_new(&trust);
}

static int open_parts(struct program *p, struct error **err)
{
	const struct options *o = p->options;

	if (options_serve_scheduler(o)) {
		p->nodes = sched_nodes_new();
		p->reservations = reservations_new(p->nodes, reservations_changed, p);
	}
	if (open_kube(p, err) < 0)
		return err_wrap(err, "Kubernetes");
	p->cluster = cluster_view_new(p->client, o->driver_name, p->nodes, p->reservations);
	if (p->reservations)
		open_service(p);
	open_webhook_service(p);
	const struct metrics_parts parts = {p->cluster, p->nodes, p->api_check, p->reservations, p->trust};
	metrics_watch(p->metrics, &parts);
	return 0;
}

static int listen_on(struct program *p, struct http_server *server, const char *flag, const char *where,
	struct tls_context *tls, struct error **err)
{
	if (str_empty(where))
		return 0;
	if (http_server_listen(server, where, tls, err) < 0)
		return err_wrap(err, "%s", flag);
	log_info("serving", F_STR("listen", where), F_U64("port", http_server_port(server)),
		F_STR("tls", !tls                                    ? "none"
			     : str_empty(p->options->client_ca_file) ? "server"
								     : "mutual"),
		F_STR("driver", p->options->driver_name));
	return 0;
}

/* Number of routes that add_common_routes() adds to each server. */
#define N_COMMON 4

/* As the driver's. /status says the same, under the name that users of earlier extenders know. */
static struct http_route readiness_route(struct program *p, const char *path)
{
	return (struct http_route){
		.path = path, .methods = "GET, HEAD", .handle = metrics_readyz, .self = p->metrics};
}

static void add_common_routes(struct program *p, struct http_route *routes)
{
	routes[0] = (struct http_route){
		.path = "/status", .methods = "GET, POST", .handle = metrics_readyz, .self = p->metrics};
	routes[1] = (struct http_route){
		.path = "/healthz", .methods = "GET, HEAD", .handle = metrics_healthz, .self = p->metrics};
	routes[2] = (struct http_route){
		.path = "/metrics", .methods = "GET, HEAD", .handle = metrics_all, .self = p->metrics};
	routes[3] = readiness_route(p, "/readyz");
}

static struct http_route webhook_route(struct program *p)
{
	return (struct http_route){.path = "/pod/mutate",
		.methods = "GET, POST",
		.handle_later = webhook_service_handle,
		.self = p->webhook_service};
}

static void set_scheduler_routes(struct program *p)
{
	const struct http_route routes[] = {
		{.path = "/filter",
			.methods = "GET, POST",
			.handle_later = extender_service_filter,
			.self = p->service},
		{.path = "/prioritize",
			.methods = "GET, POST",
			.handle_later = extender_service_prioritize,
			.self = p->service},
		{.path = "/preempt",
			.methods = "POST",
			.handle_later = extender_service_preempt,
			.self = p->service},
	};
	size_t n = N_COMMON;

	add_common_routes(p, p->scheduler_routes);
	for (size_t i = 0; i < ARRAY_SIZE(routes); i++)
		p->scheduler_routes[n++] = routes[i];
	/* Without a port of its own, the webhook is served on the scheduler's port, as by earlier
	 * releases. */
	if (str_empty(p->options->webhook_listen))
		p->scheduler_routes[n] = webhook_route(p);
}

static int start_probes(struct program *p, struct error **err)
{
	const char *where = p->options->probe_listen;
	const struct http_server_config config = {.loop = p->loop,
		.routes = p->probe_routes,
		.max_body_bytes = MAX_PROBE_BODY,
		.for_probes = true};

	if (str_empty(where))
		return 0;
	p->probe_routes[0] = (struct http_route){
		.path = "/healthz", .methods = "GET, HEAD", .handle = metrics_healthz, .self = p->metrics};
	p->probe_routes[1] = readiness_route(p, "/readyz");
	p->probe_routes[2] = readiness_route(p, "/status");
	p->probes = http_server_new(&config);
	return listen_on(p, p->probes, "-probeListen", where, /* tls= */ NULL, err);
}

static struct http_server *new_server(struct program *p, const struct http_route *routes)
{
	const struct http_server_config config = {.loop = p->loop,
		.handshakes = p->handshakes,
		.routes = routes,
		.max_body_bytes = LIMIT_HTTP1_BODY_BYTES,
		.max_buffered_bytes = MAX_BUFFERED_BYTES,
		.max_connections = LIMIT_CONNECTIONS};

	return http_server_new(&config);
}

static int start_scheduler(struct program *p, struct error **err)
{
	const struct options *o = p->options;

	set_scheduler_routes(p);
	p->scheduler = new_server(p, p->scheduler_routes);
	if (listen_on(p, p->scheduler, "-schedulerListen", o->scheduler_listen, p->server_tls, err) < 0)
		return -1;
	return listen_on(p, p->scheduler, "-insecureSchedulerListen", o->insecure_scheduler_listen,
		/* tls= */ NULL, err);
}

static int start_webhook(struct program *p, struct error **err)
{
	add_common_routes(p, p->webhook_routes);
	p->webhook_routes[N_COMMON] = webhook_route(p);
	p->webhook = new_server(p, p->webhook_routes);
	return listen_on(p, p->webhook, "-webhookListen", p->options->webhook_listen, p->server_tls, err);
}

static bool serves_https(const struct options *o)
{
	return !str_empty(o->scheduler_listen) || !str_empty(o->webhook_listen);
}

static int start_http(struct program *p, struct error **err)
{
	const struct options *o = p->options;

	if (serves_https(o) && open_server_tls(o, &p->server_tls, err) < 0)
		return -1;
	if (options_serve_scheduler(o) && start_scheduler(p, err) < 0)
		return -1;
	if (!str_empty(o->webhook_listen) && start_webhook(p, err) < 0)
		return -1;
	return start_probes(p, err);
}

static struct cert_expiry *watch_certificates(struct program *p)
{
	const struct options *o = p->options;
	const char *const certs[] = {o->cert_file, NULL};
	const char *const authorities[] = {o->ca_file, o->client_ca_file, NULL};
	const struct cert_expiry_config config = {
		.loop = p->loop, .workers = p->workers, .cert_files = certs, .ca_files = authorities};

	return cert_expiry_new(&config);
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
	p->certs = watch_certificates(p);
	p->metrics = metrics_new(p->options->driver_name, p->certs);
	if (open_parts(p, err) < 0 || start_http(p, err) < 0)
		return -1;
	loop_timer_set(p->tick, TICK_MS, TICK_MS);
	loop_run(p->loop);
	return 0;
}

/* Callers are freed before what they call. */
static void program_done(struct program *p)
{
	process_limit_closing(CLOSE_GRACE_S);
	workers_free(p->workers);
	http_server_free(p->scheduler);
	http_server_free(p->webhook);
	http_server_free(p->probes);
	extender_service_free(TAKE_PTR(p->service));
	webhook_service_free(p->webhook_service);
	webhook_ca_bundle_free(p->trust);
	api_check_free(p->api_check);
	cluster_view_free(p->cluster);
	kube_client_free(p->client);
	kube_config_free(p->kube);
	reservations_free(p->reservations);
	sched_nodes_free(p->nodes);
	handshakes_free(p->handshakes);
	metrics_free(p->metrics);
	cert_expiry_free(p->certs);
	tls_context_unref(p->server_tls);
	loop_timer_close(p->tick);
	shutdown_free(p->shutdown);
	loop_free(p->loop);
	process_limit_closing(0);
}

int program_run(const struct options *o, struct error **err)
{
	CLEANUP(program_done) struct program p = {.options = o};

	process_set_up(DESCRIPTORS);
	if (loop_new(&p.loop, err) < 0)
		return -1;
	p.handshakes = handshakes_new(p.loop);
	p.workers = workers_new(1);
	return serve(&p, err);
}
