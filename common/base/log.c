/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"

/* how much of one value is shown */
#define VALUE_MAX_BYTES 2048

#define TIME_TEXT_LEN 24

static struct {
	const char *program;
	enum log_format format;
	bool debug;
	pthread_mutex_t write_lock; /* a pipe splits lines above PIPE_BUF */
} sink = {.write_lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
	char letter;
	const char *name;
} levels[] = {
	[LOG_ERROR] = {'E', "error"},
	[LOG_WARN] = {'W', "warn"},
	[LOG_INFO] = {'I', "info"},
	[LOG_DEBUG] = {'D', "debug"},
};

void log_init(const char *program, enum log_format format, unsigned verbosity)
{
	sink.program = program;
	sink.format = format;
	sink.debug = verbosity >= 5;
}

bool log_enabled(enum log_level level)
{
	return level != LOG_DEBUG || sink.debug;
}

/* RFC 3339 in UTC with milliseconds */
static void format_now(char out[static TIME_TEXT_LEN + 1])
{
	struct timespec now;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	size_t n = strftime(out, TIME_TEXT_LEN + 1, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out + n, TIME_TEXT_LEN + 1 - n, ".%03uZ", (unsigned)(now.tv_nsec / 1000000) % 1000);
}

/* Everything but printable ASCII is escaped: a terminal that shows the log obeys no peer. */
static void add_escaped(struct buf *line, const char *s)
{
	for (; *s; s++) {
		if (*s == '\n')
			buf_adds(line, "\\n");
		else if (*s == '"' || *s == '\\')
			buf_addf(line, "\\%c", *s);
		else if (*s >= ' ' && *s <= '~')
			buf_addc(line, *s);
		else
			buf_addf(line, "\\x%02x", (unsigned)(uint8_t)*s);
	}
}

static bool needs_quotes(const char *s)
{
	if (!*s)
		return true;
	for (; *s; s++)
		if (*s <= ' ' || *s > '~' || *s == '"' || *s == '\\' || *s == '=')
			return true;
	return false;
}

static void add_text_pair(struct buf *line, const char *key, const char *value)
{
	buf_addf(line, " %s=", key);
	if (!value) {
		buf_adds(line, "null");
	} else if (needs_quotes(value)) {
		buf_addc(line, '"');
		add_escaped(line, value);
		buf_addc(line, '"');
	} else {
		buf_adds(line, value);
	}
}

/* A terminal or a page that shows the decoded text puts it in the order of the characters. */
static void add_json_pair(struct json_writer *w, const char *key, const char *value)
{
	CLEANUP(free_charp) char *visible = x_strdup(value);

	if (visible)
		str_hide_formats(visible);
	json_key_str(w, key, visible);
}

/* Writes one pair of key and value as text, or as JSON if @w is given. */
static void add_str(struct buf *line, struct json_writer *w, const char *key, const char *value)
{
	CLEANUP(free_charp) char *cut = NULL;

	if (value && strnlen(value, VALUE_MAX_BYTES + 1) > VALUE_MAX_BYTES) {
		cut = x_asprintf("%.*s...", VALUE_MAX_BYTES, value);
		value = cut;
	}
	if (w)
		add_json_pair(w, key, value);
	else
		add_text_pair(line, key, value);
}

static void add_field(struct buf *line, struct json_writer *w, const struct log_field *f)
{
	switch (f->type) {
	case LOG_FIELD_STR:
		add_str(line, w, f->key, f->str);
		break;
	case LOG_FIELD_U64:
		if (w)
			json_key_u64(w, f->key, f->u64);
		else
			buf_addf(line, " %s=%" PRIu64, f->key, f->u64);
		break;
	case LOG_FIELD_ERR:
		add_str(line, w, f->key, f->err ? f->err->msg : NULL);
		if (f->err)
			add_str(line, w, "code", err_code_name(f->err->code));
		break;
	}
}

static void add_text_event(
	struct buf *line, enum log_level level, const char *msg, const struct log_field *fields)
{
	char now[TIME_TEXT_LEN + 1];

	format_now(now);
	buf_addf(line, "%c %s ", levels[level].letter, now);
	if (sink.program)
		buf_addf(line, "%s: ", sink.program);
	add_escaped(line, msg);
	for (const struct log_field *f = fields; f->key; f++)
		add_field(line, NULL, f);
}

static void add_json_event(
	struct buf *line, enum log_level level, const char *msg, const struct log_field *fields)
{
	struct json_writer w = JSON_WRITER(line);
	char now[TIME_TEXT_LEN + 1];

	format_now(now);
	json_object(&w);
	json_key_str(&w, "ts", now);
	json_key_str(&w, "level", levels[level].name);
	if (sink.program)
		json_key_str(&w, "program", sink.program);
	add_json_pair(&w, "msg", msg);
	for (const struct log_field *f = fields; f->key; f++)
		add_field(line, &w, f);
	json_object_end(&w);
}

/* A line that cannot be written is lost: there is no other place to report that. */
static void write_line(const struct buf *line)
{
	size_t done = 0;

	pthread_mutex_lock(&sink.write_lock);
	while (done < line->len) {
		ssize_t n = write(STDERR_FILENO, line->data + done, line->len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break;
		done += (size_t)n;
	}
	pthread_mutex_unlock(&sink.write_lock);
}

void log_event(enum log_level level, const char *msg, const struct log_field *fields)
{
	int saved_errno = errno;
	/* Bounded by VALUE_MAX_BYTES and the number of fields, which is in our own source. */
	CLEANUP(buf_done) struct buf line = BUF_INIT(SIZE_MAX);

	if (!log_enabled(level))
		return;
	if (sink.format == LOG_JSON)
		add_json_event(&line, level, msg, fields);
	else
		add_text_event(&line, level, msg, fields);
	buf_addc(&line, '\n');
	write_line(&line);
	errno = saved_errno;
}
