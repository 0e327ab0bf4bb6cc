/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/key_index.h"

#include "unit/unit.h"

START_TEST(a_key_has_one_name_at_a_time)
{
	CLEANUP(key_index_freep) struct key_index *x = key_index_new();

	ck_assert_ptr_null(key_index_get(x, "one"));
	for (int i = 0; i < 2; i++) {
		key_index_set(x, "ns/a", "one");
		ck_assert_str_eq(key_index_get(x, "one"), "ns/a");
	}
	key_index_set(x, "ns/a", "two");
	ck_assert_ptr_null(key_index_get(x, "one"));
	ck_assert_str_eq(key_index_get(x, "two"), "ns/a");
	key_index_set(x, "ns/a", NULL);
	key_index_set(x, "ns/a", NULL);
	ck_assert_ptr_null(key_index_get(x, "two"));
}
END_TEST

START_TEST(a_name_may_lead_to_several_keys)
{
	CLEANUP(key_index_freep) struct key_index *x = key_index_new();

	key_index_set(x, "ns/a", "one");
	key_index_set(x, "ns/b", "one");
	key_index_set(x, "ns/c", "other");
	ck_assert_ptr_nonnull(key_index_get(x, "one"));
	key_index_set(x, "ns/a", NULL);
	ck_assert_str_eq(key_index_get(x, "one"), "ns/b");
}
END_TEST

UNIT_MAIN("key_index", a_key_has_one_name_at_a_time, a_name_may_lead_to_several_keys)
