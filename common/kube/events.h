/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - Events on Kubernetes objects, for people.
 *
 * The same reason on the same object makes at most one request a minute: what comes between is counted, and
 * told with the next one. Failures are told in the log at debug level: an Event is never worth a retry. What
 * is remembered is bounded (1,024 pairs of object and reason). Threads: the loop's.
 */
#pragma once

#include <stdint.h>

#include "kube/client.h"

struct kube_events;

struct kube_reference {
	const char *api_version; /* "v1" */
	const char *kind;        /* "PersistentVolumeClaim" */
	const char *namespace;   /* NULL: has none; the Event is made in "default" then */
	const char *name;
	const char *uid;
};

/** kube_events_new() - @component: who tells ("pmem-csi.intel.com"), @instance: which one of them (the pod's
 * name); both copied. Return: never NULL; kube_events_free(). */
struct kube_events *kube_events_new(struct kube_client *client, const char *component, const char *instance);

/** kube_events_free() - requests that run are given up. To be called before kube_client_free(). NULL is
 * allowed. */
void kube_events_free(struct kube_events *e);
DEFINE_CLEANUP(struct kube_events *, kube_events_free);

/** kube_event_post() - tell. @type: "Normal" or "Warning"; @reason: one word in CamelCase; @message: cut at
 * 1,024 bytes; @now_ns: of clock_ns(). Everything is copied. */
void kube_event_post(struct kube_events *e, const struct kube_reference *object, const char *type,
	const char *reason, const char *message, uint64_t now_ns);
