/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h - leader election over a Lease object: at most one of those who ask for it leads.
 *
 * As client-go does it: a holder whose record has not changed for its leaseDurationSeconds, by the clock of
 * the replica that looks, is taken for gone; updates carry the resourceVersion that was read, so that one of
 * two wins. The leader renews every retry_ms and has stopped to lead renew_ms after it asked for the last
 * renewal that succeeded, whatever the network does; that is before anybody else can begin. Requests have a
 * connection of their own, and wait behind no others; a server that is silent on it is found out within less
 * than retry_ms, so that one connection that hangs does not cost the lease. Threads: the loop's. Source:
 * client-go tools/leaderelection.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kube/client.h"

struct lease_config {
	struct kube_client *client; /* whose server it is (kube_client_sibling()) */
	const char *namespace;
	const char *name;
	const char *identity; /* unique: host name and process, or the pod's name */
	uint64_t duration_ms; /* whole seconds; 0: 15000 */
	uint64_t renew_ms;    /* below duration_ms; 0: 10000 */
	uint64_t retry_ms;    /* below renew_ms; 0: 5000 */
	/* leading began or ended */
	void (*changed)(void *user, bool leading);
	void *user;
};

struct lease;

/** lease_new() - begin to ask for the lease. @config: strings are copied. Return: never NULL; lease_free().
 */
struct lease *lease_new(const struct lease_config *config);

/** lease_is_leading() - whether we lead right now. */
bool lease_is_leading(const struct lease *l);

/** lease_stop() - stop to ask; if we lead, changed(false) is called and the lease given back, so that another
 * one can begin at once. @done: called when that is over, after 1 s at most, never before this returned. To
 * be called once. */
void lease_stop(struct lease *l, void (*done)(void *user), void *user);

/** lease_free() - destroy @l, from changed() excepted. A lease that was not given back ends by itself. NULL
 * is allowed. */
void lease_free(struct lease *l);
DEFINE_CLEANUP(struct lease *, lease_free);
