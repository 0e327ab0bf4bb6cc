/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reported_limit.h - how many records a node can have that exist because of reports only.
 *
 * Records of the controller's own calls do not count. A node that has as many as it can gets one Event and
 * one line in the log, and no other before an eighth of its records has gone. Threads: one owner; nothing
 * blocks.
 */
#pragma once

#include "controller/volume_key.h"
#include "resources/pmem_volume.h"

/* The metadata of a volume group holds some 1,900 volumes
 * (docs/decisions/027-room-in-the-metadata.md): two groups, those of a machine with two processors, have
 * fewer. */
#define REPORTED_LIMIT_RECORDS 4096

struct reported_limit_config {
	unsigned max; /* records of one node; 0: REPORTED_LIMIT_RECORDS */
	/* An Event on the Node of @node_id; borrowed for the call. */
	void (*tell_node)(
		void *user, const char *node_id, const char *reason, const char *message, uint64_t now_ns);
	void *user;
};

struct reported_limit;

/** reported_limit_new() - there are no records. Return: never NULL; reported_limit_free(). */
struct reported_limit *reported_limit_new(const struct reported_limit_config *config);

/** reported_limit_free() - NULL is allowed. */
void reported_limit_free(struct reported_limit *l);

/** reported_limit_note() - the record with @key is @after instead of @before, what was noted last; either may
 * be NULL. */
void reported_limit_note(struct reported_limit *l, const struct volume_key *key,
	const struct pmem_volume *before, const struct pmem_volume *after);

/** reported_limit_allows() - whether one more record may be made of the reports of @node_id; otherwise an
 * Event and the log say so once. @now_ns: for the Event */
bool reported_limit_allows(struct reported_limit *l, const char *node_id, uint64_t now_ns);
