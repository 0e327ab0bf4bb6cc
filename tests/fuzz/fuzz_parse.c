/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers, booleans, percentages, quantities and durations of one text. */
#include "base/parse.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"

static void check_integers(const char *text)
{
	struct error *err = NULL;
	uint64_t wide = 0;
	uint32_t narrow;
	unsigned percent;
	bool is_wide = parse_u64(text, &wide, &err) == 0;

	if (!is_wide)
		fuzz_error(TAKE_PTR(err));
	if (parse_u32(text, &narrow, &err) == 0)
		assert(is_wide && narrow == wide);
	else
		fuzz_error(TAKE_PTR(err));
	if (parse_percent(text, &percent, &err) == 0)
		assert(is_wide && percent == wide && percent <= 100);
	else
		fuzz_error(TAKE_PTR(err));
}

static void check_bool(const char *text)
{
	struct error *err = NULL;
	bool value;

	if (parse_bool(text, &value, &err) == 0)
		assert(strlen(text) <= strlen("false"));
	else
		fuzz_error(err);
}

/* Checks that a size that is formatted is parsed as the same size. */
static void check_quantity(const char *text)
{
	struct error *err = NULL;
	uint64_t bytes;
	uint64_t again;
	char shown[24];

	if (parse_quantity(text, &bytes, &err) < 0) {
		fuzz_error(err);
		return;
	}
	assert(bytes <= INT64_MAX);
	int rv = parse_quantity(format_bytes(bytes, shown), &again, &err);
	assert(rv == 0 && again == bytes);
}

static void check_duration(const char *text)
{
	struct error *err = NULL;
	uint64_t ms;

	if (parse_duration_ms(text, &ms, &err) < 0)
		fuzz_error(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(free_charp) char *text = fuzz_text((struct span){data, size});

	check_integers(text);
	check_bool(text);
	check_quantity(text);
	check_duration(text);
	return 0;
}
