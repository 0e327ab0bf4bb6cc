/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_needs.h - what a pod needs of the node that it goes to. Threads: none. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCHED_TIME_LEN 19 /* "2006-01-02T15:04:05" */

/* A volume that does not exist yet. */
struct pod_need {
	char *name; /* as the node's inventory will have it: "pvc-<uid>", of an inline one its handle */
	char *what; /* for people: "claim default/data" */
	uint64_t size_bytes; /* as CreateVolume will ask for it, and no less than its file system needs */
	bool sector;         /* usage=FileIO */
};

/* Of a pod. Kubernetes attaches no more than some dozens to a node, and each costs time on each node. */
#define POD_NEEDS_MAX 128

struct pod_needs {
	struct pod_need *v;
	size_t n;
	char ***homes; /* per volume of ours that exists and is bound: strv of the only nodes that have it */
	size_t n_homes;
	uint64_t pod_version;               /* resourceVersion of the pod that was looked at; 0: unknown */
	char looked_at[SCHED_TIME_LEN + 1]; /* when, RFC 3339 with whole seconds; "": unknown */
};

/** pod_needs_done() - release what it points to; safe on a zeroed one. */
void pod_needs_done(struct pod_needs *needs);
