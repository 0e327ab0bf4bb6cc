/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "base/str.h"
#include "pmem/lvm/lvm.h"
#include "unit/unit.h"

#define GROUP_0                                                                                              \
	"\"vg_name\":\"v0\",\"vg_uuid\":\"5c284p-OhLM\",\"vg_size\":\"2109734912\",\"vg_free\":"             \
	"\"1027604480\","                                                                                    \
	"\"vg_extent_size\":\"4194304\",\"vg_missing_pv_count\":\"0\""
#define GROUP_1                                                                                              \
	"\"vg_name\":\"v1\",\"vg_uuid\":\"mtHvUL-W0Gi\",\"vg_size\":\"4219469824\",\"vg_free\":"             \
	"\"4219469824\","                                                                                    \
	"\"vg_extent_size\":\"4194304\",\"vg_missing_pv_count\":\"1\""
#define NO_VOLUME                                                                                            \
	"\"lv_name\":\"\",\"lv_path\":\"/dev/v0/\",\"lv_tags\":\"\",\"lv_size\":\"0\",\"lv_active\":\"\""
#define VOLUME(name, tags, active)                                                                           \
	"\"lv_name\":\"" name "\",\"lv_path\":\"/dev/v0/" name "\",\"lv_tags\":\"" tags                      \
	"\",\"lv_size\":\"16777216\",\"lv_active\":\"" active "\""
#define PV(path, missing) "\"pv_name\":\"" path "\",\"pv_size\":\"2109734912\",\"pv_missing\":\"" missing "\""

#define REPORT(rows) "{\"report\":[{\"pv\":[" rows "]}]}"

static struct lvm_report *parse(const char *json)
{
	struct lvm_report *r = x_calloc(1, sizeof(*r));
	struct error *err = NULL;

	ASSERT_OK(lvm_report_parse(span_of(json), r, &err));
	return r;
}

static void assert_refused(const char *json, const char *text)
{
	CLEANUP(lvm_report_freep) struct lvm_report *r = x_calloc(1, sizeof(*r));
	struct error *err = NULL;

	ASSERT_FAILS(lvm_report_parse(span_of(json), r, &err), ERR_INVALID_ARGUMENT, text);
}

START_TEST(each_thing_is_there_once_however_many_rows_it_has)
{
	CLEANUP(lvm_report_freep)
	struct lvm_report *r = parse(REPORT("{" PV("/dev/pmem0", "") "," GROUP_0 "," VOLUME("vol-b", "",
		"active") "},"
			  "{" PV("/dev/pmem0",
				  "") "," GROUP_0 "," NO_VOLUME "},"
				      "{" PV("/dev/pmem0", "") "," GROUP_0 "," VOLUME("vol-a", "x,some/tag",
					      "") "},"
						  "{" PV("/dev/pmem0", "") "," GROUP_0 "," VOLUME(
							  "vol-b", "", "active") "}"));

	ck_assert_uint_eq(r->n_pvs, 1);
	ck_assert_str_eq(r->pvs[0].path, "/dev/pmem0");
	ck_assert_str_eq(r->pvs[0].vg_name, "v0");
	ck_assert_uint_eq(r->pvs[0].size_bytes, 2109734912);
	ck_assert_uint_eq(r->n_vgs, 1);
	ck_assert_str_eq(r->vgs[0].uuid, "5c284p-OhLM");
	ck_assert_uint_eq(r->vgs[0].free_bytes, 1027604480);
	ck_assert_uint_eq(r->vgs[0].extent_bytes, 4194304);
	ck_assert_uint_eq(r->n_lvs, 2);
	ck_assert_str_eq(r->lvs[0].name, "vol-a");
	ck_assert(!r->lvs[0].active);
	ck_assert_uint_eq(strv_len(r->lvs[0].tags), 2);
	ck_assert_str_eq(r->lvs[0].tags[1], "some/tag");
	ck_assert_str_eq(r->lvs[1].name, "vol-b");
	ck_assert(r->lvs[1].active);
	ck_assert_str_eq(r->lvs[1].path, "/dev/v0/vol-b");
	ck_assert_ptr_null(r->lvs[1].tags);
}
END_TEST

START_TEST(groups_without_volumes_and_pvs_without_group_are_there)
{
	CLEANUP(lvm_report_freep)
	struct lvm_report *r =
		parse(REPORT("{" PV("/dev/pmem0", "") "," GROUP_0 "," NO_VOLUME "},{" PV("/dev/pmem1.1",
			"") ",\"vg_name\":\"\",\"vg_uuid\":\"\",\"vg_size\":\"0\",\"vg_free\":\"0\"}"));

	ck_assert_uint_eq(r->n_vgs, 1);
	ck_assert_uint_eq(r->n_lvs, 0);
	ck_assert_uint_eq(r->n_pvs, 2);
	ck_assert_str_eq(r->pvs[1].path, "/dev/pmem1.1");
	ck_assert_str_eq(r->pvs[1].vg_uuid, "");
}
END_TEST

START_TEST(missing_pv_counts_and_is_marked)
{
	CLEANUP(lvm_report_freep)
	struct lvm_report *r = parse(REPORT("{" PV(
		"/dev/pmem0", "") "," GROUP_1 "," NO_VOLUME "},"
				  "{" PV("[unknown]", "missing") "," GROUP_1 "," VOLUME("vol", "", "") "}"));

	ck_assert_uint_eq(r->vgs[0].missing_pvs, 1);
	ck_assert_uint_eq(r->n_pvs, 2);
	ck_assert(!r->pvs[0].missing);
	ck_assert(r->pvs[1].missing);
	ck_assert_uint_eq(r->n_lvs, 1);
}
END_TEST

START_TEST(same_name_in_two_groups_is_two_volumes)
{
	CLEANUP(lvm_report_freep)
	struct lvm_report *r = parse(REPORT("{" PV("/dev/pmem0", "") "," GROUP_0 "," VOLUME(
		"vol", "", "") "},"
			       "{" PV("/dev/pmem1", "") "," GROUP_1 "," VOLUME("vol", "", "") "}"));

	ck_assert_uint_eq(r->n_lvs, 2);
	ck_assert_str_ne(r->lvs[0].vg_uuid, r->lvs[1].vg_uuid);
}
END_TEST

START_TEST(parts_that_lvm_hides_are_no_volumes)
{
	CLEANUP(lvm_report_freep)
	struct lvm_report *r =
		parse(REPORT("{" PV("/dev/pmem0", "") "," GROUP_0 "," VOLUME("[pool_tdata]", "", "") "}"));

	ck_assert_uint_eq(r->n_lvs, 0);
}
END_TEST

START_TEST(what_is_not_known_is_skipped)
{
	CLEANUP(lvm_report_freep)
	struct lvm_report *r = parse(
		"{\"new\":{\"a\":[1]},\"report\":[{\"vg\":[{" GROUP_0 ",\"x\":\"y\",\"z\":{\"k\":[null]}}],"
		"\"seg\":[{\"seg_start\":\"0\"}]}],\"log\":[{\"log_type\":\"status\"}]}");

	ck_assert_uint_eq(r->n_vgs, 1);
	ck_assert_uint_eq(r->n_pvs, 0);
}
END_TEST

START_TEST(malformed_reports_are_refused)
{
	assert_refused("", "JSON");
	assert_refused("lvm> ", "");
	assert_refused("[]", "");
	assert_refused("{\"report\":{}}", "");
	assert_refused("{\"report\":[\"pv\"]}", "no rows");
	assert_refused("{\"report\":[{\"pv\":{}}]}", "");
	assert_refused("{\"report\":[{\"pv\":[\"x\"]}]}", "is not an object");
	assert_refused("{\"report\":[{\"pv\":[", "");
	assert_refused("{\"report\":[]} {}", "");
	assert_refused(REPORT("{\"pv_name\":\"/dev/pmem0\",\"pv_size\":\"1.9g\"}"), "pv_size");
	assert_refused(REPORT("{\"vg_name\":\"v\",\"vg_free\":\"-1\"}"), "vg_free");
	assert_refused(REPORT("{\"vg_name\":\"v\",\"vg_extent_size\":\"\"}"), "vg_extent_size");
	assert_refused(REPORT("{\"lv_name\":\"l\",\"lv_size\":\"99999999999999999999\"}"), "lv_size");
}
END_TEST

START_TEST(what_was_read_before_a_mistake_stays_consistent)
{
	CLEANUP(lvm_report_freep) struct lvm_report *r = x_calloc(1, sizeof(*r));
	struct error *err = NULL;

	ASSERT_FAILS(lvm_report_parse(span_of(REPORT("{" GROUP_0 "},{" GROUP_0
						     "},{\"vg_name\":\"x\",\"vg_size\":\"?\"}")),
			     r, &err),
		ERR_INVALID_ARGUMENT, "vg_size");
	ck_assert_uint_eq(r->n_vgs, 1);
}
END_TEST

#define STATUS(code)    "{\"log_type\":\"status\",\"log_message\":\"?\",\"log_ret_code\":\"" code "\"}"
#define LOG_ERROR(text) "{\"log_type\":\"error\",\"log_message\":\"" text "\",\"log_ret_code\":\"0\"}"

static int check_answer(const char *json, struct error **err)
{
	return lvm_answer_check(span_of(json), err);
}

START_TEST(last_status_decides)
{
	struct error *err = NULL;

	ASSERT_OK(check_answer("{\"report\":[],\"log\":[" STATUS("1") "]}", &err));
	ASSERT_OK(check_answer("{\"log\":[" STATUS("5") "," LOG_ERROR("x") "," STATUS("1") "]}", &err));
	ASSERT_FAILS(check_answer("{\"log\":[" STATUS("1") "," STATUS("5") "]}", &err), ERR_INTERNAL,
		"no message");
	ASSERT_FAILS(
		check_answer(
			"{\"log\":[" LOG_ERROR("no space") "," LOG_ERROR("bye") "," STATUS("5") "]}", &err),
		ERR_INTERNAL, "no space; bye");
}
END_TEST

START_TEST(answer_without_status_is_none)
{
	struct error *err = NULL;

	ASSERT_FAILS(check_answer("{\"report\":[]}", &err), ERR_UNAVAILABLE, "does not say");
	ASSERT_FAILS(check_answer("{\"log\":[" LOG_ERROR("x") "]}", &err), ERR_UNAVAILABLE, "does not say");
	ASSERT_FAILS(check_answer("{\"log\":7}", &err), ERR_UNAVAILABLE, "answer of");
	ASSERT_FAILS(check_answer("lvm> {}", &err), ERR_UNAVAILABLE, "answer of");
}
END_TEST

START_TEST(ranges_are_read_one_by_one)
{
	CLEANUP(strv_freep) char **ranges = NULL;
	struct error *err = NULL;

	ASSERT_OK(lvm_ranges_parse(
		span_of("{\"report\":[{\"seg\":[{\"seg_pe_ranges\":\" /dev/a:0-1  /dev/b:5-9 \"},"
			"{\"seg_pe_ranges\":\"\"},{\"seg_pe_ranges\":\"/dev/a:2-3\"}]}]}"),
		&ranges, &err));
	ck_assert_uint_eq(strv_len(ranges), 3);
	ck_assert_str_eq(ranges[0], "/dev/a:0-1");
	ck_assert_str_eq(ranges[1], "/dev/b:5-9");
	ck_assert_str_eq(ranges[2], "/dev/a:2-3");
}
END_TEST

UNIT_MAIN("lvm_report", each_thing_is_there_once_however_many_rows_it_has,
	groups_without_volumes_and_pvs_without_group_are_there, missing_pv_counts_and_is_marked,
	same_name_in_two_groups_is_two_volumes, parts_that_lvm_hides_are_no_volumes,
	what_is_not_known_is_skipped, malformed_reports_are_refused,
	what_was_read_before_a_mistake_stays_consistent, last_status_decides, answer_without_status_is_none,
	ranges_are_read_one_by_one)
