/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the capacity of a node that volumes of a StorageClass can use. */
#include "nodes/class_capacity.h"

#include "base/mem.h"
#include "unit/kube/kube_json.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

#define MIB (1ULL << 20)
#define GIB (1ULL << 30)

static struct node_table *table;
static struct error *err;

/* A node of which one volume can have @max_bytes. */
static const struct node *put(uint64_t max_bytes, bool makes_kata_volumes)
{
	struct node_report *r = report_new("n1");

	r->pools[0].capacity = (struct capacity){8 * GIB, 8 * GIB, max_bytes, max_bytes};
	r->makes_kata_volumes = makes_kata_volumes;
	node_table_put(table, r, 0);
	return node_table_get(table, "n1");
}

static struct capacity capacity_on(const struct node *node, const char *parameters)
{
	CLEANUP(free_charp) char *json = kube_json_class("c", "pmem", parameters);
	struct kube_class *class = kube_object_decode(&kube_kind_classes, span_of(json), &err);
	struct capacity c;

	ck_assert_ptr_nonnull(class);
	c = class_capacity_on(node, class);
	kube_object_free(&kube_kind_classes, class);
	return c;
}

START_TEST(a_class_for_kata_has_capacity_only_where_such_volumes_are_made)
{
	static const char kata[] = "{\"kataContainers\":\"true\"}";

	table = node_table_new();
	ck_assert_uint_eq(capacity_on(put(5 * GIB, false), kata).available_bytes, 0);
	ck_assert_uint_eq(capacity_on(put(5 * GIB, false), kata).max_volume_bytes, 0);
	ck_assert_uint_eq(capacity_on(put(5 * GIB, true), kata).available_bytes, 8 * GIB);
	ck_assert_uint_eq(capacity_on(put(5 * GIB, true), kata).max_volume_bytes, 5 * GIB);
	ck_assert_uint_eq(
		capacity_on(put(5 * GIB, false), "{\"kataContainers\":\"false\"}").max_volume_bytes, 5 * GIB);
	ck_assert_uint_eq(capacity_on(put(5 * GIB, false), "{}").max_volume_bytes, 5 * GIB);
	node_table_free(table);
}
END_TEST

START_TEST(an_image_needs_more_than_its_file_system)
{
	table = node_table_new();
	ck_assert_uint_gt(capacity_on(put(320 * MIB, true), "{\"fstype\":\"xfs\"}").max_volume_bytes, 0);
	ck_assert_uint_eq(capacity_on(put(320 * MIB, true),
				  "{\"csi.storage.k8s.io/fstype\":\"xfs\",\"kataContainers\":\"true\"}")
				  .max_volume_bytes,
		0);
	node_table_free(table);
}
END_TEST

START_TEST(memory_without_map_sync_is_for_classes_that_do_without)
{
	static const struct {
		enum durability memory;
		const char *parameters;
		bool knows;
		uint64_t max_bytes;
	} cases[] = {
		{DURABILITY_UNKNOWN, "{}", true, 5 * GIB},
		{DURABILITY_SYNCHRONOUS, "{}", true, 5 * GIB},
		{DURABILITY_FSYNC, "{}", true, 0},
		{DURABILITY_FSYNC, "{\"usage\":\"AppDirect\",\"durability\":\"synchronous\"}", true, 0},
		{DURABILITY_FSYNC, "{\"durability\":\"fsync\"}", true, 5 * GIB},
		{DURABILITY_FSYNC, "{\"usage\":\"FileIO\"}", true, 5 * GIB},
		/* a driver of an earlier release refuses the parameter */
		{DURABILITY_UNKNOWN, "{\"durability\":\"fsync\"}", false, 0},
		{DURABILITY_UNKNOWN, "{}", false, 5 * GIB},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct node_report *r = report_new("n1");
		struct capacity c;

		table = node_table_new();
		r->pools[0].capacity = (struct capacity){8 * GIB, 8 * GIB, 5 * GIB, 5 * GIB};
		r->pools[0].durability = cases[i].memory;
		r->knows_durability = cases[i].knows;
		node_table_put(table, r, 0);
		c = capacity_on(node_table_get(table, "n1"), cases[i].parameters);
		ck_assert_uint_eq(c.max_volume_bytes, cases[i].max_bytes);
		ck_assert_uint_eq(c.available_bytes, cases[i].max_bytes ? 8 * GIB : 0);
		node_table_free(table);
	}
}
END_TEST

UNIT_MAIN("nodes/class_capacity", a_class_for_kata_has_capacity_only_where_such_volumes_are_made,
	an_image_needs_more_than_its_file_system, memory_without_map_sync_is_for_classes_that_do_without)
