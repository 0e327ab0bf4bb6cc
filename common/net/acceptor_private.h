/* SPDX-License-Identifier: Apache-2.0 */
/*
 * acceptor_private.h - inside of the acceptor: who is there (acceptor.c), and who has to go
 * (acceptor_sweep.c). Threads: the loop's.
 */
#pragma once

#include "net/acceptor.h"
#include "net/log_quota.h"

struct listener;

struct acceptor {
	struct acceptor_config config;
	struct listener *listeners;
	struct accepted *first; /* in the order of their arrival */
	struct accepted *last;
	unsigned n;
	unsigned most; /* of n since it was 0 */
	unsigned newcomers;
	uint64_t got_on_ns;       /* the last handshake was complete */
	bool paused;              /* nothing is accepted */
	struct loop_timer *retry; /* to accept again */
	struct loop_timer *sweep; /* runs while there are connections */
	struct log_quota *refusals;
	bool draining;
	uint64_t draining_since_ns;
	bool emptied;
	loop_fn on_empty;
	void *on_empty_user;
};

/** accepted_is_new() - it has not made a valid request yet. */
static inline bool accepted_is_new(const struct accepted *c)
{
	return c->requests == 0;
}

/** accepted_close() - the connection ends here and now; @c is freed. */
void accepted_close(struct accepted *c);

/** acceptor_log() - warn of a peer that has to go, so many times a second. @e: why, or NULL */
void acceptor_log(struct acceptor *a, const struct conn *c, const char *msg, const struct error *e);

/** acceptor_sweep() - end all that have taken too long. @user: the acceptor */
void acceptor_sweep(void *user);

/** acceptor_find_evictable() - which connection makes room: the oldest newcomer that had its time; otherwise,
 * where all places are taken, the one that has asked for more than it reads for longest, or an idle one; or
 * NULL. */
struct accepted *acceptor_find_evictable(const struct acceptor *a);

/** accepted_evict() - @c makes room. */
void accepted_evict(struct accepted *c);
