/* SPDX-License-Identifier: Apache-2.0 */
#include "os/program.h"

#include "unit/unit.h"

static struct program_flags parse(char *flag)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(args_done) struct args args = {0};
	struct program_flags flags = PROGRAM_FLAGS_INIT;
	const struct opt table[] = {PROGRAM_FLAGS(&flags), KLOG_IGNORED_FLAGS, {0}};
	char *argv[] = {(char[]){"program"}, flag, NULL};

	ASSERT_OK(args_parse(table, flag ? 2 : 1, argv, &args, &err));
	return flags;
}

START_TEST(help_and_version_are_printed_in_place_of_running)
{
	struct program_flags flags = parse((char[]){"-help"});

	ck_assert_str_eq(program_about(&flags, "the help"), "the help");
	flags = parse((char[]){"--version"});
	ck_assert_str_eq(program_about(&flags, "the help"), PMEM_VERSION "\n");
	flags = parse((char[]){"-v=5"});
	ck_assert_ptr_null(program_about(&flags, "the help"));
	ck_assert_uint_eq(flags.verbosity, 5);
	flags = parse(NULL);
	ck_assert_ptr_null(program_about(&flags, "the help"));
	ck_assert_str_eq(flags.logging_format, "text");
}
END_TEST

START_TEST(formats_are_text_and_json)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(program_check_format("-o", "text", &err));
	ASSERT_OK(program_check_format("-o", "json", &err));
	ASSERT_FAILS(program_check_format("-o", "JSON", &err), ERR_INVALID_ARGUMENT,
		"-o must be text or json, not \"JSON\"");
}
END_TEST

UNIT_MAIN("os/program", help_and_version_are_printed_in_place_of_running, formats_are_text_and_json)
