/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/fields.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/json_members.h"

/* Limit for the labels or annotations of an object, well above the 1.5 MiB that etcd accepts in one request
 * by default. */
#define MAX_PAIRS_BYTES (4u << 20)

/* The pair behind the one with @key, the first for NULL. */
static const char *next_pair(const struct kube_pairs *p, const char *key, const char **ret_value)
{
	const char *at = p->block;

	if (!at)
		return NULL;
	if (key) {
		at = key + strlen(key) + 1;
		at += strlen(at) + 1;
	}
	if (!*at)
		return NULL;
	*ret_value = at + strlen(at) + 1;
	return at;
}

const char *kube_pairs_get(const struct kube_pairs *p, const char *key)
{
	const char *value;

	for (const char *k = next_pair(p, NULL, &value); k; k = next_pair(p, k, &value)) {
		if (str_eq(k, key))
			return value;
	}
	return NULL;
}

/* An empty key, which the API does not allow, would end the block. */
static int add_pair(void *user, const char *key, struct json_reader *r, struct error **err)
{
	CLEANUP(free_charp) char *copy = x_strdup(key);
	CLEANUP(free_charp) char *value = NULL;
	struct buf *block = user;

	if (kube_read_text(r, &value, err) < 0)
		return -1;
	if (*copy && value) {
		buf_add(block, copy, strlen(copy) + 1);
		buf_add(block, value, strlen(value) + 1);
	}
	return 0;
}

static int read_pairs(struct json_reader *r, struct kube_pairs *p, bool *ret_has, struct error **err)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(MAX_PAIRS_BYTES);
	struct json_event ev;

	if (json_next_any(r, &ev, err) < 0)
		return -1;
	*ret_has = ev.type == JSON_OBJECT;
	if (!*ret_has)
		return json_skip_odd(r, &ev, err);
	if (kube_read_members(r, add_pair, &block, err) < 0 || buf_check(&block, "labels", err) < 0)
		return -1;
	free(TAKE_PTR(p->block));
	if (block.len > 0) {
		p->block = x_malloc(block.len + 1);
		memcpy(p->block, block.data, block.len);
		p->block[block.len] = '\0';
	}
	return 0;
}

static void *at(void *object, size_t offset)
{
	return (char *)object + offset;
}

struct reading {
	const struct kube_field *fields;
	void *object;
};

static int read_by_table(void *user, const char *key, struct json_reader *r, struct error **err);

static int read_members(struct json_reader *r, const struct kube_field *f, void *object, struct error **err)
{
	struct reading reading = {f->fields, object};
	struct json_event ev;

	if (json_next_any(r, &ev, err) < 0)
		return -1;
	if (f->extent)
		*(bool *)at(object, f->extent) = ev.type == JSON_OBJECT;
	if (ev.type != JSON_OBJECT)
		return json_skip_odd(r, &ev, err);
	return kube_read_members(r, read_by_table, &reading, err);
}

/* The pointer has a type of its own, which is not known here. */
static void *pointer_at(const void *object, size_t offset)
{
	void *pointer;

	memcpy(&pointer, (const char *)object + offset, sizeof(pointer));
	return pointer;
}

static void keep_item(const struct kube_field *f, void *object, const void *item)
{
	size_t *n = at(object, f->extent);
	char *items = pointer_at(object, f->offset);

	items = x_realloc(items, *n + 1, f->item_size);
	memcpy(items + *n * f->item_size, item, f->item_size);
	memcpy(at(object, f->offset), &items, sizeof(items));
	(*n)++;
}

static bool has_room(const struct kube_field *f, void *object)
{
	return f->offset && *(size_t *)at(object, f->extent) < KUBE_MAX_ITEMS;
}

static int read_item(void *user, struct json_reader *r, struct error **err)
{
	const struct reading *array = user;
	const struct kube_field *f = array->fields;
	CLEANUP(free_charp) char *item = x_calloc(1, f->item_size);
	struct reading reading = {f->fields, item};
	int rv = kube_read_members(r, read_by_table, &reading, err);

	if (rv == 0 && (!f->takes || f->takes(array->object, item)) && has_room(f, array->object))
		keep_item(f, array->object, item);
	else
		kube_fields_done(f->fields, item);
	return rv;
}

static int read_each(void *user, struct json_reader *r, struct error **err)
{
	const struct reading *array = user;
	struct reading reading = {array->fields->fields, array->object};

	return kube_read_members(r, read_by_table, &reading, err);
}

static int read_says(struct json_reader *r, const char *says, bool *ret, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;

	if (kube_read_text(r, &text, err) < 0)
		return -1;
	*ret = str_eq(text, says);
	return 0;
}

static int read_not_null(struct json_reader *r, bool *ret, struct error **err)
{
	struct json_event ev;

	if (json_next_any(r, &ev, err) < 0)
		return -1;
	*ret = ev.type != JSON_NULL;
	return json_skip(r, &ev, err);
}

static int read_field(struct json_reader *r, const struct kube_field *f, void *object, struct error **err)
{
	struct reading array = {f, object};
	void *to = at(object, f->offset);
	bool *ret_has = f->extent ? at(object, f->extent) : &(bool){false};

	switch (f->type) {
	case KUBE_TEXT:
		return kube_read_text(r, to, err);
	case KUBE_TEXTS:
		return kube_read_texts(r, to, err);
	case KUBE_PAIRS:
		return read_pairs(r, to, ret_has, err);
	case KUBE_QUANTITY:
		return kube_read_quantity(r, to, ret_has, err);
	case KUBE_FLAG:
		return kube_read_flag(r, to, err);
	case KUBE_SAYS:
		return read_says(r, f->says, to, err);
	case KUBE_NOT_NULL:
		return read_not_null(r, to, err);
	case KUBE_MEMBERS:
		return read_members(r, f, object, err);
	case KUBE_ARRAY:
		return kube_read_array(r, read_item, &array, err);
	case KUBE_EACH:
		return kube_read_array(r, read_each, &array, err);
	}
	abort();
}

static int read_by_table(void *user, const char *key, struct json_reader *r, struct error **err)
{
	const struct reading *reading = user;

	if (*key == '\0')
		return json_skip_value(r, err);
	for (const struct kube_field *f = reading->fields; f->name; f++) {
		if (str_eq(f->name, key))
			return read_field(r, f, reading->object, err);
	}
	return json_skip_value(r, err);
}

int kube_fields_read(struct json_reader *r, const struct kube_field *fields, void *object, struct error **err)
{
	struct reading reading = {fields, object};
	struct json_event ev;

	if (json_next(r, &ev, err) < 0)
		return -1;
	if (ev.type != JSON_OBJECT)
		return err_set(err, ERR_INVALID_ARGUMENT, "expected an object, found another type");
	return kube_read_members(r, read_by_table, &reading, err);
}

static void items_done(const struct kube_field *f, void *object)
{
	size_t *n = at(object, f->extent);
	char *items = pointer_at(object, f->offset);

	for (size_t i = 0; i < *n; i++)
		kube_fields_done(f->fields, items + i * f->item_size);
	free(items);
	memset(at(object, f->offset), 0, sizeof(items));
	*n = 0;
}

void kube_fields_done(const struct kube_field *fields, void *object)
{
	for (const struct kube_field *f = fields; f->name; f++) {
		char **held = at(object, f->offset);

		if (f->type == KUBE_TEXT || f->type == KUBE_PAIRS)
			free(TAKE_PTR(*held));
		else if (f->type == KUBE_TEXTS)
			strv_free(TAKE_PTR(*(char ***)held));
		else if (f->type == KUBE_MEMBERS || f->type == KUBE_EACH)
			kube_fields_done(f->fields, object);
		else if (f->type == KUBE_ARRAY && f->offset)
			items_done(f, object);
	}
}

/* Parts of an object, one behind the other. */
struct packing {
	char *block; /* NULL: only the size is computed */
	size_t used;
};

/* Return: the copy; NULL: only the size is computed, or there are no bytes. */
static void *pack_bytes(struct packing *p, const void *from, size_t n, size_t alignment)
{
	size_t start = (p->used + alignment - 1) / alignment * alignment;

	if (n == 0)
		return NULL;
	p->used = start + n;
	return p->block ? memcpy(p->block + start, from, n) : NULL;
}

static void *pack_text(struct packing *p, const char *text)
{
	return text ? pack_bytes(p, text, strlen(text) + 1, 1) : NULL;
}

static void *pack_texts(struct packing *p, char *const *texts)
{
	size_t n = strv_len(texts);
	char **to;

	if (!texts)
		return NULL;
	to = pack_bytes(p, texts, (n + 1) * sizeof(*texts), alignof(char *));
	for (size_t i = 0; i < n; i++) {
		char *text = pack_text(p, texts[i]);

		if (to)
			to[i] = text;
	}
	return to;
}

static void *pack_pairs(struct packing *p, char *block)
{
	const struct kube_pairs pairs = {.block = block};
	const char *value = block;
	const char *end = block;

	for (const char *k = next_pair(&pairs, NULL, &value); k; k = next_pair(&pairs, k, &value))
		end = value + strlen(value) + 1;
	return block ? pack_bytes(p, block, (size_t)(end - block) + 1, 1) : NULL;
}

static void pack_members(struct packing *p, const struct kube_field *fields, const void *from, void *to);

static void *pack_items(struct packing *p, const struct kube_field *f, const void *object)
{
	size_t n = *(const size_t *)(const void *)((const char *)object + f->extent);
	const char *items = pointer_at(object, f->offset);
	char *to = pack_bytes(p, items, n * f->item_size, alignof(max_align_t));

	for (size_t i = 0; i < n; i++)
		pack_members(p, f->fields, items + i * f->item_size, to ? to + i * f->item_size : NULL);
	return to;
}

/* Packs the data that the fields of @from point to. @to: a copy of @from, which gets pointers to the packed
 * data; NULL: only the size is computed */
static void pack_members(struct packing *p, const struct kube_field *fields, const void *from, void *to)
{
	for (const struct kube_field *f = fields; f->name; f++) {
		void *copy = NULL;

		if (f->type == KUBE_TEXT)
			copy = pack_text(p, pointer_at(from, f->offset));
		else if (f->type == KUBE_PAIRS)
			copy = pack_pairs(p, pointer_at(from, f->offset));
		else if (f->type == KUBE_TEXTS)
			copy = pack_texts(p, pointer_at(from, f->offset));
		else if (f->type == KUBE_ARRAY && f->offset)
			copy = pack_items(p, f, from);
		else if (f->type == KUBE_MEMBERS || f->type == KUBE_EACH)
			pack_members(p, f->fields, from, to);
		if (copy)
			memcpy(at(to, f->offset), &copy, sizeof(copy));
	}
}

void *kube_fields_pack(const struct kube_field *fields, const void *object, size_t size)
{
	struct packing sizes = {.used = size};
	struct packing p = {.used = size};

	pack_members(&sizes, fields, object, NULL);
	p.block = x_malloc(sizes.used);
	memcpy(p.block, object, size);
	pack_members(&p, fields, object, p.block);
	return p.block;
}
