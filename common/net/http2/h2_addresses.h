/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_addresses.h - the addresses of one server, and which of them a channel tries next: the one that worked
 * last, and after a failure the others in their order. When all have failed in turn, the channel waits.
 * Private to h2_channel.c. Threads: one owner. Nothing blocks.
 */
#pragma once

#include "base/error.h"
#include "net/core/addr.h"

struct h2_addresses {
	struct addr *addrs;
	char **endpoints; /* strv, in the same order */
	size_t n;
	size_t at;       /* the one that is tried */
	size_t n_failed; /* in turn, since one has worked or the channel has waited */
};

/** h2_addresses_set() - replace the addresses by @endpoints (addr.h), NULL-terminated and not empty; copied,
 * LIMIT_ADDRESSES of them at most. The one that is tried stays so if it is among them. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT: @a has not changed. */
int h2_addresses_set(struct h2_addresses *a, char *const *endpoints, struct error **err) MUST_CHECK;

/** h2_addresses_done() - release what @a points to. */
void h2_addresses_done(struct h2_addresses *a);

/** h2_addresses_share_ms() - the part of @open_ms in which a connection to one address has to open, so that
 * an address which does not answer leaves time for the others: equal parts, but at least LIMIT_ADDRESS_MS, or
 * all of @open_ms if that is less. */
uint64_t h2_addresses_share_ms(const struct h2_addresses *a, uint64_t open_ms);

/** h2_addresses_fail() - no connection to the address that was tried could be opened: the next one is tried.
 * Return: whether that is to be done at once; false: all have failed. */
bool h2_addresses_fail(struct h2_addresses *a);

/** h2_addresses_start_over() - failures so far do not count any more: a connection is open, or the channel
 * has begun to wait. */
void h2_addresses_start_over(struct h2_addresses *a);
