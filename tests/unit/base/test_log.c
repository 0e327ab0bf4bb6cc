/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/log.h"
#include "unit/unit.h"

static FILE *capture;
static int saved_stderr = -1;

static void capture_begin(void)
{
	capture = tmpfile();
	ck_assert_ptr_nonnull(capture);
	saved_stderr = dup(STDERR_FILENO);
	ck_assert_int_eq(dup2(fileno(capture), STDERR_FILENO), STDERR_FILENO);
}

/* Put stderr back. Return: what was logged, in @out. */
static const char *capture_end(struct buf *out)
{
	char piece[4096];
	size_t n;

	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(capture);
	while ((n = fread(piece, 1, sizeof(piece), capture)) > 0)
		buf_add(out, piece, n);
	fclose(capture);
	return buf_str(out);
}

/* "I 2026-01-02T03:04:05.678Z rest": check the form of the time. Return: the rest. */
static const char *behind_time(const char *line, char level)
{
	static const char form[] = "? 0000-00-00T00:00:00.000Z ";

	ck_assert_int_eq(line[0], level);
	for (size_t i = 1; i < strlen(form); i++) {
		if (form[i] == '0')
			ck_assert_msg(line[i] >= '0' && line[i] <= '9', "%s", line);
		else
			ck_assert_msg(line[i] == form[i], "%s", line);
	}
	return line + strlen(form);
}

START_TEST(before_init_info_is_shown_as_text_without_a_name)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);

	capture_begin();
	log_debug("hidden");
	log_info("ready", F_STR("mode", "node"), F_U64("pools", UINT64_MAX));
	ck_assert_str_eq(behind_time(capture_end(&out), 'I'), "ready mode=node pools=18446744073709551615\n");
}
END_TEST

START_TEST(each_level_has_its_letter_and_the_program_its_name)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);

	log_init("pmem-test", LOG_TEXT, 5);
	capture_begin();
	log_error("e");
	log_warn("w");
	log_debug("d");
	const char *line = capture_end(&out);
	line = behind_time(line, 'E');
	ck_assert(strncmp(line, "pmem-test: e\n", 13) == 0);
	line = behind_time(line + 13, 'W');
	ck_assert(strncmp(line, "pmem-test: w\n", 13) == 0);
	ck_assert_str_eq(behind_time(line + 13, 'D'), "pmem-test: d\n");
}
END_TEST

START_TEST(debug_begins_at_verbosity_5)
{
	log_init("pmem-test", LOG_TEXT, 0);
	ck_assert(log_enabled(LOG_ERROR) && log_enabled(LOG_WARN) && log_enabled(LOG_INFO));
	log_init("pmem-test", LOG_TEXT, 4);
	ck_assert(!log_enabled(LOG_DEBUG));
	log_init("pmem-test", LOG_TEXT, 5);
	ck_assert(log_enabled(LOG_DEBUG));
}
END_TEST

START_TEST(text_values_are_quoted_when_a_reader_could_be_misled)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);

	capture_begin();
	log_info("a\nb", F_STR("plain", "/dev/pmem0,x"), F_STR("blank", "a b"), F_STR("empty", ""),
		F_STR("null", NULL), F_STR("pair", "x=y"), F_STR("quote", "\"\\"),
		F_STR("line", "a\nI 2026 forged\r"), F_STR("terminal", "\x1b[2J\x7f\xc2\x9b"));
	ck_assert_str_eq(behind_time(capture_end(&out), 'I'),
		"a\\nb plain=/dev/pmem0,x blank=\"a b\" empty=\"\" null=null pair=\"x=y\" "
		"quote=\"\\\"\\\\\" line=\"a\\nI 2026 forged\\x0d\" "
		"terminal=\"\\x1b[2J\\x7f\\xc2\\x9b\"\n");
}
END_TEST

START_TEST(errors_are_shown_with_their_code)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);

	err_set(&err, ERR_EXISTS, "volume is there");
	capture_begin();
	log_error("create", F_ERR(err), F_STR("id", "x"));
	log_error("none", F_ERR(NULL));
	const char *line = behind_time(capture_end(&out), 'E');
	static const char first[] = "create error=\"volume is there\" code=ALREADY_EXISTS id=x\n";
	ck_assert(strncmp(line, first, strlen(first)) == 0);
	ck_assert_str_eq(behind_time(line + strlen(first), 'E'), "none error=null\n");
}
END_TEST

static void expect_pair(struct json_reader *r, const char *key, const char *value)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event event;

	ASSERT_OK(json_expect(r, JSON_KEY, &event, &err));
	ck_assert_str_eq(event.text, key);
	ASSERT_OK(json_next(r, &event, &err));
	ck_assert_ptr_nonnull(event.text);
	if (value)
		ck_assert_str_eq(event.text, value);
}

START_TEST(json_lines_are_whole_objects)
{
	CLEANUP(json_reader_freep) struct json_reader *r = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);
	struct json_event event;

	err_set(&err, ERR_RANGE, "too \"large\"");
	log_init("pmem-test", LOG_JSON, 0);
	capture_begin();
	log_warn("line\nbreak", F_STR("path", "a\xff\n"),
		F_STR("order", "\xe2\x80\xae"
			       "42\xe2\x80\xac"),
		F_STR("none", NULL), F_U64("n", 12), F_ERR(err));
	error_clear(&err);
	const char *line = capture_end(&out);
	ck_assert_ptr_eq(strchr(line, '\n'), line + out.len - 1);
	r = json_reader_new(buf_span(&out));
	ASSERT_OK(json_expect(r, JSON_OBJECT, &event, &err));
	expect_pair(r, "ts", NULL);
	expect_pair(r, "level", "warn");
	expect_pair(r, "program", "pmem-test");
	expect_pair(r, "msg", "line\nbreak");
	expect_pair(r, "path", "a\xef\xbf\xbd\n");
	expect_pair(r, "order", "?42?");
	ASSERT_OK(json_expect(r, JSON_KEY, &event, &err));
	ASSERT_OK(json_expect(r, JSON_NULL, &event, &err));
	expect_pair(r, "n", "12");
	expect_pair(r, "error", "too \"large\"");
	expect_pair(r, "code", "OUT_OF_RANGE");
	ASSERT_OK(json_expect(r, JSON_OBJECT_END, &event, &err));
	ASSERT_OK(json_expect(r, JSON_END, &event, &err));
}
END_TEST

START_TEST(long_values_are_cut)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(100000);
	char value[2050];

	memset(value, 'x', 2049);
	value[2049] = 0;
	capture_begin();
	log_info("long", F_STR("v", value), F_U64("n", 1));
	value[2048] = 0;
	log_info("fits", F_STR("v", value));
	const char *line = behind_time(capture_end(&out), 'I');
	ck_assert(strncmp(line, "long v=", 7) == 0);
	ck_assert_uint_eq(strspn(line + 7, "x"), 2048);
	static const char rest[] = "... n=1\n";
	line += 7 + 2048;
	ck_assert(strncmp(line, rest, strlen(rest)) == 0);
	line = behind_time(line + strlen(rest), 'I');
	ck_assert_uint_eq(strspn(line + 7, "x"), 2048);
	ck_assert_str_eq(line + 7 + 2048, "\n");
}
END_TEST

START_TEST(logging_leaves_errno_alone)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000);

	capture_begin();
	int log_fd = dup(STDERR_FILENO);
	close(STDERR_FILENO);
	errno = EXDEV;
	log_info("nowhere");
	int after = errno;
	dup2(log_fd, STDERR_FILENO);
	close(log_fd);
	capture_end(&out);
	ck_assert_int_eq(after, EXDEV);
}
END_TEST

enum { WRITERS = 4, LINES_PER_WRITER = 50, VALUE_LEN = 2000 };

/* Three values of one letter make a line that is longer than what a pipe takes at once (PIPE_BUF). */
static void *log_long_lines(void *arg)
{
	char value[VALUE_LEN + 1];

	memset(value, *(const char *)arg, VALUE_LEN);
	value[VALUE_LEN] = 0;
	for (unsigned i = 0; i < LINES_PER_WRITER; i++)
		log_info("", F_STR("1", value), F_STR("2", value), F_STR("3", value));
	return NULL;
}

struct drain {
	int fd;
	struct buf *out;
};

static void *drain_pipe(void *arg)
{
	const struct drain *d = arg;
	char piece[4096];
	ssize_t n;

	while ((n = read(d->fd, piece, sizeof(piece))) > 0)
		buf_add(d->out, piece, (size_t)n);
	return NULL;
}

static void log_from_all_writers(struct buf *out)
{
	static char letters[] = "abcd";
	pthread_t writers[WRITERS];
	pthread_t reader;
	int fds[2];

	ck_assert_int_eq(pipe(fds), 0);
	struct drain drain = {.fd = fds[0], .out = out};
	saved_stderr = dup(STDERR_FILENO);
	dup2(fds[1], STDERR_FILENO);
	close(fds[1]);
	ck_assert_int_eq(pthread_create(&reader, NULL, drain_pipe, &drain), 0);
	for (unsigned i = 0; i < WRITERS; i++)
		ck_assert_int_eq(pthread_create(&writers[i], NULL, log_long_lines, &letters[i]), 0);
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	pthread_join(reader, NULL);
	close(fds[0]);
}

START_TEST(lines_of_several_threads_stay_whole)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(10000000);
	unsigned lines = 0;

	log_from_all_writers(&out);
	for (const char *line = buf_str(&out); *line; lines++) {
		const char *value = behind_time(line, 'I');

		for (char key = '1'; key <= '3'; key++) {
			const char head[] = {' ', key, '=', 0};

			ck_assert(strncmp(value, head, 3) == 0);
			value += 3;
			ck_assert_uint_eq(strspn(value, (const char[]){value[0], 0}), VALUE_LEN);
			value += VALUE_LEN;
		}
		ck_assert_int_eq(*value, '\n');
		line = value + 1;
	}
	ck_assert_uint_eq(lines, WRITERS * LINES_PER_WRITER);
}
END_TEST

UNIT_MAIN("base/log", before_init_info_is_shown_as_text_without_a_name,
	each_level_has_its_letter_and_the_program_its_name, debug_begins_at_verbosity_5,
	text_values_are_quoted_when_a_reader_could_be_misled, errors_are_shown_with_their_code,
	json_lines_are_whole_objects, long_values_are_cut, logging_leaves_errno_alone,
	lines_of_several_threads_stay_whole)
