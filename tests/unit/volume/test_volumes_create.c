/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume: names and sizes, existing volumes, the choice of pools, and what is left after a failure. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/strmap_equal.h"
#include "unit/volume/fixture.h"
#include "volume/id.h"

#define SIZE MIB(16)

static struct volume_request request(const char *name)
{
	return fixture_request(name, SIZE);
}

static int try_create(const struct volume_request *q, struct error **err)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;

	return volumes_create(fx.v, q, &info, err);
}

static void assert_nothing_left(size_t n_devices)
{
	ck_assert_uint_eq(fixture_n_files(), 0);
	ck_assert_uint_eq(fixture_n_devices(), n_devices);
}

START_TEST(new_volume_has_the_minted_id_its_device_and_its_record)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1234", SIZE - 1);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", info->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	struct error *err = NULL;
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint("pvc-1234", NODE_ID, id);
	ck_assert_str_eq(info->id, id);
	ck_assert_uint_eq(info->size_bytes, SIZE);
	ck_assert(!info->missing);
	ck_assert_str_eq(strmap_get(&info->context, "name"), "pvc-1234");
	ck_assert_uint_eq(d->size_bytes, SIZE);
	ck_assert_uint_eq(fixture_n_files(), 1);
	ASSERT_OK(state_parse(span_of(text), &r, &err));
	ck_assert_str_eq(r->identity, d->identity);
	ck_assert_str_eq(r->pool, d->pool);
	ck_assert_str_eq(r->fs_type, "ext4");
	ck_assert_str_eq(strmap_get(&r->parameters, "name"), "pvc-1234");
	ck_assert_str_eq(strmap_get(&r->parameters, "deviceMode"), "fake");
}
END_TEST

START_TEST(same_request_gives_the_same_volume_also_after_a_restart)
{
	CLEANUP(volume_info_freep) struct volume_info *first = fixture_create("pvc-1", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *second = fixture_create("pvc-1", SIZE);

	ck_assert_str_eq(first->id, second->id);
	fixture_restart();
	CLEANUP(volume_info_freep) struct volume_info *third = fixture_create("pvc-1", SIZE);
	ck_assert_str_eq(first->id, third->id);
	ck_assert(strmap_equal(&first->context, &third->context));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fx.n_creates, 1);
}
END_TEST

START_TEST(existing_volume_fits_by_its_size)
{
	fixture_make("pvc-1", SIZE);
	struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	q.required_bytes = 0;
	ASSERT_OK(try_create(&q, &err));
	q.required_bytes = SIZE;
	q.limit_bytes = SIZE;
	ASSERT_OK(try_create(&q, &err));
	q.required_bytes = SIZE + 1;
	q.limit_bytes = 0;
	ASSERT_FAILS(try_create(&q, &err), ERR_EXISTS, "another size");
	q.required_bytes = 0;
	q.limit_bytes = SIZE - 1;
	ASSERT_FAILS(try_create(&q, &err), ERR_EXISTS, "another size");
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(existing_volume_fits_by_its_parameters)
{
	fixture_make("pvc-1", SIZE);
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	q.parameters = &parameters;
	strmap_set(&parameters, "eraseafter", "1");
	strmap_set(&parameters, "usage", "AppDirect");
	ASSERT_OK(try_create(&q, &err));
	strmap_set(&parameters, "usage", "FileIO");
	ASSERT_FAILS(try_create(&q, &err), ERR_EXISTS, "other parameters");
	strmap_set(&parameters, "usage", "AppDirect");
	strmap_set(&parameters, "eraseafter", "false");
	ASSERT_FAILS(try_create(&q, &err), ERR_EXISTS, "other parameters");
	strmap_set(&parameters, "eraseafter", "1");
	q.fs_type = "xfs";
	ASSERT_FAILS(try_create(&q, &err), ERR_EXISTS, "other parameters");
}
END_TEST

START_TEST(requests_that_can_never_succeed_leave_nothing)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = request("");
	struct error *err = NULL;

	ASSERT_FAILS(try_create(&q, &err), ERR_INVALID_ARGUMENT, "name");
	q = request("a\x1b[b");
	ASSERT_FAILS(try_create(&q, &err), ERR_INVALID_ARGUMENT, "control");
	q = request("pvc-1");
	q.fs_type = "btrfs";
	ASSERT_FAILS(try_create(&q, &err), ERR_INVALID_ARGUMENT, "btrfs");
	q = request("pvc-1");
	q.limit_bytes = SIZE - 1;
	ASSERT_FAILS(try_create(&q, &err), ERR_INVALID_ARGUMENT, "limit_bytes");
	q = request("pvc-1");
	q.parameters = &parameters;
	strmap_set(&parameters, "eraseAfter", "false");
	ASSERT_FAILS(try_create(&q, &err), ERR_INVALID_ARGUMENT, "eraseAfter");
	strmap_done(&parameters);
	strmap_set(&parameters, "kataContainers", "true");
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "Kata Containers");
	assert_nothing_left(0);
	ck_assert_uint_eq(fx.n_creates, 0);
}
END_TEST

START_TEST(limit_below_the_rounded_size_is_out_of_range)
{
	struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	q.required_bytes = SIZE + 1;
	q.limit_bytes = SIZE + UNIT_BYTES - 1;
	/* As it stands in an Event of the claim, which names the volume already. */
	ck_assert_int_eq(try_create(&q, &err), -1);
	ck_assert_ptr_null(strstr(err->msg, "create volume"));
	error_clear(&err);
	ASSERT_FAILS(try_create(&q, &err), ERR_RANGE, "limit_bytes");
	assert_nothing_left(0);
	q.limit_bytes = SIZE + UNIT_BYTES;
	ASSERT_OK(try_create(&q, &err));
}
END_TEST

START_TEST(volume_is_never_smaller_than_its_file_system_needs)
{
	CLEANUP(volume_info_freep) struct volume_info *small = fixture_create("small", 0);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct volume_request q = fixture_request("pvc-1", 1);
	struct error *err = NULL;

	ck_assert_uint_eq(small->size_bytes, MIB(8));
	q.fs_type = "xfs";
	q.limit_bytes = MIB(299);
	ASSERT_FAILS(try_create(&q, &err), ERR_RANGE, "300Mi");
	q.limit_bytes = MIB(300);
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	ck_assert_uint_eq(info->size_bytes, MIB(300));
	ASSERT_OK(try_create(&q, &err));
}
END_TEST

START_TEST(fullest_pool_that_still_fits_is_taken)
{
	fixture_make_device("other", 1, "", REGION_BYTES - SIZE);
	struct error *err = NULL;

	ASSERT_OK(volumes_refresh(fx.v, &err));
	CLEANUP(volume_info_freep) struct volume_info *small = fixture_create("small", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(small->id);
	ck_assert_str_eq(d->pool, fx.pools[1]);
	CLEANUP(volume_info_freep) struct volume_info *next = fixture_create("next", SIZE);
	CLEANUP(device_freep) struct device *e = fixture_device(next->id);
	ck_assert_str_eq(e->pool, fx.pools[0]);
}
END_TEST

START_TEST(reported_maximum_can_be_created_and_no_byte_more)
{
	fixture_make("some", SIZE);
	struct capacity capacity;
	struct volume_request q;
	struct error *err = NULL;

	/* As it stands in an Event of the claim. */
	q = fixture_request("large", 8ULL << 30);
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED,
		"not enough space: 8Gi needed, the largest possible volume has ");
	for (size_t i = 0; i < N_POOLS; i++) {
		ck_assert(volumes_capacity(fx.v, /* sync= */ true, &capacity));
		CLEANUP(free_charp) char *name = x_asprintf("max%zu", i);
		q = fixture_request(name, capacity.max_volume_bytes + 1);
		ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "not enough space");
		q.required_bytes = capacity.max_volume_bytes;
		ASSERT_OK(try_create(&q, &err));
	}
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &capacity));
	ck_assert_uint_eq(capacity.max_volume_bytes, 0);
	ck_assert_uint_eq(capacity.available_bytes, 0);
	ck_assert_uint_eq(capacity.total_bytes, N_POOLS * REGION_BYTES);
	q = request("more");
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "not enough space");
	q.required_bytes = UINT64_MAX;
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "not enough space");
	ck_assert_uint_eq(fixture_n_files(), 3);
}
END_TEST

/* @durability: of the memory of pool @pool, as an earlier run of the driver has found it out */
static void restart_with(size_t pool, const char *durability)
{
	CLEANUP(free_charp) char *text = x_asprintf("{\"%s\":\"%s\"}\n", fx.pools[pool], durability);

	fixture_write("durability", text);
	fixture_restart();
}

START_TEST(memory_that_refuses_map_sync_is_for_those_that_do_without)
{
	struct volume_request q = request("pvc-1");
	struct capacity all, usable;
	struct error *err = NULL;

	restart_with(0, "fsync");
	fx.faults.absent_pool = fx.pools[1];
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ck_assert(volumes_capacity(fx.v, /* sync= */ false, &all));
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &usable));
	ck_assert_uint_eq(all.max_volume_bytes, REGION_BYTES);
	ck_assert_uint_eq(usable.max_volume_bytes, 0);
	ck_assert_uint_eq(usable.available_bytes, 0);
	ck_assert_uint_eq(usable.max_sector_volume_bytes, REGION_BYTES);
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED,
		"region0 has room, but the kernel refuses MAP_SYNC on its memory: a StorageClass with "
		"durability=fsync uses it");
	ck_assert_uint_eq(fixture_n_files(), 1);

	static const char *const usages[][2] = {{"usage", "FileIO"}, {"durability", "fsync"}};
	for (size_t i = 0; i < ARRAY_SIZE(usages); i++) {
		CLEANUP(strmap_done) struct strmap parameters = {0};
		CLEANUP(free_charp) char *name = x_asprintf("v%zu", i);

		strmap_set(&parameters, usages[i][0], usages[i][1]);
		q = request(name);
		q.parameters = &parameters;
		ASSERT_OK(try_create(&q, &err));
	}
}
END_TEST

START_TEST(other_memory_is_taken_where_there_is_some)
{
	static const char *const texts[] = {"synchronous", "unknown", "later"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(free_charp) char *name = x_asprintf("v%zu", i);

		restart_with(0, texts[i]);
		fixture_make(name, SIZE);
	}
	restart_with(0, "fsync");
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("last", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	ck_assert_str_eq(d->pool, fx.pools[1]);
}
END_TEST

START_TEST(capacity_is_right_where_listing_is_too_dear_to_repeat)
{
	struct capacity capacity;

	fx.ops.latest_pools = NULL;
	fx.n_lists = 0;
	fixture_make("some", SIZE);
	ck_assert_uint_eq(fx.n_lists, 0);
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &capacity));
	ck_assert_uint_eq(capacity.available_bytes, N_POOLS * REGION_BYTES - SIZE);
	ck_assert_uint_eq(capacity.max_volume_bytes, REGION_BYTES);
}
END_TEST

START_TEST(pool_that_filled_up_meanwhile_gives_way_to_the_next)
{
	fixture_make_device("other", 0, "", REGION_BYTES - SIZE);
	struct error *err = NULL;

	ASSERT_OK(volumes_refresh(fx.v, &err));
	fixture_make_device("sudden", 0, "", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	ck_assert_uint_eq(fx.n_creates, 2);
	ck_assert_str_eq(d->pool, fx.pools[1]);
	ck_assert_uint_eq(fixture_n_files(), 1);
}
END_TEST

START_TEST(used_up_label_slots_are_the_reason_that_is_reported)
{
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	fx.faults.no_slots = true;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "no free label slot in region");
	assert_nothing_left(0);
	fx.faults.no_slots = false;
	ASSERT_OK(try_create(&q, &err));
}
END_TEST

START_TEST(creation_that_fails_everywhere_leaves_nothing)
{
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	fx.faults.create = ERR_EXHAUSTED;
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "create fails");
	ck_assert_uint_eq(fx.n_creates, N_POOLS);
	assert_nothing_left(0);
	fx.faults.after = true;
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "create fails");
	assert_nothing_left(0);

	fx.n_creates = 0;
	fx.faults.create = ERR_INTERNAL;
	ASSERT_FAILS(try_create(&q, &err), ERR_INTERNAL, "create volume");
	ck_assert_uint_eq(fx.n_creates, N_POOLS);
	ck_assert_uint_eq(fixture_n_devices(), 0);
	ck_assert_uint_eq(fixture_n_files(), 0);
	fx.faults.create = 0;
	ASSERT_OK(try_create(&q, &err));
}
END_TEST

static const char *refusing_pool;

/* The other region works. */
static bool fails_in_pool(const struct device_spec *spec)
{
	return str_eq(spec->pool, refusing_pool);
}

static uint64_t offered(void)
{
	struct capacity c;

	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &c));
	return c.available_bytes;
}

static size_t n_failing_pools(void)
{
	struct volumes_overview o;

	volumes_overview(fx.v, &o);
	return o.n_failing_pools;
}

START_TEST(a_pool_that_fails_is_left_for_the_other_and_avoided_for_a_while)
{
	CLEANUP(volume_info_freep) struct volume_info *big = NULL;
	CLEANUP(volume_info_freep) struct volume_info *second = NULL;
	struct volume_request q = fixture_request("big", REGION_BYTES / 2);
	struct error *err = NULL;

	/* the smaller rest is the best fit */
	big = fixture_create("first", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(big->id);
	refusing_pool = d->pool;
	fx.faults.create = ERR_INTERNAL;
	fx.faults.creates_if = fails_in_pool;
	fx.n_creates = 0;
	second = fixture_create("second", SIZE);
	ck_assert_uint_eq(fx.n_creates, 2);
	CLEANUP(device_freep) struct device *other = fixture_device(second->id);
	ck_assert_str_ne(other->pool, refusing_pool);
	ck_assert_uint_eq(offered(), REGION_BYTES - SIZE);
	ck_assert_uint_eq(n_failing_pools(), 1);

	/* not asked again, as long as the other has room */
	fixture_make("third", SIZE);
	ck_assert_uint_eq(fx.n_creates, 3);

	/* but rather than nothing */
	q.required_bytes = REGION_BYTES - SIZE;
	ASSERT_FAILS(try_create(&q, &err), ERR_INTERNAL, "create fails");
	fx.faults.create = 0;
	ASSERT_OK(try_create(&q, &err));
	ck_assert_uint_eq(offered(), REGION_BYTES - 2 * SIZE);
	ck_assert_uint_eq(n_failing_pools(), 0);
}
END_TEST

START_TEST(a_pool_is_not_avoided_for_what_only_came_too_early)
{
	static const enum err_code codes[] = {ERR_UNAVAILABLE, ERR_EXHAUSTED};
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		fx.faults.create = codes[i];
		ASSERT_FAILS(try_create(&q, &err), codes[i], "create fails");
		ck_assert_uint_eq(offered(), N_POOLS * REGION_BYTES);
	}
}
END_TEST

START_TEST(failure_that_cannot_be_undone_keeps_the_record_and_tries_no_other_pool)
{
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	fx.faults.create = ERR_EXHAUSTED;
	fx.faults.after = true;
	fx.faults.list = ERR_INTERNAL;
	ASSERT_FAILS(try_create(&q, &err), ERR_UNAVAILABLE, "could not be undone yet");
	ck_assert_uint_eq(fx.n_creates, 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
	ck_assert_uint_eq(fixture_n_devices(), 1);

	fx.faults = (struct faults){0};
	ASSERT_OK(try_create(&q, &err));
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ck_assert_uint_eq(fixture_n_files(), 1);
}
END_TEST

START_TEST(device_of_the_id_without_state_is_refused_and_left_alone)
{
	char id[VOLUME_ID_MAX + 1];
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	volume_id_mint("pvc-1", NODE_ID, id);
	CLEANUP(device_freep) struct device *stranger = fixture_add_device(id, 1, "theirs", SIZE);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(try_create(&q, &err), ERR_PRECONDITION, "check -repair");
	ck_assert_uint_eq(fx.n_creates, 0);
	assert_nothing_left(1);

	/* also when it appeared since the last listing, and whatever identity it bears */
	ASSERT_OK(device_destroy(fx.fake, stranger, -1, &err));
	ASSERT_OK(volumes_refresh(fx.v, &err));
	fixture_make_device(id, 1, "", SIZE);
	ASSERT_FAILS(try_create(&q, &err), ERR_PRECONDITION, "check -repair");
	ck_assert_uint_eq(fx.n_creates, 1);
	assert_nothing_left(1);
}
END_TEST

START_TEST(device_of_the_go_drivers_id_without_state_is_refused)
{
	char id[VOLUME_ID_MAX + 1];
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	volume_id_mint_go("pvc-1", id);
	fixture_make_device(id, 0, "", SIZE);
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(try_create(&q, &err), ERR_PRECONDITION, id);
	assert_nothing_left(1);
}
END_TEST

START_TEST(damaged_state_file_is_not_replaced)
{
	char id[VOLUME_ID_MAX + 1];
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	volume_id_mint("pvc-1", NODE_ID, id);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", id);
	fixture_write(file, "{damaged");
	fixture_restart();
	ASSERT_FAILS(try_create(&q, &err), ERR_PRECONDITION, "damaged");
	ASSERT_FAILS(volumes_delete(fx.v, id, &err), ERR_PRECONDITION, "damaged");
	CLEANUP(free_charp) char *text = fixture_read(file);
	ck_assert_str_eq(text, "{damaged");
}
END_TEST

START_TEST(volume_of_the_go_driver_is_found_by_its_name)
{
	char id[VOLUME_ID_MAX + 1];
	struct volume_request q = request("pvc-1234");
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	volume_id_mint_go("pvc-1234", id);
	fixture_make_device(id, 0, "", SIZE);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", id);
	CLEANUP(free_charp)
	char *text = x_asprintf(
		"{\"id\":\"%s\",\"size\":%ju,\"parameters\":{\"deviceMode\":\"lvm\",\"eraseafter\":"
		"\"true\",\"name\":\"pvc-1234\",\"size\":\"16Mi\"}}\n",
		id, (uintmax_t)SIZE);
	fixture_write(file, text);
	fixture_restart();
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	ck_assert_str_eq(info->id, id);
	ck_assert_uint_eq(info->context.n, 2);
	q.fs_type = "xfs";
	ASSERT_OK(try_create(&q, &err));
	q.required_bytes = SIZE + 1;
	ASSERT_FAILS(try_create(&q, &err), ERR_EXISTS, "another size");
	ck_assert_uint_eq(fixture_n_devices(), 1);
}
END_TEST

START_TEST(missing_volume_is_unavailable_and_not_made_again)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	fx.faults.absent_pool = d->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(try_create(&q, &err), ERR_UNAVAILABLE, "missing");
	fx.faults.absent_pool = NULL;
	fx.faults.incomplete_pool = d->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(try_create(&q, &err), ERR_UNAVAILABLE, "missing");
	fx.faults.list = ERR_INTERNAL;
	ASSERT_FAILS(try_create(&q, &err), ERR_UNAVAILABLE, "list");
	fx.faults = (struct faults){0};
	ASSERT_OK(try_create(&q, &err));
	ck_assert_uint_eq(fx.n_creates, 1);
}
END_TEST

/* As stage and publish say: an OK would let a pod wait for what cannot come. */
START_TEST(volume_whose_device_lost_its_mode_is_refused)
{
	fixture_make("pvc-1", SIZE);
	const struct volume_request q = request("pvc-1");
	struct error *err = NULL;

	fx.faults.raw = true;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(try_create(&q, &err), ERR_PRECONDITION, "is now in raw mode");
	ck_assert_uint_eq(fx.n_creates, 1);
	fx.faults.raw = false;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_OK(try_create(&q, &err));
}
END_TEST

START_TEST(incomplete_pools_take_no_volume)
{
	const struct volume_request q = request("pvc-1");
	struct capacity capacity;
	struct error *err = NULL;

	fx.faults.incomplete_pool = fx.pools[0];
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ck_assert(volumes_capacity(fx.v, /* sync= */ true, &capacity));
	ck_assert_uint_eq(capacity.available_bytes, REGION_BYTES);
	ck_assert_uint_eq(capacity.total_bytes, N_POOLS * REGION_BYTES);
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("a", SIZE);
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	ck_assert_str_eq(d->pool, fx.pools[1]);
	fx.faults.absent_pool = fx.pools[1];
	ASSERT_OK(volumes_refresh(fx.v, &err));
	ASSERT_FAILS(try_create(&q, &err), ERR_EXHAUSTED, "not enough space");
}
END_TEST

static void call_all_again(void)
{
	const struct volume_request q = request("pvc-1");
	char id[VOLUME_ID_MAX + 1];
	struct error *err = NULL;

	fx.faults.in_create = NULL;
	volume_id_mint("pvc-1", NODE_ID, id);
	ASSERT_FAILS(try_create(&q, &err), ERR_ABORTED, id);
	ASSERT_FAILS(volumes_delete(fx.v, id, &err), ERR_ABORTED, id);
	fixture_make("pvc-2", SIZE);
	ck_assert(volumes_is_ready(fx.v));
}

START_TEST(second_call_meanwhile_is_aborted_and_others_are_not)
{
	fx.faults.in_create = call_all_again;
	fixture_make("pvc-1", SIZE);
	ck_assert_uint_eq(fixture_n_devices(), 2);
}
END_TEST

START_TEST(nothing_is_done_before_the_start)
{
	const struct volume_request q = request("pvc-1");
	struct capacity capacity;
	struct error *err = NULL;

	fixture_stop();
	fixture_open();
	ck_assert(!volumes_is_ready(fx.v));
	ck_assert(!volumes_capacity(fx.v, /* sync= */ true, &capacity));
	ASSERT_FAILS(try_create(&q, &err), ERR_UNAVAILABLE, "starting");
	ASSERT_FAILS(volumes_delete(fx.v, "v1", &err), ERR_UNAVAILABLE, "starting");
	assert_nothing_left(0);
}
END_TEST

FIXTURE_MAIN("volumes_create", fixture_memory, new_volume_has_the_minted_id_its_device_and_its_record,
	same_request_gives_the_same_volume_also_after_a_restart, existing_volume_fits_by_its_size,
	existing_volume_fits_by_its_parameters, requests_that_can_never_succeed_leave_nothing,
	limit_below_the_rounded_size_is_out_of_range, volume_is_never_smaller_than_its_file_system_needs,
	fullest_pool_that_still_fits_is_taken, reported_maximum_can_be_created_and_no_byte_more,
	memory_that_refuses_map_sync_is_for_those_that_do_without, other_memory_is_taken_where_there_is_some,
	capacity_is_right_where_listing_is_too_dear_to_repeat,
	pool_that_filled_up_meanwhile_gives_way_to_the_next, creation_that_fails_everywhere_leaves_nothing,
	a_pool_that_fails_is_left_for_the_other_and_avoided_for_a_while,
	a_pool_is_not_avoided_for_what_only_came_too_early,
	failure_that_cannot_be_undone_keeps_the_record_and_tries_no_other_pool,
	used_up_label_slots_are_the_reason_that_is_reported,
	device_of_the_id_without_state_is_refused_and_left_alone,
	device_of_the_go_drivers_id_without_state_is_refused, damaged_state_file_is_not_replaced,
	volume_of_the_go_driver_is_found_by_its_name, missing_volume_is_unavailable_and_not_made_again,
	volume_whose_device_lost_its_mode_is_refused, incomplete_pools_take_no_volume,
	second_call_meanwhile_is_aborted_and_others_are_not, nothing_is_done_before_the_start)
