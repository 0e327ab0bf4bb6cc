/* SPDX-License-Identifier: Apache-2.0 */
/* strmap_equal.h - what tests and fuzzers ask of two string maps. */
#pragma once

#include "base/str.h"
#include "base/strmap.h"

/** strmap_equal() - same keys with same values. */
static inline bool strmap_equal(const struct strmap *a, const struct strmap *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (!str_eq(a->entries[i].key, b->entries[i].key) ||
			!str_eq(a->entries[i].value, b->entries[i].value))
			return false;
	return true;
}
