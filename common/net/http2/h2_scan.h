/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_scan.h - finds the last stream number in GOAWAY frames of a client, as bytes arrive in any pieces.
 *
 * Clients written in Go name the last stream of their own there, where RFC 9113 section 6.8 wants one of the
 * server's; nghttp2 ends the connection over it and drops what is being answered. A server opens no streams,
 * so that the only number that says the truth is 0, and h2.c feeds that instead. Private to h2.c. Threads:
 * one at a time; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

struct h2_scan {
	size_t skip;     /* bytes until the next frame begins, or until what is looked for ends */
	size_t after;    /* bytes of the frame behind what is looked for */
	bool at_number;  /* @skip counts bytes of a GOAWAY's stream number */
	uint8_t head[9]; /* RFC 9113 section 4.1 */
	size_t have;     /* of @head */
};

/** h2_scan_init() - at the start of what a client sends: its preface. */
void h2_scan_init(struct h2_scan *s);

/**
 * h2_scan_next() - go on over the bytes that came.
 * @bytes:         not empty
 * @ret_is_number: the first bytes belong to the stream number of a GOAWAY
 *
 * Return: how many of the first bytes that is true of, or not true of; 1 or more.
 */
size_t h2_scan_next(struct h2_scan *s, struct span bytes, bool *ret_is_number);
