/* SPDX-License-Identifier: Apache-2.0 */
/* The health calls of CSI 1.13 on a node. */
#include "csi/csi_health.h"

#include "base/mem.h"
#include "unit/csi/harness.h"
#include "unit/unit.h"

#define N_MANY 1000

static struct harness h;
static struct error *err;

static void set_up(void)
{
	harness_open(&h, /* start= */ true);
}

static void tear_down(void)
{
	harness_close(&h);
}

static struct health_table make_table(size_t n)
{
	struct health_table t = {0};

	for (size_t i = 0; i < n; i++) {
		CLEANUP(free_charp) char *id = x_asprintf("v%04zu", n - i);
		struct volume_health one = {0};

		health_add(&one, HEALTH_DEGRADED, "Reason", "text");
		health_table_add(&t, id, &one);
	}
	health_table_sort(&t);
	return t;
}

static Csi__V1__ControllerListVolumeHealthResponse page(
	const struct health_table *t, int max, const char *token)
{
	Csi__V1__ControllerListVolumeHealthRequest q;
	csi__v1__controller_list_volume_health_request__init(&q);
	Csi__V1__ControllerListVolumeHealthResponse r;
	csi__v1__controller_list_volume_health_response__init(&r);

	q.max_entries = max;
	q.starting_token = arena_strdup(h.arena, token);
	ASSERT_OK(csi_fill_health_page(&q, t, &r, h.arena, &err));
	return r;
}

START_TEST(pages_have_all_in_order)
{
	CLEANUP(health_table_done) struct health_table t = make_table(5);
	Csi__V1__ControllerListVolumeHealthResponse r = page(&t, 2, "");

	ck_assert_uint_eq(r.n_entries, 2);
	ck_assert_str_eq(r.entries[0]->volume_id, "v0001");
	ck_assert_uint_eq(r.entries[0]->n_health_statuses, 1);
	ck_assert_int_eq(
		r.entries[0]->health_statuses[0]->status, CSI__V1__VOLUME_HEALTH_ERROR_TYPE__DEGRADED);
	ck_assert_str_eq(r.entries[0]->health_statuses[0]->reason, "Reason");
	ck_assert_str_eq(r.entries[0]->health_statuses[0]->message, "text");
	r = page(&t, 2, r.next_token);
	ck_assert_str_eq(r.entries[1]->volume_id, "v0004");
	r = page(&t, 2, r.next_token);
	ck_assert_uint_eq(r.n_entries, 1);
	ck_assert_str_eq(r.entries[0]->volume_id, "v0005");
	ck_assert_str_eq(r.next_token, "");
}
END_TEST

START_TEST(pages_are_limited)
{
	CLEANUP(health_table_done) struct health_table t = make_table(N_MANY);
	Csi__V1__ControllerListVolumeHealthResponse r = page(&t, 0, "");
	size_t n = r.n_entries;

	ck_assert_uint_eq(n, 256);
	while (*r.next_token) {
		r = page(&t, 0, r.next_token);
		n += r.n_entries;
	}
	ck_assert_uint_eq(n, N_MANY);
}
END_TEST

START_TEST(bad_tokens_and_numbers_are_refused)
{
	CLEANUP(health_table_done) struct health_table t = make_table(1);
	Csi__V1__ControllerListVolumeHealthRequest q;
	csi__v1__controller_list_volume_health_request__init(&q);
	Csi__V1__ControllerListVolumeHealthResponse r;
	csi__v1__controller_list_volume_health_response__init(&r);

	q.max_entries = -1;
	ASSERT_FAILS(csi_fill_health_page(&q, &t, &r, h.arena, &err), ERR_INVALID_ARGUMENT, "max_entries");
	q.max_entries = 0;
	q.starting_token = arena_strdup(h.arena, "invalid");
	ASSERT_FAILS(csi_fill_health_page(&q, &t, &r, h.arena, &err), ERR_ABORTED, "starting_token");
}
END_TEST

START_TEST(sound_volume_has_no_status_and_an_unknown_one_is_not_found)
{
	Csi__V1__NodeGetVolumeHealthRequest nq;
	csi__v1__node_get_volume_health_request__init(&nq);
	Csi__V1__ControllerGetVolumeHealthRequest cq;
	csi__v1__controller_get_volume_health_request__init(&cq);
	Csi__V1__Volume *volume = NULL;
	void *reply;

	ASSERT_OK(harness_create(&h, "pvc-1", 1 << 20, &volume, &err));
	nq.volume_id = cq.volume_id = volume->volume_id;
	ASSERT_OK(harness_call(&h, "/csi.v1.Node/NodeGetVolumeHealth", &nq, &reply, &err));
	Csi__V1__NodeGetVolumeHealthResponse *n = reply;
	ck_assert_str_eq(n->volume_health->volume_id, volume->volume_id);
	ck_assert_uint_eq(n->volume_health->n_health_statuses, 0);
	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ControllerGetVolumeHealth", &cq, &reply, &err));
	Csi__V1__ControllerGetVolumeHealthResponse *c = reply;
	ck_assert_uint_eq(c->volume_health->n_health_statuses, 0);
	cq.volume_id = nq.volume_id = arena_strdup(h.arena, "unknown");
	ASSERT_FAILS(harness_call(&h, "/csi.v1.Node/NodeGetVolumeHealth", &nq, &reply, &err), ERR_NOT_FOUND,
		"unknown");
	ASSERT_FAILS(harness_call(&h, "/csi.v1.Controller/ControllerGetVolumeHealth", &cq, &reply, &err),
		ERR_NOT_FOUND, "unknown");
}
END_TEST

START_TEST(node_without_trouble_lists_nothing)
{
	Csi__V1__ControllerListVolumeHealthRequest lq;
	csi__v1__controller_list_volume_health_request__init(&lq);
	Csi__V1__NodeGetStorageHealthRequest sq;
	csi__v1__node_get_storage_health_request__init(&sq);
	void *reply;

	ASSERT_OK(harness_call(&h, "/csi.v1.Controller/ControllerListVolumeHealth", &lq, &reply, &err));
	ck_assert_uint_eq(((Csi__V1__ControllerListVolumeHealthResponse *)reply)->n_entries, 0);
	ASSERT_OK(harness_call(&h, "/csi.v1.Node/NodeGetStorageHealth", &sq, &reply, &err));
	ck_assert_uint_eq(((Csi__V1__NodeGetStorageHealthResponse *)reply)->n_backend_health, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {pages_have_all_in_order, pages_are_limited,
		bad_tokens_and_numbers_are_refused,
		sound_volume_has_no_status_and_an_unknown_one_is_not_found,
		node_without_trouble_lists_nothing};
	Suite *suite = suite_create("csi/csi_health");
	TCase *tcase = tcase_create("csi_health");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
