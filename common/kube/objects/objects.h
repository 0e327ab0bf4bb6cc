/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.h - the kinds of objects that the project reads, with the members that it needs.
 *
 * Each is a struct kube_kind (object.h) whose objects are the structs below; what is not named there is not
 * kept. An invalid value reads as absent: one invalid object must not hide all others. Threads: one
 * owner at a time. Source: Kubernetes API reference 1.34, core/v1 and storage.k8s.io/v1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "kube/object.h"

/* nodes, with labels */
struct kube_node {
	struct kube_meta meta;
	bool out_of_service; /* has the taint KUBE_TAINT_OUT_OF_SERVICE, with any effect */
};

/* Says that the node is shut down and does not return soon. Source: Kubernetes documentation, "Non-graceful
 * node shutdown handling". */
#define KUBE_TAINT_OUT_OF_SERVICE "node.kubernetes.io/out-of-service"

/* csinodes */
struct kube_csi_node {
	struct kube_meta meta;
	char **drivers; /* strv of their names */
};

/* persistentvolumes */
struct kube_volume {
	struct kube_meta meta; /* with annotations */
	char *driver;          /* spec.csi; NULL: not a CSI volume */
	char *handle;
	char *storage_class;
	char *claim_namespace; /* spec.claimRef */
	char *claim_name;
	char *claim_uid;
	char *phase;
	char **node_values; /* all values of operator In in spec.nodeAffinity.required, any key; strv */
	char **node_ids;    /* those of the driver's key (name_topology_key()); strv, NULL: a term has none */
	char **affinity;    /* strv; only while the object is read */
	uint64_t size_bytes;
};

/* persistentvolumeclaims */
struct kube_claim {
	struct kube_meta meta;
	char *storage_class;   /* NULL: not set */
	char *volume_name;     /* NULL or "": not bound */
	char *selected_node;   /* annotation volume.kubernetes.io/selected-node */
	char *provisioner;     /* annotation volume.kubernetes.io/storage-provisioner, or its beta form */
	char *release_after;   /* annotation pmem-csi.intel.com/release-after, as it is; NULL: not set */
	char *source_claim;    /* "namespace/name" of the claim that it is to be a clone of; NULL: none */
	char *source_snapshot; /* likewise of the VolumeSnapshot that it is to be restored from */
	char *phase;
	uint64_t request_bytes;
	bool is_block;        /* volumeMode Block */
	bool skips_hostmount; /* annotation skip-hostmount "true": the host is not to mount the volume */
	/* Fields of its data source, which are set only while the object is read. */
	char *source_kind;
	char *source_group;
	char *source_namespace;
	char *source_name;
};

struct kube_pod_volume {
	char *name;
	char *claim;          /* name of the claim; NULL: the volume is not a claim */
	bool is_ephemeral;    /* the claim is created for the pod: kube_pod_claim() */
	char *template_class; /* in new pods: the class of that claim; NULL: not given */
	char *driver;         /* of an inline CSI volume; NULL: not inline */
	char *fs_type;
	struct kube_pairs attributes;
};

/* pods, with those volumes that are claims or inline CSI volumes. Pods without such volumes, and those that
 * have ended, are not kept. */
struct kube_pod {
	struct kube_meta meta;
	char *node_name;
	bool is_running; /* its phase is Running */
	struct kube_pod_volume *volumes;
	size_t n_volumes;
	/* Hash of the text of condition PodScheduled while that is False; 0: it is not False. If the
	 * scheduler repeats the same text, the hash does not change. */
	uint64_t unscheduled;
	char *unscheduled_since; /* lastTransitionTime of that condition, RFC 3339; NULL: not given */
};

/* A pod, with what says how it is run. */
struct kube_pod_runtime {
	struct kube_meta meta;
	char *node_name;
	char *runtime_class;          /* NULL: none */
	char *fs_group;               /* a number; NULL: none */
	char *fs_group_change_policy; /* NULL: none */
};

struct kube_container {
	bool has_resources;
	bool has_limits;
	bool has_requests;
};

/* A pod as an admission webhook sees it, which may have no name yet. */
struct kube_new_pod {
	struct kube_pod pod;  /* with labels */
	const char *resource; /* parameter of kube_new_pod_decode(); borrowed */
	char *scheduler;      /* NULL: not set */
	bool has_volumes;     /* of any kind */
	bool has_resource;    /* a container or init container has limit and request of that resource */
	size_t n_containers;
	struct kube_container first_container;
};

/* csidrivers */
struct kube_csi_driver {
	struct kube_meta meta;
	char **modes; /* volumeLifecycleModes; strv */
};

/* storageclasses */
struct kube_class {
	struct kube_meta meta;
	char *provisioner;
	bool waits_for_consumer; /* volumeBindingMode WaitForFirstConsumer */
	bool is_default; /* annotation storageclass.kubernetes.io/is-default-class, or its beta form */
	struct kube_pairs parameters;
};

/* The label of a CSIStorageCapacity with the name of its driver, by which external-provisioner and the driver
 * find theirs. Source: external-provisioner pkg/capacity. */
#define KUBE_CAPACITY_DRIVER "csi.storage.k8s.io/drivername"

/* csistoragecapacities */
struct kube_capacity {
	struct kube_meta meta; /* with labels */
	char *storage_class;
	struct kube_pairs topology; /* nodeTopology.matchLabels */
	bool has_expressions;       /* nodeTopology has matchExpressions */
	bool has_capacity;
	bool has_maximum;
	uint64_t capacity_bytes;
	uint64_t maximum_bytes; /* maximumVolumeSize */
};

struct kube_webhook {
	char *name;
	char *service_namespace; /* NULL: the webhook is called by a URL */
	char *service_name;
	char *ca_bundle; /* base64 of PEM; NULL: none */
};

/* mutatingwebhookconfigurations */
struct kube_webhooks {
	struct kube_meta meta; /* with annotations */
	struct kube_webhook *webhooks;
	size_t n;
};

extern const struct kube_kind kube_kind_nodes;
extern const struct kube_kind kube_kind_csi_nodes;
extern const struct kube_kind kube_kind_volumes;
extern const struct kube_kind kube_kind_claims;
extern const struct kube_kind kube_kind_pods;
extern const struct kube_kind kube_kind_pod_runtimes; /* pods, whatever volumes and state they have */
extern const struct kube_kind kube_kind_csi_drivers;
extern const struct kube_kind kube_kind_classes;
extern const struct kube_kind kube_kind_webhooks;
extern const struct kube_kind
	kube_kind_capacities; /* .path is of all namespaces: informer.h says how to narrow it */

/** kube_claim_volume_name() - the name that external-provisioner gives to the volume that it makes for @claim
 * (makeVolumeName()). A claim may be bound to another volume. Return: caller frees. */
char *kube_claim_volume_name(const struct kube_claim *claim);

/** kube_pod_claim() - get the name of the claim, in the pod's namespace, that @v of @pod uses. Return: caller
 * frees; NULL: @v does not use a claim. Source: component-helpers storage/ephemeral VolumeClaimName(). */
char *kube_pod_claim(const struct kube_pod *pod, const struct kube_pod_volume *v);

/**
 * kube_new_pod_decode() - parse a pod that is about to be created.
 * @json:     the object
 * @resource: name of the resource for kube_new_pod.has_resource
 * @err:      see docs/ERRORS.md
 *
 * Return: caller frees; NULL with ERR_INVALID_ARGUMENT (malformed, or a member that is read has the wrong
 * type: in contrast to the functions above, it does not read as absent).
 */
struct kube_new_pod *kube_new_pod_decode(
	struct span json, const char *resource, struct error **err) MUST_CHECK;

/** kube_new_pod_free() - destroy @p; NULL is allowed. */
void kube_new_pod_free(struct kube_new_pod *p);
