/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_held.h - what a request of http1.h consists of, by itself: it may outlive the connection.
 *
 * Threads: the loop's.
 */
#pragma once

#include <stddef.h>

#include "base/buf.h"

/* What the spans of a request point to. */
struct http1_held {
	struct buf path;
	struct buf query;
	struct buf body;
	size_t *buffered_bytes; /* that the body counts in, borrowed; NULL: in none */
};

/** http1_held_done() - release what a request was. */
void http1_held_done(struct http1_held *held);
