/* SPDX-License-Identifier: Apache-2.0 */
/*
 * informer_private.h - what informer.c (which request comes next) and informer_read.c (what replies say)
 * share. Threads: the loop's.
 */
#pragma once

#include "kube/informer.h"
#include "kube/split.h"
#include "kube/store.h"
#include "pacing/backoff.h"

struct informer {
	struct kube_client *client;
	const struct kube_kind *kind;
	const struct informer_events *events;
	void *user;
	struct kube_store store;
	struct loop_timer *timer; /* until the next request */
	struct kube_request *request;
	struct backoff backoff;
	char *told; /* the failure that the log has; NULL: all is well */

	char *version;      /* resourceVersion to watch from; NULL: a list is due */
	char *list_version; /* of the list that runs */
	char *next_page;    /* token of the next page of it; NULL: begin */
	struct kube_items items;
	struct kube_lines lines;
	bool is_synced;
	uint64_t failing_ns; /* since when requests fail; 0: they do not */

	/* of the request that runs */
	struct error *fault; /* why its reply was given up */
	bool is_unsure;      /* it may have reported a change that was not understood */
	bool got_line;
};

/** informer_take_page() - bytes of a page. Return: false with @i->fault set when they are malformed. */
bool informer_take_page(void *user, struct span data);

/** informer_end_page() - the page is complete: @i->next_page or @i->version are set. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int informer_end_page(struct informer *i, struct error **err) MUST_CHECK;

/** informer_take_watch() - bytes of a watch. Return: false with @i->fault set when it is over. */
bool informer_take_watch(void *user, struct span data);
