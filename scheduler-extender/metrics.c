/* SPDX-License-Identifier: Apache-2.0 */
#include "metrics.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "base/str.h"
#include "kube/request_counts.h"

/* kube-scheduler gives an extender 5 s; what takes more than some milliseconds has waited. */
static const double bounds_s[] = {
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1};

static const char *const verbs[] = {"filter", "prioritize", "preempt"};

struct metrics {
	const char *driver_name;
	struct cert_expiry *certs;
	struct metrics_parts parts;
	struct kube_request_counts *requests;
	struct prometheus_histogram durations[ARRAY_SIZE(verbs)];
	uint64_t failures[ARRAY_SIZE(verbs)];
};

static void request_ended(void *user, const char *verb, bool failed, uint64_t took_ns)
{
	struct metrics *m = user;

	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!str_eq(verbs[i], verb))
			continue;
		prometheus_observe(&m->durations[i], (double)took_ns / (double)NS_PER_S);
		m->failures[i] += failed;
	}
}

static void add_gauge(struct buf *out, const char *name, const char *help, double value)
{
	prometheus_family(out, name, PROMETHEUS_GAUGE, help);
	prometheus_sample(out, name, NULL, value);
}

static void add_nodes(const struct metrics *m, struct buf *out)
{
	const struct sched_nodes *nodes = m->parts.nodes;
	const struct prometheus_label live[] = {{"state", "live"}, {0}};
	const struct prometheus_label gone[] = {{"state", "gone"}, {0}};
	size_t n[2] = {0};

	for (size_t i = 0; i < sched_nodes_limit(nodes); i++) {
		const struct sched_node *node = sched_nodes_at(nodes, i);
		if (node)
			n[node->stale]++;
	}
	prometheus_family(out, "pmem_nodes", PROMETHEUS_GAUGE,
		"Nodes whose capacity is known; gone: their driver does not report.");
	prometheus_sample(out, "pmem_nodes", live, (double)n[0]);
	prometheus_sample(out, "pmem_nodes", gone, (double)n[1]);
}

static void add_reservations(const struct metrics *m, struct buf *out)
{
	struct reservations_count count = reservations_count(m->parts.reservations);

	add_gauge(out, "pmem_scheduler_undecided_pods",
		"Pods that passed the filter and whose node is not known yet.", (double)count.pods_undecided);
	add_gauge(out, "pmem_scheduler_reserved_volumes",
		"Volumes whose node is decided and that its PmemNode does not show yet.",
		(double)count.volumes_decided);
}

static void add_known(const struct metrics *m, struct buf *out)
{
	add_gauge(out, "pmem_scheduler_synced", "1: the watches of the Kubernetes API are complete.",
		cluster_view_is_synced(m->parts.cluster));
}

static void add_trust(const struct metrics *m, struct buf *out)
{
	if (m->parts.trust)
		add_gauge(out, "pmem_webhook_trusted",
			"Whether the webhook's caBundle has all of its authorities.",
			webhook_ca_bundle_is_complete(m->parts.trust));
}

static void add_requests(const struct metrics *m, struct buf *out)
{
	prometheus_family(out, "scheduler_request_duration_seconds", PROMETHEUS_HISTOGRAM,
		"Requests of kube-scheduler, the time included for which they wait for decisions.");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		const struct prometheus_label labels[] = {{"handler", verbs[i]}, {0}};
		prometheus_sample_histogram(
			out, "scheduler_request_duration_seconds", labels, &m->durations[i]);
	}
	prometheus_family(out, "scheduler_request_errors_total", PROMETHEUS_COUNTER,
		"Requests of kube-scheduler that were answered with an error.");
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		const struct prometheus_label labels[] = {{"handler", verbs[i]}, {0}};
		prometheus_sample(out, "scheduler_request_errors_total", labels, (double)m->failures[i]);
	}
}

/* Whether all is known that is needed to answer. */
static int require_ready(const struct metrics *m, struct error **err)
{
	const char *kind;
	uint64_t silent_ns;

	if (m->parts.api_check && api_check_require(m->parts.api_check, err) < 0)
		return -1;
	if (!cluster_view_is_synced(m->parts.cluster))
		return err_set(
			err, ERR_UNAVAILABLE, "the objects of the Kubernetes API have not all been read yet");
	if (cluster_view_is_silent(m->parts.cluster, clock_ns(), &kind, &silent_ns))
		return err_set(err, ERR_UNAVAILABLE,
			"the Kubernetes API has not answered about %s for %llu s", kind,
			(unsigned long long)(silent_ns / NS_PER_S));
	return 0;
}

static void add_ready(const struct metrics *m, struct buf *out)
{
	CLEANUP(error_freep) struct error *why = NULL;
	const struct prometheus_label labels[] = {{"driver_name", m->driver_name}, {0}};

	prometheus_family(
		out, "pmem_ready", PROMETHEUS_GAUGE, "Whether all is known that is needed to answer.");
	prometheus_sample(out, "pmem_ready", labels, require_ready(m, &why) == 0);
}

void metrics_all(void *self, const struct http1_request *request, struct http_reply *reply)
{
	const struct metrics *m = self;
	const struct prometheus_label labels[] = {
		{"version", PMEM_VERSION}, {"driver_name", m->driver_name}, {0}};
	const struct prometheus_label driver[] = {{"driver_name", m->driver_name}, {0}};

	(void)request;
	reply->content_type = PROMETHEUS_CONTENT_TYPE;
	prometheus_family(&reply->body, "build_info", PROMETHEUS_GAUGE,
		"A metric with a constant '1' value labeled by version.");
	prometheus_sample(&reply->body, "build_info", labels, 1);
	add_ready(m, &reply->body);
	cert_expiry_metrics(m->certs, driver, &reply->body);
	add_known(m, &reply->body);
	add_trust(m, &reply->body);
	if (m->parts.nodes) {
		add_nodes(m, &reply->body);
		add_reservations(m, &reply->body);
		add_requests(m, &reply->body);
	}
	kube_request_counts_add(m->requests, &reply->body);
}

void metrics_healthz(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	buf_adds(&reply->body, "ok");
}

void metrics_readyz(void *self, const struct http1_request *request, struct http_reply *reply)
{
	CLEANUP(error_freep) struct error *why = NULL;

	(void)request;
	if (require_ready(self, &why) == 0) {
		buf_adds(&reply->body, "ok");
		return;
	}
	reply->status = 503;
	buf_addf(&reply->body, "%s\n", why->msg);
}

struct metrics *metrics_new(const char *driver_name, struct cert_expiry *certs)
{
	struct metrics *m = x_calloc(1, sizeof(*m));

	m->driver_name = driver_name;
	m->certs = certs;
	m->requests = kube_request_counts_new();
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++)
		m->durations[i] =
			(struct prometheus_histogram){.bounds = bounds_s, .n_bounds = ARRAY_SIZE(bounds_s)};
	return m;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	kube_request_counts_free(m->requests);
	free(m);
}

void metrics_watch(struct metrics *m, const struct metrics_parts *parts)
{
	m->parts = *parts;
}

struct kube_observer metrics_kube_observer(struct metrics *m)
{
	return kube_request_counts_observer(m->requests);
}

struct extender_service_observer metrics_service_observer(struct metrics *m)
{
	return (struct extender_service_observer){request_ended, m};
}
