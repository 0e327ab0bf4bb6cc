/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pmem_volume.h - PmemVolume, the custom resource that records which nodes may have a copy of a volume.
 *
 * The object is called <key>.<driver name>; the key is the same for the name that CreateVolume was called
 * with and for the volume handle, so that one GET finds the record of either. Its spec says what was asked
 * for and which nodes were asked; it is written before a node is, and a node leaves it only after it has
 * confirmed that it has no copy. The truth is on the nodes: an object that is missing or older than the truth
 * never erases anything. Its status is what CreateVolume answered and what the nodes report. The schema is in
 * manifests/crds. Threads: one owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "kube/object.h"
#include "resources/condition_list.h"
#include "resources/pmem_node.h"

/* Keeps the object until all nodes of its spec have confirmed that they have no copy. */
#define PMEM_VOLUME_FINALIZER PMEM_API_GROUP "/copies"

/* Hex digits of sha224(name) that every form of volume handle has (volume/id.h). */
#define PMEM_VOLUME_KEY_LEN 47

/* Labels for people and "kubectl get -l": the claim that the volume is for, its PersistentVolume, and its
 * node if it has one. A value that Kubernetes does not take as a label is left out. */
#define PMEM_VOLUME_LABEL_CLAIM_NAMESPACE PMEM_API_GROUP "/pvc-namespace"
#define PMEM_VOLUME_LABEL_CLAIM           PMEM_API_GROUP "/pvc-name"
#define PMEM_VOLUME_LABEL_PV              PMEM_API_GROUP "/pv"
#define PMEM_VOLUME_LABEL_NODE            PMEM_API_GROUP "/node"

/* The phase of a volume, or of a copy, whose node is lost (duties/lost_nodes.h). */
#define PMEM_VOLUME_LOST "Lost"

/* spec.origin of a volume that a node has reported and no record knew. */
#define PMEM_VOLUME_REPORTED "Reported"

/* The copy of the volume on one node. */
struct pmem_volume_copy {
	char *node;
	char *phase;
	uint64_t size_bytes;
	uint64_t report; /* of the node, in which the copy was seen first after it had been made; 0: not known
			  */
	uint64_t done_bytes;  /* that are copied or zeroed, while it is filled from another volume */
	uint64_t total_bytes; /* of these; 0: it is not being filled */
	char *dax;            /* as volume_dax_name() has it; NULL: not known */
	bool lacks_sync;      /* its class promises MAP_SYNC, and it does not have that */
};

struct pmem_volume {
	struct kube_meta meta; /* with finalizers and the time of creation */
	bool labels_differ;    /* from those that the record should have; of an object that was read */
	/* spec */
	char *driver;
	char *volume_name;     /* what CreateVolume was asked for; NULL: not known, see origin */
	char *origin;          /* PMEM_VOLUME_REPORTED; NULL: CreateVolume */
	char *source;          /* handle of the volume or snapshot that this one is a copy of; NULL: it began
				  empty */
	bool snapshot;         /* it is a snapshot of the source, and no volume that pods can use */
	char *volume_snapshot; /* of a snapshot: "namespace/name" of its VolumeSnapshot; NULL: not known */
	char *group;           /* of a snapshot: ID of the group snapshot that it belongs to; NULL: none */
	char **parameters;     /* strv: key, value, key ...; written, but not read */
	char **nodes;          /* strv: the IDs of nodes that may have a copy */
	uint64_t size_bytes;   /* that was asked for: no node was asked for more */
	uint64_t attempts; /* how often nodes were asked to make it or to let it grow: each time is written
			      first */
	bool deleting;     /* DeleteVolume was called */
	bool retained;     /* DeleteVolume has succeeded although nodes may have a copy: they were lost */
	/* status */
	char *handle; /* NULL: CreateVolume has not been answered */
	char *phase;
	char *claim;    /* "namespace/name"; NULL: not known */
	char *location; /* the nodes of the spec, for a column of kubectl get */
	uint64_t capacity_bytes;
	struct pmem_volume_copy *copies;
	size_t n_copies;
	struct pmem_conditions conditions;
};

/* pmemvolumes. An informer narrows .label_selector to its driver. */
extern const struct kube_kind kube_kind_pmem_volumes;

/** pmem_volume_object_name() - the name of the object for the volume with that @key (PMEM_VOLUME_KEY_LEN hex
 * digits) of the driver @driver_name. Return: caller frees. */
char *pmem_volume_object_name(const char *key, const char *driver_name);

/** pmem_volume_key() - the key of the volume that CreateVolume makes for @volume_name. */
void pmem_volume_key(const char *volume_name, char ret[static PMEM_VOLUME_KEY_LEN + 1]);

/** pmem_volume_object_name_for() - the name of the object for the volume that CreateVolume makes for
 * @volume_name. Return: caller frees. */
char *pmem_volume_object_name_for(const char *volume_name, const char *driver_name);

/** pmem_volume_new() - a record without nodes for the volume with that @key. Return: pmem_volume_free(). */
struct pmem_volume *pmem_volume_new(const char *key, const char *driver_name);

/** pmem_volume_dup() - a copy of @v. Return: pmem_volume_free(). */
struct pmem_volume *pmem_volume_dup(const struct pmem_volume *v);

/** pmem_volume_free() - destroy @v; NULL is allowed. */
void pmem_volume_free(struct pmem_volume *v);
DEFINE_CLEANUP(struct pmem_volume *, pmem_volume_free);

/** pmem_volume_has_node() - whether @node_id may have a copy. */
bool pmem_volume_has_node(const struct pmem_volume *v, const char *node_id);

/** pmem_volume_add_node() - @node_id may have a copy from now on. Return: false: it is in the record already.
 */
bool pmem_volume_add_node(struct pmem_volume *v, const char *node_id);

/** pmem_volume_drop_node() - @node_id has confirmed that it has no copy. Return: false: it is not in the
 * record.
 */
bool pmem_volume_drop_node(struct pmem_volume *v, const char *node_id);

/** pmem_volume_is_lost() - whether the status says that @node_id is lost. */
bool pmem_volume_is_lost(const struct pmem_volume *v, const char *node_id);

/** pmem_volume_set_location() - make the text about the nodes of the spec that is shown in a column. */
void pmem_volume_set_location(struct pmem_volume *v);

/** pmem_volume_add_copy() - append what @node has to the status, without effect from KUBE_MAX_ITEMS copies
 * on, of which no more are read. @node, @phase: copied; @report: of struct pmem_volume_copy */
void pmem_volume_add_copy(
	struct pmem_volume *v, const char *node, const char *phase, uint64_t size_bytes, uint64_t report);

/** pmem_volume_show_filling() - @done_bytes of @total_bytes of the copy on @node are filled; 0 of 0: it is
 * not being filled. Without effect if @node has none. */
void pmem_volume_show_filling(
	struct pmem_volume *v, const char *node, uint64_t done_bytes, uint64_t total_bytes);

/** pmem_volume_show_dax() - the copy on @node has @dax (NULL: not known), and lacks MAP_SYNC. Without effect
 * if @node has none. */
void pmem_volume_show_dax(struct pmem_volume *v, const char *node, const char *dax, bool lacks_sync);

/** pmem_volume_clear_copies() - remove all of them from the status. */
void pmem_volume_clear_copies(struct pmem_volume *v);

/** pmem_volume_status_equal() - whether both show the same. */
bool pmem_volume_status_equal(const struct pmem_volume *a, const struct pmem_volume *b);

/**
 * pmem_volume_write_new() - the body of the POST that makes the object, without status, which POST drops.
 * pmem_volume_write_spec() - a merge patch of the labels, and of what changes in the spec: size, nodes,
 * attempts, deleting, retained.
 * pmem_volume_write_status() - a merge patch of the subresource status.
 * pmem_volume_write_release() - a merge patch that removes our finalizer.
 * @out: JSON is appended. Patches carry the resourceVersion of @v, so that the API server refuses them with
 * 409 if the object has changed since it was read (apiserver pkg/endpoints/handlers/patch.go), and leave
 * fields alone that a newer driver has added.
 */
void pmem_volume_write_new(const struct pmem_volume *v, struct buf *out);
void pmem_volume_write_spec(const struct pmem_volume *v, struct buf *out);
void pmem_volume_write_status(const struct pmem_volume *v, struct buf *out);
void pmem_volume_write_release(const struct pmem_volume *v, struct buf *out);
