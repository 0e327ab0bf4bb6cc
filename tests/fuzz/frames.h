/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frames.h - HTTP/2 frames in a short form, so that a fuzzer changes what is in them without breaking the
 * lengths around it.
 *
 * A frame is: type, flags, number of the stream, two bytes of length, payload. In a HEADERS or CONTINUATION
 * frame whose type has the bit FRAME_LINES, the payload is lines of "name: value", which become HPACK
 * literals.
 */
#pragma once

#include "base/buf.h"
#include "base/span.h"

#define FRAME_LINES 0x80

/** frames_preface() - what a client sends first: the magic and empty SETTINGS. */
void frames_preface(struct buf *out);

/** frames_settings() - what a server sends first: empty SETTINGS. */
void frames_settings(struct buf *out);

/** frames_next() - take one frame in short form off @in and append it as HTTP/2 has it. Return: false when
 * nothing is left. */
bool frames_next(struct span *in, struct buf *out);
