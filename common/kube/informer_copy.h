/* SPDX-License-Identifier: Apache-2.0 */
/*
 * informer_copy.h - the copy of objects that an informer keeps: pages of a list and events of a watch are
 * read as they arrive, the objects in them replace those of the copy, and each change is reported.
 *
 * informer.c decides which request comes next, by what is known here: @version and @next_page, and after a
 * request its @fault. Threads: the loop's. Nothing blocks.
 */
#pragma once

#include "kube/informer.h"
#include "kube/list_page.h"
#include "kube/store.h"
#include "pacing/bucket.h"

struct informer_copy {
	const struct kube_kind *kind;
	const struct informer_events *events;
	void *user; /* of @events */
	struct kube_store store;
	char *version;      /* resourceVersion to watch from; NULL: a list is due */
	char *list_version; /* of the list that runs */
	char *next_page;    /* token of the next page of it; NULL: begin */
	struct kube_list_page page;
	struct kube_watch_splitter lines;
	bool is_synced;           /* a list was complete */
	uint64_t n_skipped;       /* objects that could not be read */
	struct bucket skip_lines; /* how many of them are logged */

	/* of the request that runs */
	struct error *fault; /* why its reply was given up */
	bool is_unsure;      /* it may have reported a change that was not understood */
	bool got_line;
};

/** informer_copy_init() - empty. @kind, @events: borrowed. informer_copy_done(). */
void informer_copy_init(struct informer_copy *c, const struct kube_kind *kind,
	const struct informer_events *events, void *user);

/** informer_copy_done() - release what @c owns. */
void informer_copy_done(struct informer_copy *c);

/** informer_copy_begin_request() - a page or a watch is requested: nothing is known of its reply yet. */
void informer_copy_begin_request(struct informer_copy *c);

/** informer_copy_end_request() - the reply is over, perhaps early: what is incomplete of it is dropped. */
void informer_copy_end_request(struct informer_copy *c);

/** informer_copy_begin_list() - the first page of a list is requested: objects that no page of it has are
 * gone at its end. */
void informer_copy_begin_list(struct informer_copy *c);

/** informer_copy_take_page() - bytes of a page. Return: false with @c->fault set when they are malformed. */
bool informer_copy_take_page(struct informer_copy *c, struct span data);

/** informer_copy_end_page() - the page is complete: @c->next_page or @c->version are set. Return: 0, or -1
 * with ERR_INVALID_ARGUMENT. */
int informer_copy_end_page(struct informer_copy *c, struct error **err) MUST_CHECK;

/** informer_copy_take_watch() - bytes of a watch. Return: false with @c->fault set when it is over. */
bool informer_copy_take_watch(struct informer_copy *c, struct span data);

/** informer_copy_forget_versions() - a list is due, from its first page; the objects stay until it is
 * complete. */
void informer_copy_forget_versions(struct informer_copy *c);
