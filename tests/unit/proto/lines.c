/* SPDX-License-Identifier: Apache-2.0 */
#include "lines.h"

#include <check.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

void lines_add(struct lines *lines, const char *fmt, ...)
{
	va_list ap;
	char *line;
	int len;

	if (lines->count == lines->capacity) {
		size_t capacity = lines->capacity ? 2 * lines->capacity : 64;
		char **items = reallocarray(lines->items, capacity, sizeof(*items));

		ck_assert_ptr_nonnull(items);
		lines->items = items;
		lines->capacity = capacity;
	}
	va_start(ap, fmt);
	len = vasprintf(&line, fmt, ap);
	va_end(ap);
	ck_assert_int_ge(len, 0);
	lines->items[lines->count++] = line;
}

static void copy_name(char *name, size_t size, const char *from)
{
	ck_assert_uint_lt(strlen(from), size);
	memcpy(name, from, strlen(from) + 1);
}

void lines_add_table(struct lines *lines, const char *path)
{
	CLEANUP(file_closep) FILE *file = fopen(path, "re");
	CLEANUP(free_charp) char *line = NULL;
	char package[64] = "", header[128] = "";
	size_t size = 0;
	ssize_t len;

	ck_assert_msg(file, "cannot open %s", path);
	while ((len = getline(&line, &size, file)) > 0) {
		ck_assert_msg(line[len - 1] == '\n' && strlen(line) == (size_t)len, "%s: %s", path, line);
		line[len - 1] = '\0';
		if (len == 1 || line[0] == '#')
			continue;
		if (strncmp(line, "package ", strlen("package ")) == 0) {
			copy_name(package, sizeof(package), line + strlen("package "));
			header[0] = '\0';
			continue;
		}
		ck_assert_msg(*package, "%s: line before the first package: %s", path, line);
		if (strncmp(line, "  ", 2) == 0) {
			ck_assert_msg(*header, "%s: entry without a header: %s", path, line);
			lines_add(lines, "%s %s: %s", package, header, line + 2);
		} else {
			copy_name(header, sizeof(header), line);
			lines_add(lines, "%s %s", package, header);
		}
	}
	ck_assert_msg(!ferror(file), "cannot read %s", path);
}

static int compare_items(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

void lines_sort(struct lines *lines)
{
	qsort(lines->items, lines->count, sizeof(*lines->items), compare_items);
}

size_t lines_compare(const struct lines *wanted, const struct lines *found, FILE *report)
{
	size_t differences = 0, w = 0, f = 0;

	while (w < wanted->count || f < found->count) {
		int order;

		if (w == wanted->count)
			order = 1;
		else if (f == found->count)
			order = -1;
		else
			order = strcmp(wanted->items[w], found->items[f]);
		if (order < 0)
			fprintf(report, "only in the table: %s\n", wanted->items[w++]);
		else if (order > 0)
			fprintf(report, "not in the table: %s\n", found->items[f++]);
		else
			w++, f++;
		differences += order != 0;
	}
	return differences;
}

void lines_clear(struct lines *lines)
{
	for (size_t i = 0; i < lines->count; i++)
		free(lines->items[i]);
	free(lines->items);
	*lines = (struct lines){0};
}
