/* SPDX-License-Identifier: Apache-2.0 */
/* When a device is present, missing, gone or foreign. */
#include "volume/presence.h"

#include "unit/unit.h"

#define OURS   "11111111-1111-1111-1111-111111111111"
#define OTHERS "22222222-2222-2222-2222-222222222222"

static char id[] = "v", pool[] = "p", other_pool[] = "q", ours[] = OURS, others[] = OTHERS, none[] = "";
static enum volume_phase phase = PHASE_READY;
static const struct device *found;

static enum presence look(bool complete, char *identity, char *device_pool, char *recorded)
{
	struct device d = {.id = id, .pool = device_pool, .identity = identity};
	struct device_pool p = {.uuid = pool, .complete = complete};
	const struct device_list l = {
		.devices = &d, .n_devices = identity != NULL, .pools = &p, .n_pools = 1};
	const struct volume_record r = {.id = id, .phase = phase, .pool = pool, .identity = recorded};
	enum presence presence = presence_of(&l, &r, &found);

	ck_assert_int_eq(found != NULL, presence == DEVICE_PRESENT || presence == DEVICE_FOREIGN);
	found = NULL;
	return presence;
}

START_TEST(a_device_that_bears_the_identity_is_present_wherever_it_is)
{
	ck_assert_int_eq(look(true, ours, pool, ours), DEVICE_PRESENT);
	ck_assert_int_eq(look(false, ours, other_pool, ours), DEVICE_PRESENT);
}
END_TEST

START_TEST(without_a_recorded_identity_the_name_counts_in_the_recorded_pool_alone)
{
	ck_assert_int_eq(look(true, none, pool, NULL), DEVICE_PRESENT);
	ck_assert_int_eq(look(true, others, pool, NULL), DEVICE_PRESENT);
	ck_assert_int_eq(look(true, none, other_pool, NULL), DEVICE_GONE);
	ck_assert_int_eq(look(false, none, other_pool, NULL), DEVICE_MISSING);
}
END_TEST

static enum presence look_at_twins(char *recorded_pool, char *recorded)
{
	struct device d[] = {{.id = id, .pool = other_pool, .identity = others},
		{.id = id, .pool = pool, .identity = ours}};
	struct device_pool p = {.uuid = pool, .complete = true};
	const struct device_list l = {.devices = d, .n_devices = ARRAY_SIZE(d), .pools = &p, .n_pools = 1};
	const struct volume_record r = {.id = id, .pool = recorded_pool, .identity = recorded};
	enum presence presence = presence_of(&l, &r, &found);

	if (presence == DEVICE_PRESENT)
		ck_assert_ptr_eq(found, &d[1]);
	found = NULL;
	return presence;
}

START_TEST(of_devices_with_one_name_only_the_own_one_is_meant)
{
	ck_assert_int_eq(look_at_twins(pool, ours), DEVICE_PRESENT);
	ck_assert_int_eq(look_at_twins(pool, NULL), DEVICE_PRESENT);
	ck_assert_int_eq(look_at_twins(NULL, NULL), DEVICE_MISSING);
	/* whichever of them is listed first */
	ck_assert_int_eq(look_at_twins(pool, none), DEVICE_FOREIGN);
}
END_TEST

START_TEST(only_a_complete_pool_proves_that_a_device_is_gone)
{
	ck_assert_int_eq(look(true, NULL, pool, ours), DEVICE_GONE);
	ck_assert_int_eq(look(false, NULL, pool, ours), DEVICE_MISSING);
}
END_TEST

START_TEST(a_device_of_another_identity_is_foreign_in_the_recorded_pool_alone)
{
	ck_assert_int_eq(look(true, others, pool, ours), DEVICE_FOREIGN);
	ck_assert_int_eq(look(true, others, other_pool, ours), DEVICE_GONE);
	ck_assert_int_eq(look(false, others, pool, ours), DEVICE_MISSING);
}
END_TEST

START_TEST(of_an_erased_volume_another_identity_proves_that_the_device_is_gone)
{
	phase = PHASE_ERASING;
	ck_assert_int_eq(look(true, ours, pool, ours), DEVICE_PRESENT);
	ck_assert_int_eq(look(true, others, pool, ours), DEVICE_GONE);
	ck_assert_int_eq(look(false, others, pool, ours), DEVICE_MISSING);
	ck_assert_int_eq(look(true, none, pool, ours), DEVICE_FOREIGN);
}
END_TEST

START_TEST(without_a_recorded_pool_nothing_is_gone)
{
	const struct device_list l = {0};
	const struct volume_record r = {.id = id};

	ck_assert_int_eq(presence_of(&l, &r, &found), DEVICE_MISSING);
	ck_assert_ptr_null(found);
}
END_TEST

UNIT_MAIN("presence", a_device_that_bears_the_identity_is_present_wherever_it_is,
	without_a_recorded_identity_the_name_counts_in_the_recorded_pool_alone,
	of_devices_with_one_name_only_the_own_one_is_meant, only_a_complete_pool_proves_that_a_device_is_gone,
	a_device_of_another_identity_is_foreign_in_the_recorded_pool_alone,
	of_an_erased_volume_another_identity_proves_that_the_device_is_gone,
	without_a_recorded_pool_nothing_is_gone)
