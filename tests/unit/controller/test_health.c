/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerListVolumeHealth and ControllerGetVolumeHealth over the reports of all nodes. */
#include "base/str.h"
#include "unit/controller/desk.h"

static struct desk d;
static struct desk_ask a;
static struct error *err;

static void set_up(void)
{
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	desk_ask_init(&a, "x");
}

static void tear_down(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static int list(int max, const char *token, Csi__V1__ControllerListVolumeHealthResponse *reply)
{
	Csi__V1__ControllerListVolumeHealthRequest q;

	csi__v1__controller_list_volume_health_request__init(&q);
	csi__v1__controller_list_volume_health_response__init(reply);
	q.max_entries = max;
	q.starting_token = arena_strdup(a.arena, token);
	return controller_list_health(d.controller, a.arena, &q, reply, &err);
}

static int get(const char *id, Csi__V1__ControllerGetVolumeHealthResponse *reply)
{
	Csi__V1__ControllerGetVolumeHealthRequest q;

	csi__v1__controller_get_volume_health_request__init(&q);
	csi__v1__controller_get_volume_health_response__init(reply);
	q.volume_id = arena_strdup(a.arena, id);
	return controller_get_health(d.controller, a.arena, &q, reply, &err);
}

/* Two nodes with a cache volume on both, on which something else is wrong, and volumes of their own. */
static void put_nodes(void)
{
	struct node_report *r1 = report_new("n1");
	struct node_report *r2 = report_new("n2");

	health_add(&report_add_volume(r1, "cache", "")->health, HEALTH_DEGRADED, HEALTH_FS_FULL, "full");
	report_add_volume(r1, "sound", "");
	report_add_volume(r1, "missing", "")->phase = PHASE_MISSING;
	struct volume_report *deleted = report_add_volume(r1, "deleted", "");
	deleted->phase = PHASE_ERASING;
	health_add(&deleted->health, HEALTH_DEGRADED, HEALTH_FS_FULL, "full");
	struct volume_report *v = report_add_volume(r2, "cache", "");
	health_add(&v->health, HEALTH_DATA_LOSS, HEALTH_MEDIA_ERROR, "at offset 7");
	health_add(&v->health, HEALTH_DEGRADED, HEALTH_FS_FULL, "full");
	report_add_volume(r2, "bad", "")->phase = PHASE_DAMAGED;
	node_table_put(d.table, r1, d.now_ns);
	node_table_put(d.table, r2, d.now_ns);
}

START_TEST(volumes_with_a_status_are_listed_once)
{
	Csi__V1__ControllerListVolumeHealthResponse page;

	put_nodes();
	ASSERT_OK(list(2, "", &page));
	ck_assert_uint_eq(page.n_entries, 2);
	ck_assert_str_eq(page.entries[0]->volume_id, "bad");
	ck_assert_str_eq(page.entries[0]->health_statuses[0]->reason, HEALTH_STATE_DAMAGED);
	ck_assert_str_eq(page.entries[1]->volume_id, "cache");
	ck_assert_uint_eq(page.entries[1]->n_health_statuses, 2);
	ASSERT_OK(list(2, page.next_token, &page));
	ck_assert_uint_eq(page.n_entries, 1);
	ck_assert_str_eq(page.entries[0]->volume_id, "missing");
	ck_assert_int_eq(
		page.entries[0]->health_statuses[0]->status, CSI__V1__VOLUME_HEALTH_ERROR_TYPE__INACCESSIBLE);
	ck_assert_str_eq(page.next_token, "");
}
END_TEST

START_TEST(health_of_a_volume_names_its_nodes)
{
	Csi__V1__ControllerGetVolumeHealthResponse r;

	put_nodes();
	ASSERT_OK(get("cache", &r));
	ck_assert_uint_eq(r.volume_health->n_health_statuses, 2);
	ck_assert_str_eq(r.volume_health->health_statuses[0]->message, "node n1: full");
	ck_assert_str_eq(r.volume_health->health_statuses[1]->message, "node n2: at offset 7");
	ASSERT_OK(get("sound", &r));
	ck_assert_str_eq(r.volume_health->volume_id, "sound");
	ck_assert_uint_eq(r.volume_health->n_health_statuses, 0);
}
END_TEST

START_TEST(volumes_that_do_not_exist_are_not_found)
{
	Csi__V1__ControllerGetVolumeHealthResponse r;

	put_nodes();
	ASSERT_FAILS(get("", &r), ERR_INVALID_ARGUMENT, "volume_id");
	ASSERT_FAILS(get("unknown", &r), ERR_NOT_FOUND, "unknown");
	ASSERT_FAILS(get("deleted", &r), ERR_NOT_FOUND, "deleted");
}
END_TEST

START_TEST(what_a_node_reported_stays_while_it_is_not_connected)
{
	Csi__V1__ControllerGetVolumeHealthResponse r;

	put_nodes();
	node_table_end(d.table, "n2");
	ASSERT_OK(get("cache", &r));
	ck_assert_uint_eq(r.volume_health->n_health_statuses, 2);
}
END_TEST

START_TEST(without_all_inventories_nothing_can_be_said)
{
	Csi__V1__ControllerListVolumeHealthResponse page;
	Csi__V1__ControllerGetVolumeHealthResponse r;
	struct node_report *starting = report_new("n3");

	starting->has_inventory = false;
	put_nodes();
	node_table_put(d.table, starting, d.now_ns);
	ASSERT_FAILS(list(0, "", &page), ERR_UNAVAILABLE, "n3");
	ASSERT_FAILS(get("unknown", &r), ERR_UNAVAILABLE, "n3");
	ASSERT_OK(get("cache", &r));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {volumes_with_a_status_are_listed_once,
		health_of_a_volume_names_its_nodes, volumes_that_do_not_exist_are_not_found,
		what_a_node_reported_stays_while_it_is_not_connected,
		without_all_inventories_nothing_can_be_said};
	Suite *suite = suite_create("controller/health");
	TCase *tcase = tcase_create("health");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
