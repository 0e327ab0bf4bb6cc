/* SPDX-License-Identifier: Apache-2.0 */
/*
 * objects.h - the kinds of objects that the duties look at, with what they need of them.
 *
 * Each is a struct kube_kind (informer.h) whose objects are the structs below; what is not named there is not
 * kept. An invalid value reads as absent: one odd object must not hide all others. Threads: one
 * owner at a time. Source: Kubernetes API reference 1.34, core/v1 and storage.k8s.io/v1.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "kube/informer.h"
#include "kube/object.h"

/* nodes: metadata only, with labels */
struct kube_node {
	struct kube_meta meta;
};

/* csinodes */
struct kube_csi_node {
	struct kube_meta meta;
	char **drivers;  /* strv of their names */
	char **node_ids; /* of each driver; as long as drivers */
};

/* persistentvolumes */
struct kube_volume {
	struct kube_meta meta; /* with annotations */
	char *driver;          /* spec.csi; NULL: not of CSI */
	char *handle;
	char *storage_class;
	char *claim_namespace; /* spec.claimRef */
	char *claim_name;
	char *claim_uid;
	char *phase;
	char **node_values; /* all values of operator In in spec.nodeAffinity.required, any key; strv */
	uint64_t size_bytes;
};

/* persistentvolumeclaims */
struct kube_claim {
	struct kube_meta meta;
	char *storage_class; /* NULL: not set */
	char *volume_name;   /* NULL or "": not bound */
	char *selected_node; /* annotation volume.kubernetes.io/selected-node */
	char *provisioner;   /* annotation volume.kubernetes.io/storage-provisioner, or its beta form */
	char *phase;
	uint64_t request_bytes;
	bool is_block; /* volumeMode Block */
};

struct kube_pod_volume {
	char *name;
	char *claim;          /* of a claim; NULL: not a claim */
	bool is_ephemeral;    /* of a claim that is made for the pod: kube_pod_claim() */
	char *template_class; /* of new pods: the class of that claim; NULL: none is named */
	char *driver;         /* of an inline volume of CSI; NULL: not inline */
	char *fs_type;
	struct kube_pairs attributes;
};

/* pods, with those volumes that are claims or of CSI. The kind leaves out pods without such, and those that
 * have ended. */
struct kube_pod {
	struct kube_meta meta;
	char *node_name;
	struct kube_pod_volume *volumes;
	size_t n_volumes;
	/* What condition PodScheduled says while it is False, as a hash; 0: it is not. What the scheduler
	 * says again in the same words changes nothing. */
	uint64_t unscheduled;
	char *unscheduled_since; /* lastTransitionTime of that condition, RFC 3339; NULL: not told */
};

struct kube_container {
	bool has_resources;
	bool has_limits;
	bool has_requests;
};

/* A pod as an admission webhook sees it, which may have no name yet. */
struct kube_new_pod {
	struct kube_pod pod; /* with labels */
	char *scheduler;     /* NULL: not set */
	bool has_volumes;    /* of any kind */
	bool has_resource;   /* a container, or one that initialises, has limit and request of
				kube_new_pod_decode() */
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
	char *service_namespace; /* NULL: is called by a URL */
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
extern const struct kube_kind kube_kind_csi_drivers;
extern const struct kube_kind kube_kind_classes;
extern const struct kube_kind kube_kind_webhooks;
extern const struct kube_kind
	kube_kind_capacities; /* .path is of all namespaces: informer.h tells how to narrow */

/** kube_pod_claim() - the name of the claim that @v of @pod stands for, in the pod's namespace. Return: NULL
 * if it stands for none; caller frees. Source: component-helpers storage/ephemeral VolumeClaimName(). */
char *kube_pod_claim(const struct kube_pod *pod, const struct kube_pod_volume *v);

/**
 * kube_volume_decode() - one object, such as the reply to a GET.
 * kube_claim_decode() - likewise.
 * kube_node_decode() - likewise.
 * kube_class_decode() - likewise.
 * kube_pod_decode() - likewise.
 *
 * Return: the object, to be released by the kind's free(), or NULL with ERR_INVALID_ARGUMENT.
 */
struct kube_volume *kube_volume_decode(struct span json, struct error **err) MUST_CHECK;
struct kube_claim *kube_claim_decode(struct span json, struct error **err) MUST_CHECK;
struct kube_node *kube_node_decode(struct span json, struct error **err) MUST_CHECK;
struct kube_class *kube_class_decode(struct span json, struct error **err) MUST_CHECK;
struct kube_pod *kube_pod_decode(struct span json, struct error **err) MUST_CHECK;

/**
 * kube_new_pod_decode() - a pod that is about to be created.
 * @json:     the object
 * @resource: name of the one that kube_new_pod.has_resource is about
 * @err:      see docs/ERRORS.md
 *
 * Return: caller frees; NULL with ERR_INVALID_ARGUMENT (malformed, or what is looked at has the wrong type:
 * unlike above, it does not read as absent).
 */
struct kube_new_pod *kube_new_pod_decode(
	struct span json, const char *resource, struct error **err) MUST_CHECK;

/** kube_new_pod_free() - destroy @p; NULL is allowed. */
void kube_new_pod_free(struct kube_new_pod *p);
