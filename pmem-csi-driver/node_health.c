/* SPDX-License-Identifier: Apache-2.0 */
#include "node_health.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "volume/health/volumes_health.h"

/* Time between looks. Together with the time that a look may wait for file systems that hang, media errors
 * are known within 30 s. */
#define LOOK_MS 10000

struct node_health {
	struct node_health_config config;
	struct loop_timer *timer;
	bool running; /* loop thread only */
	bool failing; /* which is in the log; the thread's while it runs */
};

static void look(void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct node_health *h = user;

	if (!volumes_is_ready(h->config.volumes))
		return;
	bool fails = volumes_look_at_health(h->config.volumes, &err) < 0;
	if (fails && !h->failing)
		log_warn("the health of volumes cannot be examined, trying again", F_ERR(err));
	else if (!fails && h->failing)
		log_info("the health of volumes can be examined again");
	h->failing = fails;
}

static void end_look(void *user)
{
	struct node_health *h = user;

	h->running = false;
}

static void post_end(void *user)
{
	struct node_health *h = user;

	loop_post(h->config.loop, end_look, h);
}

static void look_due(void *user)
{
	struct node_health *h = user;

	if (!h->running)
		h->running = workers_run(h->config.threads, look, post_end, h);
}

struct node_health *node_health_new(const struct node_health_config *config)
{
	struct node_health *h = x_calloc(1, sizeof(*h));

	h->config = *config;
	h->timer = loop_timer_new(config->loop, look_due, h);
	loop_timer_detach(h->timer);
	loop_timer_set(h->timer, LOOK_MS, LOOK_MS);
	return h;
}

void node_health_stop(struct node_health *h)
{
	if (h)
		loop_timer_stop(h->timer);
}

void node_health_free(struct node_health *h)
{
	if (!h)
		return;
	loop_timer_close(h->timer);
	free(h);
}

static void write_problems(const struct node_health *h, const struct dimm *d, struct buf *out)
{
	for (unsigned i = 0; i < DIMM_PROBLEMS; i++) {
		const struct prometheus_label labels[] = {{"driver_name", h->config.driver_name},
			{"node", h->config.node_id}, {"dimm", d->name}, {"problem", dimm_problem_name(i)},
			{0}};

		prometheus_sample(out, "pmem_dimm_problem", labels, d->problems & 1U << i ? 1 : 0);
	}
}

static void write_dirty_shutdowns(const struct node_health *h, const struct dimm *d, struct buf *out)
{
	const struct prometheus_label labels[] = {
		{"driver_name", h->config.driver_name}, {"node", h->config.node_id}, {"dimm", d->name}, {0}};

	if (d->counts)
		prometheus_sample(out, "pmem_dimm_dirty_shutdowns_total", labels, (double)d->dirty_shutdowns);
}

static void write_dimms(const struct node_health *h, struct buf *out)
{
	CLEANUP(dimms_done) struct dimms d = {0};

	volumes_list_dimms(h->config.volumes, &d);
	prometheus_family(out, "pmem_dimm_problem", PROMETHEUS_GAUGE,
		"1: the memory module reports this problem, by the flag of the kernel.");
	for (size_t i = 0; i < d.n; i++)
		write_problems(h, &d.list[i], out);
	prometheus_family(out, "pmem_dimm_dirty_shutdowns_total", PROMETHEUS_COUNTER,
		"How often the memory module has lost power before everything was saved.");
	for (size_t i = 0; i < d.n; i++)
		write_dirty_shutdowns(h, &d.list[i], out);
}

void node_health_metrics(const struct node_health *h, struct buf *out)
{
	struct health_count counts[HEALTH_REASONS];

	if (!volumes_is_ready(h->config.volumes))
		return;
	volumes_count_health(h->config.volumes, counts);
	prometheus_family(out, "pmem_volumes_unhealthy", PROMETHEUS_GAUGE,
		"Volumes of the node with which something is wrong, by reason; the log has the messages.");
	for (size_t i = 0; i < HEALTH_REASONS; i++) {
		const struct prometheus_label labels[] = {{"driver_name", h->config.driver_name},
			{"node", h->config.node_id}, {"reason", counts[i].reason}, {0}};

		prometheus_sample(out, "pmem_volumes_unhealthy", labels, (double)counts[i].n);
	}
	write_dimms(h, out);
}
