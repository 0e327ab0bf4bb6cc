/* SPDX-License-Identifier: Apache-2.0 */
/* Starts after a crash, a roll-back or another driver, and pools that disappear and come back. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/fixture.h"
#include "volume/id.h"

#define SIZE MIB(16)

static int try_create(const char *name, struct error **err)
{
	const struct volume_request q = fixture_request(name, SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;

	return volumes_create(fx.v, &q, &info, err);
}

/* A device was made, or not, and then the power went: `.creating` is there. */
static void crash_in_create(bool device_was_made)
{
	struct error *err = NULL;

	fx.faults.create = ERR_INTERNAL;
	fx.faults.after = device_was_made;
	fx.faults.list = ERR_INTERNAL;
	ASSERT_FAILS(try_create("pvc-1", &err), ERR_UNAVAILABLE, "could not be undone");
	ck_assert_uint_eq(fixture_n_devices(), device_was_made);
	ck_assert_uint_eq(fixture_n_files(), 1);
	fixture_stop();
	fx.faults = (struct faults){0};
	fixture_open();
}

static void start(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_start(fx.v, &err));
}

static void refresh(void)
{
	struct error *err = NULL;

	ASSERT_OK(volumes_refresh(fx.v, &err));
}

static char *minted(const char *name)
{
	char *id = x_calloc(1, VOLUME_ID_MAX + 1);

	volume_id_mint(name, NODE_ID, id);
	return id;
}

static void write_record(const char *id, const char *suffix, const char *identity, const char *pool)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s%s", id, suffix);
	CLEANUP(free_charp)
	char *text = x_asprintf(
		"{\"id\":\"%s\",\"size\":%ju,\"parameters\":{\"name\":\"n-%s\"},\"identity\":\"%s\","
		"\"pool\":\"%s\"}\n",
		id, (uintmax_t)SIZE, id, identity, pool);

	fixture_write(file, text);
}

static bool is_missing(const char *id)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	ASSERT_OK(volumes_get(fx.v, id, &info, &err));
	return info->missing;
}

/* Nothing keeps two state files from naming the same. */
START_TEST(of_volumes_of_one_name_the_first_is_meant_and_then_the_other)
{
	static const char *const ids[] = {"b-volume", "a-volume", "c-volume"};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		CLEANUP(free_charp) char *file = x_asprintf("%s.json", ids[i]);
		CLEANUP(free_charp)
		char *text = x_asprintf("{\"id\":\"%s\",\"size\":%ju,\"parameters\":{\"name\":\"%s\"}}",
			ids[i], (uintmax_t)SIZE, i == 2 ? "another name" : "the name");
		fixture_make_device(ids[i], 0, "", SIZE);
		fixture_write(file, text);
	}
	fixture_restart();
	for (int i = 1; i >= 0; i--) {
		CLEANUP(volume_info_freep) struct volume_info *info = NULL;

		ASSERT_OK(volumes_get(fx.v, "the name", &info, &err));
		ck_assert_str_eq(info->id, i == 1 ? "a-volume" : "b-volume");
		ASSERT_OK(volumes_delete(fx.v, info->id, &err));
	}
	CLEANUP(volume_info_freep) struct volume_info *other = NULL;
	ASSERT_FAILS(volumes_get(fx.v, "the name", &other, &err), ERR_NOT_FOUND, "does not exist");
	ASSERT_OK(volumes_get(fx.v, "another name", &other, &err));
	ck_assert_str_eq(other->id, "c-volume");
}
END_TEST

START_TEST(unfinished_volume_is_rolled_back)
{
	for (int made = 0; made < 2; made++) {
		crash_in_create(made == 1);
		start();
		ck_assert_uint_eq(fixture_n_devices(), 0);
		ck_assert_uint_eq(fixture_n_files(), 0);
	}
	struct error *err = NULL;
	ASSERT_OK(try_create("pvc-1", &err));
}
END_TEST

START_TEST(unfinished_volume_in_an_absent_pool_waits_for_it)
{
	CLEANUP(free_charp) char *id = minted("pvc-1");
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	crash_in_create(true);
	d = fixture_device(id);
	fx.faults.absent_pool = d->pool;
	start();
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 1);
	ASSERT_FAILS(volumes_get(fx.v, id, &info, &err), ERR_NOT_FOUND, id);
	ASSERT_FAILS(try_create("pvc-1", &err), ERR_UNAVAILABLE, "only partly created");
	ASSERT_FAILS(volumes_delete(fx.v, id, &err), ERR_UNAVAILABLE, "absent");
	fx.faults.absent_pool = NULL;
	fx.faults.incomplete_pool = d->pool;
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 1);
	fx.faults.incomplete_pool = NULL;
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 0);
}
END_TEST

START_TEST(rolling_back_removes_no_device_of_another_identity)
{
	CLEANUP(free_charp) char *id = minted("pvc-1");

	crash_in_create(false);
	fixture_make_device(id, 0, "theirs", SIZE);
	start();
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fx.n_destroys, 0);

	/* nor where none was recorded */
	fixture_stop();
	CLEANUP(free_charp) char *file = x_asprintf("%s.creating", id);
	CLEANUP(free_charp) char *text = x_asprintf("{\"id\":\"%s\",\"size\":1,\"parameters\":{}}", id);
	fixture_write(file, text);
	fixture_open();
	start();
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fx.n_destroys, 0);
}
END_TEST

/* Ours may be in the pool that is away, whatever stands in the other. */
START_TEST(device_of_another_identity_does_not_end_the_wait_for_a_pool)
{
	write_record("v1", ".creating", "ours", fx.pools[0]);
	write_record("v2", ".erasing", "ours", fx.pools[0]);
	fixture_make_device("v1", 1, "theirs", SIZE);
	fixture_make_device("v2", 1, "theirs", SIZE);

	fx.faults.absent_pool = fx.pools[0];
	fixture_restart();
	ck_assert(fixture_exists("v1.creating"));
	ck_assert(fixture_exists("v2.erasing"));
	fx.faults.absent_pool = NULL;
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 2);
	ck_assert_uint_eq(fx.n_destroys, 0);
}
END_TEST

START_TEST(deletion_is_finished_wherever_it_was_cut_off)
{
	struct error *err = NULL;

	for (int destroyed = 0; destroyed < 2; destroyed++) {
		CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
		CLEANUP(free_charp) char *file = x_asprintf("%s.erasing", info->id);

		fx.faults.destroy = ERR_INTERNAL;
		fx.faults.after = destroyed == 1;
		ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_INTERNAL, info->id);
		ck_assert(fixture_exists(file));
		ck_assert_uint_eq(fixture_n_devices(), !destroyed);
		fx.faults = (struct faults){0};
		fixture_restart();
		ck_assert_uint_eq(fixture_n_devices(), 0);
		ck_assert_uint_eq(fixture_n_files(), 0);
	}
}
END_TEST

START_TEST(deletion_of_a_missing_volume_waits_for_its_pool)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_INTERNAL, info->id);
	fx.faults = (struct faults){.absent_pool = d->pool};
	fixture_restart();
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 1);
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_UNAVAILABLE, "missing");
	fx.faults.absent_pool = NULL;
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 0);
}
END_TEST

START_TEST(erasing_touches_no_device_without_the_identity)
{
	struct error *err = NULL;

	fixture_make_device("dying", 0, "", SIZE);
	write_record("dying", ".erasing", "ours", fx.pools[0]);
	fixture_restart();
	ASSERT_FAILS(volumes_delete(fx.v, "dying", &err), ERR_UNAVAILABLE, "check -repair");
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fx.n_destroys, 0);
	ck_assert(fixture_exists("dying.erasing"));
}
END_TEST

START_TEST(volume_whose_device_is_somebody_elses_is_missing)
{
	struct volumes_overview o;

	fixture_make_device("pvc", 0, "theirs", SIZE);
	write_record("pvc", ".json", "ours", fx.pools[0]);
	fixture_restart();
	ck_assert(is_missing("pvc"));
	volumes_overview(fx.v, &o);
	ck_assert(o.n_missing == 1 && o.n_ready == 0);
}
END_TEST

START_TEST(failed_listing_changes_nothing_and_the_start_can_be_repeated)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	struct error *err = NULL;

	write_record("half", ".creating", "i", fx.pools[0]);
	fx.faults.list = ERR_INTERNAL;
	fixture_stop();
	fixture_open();
	ASSERT_FAILS(volumes_start(fx.v, &err), ERR_INTERNAL, "list devices");
	ck_assert(!volumes_is_ready(fx.v));
	ASSERT_FAILS(volumes_refresh(fx.v, &err), ERR_UNAVAILABLE, "starting");
	ck_assert_uint_eq(fixture_n_files(), 2);
	fx.faults.list = 0;
	start();
	ck_assert(volumes_is_ready(fx.v));
	ck_assert(!is_missing(info->id));
	ck_assert_uint_eq(fixture_n_files(), 1);
}
END_TEST

/* A device cannot be looked for before devices were listed. */
START_TEST(unfinished_inline_volume_is_not_deleted_before_the_first_listing)
{
	CLEANUP(free_charp) char *target = fixture_path("kubelet/target");
	struct error *err = NULL;

	fixture_stop();
	fixture_write("half.creating",
		"{\"id\":\"half\",\"size\":4194304,\"identity\":\"i\",\"pool\":\"p\","
		"\"parameters\":{\"name\":\"half\",\"persistencyModel\":\"ephemeral\"}}\n");
	fx.faults.list = ERR_INTERNAL;
	fixture_open();
	ASSERT_FAILS(volumes_start(fx.v, &err), ERR_INTERNAL, "list devices");
	ASSERT_FAILS(volumes_unpublish(fx.v, "half", target, &err), ERR_UNAVAILABLE, "starting");
	ck_assert_uint_eq(fixture_n_files(), 1);
}
END_TEST

START_TEST(no_state_is_dropped_while_a_pool_is_away)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", info->id);
	CLEANUP(free_charp) char *before = fixture_read(file);

	for (int incomplete = 0; incomplete < 2; incomplete++) {
		*(incomplete ? &fx.faults.incomplete_pool : &fx.faults.absent_pool) = d->pool;
		fixture_restart();
		refresh();
		ck_assert(is_missing(info->id));
		CLEANUP(free_charp) char *after = fixture_read(file);
		ck_assert_str_eq(before, after);
		fx.faults = (struct faults){0};
		refresh();
		ck_assert(!is_missing(info->id));
	}
	fx.faults.list = ERR_INTERNAL;
	struct error *err = NULL;
	ASSERT_FAILS(volumes_refresh(fx.v, &err), ERR_INTERNAL, "list");
	ck_assert(!is_missing(info->id));
}
END_TEST

START_TEST(even_a_complete_pool_without_the_device_drops_no_state)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	struct error *err = NULL;

	ASSERT_OK(device_destroy(fx.fake, d, -1, &err));
	fixture_restart();
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert(is_missing(info->id));
	ASSERT_FAILS(try_create("pvc-1", &err), ERR_UNAVAILABLE, "missing");
}
END_TEST

START_TEST(device_without_state_is_left_alone)
{
	fixture_make_device("stranger", 0, "theirs", SIZE);
	struct volume_info **list = NULL;
	size_t n;
	bool more;

	fixture_restart();
	refresh();
	ck_assert_uint_eq(fixture_n_devices(), 1);
	volumes_list(fx.v, NULL, 0, &list, &n, &more);
	ck_assert_uint_eq(n, 0);
	free(list);
}
END_TEST

START_TEST(of_two_files_of_one_volume_the_ready_one_is_served)
{
	fixture_make_device("v1", 0, "ours", SIZE);

	write_record("v1", ".json", "ours", fx.pools[0]);
	write_record("v1", ".erasing", "ours", fx.pools[0]);
	write_record("v1", ".creating", "ours", fx.pools[0]);
	fixture_restart();
	refresh();
	ck_assert(!is_missing("v1"));
	ck_assert_uint_eq(fixture_n_files(), 3);
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(damaged_file_hides_no_other)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);

	fixture_write("a.json", "{");
	fixture_write("zz.json", "");
	fixture_restart();
	ck_assert(!is_missing(info->id));
	ck_assert(fixture_exists("a.json") && fixture_exists("zz.json"));
}
END_TEST

/* The damaged file may have said that the volume is ready and holds data. */
START_TEST(no_device_is_destroyed_while_a_state_file_of_its_volume_is_damaged)
{
	static const struct {
		const char *name, *whole, *damaged;
	} pairs[] = {
		{"pvc-1", ".creating", ".json"},
		{"pvc-2", ".creating", ".erasing"},
		{"pvc-3", ".erasing", ".json"},
		{"pvc-4", ".erasing", ".creating"},
	};
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CLEANUP(free_charp) char *id = minted(pairs[i].name);
		CLEANUP(free_charp) char *damaged = x_asprintf("%s%s", id, pairs[i].damaged);

		fixture_make_device(id, 0, "ours", SIZE);
		write_record(id, pairs[i].whole, "ours", fx.pools[0]);
		fixture_write(damaged, "{");
	}
	fixture_restart();
	refresh();
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CLEANUP(free_charp) char *id = minted(pairs[i].name);

		ASSERT_FAILS(try_create(pairs[i].name, &err), ERR_PRECONDITION, "check -repair");
		ASSERT_FAILS(volumes_delete(fx.v, id, &err), ERR_PRECONDITION, "check -repair");
	}
	ck_assert_uint_eq(fx.n_destroys, 0);
	ck_assert_uint_eq(fixture_n_devices(), ARRAY_SIZE(pairs));
	ck_assert_uint_eq(fixture_n_files(), 2 * ARRAY_SIZE(pairs));
}
END_TEST

START_TEST(file_of_the_go_driver_gets_its_pool_when_its_device_is_seen)
{
	static const char *const text = "{\"id\":\"go\",\"size\":16777216,\"future\":[1,{\"a\":null}],"
					"\"parameters\":{\"name\":\"n\"}}\n";
	CLEANUP(device_freep) struct device *d = fixture_add_device("go", 1, "", SIZE);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	struct error *err = NULL;

	fixture_write("go.json", text);
	fx.faults.absent_pool = d->pool;
	fixture_restart();
	CLEANUP(free_charp) char *untouched = fixture_read("go.json");
	ck_assert_str_eq(untouched, text);
	ck_assert(is_missing("go"));
	ASSERT_FAILS(volumes_delete(fx.v, "go", &err), ERR_UNAVAILABLE, "missing");

	fx.faults.absent_pool = NULL;
	refresh();
	ck_assert(!is_missing("go"));
	CLEANUP(free_charp) char *adopted = fixture_read("go.json");
	ASSERT_OK(state_parse(span_of(adopted), &r, &err));
	ck_assert_str_eq(r->pool, d->pool);
	ck_assert_ptr_null(r->identity);
	ck_assert_str_eq(r->unknown_json, "\"future\":[1,{\"a\":null}]");
	ck_assert_uint_eq(r->size_bytes, SIZE);
	fixture_restart();
	CLEANUP(free_charp) char *same = fixture_read("go.json");
	ck_assert_str_eq(adopted, same);
}
END_TEST

START_TEST(file_of_the_go_driver_gets_no_pool_while_two_devices_bear_its_name)
{
	struct error *err = NULL;

	device_free(fixture_add_device("go", 1, "", SIZE));
	fixture_write("go.json", "{\"id\":\"go\",\"size\":16777216,\"parameters\":{\"name\":\"n\"}}\n");
	fx.faults.twin = "go";
	fixture_restart();
	ck_assert(is_missing("go"));
	ASSERT_FAILS(volumes_delete(fx.v, "go", &err), ERR_UNAVAILABLE, "several devices");
	CLEANUP(free_charp) char *untouched = fixture_read("go.json");
	ck_assert_ptr_null(strstr(untouched, "pool"));

	fx.faults.twin = NULL;
	refresh();
	fx.faults.twin = "go";
	refresh();
	ck_assert(!is_missing("go"));
	ASSERT_OK(volumes_delete(fx.v, "go", &err));
	ck_assert_uint_eq(fixture_n_devices(), 0);
}
END_TEST

START_TEST(inactive_devices_are_activated)
{
	fixture_make("pvc-1", SIZE);
	struct error *err = NULL;

	fx.faults.inactive = true;
	fixture_restart();
	ck_assert(!fx.faults.inactive);
	ASSERT_OK(try_create("pvc-1", &err));
}
END_TEST

/* The fixture would see it among those to activate. */
START_TEST(stranger_is_not_activated)
{
	fixture_make("pvc-1", SIZE);
	fixture_make_device("stranger", 0, "theirs", SIZE);
	fx.faults.inactive = true;
	fixture_restart();
	ck_assert(!fx.faults.inactive);
}
END_TEST

START_TEST(failed_activation_keeps_no_other_volume_away_and_is_tried_again)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	struct error *err = NULL;

	fx.faults.inactive = true;
	fx.faults.activate = ERR_INTERNAL;
	fixture_restart();
	ck_assert(volumes_is_ready(fx.v));
	ASSERT_FAILS(try_create("pvc-1", &err), ERR_UNAVAILABLE, "activate fails");
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_UNAVAILABLE, "activate fails");
	ASSERT_OK(try_create("pvc-2", &err));
	fx.faults.activate = 0;
	ASSERT_OK(try_create("pvc-1", &err));
	ck_assert(!fx.faults.inactive);
}
END_TEST

static void replace_device(void)
{
	CLEANUP(free_charp) char *id = minted("pvc-1");
	CLEANUP(device_freep) struct device *d = fixture_device(id);
	struct error *err = NULL;

	fx.faults.in_activate = NULL;
	ASSERT_OK(device_destroy(fx.fake, d, -1, &err));
	fixture_make_device(id, 0, "theirs", SIZE);
}

START_TEST(device_that_was_replaced_while_it_was_activated_is_not_used)
{
	struct error *err = NULL;

	fixture_make("pvc-1", SIZE);
	fx.faults.inactive = true;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fx.faults.in_activate = replace_device;
	ASSERT_FAILS(try_create("pvc-1", &err), ERR_UNAVAILABLE, "disappeared since");
	ck_assert_ptr_null(fx.faults.in_activate);
}
END_TEST

START_TEST(erasing_waits_for_its_device_to_be_active)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	struct error *err = NULL;

	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, info->id, &err), ERR_INTERNAL, info->id);
	fx.faults = (struct faults){.inactive = true, .activate = ERR_INTERNAL};
	fx.n_destroys = 0;
	fixture_restart();
	ck_assert_uint_eq(fx.n_destroys, 0);
	ck_assert_uint_eq(fixture_n_files(), 1);
	fx.faults.activate = 0;
	refresh();
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), 0);
}
END_TEST

START_TEST(second_driver_on_the_same_state_waits_for_it)
{
	CLEANUP(free_charp) char *state = fixture_path("state");
	const struct volumes_config config = {
		.node_id = NODE_ID, .state_path = state, .devices = &fx.devices, .roots = fx.roots};
	CLEANUP(volumes_freep) struct volumes *second = volumes_new(&config);
	struct error *err = NULL;

	ASSERT_FAILS(volumes_start(second, &err), ERR_UNAVAILABLE, "held by process");
	ck_assert(!volumes_is_ready(second));
	volumes_free(TAKE_PTR(fx.v));
	ASSERT_OK(volumes_start(second, &err));
}
END_TEST

FIXTURE_MAIN("volumes_start", fixture_memory, of_volumes_of_one_name_the_first_is_meant_and_then_the_other,
	unfinished_volume_is_rolled_back, unfinished_volume_in_an_absent_pool_waits_for_it,
	rolling_back_removes_no_device_of_another_identity,
	device_of_another_identity_does_not_end_the_wait_for_a_pool,
	deletion_is_finished_wherever_it_was_cut_off, deletion_of_a_missing_volume_waits_for_its_pool,
	erasing_touches_no_device_without_the_identity, volume_whose_device_is_somebody_elses_is_missing,
	failed_listing_changes_nothing_and_the_start_can_be_repeated,
	unfinished_inline_volume_is_not_deleted_before_the_first_listing,
	no_state_is_dropped_while_a_pool_is_away, even_a_complete_pool_without_the_device_drops_no_state,
	device_without_state_is_left_alone, of_two_files_of_one_volume_the_ready_one_is_served,
	damaged_file_hides_no_other, no_device_is_destroyed_while_a_state_file_of_its_volume_is_damaged,
	file_of_the_go_driver_gets_its_pool_when_its_device_is_seen,
	file_of_the_go_driver_gets_no_pool_while_two_devices_bear_its_name, inactive_devices_are_activated,
	stranger_is_not_activated, failed_activation_keeps_no_other_volume_away_and_is_tried_again,
	device_that_was_replaced_while_it_was_activated_is_not_used,
	erasing_waits_for_its_device_to_be_active, second_driver_on_the_same_state_waits_for_it)
