/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driverless_claim_rules.h - which PVCs must be moved away from the node that the scheduler has chosen for
 * them.
 *
 * A claim is moved when each check of its node within two minutes has found neither our driver nor the labels
 * that would let one be started there. The two minutes also pass for a claim that has only just got its node.
 * Pure: no clock, no I/O. Threads: none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DRIVERLESS_AFTER_NS (120 * 1000000000ULL)

struct driverless_claim {
	char *uid;
	uint64_t since_ns; /* when the claim was first seen with this node, or the driver was there last */
	bool seen;         /* in this round */
};

/* A node that claims wait for and that is not known to have our driver. */
struct driverless_node {
	char *name;
	struct driverless_claim *claims;
	size_t n_claims;
	uint64_t looked_ns; /* 0: it was not checked yet */
	bool absent;        /* the driver was not there, nor may it come */
};

struct driverless_claim_rules {
	struct driverless_node **nodes;
	size_t n_nodes;
};

/** driverless_claim_rules_done() - release what @r owns; safe on a zeroed one. */
void driverless_claim_rules_done(struct driverless_claim_rules *r);

/** driverless_claim_rules_begin() - a round: all claims that wait are passed to driverless_claim_rules_see()
 * next. */
void driverless_claim_rules_begin(struct driverless_claim_rules *r);

/** driverless_claim_rules_see() - the claim @uid waits for a volume on @node. Return: whether it must be
 * moved now. */
bool driverless_claim_rules_see(
	struct driverless_claim_rules *r, const char *node, const char *uid, uint64_t now_ns);

/** driverless_claim_rules_end() - forget the claims that were not seen, and nodes without any. */
void driverless_claim_rules_end(struct driverless_claim_rules *r);

/** driverless_claim_rules_has_node() - whether claims wait for the node. */
bool driverless_claim_rules_has_node(const struct driverless_claim_rules *r, const char *node_name);

/** driverless_claim_rules_looked() - the node was checked. @absent: neither driver nor labels are
 * there, or the Node itself is not. Nodes that no claim waits for are ignored, here and below. */
void driverless_claim_rules_looked(
	struct driverless_claim_rules *r, const char *node_name, bool absent, uint64_t now_ns);

/** driverless_claim_rules_moved() - the claim was taken away from the node: should the scheduler choose that
 * node again, the two minutes begin again. */
void driverless_claim_rules_moved(
	struct driverless_claim_rules *r, const char *node_name, const char *uid, uint64_t now_ns);

/** driverless_claim_rules_look_failed() - the node could not be checked: its claims are not moved before the
 * next check.
 */
void driverless_claim_rules_look_failed(struct driverless_claim_rules *r, const char *node_name);
