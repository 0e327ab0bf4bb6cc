/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/reported_limit.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/records_by_node.h"

#define REASON "TooManyReportedVolumes"

struct reported_limit {
	struct reported_limit_config config;
	struct records_by_node *records; /* that were made of reports */
	char **noted;                    /* strv: nodes that have reached the limit */
};

struct reported_limit *reported_limit_new(const struct reported_limit_config *config)
{
	struct reported_limit *l = x_calloc(1, sizeof(*l));

	l->config = *config;
	if (l->config.max == 0)
		l->config.max = REPORTED_LIMIT_RECORDS;
	l->records = records_by_node_new();
	return l;
}

void reported_limit_free(struct reported_limit *l)
{
	if (!l)
		return;
	records_by_node_free(l->records);
	strv_free(l->noted);
	free(l);
}

static char **nodes_of_reported(const struct pmem_volume *record)
{
	return record && record->origin ? record->nodes : NULL;
}

void reported_limit_note(struct reported_limit *l, const struct volume_key *key,
	const struct pmem_volume *before, const struct pmem_volume *after)
{
	records_by_node_note(l->records, key, nodes_of_reported(before), nodes_of_reported(after));
}

static void tell(struct reported_limit *l, const char *node_id, uint64_t now_ns)
{
	CLEANUP(free_charp)
	char *message = x_asprintf(
		"node %s reports more than %u volumes that this cluster's controller has not made: further ones get "
		"no PmemVolume before some of these are deleted; pmem-csi-driver volumes on the node lists them all",
		node_id, l->config.max);

	strv_add(&l->noted, node_id);
	log_warn("a node reports too many volumes that no controller has made: further ones get no record",
		F_STR("node", node_id), F_U64("records", l->config.max));
	if (l->config.tell_node)
		l->config.tell_node(l->config.user, node_id, REASON, message, now_ns);
}

static void forget_noted(struct reported_limit *l, const char *node_id)
{
	CLEANUP(strv_freep) char **before = TAKE_PTR(l->noted);

	for (size_t i = 0; i < strv_len(before); i++) {
		if (!str_eq(before[i], node_id))
			strv_add(&l->noted, before[i]);
	}
}

bool reported_limit_allows(struct reported_limit *l, const char *node_id, uint64_t now_ns)
{
	const struct volume_key *keys;
	size_t n = records_by_node_get(l->records, node_id, &keys);
	bool is_noted = strv_contains(l->noted, node_id);

	if (is_noted && n <= l->config.max - l->config.max / 8)
		forget_noted(l, node_id);
	if (n < l->config.max)
		return true;
	if (!is_noted)
		tell(l, node_id, now_ns);
	return false;
}
