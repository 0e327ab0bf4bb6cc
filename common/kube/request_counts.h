/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_counts.h - counts the requests to the API server and how long they took, for monitoring. Threads:
 * the loop's; nothing blocks.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "kube/client.h"

struct kube_request_counts;

/** kube_request_counts_new() - make counters, which are all 0. Return: never NULL;
 * kube_request_counts_free(), after the client is freed. */
struct kube_request_counts *kube_request_counts_new(void);

/** kube_request_counts_free() - release @c. NULL is allowed. */
void kube_request_counts_free(struct kube_request_counts *c);
DEFINE_CLEANUP(struct kube_request_counts *, kube_request_counts_free);

/** kube_request_counts_observer() - get the observer for the client whose requests are counted; valid as long
 * as
 * @c. */
struct kube_observer kube_request_counts_observer(struct kube_request_counts *c);

/** kube_request_counts_add() - append pmem_kube_request_duration_seconds, by verb, resource and code, and
 * pmem_kube_objects_skipped_total, by resource. */
void kube_request_counts_add(const struct kube_request_counts *c, struct buf *out);
