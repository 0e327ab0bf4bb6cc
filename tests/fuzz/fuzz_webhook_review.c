/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds requests to the webhook for pods. The first byte chooses the state of the cluster. For any request
 * the reply must be one JSON document, and a request that is refused must not get a patch.
 */
#include <string.h>

#include "base/json/json.h"
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "scheduler/webhook_review.h"

static enum webhook_claim find_claim(
	void *user, const char *namespace, const char *name, const char **ret_class)
{
	const uint8_t *how = user;

	assert(*namespace && *name);
	*ret_class = *how & 1 ? name : NULL;
	if (!(*how & 2))
		return WEBHOOK_CLAIM_UNKNOWN;
	return *how & 16 ? WEBHOOK_CLAIM_BOUND : WEBHOOK_CLAIM_UNBOUND;
}

static enum webhook_class find_class(void *user, const char *name)
{
	const uint8_t *how = user;

	assert(!name || *name);
	return *how & 4 ? WEBHOOK_CLASS_OURS : *how & 8 ? WEBHOOK_CLASS_UNKNOWN : WEBHOOK_CLASS_OTHER;
}

/* Return: whether there is a patch. */
static bool check_reply(struct span reply)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(reply);
	struct error *err = NULL;
	struct json_event ev;
	bool has_patch = false;

	do {
		int rv = json_next(r, &ev, &err);

		assert(rv == 0);
		has_patch |= ev.type == JSON_KEY && str_eq(ev.text, "patch");
	} while (ev.type != JSON_END);
	return has_patch;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(webhook_missing_done) struct webhook_missing missing = {.namespace = NULL};
	CLEANUP(buf_done) struct buf out = BUF_INIT(WEBHOOK_BODY_BYTES);
	static char name[] = "default-scheduler";
	static char *const schedulers[] = {name, NULL};
	const struct webhook_rules rules = {"pmem-csi.intel.com", schedulers};
	uint8_t how = size > 0 ? data[0] : 0;
	struct webhook_cluster cluster = {find_claim, find_class, &how};

	if (size == 0)
		return 0;
	unsigned status = webhook_review(&cluster, &rules, (struct span){data + 1, size - 1}, &missing, &out);

	assert(status == 200 || status == 400);
	bool has_patch = check_reply(buf_span(&out));

	assert(!has_patch || (status == 200 && !missing.claims && !missing.classes));
	assert(!missing.claims || missing.namespace);
	return 0;
}
