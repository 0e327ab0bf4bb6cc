/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <signal.h>

#include "base/error.h"
#include "unit/unit.h"

START_TEST(set_formats_the_message_and_returns_minus_one)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(err_set(&err, ERR_NOT_FOUND, "volume %s of %d", "a", 3), -1);
	ck_assert_int_eq(err->code, ERR_NOT_FOUND);
	ck_assert_int_eq(err->os_errno, 0);
	ck_assert_str_eq(err->msg, "volume a of 3");
}
END_TEST

START_TEST(messages_are_one_line_whatever_they_quote)
{
	CLEANUP(error_freep) struct error *err = NULL;

	err_set(&err, ERR_INTERNAL, "lvs said \"%s\"", "one\ntwo\x1b");
	ck_assert_str_eq(err->msg, "lvs said \"one two?\"");
	err_wrap(&err, "volume %s", "\xff");
	ck_assert_str_eq(err->msg, "volume ?: lvs said \"one two?\"");
}
END_TEST

START_TEST(set_errno_appends_the_system_message_and_keeps_the_number)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(err_set_errno(&err, ERR_PERMISSION, EACCES, "open %s", "/x"), -1);
	ck_assert_int_eq(err->code, ERR_PERMISSION);
	ck_assert_int_eq(err->os_errno, EACCES);
	ck_assert_str_eq(err->msg, "open /x: Permission denied");
}
END_TEST

START_TEST(wrap_keeps_code_and_errno_and_prepends_context)
{
	CLEANUP(error_freep) struct error *err = NULL;

	err_set_errno(&err, ERR_EXHAUSTED, ENOSPC, "write");
	ck_assert_int_eq(err_wrap(&err, "volume %d", 7), -1);
	ck_assert_int_eq(err_wrap(&err, "100%% sure"), -1);
	ck_assert_int_eq(err->code, ERR_EXHAUSTED);
	ck_assert_int_eq(err->os_errno, ENOSPC);
	ck_assert_str_eq(err->msg, "100% sure: volume 7: write: No space left on device");
}
END_TEST

START_TEST(recode_changes_the_code_alone)
{
	CLEANUP(error_freep) struct error *err = NULL;

	err_set_errno(&err, ERR_INTERNAL, EIO, "read");
	ck_assert_int_eq(err_recode(&err, ERR_UNAVAILABLE), -1);
	ck_assert_int_eq(err->code, ERR_UNAVAILABLE);
	ck_assert_int_eq(err->os_errno, EIO);
	ck_assert_str_eq(err->msg, "read: Input/output error");
}
END_TEST

START_TEST(clear_allows_the_next_error)
{
	CLEANUP(error_freep) struct error *err = NULL;

	err_set(&err, ERR_INTERNAL, "first");
	error_clear(&err);
	ck_assert_ptr_null(err);
	error_clear(&err);
	err_set(&err, ERR_ABORTED, "second");
	ck_assert_str_eq(err->msg, "second");
}
END_TEST

START_TEST(code_names_are_those_of_grpc)
{
	static const char *const names[] = {"UNKNOWN", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT",
		"DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED",
		"FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE",
		"UNKNOWN", "UNAUTHENTICATED", "UNKNOWN"};

	for (unsigned code = 0; code < ARRAY_SIZE(names); code++)
		ck_assert_str_eq(err_code_name((enum err_code)code), names[code]);
}
END_TEST

START_TEST(setting_over_a_pending_error_aborts)
{
	struct error *err = NULL;

	err_set(&err, ERR_INTERNAL, "first");
	err_set(&err, ERR_INTERNAL, "second");
}
END_TEST

START_TEST(wrapping_nothing_aborts)
{
	struct error *err = NULL;

	err_wrap(&err, "context");
}
END_TEST

START_TEST(recoding_nothing_aborts)
{
	struct error *err = NULL;

	err_recode(&err, ERR_UNAVAILABLE);
}
END_TEST

START_TEST(setting_without_a_place_aborts)
{
	err_set(NULL, ERR_INTERNAL, "not looked at");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("base/error");
	TCase *tcase = tcase_create("error");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, set_formats_the_message_and_returns_minus_one);
	tcase_add_test(tcase, set_errno_appends_the_system_message_and_keeps_the_number);
	tcase_add_test(tcase, messages_are_one_line_whatever_they_quote);
	tcase_add_test(tcase, wrap_keeps_code_and_errno_and_prepends_context);
	tcase_add_test(tcase, recode_changes_the_code_alone);
	tcase_add_test(tcase, clear_allows_the_next_error);
	tcase_add_test(tcase, code_names_are_those_of_grpc);
	tcase_add_test_raise_signal(tcase, setting_over_a_pending_error_aborts, SIGABRT);
	tcase_add_test_raise_signal(tcase, wrapping_nothing_aborts, SIGABRT);
	tcase_add_test_raise_signal(tcase, recoding_nothing_aborts, SIGABRT);
	tcase_add_test_raise_signal(tcase, setting_without_a_place_aborts, SIGABRT);
	return unit_runner_finish(srunner_create(suite));
}
