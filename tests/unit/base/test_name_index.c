/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/name_index.h"
#include "unit/unit.h"

#define MANY 5000

struct item {
	struct name_link link;
	char name[32];
};

static size_t count(const struct name_index *x, const char *name)
{
	size_t n = 0;

	for (struct name_link *l = name_index_first(x, name); l; l = name_index_next(l))
		n++;
	return n;
}

START_TEST(many_names_are_found_and_removed)
{
	static struct item items[MANY];
	struct name_index x;

	name_index_init(&x);
	ck_assert_ptr_null(name_index_first(&x, ""));
	for (size_t i = 0; i < MANY; i++) {
		/* lengths around the words of the hash */
		snprintf(items[i].name, sizeof(items[i].name), "%.*s%zu", (int)(i % 17), "xxxxxxxxxxxxxxxxx",
			i);
		name_index_add(&x, &items[i].link, items[i].name);
	}
	for (size_t i = 0; i < MANY; i++)
		ck_assert_ptr_eq(name_index_first(&x, items[i].name), &items[i].link);
	for (size_t i = 0; i < MANY; i += 2)
		name_index_remove(&x, &items[i].link);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(count(&x, items[i].name), i % 2);
	name_index_done(&x);
}
END_TEST

START_TEST(all_that_bear_a_name_are_found)
{
	struct name_link links[3];
	struct name_link other;
	struct name_index x;

	name_index_init(&x);
	name_index_add(&x, &other, "other");
	for (size_t i = 0; i < ARRAY_SIZE(links); i++)
		name_index_add(&x, &links[i], "same");
	ck_assert_uint_eq(count(&x, "same"), 3);
	name_index_remove(&x, &links[1]);
	ck_assert_uint_eq(count(&x, "same"), 2);
	ck_assert_uint_eq(count(&x, "other"), 1);
	name_index_done(&x);
}
END_TEST

UNIT_MAIN("name index", many_names_are_found_and_removed, all_that_bear_a_name_are_found)
