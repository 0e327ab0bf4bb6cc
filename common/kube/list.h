/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list.h - reads all objects of a kind once, page by page, without watching them. Threads: the loop's.
 * Nothing blocks.
 */
#pragma once

#include "kube/client.h"
#include "kube/object.h"

struct kube_list;

struct kube_list_events {
	/* @object: one that the kind keeps, taken over. It may not free the list */
	void (*take)(void *user, void *object);
	/* called exactly once, unless the list is freed before. @error: borrowed; NULL: the list is complete,
	 * otherwise it names the kind, and the objects so far are some of it. It may free the list */
	void (*ended)(void *user, const struct error *error);
};

/** kube_list_new() - begin to read. @kind, @events: borrowed for the life of the list. Return: never NULL;
 * kube_list_free(). */
struct kube_list *kube_list_new(struct kube_client *client, const struct kube_kind *kind,
	const struct kube_list_events *events, void *user);

/** kube_list_free() - stop; before kube_client_free(). NULL is allowed. */
void kube_list_free(struct kube_list *l);
