/* SPDX-License-Identifier: Apache-2.0 */
#include "base/prometheus.h"

#include <math.h>

#include "unit/unit.h"

static struct buf out = BUF_INIT(4096);

START_TEST(a_family_is_announced_with_help_and_type)
{
	prometheus_family(&out, "a_b", PROMETHEUS_GAUGE, "What \"it\" is:\nC:\\x.");
	prometheus_family(&out, "c_total", PROMETHEUS_COUNTER, "");
	prometheus_family(&out, "d", PROMETHEUS_HISTOGRAM, "D");
	ck_assert_str_eq(buf_str(&out), "# HELP a_b What \"it\" is:\\nC:\\\\x.\n# TYPE a_b gauge\n"
					"# HELP c_total \n# TYPE c_total counter\n"
					"# HELP d D\n# TYPE d histogram\n");
	buf_done(&out);
}
END_TEST

START_TEST(values_of_labels_are_escaped)
{
	const struct prometheus_label labels[] = {
		{"empty", ""}, {"node", "a\"b\\c\nd{},= \xc3\xa4"}, {NULL, NULL}};

	prometheus_sample(&out, "m", labels, 1);
	prometheus_sample(&out, "m", labels + 2, 2);
	prometheus_sample(&out, "m", NULL, 3);
	ck_assert_str_eq(buf_str(&out), "m{empty=\"\",node=\"a\\\"b\\\\c\\nd{},= \xc3\xa4\"} 1\nm 2\nm 3\n");
	buf_done(&out);
}
END_TEST

START_TEST(numbers_are_written_as_readers_expect)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "m 0\n"},
		{-1, "m -1\n"},
		{0.1, "m 0.1\n"},
		{2.5, "m 2.5\n"},
		{1e-9, "m 1e-09\n"},
		{1099511627776, "m 1099511627776\n"},
		{9007199254740992, "m 9007199254740992\n"},
		{1e300, "m 1e+300\n"},
		{1732190000.25, "m 1732190000.25\n"},
		{(double)INFINITY, "m +Inf\n"},
		{-(double)INFINITY, "m -Inf\n"},
		{(double)NAN, "m NaN\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		prometheus_sample(&out, "m", NULL, cases[i].value);
		ck_assert_str_eq(buf_str(&out), cases[i].text);
		buf_reset(&out);
	}
	buf_done(&out);
}
END_TEST

START_TEST(buckets_are_inclusive_and_cumulative)
{
	static const double bounds[] = {0.1, 1, 10};
	const struct prometheus_label labels[] = {{"a", "b"}, {NULL, NULL}};
	struct prometheus_histogram h = {.bounds = bounds, .n_bounds = ARRAY_SIZE(bounds)};

	prometheus_observe(&h, 0);
	prometheus_observe(&h, 0.1);
	prometheus_observe(&h, 0.5);
	prometheus_observe(&h, 10.25);
	prometheus_sample_histogram(&out, "h", labels, &h);
	ck_assert_str_eq(buf_str(&out), "h_bucket{a=\"b\",le=\"0.1\"} 2\n"
					"h_bucket{a=\"b\",le=\"1\"} 3\n"
					"h_bucket{a=\"b\",le=\"10\"} 3\n"
					"h_bucket{a=\"b\",le=\"+Inf\"} 4\n"
					"h_sum{a=\"b\"} 10.85\n"
					"h_count{a=\"b\"} 4\n");
	buf_done(&out);
}
END_TEST

START_TEST(a_histogram_needs_no_labels_and_no_bounds)
{
	struct prometheus_histogram h = {0};

	prometheus_observe(&h, 2);
	prometheus_sample_histogram(&out, "h", NULL, &h);
	ck_assert_str_eq(buf_str(&out), "h_bucket{le=\"+Inf\"} 1\nh_sum 2\nh_count 1\n");
	buf_done(&out);
}
END_TEST

UNIT_MAIN("prometheus", a_family_is_announced_with_help_and_type, values_of_labels_are_escaped,
	numbers_are_written_as_readers_expect, buckets_are_inclusive_and_cumulative,
	a_histogram_needs_no_labels_and_no_bounds)
