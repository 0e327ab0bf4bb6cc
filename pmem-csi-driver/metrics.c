/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "metrics_snapshot.h"
#include "probes.h"

/* Nothing that is served over HTTP looks at a body, but a peer that sends one gets an error that says what is
 * wrong. */
#define MAX_HTTP_BODY 4096

#define OPERATIONS "csi_plugin_operations_seconds"

/* Their spelling in Go (google.golang.org/grpc/codes), which is the value of csi-lib-utils' label. */
static const char *const status_names[] = {"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded",
	"NotFound", "AlreadyExists", "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted",
	"OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"};

#define N_STATUS ARRAY_SIZE(status_names)

/* csi-lib-utils, metrics/metrics.go, and what lies below its first: most calls take less */
static const double bounds_s[] = {
	0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600};

/* Calls of one method, by status; NULL: none yet */
struct method {
	const char *path;
	struct prometheus_histogram *by_status[N_STATUS];
};

struct metrics {
	struct metrics_config config;
	char *simple_path;
	struct http_route routes[5];
	struct method *methods;
	size_t n_methods;
	double started; /* seconds since 1970 */
	struct sampler *sampler;
};

static void add_build_info(const struct metrics *m, struct buf *out)
{
	const struct prometheus_label labels[] = {{"version", m->config.version}, {0}};

	prometheus_family(out, "build_info", PROMETHEUS_GAUGE,
		"A metric with a constant '1' value labeled by version.");
	prometheus_sample(out, "build_info", labels, 1);
}

static void add_value(const struct metrics *m, struct buf *out, const char *name, enum prometheus_type type,
	const char *help, double value)
{
	const struct prometheus_label labels[] = {
		{"driver_name", m->config.driver_name}, {"node", m->config.node_id}, {0}};

	prometheus_family(out, name, type, help);
	prometheus_sample(out, name, labels, value);
}

static void add_gauge(
	const struct metrics *m, struct buf *out, const char *name, const char *help, uint64_t value)
{
	add_value(m, out, name, PROMETHEUS_GAUGE, help, (double)value);
}

static void add_of_service(
	const struct metrics *m, struct buf *out, const char *name, const char *service, unsigned value)
{
	const struct prometheus_label labels[] = {{"driver_name", m->config.driver_name},
		{"node", m->config.node_id}, {"service", service}, {0}};

	prometheus_sample(out, name, labels, value);
}

static void add_workers(const struct metrics *m, struct buf *out, const struct metrics_work *w)
{
	static const char busy[] = "pmem_csi_workers_busy";
	static const char limit[] = "pmem_csi_workers_limit";
	bool has_own = w->node_workers.max > 0;

	prometheus_family(out, busy, PROMETHEUS_GAUGE, "Threads that work on calls.");
	add_of_service(m, out, busy, "other", w->workers.busy);
	if (has_own)
		add_of_service(m, out, busy, "Node", w->node_workers.busy);
	prometheus_family(out, limit, PROMETHEUS_GAUGE,
		"Threads that can work on calls; further calls are refused as unavailable.");
	add_of_service(m, out, limit, "other", w->workers.max);
	if (has_own)
		add_of_service(m, out, limit, "Node", w->node_workers.max);
}

static void add_amounts(const struct metrics *m, struct buf *out, uint64_t regions_bytes)
{
	struct capacity c;

	if (!volumes_capacity(m->config.volumes, /* sync= */ false, &c))
		return;
	add_gauge(m, out, "pmem_amount_max_volume_size",
		"The size of the largest PMEM volume that can be created.", c.max_volume_bytes);
	add_gauge(m, out, "pmem_amount_available",
		"Remaining amount of PMEM on the host that can be used for new volumes.", c.available_bytes);
	add_gauge(m, out, "pmem_amount_managed", "Amount of PMEM on the host that is managed by PMEM-CSI.",
		c.total_bytes);
	add_gauge(m, out, "pmem_amount_total", "Total amount of PMEM on the host.",
		regions_bytes > c.total_bytes ? regions_bytes : c.total_bytes);
}

static void add_phase(const struct metrics *m, struct buf *out, const char *phase, size_t n)
{
	const struct prometheus_label labels[] = {
		{"driver_name", m->config.driver_name}, {"node", m->config.node_id}, {"phase", phase}, {0}};

	prometheus_sample(out, "pmem_volumes", labels, (double)n);
}

static void add_pools(const struct metrics *m, const struct volumes_overview *o, struct buf *out)
{
	prometheus_family(out, "pmem_pools", PROMETHEUS_GAUGE,
		"Regions or volume groups by durability; synchronous: the kernel accepts MAP_SYNC on their memory; "
		"fsync: it refuses it; unknown: no volume was mounted with DAX there.");
	for (size_t i = 0; i < ARRAY_SIZE(o->n_pools); i++) {
		const struct prometheus_label labels[] = {{"driver_name", m->config.driver_name},
			{"node", m->config.node_id}, {"durability", durability_name((enum durability)i)},
			{0}};

		prometheus_sample(out, "pmem_pools", labels, (double)o->n_pools[i]);
	}
}

static void add_volumes(const struct metrics *m, struct buf *out)
{
	struct volumes_overview o;

	if (!volumes_is_ready(m->config.volumes))
		return;
	volumes_overview(m->config.volumes, &o);
	prometheus_family(out, "pmem_volumes", PROMETHEUS_GAUGE,
		"Volumes of the node by phase; missing: their device is not there, "
		"or its pool is absent; damaged: their state file cannot be read; "
		"device-without-state: devices of which there is no state file.");
	add_phase(m, out, volume_phase_name(PHASE_CREATING), o.n_creating);
	add_phase(m, out, volume_phase_name(PHASE_READY), o.n_ready);
	add_phase(m, out, volume_phase_name(PHASE_MISSING), o.n_missing);
	add_phase(m, out, volume_phase_name(PHASE_ERASING), o.n_erasing);
	add_phase(m, out, volume_phase_name(PHASE_DAMAGED), o.n_damaged);
	add_phase(m, out, "device-without-state", o.n_strangers);
	add_pools(m, &o, out);
	add_gauge(m, out, "pmem_pools_failing",
		"Regions or volume groups in which the last volume could not be made; they are avoided for some time.",
		o.n_failing_pools);
	add_gauge(m, out, "pmem_erasures_running", "Deleted volumes that are being overwritten now.",
		o.erasures_running);
	add_gauge(m, out, "pmem_erase_bytes_left", "Bytes of deleted volumes that have to be overwritten.",
		o.to_erase_bytes);
	add_value(m, out, "pmem_erased_bytes_total", PROMETHEUS_COUNTER,
		"Bytes of deleted volumes that were overwritten.", (double)o.erased_bytes);
	add_gauge(m, out, "pmem_copy_bytes_left",
		"Bytes that volumes which are being copied have still to copy and to zero.", o.to_copy_bytes);
	add_value(m, out, "pmem_copied_bytes_total", PROMETHEUS_COUNTER,
		"Bytes that were copied into new volumes.", (double)o.copied_bytes);
	add_value(m, out, "pmem_copy_pauses_total", PROMETHEUS_COUNTER,
		"How often the writers of a volume were stopped while it was copied.", (double)o.copy_pauses);
	add_value(m, out, "pmem_copy_pause_seconds_total", PROMETHEUS_COUNTER,
		"How long the writers of volumes were stopped while these were copied.",
		(double)o.copy_pause_ns / NS_PER_S);
}

static void add_ready(const struct metrics *m, struct buf *out)
{
	CLEANUP(error_freep) struct error *why = NULL;

	add_gauge(m, out, "pmem_ready", "Whether the driver is ready, as the CSI call Probe reports.",
		m->config.ready.require(m->config.ready.user, &why) == 0);
}

static void add_work(const struct metrics *m, struct buf *out)
{
	struct metrics_work w = {0};

	m->config.work(m->config.work_user, &w);
	if (w.refreshed_s > 0)
		add_value(m, out, "pmem_last_refresh_timestamp_seconds", PROMETHEUS_GAUGE,
			"When the devices of the node were listed last, in seconds since unix epoch.",
			w.refreshed_s);
	if (m->config.volumes)
		add_value(m, out, "pmem_lvm_restarts_total", PROMETHEUS_COUNTER,
			"How often the lvm helper process died or had to be given up.",
			(double)w.devices.restarts);
	add_workers(m, out, &w);
	add_gauge(m, out, "pmem_csi_calls_in_flight",
		"gRPC calls that are received, worked on or answered, also those whose client has gone.",
		w.calls);
	add_gauge(m, out, "pmem_csi_connections", "Connections of gRPC clients.", w.connections);
}

static void add_method(const struct metrics *m, struct buf *out, const struct method *method)
{
	for (size_t i = 0; i < N_STATUS; i++) {
		const struct prometheus_label labels[] = {{"driver_name", m->config.driver_name},
			{"grpc_status_code", status_names[i]}, {"method_name", method->path}, {0}};

		if (method->by_status[i])
			prometheus_sample_histogram(out, OPERATIONS, labels, method->by_status[i]);
	}
}

static void add_operations(const struct metrics *m, struct buf *out)
{
	prometheus_family(out, OPERATIONS, PROMETHEUS_HISTOGRAM,
		"Container Storage Interface operation duration with gRPC error code status total");
	for (size_t i = 0; i < m->n_methods; i++)
		add_method(m, out, &m->methods[i]);
}

static void handle_all(void *self, const struct http1_request *request, struct http_reply *reply)
{
	const struct metrics *m = self;
	const struct metrics_snapshot *sample = sampler_get(m->sampler);

	(void)request;
	reply->content_type = PROMETHEUS_CONTENT_TYPE;
	add_build_info(m, &reply->body);
	add_ready(m, &reply->body);
	if (m->config.volumes) {
		add_amounts(m, &reply->body, sample->regions_bytes);
		add_volumes(m, &reply->body);
	}
	add_work(m, &reply->body);
	if (m->config.add)
		m->config.add(m->config.add_user, &reply->body);
	add_operations(m, &reply->body);
	metrics_process(&reply->body, m->started, &sample->process);
}

static void handle_simple(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)request;
	reply->content_type = PROMETHEUS_CONTENT_TYPE;
	add_build_info(self, &reply->body);
}

static void call_ended(void *user, const char *method_path, unsigned status, uint64_t duration_ns)
{
	struct metrics *m = user;
	struct prometheus_histogram **h;
	size_t i = 0;

	/* The pointer is that of the method's table. */
	while (i < m->n_methods && m->methods[i].path != method_path)
		i++;
	assert(i < m->n_methods && status < N_STATUS);
	h = &m->methods[i].by_status[status];
	if (!*h) {
		*h = x_calloc(1, sizeof(**h));
		**h = (struct prometheus_histogram){.bounds = bounds_s, .n_bounds = ARRAY_SIZE(bounds_s)};
	}
	prometheus_observe(*h, (double)duration_ns / (double)NS_PER_S);
}

static void find_methods(struct metrics *m)
{
	for (const struct grpc_service *s = m->config.services; s->methods; s++) {
		for (const struct grpc_method *method = s->methods; method->path; method++) {
			m->methods = x_realloc(m->methods, m->n_methods + 1, sizeof(*m->methods));
			m->methods[m->n_methods++] = (struct method){.path = method->path};
		}
	}
}

void metrics_count_server(const struct grpc_server *server, struct metrics_work *w)
{
	struct grpc_server_count count = {0};

	if (server)
		grpc_server_count(server, &count);
	w->calls += count.calls;
	w->connections += count.connections;
}

void metrics_certificates(const struct metrics *m, struct cert_expiry *certs, struct buf *out)
{
	const struct prometheus_label labels[] = {
		{"driver_name", m->config.driver_name}, {"node", m->config.node_id}, {0}};

	cert_expiry_metrics(certs, labels, out);
}

double metrics_now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / (double)NS_PER_S;
}

struct metrics *metrics_new(const struct metrics_config *config)
{
	struct metrics *m = x_calloc(1, sizeof(*m));

	m->config = *config;
	m->started = metrics_now_s();
	m->sampler = sampler_new(config->loop, config->threads, config->regions_path);
	m->simple_path = x_asprintf("%s/simple", config->path);
	m->routes[0] = (struct http_route){
		.path = config->path, .methods = "GET, HEAD", .handle = handle_all, .self = m};
	m->routes[1] = (struct http_route){
		.path = m->simple_path, .methods = "GET, HEAD", .handle = handle_simple, .self = m};
	probes_routes(&m->config.ready, &m->routes[2]);
	find_methods(m);
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_methods; i++) {
		for (size_t status = 0; status < N_STATUS; status++)
			free(m->methods[i].by_status[status]);
	}
	free(m->methods);
	sampler_free(m->sampler);
	free(m->simple_path);
	free(m);
}

int metrics_serve(const struct metrics *m, struct loop *loop, const char *listen, struct http_server **ret,
	struct error **err)
{
	const struct http_server_config config = {
		.loop = loop, .routes = m->routes, .max_body_bytes = MAX_HTTP_BODY};

	*ret = http_server_new(&config);
	if (http_server_listen(*ret, listen, /* tls= */ NULL, err) < 0)
		return err_wrap(err, "-metricsListen");
	log_info("serving metrics", F_STR("listen", listen), F_U64("port", http_server_port(*ret)),
		F_STR("path", m->config.path));
	return 0;
}

struct grpc_observer metrics_observer(struct metrics *m)
{
	return (struct grpc_observer){call_ended, m};
}
