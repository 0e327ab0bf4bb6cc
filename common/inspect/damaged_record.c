/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/damaged_record.h"

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"

/* In the order in which state_format() writes members, "source" is among these, and "pool", which each record
 * of a new volume has, comes after them. Another key may be "source" with damage in it. */
static const char *const before_pool[] = {"id", "size", "parameters", "identity", "resizing", "imageBytes",
	"freezing", "suspending", "eraseBandwidth", "copyBandwidth", "modified", "adopted"};

static bool is_before_pool(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(before_pool); i++) {
		if (str_eq(key, before_pool[i]))
			return true;
	}
	return false;
}

bool damaged_record_is_no_copy(struct span text)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(text);
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct json_event ev;

	if (json_expect(r, JSON_OBJECT, &ev, &ignored) < 0)
		return false;
	while (json_next(r, &ev, &ignored) == 0 && ev.type == JSON_KEY) {
		if (str_eq(ev.text, "pool"))
			return true;
		if (!is_before_pool(ev.text) || json_skip_value(r, &ignored) < 0)
			return false;
	}
	return false;
}
