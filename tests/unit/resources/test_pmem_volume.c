/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/pmem_volume.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

#define DRIVER "pmem-csi.intel.com"
#define KEY    "0123456789abcdef0123456789abcdef0123456789abcde"
#define GIB    (1ULL << 30)
#define MAX    (1 << 20)
#define SINCE  "2026-01-02T03:04:05Z"
/* of what make() makes, which is on two nodes */
#define LABELS                                                                                               \
	"\"pmem-csi.intel.com/pvc-namespace\":\"default\",\"pmem-csi.intel.com/pvc-name\":\"data\","         \
	"\"pmem-csi.intel.com/pv\":\"pvc-1\""

static struct pmem_volume *make(void)
{
	struct pmem_volume *v = pmem_volume_new(KEY, DRIVER);

	v->meta.uid = x_strdup("u1");
	v->meta.resource_version = x_strdup("7");
	strv_add(&v->meta.finalizers, "example.com/before");
	strv_add(&v->meta.finalizers, PMEM_VOLUME_FINALIZER);
	strv_add(&v->meta.finalizers, "example.com/after");
	v->volume_name = x_strdup("pvc-1");
	v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	v->source = x_strdup("h0");
	strv_add(&v->parameters, "persistencyModel");
	strv_add(&v->parameters, "cache");
	strv_add(&v->parameters, "csi.storage.k8s.io/pvc/name");
	strv_add(&v->parameters, "a \"quoted\" \\ name\n");
	pmem_volume_add_node(v, "n1");
	pmem_volume_add_node(v, "n2");
	v->size_bytes = 3 * GIB;
	v->attempts = 4;
	v->deleting = true;
	v->handle = x_strdup("h1");
	v->phase = x_strdup("Ready");
	v->claim = x_strdup("default/data");
	pmem_volume_set_location(v);
	v->capacity_bytes = 4 * GIB - 1;
	pmem_volume_add_copy(v, "n1", "Ready", 4 * GIB, 12);
	pmem_volume_add_copy(v, "n2", "Unreachable", 0, 0);
	pmem_volume_show_filling(v, "n2", 3 * GIB, 8 * GIB);
	pmem_condition_add(
		&v->conditions, "Ready", &(struct pmem_verdict){"True", "Ready", "It \"works\"."}, SINCE);
	return v;
}

typedef void (*writer)(const struct pmem_volume *v, struct buf *out);

static void assert_written(writer write, const struct pmem_volume *v, const char *json)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX);

	write(v, &out);
	ck_assert_str_eq(buf_str(&out), json);
}

START_TEST(a_new_object_is_written_whole)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	assert_written(pmem_volume_write_new, v,
		"{\"apiVersion\":\"pmem-csi.intel.com/v1alpha1\",\"kind\":\"PmemVolume\","
		"\"metadata\":{\"name\":\"" KEY "." DRIVER "\","
		"\"labels\":{\"pmem-csi.intel.com/driver\":\"pmem-csi.intel.com\"," LABELS "},"
		"\"finalizers\":[\"pmem-csi.intel.com/copies\"]},"
		"\"spec\":{\"driver\":\"pmem-csi.intel.com\",\"volumeName\":\"pvc-1\",\"origin\":\"Reported\","
		"\"sourceVolume\":\"h0\",\"parameters\":{\"persistencyModel\":\"cache\","
		"\"csi.storage.k8s.io/pvc/name\":\"a \\\"quoted\\\" \\\\ name\\n\"},"
		"\"size\":\"3Gi\",\"nodes\":[\"n1\",\"n2\"],\"attempts\":4}}");
}
END_TEST

/* The API server refuses a null. */
START_TEST(what_is_not_known_of_a_new_object_is_left_out)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(KEY, "pmem");

	assert_written(pmem_volume_write_new, v,
		"{\"apiVersion\":\"pmem-csi.intel.com/v1alpha1\",\"kind\":\"PmemVolume\","
		"\"metadata\":{\"name\":\"" KEY ".pmem\",\"labels\":{\"pmem-csi.intel.com/driver\":\"pmem\"},"
		"\"finalizers\":[\"pmem-csi.intel.com/copies\"]},"
		"\"spec\":{\"driver\":\"pmem\",\"parameters\":{},\"size\":\"0\",\"nodes\":[],\"attempts\":0}}");
}
END_TEST

START_TEST(a_patch_of_the_spec_has_what_changes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	assert_written(pmem_volume_write_spec, v,
		"{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":{" LABELS
		",\"pmem-csi.intel.com/node\":null}},"
		"\"spec\":{\"size\":\"3Gi\",\"nodes\":[\"n1\",\"n2\"],\"attempts\":4,\"deleting\":true,\"retained\":false}}");
	pmem_volume_drop_node(v, "n1");
	pmem_volume_drop_node(v, "n2");
	v->deleting = false;
	assert_written(pmem_volume_write_spec, v,
		"{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":{" LABELS
		",\"pmem-csi.intel.com/node\":null}},"
		"\"spec\":{\"size\":\"3Gi\",\"nodes\":[],\"attempts\":4,\"deleting\":false,\"retained\":false}}");
	v->retained = true;
	assert_written(pmem_volume_write_spec, v,
		"{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":{" LABELS
		",\"pmem-csi.intel.com/node\":null}},"
		"\"spec\":{\"size\":\"3Gi\",\"nodes\":[],\"attempts\":4,\"deleting\":false,\"retained\":true}}");
}
END_TEST

static struct pmem_volume *decode(const char *json)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct pmem_volume *v = kube_object_decode(&kube_kind_pmem_volumes, span_of(json), &err);

	ck_assert_msg(v != NULL, "%s: %s", json, err ? err->msg : "");
	return v;
}

/* Return: of the object that has what was written of @v, and @labels. */
static bool labels_differ(const struct pmem_volume *v, const char *labels)
{
	CLEANUP(buf_done) struct buf status = BUF_INIT(MAX);
	CLEANUP(buf_done) struct buf new = BUF_INIT(MAX);

	pmem_volume_write_new(v, &new);
	pmem_volume_write_status(v, &status);
	CLEANUP(free_charp)
	char *json = x_asprintf("{\"metadata\":{\"name\":\"x\",\"labels\":{%s}},%.*s,%s", labels,
		(int)(strlen(strstr(buf_str(&new), "\"spec\":")) - 1), strstr(buf_str(&new), "\"spec\":"),
		strstr(buf_str(&status), "\"status\":"));
	CLEANUP(pmem_volume_freep) struct pmem_volume *read = decode(json);
	ck_assert_ptr_null(read->meta.labels.block);
	return read->labels_differ;
}

START_TEST(labels_say_claim_volume_and_node)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	ck_assert(!labels_differ(v, LABELS ",\"example.com/other\":\"1\""));
	ck_assert(labels_differ(v, ""));
	ck_assert(labels_differ(v, LABELS ",\"pmem-csi.intel.com/node\":\"n1\""));
	pmem_volume_drop_node(v, "n2");
	ck_assert(labels_differ(v, LABELS));
	ck_assert(!labels_differ(v, LABELS ",\"pmem-csi.intel.com/node\":\"n1\""));
}
END_TEST

/* Claims may have names of 253 bytes. */
START_TEST(what_is_no_value_of_a_label_is_left_out)
{
	static const char namespace[] = "\"pmem-csi.intel.com/pvc-namespace\":\"default\"";
	static const char *const names[] = {
		"a-b.", "data_of@host", "a123456789012345678901234567890123456789012345678901234567890123"};
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	v->snapshot = true;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		free(v->claim);
		v->claim = x_asprintf("default/%s", names[i]);
		ck_assert_msg(!labels_differ(v, namespace), "%s", names[i]);
	}
	free(v->claim);
	v->claim = x_asprintf("default/%.63s", names[2]);
	ck_assert(labels_differ(v, namespace));
}
END_TEST

/* The labels were made of what CreateVolume was called with, which is not read back. */
START_TEST(labels_of_a_claim_that_is_not_known_stay)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	free(TAKE_PTR(v->claim));
	ck_assert(!labels_differ(v, LABELS));
	ck_assert(!labels_differ(v, "\"pmem-csi.intel.com/pv\":\"pvc-1\""));
	ck_assert(labels_differ(v, ""));
}
END_TEST

START_TEST(a_node_is_lost_if_its_copy_is)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	pmem_volume_add_copy(v, "n3", "Lost", 0, 0);
	ck_assert(!pmem_volume_is_lost(v, "n1"));
	ck_assert(!pmem_volume_is_lost(v, "n2"));
	ck_assert(pmem_volume_is_lost(v, "n3"));
	ck_assert(!pmem_volume_is_lost(v, "n4"));
}
END_TEST

START_TEST(a_patch_of_the_status_has_all_of_it)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	assert_written(pmem_volume_write_status, v,
		"{\"metadata\":{\"resourceVersion\":\"7\"},"
		"\"status\":{\"volumeHandle\":\"h1\",\"phase\":\"Ready\",\"claim\":\"default/data\","
		"\"capacity\":\"3.9Gi\",\"size\":\"4294967295\",\"location\":\"n1,n2\","
		"\"nodes\":[{\"node\":\"n1\",\"phase\":\"Ready\",\"size\":\"4Gi\",\"report\":12},"
		"{\"node\":\"n2\",\"phase\":\"Unreachable\",\"size\":\"0\","
		"\"filling\":{\"done\":\"3Gi\",\"total\":\"8Gi\",\"percent\":37}}],"
		"\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Ready\","
		"\"message\":\"It \\\"works\\\".\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]}}");
}
END_TEST

START_TEST(what_is_not_known_of_the_status_is_left_out)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(KEY, DRIVER);

	v->meta.resource_version = x_strdup("1");
	assert_written(pmem_volume_write_status, v,
		"{\"metadata\":{\"resourceVersion\":\"1\"},\"status\":{\"nodes\":[],\"conditions\":[]}}");
}
END_TEST

START_TEST(a_release_removes_our_finalizer_only)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	assert_written(pmem_volume_write_release, v,
		"{\"metadata\":{\"resourceVersion\":\"7\","
		"\"finalizers\":[\"example.com/before\",\"example.com/after\"]}}");
	strv_free(TAKE_PTR(v->meta.finalizers));
	strv_add(&v->meta.finalizers, PMEM_VOLUME_FINALIZER);
	assert_written(
		pmem_volume_write_release, v, "{\"metadata\":{\"resourceVersion\":\"7\",\"finalizers\":[]}}");
	strv_free(TAKE_PTR(v->meta.finalizers));
	assert_written(
		pmem_volume_write_release, v, "{\"metadata\":{\"resourceVersion\":\"7\",\"finalizers\":[]}}");
}
END_TEST

/* The object that the API server has after it was made and its status was patched. */
static struct pmem_volume *apply(const struct pmem_volume *v)
{
	CLEANUP(buf_done) struct buf new = BUF_INIT(MAX);
	CLEANUP(buf_done) struct buf status = BUF_INIT(MAX);
	CLEANUP(free_charp) char *json = NULL;

	pmem_volume_write_new(v, &new);
	pmem_volume_write_status(v, &status);
	json = x_asprintf(
		"%.*s,%s", (int)new.len - 1, buf_str(&new), strstr(buf_str(&status), "\"status\":"));
	return decode(json);
}

static void assert_texts(char *const *texts, const char *joined)
{
	CLEANUP(free_charp) char *all = x_strdup("");

	for (size_t i = 0; i < strv_len(texts); i++) {
		char *more = x_asprintf("%s%s ", all, texts[i]);

		free(all);
		all = more;
	}
	ck_assert_str_eq(all, joined);
}

START_TEST(what_was_written_is_read)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();
	CLEANUP(pmem_volume_freep) struct pmem_volume *read = apply(v);

	ck_assert(pmem_volume_status_equal(v, read));
	ck_assert_str_eq(read->meta.name, KEY "." DRIVER);
	assert_texts(read->meta.finalizers, PMEM_VOLUME_FINALIZER " ");
	ck_assert(!read->meta.deleting);
	ck_assert_str_eq(read->driver, DRIVER);
	ck_assert_str_eq(read->volume_name, "pvc-1");
	ck_assert_str_eq(read->origin, PMEM_VOLUME_REPORTED);
	ck_assert_str_eq(read->source, "h0");
	ck_assert_ptr_null(read->parameters);
	assert_texts(read->nodes, "n1 n2 ");
	ck_assert_uint_eq(read->size_bytes, 3 * GIB);
	ck_assert_uint_eq(read->attempts, 4);
	ck_assert(!read->deleting);
	ck_assert_str_eq(read->handle, "h1");
	ck_assert_str_eq(read->phase, "Ready");
	ck_assert_str_eq(read->claim, "default/data");
	ck_assert_uint_eq(read->capacity_bytes, 4 * GIB - 1);
	ck_assert_uint_eq(read->n_copies, 2);
	ck_assert_str_eq(read->copies[0].node, "n1");
	ck_assert_str_eq(read->copies[0].phase, "Ready");
	ck_assert_uint_eq(read->copies[0].size_bytes, 4 * GIB);
	ck_assert_str_eq(pmem_condition_find(&read->conditions, "Ready")->since, SINCE);
}
END_TEST

START_TEST(a_patch_of_the_spec_and_the_metadata_of_the_server_are_read)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();
	CLEANUP(pmem_volume_freep) struct pmem_volume *read = NULL;
	CLEANUP(buf_done) struct buf spec = BUF_INIT(MAX);
	CLEANUP(free_charp) char *json = NULL;

	v->retained = true;
	pmem_volume_write_spec(v, &spec);
	json = x_asprintf("{\"metadata\":{\"name\":\"x\",\"uid\":\"u1\",\"resourceVersion\":\"8\","
			  "\"deletionTimestamp\":\"" SINCE "\",\"finalizers\":[\"a\",\"b\"]},%s",
		strstr(buf_str(&spec), "\"spec\":"));
	read = decode(json);
	ck_assert_str_eq(read->meta.uid, "u1");
	ck_assert_str_eq(read->meta.resource_version, "8");
	ck_assert(read->meta.deleting);
	assert_texts(read->meta.finalizers, "a b ");
	assert_texts(read->nodes, "n1 n2 ");
	ck_assert_uint_eq(read->attempts, 4);
	ck_assert(read->deleting);
	ck_assert(read->retained);
}
END_TEST

/* All functions take such an object, which a user has changed or a later release has written. */
static void use(const char *json)
{
	static const writer writers[] = {pmem_volume_write_new, pmem_volume_write_spec,
		pmem_volume_write_status, pmem_volume_write_release};
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = decode(json);
	CLEANUP(pmem_volume_freep) struct pmem_volume *copy = pmem_volume_dup(v);

	ck_assert(!pmem_volume_has_node(v, "n1"));
	ck_assert(!pmem_volume_drop_node(v, "n1"));
	for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
		CLEANUP(buf_done) struct buf out = BUF_INIT(MAX);
		CLEANUP(buf_done) struct buf again = BUF_INIT(MAX);

		writers[i](v, &out);
		writers[i](copy, &again);
		ck_assert_uint_gt(out.len, 0);
		if (v->conditions.n == 0)
			ck_assert_str_eq(buf_str(&out), buf_str(&again));
	}
	pmem_volume_clear_copies(v);
	ck_assert_uint_eq(v->n_copies, 0);
	ck_assert(pmem_volume_add_node(v, "n1"));
	ck_assert(pmem_volume_has_node(v, "n1"));
}

START_TEST(damaged_objects_are_read)
{
	static const char *const damaged[] = {"{\"metadata\":{\"name\":\"x\"}}",
		"{\"metadata\":{\"name\":\"x\"},\"spec\":null,\"status\":null}",
		"{\"metadata\":{\"name\":\"x\"},\"spec\":[],\"status\":\"Ready\"}",
		"{\"metadata\":{\"name\":\"x\",\"finalizers\":{},\"deletionTimestamp\":null},"
		"\"spec\":{\"driver\":[],\"volumeName\":{},\"origin\":true,\"sourceVolume\":[],\"parameters\":[1],"
		"\"nodes\":\"n1\",\"size\":\"many\",\"attempts\":-1,\"deleting\":\"yes\",\"more\":{}},"
		"\"status\":{\"volumeHandle\":{},\"phase\":[],\"claim\":false,\"size\":{},\"nodes\":{},"
		"\"conditions\":\"\"}}",
		"{\"metadata\":{\"name\":\"x\"},\"spec\":{\"nodes\":[null,1,{}]},"
		"\"status\":{\"nodes\":[{},{\"node\":null,\"phase\":[],\"size\":\"-1\"},7],"
		"\"conditions\":[{}]}}"};

	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++)
		use(damaged[i]);
}
END_TEST

START_TEST(damaged_members_read_as_absent)
{
	CLEANUP(pmem_volume_freep)
	struct pmem_volume *v =
		decode("{\"metadata\":{\"name\":\"x\"},\"spec\":{\"driver\":[],"
		       "\"attempts\":-1,\"size\":\"many\",\"deleting\":\"true\","
		       "\"nodes\":[null,\"n2\",{}]},\"status\":{\"size\":[],\"nodes\":[{}]}}");

	ck_assert_ptr_null(v->driver);
	ck_assert_uint_eq(v->attempts, 0);
	ck_assert_uint_eq(v->size_bytes, 0);
	ck_assert(!v->deleting);
	assert_texts(v->nodes, "n2 ");
	ck_assert_uint_eq(v->capacity_bytes, 0);
	ck_assert_uint_eq(v->n_copies, 1);
	ck_assert_ptr_null(v->copies[0].node);
}
END_TEST

START_TEST(what_is_no_object_is_refused)
{
	static const char *const wrong[] = {"", "null", "[]", "{}", "{\"metadata\":{\"name\":\"\"}}",
		"{\"metadata\":{\"name\":\"x\"}", "{\"metadata\":{\"name\":\"x\"}} {}"};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CLEANUP(error_freep) struct error *err = NULL;

		ck_assert_ptr_null(kube_object_decode(&kube_kind_pmem_volumes, span_of(wrong[i]), &err));
		ck_assert_ptr_nonnull(err);
		ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
	}
}
END_TEST

START_TEST(a_finalizer_that_was_removed_comes_back_with_the_next_change)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(KEY, DRIVER);
	CLEANUP(buf_done) struct buf out = BUF_INIT(MAX);
	CLEANUP(buf_done) struct buf deleted = BUF_INIT(MAX);

	v->meta.resource_version = x_strdup("7");
	strv_add(&v->meta.finalizers, "example.com/other");
	pmem_volume_write_spec(v, &out);
	ck_assert_str_eq(buf_str(&out),
		"{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":{\"pmem-csi.intel.com/pv\":null,"
		"\"pmem-csi.intel.com/node\":null},\"finalizers\":[\"example.com/other\","
		"\"pmem-csi.intel.com/copies\"]},\"spec\":{\"size\":\"0\",\"nodes\":[],\"attempts\":0,\"deleting\":false,\"retained\":false}}");
	/* which the API server would refuse */
	v->meta.deleting = true;
	pmem_volume_write_spec(v, &deleted);
	ck_assert_str_eq(buf_str(&deleted),
		"{\"metadata\":{\"resourceVersion\":\"7\",\"labels\":{\"pmem-csi.intel.com/pv\":null,"
		"\"pmem-csi.intel.com/node\":null}},"
		"\"spec\":{\"size\":\"0\",\"nodes\":[],\"attempts\":0,\"deleting\":false,\"retained\":false}}");
}
END_TEST

/* An API server does not accept such objects. */
START_TEST(conditions_of_one_type_differ_from_others_only)
{
	static const char *const lists[] = {
		"{\"type\":\"A\",\"status\":\"True\"},{\"type\":\"A\",\"status\":\"False\"}",
		"{\"type\":\"A\",\"status\":\"True\"},{\"type\":\"B\",\"status\":\"False\"}"};
	struct pmem_volume *volumes[ARRAY_SIZE(lists)];

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		CLEANUP(free_charp)
		char *json = x_asprintf(
			"{\"metadata\":{\"name\":\"x\"},\"status\":{\"conditions\":[%s]}}", lists[i]);
		volumes[i] = decode(json);
		CLEANUP(pmem_volume_freep) struct pmem_volume *copy = pmem_volume_dup(volumes[i]);
		ck_assert(pmem_volume_status_equal(volumes[i], copy));
	}
	ck_assert(!pmem_volume_status_equal(volumes[0], volumes[1]));
	ck_assert(!pmem_volume_status_equal(volumes[1], volumes[0]));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		pmem_volume_freep(&volumes[i]);
}
END_TEST

START_TEST(a_copy_has_all)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();
	CLEANUP(pmem_volume_freep) struct pmem_volume *copy = NULL;

	v->meta.deleting = true;
	v->retained = true;
	copy = pmem_volume_dup(v);
	ck_assert(pmem_volume_status_equal(v, copy));
	ck_assert_str_eq(copy->conditions.list[0].since, SINCE);
	ck_assert_str_eq(copy->meta.name, v->meta.name);
	ck_assert_str_eq(copy->meta.uid, "u1");
	ck_assert_str_eq(copy->meta.resource_version, "7");
	ck_assert(copy->meta.deleting);
	assert_texts(
		copy->meta.finalizers, "example.com/before " PMEM_VOLUME_FINALIZER " example.com/after ");
	ck_assert_str_eq(copy->driver, DRIVER);
	ck_assert_str_eq(copy->volume_name, "pvc-1");
	ck_assert_str_eq(copy->origin, PMEM_VOLUME_REPORTED);
	ck_assert_uint_eq(strv_len(copy->parameters), 4);
	assert_texts(copy->nodes, "n1 n2 ");
	ck_assert_uint_eq(copy->size_bytes, 3 * GIB);
	ck_assert_uint_eq(copy->attempts, 4);
	ck_assert(copy->deleting);
	ck_assert(copy->retained);
	pmem_volume_drop_node(copy, "n1");
	pmem_volume_clear_copies(copy);
	assert_texts(v->nodes, "n1 n2 ");
	ck_assert_uint_eq(v->n_copies, 2);
}
END_TEST

/* An administrator can write a node twice. Each entry keeps its own values. */
START_TEST(a_copy_has_both_entries_of_a_node)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();
	CLEANUP(pmem_volume_freep) struct pmem_volume *copy = NULL;

	pmem_volume_show_filling(v, "n1", 1, 2);
	pmem_volume_show_dax(v, "n1", "synchronous", true);
	pmem_volume_add_copy(v, "n1", "Ready", GIB, 3);
	copy = pmem_volume_dup(v);
	ck_assert(pmem_volume_status_equal(v, copy));
}
END_TEST

START_TEST(nodes_are_added_once_and_dropped_anywhere)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(KEY, DRIVER);

	ck_assert(!pmem_volume_has_node(v, "n1"));
	ck_assert(!pmem_volume_drop_node(v, "n1"));
	ck_assert(pmem_volume_add_node(v, "n1"));
	ck_assert(pmem_volume_add_node(v, "n2"));
	ck_assert(pmem_volume_add_node(v, "n3"));
	ck_assert(pmem_volume_add_node(v, "n4"));
	ck_assert(!pmem_volume_add_node(v, "n4"));
	ck_assert(!pmem_volume_drop_node(v, "n"));
	ck_assert(!pmem_volume_drop_node(v, "n11"));
	assert_texts(v->nodes, "n1 n2 n3 n4 ");
	ck_assert(pmem_volume_drop_node(v, "n1"));
	assert_texts(v->nodes, "n2 n3 n4 ");
	ck_assert(pmem_volume_drop_node(v, "n4"));
	assert_texts(v->nodes, "n2 n3 ");
	ck_assert(!pmem_volume_has_node(v, "n4"));
	ck_assert(pmem_volume_drop_node(v, "n2"));
	ck_assert(pmem_volume_drop_node(v, "n3"));
	ck_assert(!pmem_volume_drop_node(v, "n3"));
	assert_texts(v->nodes, "");
	ck_assert(pmem_volume_add_node(v, "n1"));
	assert_texts(v->nodes, "n1 ");
}
END_TEST

START_TEST(copies_are_appended_and_cleared)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

	pmem_volume_clear_copies(v);
	ck_assert_uint_eq(v->n_copies, 0);
	pmem_volume_add_copy(v, "n3", "Missing", 5, 6);
	ck_assert_uint_eq(v->n_copies, 1);
	ck_assert_str_eq(v->copies[0].node, "n3");
	ck_assert_str_eq(v->copies[0].phase, "Missing");
	ck_assert_uint_eq(v->copies[0].size_bytes, 5);
	ck_assert_uint_eq(v->copies[0].report, 6);
}
END_TEST

START_TEST(the_location_names_a_few_nodes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(KEY, DRIVER);
	static const char *const texts[] = {
		"", "n0", "n0,n1", "n0,n1,n2", "n0,n1,n2,n3", "n0,n1,n2,n3,1 more", "n0,n1,n2,n3,2 more"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(free_charp) char *node_id = x_asprintf("n%zu", i);

		pmem_volume_set_location(v);
		ck_assert_str_eq(v->location, texts[i]);
		pmem_volume_add_node(v, node_id);
	}
}
END_TEST

static void change_text(char **text)
{
	free(*text);
	*text = x_strdup("other");
}

/* Change part number @part of the status. Return: whether there is one. */
static bool change(struct pmem_volume *v, size_t part)
{
	struct pmem_condition *c = v->conditions.list;
	char **const texts[] = {&v->handle, &v->phase, &v->claim, &v->location, &v->copies[0].node,
		&v->copies[1].phase, &c->type, &c->status, &c->reason, &c->message};
	uint64_t *const numbers[] = {&v->capacity_bytes, &v->copies[0].size_bytes, &v->copies[1].size_bytes,
		&v->copies[0].report, &v->copies[1].report, &v->copies[1].done_bytes,
		&v->copies[1].total_bytes};

	if (part < ARRAY_SIZE(texts)) {
		change_text(texts[part]);
		return true;
	}
	part -= ARRAY_SIZE(texts);
	if (part < ARRAY_SIZE(numbers)) {
		++*numbers[part];
		return true;
	}
	switch (part - ARRAY_SIZE(numbers)) {
	case 0:
		pmem_volume_add_copy(v, "n3", "Ready", 1, 0);
		return true;
	case 1:
		pmem_condition_add(&v->conditions, "Other", &(struct pmem_verdict){"True", "", ""}, SINCE);
		return true;
	default:
		return false;
	}
}

START_TEST(each_part_of_the_status_makes_a_difference)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *before = make();
	size_t part = 0;

	for (;; part++) {
		CLEANUP(pmem_volume_freep) struct pmem_volume *v = make();

		if (!change(v, part))
			break;
		CLEANUP(pmem_volume_freep) struct pmem_volume *read = apply(v);
		ck_assert_msg(!pmem_volume_status_equal(before, v), "part %zu", part);
		ck_assert_msg(!pmem_volume_status_equal(v, before), "part %zu", part);
		ck_assert_msg(pmem_volume_status_equal(v, read), "part %zu is not read as written", part);
	}
	ck_assert_uint_eq(part, 19);
}
END_TEST

START_TEST(absent_parts_of_the_status_make_a_difference)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *all = make();
	CLEANUP(pmem_volume_freep) struct pmem_volume *none = pmem_volume_new(KEY, DRIVER);
	CLEANUP(pmem_volume_freep) struct pmem_volume *fewer = make();

	ck_assert(pmem_volume_status_equal(none, none));
	ck_assert(!pmem_volume_status_equal(all, none));
	ck_assert(!pmem_volume_status_equal(none, all));
	free(TAKE_PTR(fewer->claim));
	ck_assert(!pmem_volume_status_equal(all, fewer));
	ck_assert(!pmem_volume_status_equal(fewer, all));
}
END_TEST

START_TEST(spec_and_times_make_no_difference_to_the_status)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *a = make();
	CLEANUP(pmem_volume_freep) struct pmem_volume *b = make();

	change_text(&b->conditions.list[0].since);
	change_text(&b->meta.resource_version);
	pmem_volume_drop_node(b, "n1");
	b->attempts++;
	b->deleting = false;
	ck_assert(pmem_volume_status_equal(a, b));
}
END_TEST

START_TEST(any_volume_name_is_kept_as_it_is)
{
	static const char pattern[] = "Pvc+Name_with.CAPITALS-and/\xc3\xa4 ";
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(KEY, DRIVER);
	CLEANUP(pmem_volume_freep) struct pmem_volume *read = NULL;
	char name[129];

	for (size_t i = 0; i < sizeof(name) - 1; i++)
		name[i] = pattern[i % strlen(pattern)];
	name[128] = '\0';
	ck_assert(str_is_utf8(name, strlen(name)));
	v->volume_name = x_strdup(name);
	read = apply(v);
	ck_assert_str_eq(read->volume_name, name);
	ck_assert_str_eq(read->meta.name, KEY "." DRIVER);
}
END_TEST

/* A driver's name has at most 63 bytes. Source: GetPluginInfoResponse.name in csi.proto */
START_TEST(an_object_has_a_valid_name)
{
	char driver[64];

	memset(driver, 'a', sizeof(driver) - 1);
	driver[63] = '\0';
	CLEANUP(free_charp) char *name = pmem_volume_object_name(KEY, driver);
	ck_assert_uint_eq(strlen(name), PMEM_VOLUME_KEY_LEN + 1 + 63);
	ck_assert_uint_le(strlen(name), 253);
	ck_assert(kube_is_name(name));
	ck_assert_int_eq(strncmp(name, KEY ".aaa", PMEM_VOLUME_KEY_LEN + 4), 0);
}
END_TEST

UNIT_MAIN("resources/pmem_volume", a_new_object_is_written_whole,
	what_is_not_known_of_a_new_object_is_left_out, a_patch_of_the_spec_has_what_changes,
	labels_say_claim_volume_and_node, what_is_no_value_of_a_label_is_left_out,
	labels_of_a_claim_that_is_not_known_stay, a_node_is_lost_if_its_copy_is,
	a_patch_of_the_status_has_all_of_it, what_is_not_known_of_the_status_is_left_out,
	a_release_removes_our_finalizer_only, what_was_written_is_read,
	a_patch_of_the_spec_and_the_metadata_of_the_server_are_read, damaged_objects_are_read,
	damaged_members_read_as_absent, what_is_no_object_is_refused,
	conditions_of_one_type_differ_from_others_only, a_copy_has_all, a_copy_has_both_entries_of_a_node,
	a_finalizer_that_was_removed_comes_back_with_the_next_change,
	nodes_are_added_once_and_dropped_anywhere, copies_are_appended_and_cleared,
	the_location_names_a_few_nodes, each_part_of_the_status_makes_a_difference,
	absent_parts_of_the_status_make_a_difference, spec_and_times_make_no_difference_to_the_status,
	any_volume_name_is_kept_as_it_is, an_object_has_a_valid_name)
