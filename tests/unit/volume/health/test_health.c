/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"
#include "volume/health/health.h"

static struct volume_health three(void)
{
	struct volume_health h = {0};

	health_add(&h, HEALTH_DEGRADED, HEALTH_FS_FULL, "no %s", "space");
	health_add(&h, HEALTH_DATA_LOSS, HEALTH_MEDIA_ERROR, "at %d", 7);
	health_add(&h, HEALTH_INACCESSIBLE, HEALTH_FS_HANGS, "hangs");
	return h;
}

START_TEST(nothing_is_wrong_at_first)
{
	const struct volume_health h = {0};
	CLEANUP(free_charp) char *text = health_text(&h);

	ck_assert_str_eq(text, "");
	ck_assert_ptr_null(health_worst(&h));
	ck_assert_ptr_null(health_find(&h, HEALTH_FS_FULL));
}
END_TEST

START_TEST(worst_status_and_text_of_all_are_given)
{
	CLEANUP(health_done) struct volume_health h = three();
	CLEANUP(free_charp) char *text = health_text(&h);

	ck_assert_str_eq(text, "FileSystemFull: no space; MediaError: at 7; FileSystemHangs: hangs");
	ck_assert_str_eq(health_worst(&h)->reason, HEALTH_MEDIA_ERROR);
	ck_assert_str_eq(health_find(&h, HEALTH_FS_HANGS)->message, "hangs");
	ck_assert_str_eq(health_severity_name(HEALTH_DEGRADED), "degraded");
	ck_assert_str_eq(health_severity_name(HEALTH_INACCESSIBLE), "inaccessible");
	ck_assert_str_eq(health_severity_name(HEALTH_DATA_LOSS), "data-loss");
}
END_TEST

START_TEST(equal_is_what_says_the_same)
{
	CLEANUP(health_done) struct volume_health a = three();
	CLEANUP(health_done) struct volume_health b = {0};
	CLEANUP(health_done) struct volume_health severity = {0};
	CLEANUP(health_done) struct volume_health message = {0};

	ck_assert(!health_equal(&a, &b));
	health_copy(&b, &a);
	ck_assert(health_equal(&a, &b));
	health_done(&b);
	health_add(&b, HEALTH_DEGRADED, "A", "text");
	health_add(&severity, HEALTH_DATA_LOSS, "A", "text");
	health_add(&message, HEALTH_DEGRADED, "A", "other text");
	ck_assert(!health_equal(&b, &severity));
	ck_assert(!health_equal(&b, &message));
}
END_TEST

START_TEST(modules_have_a_status_of_each_kind)
{
	CLEANUP(health_done) struct volume_health h = {0};
	char first[] = "nmem0", second[] = "nmem1", third[] = "nmem2", id[] = "8089", none[] = "";
	struct dimm list[] = {
		{.name = first, .id = id, .problems = DIMM_SAVE_FAILED | DIMM_HEALTH_EVENT},
		{.name = second, .id = none, .problems = DIMM_NOT_ARMED, .rose_by = 1},
		{.name = third, .id = none, .problems = DIMM_FLUSH_FAILED, .rose_by = 1},
	};
	const struct dimms d = {list, ARRAY_SIZE(list)};
	const bool below[] = {true, true, false};
	static const bool nothing[ARRAY_SIZE(list)];

	health_add_dimms(&h, &d, nothing);
	ck_assert_uint_eq(h.n, 0);
	health_add_dimms(&h, &d, below);
	ck_assert_uint_eq(h.n, 3);
	const struct health_status *lost = health_find(&h, HEALTH_DIMM_LOST_DATA);
	const struct health_status *dirty = health_find(&h, HEALTH_DIRTY_SHUTDOWN);
	const struct health_status *others = health_find(&h, HEALTH_DIMM_DEGRADED);
	ck_assert(lost && lost->severity == HEALTH_DATA_LOSS);
	ck_assert(dirty && dirty->severity == HEALTH_DATA_LOSS);
	ck_assert(others && others->severity == HEALTH_DEGRADED);
	ck_assert_ptr_nonnull(strstr(lost->message, ": nmem0 (8089): save_fail"));
	ck_assert(str_ends(dirty->message, ": nmem1"));
	ck_assert_ptr_nonnull(strstr(others->message, "nmem0 (8089): smart_event, nmem1: not_armed"));
	ck_assert_ptr_null(strstr(lost->message, "nmem2"));
}
END_TEST

START_TEST(names_of_many_modules_are_bounded)
{
	CLEANUP(health_done) struct volume_health h = {0};
	char name[] = "nmem1000", id[] = "8089-a2-1839-00001234";
	struct dimm list[64];
	bool below[ARRAY_SIZE(list)];

	for (size_t i = 0; i < ARRAY_SIZE(list); i++) {
		list[i] = (struct dimm){.name = name, .id = id, .problems = DIMM_NOT_ARMED};
		below[i] = true;
	}
	health_add_dimms(&h, &(struct dimms){list, ARRAY_SIZE(list)}, below);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_uint_lt(strlen(h.list[0].message), HEALTH_MESSAGE_MAX);
	ck_assert_ptr_nonnull(strstr(h.list[0].message, name));
}
END_TEST

START_TEST(media_errors_are_one_status)
{
	CLEANUP(health_done) struct volume_health h = {0};
	struct media_errors e = {0};

	health_add_media_errors(&h, &e);
	ck_assert_uint_eq(h.n, 0);
	e = (struct media_errors){.list = {{4096, 512}}, .n = 1, .bytes = 512};
	health_add_media_errors(&h, &e);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_str_eq(
		h.list[0].message, "its memory cannot be read: 512 bytes at offset 4096 of the device");
	health_done(&h);
	e.is_cut = true;
	health_add_media_errors(&h, &e);
	ck_assert_ptr_nonnull(strstr(h.list[0].message, "of the device, and there may be more than"));
	health_done(&h);
	e = (struct media_errors){.list = {{4096, 512}, {8192, 512}}, .n = 2, .bytes = 1024};
	health_add_media_errors(&h, &e);
	ck_assert_uint_eq(h.n, 1);
	ck_assert_ptr_nonnull(strstr(h.list[0].message, "and further ones, 1024 bytes in all"));
}
END_TEST

START_TEST(number_of_statuses_is_limited)
{
	CLEANUP(health_done) struct volume_health h = {0};

	for (int i = 0; i < 2 * HEALTH_STATUSES_MAX; i++)
		health_add(&h, HEALTH_DEGRADED, "A", "%d", i);
	ck_assert_uint_eq(h.n, HEALTH_STATUSES_MAX);
}
END_TEST

UNIT_MAIN("volume/health", nothing_is_wrong_at_first, worst_status_and_text_of_all_are_given,
	equal_is_what_says_the_same, media_errors_are_one_status, modules_have_a_status_of_each_kind,
	names_of_many_modules_are_bounded, number_of_statuses_is_limited)
