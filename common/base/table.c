/* SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

#define GAP 2

void table_cell(struct table *t, const char *text)
{
	CLEANUP(free_charp) char *clean = x_strdup(str_empty(text) ? "-" : text);

	str_clean(clean);
	strv_add(&t->cells, clean);
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

static size_t width_of(const struct table *t, unsigned column)
{
	size_t width = 0;

	for (size_t i = column; i < strv_len(t->cells); i += t->n_columns) {
		size_t n = strlen(t->cells[i]);
		width = n > width ? n : width;
	}
	return width;
}

void table_write(const struct table *t, struct buf *out)
{
	size_t n = strv_len(t->cells);

	for (size_t i = 0; i < n; i++) {
		unsigned column = (unsigned)(i % t->n_columns);

		buf_adds(out, t->cells[i]);
		if (column + 1 == t->n_columns) {
			buf_addc(out, '\n');
			continue;
		}
		for (size_t k = strlen(t->cells[i]); k < width_of(t, column) + GAP; k++)
			buf_addc(out, ' ');
	}
}

void table_done(struct table *t)
{
	strv_free(t->cells);
	*t = (struct table){0};
}
