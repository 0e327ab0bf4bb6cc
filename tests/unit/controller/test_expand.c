/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerExpandVolume: what is written before a node is asked, which nodes are asked, and what their
 * answers mean. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NAME "pvc-1"

static struct desk d;
static struct desk_ask a;
static char id[VOLUME_ID_MAX + 1]; /* on n1 */

/* @node_id reports the volume; NULL: nothing. */
static struct node_report *put(const char *node_id, const char *volume_id)
{
	struct node_report *r = report_new(node_id);

	if (volume_id)
		report_add_volume(r, volume_id, NAME)->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	return r;
}

/* Makes the record of a volume of 1 GiB whose CreateVolume has returned @handle. */
static struct pmem_volume *make_record(const char *handle)
{
	struct pmem_volume *v = pmem_volume_new(volume_key_of_name(NAME).hex, DESK_DRIVER);

	v->volume_name = x_strdup(NAME);
	v->handle = x_strdup(handle);
	v->size_bytes = v->capacity_bytes = DESK_GIB;
	v->attempts = 1;
	return v;
}

static void set_up(void)
{
	struct pmem_volume *v;

	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	desk_ask_init(&a, NAME);
	volume_id_mint(NAME, "n1", id);
	put("n1", id);
	put("n2", NULL);
	v = make_record(id);
	pmem_volume_add_node(v, "n1");
	desk_put_record(&d, RECORD_CREATE, v);
}

static void tear_down(void)
{
	desk_ask_done(&a);
	desk_close(&d);
}

static void again(void)
{
	desk_ask_done(&a);
	desk_ask_init(&a, NAME);
}

static void check_record(uint64_t size_bytes, uint64_t attempts)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = desk_record(&d, NAME);

	ck_assert_uint_eq(v->size_bytes, size_bytes);
	ck_assert_uint_eq(v->attempts, attempts);
}

/* Change the record as another replica would. */
static void change_record(void (*change)(struct pmem_volume *v), enum volume_record_write what)
{
	struct pmem_volume *v = desk_record(&d, NAME);

	change(v);
	desk_put_record(&d, what, v);
}

static void mark_deleting(struct pmem_volume *v)
{
	v->deleting = true;
}

static void mark_retained(struct pmem_volume *v)
{
	v->retained = true;
}

static void mark_lost(struct pmem_volume *v)
{
	pmem_volume_add_copy(v, "n1", PMEM_VOLUME_LOST, DESK_GIB, 0);
}

static void add_second(struct pmem_volume *v)
{
	pmem_volume_add_node(v, "n2");
}

START_TEST(the_size_is_recorded_before_the_node_is_asked)
{
	const struct desk_call *c;

	a.expand.n_secrets = 1;
	a.expand.secrets = (Csi__V1__ControllerExpandVolumeRequest__SecretsEntry *[]){NULL};
	a.expand.volume_capability = a.create.volume_capabilities[0];
	a.range.limit_bytes = 4 * DESK_GIB;
	desk_expand(&d, &a, id, 3 * DESK_GIB);
	check_record(3 * DESK_GIB, 2);
	c = desk_last(&d, "n1");
	ck_assert_str_eq(c->expand_request->volume_id, id);
	ck_assert_int_eq(c->expand_request->capacity_range->required_bytes, 3 * DESK_GIB);
	ck_assert_int_eq(c->expand_request->capacity_range->limit_bytes, 4 * DESK_GIB);
	ck_assert_ptr_nonnull(c->expand_request->volume_capability->mount);
	ck_assert_uint_eq(c->expand_request->n_secrets, 0);
	ck_assert(!a.finished);
	desk_grown(desk_last(&d, "n1"), 3 * DESK_GIB + 1, /* is_mount= */ true);
	DESK_OK(&a);
	ck_assert_int_eq(a.expanded.capacity_bytes, 3 * DESK_GIB + 1);
	ck_assert(a.expanded.node_expansion_required);
	check_record(3 * DESK_GIB, 2);
}
END_TEST

START_TEST(what_the_node_has_answered_is_known_at_once)
{
	struct node_hit *hits;

	desk_expand(&d, &a, id, 2 * DESK_GIB);
	desk_grown(desk_last(&d, "n1"), 2 * DESK_GIB, /* is_mount= */ false);
	DESK_OK(&a);
	ck_assert(!a.expanded.node_expansion_required);
	ck_assert_uint_eq(node_table_find_volume(d.table, id, &hits), 1);
	ck_assert_uint_eq(hits[0].volume->size_bytes, 2 * DESK_GIB);
	ck_assert(hits[0].volume->ever_staged);
	free(hits);
}
END_TEST

/* The node says what it has, and the size in the record stays. */
START_TEST(a_size_that_is_reached_is_asked_for_again)
{
	desk_expand(&d, &a, id, DESK_GIB / 2);
	check_record(DESK_GIB, 2);
	desk_grown(desk_last(&d, "n1"), DESK_GIB, /* is_mount= */ true);
	DESK_OK(&a);
	ck_assert_int_eq(a.expanded.capacity_bytes, DESK_GIB);
}
END_TEST

START_TEST(no_node_is_asked_when_the_size_cannot_be_recorded)
{
	const struct {
		enum err_code code;
		bool after;
	} failures[] = {{ERR_DEADLINE, false}, {ERR_DEADLINE, true}, {ERR_UNAVAILABLE, false}};

	d.fail_write = 1;
	d.fail_code = failures[_i].code;
	d.fail_after = failures[_i].after;
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "record of volume");
	ck_assert_uint_eq(d.n_calls, 0);
	check_record(failures[_i].after ? 2 * DESK_GIB : DESK_GIB, failures[_i].after ? 2 : 1);
	/* the next attempt goes on from what is recorded */
	again();
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	check_record(2 * DESK_GIB, failures[_i].after ? 3 : 2);
	desk_grown(desk_last(&d, "n1"), 2 * DESK_GIB, true);
	DESK_OK(&a);
}
END_TEST

START_TEST(a_record_that_has_changed_is_read_again)
{
	d.fail_write = 1;
	d.fail_code = ERR_ABORTED;
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	check_record(2 * DESK_GIB, 2);
	ck_assert_uint_eq(d.n_writes, 2);
	desk_grown(desk_last(&d, "n1"), 2 * DESK_GIB, true);
	DESK_OK(&a);
}
END_TEST

START_TEST(a_record_that_always_changes_is_left)
{
	d.fail_write = 1;
	d.fail_all = true;
	d.fail_code = ERR_ABORTED;
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "record of volume");
	ck_assert_uint_eq(d.n_writes, RECORD_READS_MAX);
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

/* An earlier call for more may be on its way to the node. */
START_TEST(the_recorded_size_does_not_become_smaller)
{
	desk_expand(&d, &a, id, 8 * DESK_GIB);
	desk_failed(desk_last(&d, "n1"), ERR_DEADLINE, "no answer");
	DESK_FAILED(&a, ERR_DEADLINE, "node n1: no answer");
	again();
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	check_record(8 * DESK_GIB, 3);
	ck_assert_int_eq(desk_last(&d, "n1")->expand_request->capacity_range->required_bytes, 2 * DESK_GIB);
	desk_grown(desk_last(&d, "n1"), 8 * DESK_GIB, true);
	DESK_OK(&a);
	ck_assert_int_eq(a.expanded.capacity_bytes, 8 * DESK_GIB);
}
END_TEST

static const struct {
	enum err_code from;
	enum err_code to;
	const char *text;
} answers[] = {
	/* with which external-resizer lets users lower their request */
	{ERR_EXHAUSTED, ERR_RANGE, "node n1: RESOURCE_EXHAUSTED: why"},
	{ERR_RANGE, ERR_RANGE, "node n1: why"},
	{ERR_INVALID_ARGUMENT, ERR_INVALID_ARGUMENT, "node n1: why"},
	{ERR_NOT_FOUND, ERR_NOT_FOUND, "node n1: why"},
	{ERR_PRECONDITION, ERR_PRECONDITION, "node n1: why"},
	{ERR_UNIMPLEMENTED, ERR_UNIMPLEMENTED, "node n1: why"},
	{ERR_INTERNAL, ERR_INTERNAL, "node n1: why"},
	/* after which it asks for the same size again */
	{ERR_ABORTED, ERR_ABORTED, "node n1: why"},
	{ERR_DEADLINE, ERR_DEADLINE, "node n1: why"},
	{ERR_UNAVAILABLE, ERR_UNAVAILABLE, "node n1: why"},
	{ERR_CANCELLED, ERR_UNAVAILABLE, "node n1: CANCELLED: why"},
	{ERR_UNKNOWN, ERR_UNAVAILABLE, "node n1: UNKNOWN: why"},
	{ERR_PERMISSION, ERR_UNAVAILABLE, "node n1: PERMISSION_DENIED: why"},
	{ERR_UNAUTHENTICATED, ERR_UNAVAILABLE, "node n1: UNAUTHENTICATED: why"},
};

START_TEST(a_refusal_has_the_code_that_external_resizer_understands)
{
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	desk_failed(desk_last(&d, "n1"), answers[_i].from, "why");
	DESK_FAILED(&a, answers[_i].to, answers[_i].text);
	check_record(2 * DESK_GIB, 2);
}
END_TEST

START_TEST(a_node_that_has_not_grown_it_has_not_done_it)
{
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	desk_grown(desk_last(&d, "n1"), _i == 0 ? DESK_GIB : 0, true);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1: it replied that the volume has ");
}
END_TEST

START_TEST(an_older_driver_is_to_be_updated)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, id, NAME);
	r->serves_expansion = false;
	node_table_put(d.table, r, d.now_ns);
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_UNIMPLEMENTED, "on node n1 cannot grow volumes: update the driver there");
	ck_assert_uint_eq(d.n_calls, 0);
	check_record(DESK_GIB, 1);
}
END_TEST

START_TEST(a_node_that_cannot_be_asked_is_waited_for)
{
	const char *const whys[] = {
		"node n1 may have volume ", "is not connected", "out-of-service", "is lost"};
	struct node_report *r = report_new("n1");

	if (_i == 1) {
		node_table_end(d.table, "n1");
		node_report_free(r);
	} else if (_i == 2) {
		d.out_of_service = "n1";
		node_report_free(r);
	} else if (_i == 3) {
		change_record(mark_lost, RECORD_STATUS);
		node_report_free(r);
	} else {
		r->has_inventory = false;
		node_table_put(d.table, r, d.now_ns);
	}
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_UNAVAILABLE, _i == 0 ? "node n1 has not reported its volumes yet" : whys[_i]);
	ck_assert_uint_eq(d.n_calls, 0);
	check_record(DESK_GIB, 1);
}
END_TEST

START_TEST(nothing_is_asked_before_the_nodes_are_known)
{
	d.cluster_ready = false;
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "the controller is still starting");
	check_record(DESK_GIB, 1);
}
END_TEST

START_TEST(a_deleted_volume_does_not_grow)
{
	change_record(_i == 0 ? mark_deleting : mark_retained, RECORD_SPEC);
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_ABORTED, _i == 0 ? "is being deleted" : "was deleted while its node was lost");
	ck_assert_uint_eq(d.n_calls, 0);
}
END_TEST

/* A node that was asked to make it and has none under this handle. */
START_TEST(only_nodes_with_a_copy_are_asked)
{
	change_record(add_second, RECORD_SPEC);
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	ck_assert_uint_eq(d.n_calls, 1);
	desk_grown(desk_last(&d, "n1"), 2 * DESK_GIB, true);
	DESK_OK(&a);
	/* the same while that node is silent: the handle names n1 */
	node_table_end(d.table, "n2");
	again();
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	desk_grown(desk_last(&d, "n1"), 2 * DESK_GIB, true);
	DESK_OK(&a);
}
END_TEST

static char *cache_id(void)
{
	static char text[VOLUME_ID_MAX + 1];

	volume_id_mint(NAME, NULL, text);
	return text;
}

/* A cache volume with copies on both nodes. */
static void begin_with_cache_volume(void)
{
	struct pmem_volume *v = desk_record(&d, NAME);

	free(v->handle);
	v->handle = x_strdup(cache_id());
	desk_put_record(&d, RECORD_STATUS, v);
	change_record(add_second, RECORD_SPEC);
	put("n1", cache_id());
	put("n2", cache_id());
	desk_expand(&d, &a, cache_id(), 2 * DESK_GIB);
	ck_assert_uint_eq(d.n_calls, 2);
	desk_check_nodes(&d, NAME, "n1 n2");
}

START_TEST(all_copies_grow_and_the_smallest_one_counts)
{
	begin_with_cache_volume();
	desk_grown(&d.calls[1], 2 * DESK_GIB, true);
	ck_assert(!a.finished);
	desk_grown(&d.calls[0], 3 * DESK_GIB, false);
	DESK_OK(&a);
	ck_assert_int_eq(a.expanded.capacity_bytes, 2 * DESK_GIB);
	ck_assert(a.expanded.node_expansion_required);
}
END_TEST

START_TEST(a_node_without_a_copy_is_left_out)
{
	begin_with_cache_volume();
	desk_failed(&d.calls[_i], ERR_NOT_FOUND, "no such volume");
	desk_grown(&d.calls[1 - _i], 2 * DESK_GIB, false);
	DESK_OK(&a);
	ck_assert_int_eq(a.expanded.capacity_bytes, 2 * DESK_GIB);
}
END_TEST

START_TEST(of_several_failures_an_open_one_decides)
{
	begin_with_cache_volume();
	desk_failed(&d.calls[_i], ERR_EXHAUSTED, "full");
	ck_assert(!a.finished);
	desk_failed(&d.calls[1 - _i], ERR_DEADLINE, "slow");
	DESK_FAILED(&a, ERR_DEADLINE, "slow");
}
END_TEST

START_TEST(one_copy_that_has_not_grown_is_a_failure)
{
	begin_with_cache_volume();
	desk_grown(&d.calls[0], 2 * DESK_GIB, true);
	desk_failed(&d.calls[1], ERR_EXHAUSTED, "full");
	DESK_FAILED(&a, ERR_RANGE, "node n2: RESOURCE_EXHAUSTED: full");
}
END_TEST

static void check_unknown(const char *handle, enum err_code code, const char *text)
{
	again();
	desk_expand(&d, &a, handle, 2 * DESK_GIB);
	DESK_FAILED(&a, code, text);
	ck_assert_uint_eq(d.n_calls, 0);
}

START_TEST(volumes_without_a_record)
{
	struct node_report *r = report_new("n2");

	report_add_volume(r, "inline", "")->is_inline = true;
	report_add_volume(r, "made-elsewhere", "");
	report_add_volume(r, "erasing", "")->phase = PHASE_ERASING;
	node_table_put(d.table, r, d.now_ns);
	check_unknown("absent", ERR_NOT_FOUND, "volume absent does not exist");
	check_unknown("inline", ERR_INVALID_ARGUMENT, "is an inline volume");
	check_unknown("made-elsewhere", ERR_UNAVAILABLE, "has no PmemVolume yet");
	check_unknown("erasing", ERR_NOT_FOUND, "does not exist");
	r = report_new("n3");
	r->has_inventory = false;
	node_table_put(d.table, r, d.now_ns);
	check_unknown("absent", ERR_UNAVAILABLE, "node n3 has not reported its volumes yet");
}
END_TEST

/* The record is that of the same name, made on another node. */
START_TEST(a_record_with_another_handle_is_of_another_volume)
{
	char other[VOLUME_ID_MAX + 1];

	volume_id_mint(NAME, "n2", other);
	check_unknown(other, ERR_NOT_FOUND, "does not exist");
	check_record(DESK_GIB, 1);
}
END_TEST

/* Its report may be older than the volume. */
START_TEST(the_node_that_the_handle_names_is_asked_even_if_it_reports_no_copy)
{
	put("n1", NULL);
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	desk_failed(desk_last(&d, "n1"), ERR_NOT_FOUND, "no such volume");
	DESK_FAILED(&a, ERR_NOT_FOUND, "node n1: no such volume");
}
END_TEST

START_TEST(a_cache_volume_that_no_node_has_is_not_found)
{
	struct pmem_volume *v = desk_record(&d, NAME);

	free(v->handle);
	v->handle = x_strdup(cache_id());
	desk_put_record(&d, RECORD_STATUS, v);
	put("n1", NULL);
	desk_expand(&d, &a, cache_id(), 2 * DESK_GIB);
	desk_failed(desk_last(&d, "n1"), ERR_NOT_FOUND, "no such volume");
	DESK_FAILED(&a, ERR_NOT_FOUND, "node n1: no such volume");
	/* one that is silent may have it */
	node_table_forget(d.table, "n1");
	again();
	desk_expand(&d, &a, cache_id(), 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_UNAVAILABLE, "node n1 may have volume ");
}
END_TEST

START_TEST(the_deadline_counts)
{
	a.deadline_ns = d.now_ns + 5 * NS_PER_S;
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	ck_assert_uint_eq(desk_last(&d, "n1")->timeout_ms, 4500);
	desk_grown(desk_last(&d, "n1"), 2 * DESK_GIB, true);
	DESK_OK(&a);
	again();
	a.deadline_ns = d.now_ns + 5 * NS_PER_S;
	d.write_takes_ns = 6 * NS_PER_S;
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_DEADLINE, "the deadline does not allow asking node n1");
	again();
	d.write_takes_ns = 0;
	a.gone = true;
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_DEADLINE, "the deadline does not allow asking node n1");
	ck_assert_uint_eq(d.n_calls, 1);
}
END_TEST

START_TEST(calls_for_one_volume_exclude_each_other)
{
	struct desk_ask b;

	desk_ask_init(&b, NAME);
	desk_expand(&d, &a, id, 2 * DESK_GIB);
	desk_expand(&d, &b, id, 3 * DESK_GIB);
	DESK_FAILED(&b, ERR_ABORTED, "another call for volume ");
	desk_ask_done(&b);
	desk_ask_init(&b, NAME);
	desk_delete(&d, &b, id);
	DESK_FAILED(&b, ERR_ABORTED, "another call for volume ");
	desk_ask_done(&b);
	desk_grown(desk_last(&d, "n1"), 2 * DESK_GIB, true);
	DESK_OK(&a);
	/* the lock is released */
	again();
	desk_delete(&d, &a, id);
	desk_deleted(desk_last(&d, "n1"));
	DESK_OK(&a);
}
END_TEST

static void expand_range(int64_t required_bytes, int64_t limit_bytes)
{
	const struct waiter waiter = desk_waiter(&a);

	a.range.required_bytes = required_bytes;
	a.range.limit_bytes = limit_bytes;
	a.expand.volume_id = id;
	a.expand.capacity_range = &a.range;
	controller_expand(d.controller, &waiter, &a.expand, &a.expanded);
}

START_TEST(requests_are_checked)
{
	const struct waiter waiter = desk_waiter(&a);

	a.expand.volume_id = id;
	controller_expand(d.controller, &waiter, &a.expand, &a.expanded);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "capacity_range is missing");
	again();
	desk_expand(&d, &a, "", DESK_GIB);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "volume_id is missing");
	again();
	expand_range(-1, 0);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "required_bytes is negative");
	again();
	expand_range(1, -1);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "limit_bytes is negative");
	again();
	expand_range(0, 0);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "neither required_bytes nor limit_bytes is given");
	again();
	expand_range(3 * DESK_GIB, 2 * DESK_GIB);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "required_bytes is larger than limit_bytes");
	again();
	a.expand.volume_capability = a.create.volume_capabilities[0];
	a.expand.volume_capability->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET;
	expand_range(1, 0);
	DESK_FAILED(&a, ERR_INVALID_ARGUMENT, "access_type");
	ck_assert_uint_eq(d.n_calls, 0);
	check_record(DESK_GIB, 1);
}
END_TEST

/* The volume has at least that size, and the node judges the limit. */
START_TEST(a_limit_alone_is_a_request)
{
	expand_range(0, 2 * DESK_GIB);
	check_record(DESK_GIB, 2);
	desk_grown(desk_last(&d, "n1"), DESK_GIB, true);
	DESK_OK(&a);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {the_size_is_recorded_before_the_node_is_asked,
		what_the_node_has_answered_is_known_at_once, a_size_that_is_reached_is_asked_for_again,
		a_record_that_has_changed_is_read_again, a_record_that_always_changes_is_left,
		the_recorded_size_does_not_become_smaller, an_older_driver_is_to_be_updated,
		nothing_is_asked_before_the_nodes_are_known, only_nodes_with_a_copy_are_asked,
		all_copies_grow_and_the_smallest_one_counts, one_copy_that_has_not_grown_is_a_failure,
		volumes_without_a_record, a_record_with_another_handle_is_of_another_volume,
		the_node_that_the_handle_names_is_asked_even_if_it_reports_no_copy,
		a_cache_volume_that_no_node_has_is_not_found, the_deadline_counts,
		calls_for_one_volume_exclude_each_other, requests_are_checked, a_limit_alone_is_a_request};
	Suite *suite = suite_create("controller/expand");
	TCase *tcase = tcase_create("expand");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	tcase_add_loop_test(tcase, no_node_is_asked_when_the_size_cannot_be_recorded, 0, 3);
	tcase_add_loop_test(
		tcase, a_refusal_has_the_code_that_external_resizer_understands, 0, (int)ARRAY_SIZE(answers));
	tcase_add_loop_test(tcase, a_node_that_has_not_grown_it_has_not_done_it, 0, 2);
	tcase_add_loop_test(tcase, a_node_that_cannot_be_asked_is_waited_for, 0, 4);
	tcase_add_loop_test(tcase, a_deleted_volume_does_not_grow, 0, 2);
	tcase_add_loop_test(tcase, a_node_without_a_copy_is_left_out, 0, 2);
	tcase_add_loop_test(tcase, of_several_failures_an_open_one_decides, 0, 2);
	return unit_runner_finish(srunner_create(suite));
}
