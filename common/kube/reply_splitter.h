/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply_splitter.h - splits replies of the API server as they arrive: a watch into lines, a list into its
 * items, so that no reply has to be stored as a whole. Threads: one owner at a time.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

/* etcd takes 1.5 MiB in one request, of which each byte takes at most six in JSON ("\u003c"): no object of
 * the API is larger. */
#define KUBE_MAX_OBJECT_BYTES (12u << 20)
/* The beginning of a larger piece, which has the names: metadata comes first, and these are first in it. */
#define KUBE_NAMES_BYTES (64u << 10)
/* kind, resourceVersion and the token that continues a list */
#define KUBE_MAX_ENVELOPE_BYTES (64u << 10)

/** Called with each piece, borrowed; of a piece larger than KUBE_MAX_OBJECT_BYTES with its beginning.
 * Return: false to stop. */
typedef bool kube_piece_fn(void *user, struct span piece);

struct kube_watch_splitter {
	struct buf line; /* the beginning of one that is not complete */
};

#define KUBE_WATCH_SPLITTER ((struct kube_watch_splitter){BUF_INIT(KUBE_MAX_OBJECT_BYTES)})

/** kube_watch_splitter_done() - release @l. */
void kube_watch_splitter_done(struct kube_watch_splitter *l);

/** kube_watch_splitter_feed() - call @fn for each line that is complete, without its end; empty ones are left
 * out. Return: false when @fn did. */
bool kube_watch_splitter_feed(struct kube_watch_splitter *l, struct span data, kube_piece_fn *fn, void *user);

struct kube_list_splitter {
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

#define KUBE_LIST_SPLITTER                                                                                   \
	((struct kube_list_splitter){.envelope = BUF_INIT(KUBE_MAX_ENVELOPE_BYTES),                          \
		.item = BUF_INIT(KUBE_MAX_OBJECT_BYTES),                                                     \
		.key = BUF_INIT(16)})

/** kube_list_splitter_done() - release @i. */
void kube_list_splitter_done(struct kube_list_splitter *i);

/** kube_list_splitter_feed() - call @fn for each object in "items" that is complete. Only brackets and
 * strings are looked at: whether it is JSON is checked by the reader of item or envelope. Return: false when
 * @fn did, or when the envelope is too long. */
bool kube_list_splitter_feed(struct kube_list_splitter *i, struct span data, kube_piece_fn *fn, void *user);
