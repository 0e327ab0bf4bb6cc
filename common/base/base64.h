/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base64.h - base64 (RFC 4648 section 4) with padding. Threads: safe.
 */
#pragma once

#include "base/buf.h"
#include "base/error.h"

/** base64_encode() - append the text that stands for @content to @out, on one line. */
void base64_encode(struct span content, struct buf *out);

/** base64_encode_name() - base64_encode() with the alphabet for file names and URLs, in which '-' and '_'
 * stand for '+' and '/' (RFC 4648 section 5); with padding, too. */
void base64_encode_name(struct span content, struct buf *out);

/** base64_decode() - append what @text stands for to @out; line ends are skipped. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT (another character, wrong length or padding, bits that belong to no byte); @out may
 * then hold a part. */
int base64_decode(const char *text, struct buf *out, struct error **err) MUST_CHECK;
