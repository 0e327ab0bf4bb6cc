/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h - leader election over a Lease object: at most one applicant is the leader.
 *
 * This follows client-go: a holder whose record has not changed for its leaseDurationSeconds, by the clock of
 * the replica that reads it, counts as gone. Updates contain the resourceVersion that was read, so that only
 * one of two concurrent updates succeeds. The leader renews every retry_ms. It stops leading renew_ms after
 * it asked for the last renewal that succeeded, whatever the network does, which is before another replica
 * can become the leader. Requests have a connection of their own, so that they do not wait behind others. A
 * server that does not answer on it is detected in less than retry_ms, so that one hanging connection does
 * not cost the Lease. Threads: the loop's. Source: client-go tools/leaderelection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"

struct lease_config {
	struct kube_client *client; /* of the same server (kube_client_sibling()) */
	const char *namespace;
	const char *name;
	const char *identity; /* unique: host name and process, or the pod's name */
	uint64_t duration_ms; /* whole seconds; 0: 15000 */
	uint64_t renew_ms;    /* below duration_ms; 0: 10000 */
	uint64_t retry_ms;    /* below renew_ms; 0: 5000 */
	/* called when this replica has become the leader, or is no longer the leader */
	void (*changed)(void *user, bool leading);
	void *user;
};

struct lease;

/** lease_new() - begin to apply for the Lease. @config: strings are copied. Return: never NULL; lease_free().
 */
struct lease *lease_new(const struct lease_config *config);

/** lease_is_leading() - whether this replica is the leader now. */
bool lease_is_leading(const struct lease *l);

/** lease_stop() - stop applying; a leader gets changed(false), and releases the Lease, so that another
 * replica can lead at once. @done: called when that is done, after 1 s at most, and never before this
 * function has returned. To be called once. */
void lease_stop(struct lease *l, void (*done)(void *user), void *user);

/** lease_free() - destroy @l; not to be called by changed(). A Lease that was not released expires. NULL
 * is allowed. */
void lease_free(struct lease *l);
DEFINE_CLEANUP(struct lease *, lease_free);
