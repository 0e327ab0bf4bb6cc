/* SPDX-License-Identifier: Apache-2.0 */
/*
 * object.h - what all Kubernetes objects have in common, and times as the API writes them.
 *
 * Every decoded object is a struct whose first member is a struct kube_meta. Labels, annotations, the owner,
 * finalizers and the time of creation are kept only for kinds that ask for them. Threads: one owner at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json.h"
#include "base/span.h"
#include "kube/fields.h"

struct kube_meta {
	char *namespace; /* NULL: it has none */
	char *name;
	char *uid;
	char *resource_version;
	struct kube_pairs labels;
	struct kube_pairs annotations;
	char *owner_uid;   /* of the owner that controls it; NULL: it has none */
	char *created;     /* creation time by the clock of the API server, as kube_time_format() */
	bool deleting;     /* has a deletionTimestamp */
	bool is_packed;    /* by kube_object_pack() */
	char **finalizers; /* strv */
};

/* Which parts of metadata are read besides the names: for KUBE_META(). */
extern const struct kube_field kube_meta_names[];
extern const struct kube_field kube_meta_labels[];
extern const struct kube_field kube_meta_annotations[];
extern const struct kube_field kube_meta_annotations_and_owner[];
extern const struct kube_field kube_meta_finalizers[];
extern const struct kube_field kube_meta_labels_finalizers_and_time[];

/* The first field of the table of a kind, whose struct begins with a struct kube_meta. */
#define KUBE_META(what) KUBE_OBJECT("metadata", kube_meta_##what)

/* A kind of objects: their path in the API, which of them are requested, and how one is read. */
struct kube_kind {
	const char *path;                /* "/apis/storage.k8s.io/v1/storageclasses" */
	const char *what;                /* "storageclasses", for messages */
	const char *label_selector;      /* NULL: all */
	const char *field_selector;      /* NULL: all */
	bool metadata_only;              /* request PartialObjectMetadata */
	size_t size;                     /* of an object's struct, which begins with a struct kube_meta */
	const struct kube_field *fields; /* begins with KUBE_META() */
	void (*derive)(void *object);    /* called after an object was read; NULL: nothing is derived */
	void (*trim)(void *object);      /* frees what this user does not need; NULL: nothing */
	/* whether @object is kept; NULL: all are */
	bool (*keeps)(const void *user, const void *object);
	const void *keeps_user;
};

/** kube_meta_drop_labels() - release the labels of @m, so that a kind's derive() can look at them and objects
 * do not keep them. */
void kube_meta_drop_labels(struct kube_meta *m);

/** kube_meta_label() - get the value of the label @key, borrowed, or NULL. kube_meta_annotation() likewise.
 */
const char *kube_meta_label(const struct kube_meta *m, const char *key);
const char *kube_meta_annotation(const struct kube_meta *m, const char *key);

/** kube_meta_key() - make "namespace/name", or "name" where there is no namespace. Return: caller frees. */
char *kube_meta_key(const struct kube_meta *m);

/** kube_object_read() - read the next value as an object of @kind. Return: kube_object_free(), or NULL with
 * ERR_INVALID_ARGUMENT (malformed, or without a name). */
void *kube_object_read(const struct kube_kind *kind, struct json_reader *r, struct error **err) MUST_CHECK;

/** kube_object_decode() - kube_object_read() for a whole document, such as the reply to a GET. */
void *kube_object_decode(const struct kube_kind *kind, struct span json, struct error **err) MUST_CHECK;

/** kube_object_read_names() - read the names of an object that cannot be read, as far as they come before the
 * place from which on it is malformed or missing. @object: the key of the object in @json; NULL: it is @json.
 * @ret: zeroed; kube_names_done(). Return: whether the object may be skipped: it has a name, or it is
 * well-formed and has none. */
bool kube_object_read_names(struct span json, const char *object, struct kube_meta *ret);

/** kube_names_done() - release the names of @m. */
void kube_names_done(struct kube_meta *m);

/** kube_object_pack() - move @object (taken) into one block of memory, for those that are kept. Return: the
 * object, which must not be changed any more; kube_object_free(). */
void *kube_object_pack(const struct kube_kind *kind, void *object);

/** kube_object_free() - destroy @object of @kind; NULL is allowed. */
void kube_object_free(const struct kube_kind *kind, void *object);

/** kube_is_name() - whether @name is a valid name of an object: names from elsewhere are checked before they
 * become part of a path. Source: apimachinery pkg/util/validation, IsDNS1123Subdomain(). */
bool kube_is_name(const char *name);

#define KUBE_SECONDS_LEN 20

/** kube_time_format() - format @seconds since 1970 as Time, "2006-01-02T15:04:05Z". */
void kube_time_format(int64_t seconds, char out[static KUBE_SECONDS_LEN + 1]);

/** kube_time_valid() - whether @text has the form of kube_time_format(). strcmp() compares times in that
 * form. NULL is not valid. */
bool kube_time_valid(const char *text);

#define KUBE_TIME_LEN 27

/** kube_now_format() - format the current wall-clock time as MicroTime, "2006-01-02T15:04:05.000000Z". */
void kube_now_format(char out[static KUBE_TIME_LEN + 1]);
