/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_answer.h - the answer to one HTTP/1.1 request of ours, without I/O: bytes in, status and body out.
 * The connection is not used again, so nothing is made of what follows the answer. Threads: one at a time.
 * Source: RFC 9112.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/span.h"

struct http1_answer;

/** http1_answer_new() - @max_body_bytes: of which the body may be. Return: never NULL; http1_answer_free().
 */
struct http1_answer *http1_answer_new(size_t max_body_bytes);

/** http1_answer_free() - NULL is allowed. */
void http1_answer_free(struct http1_answer *a);
DEFINE_CLEANUP(struct http1_answer *, http1_answer_free);

/** http1_answer_receive() - process bytes of the peer; none means that it has closed the connection, which
 * may be the end of the body. Return: 0, or -1 with ERR_INTERNAL (no such answer; cut off), ERR_EXHAUSTED
 * (header section beyond LIMIT_HEADER_BYTES, body beyond its limit). */
int http1_answer_receive(struct http1_answer *a, struct span bytes, struct error **err) MUST_CHECK;

/** http1_answer_is_complete() - whether all of it is there. */
bool http1_answer_is_complete(const struct http1_answer *a);

/** http1_answer_status() and http1_answer_body() - of a complete answer; the body is borrowed. */
unsigned http1_answer_status(const struct http1_answer *a);
struct span http1_answer_body(const struct http1_answer *a);
