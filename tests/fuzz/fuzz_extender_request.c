/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses requests of kube-scheduler to its extender, and writes the replies.
 *
 * base/json/json_scan.h must accept the same documents as the reader of base/json/json.h, except that it does
 * not check UTF-8 and treats U+0000 differently. The replies must be JSON.
 */
#include <stdlib.h>

#include "base/json/json.h"
#include "base/json/json_scan.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "scheduler/extender_reply.h"

#define ANSWER_MAX_BYTES (64u << 20)

static bool reader_takes(struct span in)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(in);
	struct error *err = NULL;
	struct json_event ev;
	int rv;

	do {
		rv = json_next(r, &ev, &err);
	} while (rv == 0 && ev.type != JSON_END);
	if (rv < 0)
		fuzz_error(err);
	return rv == 0;
}

static bool scan_takes(struct span in)
{
	struct json_scan s = JSON_SCAN(in);
	struct error *err = NULL;
	struct span value;

	if (json_scan_value(&s, &value, &err) < 0 || json_scan_end(&s, &err) < 0) {
		fuzz_error(err);
		return false;
	}
	assert(value.n > 0 && value.p >= in.p && value.p + value.n <= in.p + in.n);
	return true;
}

static bool contains(struct span in, const char *text)
{
	return in.n > 0 && memmem(in.p, in.n, text, strlen(text));
}

/* The reader refuses U+0000 and halves of surrogates. */
static bool has_odd_escape(struct span in)
{
	return contains(in, "\\u0000") || contains(in, "\\ud") || contains(in, "\\uD");
}

static bool has_yajl_space(struct span in)
{
	return contains(in, "\f") || contains(in, "\v");
}

static void explain(void *user, size_t i, struct buf *out)
{
	(void)user;
	buf_addf(out, "\"%zu\"\n", i);
}

static void check_inside(struct span part, struct span in)
{
	assert(part.n > 0 && part.p >= in.p && part.p + part.n <= in.p + in.n);
	assert(scan_takes(part));
}

static void check_args(const struct extender_request *args, struct span in)
{
	check_inside(args->pod, in);
	for (size_t i = 0; i < args->n; i++) {
		const struct extender_request_node *node = &args->nodes[i];

		assert(node->name.n >= 1 && node->name.n <= 253);
		check_inside(node->quoted, in);
		check_inside(node->raw, in);
		assert(node->quoted.p >= node->raw.p);
	}
}

static void check_answers(const struct extender_request *args)
{
	CLEANUP(buf_done) struct buf filter = BUF_INIT(ANSWER_MAX_BYTES);
	CLEANUP(buf_done) struct buf scores = BUF_INIT(ANSWER_MAX_BYTES);
	CLEANUP(buf_done) struct buf preemption = BUF_INIT(ANSWER_MAX_BYTES);
	bool *passes = calloc(args->n + 1, sizeof(*passes));
	int *score = calloc(args->n + 1, sizeof(*score));

	assert(passes && score);
	for (size_t i = 0; i < args->n; i++) {
		passes[i] = (i + args->n) % 3 == 0;
		score[i] = (int)(i % 11);
	}
	extender_reply_filter(
		args, &(struct extender_verdicts){.passes = passes, .explain = explain}, &filter);
	extender_reply_scores(args, score, &scores);
	assert(!filter.overflowed && scan_takes(buf_span(&filter)));
	assert(!scores.overflowed && scan_takes(buf_span(&scores)));
	extender_reply_preemption(args, passes, &preemption);
	assert(!preemption.overflowed && scan_takes(buf_span(&preemption)));
	free(passes);
	free(score);
}

static void check_preemption(struct span in)
{
	struct extender_request args = {0};
	struct error *err = NULL;

	if (extender_request_read_preemption(in, &args, &err) < 0) {
		fuzz_error(err);
		return;
	}
	check_inside(args.pod, in);
	for (size_t i = 0; i < args.n; i++) {
		check_inside(args.nodes[i].quoted, in);
		assert(scan_takes(args.nodes[i].raw));
	}
	check_answers(&args);
	extender_request_done(&args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	struct extender_request args = {0};
	struct error *err = NULL;
	bool taken = scan_takes(in);

	assert(taken || has_yajl_space(in) || !reader_takes(in));
	assert(!taken || !str_is_utf8(data, size) || has_odd_escape(in) || reader_takes(in));
	check_preemption(in);
	if (extender_request_read(in, &args, &err) < 0) {
		fuzz_error(err);
		return 0;
	}
	assert(taken);
	check_args(&args, in);
	check_answers(&args);
	extender_request_done(&args);
	return 0;
}
