/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/pmem_node.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

#define DRIVER   "pmem-csi.intel.com"
#define MIB      (1ULL << 20)
#define GIB      (1ULL << 30)
#define MAX      65536
#define SINCE    "2026-01-02T03:04:05Z"
#define CONTACT  "2026-02-03T04:05:06Z"
#define RECORDED "2026-03-04T05:06:07Z"

static struct pmem_node *make(void)
{
	struct pmem_node *n = x_calloc(1, sizeof(*n));

	n->meta.name = x_strdup("n1." DRIVER);
	n->node = x_strdup("n1");
	n->driver = x_strdup(DRIVER);
	n->device_mode = x_strdup("lvm");
	n->driver_version = x_strdup("2.0.0");
	n->boot_id = x_strdup("boot");
	n->last_contact = x_strdup(CONTACT);
	n->report = 17;
	n->n_volumes = 6;
	n->n_inline = 2;
	n->inline_bytes = 3 * GIB;
	n->n_erasing = 3;
	n->n_missing = 4;
	n->n_damaged = 5;
	n->n_others = 3;
	n->others_managed_bytes = 1;
	n->others_available_bytes = 0;
	n->recorded_until = x_strdup(RECORDED);
	strv_add(&n->new_volumes, "pvc-1");
	*pmem_node_add_region(n, "region0") = (struct pmem_region){.name = n->regions[0].name,
		.total_bytes = 128 * GIB,
		.managed_bytes = 100 * GIB,
		.available_bytes = 64 * GIB - 1,
		.max_volume_bytes = 32 * GIB,
		.max_sector_volume_bytes = 31 * GIB,
		.erasing_bytes = 2 * GIB,
		.n_free_extents = 7,
		.unit_bytes = 4 * MIB,
		.map_align_bytes = 2 * MIB,
		.btt_start_bytes = 1 * MIB,
		.complete = true};
	strv_add(&n->regions[0].free_extents, "34359738368");
	strv_add(&n->regions[0].free_extents, "4194304");
	pmem_node_add_region(n, "region1")->managed_bytes = 1;
	pmem_condition_add(&n->conditions, "Ready",
		&(struct pmem_verdict){"True", "Registered", "It \"reports\"."}, SINCE);
	pmem_condition_add(&n->conditions, "DevicesHealthy",
		&(struct pmem_verdict){"False", "RegionIncomplete", "One is missing."}, SINCE);
	return n;
}

static void assert_status(const struct pmem_node *n, const char *json)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX);

	pmem_node_write_status(n, &out);
	ck_assert_str_eq(buf_str(&out), json);
}

START_TEST(the_spec_is_written_as_the_schema_has_it)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = make();
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX);

	pmem_node_write_spec(n, &out);
	ck_assert_str_eq(buf_str(&out),
		"{\"apiVersion\":\"pmem-csi.intel.com/v1alpha1\",\"kind\":\"PmemNode\","
		"\"metadata\":{\"name\":\"n1.pmem-csi.intel.com\","
		"\"labels\":{\"pmem-csi.intel.com/driver\":\"pmem-csi.intel.com\"}},"
		"\"spec\":{\"node\":\"n1\",\"driver\":\"pmem-csi.intel.com\"}}");
}
END_TEST

START_TEST(the_status_is_written_as_the_schema_has_it)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = make();

	assert_status(n,
		"{\"apiVersion\":\"pmem-csi.intel.com/v1alpha1\",\"kind\":\"PmemNode\","
		"\"metadata\":{\"name\":\"n1.pmem-csi.intel.com\"},"
		"\"status\":{\"deviceMode\":\"lvm\",\"driverVersion\":\"2.0.0\",\"bootID\":\"boot\","
		"\"lastContactTime\":\"2026-02-03T04:05:06Z\",\"report\":17,"
		"\"capacity\":\"100Gi\",\"available\":\"63.9Gi\",\"largestVolume\":\"32Gi\","
		"\"volumes\":{\"count\":6,\"inline\":2,\"inlineBytes\":\"3Gi\",\"erasing\":3,\"missing\":4,"
		"\"damaged\":5},\"volumesRecordedUntil\":\"2026-03-04T05:06:07Z\",\"newVolumes\":[\"pvc-1\"],"
		"\"regions\":[{\"name\":\"region0\",\"total\":\"128Gi\",\"managed\":\"100Gi\",\"available\":\"68719476735\","
		"\"largestVolume\":\"32Gi\",\"largestFileIOVolume\":\"31Gi\",\"erasing\":\"2Gi\","
		"\"freeExtents\":7,\"freeExtentSizes\":[\"34359738368\",\"4194304\"],\"unit\":\"4Mi\","
		"\"pageMapAlign\":\"2Mi\",\"bttStart\":\"1Mi\",\"complete\":true},"
		"{\"name\":\"region1\",\"managed\":\"1\",\"available\":\"0\",\"largestVolume\":\"0\","
		"\"largestFileIOVolume\":\"0\",\"erasing\":\"0\",\"freeExtents\":0,\"complete\":false}],"
		"\"otherRegions\":{\"count\":3,\"managed\":\"1\",\"available\":\"0\"},"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Registered\","
		"\"message\":\"It \\\"reports\\\".\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"},"
		"{\"type\":\"DevicesHealthy\",\"status\":\"False\",\"reason\":\"RegionIncomplete\","
		"\"message\":\"One is missing.\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}");
}
END_TEST

START_TEST(the_summary_is_of_all_regions)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = x_calloc(1, sizeof(*n));
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX);

	n->meta.name = x_strdup("n");
	for (uint64_t i = 1; i <= 3; i++) {
		struct pmem_region *r = pmem_node_add_region(n, "r");

		r->managed_bytes = 8 * i * GIB;
		r->available_bytes = 4 * i * GIB;
		r->max_volume_bytes = (i == 2 ? 3 : 1) * GIB;
	}
	pmem_node_write_status(n, &out);
	ck_assert_ptr_nonnull(strstr(
		buf_str(&out), "\"capacity\":\"48Gi\",\"available\":\"24Gi\",\"largestVolume\":\"3Gi\""));
}
END_TEST

/* The API server refuses a null. */
START_TEST(what_is_not_known_is_left_out)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = x_calloc(1, sizeof(*n));

	n->meta.name = x_strdup("n");
	assert_status(n,
		"{\"apiVersion\":\"pmem-csi.intel.com/v1alpha1\",\"kind\":\"PmemNode\","
		"\"metadata\":{\"name\":\"n\"},"
		"\"status\":{\"report\":0,\"capacity\":\"0\",\"available\":\"0\",\"largestVolume\":\"0\","
		"\"volumes\":{\"count\":0,\"inline\":0,\"inlineBytes\":\"0\",\"erasing\":0,\"missing\":0,"
		"\"damaged\":0},\"regions\":[],\"conditions\":[]}}");
}
END_TEST

/* The object that the API server has after both have been applied. */
static struct pmem_node *apply(const struct pmem_node *n)
{
	CLEANUP(buf_done) struct buf spec = BUF_INIT(MAX);
	CLEANUP(buf_done) struct buf status = BUF_INIT(MAX);
	CLEANUP(free_charp) char *json = NULL;
	struct error *err = NULL;
	struct pmem_node *read;

	pmem_node_write_spec(n, &spec);
	pmem_node_write_status(n, &status);
	json = x_asprintf(
		"%.*s,%s", (int)spec.len - 1, buf_str(&spec), strstr(buf_str(&status), "\"status\":"));
	read = kube_object_decode(&kube_kind_pmem_nodes, span_of(json), &err);
	ck_assert_msg(read != NULL, "%s: %s", json, err ? err->msg : "");
	return read;
}

START_TEST(what_was_written_is_read)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = make();
	CLEANUP(pmem_node_freep) struct pmem_node *read = apply(n);

	ck_assert(pmem_node_equal(n, read));
	ck_assert_str_eq(read->meta.name, "n1." DRIVER);
	ck_assert_str_eq(kube_meta_label(&read->meta, PMEM_LABEL_DRIVER), DRIVER);
	ck_assert_str_eq(read->last_contact, CONTACT);
	ck_assert(strv_eq(read->new_volumes, n->new_volumes));
	ck_assert_str_eq(pmem_condition_find(&read->conditions, "Ready")->since, SINCE);
	ck_assert_str_eq(pmem_condition_find(&read->conditions, "DevicesHealthy")->since, SINCE);
	ck_assert_ptr_null(pmem_condition_find(&read->conditions, "Other"));
}
END_TEST

/* An object that is not filled in, or of a later release. */
START_TEST(a_damaged_object_is_read)
{
	static const char json[] = "{\"metadata\":{\"name\":\"n\"},\"spec\":{\"more\":1},"
				   "\"status\":{\"report\":null,\"regions\":[{}],\"conditions\":[{}]}}";
	CLEANUP(pmem_node_freep) struct pmem_node *n = NULL;
	CLEANUP(pmem_node_freep) struct pmem_node *copy = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX);
	struct error *err = NULL;

	n = kube_object_decode(&kube_kind_pmem_nodes, span_of(json), &err);
	ck_assert_ptr_nonnull(n);
	ck_assert_ptr_null(n->node);
	ck_assert_uint_eq(n->n_regions, 1);
	ck_assert_ptr_null(pmem_condition_find(&n->conditions, "Ready"));
	copy = pmem_node_dup(n);
	pmem_node_write_status(copy, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\"report\":0"));
}
END_TEST

static void replace(char **text)
{
	free(*text);
	*text = x_strdup("other");
}

/* Change part number @part. Return: whether there is one. */
static bool change_texts(struct pmem_node *n, int part)
{
	char **const texts[] = {&n->node, &n->driver, &n->device_mode, &n->driver_version, &n->boot_id,
		&n->regions[0].name, &n->regions[1].name, &n->regions[0].free_extents[1],
		&n->conditions.list[0].type, &n->conditions.list[0].status, &n->conditions.list[0].reason,
		&n->conditions.list[0].message, &n->conditions.list[1].type, &n->conditions.list[1].status,
		&n->conditions.list[1].reason, &n->conditions.list[1].message};

	if ((size_t)part >= ARRAY_SIZE(texts))
		return false;
	replace(texts[part]);
	return true;
}

static bool change_numbers(struct pmem_node *n, int part)
{
	struct pmem_region *r = &n->regions[1];
	uint64_t *const numbers[] = {&n->report, &n->n_volumes, &n->n_inline, &n->inline_bytes, &n->n_erasing,
		&n->n_missing, &n->n_damaged, &n->regions[0].managed_bytes, &r->total_bytes,
		&r->managed_bytes, &r->available_bytes, &r->max_volume_bytes, &r->max_sector_volume_bytes,
		&r->erasing_bytes, &r->n_free_extents, &r->unit_bytes, &r->map_align_bytes,
		&r->btt_start_bytes};

	if ((size_t)part >= ARRAY_SIZE(numbers))
		return false;
	(*numbers[part])++;
	return true;
}

static bool change_rest(struct pmem_node *n, int part)
{
	switch (part) {
	case 0:
		n->regions[1].complete = true;
		return true;
	case 1:
		strv_add(&n->regions[1].free_extents, "1");
		return true;
	case 2:
		pmem_node_add_region(n, "region2");
		return true;
	case 3:
		pmem_condition_add(&n->conditions, "Third", &(struct pmem_verdict){"True", "", ""}, SINCE);
		return true;
	default:
		return false;
	}
}

static void each_change_counts(bool (*change)(struct pmem_node *n, int part))
{
	CLEANUP(pmem_node_freep) struct pmem_node *before = make();
	int part = 0;

	for (;; part++) {
		CLEANUP(pmem_node_freep) struct pmem_node *n = make();

		if (!change(n, part))
			break;
		CLEANUP(pmem_node_freep) struct pmem_node *read = apply(n);
		ck_assert_msg(!pmem_node_equal(before, n), "part %d", part);
		ck_assert_msg(!pmem_node_equal(n, before), "part %d", part);
		ck_assert_msg(pmem_node_equal(n, read), "part %d is not read as it was written", part);
	}
	ck_assert_int_gt(part, 0);
}

START_TEST(each_part_that_is_shown_makes_a_difference)
{
	each_change_counts(change_texts);
	each_change_counts(change_numbers);
	each_change_counts(change_rest);
}
END_TEST

START_TEST(times_make_no_difference)
{
	CLEANUP(pmem_node_freep) struct pmem_node *a = make();
	CLEANUP(pmem_node_freep) struct pmem_node *b = make();

	ck_assert(pmem_node_equal(a, b));
	replace(&b->last_contact);
	replace(&b->conditions.list[0].since);
	ck_assert(pmem_node_equal(a, b));
}
END_TEST

START_TEST(a_copy_has_no_conditions_of_its_own)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = make();
	CLEANUP(pmem_node_freep) struct pmem_node *copy = pmem_node_dup(n);

	ck_assert_uint_eq(copy->conditions.n, 0);
	ck_assert_str_eq(copy->meta.name, n->meta.name);
	ck_assert_str_eq(copy->last_contact, CONTACT);
	for (size_t i = 0; i < n->conditions.n; i++) {
		const struct pmem_condition *c = &n->conditions.list[i];

		pmem_condition_add(&copy->conditions, c->type,
			&(struct pmem_verdict){c->status, c->reason, c->message}, c->since);
	}
	ck_assert(pmem_node_equal(n, copy));
	ck_assert_ptr_ne(n->regions[0].name, copy->regions[0].name);
}
END_TEST

static void assert_hashed(const char *node_id)
{
	CLEANUP(free_charp) char *name = pmem_node_object_name(node_id, DRIVER);
	CLEANUP(free_charp) char *again = pmem_node_object_name(node_id, DRIVER);

	ck_assert_msg(kube_is_name(name), "%s", name);
	ck_assert_uint_eq(strspn(name + strlen("node-"), "0123456789abcdef"), 16);
	ck_assert_int_eq(strncmp(name, "node-", strlen("node-")), 0);
	ck_assert_str_eq(name + strlen("node-") + 16, "." DRIVER);
	ck_assert_str_eq(name, again);
}

START_TEST(a_node_id_that_cannot_be_in_a_name_is_hashed)
{
	static const char *const odd[] = {"Node-1", "node_1", "", "-n", "n-", ".n", "n.", "n..m", "n.-m",
		"n-.m", "n/m", "n m", "n\xc3\xa4"};
	CLEANUP(free_charp) char *one = pmem_node_object_name("N", DRIVER);
	CLEANUP(free_charp) char *two = pmem_node_object_name("M", DRIVER);

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		assert_hashed(odd[i]);
	ck_assert_str_ne(one, two);
}
END_TEST

START_TEST(other_node_ids_are_in_the_name)
{
	CLEANUP(free_charp) char *name = pmem_node_object_name("worker-1.example", DRIVER);

	ck_assert_str_eq(name, "worker-1.example." DRIVER);
}
END_TEST

START_TEST(a_name_has_253_bytes_at_most)
{
	char id[254];

	memset(id, 'a', sizeof(id) - 1);
	id[253] = '\0';
	assert_hashed(id);
	id[253 - strlen("." DRIVER) + 1] = '\0';
	assert_hashed(id);
	id[253 - strlen("." DRIVER)] = '\0';
	CLEANUP(free_charp) char *name = pmem_node_object_name(id, DRIVER);
	ck_assert_uint_eq(strlen(name), 253);
	ck_assert_int_eq(strncmp(name, "aaa", 3), 0);
}
END_TEST

UNIT_MAIN("resources/pmem_node", the_spec_is_written_as_the_schema_has_it,
	the_status_is_written_as_the_schema_has_it, the_summary_is_of_all_regions,
	what_is_not_known_is_left_out, what_was_written_is_read, a_damaged_object_is_read,
	each_part_that_is_shown_makes_a_difference, times_make_no_difference,
	a_copy_has_no_conditions_of_its_own, a_node_id_that_cannot_be_in_a_name_is_hashed,
	other_node_ids_are_in_the_name, a_name_has_253_bytes_at_most)
