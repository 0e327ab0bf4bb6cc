/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "unit/unit.h"

/* Each test is a process of its own. */
START_TEST(the_memory_of_a_server_is_neither_dumped_nor_read_by_its_user)
{
	struct rlimit core;

	process_set_up(64);
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_CORE, &core), 0);
	ck_assert_uint_eq(core.rlim_cur, 0);
	ck_assert_uint_eq(core.rlim_max, 0);
}
END_TEST

UNIT_MAIN("os/process", the_memory_of_a_server_is_neither_dumped_nor_read_by_its_user)
