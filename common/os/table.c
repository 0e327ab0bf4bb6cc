/* SPDX-License-Identifier: Apache-2.0 */
#include "os/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

#define GAP 2

void table_cell(struct table *t, const char *text)
{
	char *clean = x_strdup(str_empty(text) ? "-" : text);

	str_clean(clean);
	t->cells = x_realloc(t->cells, t->n_cells + 1, sizeof(char *));
	t->cells[t->n_cells++] = clean;
}

void table_bytes(struct table *t, uint64_t bytes)
{
	char text[24];

	table_cell(t, format_bytes(bytes, text));
}

void table_number(struct table *t, uint64_t n)
{
	CLEANUP(free_charp) char *text = x_asprintf("%ju", (uintmax_t)n);

	table_cell(t, text);
}

static size_t *widths_of(const struct table *t)
{
	size_t *widths = x_calloc(t->n_columns, sizeof(*widths));

	for (size_t i = 0; i < t->n_cells; i++) {
		size_t n = strlen(t->cells[i]), *width = &widths[i % t->n_columns];
		*width = n > *width ? n : *width;
	}
	return widths;
}

void table_write(const struct table *t, struct buf *out)
{
	size_t *widths = widths_of(t);

	for (size_t i = 0; i < t->n_cells; i++) {
		size_t column = i % t->n_columns;

		buf_adds(out, t->cells[i]);
		if (column + 1 == t->n_columns) {
			buf_addc(out, '\n');
			continue;
		}
		for (size_t k = strlen(t->cells[i]); k < widths[column] + GAP; k++)
			buf_addc(out, ' ');
	}
	free(widths);
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){0};
}
