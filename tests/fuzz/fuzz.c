/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"

uint8_t fuzz_byte(struct span *in)
{
	struct span byte = fuzz_bytes(in, 1);

	return byte.n > 0 ? byte.p[0] : 0;
}

struct span fuzz_bytes(struct span *in, size_t n)
{
	struct span taken = {in->p, n < in->n ? n : in->n};

	if (taken.n > 0)
		in->p += taken.n;
	in->n -= taken.n;
	return taken;
}

char *fuzz_line(struct span *in)
{
	struct span line;

	if (in->n == 0)
		return NULL;
	const uint8_t *end = memchr(in->p, '\n', in->n);
	line = fuzz_bytes(in, end ? (size_t)(end - in->p) : in->n);
	if (end)
		fuzz_byte(in);
	return fuzz_text(line);
}

char *fuzz_text(struct span in)
{
	return in.n > 0 ? x_strndup((const char *)in.p, in.n) : x_strdup("");
}

char **fuzz_lines(struct span in)
{
	char **lines = NULL;
	char *line;

	while ((line = fuzz_line(&in))) {
		strv_add(&lines, line);
		free(line);
	}
	return lines;
}

void fuzz_check_error(const struct error *e)
{
	CLEANUP(free_charp) char *clean = NULL;

	assert(e && !str_empty(e->msg));
	assert(e->code == ERR_UNKNOWN || !str_eq(err_code_name(e->code), "UNKNOWN"));
	clean = x_strdup(e->msg);
	str_clean(clean);
	assert(str_eq(clean, e->msg));
}

void fuzz_error(struct error *e)
{
	fuzz_check_error(e);
	error_free(e);
}

void fuzz_check_json(struct span text)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(text);
	struct error *err = NULL;
	struct json_event end;

	int rv = json_skip_value(r, &err);
	assert(rv == 0);
	rv = json_expect(r, JSON_END, &end, &err);
	assert(rv == 0);
}
