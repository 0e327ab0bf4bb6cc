/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_findings.h - what was found when a node was looked at: a list that the checks add to. Threads: none.
 */
#pragma once

#include <stddef.h>

enum node_level {
	NODE_OK,
	NODE_NOTE,    /* good to know */
	NODE_UNKNOWN, /* it could not be looked at */
	NODE_PROBLEM, /* volumes cannot be served, or not be kept */
};

struct node_finding {
	const char *name; /* such as "sys-writable" */
	enum node_level level;
	char *text;
};

struct node_findings {
	struct node_finding *list;
	size_t n;
	size_t n_problems;
	size_t n_unknown;
};

/** node_findings_add() - append a finding. @name: borrowed. @fmt: of its text, as for printf(). */
void node_findings_add(struct node_findings *f, const char *name, enum node_level level, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/** node_findings_done() - release what @f owns; safe on a zeroed one. */
void node_findings_done(struct node_findings *f);

/** node_level_name() - "ok", "note", "unknown" or "problem". */
const char *node_level_name(enum node_level level);
