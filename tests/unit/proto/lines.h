/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - sets of text lines, for comparing what is with what is written down.
 *
 * Errors abort the test. Nothing here blocks or is shared between threads.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>

struct lines {
	char **items;
	size_t count;
	size_t capacity;
};

/** lines_add() appends one formatted line. */
void lines_add(struct lines *lines, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/**
 * lines_add_table() appends the facts of the table at @path (format: tests/data/proto/README.md), each as
 * "PACKAGE HEADER" or "PACKAGE HEADER: ENTRY".
 */
void lines_add_table(struct lines *lines, const char *path);

/** lines_sort() brings the lines into the order that lines_compare() needs. */
void lines_sort(struct lines *lines);

/**
 * lines_compare() writes to @report each line that stands in only one of the two sorted sets, or more often
 * in one than in the other. Returns how many that are.
 */
size_t lines_compare(const struct lines *wanted, const struct lines *found, FILE *report);

/** lines_clear() frees all lines. */
void lines_clear(struct lines *lines);
