/* SPDX-License-Identifier: Apache-2.0 */
#include "os/args.h"

#include "base/str.h"
#include "unit/unit.h"

struct parsed {
	char **argv; /* the results borrow from it */
	struct args args;
	bool verbose;
	uint32_t level;
	unsigned percent;
	const char *name;
	char **labels;
	uint64_t size_bytes;
	uint64_t wait_ms;
};

static void parsed_done(struct parsed *p)
{
	strv_free(p->argv);
	strv_free(p->labels);
	args_done(&p->args);
}

#define OPTS(p)                                                                                              \
	{                                                                                                    \
		{"verbose", OPT_BOOL, &(p)->verbose, NULL, "say more"},                                      \
		{"level", OPT_U32, &(p)->level, "N", "how much more"},                                       \
		{"percent", OPT_PERCENT, &(p)->percent, "PERCENT", "share"},                                 \
		{"name", OPT_STR, &(p)->name, "NAME", "what to call it (required)"},                         \
		{"label", OPT_STRS, &(p)->labels, "KEY", "label, repeatable"},                               \
		{"size", OPT_SIZE, &(p)->size_bytes, "SIZE", "how large"},                                   \
		{"wait", OPT_DURATION, &(p)->wait_ms, "TIME", "how long"},                                   \
		{"old", OPT_IGNORED, NULL, "ANY", "gone since 1.0"},                                         \
		{0},                                                                                         \
	}

static int parse(struct parsed *p, const char *const *words, struct error **err)
{
	const struct opt opts[] = OPTS(p);

	strv_add(&p->argv, "program");
	for (; *words; words++)
		strv_add(&p->argv, *words);
	return args_parse(opts, (int)strv_len(p->argv), p->argv, &p->args, err);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(each_type_is_converted_in_both_forms)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(parsed_done) struct parsed p = {0};

	ASSERT_OK(parse(&p,
		WORDS("-verbose", "--level=7", "--percent", "50", "-name", "a=b", "-size=2Gi", "--wait",
			"1m30s", "-label=x", "-label", "y"),
		&err));
	ck_assert(p.verbose);
	ck_assert_uint_eq(p.level, 7);
	ck_assert_uint_eq(p.percent, 50);
	ck_assert_str_eq(p.name, "a=b");
	ck_assert_uint_eq(p.size_bytes, 2ULL << 30);
	ck_assert_uint_eq(p.wait_ms, 90000);
	ck_assert_uint_eq(strv_len(p.labels), 2);
	ck_assert_str_eq(p.labels[0], "x");
	ck_assert_str_eq(p.labels[1], "y");
	ck_assert_ptr_null(p.args.rest[0]);
	ck_assert_ptr_null(p.args.ignored);
}
END_TEST

START_TEST(a_bool_never_takes_the_next_word)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(parsed_done) struct parsed p = {.verbose = true};

	ASSERT_OK(parse(&p, WORDS("--verbose=F", "true"), &err));
	ck_assert(!p.verbose);
	ck_assert_str_eq(p.args.rest[0], "true");
}
END_TEST

START_TEST(a_value_may_look_like_a_flag_or_be_empty)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(parsed_done) struct parsed p = {0};

	ASSERT_OK(parse(&p, WORDS("-name", "-level", "-label="), &err));
	ck_assert_str_eq(p.name, "-level");
	ck_assert_str_eq(p.labels[0], "");
}
END_TEST

START_TEST(the_last_of_equal_flags_counts)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(parsed_done) struct parsed p = {0};

	ASSERT_OK(parse(&p, WORDS("-level=1", "-level=2"), &err));
	ck_assert_uint_eq(p.level, 2);
}
END_TEST

START_TEST(operands_stand_between_flags_and_behind_two_dashes)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(parsed_done) struct parsed p = {0};

	ASSERT_OK(parse(&p, WORDS("plan", "-level", "3", "-", "", "--", "-level=4", "--"), &err));
	ck_assert_uint_eq(p.level, 3);
	ck_assert_uint_eq(strv_len(p.args.rest), 5);
	ck_assert_str_eq(p.args.rest[0], "plan");
	ck_assert_str_eq(p.args.rest[1], "-");
	ck_assert_str_eq(p.args.rest[2], "");
	ck_assert_str_eq(p.args.rest[3], "-level=4");
	ck_assert_str_eq(p.args.rest[4], "--");
	ck_assert_ptr_eq(p.args.rest[0], p.argv[1]);
}
END_TEST

START_TEST(flags_without_effect_are_named_once)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(parsed_done) struct parsed p = {0};

	ASSERT_OK(parse(&p, WORDS("-old", "-old=7", "word"), &err));
	ck_assert_uint_eq(strv_len(p.args.ignored), 1);
	ck_assert_str_eq(p.args.ignored[0], "old");
	ck_assert_str_eq(p.args.rest[0], "word");
}
END_TEST

START_TEST(errors_quote_the_offending_argument)
{
	static const struct {
		const char *words[3];
		const char *text;
	} cases[] = {
		{{"--levels=1"}, "unknown flag \"--levels=1\": did you mean -level?"},
		{{"-LEVEL=1"}, "did you mean -level?"},
		{{"-prcent=1"}, "did you mean -percent?"},
		{{"-nonsense"}, "-help lists all"},
		{{"-leve"}, "unknown flag \"-leve\""},
		{{"---level"}, "unknown flag \"---level\""},
		{{"-=1"}, "unknown flag \"-=1\""},
		{{"x", "-level"}, "flag -level needs a value"},
		{{"-level=-1"}, "flag -level: "},
		{{"--percent", "101"}, "flag -percent: "},
		{{"-verbose=maybe"}, "flag -verbose: "},
		{{"-size=12Q"}, "12Q"},
		{{"-wait=5"}, "flag -wait: "},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(parsed_done) struct parsed p = {0};
		ASSERT_FAILS(parse(&p, cases[i].words, &err), ERR_INVALID_ARGUMENT, cases[i].text);
		ck_assert_ptr_null(p.args.rest);
	}
}
END_TEST

START_TEST(help_has_a_line_for_each_flag)
{
	struct parsed p = {0};
	const struct opt opts[] = OPTS(&p);
	CLEANUP(free_charp) char *text = args_help("usage: program [flags]", opts);

	ck_assert(str_starts(text, "usage: program [flags]\n"));
	for (const struct opt *o = opts; o->name; o++)
		ck_assert_ptr_nonnull(strstr(text, o->help));
	ck_assert_ptr_nonnull(strstr(text, "\n  -percent PERCENT  share (default: 0)\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n  -name NAME        what to call it (required)\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n  -verbose          say more (default: false)\n"));
	ck_assert_ptr_nonnull(strstr(text, "\n  -old ANY          no effect: gone since 1.0\n"));
}
END_TEST

UNIT_MAIN("os/args", each_type_is_converted_in_both_forms, a_bool_never_takes_the_next_word,
	a_value_may_look_like_a_flag_or_be_empty, the_last_of_equal_flags_counts,
	operands_stand_between_flags_and_behind_two_dashes, flags_without_effect_are_named_once,
	errors_quote_the_offending_argument, help_has_a_line_for_each_flag)
