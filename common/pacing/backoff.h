/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backoff.h - when what has failed is tried again: after 1 s, then 1.6 times as long each time, at most 30 s,
 * and up to 20 % more or less, so that clients of one server do not come at once.
 *
 * It is used for connections (net/http2/h2_channel.c), look-ups and registrations of nodes
 * (nodes/registration.c), registrations that kubelet refuses (csi/kubelet_registration.c), watches
 * (kube/informer.c), and failed items of a work queue (kube/work_queue.c). The wait that an API server asks
 * for by Retry-After is in kube/client.c.
 *
 * Source: grpc/doc/connection-backoff.md; its maximum is 120 s, which is long for a node that comes back.
 * Threads: one owner at a time; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_FIRST_MS 1000
#define BACKOFF_MAX_MS   30000

struct backoff {
	uint64_t first_ns;
	uint64_t next_ns;
	uint64_t until_ns;
};

/** backoff_init() - no failure yet. @first_ms: the first wait; 0: BACKOFF_FIRST_MS. */
void backoff_init(struct backoff *b, uint64_t first_ms);

/** backoff_reset() - an attempt has succeeded: the next failure is a first one again. */
void backoff_reset(struct backoff *b);

/** backoff_fail() - an attempt has failed. @now_ns: of clock_ns(). */
void backoff_fail(struct backoff *b, uint64_t now_ns);

/** backoff_is_over() - whether the next attempt may begin. @now_ns: of clock_ns(). */
bool backoff_is_over(const struct backoff *b, uint64_t now_ns);
