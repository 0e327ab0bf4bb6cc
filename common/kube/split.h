/* SPDX-License-Identifier: Apache-2.0 */
/*
 * split.h - replies of the API server in pieces, as they come: a watch by lines, a list by its items, so that
 * no reply has to be held. Threads: one owner at a time.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

/* etcd takes 1.5 MiB in one request; more than that is no object. */
#define KUBE_MAX_OBJECT_BYTES (4u << 20)
/* kind, resourceVersion and the token that continues a list */
#define KUBE_MAX_ENVELOPE_BYTES (64u << 10)

/** Called with each piece, borrowed. Return: false to stop. */
typedef bool kube_piece_fn(void *user, struct span piece);

struct kube_lines {
	struct buf line; /* the beginning of one that is not complete */
};

#define KUBE_LINES ((struct kube_lines){BUF_INIT(KUBE_MAX_OBJECT_BYTES)})

/** kube_lines_done() - release @l. */
void kube_lines_done(struct kube_lines *l);

/** kube_lines_feed() - call @fn for each line that is complete, without its end; empty ones are left out.
 * Return: false when @fn did, or when a line is too long. */
bool kube_lines_feed(struct kube_lines *l, struct span data, kube_piece_fn *fn, void *user);

struct kube_items {
	struct buf envelope; /* the list without what is in "items" */
	struct buf item;
	unsigned depth;
	bool in_string;
	bool escaped;
	bool in_items;
	bool in_item;
	struct buf key; /* the last string at depth 1 */
	bool is_items;  /* it was the key "items" */
};

#define KUBE_ITEMS                                                                                           \
	((struct kube_items){.envelope = BUF_INIT(KUBE_MAX_ENVELOPE_BYTES),                                  \
		.item = BUF_INIT(KUBE_MAX_OBJECT_BYTES),                                                     \
		.key = BUF_INIT(16)})

/** kube_items_done() - release @i. */
void kube_items_done(struct kube_items *i);

/** kube_items_feed() - call @fn for each object in "items" that is complete. Only brackets and strings are
 * looked at: whoever reads item or envelope finds out whether it is JSON. Return: false when @fn did, or when
 * something is too long. */
bool kube_items_feed(struct kube_items *i, struct span data, kube_piece_fn *fn, void *user);
