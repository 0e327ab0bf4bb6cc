/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_reader.h - measures how long a peer has been reading too slowly.
 *
 * Reading a single byte does not count as progress: otherwise a peer that reads one now and then would keep
 * its connection for ever. So each byte that the peer takes moves the beginning of its lag forward, at the
 * expected rate, but never beyond now. Threads: one at a time.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/** slow_reader_begin() - from now on data waits to be sent to the peer. @since_ns: 0 when nothing waited
 * before. */
static inline void slow_reader_begin(uint64_t *since_ns, uint64_t now_ns)
{
	if (*since_ns == 0)
		*since_ns = now_ns;
}

/** slow_reader_progress() - the peer has taken @bytes, of which at least @per_s are expected each second. */
static inline void slow_reader_progress(uint64_t *since_ns, size_t bytes, uint64_t per_s, uint64_t now_ns)
{
	if (*since_ns == 0)
		return;
	*since_ns += bytes * NS_PER_S / per_s;
	if (*since_ns > now_ns)
		*since_ns = now_ns;
}
