/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_headers.h - one HTTP/2 header block: bounded collection, and the checks that h2.c makes instead of
 * nghttp2.
 *
 * Private to h2.c and its tests. Threads: one owner at a time; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "net/http2/h2.h"

/* RFC 9113 section 6.5.2 (SETTINGS_MAX_HEADER_LIST_SIZE): a field counts its bytes and 32 more */
#define H2_FIELD_OVERHEAD 32

/* Zeroed is empty. Header blocks of the usual clients fit into the first block of memory, which malloc can
 * reuse. */
struct h2_fields {
	struct h2_header *items; /* one block of memory with the bytes that they point to */
	size_t n;
	size_t max_n;
	uint8_t *bytes;
	size_t used;
	size_t max_bytes;
	size_t list_bytes; /* as SETTINGS_MAX_HEADER_LIST_SIZE counts */
	bool too_big;      /* a field did not fit; it and all that follow are missing */
};

/** h2_fields_done() - release the fields; @f is empty then. */
void h2_fields_done(struct h2_fields *f);

/** h2_fields_add() - append a copy of the field; beyond LIMIT_HEADER_BYTES only @f->too_big is set. */
void h2_fields_add(struct h2_fields *f, struct span name, struct span value);

/**
 * h2_fields_request_fault() - the reason why @f is a malformed request: the rules of RFC 9113 sections 8.2
 * and 8.3.1 without those on the content of :authority.
 *
 * Return: static text, or NULL when nothing is wrong.
 */
const char *h2_fields_request_fault(const struct h2_fields *f);

/** h2_fields_trailer_fault() - as h2_fields_request_fault() for trailers, which have no pseudo headers. */
const char *h2_fields_trailer_fault(const struct h2_fields *f);
