/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http1_rules.h - what RFC 9112 demands of the lines of a request, beyond what http-parser checks.
 *
 * http-parser is so lenient that two readers of one connection can disagree about where a request ends, which
 * makes request smuggling possible: Debian builds it with HTTP_PARSER_STRICT=0, so that a bare LF ends a
 * line, anything may follow a CR, names may contain spaces, and folded lines are joined. Therefore each line
 * passes these rules before the parser sees it. All functions are pure. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

/* Why a request is not served; status 0: it is. */
struct http1_refusal {
	unsigned status;
	const char *why; /* static */
};

#define HTTP1_FINE      ((struct http1_refusal){0})
#define HTTP1_BAD(text) ((struct http1_refusal){400, (text)})

/* What is known from the header section so far. */
struct http1_head {
	bool is_1_0;
	unsigned n_host;
	unsigned n_content_length;
	unsigned n_transfer_encoding;
	bool expects_continue;
};

/** http1_check_bytes() - @bytes in a line, behind @before (0 at its begin): no control characters but HT, CR
 * only before LF, LF only behind CR. */
struct http1_refusal http1_check_bytes(uint8_t before, struct span bytes);

/* The target of a request: parts of the request line, or of literals. */
struct http1_target {
	struct span path;
	struct span query;
};

/**
 * http1_check_request_line() - method SP target SP version, and nothing else. The target is a path, "*" with
 * OPTIONS, or a http or https URL, whose authority is ignored, like the Host field.
 * @line:       without CRLF
 * @head:       its version is set
 * @ret_target: set unless refused
 */
struct http1_refusal http1_check_request_line(
	struct span line, struct http1_head *head, struct http1_target *ret_target);

/** http1_check_field() - check one header field. @line: without CRLF, not empty. @head: counts what frames a
 * body.
 */
struct http1_refusal http1_check_field(struct span line, struct http1_head *head);

/** http1_check_head() - check the header section as a whole. */
struct http1_refusal http1_check_head(const struct http1_head *head);

/** http1_check_trailer() - as http1_check_field(), for the trailer section: nothing that frames a body. */
struct http1_refusal http1_check_trailer(struct span line);

/** http1_check_chunk_size() - check the line with a chunk's size: hexadecimal digits, with or without an
 * extension. @line: without CRLF. */
struct http1_refusal http1_check_chunk_size(struct span line);
