/* SPDX-License-Identifier: Apache-2.0 */
/*
 * informer.h - a copy of all objects of one kind, kept up to date by list and watch.
 *
 * Pages of 200 are read object by object, then a watch with bookmarks follows from the list's
 * resourceVersion; it is resumed after its orderly end, which comes after 5 to 10 minutes, and after the loss
 * of a connection. The list is read again when the server has forgotten that version (410), and when a
 * request for a watch was not answered, or by 500, 502 or 503, since etcd may have been restored meanwhile;
 * objects that are not in it are reported as deleted. Failures are logged once and retried after a back-off
 * with jitter (backoff.h). An object that is malformed or larger than KUBE_MAX_OBJECT_BYTES is skipped, and
 * the log names it: a user who may write one object must not hide all others. If it was known, it stays as it
 * was until it is deleted or replaced by one of another UID; otherwise it is unknown. Memory holds only the
 * fields of the kind for each object, and one whole object while it is read. Threads: the loop's. Source:
 * client-go tools/cache/reflector.go.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kube/client.h"
#include "kube/object.h"

/* They may make requests, but not free the informer. Each may be NULL. */
struct informer_events {
	/* called when an object has changed. @old NULL: the object is new; @new NULL: it was deleted. @key:
	 * kube_meta_key(). Only called when the resourceVersion has changed. Borrowed for the time of the
	 * call, @new until it changes. Also called for an object that the kind does not keep any longer,
	 * which informer_get() then no longer finds */
	void (*changed)(void *user, const char *key, const void *old, const void *new);
	/* called when the first list is complete, after the changed() calls for it */
	void (*synced)(void *user);
};

struct informer;

/** informer_new() - begin to list objects. @kind: its strings are borrowed for the informer's life (take a
 * copy of one of objects.h to narrow path or label_selector). Return: never NULL; informer_free(). */
struct informer *informer_new(struct kube_client *client, const struct kube_kind *kind,
	const struct informer_events *events, void *user);

/** informer_free() - stop; to be called before kube_client_free(). NULL is allowed. */
void informer_free(struct informer *i);
DEFINE_CLEANUP(struct informer *, informer_free);

/** informer_is_synced() - whether the first list is complete. */
bool informer_is_synced(const struct informer *i);

/** informer_failing_ns() - get the time, by clock_ns(), since which its requests have failed; 0: the last
 * list was complete, or the server has accepted the last watch. Parts of a list do not count, and so the
 * failures of a list that breaks off again and again have begun with the first of them. That a watch has no
 * events does not mean that it fails: for objects that do not change, the server does not even send bookmarks
 * (apiserver storage/cacher, dispatchEvents()). When a connection hangs, all its requests fail. */
uint64_t informer_failing_ns(const struct informer *i);

/** informer_get() - get the object with @key (kube_meta_key()), or NULL. Borrowed until it changes. */
const void *informer_get(const struct informer *i, const char *key);

/** informer_each() - call @fn for every object, in any order; @fn must not change anything. */
void informer_each(const struct informer *i, void (*fn)(void *user, const void *object), void *user);
