/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/copies/copy_reports.h"

#include <stdio.h>

#include "base/mem.h"
#include "unit/unit.h"

#define TOTAL 1000
#define BEGUN (5 * NS_PER_S)

static struct copy_reports reports;
static struct copy_progress progress;

static void begin(void)
{
	reports = (struct copy_reports){0};
	copy_reports_begin(&reports, &progress, "id", TOTAL, BEGUN);
}

static void assert_shows(uint64_t done_bytes, uint64_t total_bytes)
{
	struct volume_filling f = copy_reports_progress(&reports, "id");

	ck_assert_uint_eq(f.done_bytes, done_bytes);
	ck_assert_uint_eq(f.total_bytes, total_bytes);
}

START_TEST(short_copy_shows_nothing)
{
	begin();
	assert_shows(0, 0);
	for (uint64_t done = 0; done <= TOTAL; done++)
		ck_assert(!copy_reports_advance(&progress, done, BEGUN + COPY_REPORT_NS - 1));
	assert_shows(0, 0);
	copy_reports_end(&progress);
}
END_TEST

/* A copy in @seconds, in pieces of a thousandth. Return: how often something new was shown. */
static unsigned count_reports(uint64_t seconds)
{
	uint64_t last_ns = BEGUN;
	uint64_t last = 0;
	unsigned n = 0;

	begin();
	for (uint64_t done = 1; done <= TOTAL; done++) {
		uint64_t now_ns = BEGUN + done * seconds * NS_PER_S / TOTAL;

		if (!copy_reports_advance(&progress, done, now_ns))
			continue;
		ck_assert_uint_ge(now_ns - last_ns, COPY_REPORT_NS);
		ck_assert(n == 0 || done - last >= TOTAL / 10);
		assert_shows(done, TOTAL);
		last_ns = now_ns;
		last = done;
		n++;
	}
	copy_reports_end(&progress);
	return n;
}

START_TEST(fast_copies_are_shown_by_time_and_slow_ones_by_tenths)
{
	ck_assert_uint_eq(count_reports(9), 0);
	ck_assert_uint_eq(count_reports(35), 3);
	ck_assert_uint_eq(count_reports(100), 10);
	ck_assert_uint_eq(count_reports(1000), 10);
	ck_assert_uint_eq(count_reports(100000), 10);
}
END_TEST

/* The part that is copied to find out how fast that is, is copied again. */
START_TEST(progress_never_goes_back)
{
	begin();
	ck_assert(copy_reports_advance(&progress, 500, BEGUN + 10 * NS_PER_S));
	ck_assert(!copy_reports_advance(&progress, 0, BEGUN + 20 * NS_PER_S));
	ck_assert(!copy_reports_advance(&progress, 500, BEGUN + 30 * NS_PER_S));
	assert_shows(500, TOTAL);
	ck_assert(copy_reports_advance(&progress, TOTAL + 1, BEGUN + 40 * NS_PER_S));
	assert_shows(TOTAL, TOTAL);
	copy_reports_end(&progress);
	assert_shows(0, 0);
}
END_TEST

START_TEST(each_copy_has_its_own_progress)
{
	struct copy_progress other;

	begin();
	copy_reports_begin(&reports, &other, "other", 10, BEGUN);
	ck_assert(copy_reports_advance(&other, 7, BEGUN + COPY_REPORT_NS));
	assert_shows(0, 0);
	ck_assert_uint_eq(copy_reports_progress(&reports, "other").done_bytes, 7);
	copy_reports_end(&progress);
	ck_assert_uint_eq(copy_reports_progress(&reports, "other").done_bytes, 7);
	copy_reports_end(&other);
}
END_TEST

static struct volume_pause pause_of(const char *id)
{
	struct volume_report list[] = {
		{.id = (char[]){"a"}}, {.id = (char *)(uintptr_t)id}, {.id = (char[]){"z"}}};

	copy_reports_add_pauses(&reports, list, ARRAY_SIZE(list));
	ck_assert_uint_eq(list[0].pause.ended_ms, 0);
	ck_assert_uint_eq(list[2].pause.ended_ms, 0);
	return list[1].pause;
}

START_TEST(last_pause_of_a_volume_counts)
{
	reports = (struct copy_reports){0};
	copy_reports_pause(&reports, "m", 3 * NS_PER_MS + 1, 70);
	copy_reports_pause(&reports, "n", NS_PER_MS, 80);
	ck_assert_uint_eq(pause_of("m").ms, 4);
	ck_assert_uint_eq(pause_of("m").ended_ms, 70);
	ck_assert_uint_eq(pause_of("n").ended_ms, 80);
	ck_assert_uint_eq(pause_of("o").ended_ms, 0);
	/* the clock was set back */
	copy_reports_pause(&reports, "m", 5 * NS_PER_MS, 6);
	ck_assert_uint_eq(pause_of("m").ms, 5);
	ck_assert_uint_eq(pause_of("m").ended_ms, 81);
	copy_reports_done(&reports);
}
END_TEST

START_TEST(oldest_pauses_are_forgotten)
{
	char id[8];

	reports = (struct copy_reports){0};
	for (unsigned i = 0; i <= COPY_PAUSES_MAX; i++) {
		snprintf(id, sizeof(id), "m%03u", i);
		copy_reports_pause(&reports, id, NS_PER_MS, 100 + i);
		/* used again, so that it is not the oldest one */
		copy_reports_pause(&reports, "m000", NS_PER_MS, 100 + i);
	}
	ck_assert_uint_gt(pause_of("m000").ended_ms, 0);
	ck_assert_uint_eq(pause_of("m001").ended_ms, 0);
	ck_assert_uint_gt(pause_of("m002").ended_ms, 0);
	ck_assert_uint_gt(pause_of(id).ended_ms, 0);
	copy_reports_done(&reports);
}
END_TEST

UNIT_MAIN("volume/copy_reports", short_copy_shows_nothing,
	fast_copies_are_shown_by_time_and_slow_ones_by_tenths, progress_never_goes_back,
	each_copy_has_its_own_progress, last_pause_of_a_volume_counts, oldest_pauses_are_forgotten)
