/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/orphans.h"
#include "unit/controller/desk.h"
#include "volume/id.h"

#define NAME    "pvc-6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3b21"
#define MINUTES (60 * NS_PER_S)
#define LOOKS   8

/* Look-ups that the test answers. */
static struct {
	char *name;
	claim_lookup_fn fn;
	void *user;
} looks[LOOKS];
static size_t n_looks;
static struct desk d;
static struct orphans *l;
static unsigned n_deleted;
static unsigned n_kept;
static char last_why[256];
static char id[VOLUME_ID_MAX + 1];

static void look(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user)
{
	(void)self;
	ck_assert_str_eq(handle, id);
	ck_assert_uint_lt(n_looks, LOOKS);
	looks[n_looks].name = x_strdup(volume_name);
	looks[n_looks].fn = fn;
	looks[n_looks++].user = user;
}

static void on_deleted(void *user, const char *node_id, const char *volume_id, const struct error *error)
{
	(void)user;
	ck_assert_str_eq(node_id, "n1");
	ck_assert_str_eq(volume_id, id);
	n_deleted += error == NULL;
}

static void on_kept(void *user, const char *node_id, const char *volume_id, const char *why)
{
	(void)user;
	(void)node_id;
	(void)volume_id;
	n_kept++;
	snprintf(last_why, sizeof(last_why), "%s", why);
}

static struct volume_report *report(struct node_report **ret)
{
	struct node_report *r = report_new("n1");
	struct volume_report *v = report_add_volume(r, id, NAME);

	v->made_by_controller = true;
	*ret = r;
	return v;
}

static void each_record(void *self, void (*fn)(void *user, const struct pmem_volume *record), void *user)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = desk_record(&d, NAME);

	(void)self;
	if (record)
		fn(user, record);
}

static void put_record(const char *origin)
{
	struct volume_key key = volume_key_of_name(NAME);
	struct pmem_volume *v = pmem_volume_new(key.hex, DESK_DRIVER);

	v->volume_name = x_strdup(NAME);
	v->origin = origin ? x_strdup(origin) : NULL;
	pmem_volume_add_node(v, "n1");
	desk_put_record(&d, RECORD_CREATE, v);
}

/* One volume of ours on n1; what is special about it comes from the caller. */
static void begin(bool staged, bool ours, bool cached)
{
	struct node_report *r;

	desk_open(&d, /* early= */ false, /* forget_gone= */ false);
	volume_id_mint(NAME, cached ? NULL : "n1", id);
	struct volume_report *v = report(&r);
	v->ever_staged = staged;
	v->made_by_controller = ours;
	node_table_put(d.table, r, d.now_ns);
	put_record(/* origin= */ NULL);
	const struct orphans_config config = {.controller = d.controller,
		.records = {each_record, NULL},
		.lookup = {look, NULL},
		.observer = {.deleted = on_deleted, .kept = on_kept}};
	l = orphans_new(&config);
}

static void end(void)
{
	orphans_free(l);
	for (size_t i = 0; i < n_looks; i++)
		free(looks[i].name);
	desk_close(&d);
}

static void pass(uint64_t ns)
{
	d.now_ns += ns;
	orphans_tick(l, d.now_ns);
}

/* The next look is due, and finds @state. */
static void find(const struct claim_state *state)
{
	size_t at = n_looks;

	for (unsigned i = 0; i <= 360 && n_looks == at; i++)
		pass(MINUTES);
	ck_assert_uint_eq(n_looks, at + 1);
	ck_assert_str_eq(looks[at].name, NAME);
	looks[at].fn(looks[at].user, state, NULL);
}

static const struct claim_state nothing = {0};

START_TEST(a_copy_that_neither_pv_nor_pvc_knows_twice_is_deleted)
{
	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	pass(0);
	pass(4 * MINUTES);
	ck_assert_uint_eq(n_looks, 0);
	find(&nothing);
	ck_assert_uint_eq(d.n_calls, 0);
	uint64_t first_ns = d.now_ns;
	find(&nothing);
	ck_assert_uint_ge(d.now_ns - first_ns, 5 * MINUTES);
	ck_assert_str_eq(desk_last(&d, "n1")->delete_request->volume_id, id);
	ck_assert(desk_last(&d, "n1")->if_never_staged);
	struct volume_key key = volume_key_of_name(NAME);
	ck_assert(key_is_locked(d.controller->locks, &key));
	desk_deleted(desk_last(&d, "n1"));
	ck_assert(!key_is_locked(d.controller->locks, &key));
	ck_assert_uint_eq(n_deleted, 1);
	desk_check_nodes(&d, NAME, NULL);
	end();
}
END_TEST

START_TEST(a_claim_or_a_failed_look_in_between_begins_anew)
{
	const struct claim_state claimed = {.has_claim = true};
	struct error *err = NULL;

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&nothing);
	find(&claimed);
	find(&nothing);
	pass(5 * MINUTES);
	ck_assert_uint_eq(n_looks, 4);
	ck_assert_int_eq(err_set(&err, ERR_UNAVAILABLE, "no API"), -1);
	looks[3].fn(looks[3].user, NULL, err);
	error_free(err);
	ck_assert_uint_eq(d.n_calls, 0);
	find(&nothing);
	desk_deleted(desk_last(&d, "n1"));
	end();
}
END_TEST

START_TEST(a_copy_whose_pv_is_another_volume_is_deleted)
{
	const struct claim_state other = {.has_volume = true, .handle = "another", .has_claim = true};

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&other);
	desk_failed(desk_last(&d, "n1"), ERR_ABORTED, "busy");
	ck_assert_uint_eq(n_deleted, 0);
	find(&other);
	desk_deleted(desk_last(&d, "n1"));
	ck_assert_uint_eq(n_deleted, 1);
	end();
}
END_TEST

START_TEST(a_volume_of_its_pv_stays)
{
	const struct claim_state own = {.has_volume = true, .handle = id};

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&own);
	find(&own);
	ck_assert_uint_eq(d.n_calls, 0);
	ck_assert_uint_eq(n_kept, 0);
	end();
}
END_TEST

START_TEST(a_volume_whose_pv_was_made_again_under_another_name_stays)
{
	const struct claim_state renamed = {.is_referenced = true};
	const struct claim_state exchanged = {.has_volume = true, .handle = "another", .is_referenced = true};

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&nothing);
	find(&renamed);
	find(&exchanged);
	find(&nothing);
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

START_TEST(a_volume_whose_pv_has_vanished_stays_and_is_reported)
{
	const struct claim_state own = {.has_volume = true, .handle = id};

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&own);
	for (unsigned i = 0; i < 3; i++)
		find(&nothing);
	ck_assert_uint_eq(d.n_calls, 0);
	ck_assert_uint_eq(n_kept, 1);
	ck_assert_ptr_nonnull(strstr(last_why, "without being deleted"));
	end();
}
END_TEST

START_TEST(a_cache_copy_that_the_pv_does_not_list_is_deleted)
{
	static const char *const others[] = {"n2", "n3"};
	static const char *const with_it[] = {"n2", "n1"};
	struct claim_state state = {.has_volume = true, .handle = id, .node_ids = with_it, .n_node_ids = 2};

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ true);
	find(&state);
	ck_assert_uint_eq(d.n_calls, 0);
	state.node_ids = others;
	find(&state);
	desk_deleted(desk_last(&d, "n1"));
	end();
}
END_TEST

START_TEST(what_was_in_use_is_reported_once_and_stays)
{
	begin(/* staged= */ true, /* ours= */ true, /* cached= */ false);
	find(&nothing);
	find(&nothing);
	ck_assert_uint_eq(n_kept, 1);
	ck_assert_ptr_nonnull(strstr(last_why, "in use"));
	pass(7 * 60 * MINUTES);
	looks[2].fn(looks[2].user, &nothing, NULL);
	ck_assert_uint_eq(n_kept, 1);
	ck_assert_uint_eq(d.n_calls, 0);
	end();
}
END_TEST

/* It is reported when it was looked for twice, and no node is called. */
static void stays(const char *why)
{
	find(&nothing);
	find(&nothing);
	ck_assert_uint_eq(n_kept, 1);
	ck_assert_ptr_nonnull(strstr(last_why, why));
	ck_assert_uint_eq(d.n_calls, 0);
}

START_TEST(what_others_made_is_reported_and_stays)
{
	begin(/* staged= */ false, /* ours= */ false, /* cached= */ false);
	stays("no record says");
	end();
}
END_TEST

/* As after etcd was restored from a backup that is older than the volume. */
START_TEST(what_only_reports_know_is_reported_and_stays)
{
	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	desk_put_record(&d, RECORD_RELEASE, desk_record(&d, NAME));
	put_record(PMEM_VOLUME_REPORTED);
	stays("no record says");
	end();
}
END_TEST

START_TEST(a_copy_without_a_record_is_not_looked_at)
{
	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	desk_put_record(&d, RECORD_RELEASE, desk_record(&d, NAME));
	pass(0);
	pass(60 * MINUTES);
	ck_assert_uint_eq(n_looks, 0);
	end();
}
END_TEST

/* The informer is behind: what it has shown decides nothing. */
START_TEST(the_record_has_changed_since_it_was_shown)
{
	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&nothing);
	pass(5 * MINUTES);
	desk_put_record(&d, RECORD_RELEASE, desk_record(&d, NAME));
	put_record(PMEM_VOLUME_REPORTED);
	looks[1].fn(looks[1].user, &nothing, NULL);
	ck_assert_uint_eq(d.n_calls, 0);
	ck_assert_uint_eq(n_deleted, 0);
	ck_assert_uint_eq(n_kept, 1);
	end();
}
END_TEST

START_TEST(what_an_older_driver_has_is_reported_and_stays)
{
	struct node_report *r;

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	report(&r);
	r->serves_node_volumes = false;
	node_table_put(d.table, r, d.now_ns);
	stays("update it");
	end();
}
END_TEST

START_TEST(the_node_finds_that_it_was_staged)
{
	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&nothing);
	find(&nothing);
	desk_failed(desk_last(&d, "n1"), ERR_PRECONDITION, "it was in use");
	ck_assert_uint_eq(n_kept, 1);
	ck_assert_uint_eq(n_deleted, 0);
	desk_check_nodes(&d, NAME, "n1");
	end();
}
END_TEST

START_TEST(it_was_staged_between_look_and_verdict)
{
	struct node_report *r;

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&nothing);
	pass(5 * MINUTES);
	report(&r)->ever_staged = true;
	node_table_put(d.table, r, d.now_ns);
	looks[1].fn(looks[1].user, &nothing, NULL);
	ck_assert_uint_eq(d.n_calls, 0);
	ck_assert_uint_eq(n_kept, 1);
	end();
}
END_TEST

START_TEST(nothing_happens_to_a_name_that_is_being_worked_on)
{
	struct volume_key key = volume_key_of_name(NAME);

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	find(&nothing);
	ck_assert(key_lock(d.controller->locks, &key));
	pass(5 * MINUTES);
	ck_assert_uint_eq(n_looks, 1);
	key_unlock(d.controller->locks, &key);
	find(&nothing);
	ck_assert_uint_eq(d.n_calls, 0);
	pass(5 * MINUTES);
	ck_assert(key_lock(d.controller->locks, &key));
	looks[2].fn(looks[2].user, &nothing, NULL);
	ck_assert_uint_eq(d.n_calls, 0);
	key_unlock(d.controller->locks, &key);
	end();
}
END_TEST

/* It was deleted while n1 was lost, and n1 has returned; it was never staged. */
START_TEST(what_returns_from_a_lost_node_is_reported_and_stays)
{
	struct volume_key key = volume_key_of_name(NAME);
	struct pmem_volume *v;

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	v = desk_record(&d, NAME);
	v->retained = true;
	desk_put_record(&d, RECORD_SPEC, v);
	stays("was lost");
	find(&nothing);
	ck_assert_uint_eq(n_kept, 1);
	ck_assert_uint_eq(n_deleted, 0);
	ck_assert(!key_is_locked(d.controller->locks, &key));
	desk_check_nodes(&d, NAME, "n1");
	end();
}
END_TEST

START_TEST(other_names_and_phases_are_not_looked_at)
{
	struct node_report *r;

	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	report(&r)->phase = PHASE_ERASING;
	report_add_volume(r, "v2", "my-volume")->made_by_controller = true;
	report_add_volume(r, "v3", "pvc-12")->made_by_controller = true;
	node_table_put(d.table, r, d.now_ns);
	pass(0);
	pass(60 * MINUTES);
	ck_assert_uint_eq(n_looks, 0);
	end();
}
END_TEST

START_TEST(answers_after_the_end_are_ignored)
{
	begin(/* staged= */ false, /* ours= */ true, /* cached= */ false);
	pass(0);
	pass(5 * MINUTES);
	ck_assert_uint_eq(n_looks, 1);
	orphans_free(TAKE_PTR(l));
	looks[0].fn(looks[0].user, &nothing, NULL);
	end();
}
END_TEST

UNIT_MAIN("duties/orphans", a_copy_that_neither_pv_nor_pvc_knows_twice_is_deleted,
	a_claim_or_a_failed_look_in_between_begins_anew, a_copy_whose_pv_is_another_volume_is_deleted,
	a_volume_of_its_pv_stays, a_volume_whose_pv_was_made_again_under_another_name_stays,
	a_volume_whose_pv_has_vanished_stays_and_is_reported,
	a_cache_copy_that_the_pv_does_not_list_is_deleted, what_was_in_use_is_reported_once_and_stays,
	what_others_made_is_reported_and_stays, what_only_reports_know_is_reported_and_stays,
	a_copy_without_a_record_is_not_looked_at, the_record_has_changed_since_it_was_shown,
	what_an_older_driver_has_is_reported_and_stays, the_node_finds_that_it_was_staged,
	it_was_staged_between_look_and_verdict, nothing_happens_to_a_name_that_is_being_worked_on,
	what_returns_from_a_lost_node_is_reported_and_stays, other_names_and_phases_are_not_looked_at,
	answers_after_the_end_are_ignored)
