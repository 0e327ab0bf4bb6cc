/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/extender_reply.h"

#include <stdio.h>

#include "base/json/json.h"
#include "scheduler/node_choice.h"

/* Limit for the text of the reason why one node is refused; the rest is cut off. */
#define REASON_MAX_BYTES 1024

static void add_span(struct buf *out, struct span s)
{
	buf_add(out, s.p, s.n);
}

/* Writes a comma before each item of a list but the first. */
static void separate(struct buf *out, bool *first)
{
	if (!*first)
		buf_addc(out, ',');
	*first = false;
}

static size_t passing_bytes(const struct extender_request *args, const struct extender_verdicts *verdicts)
{
	size_t n = 0;

	for (size_t i = 0; i < args->n; i++) {
		if (verdicts->passes[i])
			n += args->nodes[i].raw.n + 1;
	}
	return n;
}

static void add_passing(
	const struct extender_request *args, const struct extender_verdicts *verdicts, struct buf *out)
{
	bool first = true;

	/* at once, so that megabytes do not move while it grows */
	buf_reserve(out, passing_bytes(args, verdicts));
	buf_addc(out, '[');
	for (size_t i = 0, end; i < args->n; i = end) {
		const uint8_t *from = args->nodes[i].raw.p;

		/* they follow each other in the request, with commas between them */
		for (end = i; end < args->n && verdicts->passes[end]; end++)
			;
		if (end == i) {
			end++;
			continue;
		}
		separate(out, &first);
		buf_add(out, from, (size_t)(args->nodes[end - 1].raw.p + args->nodes[end - 1].raw.n - from));
	}
	buf_addc(out, ']');
}

static void add_failing(
	const struct extender_request *args, const struct extender_verdicts *verdicts, struct buf *out)
{
	CLEANUP(buf_done) struct buf reason = BUF_INIT(REASON_MAX_BYTES);
	bool first = true;

	buf_addc(out, '{');
	for (size_t i = 0; i < args->n; i++) {
		struct json_writer w = JSON_WRITER(out);

		if (verdicts->passes[i])
			continue;
		separate(out, &first);
		add_span(out, args->nodes[i].quoted);
		buf_addc(out, ':');
		buf_reset(&reason);
		verdicts->explain(verdicts->user, i, &reason);
		json_str(&w, buf_str(&reason));
	}
	buf_addc(out, '}');
}

void extender_reply_filter(
	const struct extender_request *args, const struct extender_verdicts *verdicts, struct buf *out)
{
	if (args->has_objects) {
		buf_adds(out, "{\"Nodes\":{\"metadata\":{},\"items\":");
		add_passing(args, verdicts, out);
		buf_adds(out, "},\"NodeNames\":null");
	} else {
		buf_adds(out, "{\"Nodes\":null,\"NodeNames\":");
		add_passing(args, verdicts, out);
	}
	buf_adds(out, ",\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":");
	add_failing(args, verdicts, out);
	buf_adds(out, ",\"Error\":\"\"}");
}

void extender_reply_preemption(const struct extender_request *args, const bool *passes, struct buf *out)
{
	bool first = true;

	buf_adds(out, "{\"NodeNameToMetaVictims\":{");
	for (size_t i = 0; i < args->n; i++) {
		if (!passes[i])
			continue;
		separate(out, &first);
		add_span(out, args->nodes[i].quoted);
		buf_addc(out, ':');
		add_span(out, args->nodes[i].raw);
	}
	buf_adds(out, "}}");
}

void extender_reply_error(const char *message, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	buf_adds(out,
		"{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{},\"FailedAndUnresolvableNodes\":{},"
		"\"Error\":");
	json_str(&w, message);
	buf_addc(out, '}');
}

void extender_reply_scores(const struct extender_request *args, const int *scores, struct buf *out)
{
	static const char begin[] = ",{\"Host\":";
	/* written once: printf for each would take longer than all else */
	char ends[SCHED_SCORE_MAX + 1][sizeof(",\"Score\":10}")];
	size_t comma = 1;

	for (int score = 0; score <= SCHED_SCORE_MAX; score++)
		snprintf(ends[score], sizeof(ends[score]), ",\"Score\":%d}", score);
	buf_addc(out, '[');
	for (size_t i = 0; i < args->n; i++) {
		buf_add(out, begin + comma, sizeof(begin) - 1 - comma);
		add_span(out, args->nodes[i].quoted);
		buf_adds(out, ends[scores[i]]);
		comma = 0;
	}
	buf_addc(out, ']');
}
