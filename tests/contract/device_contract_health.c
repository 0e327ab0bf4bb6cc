/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the contract that is about memory that cannot be read. */
#include "contract/device_contract_private.h"

#include <check.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

static void errors_freep(struct media_errors **errors)
{
	free(*errors);
}

/* Returns the media errors of the device @d, after asserting that all other devices have none. */
static struct media_errors find_only(const struct device *d)
{
	CLEANUP(errors_freep) struct media_errors *found = NULL;
	CLEANUP(device_list_freep) struct device_list *l = list();
	struct media_errors of = {0};
	struct error *err = NULL;

	ASSERT_OK(device_media_errors(manager, l, &found, &err));
	for (size_t i = 0; i < l->n_devices; i++) {
		if (d && str_eq(l->devices[i].id, d->id))
			of = found[i];
		else
			ck_assert_uint_eq(found[i].n + found[i].bytes, 0);
	}
	return of;
}

START_TEST(devices_of_sound_memory_have_no_media_errors)
{
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	device_free(create("other", pools[n_pools - 1].uuid, 1));

	find_only(NULL);
	destroy(d);
	find_only(NULL);
}
END_TEST

START_TEST(media_error_is_found_in_the_device_that_it_is_in)
{
	device_free(create("before", pools[0].uuid, 1));
	CLEANUP(device_freep) struct device *d = create("one", pools[0].uuid, 1);
	device_free(create("after", pools[0].uuid, 1));
	device_free(create("other", pools[n_pools - 1].uuid, 1));
	uint64_t last = d->size_bytes - 512;

	target->damage(d, 4096, 1024);
	struct media_errors e = find_only(d);
	ck_assert_uint_eq(e.n, 1);
	ck_assert_uint_eq(e.list[0].offset_bytes, 4096);
	ck_assert_uint_eq(e.list[0].length_bytes, 1024);
	target->damage(d, last, 512);
	e = find_only(d);
	ck_assert_uint_eq(e.list[e.n - 1].offset_bytes, last);
	target->repair(d);
	find_only(NULL);
}
END_TEST

void device_contract_add_health(TCase *tcase)
{
	tcase_add_test(tcase, devices_of_sound_memory_have_no_media_errors);
	if (target->damage)
		tcase_add_test(tcase, media_error_is_found_in_the_device_that_it_is_in);
}
