/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fields.h - reads, packs and releases objects of the Kubernetes API by tables of their fields.
 *
 * A table says which members of a JSON object go where in a struct; members that it does not name are
 * skipped. A member of another type reads as absent, as json_members.h describes. Threads: one owner at a
 * time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json/json.h"

/* Pairs of strings in one block: key NUL value NUL key NUL ... NUL. NULL has none. */
struct kube_pairs {
	char *block;
};

enum kube_field_type {
	KUBE_TEXT,     /* char *, of a string or a number */
	KUBE_TEXTS,    /* strv, of an array of strings */
	KUBE_PAIRS,    /* struct kube_pairs, of an object of strings */
	KUBE_QUANTITY, /* uint64_t, in bytes */
	KUBE_FLAG,     /* bool */
	KUBE_SAYS,     /* bool: whether the text is equal to .says */
	KUBE_NOT_NULL, /* bool: whether the member exists and is not null */
	KUBE_MEMBERS,  /* an object, whose members go into the same struct, by .fields */
	KUBE_ARRAY,    /* an array of objects, each with a struct of its own, by .fields */
	KUBE_EACH,     /* an array of objects, all of whose members go into the same struct, by .fields */
};

struct kube_field {
	const char *name; /* NULL ends the table; "": not read, but released with the others */
	enum kube_field_type type;
	size_t offset; /* in the struct; for KUBE_ARRAY that of the pointer to the items, 0: items are not
			  kept */
	/* offset of a bool, which gets whether the member exists, for KUBE_PAIRS, KUBE_QUANTITY and
	 * KUBE_MEMBERS; of a size_t, which gets the number of items, for KUBE_ARRAY; 0: not stored, so
	 * neither may be the first member of a struct */
	size_t extent;
	const char *says;
	const struct kube_field *fields;
	size_t item_size;
	/* Called for each item that was read; may move parts out of it. Return: whether the item is kept.
	 * NULL: all are */
	bool (*takes)(void *object, void *item);
};

/* The field @name of @struct_, in @member of it; further members of struct kube_field may follow. */
#define KUBE_FIELD(name_, type_, struct_, member, ...)                                                       \
	{.name = name_, .type = type_, .offset = offsetof(struct_, member), __VA_ARGS__}
#define KUBE_OBJECT(name_, fields_) {.name = name_, .type = KUBE_MEMBERS, .fields = fields_}
#define KUBE_FIELDS_END             {.name = NULL}

/* The largest number of items of an array that are kept. Objects of the kinds that are read have fewer. */
#define KUBE_MAX_ITEMS 1024

/** kube_fields_read() - read the next value, an object, into @object, which is zeroed. Afterwards, also after
 * a failure, the caller releases it with kube_fields_done(). Return: 0, or -1 with ERR_INVALID_ARGUMENT
 * (malformed, or no object). */
int kube_fields_read(
	struct json_reader *r, const struct kube_field *fields, void *object, struct error **err) MUST_CHECK;

/** kube_fields_done() - release the values of the fields, and zero them. */
void kube_fields_done(const struct kube_field *fields, void *object);

/** kube_fields_pack() - copy @object, a struct of @size bytes, together with all that its fields point to,
 * into one block of memory. Small blocks for each text would take half as much again. Return: the copy, which
 * must not be changed; the caller frees it with free(). @object stays as it is. */
void *kube_fields_pack(const struct kube_field *fields, const void *object, size_t size);

/** kube_pairs_get() - get the value of @key, borrowed, or NULL. */
const char *kube_pairs_get(const struct kube_pairs *p, const char *key);
