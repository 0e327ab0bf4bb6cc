/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/json_members.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

/* Bytes of a member's name in an error message; the name itself may be as long as the document. */
#define NAME_SHOWN_BYTES 64

/* Only a strict reader complains of a value, and then names the member. The key is valid until its value is
 * read. */
static int read_member(
	struct json_reader *r, const char *key, kube_member_fn *member, void *user, struct error **err)
{
	CLEANUP(free_charp) char *name = json_reader_is_strict(r) ? x_strdup(key) : NULL;

	if (member(user, key, r, err) == 0)
		return 0;
	if (name)
		err_wrap(err, "%.*s", NAME_SHOWN_BYTES, name);
	return -1;
}

int kube_read_members(struct json_reader *r, kube_member_fn *member, void *user, struct error **err)
{
	struct json_event ev;

	for (;;) {
		if (json_next_any(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_OBJECT_END)
			return 0;
		if (ev.text ? read_member(r, ev.text, member, user, err) < 0 : json_skip_value(r, err) < 0)
			return -1;
	}
}

int kube_read_object(struct json_reader *r, kube_member_fn *member, void *user, struct error **err)
{
	struct json_event ev;

	if (json_next_any(r, &ev, err) < 0)
		return -1;
	if (ev.type != JSON_OBJECT)
		return json_skip_odd(r, &ev, err);
	return kube_read_members(r, member, user, err);
}

/* @item gets the event with which each item begins, and reads to the item's end. */
static int read_items(struct json_reader *r,
	int (*item)(void *user, const struct json_event *ev, struct json_reader *r, struct error **err),
	void *user, struct error **err)
{
	struct json_event ev;

	if (json_next_any(r, &ev, err) < 0)
		return -1;
	if (ev.type != JSON_ARRAY)
		return json_skip_odd(r, &ev, err);
	for (;;) {
		if (json_next_any(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_ARRAY_END)
			return 0;
		if (item(user, &ev, r, err) < 0)
			return -1;
	}
}

struct object_items {
	int (*item)(void *user, struct json_reader *r, struct error **err);
	void *user;
};

static int read_object_item(
	void *user, const struct json_event *ev, struct json_reader *r, struct error **err)
{
	const struct object_items *o = user;

	return ev->type == JSON_OBJECT ? o->item(o->user, r, err) : json_skip_odd(r, ev, err);
}

int kube_read_array(struct json_reader *r, int (*item)(void *user, struct json_reader *r, struct error **err),
	void *user, struct error **err)
{
	struct object_items objects = {item, user};

	return read_items(r, read_object_item, &objects, err);
}

int kube_read_text(struct json_reader *r, char **ret, struct error **err)
{
	struct json_event ev;

	if (json_next_any(r, &ev, err) < 0)
		return -1;
	if ((ev.type != JSON_STRING && ev.type != JSON_NUMBER) || !ev.text)
		return json_skip_odd(r, &ev, err);
	free(*ret);
	*ret = x_strdup(ev.text);
	return 0;
}

int kube_read_flag(struct json_reader *r, bool *ret, struct error **err)
{
	struct json_event ev;

	if (json_next_any(r, &ev, err) < 0)
		return -1;
	if (ev.type != JSON_BOOL)
		return json_skip_odd(r, &ev, err);
	*ret = ev.boolean;
	return 0;
}

void kube_add_text(char ***v, const char *text)
{
	if (strv_len(*v) < KUBE_MAX_TEXTS)
		strv_add(v, text);
}

static int read_text_item(void *user, const struct json_event *ev, struct json_reader *r, struct error **err)
{
	if (ev->type != JSON_STRING || !ev->text)
		return json_skip_odd(r, ev, err);
	kube_add_text(user, ev->text);
	return 0;
}

int kube_read_texts(struct json_reader *r, char ***ret, struct error **err)
{
	return read_items(r, read_text_item, ret, err);
}

int kube_read_quantity(struct json_reader *r, uint64_t *ret_bytes, bool *ret_has, struct error **err)
{
	CLEANUP(error_freep) struct error *odd = NULL;
	CLEANUP(free_charp) char *text = NULL;

	if (kube_read_text(r, &text, err) < 0)
		return -1;
	*ret_has = text && parse_quantity(text, ret_bytes, &odd) == 0;
	return 0;
}
