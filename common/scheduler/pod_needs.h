/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_needs.h - the volumes that a pod needs on its node. Threads: none. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_TIME_LEN 19 /* "2006-01-02T15:04:05" */

/* A volume that does not exist yet. */
struct pod_need {
	char *name;          /* what its node knows it by: "pvc-<uid>", or the handle of an inline volume */
	char *what;          /* for people: "claim default/data" */
	uint64_t size_bytes; /* the size in CreateVolume's request, but at least what its file system needs */
	bool sector;         /* usage=FileIO */
	char **nodes;        /* strv: those that have it already */
};

/* Limit for one pod. Kubernetes attaches only some dozens of volumes to a node, and each one costs time on
 * each node. */
#define POD_NEEDS_MAX 128

struct pod_needs {
	struct pod_need *v;
	size_t n;
	char ***homes; /* for each existing bound volume of ours: strv of the only nodes that have it */
	size_t n_homes;
	uint64_t pod_version;               /* resourceVersion of the pod as it was read; 0: unknown */
	char looked_at[SCHED_TIME_LEN + 1]; /* when, RFC 3339 with whole seconds; "": unknown */
};

/** pod_need_done() - release what it points to. */
void pod_need_done(struct pod_need *need);

/** pod_needs_done() - release what it points to; safe on a zeroed one. */
void pod_needs_done(struct pod_needs *needs);
