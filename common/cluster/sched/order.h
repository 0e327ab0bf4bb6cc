/*
 * order.h - whether volumes find a place in whatever order they are made: pure.
 *
 * A node makes one volume after the other, in the order in which they are asked for, which nobody knows. It
 * takes the region whose largest piece is smallest among those that hold it, and there the smallest piece
 * (docs/decisions 003). Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdbool.h>

#include "cluster/sched/pack.h"

/* So many are tried in all orders, more of them the smallest and the largest first. */
#define ORDER_ALL_MAX 4

/** order_fits_any() - after the first @n_first items of @p, which are there in their order, all others find a
 * place in any order. @p: as of pack_items(), but in no order of size; its bins are left as they were. @work:
 * room for as many bins */
bool order_fits_any(const struct pack *p, size_t n_first, struct pack_bin *work);
