/* SPDX-License-Identifier: Apache-2.0 */
#include "node_registry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "base/str.h"
#include "metrics.h"
#include "net/core/addr.h"
#include "nodes/pod_runtimes.h"
#include "nodes/registration_report.h"
#include "open_tls.h"
#include "os/boot_id.h"
#include "volume/report.h"

struct node_registry {
	struct node_registry_config config;
	struct registration *registration; /* NULL: none */
	struct pod_runtimes *pods;         /* NULL: without -registryEndpoint */
	char *endpoint;                    /* where the controllers find us */
	char *boot_id;
	bool is_cut;           /* of the last report, which is in the log */
	pthread_mutex_t mutex; /* guards what follows */
	struct loop *loop;     /* NULL: changes are not reported */
	bool posted;
};

struct node_registry *node_registry_new(const struct options *options)
{
	struct node_registry *r = x_calloc(1, sizeof(*r));

	if (!str_empty(options->registry_endpoint))
		r->pods = pod_runtimes_new(options->kata_runtime_classes);
	pthread_mutex_init(&r->mutex, NULL);
	return r;
}

void node_registry_free(struct node_registry *r)
{
	if (!r)
		return;
	pod_runtimes_free(r->pods);
	pthread_mutex_destroy(&r->mutex);
	free(r->endpoint);
	free(r->boot_id);
	free(r);
}

const struct volume_pods *node_registry_pods(const struct node_registry *r)
{
	return r->pods ? pod_runtimes_volume_pods(r->pods) : NULL;
}

static void touch_registration(void *user)
{
	struct node_registry *r = user;

	pthread_mutex_lock(&r->mutex);
	r->posted = false;
	pthread_mutex_unlock(&r->mutex);
	if (r->registration)
		registration_touch(r->registration);
}

void node_registry_changed(void *user)
{
	struct node_registry *r = user;

	pthread_mutex_lock(&r->mutex);
	if (r->loop && !r->posted) {
		r->posted = true;
		loop_post(r->loop, touch_registration, r);
	}
	pthread_mutex_unlock(&r->mutex);
}

/* Once, for as long as it lasts. */
static void note_cut(struct node_registry *r, bool is_cut)
{
	if (is_cut && !r->is_cut)
		log_warn(
			"more is wrong with volumes than a report has room for; the worst of it is reported, and the log has all");
	r->is_cut = is_cut;
}

static void fill(void *user, Registry__V0__RegisterControllerRequest *q, struct arena *arena)
{
	CLEANUP(volumes_report_done) struct volumes_report report = {0};
	struct node_registry *r = user;

	q->endpoint = r->endpoint;
	q->device_mode = arena_strdup(arena, r->config.device_mode);
	q->version = arena_strdup(arena, PMEM_VERSION);
	q->boot_id = r->boot_id;
	q->serves_node_volumes = true;
	q->serves_expansion = true;
	q->serves_modification = true;
	q->makes_kata_volumes = volumes_offers_kata(r->config.volumes, /* ret_why= */ NULL);
	q->makes_direct_volumes = volumes_offers_direct(r->config.volumes, /* ret_why= */ NULL);
	q->knows_durability = true;
	q->driver_name = arena_strdup(arena, r->config.options->driver_name);
	if (volumes_report(r->config.volumes, &report))
		note_cut(r, !registration_report(&report, q, arena));
}

/* The controller gets the port that the system has chosen, and an IPv6 address in brackets. */
static int set_endpoint(struct node_registry *r, const char *endpoint, uint16_t port, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};

	if (addr_parse(endpoint, &a, err) < 0)
		return err_wrap(err, "-controllerEndpoint");
	a.port = port;
	r->endpoint = addr_format(&a);
	return 0;
}

int node_registry_start(
	struct node_registry *r, const struct node_registry_config *config, struct error **err)
{
	const struct options *o = config->options;
	CLEANUP(tls_context_unrefp) struct tls_context *tls = NULL;

	if (str_empty(o->registry_endpoint))
		return 0;
	r->config = *config;
	if (set_endpoint(r, o->controller_endpoint, config->port, err) < 0 ||
		boot_id_read(&r->boot_id, err) < 0)
		return -1;
	if (open_tls(o, TLS_CLIENT, /* peer_names= */ NULL, &tls, err) < 0)
		return err_wrap(err, "-registryEndpoint");
	const struct registration_config registration = {
		.loop = config->loop,
		.endpoint = o->registry_endpoint,
		.node_id = o->node_id,
		.tls = tls,
		.handshakes = config->handshakes,
		.token_file = str_empty(o->registry_token_file) ? NULL : o->registry_token_file,
		.fill = fill,
		.user = r,
	};
	if (registration_new(&registration, &r->registration, err) < 0)
		return err_wrap(err, "-registryEndpoint");
	pod_runtimes_open(r->pods, config->loop, r->registration);
	pthread_mutex_lock(&r->mutex);
	r->loop = config->loop;
	pthread_mutex_unlock(&r->mutex);
	return 0;
}

void node_registry_stop(struct node_registry *r, loop_fn done, void *user)
{
	if (r->registration)
		registration_stop(r->registration, done, user);
	else
		done(user);
}

void node_registry_close(struct node_registry *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->mutex);
	r->loop = NULL;
	pthread_mutex_unlock(&r->mutex);
	if (r->pods)
		pod_runtimes_close(r->pods);
	registration_free(TAKE_PTR(r->registration));
}

static void add_age(struct buf *out, const struct node_registry *r, const struct registration_peer *p)
{
	const struct options *o = r->config.options;
	const struct prometheus_label labels[] = {
		{"driver_name", o->driver_name}, {"node", o->node_id}, {"address", p->address}, {0}};
	double age_s = (double)(clock_ns() - p->answered_ns) / (double)NS_PER_S;

	if (p->answered_ns > 0)
		prometheus_sample(
			out, "pmem_registry_last_success_timestamp_seconds", labels, metrics_now_s() - age_s);
}

static void add_state(struct buf *out, const struct node_registry *r, const struct registration_peer *p)
{
	const struct options *o = r->config.options;
	const struct prometheus_label labels[] = {
		{"driver_name", o->driver_name}, {"node", o->node_id}, {"address", p->address}, {0}};

	prometheus_sample(out, "pmem_registry_registered", labels, p->registered ? 1 : 0);
}

void node_registry_metrics(void *user, struct buf *out)
{
	const struct node_registry *r = user;
	struct registration_peer *peers;
	size_t n;

	if (!r->registration)
		return;
	n = registration_peers(r->registration, &peers);
	prometheus_family(out, "pmem_registry_registered", PROMETHEUS_GAUGE,
		"Whether the node is registered with the controller at that address.");
	for (size_t i = 0; i < n; i++)
		add_state(out, r, &peers[i]);
	prometheus_family(out, "pmem_registry_last_success_timestamp_seconds", PROMETHEUS_GAUGE,
		"When the controller at that address took a registration last, in seconds since unix epoch.");
	for (size_t i = 0; i < n; i++)
		add_age(out, r, &peers[i]);
	free(peers);
}
