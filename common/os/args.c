/* SPDX-License-Identifier: Apache-2.0 */
#include "os/args.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/suggest.h"

#define HELP_MAX_BYTES (256U << 10)
#define QUOTED_MAX     200 /* of an argument that nothing is known about */

static const struct opt *find_opt(const struct opt *opts, const char *name, size_t len)
{
	for (; opts->name; opts++)
		if (strlen(opts->name) == len && memcmp(opts->name, name, len) == 0)
			return opts;
	return NULL;
}

/* "-h" is help everywhere. */
static const struct opt *find_named(const struct opt *opts, const char *name, size_t len)
{
	const struct opt *o = find_opt(opts, name, len);

	return !o && len == 1 && *name == 'h' ? find_opt(opts, "help", strlen("help")) : o;
}

static int refuse(
	const char *what, const char *word, const char *prefix, const char *meant, struct error **err)
{
	if (!meant)
		return err_set(err, ERR_INVALID_ARGUMENT, "unknown %s \"%.*s\"; -help lists all", what,
			QUOTED_MAX, word);
	return err_set(err, ERR_INVALID_ARGUMENT, "unknown %s \"%.*s\": did you mean %s%s?", what, QUOTED_MAX,
		word, prefix, meant);
}

static int refuse_unknown(
	const struct opt *opts, const char *word, const char *name, size_t len, struct error **err)
{
	struct suggestion s = suggest_begin(name, len);

	for (; opts->name; opts++) {
		if (opts->type != OPT_IGNORED)
			suggest_consider(&s, opts->name);
	}
	return refuse("flag", word, "-", s.name, err);
}

int args_refuse_command(const char *word, const char *const *commands, struct error **err)
{
	struct suggestion s = suggest_begin(word, strlen(word));

	for (; *commands; commands++)
		suggest_consider(&s, *commands);
	return refuse("command", word, "", s.name, err);
}

static int set_target(const struct opt *o, const char *value, struct error **err)
{
	switch (o->type) {
	case OPT_BOOL:
		return parse_bool(value, o->target, err);
	case OPT_U32:
		return parse_u32(value, o->target, err);
	case OPT_PERCENT:
		return parse_percent(value, o->target, err);
	case OPT_SIZE:
		return parse_quantity(value, o->target, err);
	case OPT_DURATION:
		return parse_duration_ms(value, o->target, err);
	case OPT_STR:
		*(const char **)o->target = value;
		return 0;
	case OPT_STRS:
		strv_add(o->target, value);
		return 0;
	case OPT_IGNORED:
		return 0;
	}
	return err_set(err, ERR_INTERNAL, "flag -%s has no known type", o->name);
}

/* Handles the flag argv[*i]; moves *i on when the next word is its value. */
static int parse_flag(const struct opt *opts, char **argv, int *i, char ***ignored, struct error **err)
{
	const char *word = argv[*i];
	const char *name = word + (word[1] == '-' ? 2 : 1);
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct opt *o = find_named(opts, name, len);

	if (!o)
		return refuse_unknown(opts, word, name, len, err);
	if (o->type == OPT_IGNORED) {
		if (o->arg && !value && argv[*i + 1])
			++*i;
		if (!strv_contains(*ignored, o->name))
			strv_add(ignored, o->name);
		return 0;
	}
	if (!value && o->type == OPT_BOOL)
		value = "true";
	if (!value && argv[*i + 1])
		value = argv[++*i];
	if (!value)
		return err_set(err, ERR_INVALID_ARGUMENT, "flag -%s needs a value", o->name);
	if (set_target(o, value, err) < 0)
		return err_wrap(err, "flag -%s", o->name);
	return 0;
}

static bool is_flag(const char *word)
{
	return word[0] == '-' && word[1] != '\0';
}

int args_parse(const struct opt *opts, int argc, char **argv, struct args *ret, struct error **err)
{
	CLEANUP(args_done) struct args a = {.rest = x_calloc((size_t)argc + 1, sizeof(char *))};
	size_t n = 0;
	int i = 1;

	for (; i < argc && !str_eq(argv[i], "--"); i++) {
		if (!is_flag(argv[i]))
			a.rest[n++] = argv[i];
		else if (parse_flag(opts, argv, &i, &a.ignored, err) < 0)
			return -1;
	}
	for (i++; i < argc; i++)
		a.rest[n++] = argv[i];

	ret->rest = TAKE_PTR(a.rest);
	ret->ignored = TAKE_PTR(a.ignored);
	return 0;
}

void args_done(struct args *a)
{
	free(a->rest);
	strv_free(a->ignored);
	*a = (struct args){0};
}

/* Columns that "-name ARG" takes. */
static size_t flag_width(const struct opt *o)
{
	return 1 + strlen(o->name) + (o->arg ? 1 + strlen(o->arg) : 0);
}

static void add_text(struct buf *b, const char *text)
{
	if (str_empty(text))
		buf_adds(b, "none");
	else
		buf_adds(b, text);
}

static void add_duration(struct buf *b, uint64_t ms)
{
	if (ms % 1000 == 0)
		buf_addf(b, "%jus", (uintmax_t)(ms / 1000));
	else
		buf_addf(b, "%jums", (uintmax_t)ms);
}

static void add_value(struct buf *b, const struct opt *o)
{
	char text[24];

	switch (o->type) {
	case OPT_BOOL:
		buf_adds(b, *(const bool *)o->target ? "true" : "false");
		break;
	case OPT_U32:
		buf_addf(b, "%u", *(const uint32_t *)o->target);
		break;
	case OPT_PERCENT:
		buf_addf(b, "%u", *(const unsigned *)o->target);
		break;
	case OPT_STR:
		add_text(b, *(const char *const *)o->target);
		break;
	case OPT_SIZE:
		buf_adds(b, format_bytes(*(const uint64_t *)o->target, text));
		break;
	case OPT_DURATION:
		add_duration(b, *(const uint64_t *)o->target);
		break;
	case OPT_STRS:
	case OPT_IGNORED:
		break;
	}
}

/* A default that depends on more than the table is in the text; what is required or repeated has none. */
static void add_default(struct buf *b, const struct opt *o)
{
	if (strstr(o->help, "(default") || strstr(o->help, "(required") || o->type == OPT_STRS ||
		o->type == OPT_IGNORED || str_eq(o->name, "help") || str_eq(o->name, "version"))
		return;
	buf_adds(b, " (default: ");
	add_value(b, o);
	buf_adds(b, ")");
}

char *args_help(const char *usage, const struct opt *opts)
{
	CLEANUP(buf_done) struct buf b = BUF_INIT(HELP_MAX_BYTES);
	size_t width = 0;

	for (const struct opt *o = opts; o->name; o++)
		if (flag_width(o) > width)
			width = flag_width(o);

	buf_addf(&b, "%s\n\nFlags:\n", usage);
	for (const struct opt *o = opts; o->name; o++) {
		buf_addf(&b, "  -%s%s%s%*s  %s%s", o->name, o->arg ? " " : "", o->arg ? o->arg : "",
			(int)(width - flag_width(o)), "", o->type == OPT_IGNORED ? "no effect: " : "",
			o->help);
		add_default(&b, o);
		buf_addc(&b, '\n');
	}
	return x_strdup(buf_str(&b));
}
