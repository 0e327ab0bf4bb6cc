/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object_call.h - makes requests for single objects. Threads: the loop's. Nothing blocks.
 */
#pragma once

#include "kube/client.h"
#include "kube/object.h"

/* Source: Kubernetes API concepts, "API verbs", and apimachinery pkg/types/patch.go. */
enum kube_verb {
	KUBE_GET,
	KUBE_CREATE, /* sent to the collection: the name is in the body only, or made by the server */
	KUBE_UPDATE,
	KUBE_PATCH,           /* RFC 7396 */
	KUBE_STRATEGIC_PATCH, /* lists are merged by the keys of their items */
	KUBE_APPLY, /* server-side apply, which creates what does not exist and takes fields over from
		       other managers */
	KUBE_DELETE,
};

struct kube_object_call {
	enum kube_verb verb;
	const struct kube_kind
		*kind;           /* only its path, of all namespaces, and its name for messages are used */
	const char *namespace;   /* NULL: the kind has none */
	const char *name;        /* escaped in the path, so that nothing in it can lead to another object; of
				    KUBE_CREATE for messages only */
	const char *subresource; /* "status"; NULL: the object itself */
	const char *field_manager; /* of KUBE_APPLY */
	bool metadata_only;        /* KUBE_GET: a PartialObjectMetadata is enough */
	struct span body;          /* copied */
	uint64_t timeout_ms;
};

/** kube_write_preconditions() - append the body of a KUBE_DELETE that fails with ERR_ABORTED when the object
 * is not the one of @meta. @version: resourceVersion that it must have; NULL: any. Source: apimachinery
 * meta/v1, DeleteOptions and Preconditions. */
void kube_write_preconditions(const struct kube_meta *meta, const char *version, struct buf *body);

/** kube_object_call() - start a request. All parameters are borrowed for the time of the call. @fn, @user: as
 * of kube_client_call(). Return: as kube_client_call(). */
struct kube_request *kube_object_call(
	struct kube_client *c, const struct kube_object_call *call, kube_reply_fn fn, void *user);
