/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "duties/create_gate.h"
#include "resources/pmem_volume.h"
#include "unit/controller/desk.h"
#include "unit/kube/fake_kube.h"
#include "volume/id.h"

#define LEASE_S ((unsigned)(DESK_LEASE_NS / NS_PER_S))
#define STALL_S ((unsigned)(CREATE_GATE_STALL_NS / NS_PER_S))
#define MAX_S   ((unsigned)(CREATE_GATE_MAX_NS / NS_PER_S))
#define LOOK_S  5
#define WAITS   "have no PmemVolume yet"

static struct desk d;
static struct kube_client *client;
static struct informer *records;
static struct create_gate *gate;

/* The controller has just started. */
static void set_up(void)
{
	desk_open(&d, /* early= */ true, /* forget_gone= */ false);
	client = fake_kube_new(/* loop= */ NULL);
	const struct create_gate_config config = {
		.client = client, .driver_name = DESK_DRIVER, .controller = d.controller};
	gate = create_gate_new(&config);
	records = fake_kube_informer(client, "pmemvolumes");
	ck_assert_ptr_nonnull(records);
}

static void tear_down(void)
{
	create_gate_free(gate);
	kube_client_free(client);
	desk_close(&d);
}

static void handle_of(unsigned number, const char *node_id, char id[static VOLUME_ID_MAX + 1])
{
	char name[32];

	snprintf(name, sizeof(name), "pvc-%u", number);
	volume_id_mint(name, node_id, id);
}

/* @node_id reports the volumes from @first_number to @last_number. */
static struct node_report *report_of(const char *node_id, unsigned first_number, unsigned last_number)
{
	struct node_report *r = report_new(node_id);

	r->lease_ms = 0;
	for (unsigned i = first_number; i <= last_number; i++) {
		char id[VOLUME_ID_MAX + 1];

		handle_of(i, node_id, id);
		report_add_volume(r, id, "pvc");
	}
	return r;
}

static void report(const char *node_id, unsigned first_number, unsigned last_number)
{
	node_table_put(d.table, report_of(node_id, first_number, last_number), d.now_ns);
}

/* The watch shows that there is a record of a volume. */
static void record(unsigned number)
{
	struct volume_key key;
	char json[256];
	char id[VOLUME_ID_MAX + 1];

	handle_of(number, "n1", id);
	key = volume_key_of_handle(id);
	snprintf(json, sizeof(json),
		"{\"metadata\":{\"name\":\"%s." DESK_DRIVER "\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}",
		key.hex);
	fake_informer_put(records, json);
}

static void pass_s(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		d.now_ns += NS_PER_S;
		create_gate_tick(gate);
	}
}

static void check_waits(const char *text)
{
	struct error *err = NULL;

	ASSERT_FAILS(create_gate_require(gate, &err), ERR_UNAVAILABLE, text);
}

static void check_goes_on(void)
{
	struct error *err = NULL;

	ASSERT_OK(create_gate_require(gate, &err));
}

START_TEST(nothing_is_made_before_the_records_are_known)
{
	report("n1", 1, 1);
	pass_s(MAX_S);
	check_waits("the PmemVolumes have not been read");
	record(1);
	fake_informer_sync(records);
	check_goes_on();
}
END_TEST

START_TEST(the_time_begins_when_the_records_are_known)
{
	report("n1", 1, 2);
	pass_s(MAX_S);
	fake_informer_sync(records);
	pass_s(1);
	check_waits("2 volumes that nodes report " WAITS);
}
END_TEST

START_TEST(nothing_is_made_before_each_reported_volume_has_a_record)
{
	ck_assert_str_eq(
		fake_informer_kind(records)->label_selector, "pmem-csi.intel.com/driver=" DESK_DRIVER);
	report("n1", 1, 3);
	record(2);
	fake_informer_sync(records);
	check_waits("2 volumes that nodes report " WAITS);
	record(1);
	pass_s(1);
	check_waits("1 volumes that nodes report " WAITS);
	record(3);
	check_goes_on();
}
END_TEST

START_TEST(a_node_that_registers_later_is_waited_for_too)
{
	fake_informer_sync(records);
	check_goes_on();
	pass_s(LEASE_S - 2);
	report("n1", 1, 1);
	check_waits(WAITS);
	pass_s(2);
	report("n2", 2, 2);
	check_waits("1 volumes");
	record(1);
	check_goes_on();
}
END_TEST

/* Without the API server for longer than a lease time. */
START_TEST(nodes_that_have_registered_before_the_records_are_known_count)
{
	report("n1", 1, 1);
	pass_s(2 * LEASE_S);
	fake_informer_sync(records);
	check_waits(WAITS);
	pass_s(1);
	check_waits(WAITS);
	record(1);
	check_goes_on();
}
END_TEST

/* A call has made it, and the watch of its record may be late. */
START_TEST(what_a_node_reports_later_is_not_waited_for)
{
	fake_informer_sync(records);
	report("n1", 1, 0);
	report("n1", 1, 1);
	check_goes_on();
}
END_TEST

START_TEST(volumes_that_get_no_record_do_not_count)
{
	struct node_report *r = report_of("n1", 1, 3);

	r->volumes[0].is_inline = true;
	r->volumes[1].phase = PHASE_ERASING;
	r->volumes[2].phase = PHASE_CREATING;
	node_table_put(d.table, r, d.now_ns);
	fake_informer_sync(records);
	check_goes_on();
}
END_TEST

START_TEST(what_is_deleted_meanwhile_or_on_a_node_that_is_gone_is_not_waited_for)
{
	report("n1", 1, 2);
	report("n2", 3, 3);
	fake_informer_sync(records);
	check_waits("3 volumes");
	report("n1", 2, 2);
	pass_s(LOOK_S);
	check_waits("2 volumes");
	node_table_end(d.table, "n2");
	pass_s(LOOK_S);
	check_waits("1 volumes");
	record(2);
	check_goes_on();
}
END_TEST

START_TEST(a_record_that_cannot_be_made_does_not_block_for_ever)
{
	report("n1", 1, 2);
	fake_informer_sync(records);
	pass_s(STALL_S - 1);
	record(1);
	pass_s(STALL_S - 1);
	check_waits("1 volumes");
	pass_s(1);
	check_goes_on();
	report("n2", 3, 3);
	check_goes_on();
}
END_TEST

START_TEST(very_many_volumes_do_not_block_for_ever)
{
	report("n1", 1, MAX_S);
	fake_informer_sync(records);
	for (unsigned i = 1; i < MAX_S; i++) {
		record(i);
		pass_s(1);
	}
	check_waits("1 volumes");
	report("n1", 1, MAX_S + 1);
	pass_s(1);
	check_goes_on();
}
END_TEST

START_TEST(nothing_is_watched_any_more_when_all_have_records)
{
	report("n1", 1, 1);
	record(1);
	fake_informer_sync(records);
	pass_s(LEASE_S - 1);
	ck_assert_ptr_nonnull(fake_kube_informer(client, "pmemvolumes"));
	pass_s(1);
	ck_assert_ptr_null(fake_kube_informer(client, "pmemvolumes"));
	check_goes_on();
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {nothing_is_made_before_the_records_are_known,
		the_time_begins_when_the_records_are_known,
		nothing_is_made_before_each_reported_volume_has_a_record,
		a_node_that_registers_later_is_waited_for_too,
		nodes_that_have_registered_before_the_records_are_known_count,
		what_a_node_reports_later_is_not_waited_for, volumes_that_get_no_record_do_not_count,
		what_is_deleted_meanwhile_or_on_a_node_that_is_gone_is_not_waited_for,
		a_record_that_cannot_be_made_does_not_block_for_ever, very_many_volumes_do_not_block_for_ever,
		nothing_is_watched_any_more_when_all_have_records};
	Suite *suite = suite_create("duties/create_gate");
	TCase *tcase = tcase_create("create_gate");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
