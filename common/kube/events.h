/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.h - Events on Kubernetes objects, for people.
 *
 * The same reason on the same object makes at most one request a minute: repetitions are counted, and the
 * next request reports how many there were. Failures are logged at debug level and never retried. At most
 * 1,024 pairs of object and reason are remembered. Threads: the loop's.
 */
#pragma once

#include <stdint.h>

#include "kube/client.h"

struct kube_events;

struct kube_reference {
	const char *api_version; /* "v1" */
	const char *kind;        /* "PersistentVolumeClaim" */
	const char *namespace;   /* NULL: none, then the Event is created in "default" */
	const char *name;
	const char *uid;
};

/** kube_events_new() - make a sender of Events. @component: the reporting program ("pmem-csi.intel.com"),
 * @instance: which of its replicas (the pod's name); both copied. Return: never NULL; kube_events_free(). */
struct kube_events *kube_events_new(struct kube_client *client, const char *component, const char *instance);

/** kube_events_free() - cancel requests in flight and release @e. To be called before kube_client_free().
 * NULL is allowed. */
void kube_events_free(struct kube_events *e);
DEFINE_CLEANUP(struct kube_events *, kube_events_free);

/** kube_event_post() - send an Event about @object. @type: "Normal" or "Warning"; @reason: one word in
 * CamelCase;
 * @message: cut off after 1,024 bytes; @now_ns: of clock_ns(). Everything is copied. */
void kube_event_post(struct kube_events *e, const struct kube_reference *object, const char *type,
	const char *reason, const char *message, uint64_t now_ns);
