/* SPDX-License-Identifier: Apache-2.0 */
/* The state file of a volume: what was read is written, and read again as the same. */
#include <stdlib.h>

#include "base/str.h"
#include "fuzz/fuzz.h"
#include "unit/strmap_equal.h"
#include "volume/state.h"

#define FILE_MAX_BYTES (1u << 20)

static bool same_texts(char *const *a, char *const *b)
{
	if (strv_len(a) != strv_len(b))
		return false;
	for (size_t i = 0; i < strv_len(a); i++) {
		if (!str_eq(a[i], b[i]))
			return false;
	}
	return true;
}

static bool same(const struct volume_record *a, const struct volume_record *b)
{
	return str_eq(a->id, b->id) && a->phase == b->phase && a->size_bytes == b->size_bytes &&
	       strmap_equal(&a->parameters, &b->parameters) && str_eq(a->identity, b->identity) &&
	       str_eq(a->pool, b->pool) && str_eq(a->fs_type, b->fs_type) && a->formatting == b->formatting &&
	       str_eq(a->fs_uuid, b->fs_uuid) && same_texts(a->staged_flags, b->staged_flags) &&
	       a->ever_staged == b->ever_staged && a->made_by_controller == b->made_by_controller &&
	       str_eq(a->staging_path, b->staging_path) && a->staged_block == b->staged_block &&
	       same_texts(a->targets, b->targets) && str_eq(a->unknown_json, b->unknown_json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(volume_record_freep) struct volume_record *first = NULL;
	CLEANUP(volume_record_freep) struct volume_record *second = NULL;
	CLEANUP(volume_record_freep) struct volume_record *copy = NULL;
	CLEANUP(buf_done) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	struct error *err = NULL;

	if (state_parse((struct span){data, size}, &first, &err) < 0) {
		fuzz_error(err);
		return 0;
	}
	copy = volume_record_dup(first);
	assert(same(first, copy));
	int rv = state_format(first, &text, &err);
	assert(rv == 0);
	rv = state_parse(buf_span(&text), &second, &err);
	assert(rv == 0 && same(first, second));
	return 0;
}
