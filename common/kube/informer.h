/* SPDX-License-Identifier: Apache-2.0 */
/*
 * informer.h - a copy of all objects of one kind, kept up by list and watch.
 *
 * Pages of 200 are read object by object, then a watch with bookmarks follows from the list's
 * resourceVersion; it is resumed after an orderly end, which comes after 5 to 10 minutes, and after a loss of
 * the connection. When the server has forgotten that version (410), the list is read again, and objects that
 * went meanwhile are reported as gone. Failures are told once in the log and tried again after a back-off
 * with jitter (backoff.h). What is held is what the kind's decode() keeps, and one object while it is read.
 * Threads: the loop's. Source: client-go tools/cache/reflector.go.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/json/json.h"
#include "kube/client.h"
#include "kube/object.h"

struct kube_kind {
	const char *path;           /* "/apis/storage.k8s.io/v1/storageclasses" */
	const char *what;           /* "storageclasses", for messages */
	const char *label_selector; /* NULL: all */
	const char *field_selector; /* NULL: all */
	bool metadata_only;         /* ask for PartialObjectMetadata */
	/* one object, whose first member is a struct kube_meta. Return: NULL with an error when it is
	 * malformed */
	void *(*decode)(struct json_reader *r, struct error **err);
	void (*free)(void *object);
	/* whether @object is kept; NULL: all are */
	bool (*keeps)(const void *user, const void *object);
	const void *keeps_user;
};

/* @object points to what decode() gave. They may make requests, but not free the informer. Each may be NULL.
 */
struct informer_events {
	/* @old NULL: is new; @new NULL: is gone. @key: kube_meta_key(). Only called when the resourceVersion
	 * has changed. Borrowed for the time of the call, @new until it changes. Told for the last time of an
	 * object that the kind keeps no more, which informer_get() does not find any more */
	void (*changed)(void *user, const char *key, const void *old, const void *new);
	/* the first list is complete, its changed() calls were made */
	void (*synced)(void *user);
};

struct informer;

/** informer_new() - begin to list. @kind: its strings are borrowed for the informer's life (take a copy of
 * one of objects.h to narrow path or label_selector). Return: never NULL; informer_free(). */
struct informer *informer_new(struct kube_client *client, const struct kube_kind *kind,
	const struct informer_events *events, void *user);

/** informer_free() - stop; to be called before kube_client_free(). NULL is allowed. */
void informer_free(struct informer *i);
DEFINE_CLEANUP(struct informer *, informer_free);

/** informer_is_synced() - the first list was complete. */
bool informer_is_synced(const struct informer *i);

/** informer_failing_ns() - since when its requests have failed, of clock_ns(); 0: the server has accepted the
 * last one. A watch without events proves nothing: of objects that do not change there are not even
 * bookmarks (apiserver storage/cacher, dispatchEvents()). A connection that hangs ends all its requests. */
uint64_t informer_failing_ns(const struct informer *i);

/** informer_get() - the object with @key (kube_meta_key()), or NULL. Borrowed until it changes. */
const void *informer_get(const struct informer *i, const char *key);

/** informer_each() - call @fn for every object, in no order; it must not change anything. */
void informer_each(const struct informer *i, void (*fn)(void *user, const void *object), void *user);
