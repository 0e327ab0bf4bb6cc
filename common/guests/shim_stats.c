/* SPDX-License-Identifier: Apache-2.0 */
#include "guests/shim_stats.h"

#include "base/cleanup.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"

/* Units of volume usage in Kata's agent protocol. */
enum { UNIT_BYTES = 1, UNIT_INODES = 2 };

struct usage {
	uint64_t available;
	uint64_t total;
	uint64_t used;
	uint64_t unit;
};

/* CSI's numbers are signed. */
static int read_count(struct json_reader *r, uint64_t *ret, struct error **err)
{
	if (json_read_u64(r, ret, err) < 0)
		return -1;
	return *ret <= INT64_MAX ? 0 : err_set(err, ERR_INTERNAL, "%ju is too large", (uintmax_t)*ret);
}

static int read_number(struct json_reader *r, const char *key, struct usage *u, struct error **err)
{
	if (str_eq(key, "available"))
		return read_count(r, &u->available, err);
	if (str_eq(key, "total"))
		return read_count(r, &u->total, err);
	if (str_eq(key, "used"))
		return read_count(r, &u->used, err);
	if (str_eq(key, "unit"))
		return json_read_u64(r, &u->unit, err);
	return json_skip_value(r, err);
}

/* The element whose opening was read. */
static int read_usage(struct json_reader *r, struct fs_usage *ret, struct error **err)
{
	struct usage u = {0};

	for (;;) {
		CLEANUP(free_charp) char *key = NULL;
		struct json_event ev;

		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_OBJECT_END)
			break;
		key = x_strdup(ev.text);
		if (read_number(r, key, &u, err) < 0)
			return err_wrap(err, "\"%s\"", key);
	}
	if (u.unit == UNIT_BYTES) {
		ret->total_bytes = u.total;
		ret->used_bytes = u.used;
		ret->available_bytes = u.available;
	} else if (u.unit == UNIT_INODES) {
		ret->total_inodes = u.total;
		ret->used_inodes = u.used;
		ret->available_inodes = u.available;
	}
	return 0;
}

static int read_usages(struct json_reader *r, struct fs_usage *ret, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_ARRAY, &ev, err) < 0)
		return -1;
	for (;;) {
		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_ARRAY_END)
			return 0;
		if (ev.type != JSON_OBJECT)
			return err_set(err, ERR_INTERNAL, "an element of \"usage\" is no object");
		if (read_usage(r, ret, err) < 0)
			return -1;
	}
}

static int read_document(struct json_reader *r, struct fs_usage *ret, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_OBJECT, &ev, err) < 0)
		return -1;
	for (;;) {
		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_OBJECT_END)
			return json_expect(r, JSON_END, &ev, err);
		int rc = str_eq(ev.text, "usage") ? read_usages(r, ret, err) : json_skip_value(r, err);
		if (rc < 0)
			return -1;
	}
}

int shim_stats_parse(struct span text, struct fs_usage *ret, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(text);
	struct fs_usage usage = {0};

	if (read_document(r, &usage, err) < 0) {
		err_recode(err, ERR_INTERNAL);
		return err_wrap(err, "statistics of a guest");
	}
	if (usage.total_bytes == 0)
		return err_set(err, ERR_INTERNAL, "statistics of a guest say nothing of bytes");
	*ret = usage;
	return 0;
}
