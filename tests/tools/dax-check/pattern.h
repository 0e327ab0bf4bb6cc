/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.h - bytes that follow from a seed and their offset, so that any lost, moved or stale page shows.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** pattern_fill() - write the pattern of @seed for @offset onwards to @out. @offset, @n: multiples of 8. */
void pattern_fill(uint32_t seed, uint64_t offset, void *out, size_t n);

/** pattern_check() - compare @n bytes at @in with the pattern. Return: 0, or -1 with ERR_INTERNAL that names
 * the first offset that differs. */
int pattern_check(uint32_t seed, uint64_t offset, const void *in, size_t n, struct error **err) MUST_CHECK;
