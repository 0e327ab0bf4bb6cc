/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lag.h - since when a peer has not taken what waits for it.
 *
 * A single byte is no progress: a peer that takes one now and then would keep its place for ever. So the
 * moment since which a peer lags moves on with the bytes that it takes, at the rate that is expected of it,
 * and never beyond now. Threads: one at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/** lag_begin() - something waits for the peer from now on. @since_ns: 0 when nothing waited. */
static inline void lag_begin(uint64_t *since_ns, uint64_t now_ns)
{
	if (*since_ns == 0)
		*since_ns = now_ns;
}

/** lag_progress() - the peer has taken @bytes, of which at least @per_s are expected each second. */
static inline void lag_progress(uint64_t *since_ns, size_t bytes, uint64_t per_s, uint64_t now_ns)
{
	if (*since_ns == 0)
		return;
	*since_ns += bytes * NS_PER_S / per_s;
	if (*since_ns > now_ns)
		*since_ns = now_ns;
}
