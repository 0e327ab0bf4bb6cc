#include "metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/prometheus.h"
#include "base/str.h"
#include "metrics_process.h"
#include "os/file.h"

#define OPERATIONS "csi_plugin_operations_seconds"

/* Their spelling in Go (google.golang.org/grpc/codes), which is the value of csi-lib-utils' label. */
static const char *const status_names[] = {"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded",
	"NotFound", "AlreadyExists", "PermissionDenied", "ResourceExhausted", "FailedPrecondition", "Aborted",
	"OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"};

#define N_STATUS ARRAY_SIZE(status_names)

/* csi-lib-utils, metrics/metrics.go */
static const double bounds_s[] = {0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600};

/* Calls of one method, by status; NULL: none yet */
struct method {
	const char *path;
	struct prometheus_histogram *by_status[N_STATUS];
};

struct metrics {
	struct metrics_config config;
	char *simple_path;
	struct http_route routes[4];
	struct method *methods;
	size_t n_methods;
	double started; /* seconds since 1970 */
};

static void add_build_info(const struct metrics *m, struct buf *out)
{
	const struct prometheus_label labels[] = {{"version", m->config.version}, {0}};

	prometheus_family(out, "build_info", PROMETHEUS_GAUGE,
		"A metric with a constant '1' value labeled by version.");
	prometheus_sample(out, "build_info", labels, 1);
}

static void add_amount(
	const struct metrics *m, struct buf *out, const char *name, const char *help, uint64_t bytes)
{
	const struct prometheus_label labels[] = {
		{"driver_name", m->config.driver_name}, {"node", m->config.node_id}, {0}};

	prometheus_family(out, name, PROMETHEUS_GAUGE, help);
	prometheus_sample(out, name, labels, (double)bytes);
}

static int add_region(int dir, const char *name, uint64_t *sum_bytes, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/size", name);
	CLEANUP(buf_done) struct buf text = BUF_INIT(64);
	uint64_t size;

	if (file_read(dir, path, &text, err) < 0)
		return -1;
	if (str_ends(buf_str(&text), "\n"))
		text.data[text.len - 1] = '\0';
	if (parse_u64(buf_str(&text), &size, err) < 0)
		return err_wrap(err, "%s", path);
	*sum_bytes += size;
	return 0;
}

/* Of all regions, ours or not. Their sizes are constants to the kernel: reading them takes no lock. */
static int read_regions(const char *folder, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int dir = -1;
	uint64_t sum = 0;

	if (dir_open(folder, /* create= */ false, 0, &dir, err) < 0 || dir_list(dir, &names, err) < 0)
		return -1;
	for (size_t i = 0; i < strv_len(names); i++) {
		if (str_starts(names[i], "region") && add_region(dir, names[i], &sum, err) < 0)
			return -1;
	}
	*ret_bytes = sum;
	return 0;
}

static uint64_t total_bytes(const struct metrics *m, uint64_t managed_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint64_t bytes = 0;

	if (m->config.regions_path && read_regions(m->config.regions_path, &bytes, &err) < 0)
		log_debug("sizes of regions are not known, ignoring", F_ERR(err));
	return bytes > managed_bytes ? bytes : managed_bytes;
}

static void add_amounts(const struct metrics *m, struct buf *out)
{
	struct volumes_capacity c;

	if (!volumes_capacity(m->config.volumes, &c))
		return;
	add_amount(m, out, "pmem_amount_max_volume_size",
		"The size of the largest PMEM volume that can be created.", c.max_volume_bytes);
	add_amount(m, out, "pmem_amount_available",
		"Remaining amount of PMEM on the host that can be used for new volumes.", c.free_bytes);
	add_amount(m, out, "pmem_amount_managed", "Amount of PMEM on the host that is managed by PMEM-CSI.",
		c.total_bytes);
	add_amount(m, out, "pmem_amount_total", "Total amount of PMEM on the host.",
		total_bytes(m, c.total_bytes));
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

	(void)request;
	reply->content_type = PROMETHEUS_CONTENT_TYPE;
	add_build_info(m, &reply->body);
	add_amounts(m, &reply->body);
	add_operations(m, &reply->body);
	metrics_process(&reply->body, m->started);
}

static void handle_simple(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)request;
	reply->content_type = PROMETHEUS_CONTENT_TYPE;
	add_build_info(self, &reply->body);
}

static void handle_healthz(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	buf_adds(&reply->body, "ok");
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

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / (double)NS_PER_S;
}

struct metrics *metrics_new(const struct metrics_config *config)
{
	struct metrics *m = x_calloc(1, sizeof(*m));

	m->config = *config;
	m->started = now_s();
	m->simple_path = x_asprintf("%s/simple", config->path);
	m->routes[0] = (struct http_route){config->path, "GET, HEAD", handle_all, m};
	m->routes[1] = (struct http_route){m->simple_path, "GET, HEAD", handle_simple, m};
	m->routes[2] = (struct http_route){"/healthz", "GET, HEAD", handle_healthz, NULL};
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
	free(m->simple_path);
	free(m);
}

const struct http_route *metrics_routes(const struct metrics *m)
{
	return m->routes;
}

struct grpc_observer metrics_observer(struct metrics *m)
{
	return (struct grpc_observer){call_ended, m};
}
