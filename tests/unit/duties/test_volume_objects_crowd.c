/* SPDX-License-Identifier: Apache-2.0 */
/* One node that reports as much and as often as it can, and others that want their records written. */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/volume_objects_rig.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/reports.h"

#define CROWD    500
#define MINUTE_S 60

static struct node_report *crowd_report_from(unsigned first, unsigned n, uint64_t size_bytes)
{
	struct node_report *r = report_new("evil");

	for (unsigned i = first; i < first + n; i++) {
		char name[32];
		char id[VOLUME_ID_MAX + 1];

		snprintf(name, sizeof(name), "crowd-%u", i);
		volume_id_mint(name, "evil", id);
		report_add_volume(r, id, name)->size_bytes = size_bytes;
	}
	return r;
}

static struct node_report *crowd_report(unsigned n, uint64_t size_bytes)
{
	return crowd_report_from(0, n, size_bytes);
}

/* Each second the sizes of all of them are others. */
static void change_s(unsigned seconds)
{
	for (unsigned i = 1; i <= seconds; i++) {
		rig_put_report(crowd_report(CROWD, i * DESK_GIB));
		rig_live_s(1);
	}
}

static unsigned all_requests(void)
{
	unsigned n = rig.n_reads;

	for (size_t i = 0; i <= RECORD_RELEASE; i++)
		n += rig.n_writes[i];
	return n;
}

START_TEST(a_node_that_changes_all_the_time_gets_its_share)
{
	fake_informer_sync(rig.objects);
	change_s(MINUTE_S);
	rig_serve_all();
	/* a read goes with each record that is made */
	ck_assert_uint_le(all_requests(), 2 * (VOLUME_OBJECTS_SHARE_BURST + MINUTE_S * VOLUME_OBJECTS_SHARE));
	ck_assert_uint_ge(all_requests(), VOLUME_OBJECTS_SHARE_BURST + MINUTE_S * VOLUME_OBJECTS_SHARE - 1);
}
END_TEST

START_TEST(records_of_other_nodes_are_written_meanwhile)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	fake_informer_sync(rig.objects);
	change_s(MINUTE_S);
	rig_given_out("n1");
	rig_put("n1", rig.id, PHASE_MISSING);
	change_s(3);
	v = rig_read();
	ck_assert_str_eq(v->phase, "Missing");
}
END_TEST

START_TEST(names_that_are_reported_no_more_do_not_wait)
{
	fake_informer_sync(rig.objects);
	for (unsigned i = 0; i < MINUTE_S; i++) {
		rig_put_report(crowd_report_from(i * CROWD, CROWD, DESK_GIB));
		rig_live_s(1);
	}
	rig_live_s(MINUTE_S);
	ck_assert_uint_le(volume_objects_pending(rig.duty), CROWD);
}
END_TEST

START_TEST(what_waits_is_written_as_it_is_in_the_end)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = NULL;

	rig_put("n1", rig.id, PHASE_READY);
	rig_given_out("n1");
	fake_informer_sync(rig.objects);
	rig_live_s(5);
	rig_check_served(0, 0, 0, 1, 0);
	for (unsigned i = 0; i < 1000; i++)
		bucket_charge(&rig.writes, rig.desk.now_ns);
	rig_put("n1", rig.id, PHASE_MISSING);
	ck_assert_uint_eq(volume_objects_pending(rig.duty), 1);
	rig_put("n1", rig.id, PHASE_DAMAGED);
	ck_assert_uint_eq(rig_count(), 0);
	rig_live_s(20);
	rig_check_served(0, 0, 0, 1, 0);
	v = rig_read();
	ck_assert_str_eq(v->phase, "Damaged");
}
END_TEST

START_TEST(what_follows_from_calls_does_not_wait)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("");

	v->handle = x_strdup(rig.id);
	v->deleting = true;
	rig_put("n1", NULL, 0);
	fake_informer_sync(rig.objects);
	for (unsigned i = 0; i < 1000; i++)
		bucket_charge(&rig.writes, rig.desk.now_ns);
	rig_store(v);
	rig_check_served(0, 0, 0, 0, 1);
}
END_TEST

static unsigned count_records(void)
{
	unsigned n = 0;

	for (const struct rig_object *s = rig.store; s; s = s->next)
		n++;
	return n;
}

/* Its volume that the controller has made does not count. Requests that are under way are not known yet. */
START_TEST(a_node_makes_so_many_records_by_its_reports_and_no_more)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record("evil");
	static const unsigned more = 20;
	struct node_report *honest;
	unsigned n;

	rig_store(v);
	fake_informer_sync(rig.objects);
	rig_put_report(crowd_report(RIG_REPORTED_MAX + more, DESK_GIB));
	for (unsigned i = 0; i < 2 * RIG_REPORTED_MAX / VOLUME_OBJECTS_SHARE; i++) {
		rig_pass_s(1);
		rig_serve_all();
	}
	ck_assert_uint_ge(rig.n_writes[RECORD_CREATE], RIG_REPORTED_MAX);
	ck_assert_uint_le(rig.n_writes[RECORD_CREATE], RIG_REPORTED_MAX + 8);
	n = count_records();
	ck_assert_uint_eq(n, rig.n_writes[RECORD_CREATE] + 1);
	ck_assert_uint_eq(rig.n_nodes_told, 1);
	ck_assert_ptr_nonnull(strstr(rig.reported, "evil TooManyReportedVolumes: "));
	honest = report_new("n1");
	report_add_volume(honest, "other.00000000", "other");
	rig_put_report(honest);
	rig_live_s(5);
	ck_assert_uint_eq(count_records(), n + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/volume_objects_crowd");
	TCase *tcase = tcase_create("crowd");

	suite_add_tcase(suite, tcase);
	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, rig_set_up, rig_tear_down);
	tcase_add_test(tcase, a_node_that_changes_all_the_time_gets_its_share);
	tcase_add_test(tcase, records_of_other_nodes_are_written_meanwhile);
	tcase_add_test(tcase, names_that_are_reported_no_more_do_not_wait);
	tcase_add_test(tcase, what_waits_is_written_as_it_is_in_the_end);
	tcase_add_test(tcase, what_follows_from_calls_does_not_wait);
	tcase_add_test(tcase, a_node_makes_so_many_records_by_its_reports_and_no_more);
	return unit_runner_finish(srunner_create(suite));
}
