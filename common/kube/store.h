/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the objects of an informer, by key. Threads: one owner at a time.
 */
#pragma once

#include "base/name_index.h"
#include "kube/informer.h"

struct kube_stored {
	struct name_link link; /* its name is the key */
	struct kube_stored *next;
	struct kube_stored **place; /* the pointer that points to this entry */
	void *object;
	bool seen;  /* in the list that is being read */
	char key[]; /* where it is not the name of the object */
};

struct kube_store {
	const struct kube_kind *kind;
	struct name_index index;
	struct kube_stored *first;
};

/** kube_store_init() - make @s empty. @kind: borrowed. kube_store_done() - release the content. */
void kube_store_init(struct kube_store *s, const struct kube_kind *kind);
void kube_store_done(struct kube_store *s);

/** kube_store_get() - find the object with @key, or NULL. */
struct kube_stored *kube_store_get(const struct kube_store *s, const char *key);

/** kube_store_put() - add @object (taken over), whose kube_meta_key() is @key, or replace the one with @key.
 * Return: the previous one, which the caller frees; NULL: there was none. */
void *kube_store_put(struct kube_store *s, const char *key, void *object);

/** kube_store_remove() - take @e out and free it. Return: its object, the caller's to free. */
void *kube_store_remove(struct kube_store *s, struct kube_stored *e);
