/* SPDX-License-Identifier: Apache-2.0 */
/* Whole values, read event by event. */
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

int json_read_str(struct json_reader *r, char **ret, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_STRING, &ev, err) < 0)
		return -1;
	free(*ret);
	*ret = x_strdup(ev.text);
	return 0;
}

int json_read_u64(struct json_reader *r, uint64_t *ret, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_NUMBER, &ev, err) < 0)
		return -1;
	return parse_u64(ev.text, ret, err);
}

int json_read_bool(struct json_reader *r, bool *ret, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_BOOL, &ev, err) < 0)
		return -1;
	*ret = ev.boolean;
	return 0;
}

int json_read_strv(struct json_reader *r, char ***ret, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_ARRAY, &ev, err) < 0)
		return -1;
	for (;;) {
		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_ARRAY_END)
			return 0;
		if (ev.type != JSON_STRING)
			return err_set(err, ERR_INVALID_ARGUMENT, "not an array of strings");
		strv_add(ret, ev.text);
	}
}

int json_read_members(struct json_reader *r, json_member_fn *member, void *user, struct error **err)
{
	struct json_event ev;

	for (;;) {
		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_OBJECT_END)
			return 0;
		CLEANUP(free_charp) char *key = x_strdup(ev.text);
		if (member(user, key, r, err) < 0)
			return err_wrap(err, "\"%s\"", key);
	}
}

int json_read_object(struct json_reader *r, json_member_fn *member, void *user, struct error **err)
{
	struct json_event ev;

	return json_expect(r, JSON_OBJECT, &ev, err) < 0 ? -1 : json_read_members(r, member, user, err);
}

int json_read_document(struct span text, json_member_fn *member, void *user, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(text);
	struct json_event ev;

	return json_read_object(r, member, user, err) < 0 ? -1 : json_expect(r, JSON_END, &ev, err);
}
