/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume for raw block access, and of cache volumes. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/content.h"
#include "unit/volume/fixture.h"
#include "volume/id.h"

#define SIZE MIB(16)

static struct volume_request block_request(const char *name)
{
	struct volume_request q = fixture_request(name, SIZE);

	q.fs_type = NULL;
	q.block = true;
	return q;
}

static int try_create(const struct volume_request *q, struct error **err)
{
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;

	return volumes_create(fx.v, q, &info, err);
}

static struct volume_record *read_record(const char *id)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct volume_record *r = NULL;
	struct error *err = NULL;

	ASSERT_OK(state_parse(span_of(text), &r, &err));
	return r;
}

static void leave_content(const struct device *d)
{
	content_fill(d, 'x');
}

START_TEST(block_volume_is_all_zeros_and_recorded_as_such)
{
	const struct volume_request q = block_request("pvc-1");
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	fx.faults.made = leave_content;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	CLEANUP(device_freep) struct device *d = fixture_device(info->id);
	CLEANUP(volume_record_freep) struct volume_record *r = read_record(info->id);
	ck_assert_uint_eq(content_count(d, '\0'), SIZE / CONTENT_BLOCK);
	ck_assert(r->block_clean);
	ck_assert_ptr_null(r->fs_type);
}
END_TEST

START_TEST(volume_for_file_systems_is_not_recorded_as_clean)
{
	CLEANUP(volume_info_freep) struct volume_info *info = fixture_create("pvc-1", SIZE);
	CLEANUP(volume_record_freep) struct volume_record *r = read_record(info->id);

	ck_assert(!r->block_clean);
}
END_TEST

START_TEST(block_volume_may_be_smaller_than_any_file_system)
{
	struct volume_request q = block_request("pvc-1");
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	q.required_bytes = 1;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	ck_assert_uint_eq(info->size_bytes, UNIT_BYTES);
}
END_TEST

START_TEST(volume_for_both_is_clean_and_large_enough)
{
	struct volume_request q = block_request("pvc-1");
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;

	q.fs_type = "ext4";
	q.required_bytes = 1;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	CLEANUP(volume_record_freep) struct volume_record *r = read_record(info->id);
	ck_assert(r->block_clean);
	ck_assert_str_eq(r->fs_type, "ext4");
	ck_assert_uint_eq(info->size_bytes, MIB(8));
}
END_TEST

START_TEST(request_for_neither_is_invalid)
{
	struct volume_request q = block_request("pvc-1");
	struct error *err = NULL;

	q.block = false;
	ASSERT_FAILS(try_create(&q, &err), ERR_INVALID_ARGUMENT, "neither");
}
END_TEST

START_TEST(existing_volume_is_given_as_block_only_if_it_is_clean)
{
	struct volume_request clean = block_request("clean");
	struct volume_request other = block_request("other");
	struct error *err = NULL;

	ASSERT_OK(try_create(&clean, &err));
	ASSERT_OK(try_create(&clean, &err));
	clean.block = false;
	clean.fs_type = "ext4";
	ASSERT_OK(try_create(&clean, &err));
	fixture_make("other", SIZE);
	ASSERT_FAILS(try_create(&other, &err), ERR_EXISTS, "other parameters");
	ck_assert_uint_eq(fx.n_creates, 2);
}
END_TEST

START_TEST(volume_of_the_go_driver_is_given_as_block)
{
	const struct volume_request q = block_request("n");
	CLEANUP(device_freep) struct device *d = fixture_add_device("pvc-go", 0, "", SIZE);
	struct error *err = NULL;

	content_fill(d, 'x');
	fixture_write(
		"pvc-go.json", "{\"id\":\"pvc-go\",\"size\":16777216,\"parameters\":{\"name\":\"n\"}}\n");
	fixture_restart();
	ASSERT_OK(try_create(&q, &err));
	ck_assert_uint_eq(content_count(d, 'x'), SIZE / CONTENT_BLOCK);
}
END_TEST

START_TEST(cache_volume_has_one_id_on_all_nodes)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request("pvc-1234", SIZE);
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct error *err = NULL;
	char id[VOLUME_ID_MAX + 1];

	strmap_set(&parameters, "persistencyModel", "cache");
	strmap_set(&parameters, "cacheSize", "2");
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &info, &err));
	volume_id_mint("pvc-1234", NULL, id);
	ck_assert_str_eq(info->id, id);
	ck_assert_str_eq(strmap_get(&info->context, "persistencyModel"), "cache");
	ck_assert_str_eq(strmap_get(&info->context, "cacheSize"), "2");
	fixture_restart();
	ASSERT_OK(try_create(&q, &err));
	strmap_set(&parameters, "cacheSize", "3");
	ASSERT_FAILS(try_create(&q, &err), ERR_EXISTS, "other parameters");
	ck_assert_uint_eq(fixture_n_devices(), 1);
	ASSERT_OK(volumes_delete(fx.v, id, &err));
}
END_TEST

FIXTURE_MAIN("volumes_block", fixture_folder, block_volume_is_all_zeros_and_recorded_as_such,
	volume_for_file_systems_is_not_recorded_as_clean, block_volume_may_be_smaller_than_any_file_system,
	volume_for_both_is_clean_and_large_enough, request_for_neither_is_invalid,
	existing_volume_is_given_as_block_only_if_it_is_clean, volume_of_the_go_driver_is_given_as_block,
	cache_volume_has_one_id_on_all_nodes)
