/* SPDX-License-Identifier: Apache-2.0 */
/* ListVolumes: pages stay correct while volumes are created and deleted. */
#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/fixture.h"

#define N      7
#define MAX_ID 64

static char ids[N][MAX_ID]; /* sorted */

static int compare_ids(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void create_all(void)
{
	for (int i = 0; i < N; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("%c-volume", 'a' + i);
		CLEANUP(volume_info_freep) struct volume_info *info = fixture_create(name, MIB(8));
		snprintf(ids[i], sizeof(ids[i]), "%s", info->id);
	}
	qsort(ids, N, sizeof(ids[0]), compare_ids);
}

static size_t list(const char *after, size_t max, char page[N][MAX_ID], bool *ret_more)
{
	struct volume_info **infos = NULL;
	size_t n;

	volumes_list(fx.v, after, max, &infos, &n, ret_more);
	ck_assert_uint_le(n, N);
	for (size_t i = 0; i < n; i++) {
		snprintf(page[i], MAX_ID, "%s", infos[i]->id);
		volume_info_free(infos[i]);
	}
	free(infos);
	return n;
}

START_TEST(empty_list_has_no_more)
{
	char page[N][MAX_ID];
	bool more = true;

	ck_assert_uint_eq(list(NULL, 0, page, &more), 0);
	ck_assert(!more);
	more = true;
	ck_assert_uint_eq(list("x", 3, page, &more), 0);
	ck_assert(!more);
}
END_TEST

START_TEST(pages_of_any_size_hold_every_volume_once_and_in_order)
{
	create_all();
	for (size_t max = 0; max <= N + 1; max++) {
		char page[N][MAX_ID];
		char after[MAX_ID] = "";
		size_t seen = 0;
		bool more = true;

		while (more) {
			size_t n = list(*after ? after : NULL, max, page, &more);
			ck_assert_uint_gt(n, 0);
			ck_assert(max == 0 || n <= max);
			for (size_t i = 0; i < n; i++)
				ck_assert_str_eq(page[i], ids[seen++]);
			snprintf(after, sizeof(after), "%s", page[n - 1]);
		}
		ck_assert_uint_eq(seen, N);
	}
}
END_TEST

START_TEST(changes_between_pages_neither_repeat_nor_hide_others)
{
	char page[N][MAX_ID];
	struct error *err = NULL;
	bool more;

	create_all();
	ck_assert_uint_eq(list(NULL, 3, page, &more), 3);
	/* one before, the last one shown, and one behind the place vanish */
	ASSERT_OK(volumes_delete(fx.v, ids[0], &err));
	ASSERT_OK(volumes_delete(fx.v, ids[2], &err));
	ASSERT_OK(volumes_delete(fx.v, ids[4], &err));
	fixture_make("0-new", MIB(8));
	CLEANUP(volume_info_freep) struct volume_info *behind = fixture_create("z-new", MIB(8));
	ck_assert_uint_eq(list(ids[2], 3, page, &more), 3);
	ck_assert(more);
	ck_assert_str_eq(page[0], ids[3]);
	ck_assert_str_eq(page[1], ids[5]);
	ck_assert_str_eq(page[2], ids[6]);
	ck_assert_uint_eq(list(page[2], 3, page, &more), 1);
	ck_assert(!more);
	ck_assert_str_eq(page[0], behind->id);
}
END_TEST

START_TEST(only_whole_volumes_are_listed_and_missing_ones_are_marked)
{
	CLEANUP(volume_info_freep) struct volume_info *a = fixture_create("a", MIB(8));
	CLEANUP(volume_info_freep) struct volume_info *b = fixture_create("b", MIB(8));
	CLEANUP(device_freep) struct device *d = fixture_device(a->id);
	struct volume_info **infos = NULL;
	struct error *err = NULL;
	size_t n;
	bool more;

	fx.faults.destroy = ERR_INTERNAL;
	ASSERT_FAILS(volumes_delete(fx.v, b->id, &err), ERR_INTERNAL, b->id);
	fx.faults.absent_pool = d->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	volumes_list(fx.v, NULL, 1, &infos, &n, &more);
	ck_assert_uint_eq(n, 1);
	ck_assert(!more);
	ck_assert_str_eq(infos[0]->id, a->id);
	ck_assert(infos[0]->missing);
	ck_assert_uint_eq(infos[0]->size_bytes, MIB(8));
	ck_assert_str_eq(strmap_get(&infos[0]->context, "name"), "a");
	volume_info_free(infos[0]);
	free(infos);
}
END_TEST

START_TEST(overview_counts_volumes_by_phase)
{
	CLEANUP(volume_info_freep) struct volume_info *a = fixture_create("a", MIB(8));
	CLEANUP(device_freep) struct device *d = fixture_device(a->id);
	struct volumes_overview o;
	struct error *err = NULL;

	volumes_overview(fx.v, &o);
	ck_assert(o.n_ready == 1 && o.n_creating + o.n_missing + o.n_erasing == 0);
	fx.faults.absent_pool = d->pool;
	ASSERT_OK(volumes_refresh(fx.v, &err));
	volumes_overview(fx.v, &o);
	ck_assert(o.n_missing == 1 && o.n_creating + o.n_ready + o.n_erasing == 0);
	fixture_stop();
	fixture_open();
	volumes_overview(fx.v, &o);
	ck_assert(o.n_creating + o.n_ready + o.n_missing + o.n_erasing == 0);
}
END_TEST

FIXTURE_MAIN("volumes_list", fixture_memory, empty_list_has_no_more,
	pages_of_any_size_hold_every_volume_once_and_in_order,
	changes_between_pages_neither_repeat_nor_hide_others,
	only_whole_volumes_are_listed_and_missing_ones_are_marked, overview_counts_volumes_by_phase)
