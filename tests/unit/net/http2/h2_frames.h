/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_frames.h - HTTP/2 frames by hand, for a client that does what nghttp2 as a client would not, and the
 * server's answer as text.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum frame_type {
	FRAME_DATA = 0,
	FRAME_HEADERS = 1,
	FRAME_RST_STREAM = 3,
	FRAME_SETTINGS = 4,
	FRAME_PING = 6,
	FRAME_GOAWAY = 7,
	FRAME_WINDOW_UPDATE = 8,
	FRAME_CONTINUATION = 9,
};

enum frame_flag { FLAG_END_STREAM = 1, FLAG_ACK = 1, FLAG_END_HEADERS = 4 };

/** frames_preface() - what a client sends first: the magic and empty SETTINGS. */
void frames_preface(struct buf *out);

/** frames_add() - one frame; @payload is not longer than 65535 bytes. */
void frames_add(struct buf *out, enum frame_type type, uint8_t flags, int32_t stream, struct span payload);

/** frames_field() - one header field of an HPACK block, literal and not indexed. */
void frames_field(struct buf *block, const char *name, struct span value);

/** frames_fields() - fields of "name: value\n" lines. */
void frames_fields(struct buf *block, const char *lines);

/** frames_post() - a complete request with the fields @lines. */
void frames_post(struct buf *out, int32_t stream, const char *lines);

/**
 * frames_text() - the frames in @bytes as lines: "SETTINGS", "HEADERS 1", "DATA 1 LENGTH", "RST_STREAM 1
 * CODE", "GOAWAY LAST CODE", "PING ACK hexdigits", "WINDOW_UPDATE 1"; " ACK" and " END" for the flags.
 */
void frames_text(struct span bytes, struct buf *out);
