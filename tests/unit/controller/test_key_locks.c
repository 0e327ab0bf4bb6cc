/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/key_locks.h"
#include "unit/unit.h"

#define NAME "pvc-6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3b21"

static struct key_locks *l;

static void begin(void)
{
	l = key_locks_new();
}

static void end(void)
{
	key_locks_free(l);
}

START_TEST(a_volume_is_worked_on_once_at_a_time)
{
	struct volume_key key = volume_key_of_name(NAME);
	struct volume_key other = volume_key_of_name("other");

	begin();
	ck_assert(key_lock(l, &key));
	ck_assert(!key_lock(l, &key));
	ck_assert(key_lock(l, &other));
	ck_assert(key_is_locked(l, &key));
	key_unlock(l, &key);
	ck_assert(!key_is_locked(l, &key));
	key_unlock(l, &other);
	end();
}
END_TEST

UNIT_MAIN("controller/key_locks", a_volume_is_worked_on_once_at_a_time)
