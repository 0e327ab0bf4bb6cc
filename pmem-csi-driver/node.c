/* SPDX-License-Identifier: Apache-2.0 */
#include "node.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi/csi.h"
#include "csi/csi_groups.h"
#include "csi/node_volumes_service.h"
#include "csi/setup_service.h"
#include "devices.h"
#include "guests/shim.h"
#include "init_chain.h"
#include "inspect/propagation_check.h"
#include "metrics.h"
#include "net/core/cert_expiry.h"
#include "net/core/shutdown.h"
#include "net/grpc/grpc_server.h"
#include "net/http1/http_server.h"
#include "net/limits.h"
#include "node_health.h"
#include "node_plugin.h"
#include "node_ready_log.h"
#include "node_registry.h"
#include "node_socket.h"
#include "open_tls.h"
#include "os/paths.h"
#include "os/process.h"
#include "pmem/cxl/cxl_regions.h"
#include "pmem/device/device.h"
#include "pmem/pool/pool_ns.h"
#include "probes.h"

#define REFRESH_MS     30000
#define START_RETRY_MS 5000
#define TICK_MS        1000
/* Longer than a refresh takes on a node with thousands of volumes. */
#define REFRESH_PATIENCE_S 20
#define REGIONS_PATH       "/sys/bus/nd/devices"
/* Connections of both gRPC servers and the HTTP ones, and as many again for work. */
#define DESCRIPTORS (2 * (2 * LIMIT_CONNECTIONS + LIMIT_HTTP1_CONNECTIONS + LIMIT_PROBE_CONNECTIONS))

/* From SIGTERM on, for calls and for the refresh that run; and then for what is closed. Together less than
 * the 30 s after which kubelet sends SIGKILL. Nothing is lost by ending in the middle: that is what the state
 * folder's phases are for. */
#define STOP_GRACE_MS 20000
#define CLOSE_GRACE_S 5

/* A refresh, a look at the health of volumes, and a sample for the metrics: none waits for a worker, nor
 * takes one. */
#define HOUSEKEEPING_THREADS 3

struct program {
	struct device_manager *devices;
	struct path_roots *roots;
	struct shim_sockets shims;
	struct volume_guests guests; /* as the shims answer for them */
	struct volumes *volumes;
	struct csi csi;
	struct csi remote_csi; /* the same for the central controller */
	struct setup_service setup;
	struct loop *loop;
	struct workers *workers;
	struct workers *node_workers; /* for calls of kubelet, which no other call takes from it */
	struct workers *housekeeping;
	struct grpc_service services[6]; /* ends with an empty one */
	struct grpc_service remote_services[5];
	struct grpc_service counted_services[7]; /* for the metrics: of both servers */
	struct handshakes *handshakes;
	struct grpc_server *server;
	struct grpc_server *remote; /* for the central controller; NULL: none */
	struct node_registry *registry;
	struct node_plugin plugin;
	struct node_socket socket;
	struct error *failure;   /* why it ends without being asked to; NULL: it does not */
	struct metrics *metrics; /* NULL: none */
	struct http_server *http;
	struct probes *probes; /* NULL: none */
	struct cert_expiry *certs;
	struct loop_timer *refresh;
	struct loop_timer *tick;
	struct node_health *health;
	struct shutdown *shutdown;
	bool runs_init_chain; /* it ran before us otherwise */
	struct init_chain init_chain;
	const char *cxl_regions; /* as options.cxl_regions; NULL: fake devices */
	char *state_path;
	bool refreshing; /* loop thread only */
	uint64_t refreshing_since_ns;
	unsigned patience_s; /* until a refresh that runs is complained of next */
	bool refreshed;      /* the refresh that runs has listed the devices */
	double refreshed_s;
};

static struct volumes *new_volumes(struct program *n, const struct options *o)
{
	n->shims = SHIM_SOCKETS;
	n->guests = shim_guests(&n->shims);
	const struct volumes_config config = {.node_id = o->node_id,
		.state_path = n->state_path,
		.devices = n->devices,
		.roots = n->roots,
		.pods = node_registry_pods(n->registry),
		.erase_bytes_per_s = o->erase_bytes_per_s,
		.copy_bytes_per_s = o->copy_bytes_per_s,
		.inline_limits = o->inline_limits,
		.direct_volumes_dir = str_empty(o->direct_volumes_dir) ? NULL : o->direct_volumes_dir,
		.guests = &n->guests,
		.changed = node_registry_changed,
		.user = n->registry};

	return volumes_new(&config);
}

static void plan_refresh(void *user)
{
	struct program *n = user;

	n->refreshing = false;
	if (n->refreshed)
		n->refreshed_s = metrics_now_s();
	if (shutdown_has_begun(n->shutdown)) {
		shutdown_part_ended(n->shutdown);
		return;
	}
	bool ready = volumes_is_ready(n->volumes);
	/*
	 * Not earlier: kubelet writes the number of volumes that NodeGetInfo gives into CSINode, where the
	 * API server lets no number be changed or added (ValidateCSINodeUpdate() of
	 * pkg/apis/storage/validation).
	 */
	if (ready && node_plugin_offer(&n->plugin, &n->failure) < 0) {
		shutdown_begin(n->shutdown);
		return;
	}
	loop_timer_set(n->refresh, ready ? REFRESH_MS : START_RETRY_MS, /* repeat_ms= */ 0);
}

static void refresh_done(void *user)
{
	struct program *n = user;

	loop_post(n->loop, plan_refresh, n);
}

/* The init containers have done it in LVM mode; in direct mode nothing else does. New regions are made by
 * pmem-ns-init only. */
static int keep_cxl_regions(const struct program *n, struct error **err)
{
	CLEANUP(fd_closep) int lock = -1;

	if (!cxl_real() || str_eq(n->cxl_regions, "off"))
		return 0;
	if (pool_ns_lock(&lock, err) < 0)
		return -1;
	(void)!cxl_regions_start(n->state_path, CXL_KEEP);
	return 0;
}

static int make_ready(struct program *n, struct error **err)
{
	if (n->runs_init_chain) {
		if (init_chain_run(&n->init_chain, err) < 0)
			return -1;
	} else if (n->cxl_regions && keep_cxl_regions(n, err) < 0) {
		return -1;
	}
	return volumes_start(n->volumes, err);
}

/* The first time this makes the driver ready. */
static void refresh_work(void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct program *n = user;
	bool first = !volumes_is_ready(n->volumes);
	int rc = first ? make_ready(n, &err) : volumes_refresh(n->volumes, &err);

	n->refreshed = rc == 0;
	if (first && rc < 0)
		volumes_start_failed(n->volumes, err);
	if (rc < 0)
		log_error(
			first ? "not ready yet, will try again" : "devices could not be listed", F_ERR(err));
	else if (first)
		node_ready_log(n->volumes, n->devices->ops->mode, REGIONS_PATH, n->state_path);
}

/* A refresh can hang in the kernel, and would do so silently. */
static void complain_of_refresh(struct program *n)
{
	uint64_t age_s = (clock_ns() - n->refreshing_since_ns) / NS_PER_S;
	struct device_activity a;

	if (!n->refreshing || age_s < n->patience_s)
		return;
	n->patience_s *= 2;
	device_activity(n->devices, &a);
	log_warn(volumes_is_ready(n->volumes)
			 ? "devices are not listed: the previous listing has not ended"
			 : "not ready yet: reading state and devices for the first time has not ended",
		F_U64("seconds", age_s),
		F_STR("step", a.command[0] ? a.command : "reading or writing state"));
}

static void refresh_due(void *user)
{
	struct program *n = user;

	if (n->refreshing || shutdown_has_begun(n->shutdown))
		return;
	n->refreshing_since_ns = clock_ns();
	n->patience_s = REFRESH_PATIENCE_S;
	n->refreshing = workers_run(n->housekeeping, refresh_work, refresh_done, n);
	if (!n->refreshing)
		loop_timer_set(n->refresh, START_RETRY_MS, /* repeat_ms= */ 0);
}

static int require_ready(void *user, struct error **err)
{
	struct program *n = user;

	if (volumes_require_ready(n->volumes, err) < 0)
		return -1;
	return node_plugin_require_accepted(&n->plugin, err);
}

static void count_work(void *user, struct metrics_work *ret)
{
	struct program *n = user;

	*ret = (struct metrics_work){.refreshed_s = n->refreshed_s};
	workers_usage(n->workers, &ret->workers);
	workers_usage(n->node_workers, &ret->node_workers);
	device_activity(n->devices, &ret->devices);
	metrics_count_server(n->server, ret);
	metrics_count_server(n->remote, ret);
}

static void drain(struct program *n, struct grpc_server *server)
{
	if (!server)
		return;
	shutdown_expect(n->shutdown, 1);
	grpc_server_drain(server, shutdown_part_ended, n->shutdown);
}

static void drain_http(struct program *n)
{
	if (!n->http)
		return;
	shutdown_expect(n->shutdown, 1);
	http_server_drain(n->http, shutdown_part_ended, n->shutdown);
}

static void shutdown_is_overdue(void *user)
{
	const struct program *n = user;
	CLEANUP(free_charp) char *step = volumes_current_step(n->volumes, NULL);

	log_error("ending although operations are still running", F_STR("work", step ? step : "none"),
		F_STR("refreshing", n->refreshing ? "yes" : "no"));
}

static void unregistered(void *user)
{
	struct program *n = user;

	drain(n, n->server);
	drain(n, n->remote);
	drain_http(n);
	shutdown_part_ended(n->shutdown);
}

static void begin_shutdown(void *user)
{
	struct program *n = user;

	log_info("stopping: running calls are finished first, erasing continues after the next start");
	loop_timer_stop(n->refresh);
	node_health_stop(n->health);
	volumes_stop(n->volumes);
	shutdown_expect(n->shutdown, n->refreshing + 2U); /* and what follows */
	/* kubelet first, then the controllers: no call is to be sent here while sockets are closed */
	node_plugin_stop(&n->plugin, shutdown_part_ended, n->shutdown);
	node_registry_stop(n->registry, unregistered, n);
}

static void socket_is_lost(void *user)
{
	struct program *n = user;

	shutdown_begin(n->shutdown);
}

static void tick(void *user)
{
	struct program *n = user;

	device_tick(n->devices);
	complain_of_refresh(n);
	if (shutdown_has_begun(n->shutdown) || node_socket_check(&n->socket, &n->failure) == 0)
		return;
	/* at once: a call that runs may keep it from coming to an end of its own */
	log_error("the CSI socket is lost, the driver ends", F_ERR(n->failure));
	shutdown_begin(n->shutdown);
}

static int start_registry(struct program *n, const struct options *o, struct error **err)
{
	const struct node_registry_config config = {
		.options = o,
		.loop = n->loop,
		.handshakes = n->handshakes,
		.volumes = n->volumes,
		.device_mode = n->devices->ops->mode,
		.port = n->remote ? grpc_server_port(n->remote) : 0,
	};

	return node_registry_start(n->registry, &config, err);
}

static int start_server(struct program *n, const struct options *o, const char *endpoint,
	const struct grpc_service *services, struct grpc_server **ret, struct error **err)
{
	static const char *const central_controller[] = {"pmem-registry", NULL};
	CLEANUP(tls_context_unrefp) struct tls_context *tls = NULL;
	const struct grpc_server_config config = {.name = o->node_id,
		.recipient = o->node_id,
		.loop = n->loop,
		.workers = n->workers,
		.services = services,
		.allow_plain_tcp = o->insecure,
		.handshakes = n->handshakes,
		.observer = n->metrics ? metrics_observer(n->metrics) : (struct grpc_observer){0}};

	if (str_starts(endpoint, "tcp://") && open_tls(o, TLS_SERVER, central_controller, &tls, err) < 0)
		return -1;
	*ret = grpc_server_new(&config);
	if (grpc_server_listen(*ret, endpoint, tls, err) < 0)
		return err_wrap(err, "endpoint %s", endpoint);
	log_info("serving", F_STR("endpoint", endpoint), F_STR("tls", tls ? "mutual" : "none"),
		F_STR("node", o->node_id), F_STR("driver", o->driver_name),
		F_STR("devices", o->device_manager));
	return 0;
}

static void add_metrics(void *user, struct buf *out)
{
	struct program *n = user;

	node_registry_metrics(n->registry, out);
	metrics_certificates(n->metrics, n->certs, out);
	node_plugin_metrics(&n->plugin, out);
	node_health_metrics(n->health, out);
}

static void new_metrics(struct program *n, const struct options *o)
{
	const struct metrics_config config = {
		.path = o->metrics_path,
		.version = PMEM_VERSION,
		.driver_name = o->driver_name,
		.node_id = o->node_id,
		.regions_path = str_eq(o->device_manager, "fake") ? NULL : REGIONS_PATH,
		.volumes = n->volumes,
		.services = n->counted_services,
		.loop = n->loop,
		.threads = n->housekeeping,
		.work = count_work,
		.work_user = n,
		.ready = {require_ready, n},
		.add = add_metrics,
		.add_user = n,
	};

	if (!str_empty(o->metrics_listen))
		n->metrics = metrics_new(&config);
}

/* Opens the service for inspection, which is not offered over TCP, because it is about folders of this
 * host. */
static struct grpc_service open_inspection(struct program *n, const struct options *o)
{
	n->setup = (struct setup_service){.csi = &n->csi,
		.device_manager = o->device_manager,
		.state_path = n->state_path,
		.fake_path = o->fake_path,
		.kubelet_dirs = o->kubelet_dirs};
	return setup_service(&n->setup);
}

static int start_servers(struct program *n, const struct options *o, struct error **err)
{
	n->csi = (struct csi){.driver_name = o->driver_name,
		.version = PMEM_VERSION,
		.node_id = o->node_id,
		.offers_health = o->volume_health,
		.volumes = n->volumes};
	n->services[0] = csi_identity_service(&n->csi);
	n->services[1] = csi_controller_service(&n->csi);
	n->services[2] = csi_group_service(&n->csi);
	n->services[3] = csi_node_service(&n->csi);
	n->services[3].workers = n->node_workers;
	if (!str_starts(o->endpoint, "tcp://"))
		n->services[4] = open_inspection(n, o);
	n->remote_csi = n->csi;
	n->remote_csi.made_by_controller = true;
	/* not the node service: mounts are kubelet's business */
	n->remote_services[0] = csi_identity_service(&n->remote_csi);
	n->remote_services[1] = csi_controller_service(&n->remote_csi);
	n->remote_services[2] = csi_group_service(&n->remote_csi);
	n->remote_services[3] = node_volumes_service(&n->remote_csi);
	n->counted_services[0] = n->remote_services[3];
	memcpy(n->counted_services + 1, n->services, sizeof(n->services));
	new_metrics(n, o);
	const struct readiness ready = {require_ready, n};
	if (n->metrics && metrics_serve(n->metrics, n->loop, o->metrics_listen, &n->http, err) < 0)
		return -1;
	if (probes_start(n->loop, o->probe_listen, &ready, &n->probes, err) < 0)
		return -1;
	if (start_server(n, o, o->endpoint, n->services, &n->server, err) < 0)
		return -1;
	if (node_socket_note(&n->socket, o->endpoint, err) < 0)
		return -1;
	if (!str_empty(o->controller_endpoint) &&
		start_server(n, o, o->controller_endpoint, n->remote_services, &n->remote, err) < 0)
		return -1;
	if (start_registry(n, o, err) < 0)
		return -1;
	const struct node_plugin_config plugin = {
		.options = o, .loop = n->loop, .workers = n->workers, .end = socket_is_lost, .user = n};
	return node_plugin_open(&n->plugin, &plugin, err);
}

static int serve(struct program *n, const struct options *o, struct error **err)
{
	const struct shutdown_config shutdown = {.loop = n->loop,
		.grace_ms = STOP_GRACE_MS,
		.begin = begin_shutdown,
		.overdue = shutdown_is_overdue,
		.user = n};

	if (shutdown_new(&shutdown, &n->shutdown, err) < 0)
		return -1;
	n->refresh = loop_timer_new(n->loop, refresh_due, n);
	n->tick = loop_timer_new(n->loop, tick, n);
	loop_timer_detach(n->tick);
	loop_timer_set(n->tick, TICK_MS, TICK_MS);
	n->health = node_health_new(&(struct node_health_config){.loop = n->loop,
		.threads = n->housekeeping,
		.volumes = n->volumes,
		.driver_name = o->driver_name,
		.node_id = o->node_id});
	if (start_servers(n, o, err) < 0)
		return -1;
	/* after the socket is there: nothing slow comes before it */
	refresh_due(n);
	loop_run(n->loop);
	if (n->failure) {
		*err = TAKE_PTR(n->failure);
		return -1;
	}
	return node_plugin_result(&n->plugin, err);
}

/* Frees the objects in the reverse order of their dependencies: running work ends before the objects that it
 * uses are freed. */
static void program_done(struct program *n)
{
	process_limit_closing(CLOSE_GRACE_S);
	workers_free(n->workers);
	workers_free(n->node_workers);
	workers_free(n->housekeeping);
	node_registry_close(n->registry);
	node_plugin_done(&n->plugin);
	node_socket_done(&n->socket);
	error_free(n->failure);
	grpc_server_free(n->server);
	grpc_server_free(n->remote);
	http_server_free(n->http);
	probes_free(n->probes);
	cert_expiry_free(n->certs);
	handshakes_free(n->handshakes);
	metrics_free(n->metrics);
	loop_timer_close(n->refresh);
	loop_timer_close(n->tick);
	node_health_free(n->health);
	shutdown_free(n->shutdown);
	loop_free(n->loop);
	volumes_free(n->volumes);
	node_registry_free(n->registry);
	path_roots_free(n->roots);
	device_close(n->devices);
	free(n->state_path);
	process_limit_closing(0);
}

int node_run(const struct options *o, struct error **err)
{
	CLEANUP(program_done)
	struct program n = {.runs_init_chain = o->has_pmem_percentage && str_eq(o->device_manager, "lvm"),
		.cxl_regions = str_eq(o->device_manager, "fake") ? NULL : o->cxl_regions};

	process_set_up(DESCRIPTORS);
	if (path_roots_new(o->kubelet_dirs, &n.roots, err) < 0)
		return err_wrap(err, "-kubeletDir");
	propagation_check_warn(o->kubelet_dirs);
	if (devices_open(o, DEVICES_SERVE, &n.devices, err) < 0)
		return -1;
	n.state_path = options_state_path(o);
	n.init_chain = (struct init_chain){.percent = o->pmem_percentage,
		.cxl_regions = o->cxl_regions,
		.init_labels = o->init_labels,
		.unlabelled = o->unlabelled,
		.state_path = n.state_path};
	if (str_eq(o->device_manager, "fake") && str_empty(o->fake_path))
		log_warn("-deviceManager=fake without -fakePath: volumes have no devices, "
			 "cannot be staged, and are lost when the driver ends");
	n.registry = node_registry_new(o);
	n.volumes = new_volumes(&n, o);
	if (loop_new(&n.loop, err) < 0)
		return -1;
	n.workers = workers_new(WORKERS_DEFAULT_MAX);
	n.node_workers = workers_new(WORKERS_DEFAULT_MAX);
	n.housekeeping = workers_new(HOUSEKEEPING_THREADS);
	n.handshakes = handshakes_new(n.loop);
	n.certs = watch_certificates(o, n.loop, n.housekeeping);
	return serve(&n, o, err);
}
