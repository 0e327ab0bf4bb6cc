/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/mem.h"
#include "controller/attempts.h"
#include "unit/unit.h"
#include "volume/id.h"

#define NAME "pvc-6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3b21"

static struct attempts *a;

static void begin(void)
{
	a = attempts_new();
}

static void end(void)
{
	ck_assert_uint_eq(attempts_count(a), 0);
	attempts_free(a);
}

START_TEST(a_name_and_all_ids_made_of_it_have_one_key)
{
	struct volume_key key = volume_key_of_name(NAME);
	char id[VOLUME_ID_MAX + 1];

	begin();
	volume_id_mint(NAME, "node-1", id);
	ck_assert_str_eq(volume_key_of_handle(id).hex, key.hex);
	volume_id_mint(NAME, NULL, id);
	ck_assert_str_eq(volume_key_of_handle(id).hex, key.hex);
	volume_id_mint_go(NAME, id);
	ck_assert_str_eq(volume_key_of_handle(id).hex, key.hex);
	ck_assert_str_ne(volume_key_of_handle("csi-abc").hex, key.hex);
	end();
}
END_TEST

START_TEST(a_volume_is_worked_on_once_at_a_time)
{
	struct volume_key key = volume_key_of_name(NAME);
	struct volume_key other = volume_key_of_name("other");

	begin();
	ck_assert(attempts_lock(a, &key, 1));
	ck_assert(!attempts_lock(a, &key, 2));
	ck_assert(attempts_lock(a, &other, 2));
	ck_assert(attempts_locked(a, &key));
	attempts_unlock(a, &key);
	ck_assert(!attempts_locked(a, &key));
	attempts_unlock(a, &other);
	end();
}
END_TEST

START_TEST(a_node_stays_in_the_list_until_its_answer_is_final)
{
	struct volume_key key = volume_key_of_name(NAME);

	begin();
	ck_assert(attempts_lock(a, &key, 1));
	ck_assert(attempts_begin(a, &key, "n1", 1));
	ck_assert(attempts_begin(a, &key, "n2", 1));
	ck_assert(!attempts_begin(a, &key, "n1", 1));
	attempts_unlock(a, &key);
	attempts_end(a, &key, "n1");
	attempts_end(a, &key, "never asked");
	ck_assert_str_eq(attempts_nodes(a, &key)[0], "n2");
	ck_assert_ptr_null(attempts_nodes(a, &key)[1]);
	attempts_end(a, &key, "n2");
	ck_assert_ptr_null(attempts_nodes(a, &key));
	end();
}
END_TEST

START_TEST(lists_that_nobody_asks_for_are_dropped_but_not_what_is_worked_on)
{
	struct volume_key idle = volume_key_of_name("idle");
	struct volume_key busy = volume_key_of_name("busy");
	uint64_t start = 100 * NS_PER_S;

	begin();
	attempts_begin(a, &idle, "n1", start);
	ck_assert(attempts_lock(a, &busy, start));
	attempts_expire(a, start + ATTEMPT_KEPT_NS - 1);
	ck_assert_uint_eq(attempts_count(a), 2);
	attempts_expire(a, start + ATTEMPT_KEPT_NS);
	ck_assert_uint_eq(attempts_count(a), 2);
	attempts_expire(a, start + ATTEMPT_KEPT_NS + 60 * NS_PER_S);
	ck_assert_uint_eq(attempts_count(a), 1);
	ck_assert(attempts_locked(a, &busy));
	attempts_unlock(a, &busy);
	end();
}
END_TEST

UNIT_MAIN("controller/attempts", a_name_and_all_ids_made_of_it_have_one_key,
	a_volume_is_worked_on_once_at_a_time, a_node_stays_in_the_list_until_its_answer_is_final,
	lists_that_nobody_asks_for_are_dropped_but_not_what_is_worked_on)
