/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h - what all Kubernetes objects have in common, and times as the API writes them.
 *
 * Every decoded object is a struct whose first member is a struct kube_meta. Labels and annotations are kept
 * only where they are asked for, in one block of memory. Threads: one owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json.h"
#include "kube/read.h"

/* Pairs of strings in one block: key NUL value NUL key NUL ... NUL. NULL has none. */
struct kube_pairs {
	char *block;
};

struct kube_meta {
	char *namespace; /* NULL: has none */
	char *name;
	char *uid;
	char *resource_version;
	struct kube_pairs labels;
	struct kube_pairs annotations;
	char *owner_uid; /* of the owner that controls it; NULL: has none */
	bool deleting;   /* has a deletionTimestamp */
};

/* What kube_meta_read() keeps besides the names. */
enum kube_keep { KUBE_KEEP_NONE = 0, KUBE_KEEP_LABELS = 1, KUBE_KEEP_ANNOTATIONS = 2, KUBE_KEEP_OWNER = 4 };

/** kube_pairs_get() - the value of @key, borrowed, or NULL. */
const char *kube_pairs_get(const struct kube_pairs *p, const char *key);

/** kube_pairs_read() - an object of strings, or null; replaces *@p. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int kube_pairs_read(struct json_reader *r, struct kube_pairs *p, struct error **err) MUST_CHECK;

/** kube_meta_label() - the value of the label @key, borrowed, or NULL. kube_meta_annotation() likewise. */
const char *kube_meta_label(const struct kube_meta *m, const char *key);
const char *kube_meta_annotation(const struct kube_meta *m, const char *key);

/** kube_meta_read() - the value of "metadata" into @m, which is zeroed; also after a failure the caller's to
 * release. @keep: enum kube_keep, or-ed. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int kube_meta_read(struct json_reader *r, struct kube_meta *m, unsigned keep, struct error **err) MUST_CHECK;

/** kube_meta_done() - release the content of @m. */
void kube_meta_done(struct kube_meta *m);

/** kube_meta_key() - "namespace/name", or "name" where there is no namespace. Return: caller frees. */
char *kube_meta_key(const struct kube_meta *m);

/**
 * kube_object_read() - one object, whose metadata is read here and the rest by @member.
 * @r:      before the object
 * @m:      zeroed; also after a failure the caller's to release
 * @member: as of kube_read_members(), for every key but "metadata"; NULL: nothing else is of interest
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT (malformed, or without a name).
 */
int kube_object_read(struct json_reader *r, struct kube_meta *m, unsigned keep, kube_member_fn *member,
	void *object, struct error **err) MUST_CHECK;

/** kube_is_name() - whether an object can be called @name: what others wrote becomes part of a path only
 * then. Source: apimachinery pkg/util/validation, IsDNS1123Subdomain(). */
bool kube_is_name(const char *name);

#define KUBE_TIME_LEN 27

/** kube_now_format() - the wall clock as MicroTime, "2006-01-02T15:04:05.000000Z". */
void kube_now_format(char out[static KUBE_TIME_LEN + 1]);
