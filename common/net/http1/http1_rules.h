/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_rules.h - what RFC 9112 demands of the lines of a message.
 *
 * Two readers of one connection that disagree about where a message ends make request smuggling possible.
 * Therefore whatever the RFC lets a recipient be lenient about is refused here: a bare LF, anything behind a
 * CR, folded lines, spaces in or behind names, and more than one field that frames the body. All functions
 * are pure. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* Why a message is refused, and the status that says so to a client; status 0: it is not. */
struct http1_refusal {
	unsigned status;
	const char *why; /* static */
};

#define HTTP1_FINE      ((struct http1_refusal){0})
#define HTTP1_BAD(text) ((struct http1_refusal){400, (text)})

/* The content of the header fields that were received so far, as far as it matters for the framing of the
 * message. */
struct http1_head {
	bool is_1_0;
	bool says_close; /* Connection: close */
	bool says_keep_alive;
	bool expects_continue;
	unsigned n_host;
	unsigned n_content_length;
	unsigned n_transfer_encoding;
	uint64_t content_length; /* 0 without */
};

/** http1_check_bytes() - @bytes in a line, behind @before (0 at its begin): no control characters but HT, CR
 * only before LF, LF only behind CR. */
struct http1_refusal http1_check_bytes(uint8_t before, struct span bytes);

/* The first line of a request. The target is a part of the line, or a literal. */
struct http1_request_line {
	const char *method; /* static */
	struct span path;
	struct span query;
};

/**
 * http1_check_request_line() - method SP target SP version, and nothing else. The target is a path, "*" with
 * OPTIONS, or a http or https URL, whose authority is ignored, like the Host field.
 * @line: without CRLF
 * @head: its version is set
 * @ret:  set unless refused
 */
struct http1_refusal http1_check_request_line(
	struct span line, struct http1_head *head, struct http1_request_line *ret);

/** http1_check_status_line() - version SP status, with or without a reason. @line, @head: as above. @ret: the
 * status, from 100 to 999. */
struct http1_refusal http1_check_status_line(struct span line, struct http1_head *head, unsigned *ret);

/** http1_check_field() - check one header field. @line: without CRLF, not empty. @head: counts what frames a
 * body.
 */
struct http1_refusal http1_check_field(struct span line, struct http1_head *head);

/** http1_check_framing() - whether a whole header section says once where the body ends. */
struct http1_refusal http1_check_framing(const struct http1_head *head);

/** http1_check_host() - whether the whole header section of a request has one Host. */
struct http1_refusal http1_check_host(const struct http1_head *head);

/** http1_check_trailer() - as http1_check_field(), for the trailer section: nothing that frames a body. */
struct http1_refusal http1_check_trailer(struct span line);

/** http1_check_chunk_size() - check the line with a chunk's size: hexadecimal digits, with or without an
 * extension. @line: without CRLF. @ret: the size in bytes. */
struct http1_refusal http1_check_chunk_size(struct span line, uint64_t *ret);
