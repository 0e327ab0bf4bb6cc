/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prometheus.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

/* Above that, not every whole number is a double. */
#define MAX_EXACT 9007199254740992.0

static const char *type_name(enum prometheus_type type)
{
	switch (type) {
	case PROMETHEUS_GAUGE:
		return "gauge";
	case PROMETHEUS_COUNTER:
		return "counter";
	case PROMETHEUS_HISTOGRAM:
		return "histogram";
	}
	return "untyped";
}

/* HELP escapes backslash and line feed, values of labels the quote as well. */
static void add_escaped(struct buf *out, const char *text, bool quote)
{
	for (; *text; text++) {
		if (*text == '\n')
			buf_adds(out, "\\n");
		else if (*text == '\\' || (*text == '"' && quote))
			buf_addf(out, "\\%c", *text);
		else
			buf_addc(out, *text);
	}
}

static bool is_whole(double value)
{
	return fabs(value) <= MAX_EXACT && value == (double)(int64_t)value;
}

static void add_value(struct buf *out, double value)
{
	if (isnan(value))
		buf_adds(out, "NaN");
	else if (isinf(value))
		buf_adds(out, value > 0 ? "+Inf" : "-Inf");
	else if (is_whole(value))
		buf_addf(out, "%.0f", value);
	else
		buf_addf(out, "%.15g", value);
}

static void add_label(struct buf *out, bool first, const char *name, const char *value)
{
	buf_addf(out, "%s%s=\"", first ? "{" : ",", name);
	add_escaped(out, value, /* quote= */ true);
	buf_addc(out, '"');
}

/* Return: whether there are none. */
static bool add_labels(struct buf *out, const struct prometheus_label *labels)
{
	bool first = true;

	for (; labels && labels->name; labels++) {
		add_label(out, first, labels->name, labels->value);
		first = false;
	}
	return first;
}

static void end_sample(struct buf *out, bool no_labels, double value)
{
	buf_adds(out, no_labels ? " " : "} ");
	add_value(out, value);
	buf_addc(out, '\n');
}

void prometheus_family(struct buf *out, const char *name, enum prometheus_type type, const char *help)
{
	buf_addf(out, "# HELP %s ", name);
	add_escaped(out, help, /* quote= */ false);
	buf_addf(out, "\n# TYPE %s %s\n", name, type_name(type));
}

void prometheus_sample(struct buf *out, const char *name, const struct prometheus_label *labels, double value)
{
	buf_adds(out, name);
	end_sample(out, add_labels(out, labels), value);
}

void prometheus_observe(struct prometheus_histogram *h, double value)
{
	size_t i = 0;

	while (i < h->n_bounds && value > h->bounds[i])
		i++;
	h->counts[i]++;
	h->sum += value;
}

static void add_bucket(struct buf *out, const char *name, const struct prometheus_label *labels, double bound,
	uint64_t count)
{
	struct buf le = BUF_INIT(32);
	bool first;

	add_value(&le, bound);
	buf_addf(out, "%s_bucket", name);
	first = add_labels(out, labels);
	add_label(out, first, "le", buf_str(&le));
	end_sample(out, /* no_labels= */ false, (double)count);
	buf_done(&le);
}

static void add_total(struct buf *out, const char *name, const char *suffix,
	const struct prometheus_label *labels, double value)
{
	buf_addf(out, "%s%s", name, suffix);
	end_sample(out, add_labels(out, labels), value);
}

void prometheus_sample_histogram(struct buf *out, const char *name, const struct prometheus_label *labels,
	const struct prometheus_histogram *h)
{
	uint64_t count = 0;

	assert(h->n_bounds <= PROMETHEUS_MAX_BUCKETS);
	for (size_t i = 0; i < h->n_bounds; i++) {
		count += h->counts[i];
		add_bucket(out, name, labels, h->bounds[i], count);
	}
	count += h->counts[h->n_bounds];
	add_bucket(out, name, labels, (double)INFINITY, count);
	add_total(out, name, "_sum", labels, h->sum);
	add_total(out, name, "_count", labels, (double)count);
}
