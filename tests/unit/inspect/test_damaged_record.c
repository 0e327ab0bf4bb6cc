/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/damaged_record.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"
#include "volume/state.h"

static struct error *err;

/* Return: volume_record_free() */
static struct volume_record *new_record(const char *source)
{
	struct volume_record *r = x_calloc(1, sizeof(*r));

	r->id = x_strdup("pvc-1");
	r->identity = x_strdup("11111111-1111-1111-1111-111111111111");
	r->pool = x_strdup("pool");
	r->source = x_strdup(source);
	r->erase_bytes_per_s = 1;
	r->copy_bytes_per_s = 1;
	strv_add(&r->modified, "eraseBandwidth");
	strmap_set(&r->parameters, "pool", "source");
	return r;
}

static bool shows(const char *source, size_t length, ssize_t flipped)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record(source);
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);

	ASSERT_OK(state_format(r, &text, &err));
	char *bytes = x_strdup(buf_str(&text));
	if (flipped >= 0)
		bytes[flipped] ^= 4;
	bool is_no_copy = damaged_record_is_no_copy(
		(struct span){.p = (const uint8_t *)bytes, .n = length < text.len ? length : text.len});
	free(bytes);
	return is_no_copy;
}

static size_t length_of(const char *source)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record(source);
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);

	ASSERT_OK(state_format(r, &text, &err));
	return text.len;
}

START_TEST(copy_never_passes_for_another_volume)
{
	size_t n = length_of("pvc-2");

	for (size_t i = 0; i <= n; i++)
		ck_assert(!shows("pvc-2", i, -1));
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(!shows("pvc-2", n, (ssize_t)i), "byte %zu", i);
}
END_TEST

START_TEST(file_that_is_sound_up_to_its_pool_shows_that_there_is_no_source)
{
	size_t n = length_of(NULL);

	ck_assert(shows(NULL, n, -1));
	ck_assert(shows(NULL, n - 3, -1));
	ck_assert(!shows(NULL, n / 2, -1));
	ck_assert(!shows(NULL, 0, -1));
}
END_TEST

UNIT_MAIN("damaged_record", copy_never_passes_for_another_volume,
	file_that_is_sound_up_to_its_pool_shows_that_there_is_no_source)
