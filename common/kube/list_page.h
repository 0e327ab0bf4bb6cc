/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list_page.h - the pages of a list: their paths, and their objects, which are read as the reply arrives.
 *
 * Pages have 200 objects. All pages of a list are of one state of the server, whose version is in the first
 * one. Threads: one owner at a time. Source: Kubernetes API concepts, "Retrieving large results sets in
 * chunks".
 */
#pragma once

#include "base/buf.h"
#include "kube/object.h"
#include "kube/reply_splitter.h"

#define KUBE_PAGE_MS 60000 /* in which a page has to be complete */

struct kube_list_page {
	const struct kube_kind *kind;
	/* @object: taken over */
	void (*take)(void *user, void *object);
	/* @names: of an object that cannot be read. NULL: such an object is an error, for lists where what is
	 * absent decides */
	void (*skip)(void *user, const struct kube_meta *names, const struct error *why);
	void *user;
	struct kube_list_splitter items;
};

/** kube_list_page_init() - nothing has arrived. All parameters are borrowed. The caller may set @p->skip. */
void kube_list_page_init(struct kube_list_page *p, const struct kube_kind *kind,
	void (*take)(void *user, void *object), void *user);

/** kube_list_page_reset() - release what has arrived, for the next page. */
void kube_list_page_reset(struct kube_list_page *p);

/** kube_list_page_feed() - bytes of the reply: take() is called for each object that is complete. Return: 0,
 * or -1 with ERR_INVALID_ARGUMENT (an object is malformed or too large, and is not skipped). */
int kube_list_page_feed(struct kube_list_page *p, struct span data, struct error **err) MUST_CHECK;

/**
 * kube_list_page_end() - the reply is complete.
 * @ret_version: resourceVersion of the list; caller frees
 * @ret_next:    token of the next page; NULL: this was the last one; caller frees
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (malformed, or without a version).
 */
int kube_list_page_end(
	const struct kube_list_page *p, char **ret_version, char **ret_next, struct error **err) MUST_CHECK;

/** kube_list_page_path() - append the path of a page of @kind. @token: of the page; NULL: the first one */
void kube_list_page_path(const struct kube_kind *kind, const char *token, struct buf *path);

/** kube_list_page_accept() - get the value of Accept for lists of @kind; NULL: the default. */
const char *kube_list_page_accept(const struct kube_kind *kind);

/** kube_query_begin() - append the path of all objects of @kind, "?", and the selectors of @kind. */
void kube_query_begin(const struct kube_kind *kind, struct buf *path);

/** kube_query_value() - append @text, escaped, as the value of a parameter. */
void kube_query_value(struct buf *path, const char *text);

/* The rest of the value of Accept in requests for the metadata of objects. */
#define KUBE_METADATA_ACCEPT "g=meta.k8s.io;v=v1,application/json"
