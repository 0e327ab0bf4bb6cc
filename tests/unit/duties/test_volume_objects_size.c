/* SPDX-License-Identifier: Apache-2.0 */
/* Volumes that grow, or that were asked to. */
#include "base/clock.h"
#include "base/mem.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"

#define SETTLED_S ((unsigned)(VOLUME_OBJECTS_SETTLED_NS / NS_PER_S))
#define LOOK_S    30

static void put_size(const char *node_id, uint64_t size_bytes)
{
	struct node_report *r = report_new(node_id);

	report_add_volume(r, rig.id, RIG_NAME)->size_bytes = size_bytes;
	rig_put_report(r);
}

/* The sizes that were asked for and that the volume has. */
static void check_sizes(uint64_t asked_bytes, uint64_t size_bytes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();

	ck_assert_ptr_nonnull(v);
	ck_assert_uint_eq(v->size_bytes, asked_bytes);
	ck_assert_uint_eq(v->capacity_bytes, size_bytes);
	ck_assert_str_eq(v->phase, "Ready");
}

/* Changes the record as a replica does before it asks a node to expand the volume. */
static void ask_for(uint64_t size_bytes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();

	v->size_bytes = size_bytes;
	v->attempts++;
	rig_store(v);
}

/* A volume of 1 GiB on n1. */
static void begin_with_volume(void)
{
	put_size("n1", DESK_GIB);
	rig_given_out("n1");
	fake_informer_sync(rig.objects);
	rig_live_s(LOOK_S + 1);
	ask_for(DESK_GIB);
	rig_live_s(LOOK_S + 1);
	check_sizes(DESK_GIB, DESK_GIB);
}

START_TEST(the_size_follows_what_the_node_reports)
{
	begin_with_volume();
	ask_for(3 * DESK_GIB);
	rig_live_s(LOOK_S);
	check_sizes(3 * DESK_GIB, DESK_GIB);
	put_size("n1", 3 * DESK_GIB + 4096);
	rig_live_s(5);
	check_sizes(3 * DESK_GIB, 3 * DESK_GIB + 4096);
	rig_live_s(2 * SETTLED_S);
	check_sizes(3 * DESK_GIB, 3 * DESK_GIB + 4096);
}
END_TEST

START_TEST(a_reply_is_shown_before_the_report)
{
	begin_with_volume();
	ask_for(2 * DESK_GIB);
	node_table_note_grown(rig.desk.table, "n1", rig.id, 2 * DESK_GIB, rig.desk.now_ns);
	rig_live_s(5);
	check_sizes(2 * DESK_GIB, 2 * DESK_GIB);
}
END_TEST

START_TEST(a_growth_that_has_not_come_about_is_given_up_when_the_record_is_settled)
{
	begin_with_volume();
	ask_for(3 * DESK_GIB);
	rig_live_s(SETTLED_S - LOOK_S);
	check_sizes(3 * DESK_GIB, DESK_GIB);
	/* another attempt begins the time again */
	ask_for(3 * DESK_GIB);
	rig_live_s(SETTLED_S - LOOK_S);
	check_sizes(3 * DESK_GIB, DESK_GIB);
	rig_live_s(3 * LOOK_S);
	check_sizes(DESK_GIB, DESK_GIB);
}
END_TEST

START_TEST(the_size_that_was_asked_for_stays_while_a_node_is_silent)
{
	begin_with_volume();
	ask_for(3 * DESK_GIB);
	node_table_end(rig.desk.table, "n1");
	rig_live_s(2 * SETTLED_S);
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();
	ck_assert_uint_eq(v->size_bytes, 3 * DESK_GIB);
	/* and until it has reported since */
	put_size("n1", DESK_GIB);
	rig_live_s(3 * LOOK_S);
	check_sizes(DESK_GIB, DESK_GIB);
}
END_TEST

START_TEST(the_largest_copy_has_what_was_asked_for_and_the_smallest_is_shown)
{
	begin_with_volume();
	put_size("n2", DESK_GIB);
	rig_live_s(LOOK_S);
	ask_for(3 * DESK_GIB);
	put_size("n2", 2 * DESK_GIB);
	rig_live_s(SETTLED_S + 3 * LOOK_S);
	check_sizes(2 * DESK_GIB, DESK_GIB);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/volume_objects_size");
	TCase *tcase = tcase_create("size");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	tcase_add_test(tcase, the_size_follows_what_the_node_reports);
	tcase_add_test(tcase, a_reply_is_shown_before_the_report);
	tcase_add_test(tcase, a_growth_that_has_not_come_about_is_given_up_when_the_record_is_settled);
	tcase_add_test(tcase, the_size_that_was_asked_for_stays_while_a_node_is_silent);
	tcase_add_test(tcase, the_largest_copy_has_what_was_asked_for_and_the_smallest_is_shown);
	return unit_runner_finish(srunner_create(suite));
}
