/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_needs.h - the volumes that a pod needs on its node. Threads: none. Nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

#define SCHED_TIME_LEN 19 /* "2006-01-02T15:04:05" */

/* A volume that does not exist yet. */
struct pod_need {
	char *name;          /* what its node knows it by: "pvc-<uid>", or the handle of an inline volume */
	char *what;          /* for people: "claim default/data" */
	uint64_t size_bytes; /* the size in CreateVolume's request, but at least what its file system needs */
	bool sector;         /* usage=FileIO */
	bool sync;           /* it needs MAP_SYNC */
	char **nodes;        /* strv: those that have it already */
	char *source;        /* "namespace/name" of the claim that it is to be a clone of; NULL: none */
	char *snapshot;      /* likewise of the VolumeSnapshot that it is to be restored from */
};

/* The nodes on which a pod has to run because of one of its volumes. */
struct pod_home {
	char **nodes; /* strv: the only ones */
	char *why;    /* for people; NULL: the volume of a claim that is bound is there */
};

/* Limit for one pod. Kubernetes attaches only some dozens of volumes to a node, and each one costs time on
 * each node. */
#define POD_NEEDS_MAX 128

struct pod_needs {
	struct pod_need *v;
	size_t n;
	struct pod_home *homes; /* for each existing bound volume of ours, and each clone */
	size_t n_homes;
	uint64_t pod_version;               /* resourceVersion of the pod as it was read; 0: unknown */
	char looked_at[SCHED_TIME_LEN + 1]; /* when, RFC 3339 with whole seconds; "": unknown */
};

/** pod_need_done() - release what it points to. */
void pod_need_done(struct pod_need *need);

/** pod_needs_add_home() - one more. @home: taken */
void pod_needs_add_home(struct pod_needs *needs, const struct pod_home *home);

/** pod_needs_away() - the first of the homes that @node is not among. Return: NULL: there is none. */
const struct pod_home *pod_needs_away(const struct pod_needs *needs, struct span node);

/** pod_needs_done() - release what it points to; safe on a zeroed one. */
void pod_needs_done(struct pod_needs *needs);
