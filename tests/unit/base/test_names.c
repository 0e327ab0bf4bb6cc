/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

#define TEN   "0123456789"
#define SIXTY TEN TEN TEN TEN TEN TEN

START_TEST(names_that_kubernetes_takes_are_taken)
{
	static const char *const drivers[] = {
		"pmem-csi.intel.com", "Pmem-CSI.Intel.COM", "a", "1.2", SIXTY "abc"};
	static const char *const nodes[] = {
		"n", "worker-1", "a_b.c", "ip-10-0-0-1.eu-west-1.compute.internal", SIXTY "abc"};

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		struct error *err = NULL;
		ASSERT_OK(name_check_driver(drivers[i], &err));
	}
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		struct error *err = NULL;
		ASSERT_OK(name_check_node(nodes[i], &err));
	}
}
END_TEST

START_TEST(others_are_refused_with_the_flag)
{
	static const char *const drivers[] = {
		"", "Bad Name!", "a/b", ".a", "a.", "a..b", "-a", "a-", "a_b", SIXTY "abcd", "a\n"};
	static const char *const nodes[] = {"", "n 1/..", "-n", "n.", "_n", "n:1", SIXTY "abcd", "n\n"};

	for (size_t i = 0; i < ARRAY_SIZE(drivers); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		ASSERT_FAILS(name_check_driver(drivers[i], &err), ERR_INVALID_ARGUMENT, "-drivername");
	}
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		ASSERT_FAILS(name_check_node(nodes[i], &err), ERR_INVALID_ARGUMENT, "-nodeid");
	}
}
END_TEST

START_TEST(the_topology_key_is_the_go_drivers)
{
	CLEANUP(free_charp) char *key = name_topology_key("pmem-csi.intel.com");

	ck_assert_str_eq(key, "pmem-csi.intel.com/node");
}
END_TEST

UNIT_MAIN("base/names", names_that_kubernetes_takes_are_taken, others_are_refused_with_the_flag,
	the_topology_key_is_the_go_drivers)
