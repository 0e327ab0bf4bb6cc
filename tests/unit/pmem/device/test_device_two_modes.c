/* SPDX-License-Identifier: Apache-2.0 */
/* Two managers as one, over two fakes whose listings are counted and can fail. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "pmem/device/device.h"
#include "unit/unit.h"

#define MIB(n) ((uint64_t)(n) << 20)

/* A fake in memory with pools named otherwise than those of the next one. */
struct side {
	struct device_ops ops;
	struct device_manager *fake;
	const char *prefix; /* of the pools' uuids */
	unsigned listings;
	unsigned activations; /* devices that it was given */
	bool fails;
	uint64_t media_errors; /* bytes of each device that cannot be read */
	const char *confirmed; /* the device that was asked for last */
	struct device_activity activity;
};

static struct side sides[2];
static struct device_manager *pair;

static void rename_pool(char **uuid, const char *prefix)
{
	char *renamed = x_asprintf("%s%s", prefix, *uuid);

	free(*uuid);
	*uuid = renamed;
}

static int side_list(void *self, struct device_list **ret, struct error **err)
{
	struct side *s = self;

	s->listings++;
	if (s->fails)
		return err_set(err, ERR_UNAVAILABLE, "listing is broken");
	if (device_list_read(s->fake, ret, err) < 0)
		return -1;
	for (size_t i = 0; i < (*ret)->n_devices; i++)
		rename_pool(&(*ret)->devices[i].pool, s->prefix);
	for (size_t i = 0; i < (*ret)->n_pools; i++)
		rename_pool(&(*ret)->pools[i].uuid, s->prefix);
	return 0;
}

static struct device_list *side_latest_pools(void *self)
{
	struct side *s = self;
	struct device_list *l = s->fails ? NULL : device_latest_pools(s->fake);

	for (size_t i = 0; l && i < l->n_pools; i++)
		rename_pool(&l->pools[i].uuid, s->prefix);
	return l;
}

static int side_confirm(void *self, const struct device *d, struct error **err)
{
	(void)err;
	((struct side *)self)->confirmed = d->id;
	return 0;
}

static int side_create(void *self, const struct device_spec *spec, struct device **ret, struct error **err)
{
	struct side *s = self;
	struct device_spec own = *spec;

	own.pool += strlen(s->prefix);
	if (device_create(s->fake, &own, ret, err) < 0)
		return -1;
	rename_pool(&(*ret)->pool, s->prefix);
	return 0;
}

static int side_destroy(void *self, const struct device *device, int exclusive_fd, struct error **err)
{
	struct side *s = self;
	struct device own = *device;

	ck_assert(str_starts(device->pool, s->prefix));
	own.pool += strlen(s->prefix);
	return device_destroy(s->fake, &own, exclusive_fd, err);
}

static int side_activate(void *self, const struct device_list *l, struct error **err)
{
	struct side *s = self;

	for (size_t i = 0; i < l->n_devices; i++)
		ck_assert(str_starts(l->devices[i].pool, s->prefix));
	for (size_t i = 0; i < l->n_pools; i++)
		ck_assert(str_starts(l->pools[i].uuid, s->prefix));
	s->activations += (unsigned)l->n_devices;
	return s->fails ? err_set(err, ERR_INTERNAL, "%s does not activate", s->prefix) : 0;
}

static int side_media_errors(
	void *self, const struct device_list *l, struct media_errors *ret, struct error **err)
{
	struct side *s = self;

	for (size_t i = 0; i < l->n_devices; i++)
		ret[i] = (struct media_errors){.bytes = s->media_errors, .unknown = s->fails};
	return s->fails ? err_set(err, ERR_INTERNAL, "%s has no lists", s->prefix) : 0;
}

static void side_tick(void *self)
{
	(void)self;
}

static void side_activity(void *self, struct device_activity *ret)
{
	*ret = ((struct side *)self)->activity;
}

static void side_close(void *self)
{
	struct side *s = self;

	device_close(s->fake);
}

static struct device_manager *open_side(struct side *s, const char *prefix, bool has_latest)
{
	const struct device_fake_config config = {
		.n_regions = 1, .region_bytes = MIB(64), .unit_bytes = MIB(4)};
	struct device_manager *m = x_malloc(sizeof(*m));
	struct error *err = NULL;

	*s = (struct side){.prefix = prefix};
	ASSERT_OK(device_open_fake(&config, &s->fake, &err));
	s->ops = (struct device_ops){.mode = prefix,
		.list = side_list,
		.latest_pools = has_latest ? side_latest_pools : NULL,
		.confirm = side_confirm,
		.create = side_create,
		.destroy = side_destroy,
		.activate = side_activate,
		.fit = device_fit_units,
		.media_errors = side_media_errors,
		.tick = side_tick,
		.activity = side_activity,
		.close = side_close};
	*m = (struct device_manager){.ops = &s->ops, .self = s};
	return m;
}

static void open_pair(bool has_latest)
{
	struct device_manager *a = open_side(&sides[0], "a-", has_latest);

	pair = device_open_two_modes(a, open_side(&sides[1], "b-", /* has_latest= */ false));
}

static void open_cheap(void)
{
	open_pair(/* has_latest= */ true);
}

static void close_pair(void)
{
	device_close(pair);
}

/* As after a change in the first. */
static struct device_list *latest(void)
{
	struct device_list *l = device_latest_pools(pair);

	ck_assert_ptr_nonnull(l);
	return l;
}

static struct device_list *list(void)
{
	struct device_list *l = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_list_read(pair, &l, &err));
	return l;
}

/* Through the pair, or behind its back. */
static struct device *create_in(struct device_manager *m, const char *id)
{
	char identity[UUID_TEXT_LEN + 1];
	struct device_list *l = NULL;
	struct device *d = NULL;
	struct error *err = NULL;

	ASSERT_OK(device_list_read(m, &l, &err));
	const struct device_spec spec = {id, l->pools[0].uuid, identity, MIB(4), false};
	uuid_generate_text(identity);
	ASSERT_OK(device_create(m, &spec, &d, &err));
	device_list_free(l);
	return d;
}

/* As made in the other device mode, before this manager. Its pool is named by the fake. */
static void have_other_device(const char *id)
{
	device_free(create_in(sides[1].fake, id));
}

START_TEST(devices_of_both_are_listed_and_the_pools_of_the_second_are_closed)
{
	have_other_device("m");
	device_free(create_in(pair, "z"));
	device_free(create_in(pair, "c"));
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_devices, 3);
	ck_assert_str_eq(l->devices[0].id, "c");
	ck_assert_str_eq(l->devices[1].id, "m");
	ck_assert_str_eq(l->devices[2].id, "z");
	ck_assert_uint_eq(l->n_pools, 2);
	ck_assert(!l->pools[0].closed && l->pools[0].complete);
	ck_assert(l->pools[1].closed && l->pools[1].complete);
	ck_assert_uint_eq(device_fit(pair, &l->pools[0], false, 1), MIB(4));
	ck_assert_uint_eq(device_fit(pair, &l->pools[1], false, 1), UINT64_MAX);
	ck_assert_str_eq(pair->ops->mode, "a-");
}
END_TEST

START_TEST(each_device_is_destroyed_by_its_owner)
{
	struct error *err = NULL;

	have_other_device("other");
	device_free(create_in(pair, "own"));
	CLEANUP(device_list_freep) struct device_list *l = list();
	ASSERT_OK(device_destroy(pair, device_list_find(l, "other"), -1, &err));
	CLEANUP(device_list_freep) struct device_list *own = list();
	ck_assert_uint_eq(own->n_devices, 1);
	ASSERT_OK(device_destroy(pair, device_list_find(l, "own"), -1, &err));
	CLEANUP(device_list_freep) struct device_list *none = list();
	ck_assert_uint_eq(none->n_devices, 0);
}
END_TEST

START_TEST(id_of_a_device_of_the_second_is_taken)
{
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	struct device *d = NULL;
	struct error *err = NULL;

	have_other_device("one");
	l = list();
	const struct device_spec spec = {
		"one", l->pools[0].uuid, "6f1d2c3b-0000-4000-8000-00000000000a", 1, false};
	ASSERT_FAILS(device_create(pair, &spec, &d, &err), ERR_EXISTS, "one");
}
END_TEST

START_TEST(failing_second_is_left_out_and_its_volumes_are_not_given_up)
{
	have_other_device("other");
	device_free(create_in(pair, "own"));
	device_list_free(list());
	sides[1].fails = true;
	CLEANUP(device_list_freep) struct device_list *l = list();
	ck_assert_uint_eq(l->n_devices, 1);
	ck_assert_str_eq(l->devices[0].id, "own");
	/* no pool: a search for a device in it cannot say that it is gone */
	ck_assert_uint_eq(l->n_pools, 1);

	sides[1].fails = false;
	CLEANUP(device_list_freep) struct device_list *again = list();
	ck_assert_uint_eq(again->n_devices, 2);
}
END_TEST

/* A command that times out, at each volume made or deleted, would keep all of them waiting. */
START_TEST(failing_second_is_not_tried_again_for_a_change_in_the_first)
{
	have_other_device("other");
	sides[1].fails = true;
	device_free(create_in(pair, "own"));
	sides[1].fails = false;
	unsigned listings = sides[1].listings;
	CLEANUP(device_list_freep) struct device_list *after = latest();
	ck_assert_uint_eq(after->n_pools, 1);
	ck_assert_uint_eq(after->pools[0].capacity.available_bytes, MIB(60));
	ck_assert_uint_eq(sides[1].listings, listings);
	CLEANUP(device_list_freep) struct device_list *later = list();
	ck_assert_uint_eq(later->n_devices, 2);
	ck_assert_uint_eq(sides[1].listings, listings + 1);
}
END_TEST

START_TEST(failure_of_one_keeps_the_media_errors_of_the_other)
{
	have_other_device("b");
	device_free(create_in(pair, "a"));
	CLEANUP(device_list_freep) struct device_list *l = list();

	for (size_t failing = 0; failing < 2; failing++) {
		struct media_errors *found = NULL;
		struct error *err = NULL;

		sides[failing].fails = true;
		sides[1 - failing].fails = false;
		sides[1 - failing].media_errors = 512;
		ASSERT_FAILS(device_media_errors(pair, l, &found, &err), ERR_INTERNAL, "has no lists");
		ck_assert(found[failing].unknown && !found[1 - failing].unknown);
		ck_assert_uint_eq(found[1 - failing].bytes, 512);
		free(found);
	}
}
END_TEST

START_TEST(failing_first_is_a_failure)
{
	struct device_list *l = NULL;
	struct error *err = NULL;

	sides[0].fails = true;
	ASSERT_FAILS(device_list_read(pair, &l, &err), ERR_UNAVAILABLE, "broken");
}
END_TEST

START_TEST(second_is_not_listed_for_a_change_in_the_first)
{
	struct error *err = NULL;

	have_other_device("other");
	device_list_free(list());
	CLEANUP(device_freep) struct device *d = create_in(pair, "own");
	unsigned listings = sides[1].listings;
	CLEANUP(device_list_freep) struct device_list *after_create = latest();
	ck_assert_uint_eq(after_create->n_pools, 1);
	ck_assert_uint_eq(after_create->pools[0].capacity.available_bytes, MIB(60));
	ASSERT_OK(device_destroy(pair, d, -1, &err));
	CLEANUP(device_list_freep) struct device_list *after_destroy = latest();
	ck_assert_uint_eq(after_destroy->pools[0].capacity.available_bytes, MIB(64));
	ck_assert_uint_eq(sides[1].listings, listings);
	device_list_free(list());
	ck_assert_uint_eq(sides[1].listings, listings + 1);
}
END_TEST

START_TEST(nothing_is_known_of_a_second_that_was_not_listed_yet)
{
	ck_assert_ptr_null(device_latest_pools(pair));
	device_list_free(list());
	device_list_free(latest());
}
END_TEST

START_TEST(path_is_confirmed_by_the_owner)
{
	struct error *err = NULL;

	have_other_device("other");
	device_free(create_in(pair, "own"));
	CLEANUP(device_list_freep) struct device_list *l = list();
	ASSERT_OK(device_confirm(pair, device_list_find(l, "own"), &err));
	ck_assert_str_eq(sides[0].confirmed, "own");
	ck_assert_ptr_null(sides[1].confirmed);
	ASSERT_OK(device_confirm(pair, device_list_find(l, "other"), &err));
	ck_assert_str_eq(sides[1].confirmed, "other");
}
END_TEST

START_TEST(second_is_listed_after_a_change_in_it)
{
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	struct error *err = NULL;

	have_other_device("other");
	l = list();
	device_free(create_in(pair, "own"));
	ASSERT_OK(device_destroy(pair, device_list_find(l, "other"), -1, &err));
	ck_assert_ptr_null(device_latest_pools(pair));
	CLEANUP(device_list_freep) struct device_list *after = list();
	ck_assert_uint_eq(after->n_devices, 1);
	ck_assert_str_eq(after->devices[0].id, "own");
}
END_TEST

START_TEST(where_the_first_says_nothing_the_pair_says_nothing)
{
	close_pair();
	open_pair(/* has_latest= */ false);
	device_list_free(list());
	ck_assert_ptr_null(pair->ops->latest_pools);
	ck_assert_ptr_null(device_latest_pools(pair));
}
END_TEST

START_TEST(each_activates_its_own_also_where_the_other_fails)
{
	struct error *err = NULL;

	have_other_device("other");
	device_free(create_in(pair, "own"));
	CLEANUP(device_list_freep) struct device_list *l = list();
	ASSERT_OK(device_activate(pair, l, &err));
	ck_assert_uint_eq(sides[0].activations, 1);
	ck_assert_uint_eq(sides[1].activations, 1);
	sides[_i].fails = true;
	ASSERT_FAILS(device_activate(pair, l, &err), ERR_INTERNAL, sides[_i].prefix);
	ck_assert_uint_eq(sides[0].activations, 2);
	ck_assert_uint_eq(sides[1].activations, 2);
}
END_TEST

START_TEST(helpers_of_both_are_told_of)
{
	struct device_activity a;

	sides[0].activity = (struct device_activity){.restarts = 1};
	sides[1].activity = (struct device_activity){"lvm lvremove", 5, 2};
	device_activity(pair, &a);
	ck_assert_str_eq(a.command, "lvm lvremove");
	ck_assert_uint_eq(a.since_ns, 5);
	ck_assert_uint_eq(a.restarts, 3);

	sides[0].activity = (struct device_activity){"lvm lvcreate", 7, 1};
	device_activity(pair, &a);
	ck_assert_str_eq(a.command, "lvm lvcreate");
	ck_assert_uint_eq(a.since_ns, 7);
	ck_assert_uint_eq(a.restarts, 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("device_two_modes");
	TCase *tc = tcase_create("device_two_modes");

	tcase_add_checked_fixture(tc, open_cheap, close_pair);
	tcase_add_test(tc, devices_of_both_are_listed_and_the_pools_of_the_second_are_closed);
	tcase_add_test(tc, each_device_is_destroyed_by_its_owner);
	tcase_add_test(tc, id_of_a_device_of_the_second_is_taken);
	tcase_add_test(tc, failing_second_is_left_out_and_its_volumes_are_not_given_up);
	tcase_add_test(tc, failing_second_is_not_tried_again_for_a_change_in_the_first);
	tcase_add_test(tc, failure_of_one_keeps_the_media_errors_of_the_other);
	tcase_add_test(tc, failing_first_is_a_failure);
	tcase_add_test(tc, second_is_not_listed_for_a_change_in_the_first);
	tcase_add_test(tc, second_is_listed_after_a_change_in_it);
	tcase_add_test(tc, where_the_first_says_nothing_the_pair_says_nothing);
	tcase_add_test(tc, nothing_is_known_of_a_second_that_was_not_listed_yet);
	tcase_add_test(tc, path_is_confirmed_by_the_owner);
	tcase_add_loop_test(tc, each_activates_its_own_also_where_the_other_fails, 0, 2);
	tcase_add_test(tc, helpers_of_both_are_told_of);
	suite_add_tcase(suite, tc);

	return unit_runner_finish(srunner_create(suite));
}
