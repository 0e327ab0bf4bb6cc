/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log: whatever a peer sends, one event is one line of printable text, and as JSON one object.
 *
 * The first byte chooses format and level; lines are the message, and pairs of which one is an error.
 */
#include "base/log.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/json/json.h"
#include "fuzz/fuzz.h"

#define OUTPUT_MAX_BYTES 65536

static int capture_fd = -1;
static int stderr_fd = -1;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	capture_fd = memfd_create("log", MFD_CLOEXEC);
	assert(capture_fd >= 0);
	return 0;
}

static void capture_begin(void)
{
	stderr_fd = dup(STDERR_FILENO);
	dup2(capture_fd, STDERR_FILENO);
}

/* Return: how many bytes were written to @out */
static size_t capture_end(char out[static OUTPUT_MAX_BYTES])
{
	dup2(stderr_fd, STDERR_FILENO);
	close(stderr_fd);
	ssize_t n = pread(capture_fd, out, OUTPUT_MAX_BYTES, 0);
	assert(n > 0);
	int rv = ftruncate(capture_fd, 0);
	assert(rv == 0 && lseek(capture_fd, 0, SEEK_SET) == 0);
	return (size_t)n;
}

static void check_line(const char *line, size_t n)
{
	assert(n < OUTPUT_MAX_BYTES);
	assert(line[n - 1] == '\n');
	for (size_t i = 0; i + 1 < n; i++)
		assert((uint8_t)line[i] >= 0x20);
}

static void check_json(const char *line, size_t n)
{
	CLEANUP(json_reader_freep)
	struct json_reader *r = json_reader_new((struct span){(const uint8_t *)line, n});
	struct error *err = NULL;
	struct json_event ev;

	int rv = json_next(r, &ev, &err);
	assert(rv == 0 && ev.type == JSON_OBJECT);
	rv = json_skip(r, &ev, &err);
	assert(rv == 0);
	rv = json_expect(r, JSON_END, &ev, &err);
	assert(rv == 0);
}

static void check_text(const char *line, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		assert((uint8_t)line[i] <= 0x7e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char line[OUTPUT_MAX_BYTES];
	struct span in = {data, size};
	uint8_t choice = fuzz_byte(&in);
	enum log_format format = choice & 1 ? LOG_JSON : LOG_TEXT;
	CLEANUP(free_charp) char *msg = fuzz_line(&in);
	CLEANUP(free_charp) char *value = fuzz_line(&in);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *why = fuzz_text(in);

	err_set(&err, ERR_INTERNAL, "%s", why);
	log_init("fuzz", format, 5);
	capture_begin();
	LOG_AT((enum log_level)(choice >> 1 & 3), msg ? msg : "", F_STR("value", value), F_U64("size", size),
		F_ERR(err), F_ERR(NULL));
	size_t n = capture_end(line);
	check_line(line, n);
	if (format == LOG_JSON)
		check_json(line, n);
	else
		check_text(line, n);
	return 0;
}
