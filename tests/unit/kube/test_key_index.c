/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/key_index.h"

#include <string.h>

#include "unit/unit.h"

static size_t count(const struct key_index *x, const char *name)
{
	size_t n = 0;

	for (const struct key_entry *e = key_index_first(x, name); e; e = key_index_next(e)) {
		ck_assert_str_eq(e->name, name);
		n++;
	}
	return n;
}

START_TEST(a_key_has_one_name_at_a_time)
{
	CLEANUP(key_index_freep) struct key_index *x = key_index_new();

	ck_assert_uint_eq(count(x, "one"), 0);
	for (int i = 0; i < 2; i++) {
		key_index_set(x, "ns/a", "one");
		ck_assert_uint_eq(count(x, "one"), 1);
		ck_assert_str_eq(key_index_first(x, "one")->key, "ns/a");
	}
	key_index_set(x, "ns/a", "two");
	ck_assert_uint_eq(count(x, "one"), 0);
	ck_assert_uint_eq(count(x, "two"), 1);
	key_index_set(x, "ns/a", NULL);
	key_index_set(x, "ns/a", NULL);
	ck_assert_uint_eq(count(x, "two"), 0);
}
END_TEST

START_TEST(a_name_may_lead_to_several_keys)
{
	CLEANUP(key_index_freep) struct key_index *x = key_index_new();

	key_index_set(x, "ns/a", "one");
	key_index_set(x, "ns/b", "one");
	key_index_set(x, "ns/c", "other");
	ck_assert_uint_eq(count(x, "one"), 2);
	key_index_set(x, "ns/a", NULL);
	ck_assert_uint_eq(count(x, "one"), 1);
	ck_assert_str_eq(key_index_first(x, "one")->key, "ns/b");
}
END_TEST

UNIT_MAIN("key_index", a_key_has_one_name_at_a_time, a_name_may_lead_to_several_keys)
