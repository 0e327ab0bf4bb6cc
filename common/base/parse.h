/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parse.h - strict, total parsers: the whole text or nothing; the offending text is quoted in the error.
 *
 * This is the only place where digits become numbers. No locale, no blanks around it. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/span.h"

/**
 * parse_u64() - decimal digits only.
 * @text: NUL-terminated
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (empty, sign, other characters, more than 2^64-1).
 */
int parse_u64(const char *text, uint64_t *ret, struct error **err) MUST_CHECK;

/** parse_number() - as parse_u64(), or lower-case hexadecimal digits after "0x": the two ways in which the
 * kernel prints numbers in sysfs. */
int parse_number(const char *text, uint64_t *ret, struct error **err) MUST_CHECK;

/** parse_u32() - as parse_u64(), at most 2^32-1. */
int parse_u32(const char *text, uint32_t *ret, struct error **err) MUST_CHECK;

/** parse_u32_or() - as parse_u32(), for bytes of a peer; @otherwise if they are not such a number.
 */
uint32_t parse_u32_or(struct span text, uint32_t otherwise) MUST_CHECK;

/** parse_bool() - 1 t T TRUE true True 0 f F FALSE false False, as Go's strconv.ParseBool. */
int parse_bool(const char *text, bool *ret, struct error **err) MUST_CHECK;

/** parse_percent() - a whole number from 0 to 100. */
int parse_percent(const char *text, unsigned *ret, struct error **err) MUST_CHECK;

/**
 * parse_quantity() - a Kubernetes quantity in bytes: digits with an optional fraction and one of
 * n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent (e3, E3). Fractions of a byte are rounded up, as
 * resource.Quantity.Value() does (apimachinery pkg/api/resource).
 * @text: NUL-terminated
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (malformed, negative, more than 2^63-1).
 */
int parse_quantity(const char *text, uint64_t *ret_bytes, struct error **err) MUST_CHECK;

/**
 * parse_duration_ms() - a Go duration: 300ms, 1.5s, 2m, 1h30m, or 0; rounded up to whole milliseconds.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT.
 */
int parse_duration_ms(const char *text, uint64_t *ret_ms, struct error **err) MUST_CHECK;

/** format_bytes() - exact short size such as "512Mi", "3Gi" or "1234567" into @out. Return: @out. */
const char *format_bytes(uint64_t bytes, char out[static 24]);

/** format_bytes_rounded() - as format_bytes(), rounded down to one decimal digit, such as "63.9Gi".
 * Return: @out. */
const char *format_bytes_rounded(uint64_t bytes, char out[static 24]);
