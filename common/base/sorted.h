/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorted.h - binary search in a sorted array, which also says where something new belongs. bsearch(3) does
 * not. Threads: safe; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Return: less than, equal to or greater than 0 when @element comes before @key, is it, or comes after it. */
typedef int (*sorted_compare_fn)(const void *element, const void *key);

/**
 * sorted_find() - search for @key among @n sorted elements of @size bytes without duplicates.
 * @base:      may be NULL when @n is 0
 * @ret_found: whether it was found
 *
 * In the header, so that @compare is inlined. Return: its index, or the one at which it would have to be
 * inserted.
 */
static inline size_t sorted_find(
	const void *base, size_t n, size_t size, const void *key, sorted_compare_fn compare, bool *ret_found)
{
	size_t from = 0;
	size_t to = n;

	*ret_found = false;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		int rv = compare((const char *)base + middle * size, key);

		if (rv == 0) {
			*ret_found = true;
			return middle;
		}
		if (rv < 0)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}
