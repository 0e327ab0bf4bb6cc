/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_findings.h - inconsistencies between the objects of Kubernetes and those of the driver: pure.
 *
 * Volumes whose creation or deletion is under way are counted, and are no findings, unless nodes have not
 * confirmed the deletion for CLUSTER_DELETION_MAX_S. A cluster without any
 * object of the driver is not consistent: then the name of the driver is probably wrong, so what is absent is
 * a finding, too. Objects are read one list after the other while calls are served, so a finding counts only
 * if it is there in two reads (cluster_findings_keep()). Threads: none.
 */
#pragma once

#include <stddef.h>

#include "cluster_check/cluster_lists.h"

/* External-provisioner repeats its calls every five minutes at the latest, and the leader those that no
 * caller repeats after ten (duties/begun_deletions.h). */
#define CLUSTER_DELETION_MAX_S (15 * 60)

/* The reasons of findings, in the order in which findings are shown. */
enum cluster_reason {
	CLUSTER_DRIVER_WITHOUT_CLASS,
	CLUSTER_DRIVER_WITHOUT_NODE,
	CLUSTER_NAMESPACE_WITHOUT_CAPACITY,
	CLUSTER_PV_WITHOUT_VOLUME,
	CLUSTER_BOUND_VOLUME_DELETED,
	CLUSTER_VOLUME_LOST,
	CLUSTER_VOLUME_DAMAGED,
	CLUSTER_VOLUME_MISSING,
	CLUSTER_VOLUME_UNREACHABLE,
	CLUSTER_VOLUME_NOT_READY,
	CLUSTER_VOLUME_WITHOUT_PV,
	CLUSTER_VOLUME_RETAINED,
	CLUSTER_DELETION_STALLED,
	CLUSTER_RECORD_WITHOUT_NODE,
	CLUSTER_RECORD_LACKS_NODE,
	CLUSTER_RECORD_OF_UNKNOWN_NODE,
	CLUSTER_RECORD_WITHOUT_FINALIZER,
	CLUSTER_RECORD_NAME,
	CLUSTER_PMEM_NODE_WITHOUT_NODE,
	CLUSTER_NODE_WITHOUT_PMEM_NODE,
	CLUSTER_NODE_WITHOUT_DRIVER,
	CLUSTER_PMEM_NODE_NOT_READY,
	CLUSTER_CAPACITY_WITHOUT_CLASS,
	CLUSTER_CAPACITY_WITHOUT_NODE,
};

struct cluster_finding {
	enum cluster_reason reason;
	const char *kind; /* of the object, "PersistentVolume" */
	char *name;
	char *handle; /* NULL: not about a volume, or not known; so are the next two */
	char *claim;  /* "namespace/name" */
	char *node;   /* its ID */
	char *text;   /* one sentence, without a full stop */
};

struct cluster_findings {
	struct cluster_finding *list; /* by reason */
	size_t n;
	size_t n_creating; /* volumes whose creation is under way */
	size_t n_deleting;
};

/** cluster_compare() - find everything that does not fit in @l. @ret: cluster_findings_done() */
void cluster_compare(const struct cluster_lists *l, struct cluster_findings *ret);

/** cluster_findings_keep() - drop what is not in @before: the same reason for the same object and node. */
void cluster_findings_keep(struct cluster_findings *f, const struct cluster_findings *before);

/** cluster_findings_done() - release the findings; safe on a zeroed one. */
void cluster_findings_done(struct cluster_findings *f);

/** cluster_reason_name() - the name for programs, in CamelCase, which never changes. */
const char *cluster_reason_name(enum cluster_reason reason);

/** cluster_reason_remedy() - what an administrator can do. */
const char *cluster_reason_remedy(enum cluster_reason reason);
