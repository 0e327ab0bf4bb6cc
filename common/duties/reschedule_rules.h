/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reschedule_rules.h - which PVCs must be moved away from the node that the scheduler has chosen for them.
 *
 * A claim is moved when its node was found without our driver, and without the labels that would let one
 * come, each time that somebody looked, for two minutes; one that a claim has only just been given to is no
 * exception. Pure: no clock, no I/O. Threads: none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESCHEDULE_AFTER_NS (120 * 1000000000ULL)

struct reschedule_claim {
	char *uid;
	uint64_t since_ns; /* when the claim was first seen with this node, or the driver was there last */
	bool seen;         /* in this round */
};

/* A node that claims wait for and that is not known to have our driver. */
struct reschedule_node {
	char *name;
	struct reschedule_claim *claims;
	size_t n_claims;
	uint64_t looked_ns; /* 0: nobody has looked yet */
	bool absent;        /* the driver was not there, nor may it come */
	bool looking;       /* the caller's */
};

struct reschedule_rules {
	struct reschedule_node **nodes;
	size_t n_nodes;
};

/** reschedule_rules_done() - release what @r owns; safe on a zeroed one. */
void reschedule_rules_done(struct reschedule_rules *r);

/** reschedule_begin() - a round: all claims that wait are passed to reschedule_see() next. */
void reschedule_begin(struct reschedule_rules *r);

/** reschedule_see() - the claim @uid waits for a volume on @node. Return: whether it must be moved now. */
bool reschedule_see(struct reschedule_rules *r, const char *node, const char *uid, uint64_t now_ns);

/** reschedule_end() - forget the claims that were not seen, and nodes without any; those that are being
 * looked at stay. */
void reschedule_end(struct reschedule_rules *r);

/** reschedule_looked() - somebody has looked at @node. @absent: neither driver nor labels are there, or the
 * Node itself is not. */
void reschedule_looked(struct reschedule_node *node, bool absent, uint64_t now_ns);
