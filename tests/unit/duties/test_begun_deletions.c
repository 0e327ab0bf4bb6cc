/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/begun_deletions.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NAME      "pvc-6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3b21"
#define MINUTE_NS (60 * NS_PER_S)
#define AFTER_MIN ((unsigned)(BEGUN_DELETIONS_AFTER_NS / MINUTE_NS))

static struct desk d;
static struct begun_deletions *b;
static struct claim_state state; /* what look-ups find */
static claim_lookup_fn look_fn;  /* NULL: none waits */
static void *look_user;
static unsigned n_looks;
static unsigned n_done;
static unsigned n_failed;
static char id[VOLUME_ID_MAX + 1];
static unsigned n_hanging; /* volumes of the node n1, besides the one of NAME */

static void look(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user)
{
	(void)self;
	ck_assert_str_eq(volume_name, NAME);
	ck_assert_str_eq(handle, id);
	ck_assert(!look_fn);
	look_fn = fn;
	look_user = user;
	n_looks++;
}

static void ended(void *user, const char *handle, const struct error *error)
{
	(void)user;
	ck_assert(n_hanging > 0 || str_eq(handle, id));
	if (error)
		n_failed++;
	else
		n_done++;
}

static char *hanging_name(unsigned i)
{
	return x_asprintf("pvc-6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3c%02u", i);
}

static void each_record(void *self, void (*fn)(void *user, const struct pmem_volume *record), void *user)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = desk_record(&d, NAME);

	(void)self;
	if (record)
		fn(user, record);
	for (unsigned i = 0; i < n_hanging; i++) {
		CLEANUP(free_charp) char *name = hanging_name(i);
		CLEANUP(pmem_volume_freep) struct pmem_volume *v = desk_record(&d, name);

		fn(user, v);
	}
}

static void put_record_of(const char *name, const char *node_id, bool deleting, bool snapshot)
{
	struct volume_key key = volume_key_of_name(name);
	struct pmem_volume *v = pmem_volume_new(key.hex, DESK_DRIVER);
	char handle[VOLUME_ID_MAX + 1];

	volume_id_mint(name, node_id, handle);
	v->volume_name = x_strdup(name);
	v->handle = x_strdup(handle);
	v->snapshot = snapshot;
	pmem_volume_add_node(v, node_id);
	desk_put_record(&d, RECORD_CREATE, v);
	v = desk_record(&d, name);
	v->deleting = deleting;
	if (deleting)
		desk_put_record(&d, RECORD_SPEC, v);
	else
		pmem_volume_free(v);
}

static void put_record(bool deleting, bool snapshot)
{
	put_record_of(NAME, "n1", deleting, snapshot);
}

static void put_node(bool snapshot)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, id, NAME)->snapshot = snapshot;
	r->lease_ms = UINT32_MAX;
	node_table_put(d.table, r, d.now_ns);
}

static void look_at_once(
	void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user)
{
	(void)self;
	(void)volume_name;
	(void)handle;
	fn(user, &state, NULL);
}

static void set_up(void)
{
	n_looks = n_done = n_failed = n_hanging = 0;
	look_fn = NULL;
	state = (struct claim_state){0};
	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	volume_id_mint(NAME, "n1", id);
	const struct begun_deletions_config config = {.controller = d.controller,
		.records = {each_record, NULL},
		.lookup = {look, NULL},
		.ended = ended};
	b = begun_deletions_new(&config);
}

static void tear_down(void)
{
	begun_deletions_free(b);
	desk_close(&d);
}

static void answer_look(void)
{
	claim_lookup_fn fn = look_fn;

	look_fn = NULL;
	if (fn)
		fn(look_user, &state, NULL);
}

static void pass_min(unsigned minutes)
{
	for (unsigned i = 0; i < minutes; i++) {
		d.now_ns += MINUTE_NS;
		begun_deletions_tick(b, d.now_ns);
		answer_look();
	}
}

START_TEST(a_deletion_is_finished_when_its_node_is_back)
{
	put_record(/* deleting= */ true, /* snapshot= */ false);
	pass_min(3 * AFTER_MIN);
	ck_assert_uint_eq(d.n_calls, 0);
	put_node(/* snapshot= */ false);
	pass_min(AFTER_MIN - 1);
	ck_assert_uint_eq(n_looks, 2);
	ck_assert_uint_eq(d.n_calls, 0);
	pass_min(6);
	ck_assert_uint_eq(d.n_calls, 1);
	ck_assert_str_eq(desk_last(&d, "n1")->delete_request->volume_id, id);
	desk_deleted(desk_last(&d, "n1"));
	ck_assert_uint_eq(n_done, 1);
	desk_check_nodes(&d, NAME, "");
	pass_min(60);
	ck_assert_uint_eq(d.n_calls, 1);
}
END_TEST

START_TEST(callers_have_time_to_repeat_their_call)
{
	put_record(/* deleting= */ true, /* snapshot= */ false);
	put_node(/* snapshot= */ false);
	pass_min(AFTER_MIN);
	ck_assert_uint_eq(n_looks + d.n_calls, 0);
	pass_min(AFTER_MIN + 6);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_deleted(desk_last(&d, "n1"));
}
END_TEST

START_TEST(nothing_is_deleted_that_no_call_has_begun_to_delete)
{
	put_record(/* deleting= */ false, /* snapshot= */ false);
	put_node(/* snapshot= */ false);
	pass_min(300);
	ck_assert_uint_eq(n_looks + d.n_calls, 0);
}
END_TEST

START_TEST(what_a_volume_or_claim_refers_to_is_left_to_callers)
{
	state = (struct claim_state){.has_volume = _i == 0, .is_referenced = _i == 1, .has_claim = _i == 2};
	put_record(/* deleting= */ true, /* snapshot= */ false);
	put_node(/* snapshot= */ false);
	pass_min(60);
	ck_assert_uint_eq(n_looks, 1);
	ck_assert_uint_eq(d.n_calls, 0);
	/* A PersistentVolume that is made again is absent for a moment. */
	state = (struct claim_state){0};
	pass_min(60);
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

START_TEST(a_snapshot_is_left_to_its_caller)
{
	put_record(/* deleting= */ true, /* snapshot= */ true);
	put_node(/* snapshot= */ true);
	pass_min(60);
	ck_assert_uint_eq(n_looks + d.n_calls, 0);
}
END_TEST

START_TEST(a_failure_is_told_once_and_tried_again)
{
	put_record(/* deleting= */ true, /* snapshot= */ false);
	put_node(/* snapshot= */ false);
	pass_min(2 * AFTER_MIN + 6);
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert_uint_eq(d.n_calls, i);
		desk_failed(desk_last(&d, "n1"), ERR_PRECONDITION, "in use");
		pass_min(6);
	}
	ck_assert_uint_eq(n_failed, 1);
	desk_deleted(desk_last(&d, "n1"));
	ck_assert_uint_eq(n_done, 1);
}
END_TEST

START_TEST(a_call_that_runs_outlives_the_duty)
{
	put_record(/* deleting= */ true, /* snapshot= */ false);
	put_node(/* snapshot= */ false);
	pass_min(2 * AFTER_MIN + 6);
	begun_deletions_free(TAKE_PTR(b));
	desk_deleted(desk_last(&d, "n1"));
	ck_assert_uint_eq(n_done, 0);
	desk_check_nodes(&d, NAME, "");
}
END_TEST

/* It has more deletions than run at a time, and they are due first. */
START_TEST(a_node_that_hangs_holds_up_no_deletion_of_another)
{
	const struct begun_deletions_config config = {.controller = d.controller,
		.records = {each_record, NULL},
		.lookup = {look_at_once, NULL},
		.ended = ended};
	unsigned n_of_n1 = 0;

	begun_deletions_free(b);
	b = begun_deletions_new(&config);
	n_hanging = 5;
	put_node(/* snapshot= */ false);
	desk_add_node(&d, "n2", 4);
	volume_id_mint(NAME, "n2", id);
	put_record_of(NAME, "n2", /* deleting= */ true, /* snapshot= */ false);
	for (unsigned i = 0; i < n_hanging; i++) {
		CLEANUP(free_charp) char *name = hanging_name(i);
		put_record_of(name, "n1", /* deleting= */ true, /* snapshot= */ false);
	}
	pass_min(3 * AFTER_MIN);
	ck_assert_uint_eq(d.n_calls, 3);
	for (unsigned i = 0; i < 3; i++)
		n_of_n1 += str_eq(d.calls[i].node_id, "n1");
	ck_assert_uint_eq(n_of_n1, 2);
	/* The next one of the node begins when one of them has ended. */
	for (unsigned i = 0; i < 3; i++)
		desk_deleted(&d.calls[i]);
	ck_assert_uint_eq(n_done, 3);
	pass_min(1);
	ck_assert_uint_eq(d.n_calls, 5);
	desk_deleted(&d.calls[3]);
	desk_deleted(&d.calls[4]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("duties/begun_deletions");
	TCase *tcase = tcase_create("deletions");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, a_deletion_is_finished_when_its_node_is_back);
	tcase_add_test(tcase, callers_have_time_to_repeat_their_call);
	tcase_add_test(tcase, nothing_is_deleted_that_no_call_has_begun_to_delete);
	tcase_add_loop_test(tcase, what_a_volume_or_claim_refers_to_is_left_to_callers, 0, 3);
	tcase_add_test(tcase, a_snapshot_is_left_to_its_caller);
	tcase_add_test(tcase, a_failure_is_told_once_and_tried_again);
	tcase_add_test(tcase, a_call_that_runs_outlives_the_duty);
	tcase_add_test(tcase, a_node_that_hangs_holds_up_no_deletion_of_another);
	return unit_runner_finish(srunner_create(suite));
}
