/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scene.h - lists of a cluster in which everything fits: a volume with its PersistentVolume and claim, on one
 * node, and a CSIStorageCapacity. Tests leave parts out and add others.
 */
#pragma once

#include "cluster_check/cluster_findings.h"

#define SCENE_DRIVER "pmem"
/* The claim has the uid uid-1. */
#define SCENE_VOLUME "pvc-uid-1"

/* Parts, to be left out. */
enum scene_part {
	SCENE_PV = 1,
	SCENE_CLAIM = 2,
	SCENE_CLASS = 4,
	SCENE_NODE = 8,
	SCENE_PMEM_NODE = 16,
	SCENE_RECORD = 32,
	SCENE_CAPACITY = 64,
	SCENE_CHOSEN = 128, /* a Node that is chosen for the driver; the scene has none */
};

struct scene {
	struct cluster_lists lists;
	struct cluster_findings findings;
};

/** scene_open() - everything without the parts in @without. scene_close(): release it. */
void scene_open(struct scene *s, unsigned without);
void scene_close(struct scene *s);

/** scene_add() - add an object. @part: of its kind; 0: a CSINode. @json: in which "@H" stands for the handle
 * of SCENE_VOLUME on the node n1, "@O" for its handle on n2, and "@K" for the name of its PmemVolume */
void scene_add(struct scene *s, unsigned part, const char *json);

/* A PmemVolume. NULL: as in the record of SCENE_VOLUME that fits; "": the member is absent. */
struct scene_record {
	const char *name;
	const char *metadata; /* further members, with a comma before; by default our finalizer */
	const char *volume_name;
	const char *nodes; /* JSON */
	const char *spec;  /* further members, with a comma before */
	const char *handle;
	const char *phase;
	const char *copies; /* JSON */
	const char *status; /* further members, with a comma before */
};

/** scene_add_record() - add it, with the texts of scene_add(). SCENE_RECORD_IS(): in place of the record that
 * fits. */
void scene_add_record(struct scene *s, const struct scene_record *r);
#define SCENE_RECORD_IS(s, ...) scene_add_record(s, &(const struct scene_record){__VA_ARGS__})

/** scene_compare() - compare. Return: a line for each finding, "REASON KIND/NAME NODE CLAIM"; caller frees.
 */
char *scene_compare(struct scene *s);
