/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/request_counts.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "base/str.h"

/* Verbs, resources and codes are few: more series than that are a defect. */
#define MAX_SERIES 256

/* of rest_client_request_duration_seconds (component-base/metrics/prometheus/restclient), and one below */
static const double bounds_s[] = {0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60};

struct series {
	char *verb;
	char *resource;
	char code[16];
	struct prometheus_histogram durations;
};

/* The counts of a resource that is listed. */
struct skips {
	char *resource;
	uint64_t n;
};

struct kube_request_counts {
	struct series *series;
	size_t n_series;
	struct skips *skips;
	size_t n_skips;
};

/* Made when a resource is listed first, so that the metric is there before an object is skipped. */
static struct skips *skips_get(struct kube_request_counts *c, const char *resource)
{
	for (size_t i = 0; i < c->n_skips; i++) {
		if (str_eq(c->skips[i].resource, resource))
			return &c->skips[i];
	}
	c->skips = x_realloc(c->skips, c->n_skips + 1, sizeof(*c->skips));
	c->skips[c->n_skips] = (struct skips){.resource = x_strdup(resource)};
	return &c->skips[c->n_skips++];
}

static void objects_skipped(void *user, const char *resource, uint64_t n)
{
	skips_get(user, resource)->n += n;
}

static struct series *series_get(
	struct kube_request_counts *c, const char *verb, const char *resource, const char *code)
{
	struct series *s;

	for (size_t i = 0; i < c->n_series; i++) {
		s = &c->series[i];
		if (str_eq(s->verb, verb) && str_eq(s->resource, resource) && str_eq(s->code, code))
			return s;
	}
	if (c->n_series >= MAX_SERIES)
		return NULL;
	c->series = x_realloc(c->series, c->n_series + 1, sizeof(*c->series));
	s = &c->series[c->n_series++];
	*s = (struct series){.verb = x_strdup(verb),
		.resource = x_strdup(resource),
		.durations = {.bounds = bounds_s, .n_bounds = ARRAY_SIZE(bounds_s)}};
	snprintf(s->code, sizeof(s->code), "%s", code);
	return s;
}

static void request_ended(void *user, const char *verb, const char *resource, unsigned code, uint64_t took_ns)
{
	struct series *s;
	char text[16] = "<error>"; /* as client-go where there was no answer */

	if (code != 0)
		snprintf(text, sizeof(text), "%u", code);
	if (str_eq(verb, "list"))
		(void)skips_get(user, resource);
	s = series_get(user, verb, resource, text);
	if (s)
		prometheus_observe(&s->durations, (double)took_ns / (double)NS_PER_S);
}

static void add_skipped(const struct kube_request_counts *c, struct buf *out)
{
	static const char name[] = "pmem_kube_objects_skipped_total";

	prometheus_family(out, name, PROMETHEUS_COUNTER,
		"Objects of the Kubernetes API that could not be read, each time that a list or a watch had them.");
	for (size_t i = 0; i < c->n_skips; i++) {
		const struct prometheus_label labels[] = {{"resource", c->skips[i].resource}, {0}};

		prometheus_sample(out, name, labels, (double)c->skips[i].n);
	}
}

void kube_request_counts_add(const struct kube_request_counts *c, struct buf *out)
{
	static const char name[] = "pmem_kube_request_duration_seconds";

	prometheus_family(out, name, PROMETHEUS_HISTOGRAM,
		"Requests to the Kubernetes API server, from when they were asked for; of a watch its "
		"beginning.");
	for (size_t i = 0; i < c->n_series; i++) {
		const struct series *s = &c->series[i];
		const struct prometheus_label labels[] = {
			{"verb", s->verb}, {"resource", s->resource}, {"code", s->code}, {0}};

		prometheus_sample_histogram(out, name, labels, &s->durations);
	}
	add_skipped(c, out);
}

struct kube_request_counts *kube_request_counts_new(void)
{
	return x_calloc(1, sizeof(struct kube_request_counts));
}

void kube_request_counts_free(struct kube_request_counts *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n_series; i++) {
		free(c->series[i].verb);
		free(c->series[i].resource);
	}
	free(c->series);
	for (size_t i = 0; i < c->n_skips; i++)
		free(c->skips[i].resource);
	free(c->skips);
	free(c);
}

struct kube_observer kube_request_counts_observer(struct kube_request_counts *c)
{
	return (struct kube_observer){request_ended, objects_skipped, c};
}
