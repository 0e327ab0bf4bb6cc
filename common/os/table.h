/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - rows of text in columns as wide as they need to be. Threads: none.
 */
#pragma once

#include "base/buf.h"

struct table {
	char **cells; /* row by row; the first row is the heading */
	size_t n_cells;
	unsigned n_columns;
};

/** table_cell() - add a cell after the last one; control characters are replaced. */
void table_cell(struct table *t, const char *text);

/** table_bytes() and table_number() - add a cell with a size or a number. */
void table_bytes(struct table *t, uint64_t bytes);
void table_number(struct table *t, uint64_t n);

/** table_write() - append all rows to @out. */
void table_write(const struct table *t, struct buf *out);

/** table_done() - release what @t owns; safe on a zeroed one. */
void table_done(struct table *t);
