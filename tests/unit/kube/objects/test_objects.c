/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/objects/objects.h"

#include <time.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/json_members.h"
#include "unit/unit.h"

START_TEST(a_volume_keeps_what_the_duties_need)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_volume *v = kube_object_decode(&kube_kind_volumes,
		span_of("{\"kind\":\"PersistentVolume\",\"metadata\":{\"name\":\"pvc-1\",\"uid\":\"u\","
			"\"resourceVersion\":\"12\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\","
			"\"annotations\":{\"pv.kubernetes.io/"
			"provisioned-by\":\"d\"},\"labels\":{\"a\":\"b\"},"
			"\"managedFields\":[{\"fieldsV1\":{\"f:x\":{}}}]},"
			"\"spec\":{\"capacity\":{\"storage\":\"3Gi\"},\"csi\":{\"driver\":\"d\","
			"\"volumeHandle\":\"h\","
			"\"volumeAttributes\":{\"x\":\"y\"}},\"claimRef\":{\"namespace\":\"ns\",\"name\":"
			"\"c\","
			"\"uid\":\"cu\"},\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{"
			"\"matchExpressions\":["
			"{\"key\":\"d/node\",\"operator\":\"In\",\"values\":[\"n1\",\"n2\"]},"
			"{\"key\":\"k\",\"operator\":\"NotIn\",\"values\":[\"n3\"]}]},{\"matchExpressions\":["
			"{\"key\":\"d/node\",\"operator\":\"In\",\"values\":[\"n4\"]}]}]}},"
			"\"storageClassName\":\"sc\"},\"status\":{\"phase\":\"Bound\"}}"),
		&err);

	ck_assert_msg(v != NULL, "%s", err ? err->msg : "");
	ck_assert_str_eq(v->meta.name, "pvc-1");
	ck_assert_str_eq(v->meta.uid, "u");
	ck_assert_str_eq(v->meta.resource_version, "12");
	ck_assert(v->meta.deleting);
	ck_assert_ptr_null(v->meta.namespace);
	ck_assert_ptr_null(v->meta.labels.block);
	ck_assert_str_eq(kube_meta_annotation(&v->meta, "pv.kubernetes.io/provisioned-by"), "d");
	ck_assert_str_eq(v->driver, "d");
	ck_assert_str_eq(v->handle, "h");
	ck_assert_str_eq(v->claim_namespace, "ns");
	ck_assert_str_eq(v->claim_name, "c");
	ck_assert_str_eq(v->claim_uid, "cu");
	ck_assert_str_eq(v->storage_class, "sc");
	ck_assert_str_eq(v->phase, "Bound");
	ck_assert_uint_eq(v->size_bytes, 3ULL << 30);
	ck_assert_uint_eq(strv_len(v->node_values), 3);
	ck_assert(strv_contains(v->node_values, "n4"));
	kube_object_free(&kube_kind_volumes, v);
}
END_TEST

/* @terms: of the node affinity, JSON. Return: the node IDs, separated by spaces; caller frees. */
static char *node_ids(const char *terms)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(1u << 16);
	CLEANUP(free_charp)
	char *json = x_asprintf(
		"{\"metadata\":{\"name\":\"v\"},\"spec\":{\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":"
		"[%s]}},\"csi\":{\"driver\":\"d\"}}}",
		terms);
	struct kube_volume *v = kube_object_decode(&kube_kind_volumes, span_of(json), &err);

	ck_assert_msg(v != NULL, "%s", err ? err->msg : "");
	for (size_t i = 0; i < strv_len(v->node_ids); i++)
		buf_addf(&out, "%s%s", i > 0 ? " " : "", v->node_ids[i]);
	kube_object_free(&kube_kind_volumes, v);
	return x_strdup(buf_str(&out));
}

#define EXPRESSION(key, operator, value)                                                                     \
	"{\"key\":\"" key "\",\"operator\":\"" operator"\",\"values\":[\"" value "\"]}"
#define TERM(expressions) "{\"matchExpressions\":[" expressions "]}"
#define HOSTNAME          EXPRESSION("kubernetes.io/hostname", "In", "h")

START_TEST(nodes_of_a_volume_are_those_that_the_drivers_key_names)
{
	static const struct {
		const char *terms;
		const char *ids;
	} cases[] = {
		{"", ""},
		{TERM(""), ""},
		{TERM(HOSTNAME), ""},
		{TERM(EXPRESSION("d/node", "In", "n1")), "n1"},
		{TERM(EXPRESSION("d/node", "NotIn", "n1")), ""},
		{TERM(HOSTNAME "," EXPRESSION("d/node", "In", "n1")), "n1"},
		{TERM(EXPRESSION("d/node", "In", "n1")) "," TERM(
			 EXPRESSION("d/node", "In", "n2") "," HOSTNAME),
			"n1 n2"},
		{TERM(EXPRESSION("d/node", "In", "n1")) "," TERM(HOSTNAME), ""},
		{TERM(HOSTNAME) "," TERM(EXPRESSION("d/node", "In", "n1")), ""},
		{TERM(EXPRESSION("e/node", "In", "n1")), ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *ids = node_ids(cases[i].terms);

		ck_assert_msg(str_eq(ids, cases[i].ids), "%s: %s", cases[i].terms, ids);
	}
}
END_TEST

START_TEST(terms_that_are_cut_off_name_no_nodes)
{
	CLEANUP(buf_done) struct buf terms = BUF_INIT(1u << 20);
	CLEANUP(free_charp) char *ids = NULL;

	for (size_t i = 0; i < KUBE_MAX_TEXTS; i++)
		buf_addf(&terms, "%s" TERM(EXPRESSION("d/node", "In", "n%zu")), i > 0 ? "," : "", i);
	ids = node_ids(buf_str(&terms));
	ck_assert_str_eq(ids, "");
}
END_TEST

START_TEST(a_claim_keeps_what_the_duties_need_and_no_annotations)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *key = NULL;
	struct kube_claim *c = kube_object_decode(&kube_kind_claims,
		span_of("{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{"
			"\"volume.kubernetes.io/selected-node\":\"n1\",\"huge\":\"text\","
			"\"volume.beta.kubernetes.io/"
			"storage-provisioner\":\"d\"}},\"spec\":{\"storageClassName\":\"sc\","
			"\"volumeName\":\"pv\",\"volumeMode\":\"Block\",\"resources\":{\"requests\":{"
			"\"storage\":\"1G\"}}},"
			"\"status\":{\"phase\":\"Pending\"}}"),
		&err);

	ck_assert_msg(c != NULL, "%s", err ? err->msg : "");
	key = kube_meta_key(&c->meta);
	ck_assert_str_eq(key, "ns/c");
	ck_assert_str_eq(c->selected_node, "n1");
	ck_assert_str_eq(c->provisioner, "d");
	ck_assert_str_eq(c->storage_class, "sc");
	ck_assert_str_eq(c->volume_name, "pv");
	ck_assert_str_eq(c->phase, "Pending");
	ck_assert_uint_eq(c->request_bytes, 1000000000);
	ck_assert(c->is_block);
	ck_assert_ptr_null(c->meta.annotations.block);
	kube_object_free(&kube_kind_claims, c);
}
END_TEST

START_TEST(a_node_keeps_its_labels)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_node *n = kube_object_decode(&kube_kind_nodes,
		span_of("{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":"
			"\"1\",\"b\":\"\",\"\":\"x\",\"c\":3}},"
			"\"status\":{\"images\":[]}}"),
		&err);

	ck_assert_msg(n != NULL, "%s", err ? err->msg : "");
	ck_assert_str_eq(kube_meta_label(&n->meta, "a"), "1");
	ck_assert_str_eq(kube_meta_label(&n->meta, "b"), "");
	ck_assert_ptr_null(kube_meta_label(&n->meta, "d"));
	ck_assert_ptr_null(kube_meta_label(&n->meta, ""));
	ck_assert_str_eq(kube_meta_label(&n->meta, "c"), "3");
	ck_assert(!n->out_of_service);
	kube_object_free(&kube_kind_nodes, n);
}
END_TEST

START_TEST(a_node_is_out_of_service_by_one_of_its_taints)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_node *n = kube_object_decode(&kube_kind_nodes,
		span_of("{\"metadata\":{\"name\":\"n\"},\"spec\":{\"taints\":[7,{\"key\":"
			"\"node.kubernetes.io/out-of-service\",\"effect\":\"NoSchedule\"},{\"key\":\"x\"}]}}"),
		&err);

	ck_assert_msg(n != NULL, "%s", err ? err->msg : "");
	ck_assert(n->out_of_service);
	kube_object_free(&kube_kind_nodes, n);
}
END_TEST

static void *decode(const struct kube_kind *kind, const char *text)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of(text));
	CLEANUP(error_freep) struct error *err = NULL;
	void *object = kube_object_read(kind, r, &err);

	ck_assert_msg(object != NULL, "%s", err ? err->msg : "");
	return object;
}

START_TEST(classes_capacities_and_drivers_of_nodes_are_read)
{
	struct kube_class *sc = decode(&kube_kind_classes,
		"{\"metadata\":{\"name\":\"sc\"},\"provisioner\":\"d\",\"parameters\":{\"p\":\"q\"},"
		"\"volumeBindingMode\":\"WaitForFirstConsumer\"}");
	struct kube_capacity *c = decode(&kube_kind_capacities,
		"{\"metadata\":{\"name\":\"c\",\"namespace\":\"n\",\"labels\":{\"l\":\"m\"}},\"capacity\":"
		"\"5Gi\","
		"\"nodeTopology\":{\"matchLabels\":{\"d/node\":\"n1\"}},\"storageClassName\":\"sc\"}");
	struct kube_csi_node *n = decode(&kube_kind_csi_nodes,
		"{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"drivers\":[{\"name\":\"d\",\"nodeID\":\"i\","
		"\"topologyKeys\":[\"d/node\"]},{\"name\":\"e\"}]}}");

	ck_assert_str_eq(sc->provisioner, "d");
	ck_assert(sc->waits_for_consumer);
	ck_assert_str_eq(kube_pairs_get(&sc->parameters, "p"), "q");
	ck_assert_str_eq(c->storage_class, "sc");
	ck_assert(c->has_capacity && !c->has_maximum && !c->has_expressions);
	ck_assert_uint_eq(c->capacity_bytes, 5ULL << 30);
	ck_assert_str_eq(kube_pairs_get(&c->topology, "d/node"), "n1");
	ck_assert_str_eq(kube_meta_label(&c->meta, "l"), "m");
	ck_assert_uint_eq(strv_len(n->drivers), 2);
	kube_object_free(&kube_kind_classes, sc);
	kube_object_free(&kube_kind_capacities, c);
	kube_object_free(&kube_kind_csi_nodes, n);
}
END_TEST

START_TEST(a_pod_keeps_its_volumes_that_are_claims_or_of_csi)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *first = NULL;
	CLEANUP(free_charp) char *second = NULL;
	struct kube_pod *p = kube_object_decode(&kube_kind_pods,
		span_of("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\"},\"spec\":{"
			"\"nodeName\":\"n1\",\"volumes\":[{\"name\":\"t\",\"projected\":{}},"
			"{\"name\":\"a\",\"persistentVolumeClaim\":{\"claimName\":\"c\"}},"
			"{\"name\":\"b\",\"ephemeral\":{\"volumeClaimTemplate\":{\"spec\":{}}}},"
			"{\"name\":\"i\",\"csi\":{\"driver\":\"d\",\"fsType\":\"xfs\","
			"\"volumeAttributes\":{\"size\":\"1Gi\"}}}]},\"status\":{\"conditions\":[]}}"),
		&err);

	ck_assert_msg(p != NULL, "%s", err ? err->msg : "");
	ck_assert_str_eq(p->meta.uid, "u");
	ck_assert_str_eq(p->node_name, "n1");
	ck_assert_uint_eq(p->n_volumes, 3);
	first = kube_pod_claim(p, &p->volumes[0]);
	second = kube_pod_claim(p, &p->volumes[1]);
	ck_assert_str_eq(first, "c");
	ck_assert_str_eq(second, "p-b");
	ck_assert_ptr_null(kube_pod_claim(p, &p->volumes[2]));
	ck_assert_str_eq(p->volumes[2].driver, "d");
	ck_assert_str_eq(p->volumes[2].fs_type, "xfs");
	ck_assert_str_eq(kube_pairs_get(&p->volumes[2].attributes, "size"), "1Gi");
	ck_assert_uint_eq(p->unscheduled, 0);
	ck_assert(kube_kind_pods.keeps(NULL, p));
	kube_object_free(&kube_kind_pods, p);
}
END_TEST

/* Informers do not keep the fields that only the webhook needs of new pods, because each informer has all
 * pods of a cluster. */
START_TEST(a_new_pod_has_no_name_and_keeps_more)
{
	static const char text[] =
		"{\"metadata\":{\"name\":%s,\"labels\":{\"l\":\"m\"},\"annotations\":{\"a\":\"\\u0000\"}},"
		"\"spec\":{\"schedulerName\":\"s\",\"volumes\":[{\"name\":\"v\",\"ephemeral\":{"
		"\"volumeClaimTemplate\":{\"spec\":{\"storageClassName\":\"c\"}}}}],\"initContainers\":[{"
		"\"resources\":{\"limits\":{\"r\":\"1\"},\"requests\":{\"r\":1}}}],\"containers\":[{"
		"\"resources\":{\"limits\":{},\"requests\":null}},{}]}}";
	CLEANUP(free_charp) char *unnamed = x_asprintf(text, "null");
	CLEANUP(free_charp) char *named = x_asprintf(text, "\"p\"");
	CLEANUP(error_freep) struct error *err = NULL;
	struct kube_new_pod *n = kube_new_pod_decode(span_of(unnamed), "r", &err);
	struct kube_pod *p = decode(&kube_kind_pods, named);

	ck_assert_ptr_nonnull(n);
	ck_assert_str_eq(n->scheduler, "s");
	ck_assert_str_eq(kube_meta_label(&n->pod.meta, "l"), "m");
	ck_assert_str_eq(n->pod.volumes[0].template_class, "c");
	ck_assert_uint_eq(n->n_containers, 2);
	ck_assert(n->has_resource && n->has_volumes && n->first_container.has_resources);
	ck_assert(n->first_container.has_limits && !n->first_container.has_requests);
	ck_assert(p->volumes[0].is_ephemeral && !p->volumes[0].template_class);
	ck_assert_ptr_null(kube_meta_label(&p->meta, "l"));
	kube_object_free(&kube_kind_pods, p);
	kube_new_pod_free(n);
	n = kube_new_pod_decode(span_of(unnamed), "other", &err);
	ck_assert(n && !n->has_resource);
	kube_new_pod_free(n);
}
END_TEST

/* The API server takes such texts from users in values of annotations and attributes. */
START_TEST(a_text_with_a_nul_is_absent)
{
	struct kube_pod *p = decode(&kube_kind_pods,
		"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"volumes\":[{\"name\":\"i\",\"csi\":{\"driver\":"
		"\"d\","
		"\"fsType\":\"x\\u0000\",\"volumeAttributes\":{\"a\":\"\\u0000\",\"b\\u0000\":[1],"
		"\"size\":\"1Gi\"}}}]}}");
	struct kube_claim *c = decode(&kube_kind_claims,
		"{\"metadata\":{\"name\":\"c\",\"annotations\":{\"a\":\"1\",\"b\":\"\\udc00\",\"c\":\"3\"}},"
		"\"spec\":{\"volumeName\":\"v\"}}");

	ck_assert_uint_eq(p->n_volumes, 1);
	ck_assert_ptr_null(p->volumes[0].fs_type);
	ck_assert_ptr_null(kube_pairs_get(&p->volumes[0].attributes, "a"));
	ck_assert_str_eq(kube_pairs_get(&p->volumes[0].attributes, "size"), "1Gi");
	ck_assert_str_eq(c->meta.name, "c");
	kube_object_free(&kube_kind_pods, p);
	kube_object_free(&kube_kind_claims, c);
}
END_TEST

/* @source: members of the spec; @expected: "namespace/name"; NULL: none */
static void has_source(const char *source, const char *expected)
{
	CLEANUP(free_charp)
	char *text = x_asprintf("{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\"},\"spec\":{%s}}", source);
	struct kube_claim *c = decode(&kube_kind_claims, text);

	ck_assert_msg(str_eq(c->source_claim, expected), "%s: the source is %s", source, c->source_claim);
	ck_assert(!c->source_group && !c->source_namespace);
	kube_object_free(&kube_kind_claims, c);
}

#define CLAIM_SOURCE "\"kind\":\"PersistentVolumeClaim\",\"name\":\"src\""
#define SNAPSHOT_SOURCE                                                                                      \
	"\"apiGroup\":\"snapshot.storage.k8s.io\",\"kind\":\"VolumeSnapshot\",\"name\":\"src\""

START_TEST(the_claim_that_another_one_is_to_be_a_clone_of_is_known)
{
	has_source("", NULL);
	has_source("\"dataSource\":null,\"dataSourceRef\":{}", NULL);
	has_source("\"dataSource\":{" CLAIM_SOURCE "}", "ns/src");
	has_source("\"dataSource\":{\"apiGroup\":\"\"," CLAIM_SOURCE "}", "ns/src");
	has_source("\"dataSource\":{\"apiGroup\":null," CLAIM_SOURCE "}", "ns/src");
	has_source("\"dataSourceRef\":{" CLAIM_SOURCE "}", "ns/src");
	has_source("\"dataSourceRef\":{" CLAIM_SOURCE ",\"namespace\":\"other\"}", "other/src");
	has_source("\"dataSource\":{" CLAIM_SOURCE "},\"dataSourceRef\":{" CLAIM_SOURCE "}", "ns/src");
	has_source("\"dataSource\":{" SNAPSHOT_SOURCE "},\"dataSourceRef\":{" SNAPSHOT_SOURCE "}", NULL);
	has_source("\"dataSourceRef\":{\"apiGroup\":\"example.com\"," CLAIM_SOURCE "}", NULL);
	has_source("\"dataSource\":{\"kind\":\"Other\",\"name\":\"src\"}", NULL);
	has_source("\"dataSource\":{\"kind\":\"PersistentVolumeClaim\",\"name\":{}}", NULL);
}
END_TEST

static uint64_t unscheduled(const char *status, const char *message)
{
	CLEANUP(free_charp)
	char *text = x_asprintf("{\"metadata\":{\"name\":\"p\"},\"status\":{\"conditions\":["
				"{\"type\":\"PodScheduled\",\"status\":\"%s\",\"message\":\"%s\"},"
				"{\"type\":\"Ready\",\"status\":\"False\"}]}}",
		status, message);
	struct kube_pod *p = decode(&kube_kind_pods, text);
	uint64_t hash = p->unscheduled;

	ck_assert(!kube_kind_pods.keeps(NULL, p));
	kube_object_free(&kube_kind_pods, p);
	return hash;
}

START_TEST(another_reason_why_a_pod_is_not_scheduled_is_told_apart)
{
	ck_assert_uint_eq(unscheduled("True", "x"), 0);
	ck_assert_uint_ne(unscheduled("False", ""), 0);
	ck_assert_uint_eq(unscheduled("False", "x"), unscheduled("False", "x"));
	ck_assert_uint_ne(unscheduled("False", "x"), unscheduled("False", "y"));
}
END_TEST

START_TEST(the_owner_that_controls_a_claim_is_known_and_the_modes_of_a_driver)
{
	struct kube_claim *c = decode(&kube_kind_claims,
		"{\"metadata\":{\"name\":\"c\",\"ownerReferences\":[{\"uid\":\"other\"},"
		"{\"kind\":\"Pod\",\"uid\":\"pod\",\"controller\":true},{\"uid\":\"last\",\"controller\":"
		"false}]}}");
	struct kube_csi_driver *d = decode(&kube_kind_csi_drivers,
		"{\"metadata\":{\"name\":\"d\"},\"spec\":{\"volumeLifecycleModes\":[\"Persistent\","
		"\"Ephemeral\"]}}");

	ck_assert_str_eq(c->meta.owner_uid, "pod");
	ck_assert_uint_eq(strv_len(d->modes), 2);
	ck_assert(strv_contains(d->modes, "Ephemeral"));
	kube_object_free(&kube_kind_claims, c);
	kube_object_free(&kube_kind_csi_drivers, d);
}
END_TEST

/* A value of the wrong type does not make an object unreadable, since one such object must not hide all
 * others. */
START_TEST(values_of_another_type_read_as_absent)
{
	static const struct kube_kind *const kinds[] = {&kube_kind_nodes, &kube_kind_csi_nodes,
		&kube_kind_volumes, &kube_kind_claims, &kube_kind_classes, &kube_kind_capacities,
		&kube_kind_pods, &kube_kind_csi_drivers};
	static const char *const texts[] = {
		"{\"metadata\":{\"name\":\"x\",\"labels\":7,\"annotations\":[],\"uid\":{}},\"spec\":[],"
		"\"status\":null}",
		"{\"metadata\":{\"name\":\"x\",\"ownerReferences\":[1,{\"controller\":\"true\"},"
		"{\"controller\":true}]},\"spec\":{\"volumes\":[1,{},{\"name\":\"a\",\"csi\":[]},"
		"{\"persistentVolumeClaim\":{\"claimName\":\"c\"}}],\"volumeLifecycleModes\":{}},"
		"\"status\":{\"conditions\":[7,{\"type\":{},\"status\":null}]}}",
		"{\"spec\":{\"csi\":1,\"drivers\":{},\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":["
		"1,"
		"{\"matchExpressions\":[{\"operator\":\"In\"},2]}]}},\"resources\":{\"requests\":{"
		"\"storage\":\"x\"}},"
		"\"capacity\":{\"storage\":[]}},\"metadata\":{\"name\":\"x\"},\"nodeTopology\":1,"
		"\"capacity\":\"-1\"}",
	};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (size_t t = 0; t < ARRAY_SIZE(texts); t++)
			kube_object_free(kinds[k], decode(kinds[k], texts[t]));
	}
}
END_TEST

START_TEST(malformed_objects_are_refused)
{
	static const char *const texts[] = {"", "[]", "{}", "{\"metadata\":{\"name\":\"\"}}",
		"{\"metadata\":{\"name\":\"x\"}", "{\"metadata\":{\"name\":\"x\"}} {}",
		"{\"metadata\":null}"};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(error_freep) struct error *err = NULL;

		ck_assert_ptr_null(kube_object_decode(&kube_kind_volumes, span_of(texts[i]), &err));
		ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
	}
}
END_TEST

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

START_TEST(the_time_is_told_in_utc_with_six_decimals)
{
	CLEANUP(error_freep) struct error *err = NULL;
	char out[KUBE_TIME_LEN + 1];
	struct tm tm = {0};
	uint64_t fraction;
	int64_t before = now_us();
	int64_t reported;
	char *rest;

	kube_now_format(out);
	ck_assert_uint_eq(strlen(out), KUBE_TIME_LEN);
	rest = strptime(out, "%Y-%m-%dT%H:%M:%S.", &tm);
	ck_assert_ptr_nonnull(rest);
	ck_assert_str_eq(rest + 6, "Z");
	rest[6] = '\0';
	ASSERT_OK(parse_u64(rest, &fraction, &err));
	reported = (int64_t)timegm(&tm) * 1000000 + (int64_t)fraction;
	ck_assert_int_ge(reported, before);
	ck_assert_int_le(reported, now_us());
}
END_TEST

START_TEST(a_time_is_written_in_utc)
{
	static const struct {
		int64_t seconds;
		const char *text;
	} cases[] = {{0, "1970-01-01T00:00:00Z"}, {-1, "1969-12-31T23:59:59Z"},
		{951782400, "2000-02-29T00:00:00Z"}, {4102444799, "2099-12-31T23:59:59Z"}};

	setenv("TZ", "XYZ-5", 1);
	tzset();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char out[KUBE_SECONDS_LEN + 1];

		kube_time_format(cases[i].seconds, out);
		ck_assert_str_eq(out, cases[i].text);
		ck_assert(kube_time_valid(out));
	}
}
END_TEST

START_TEST(a_time_has_one_form)
{
	static const char *const bad[] = {NULL, "", "2026-01-02", "2026-01-02T03:04:05",
		"2026-01-02T03:04:05z", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05ZZ",
		"x026-01-02T03:04:05Z", "2026-01-02T03:04:05.0Z", "2026-01-02T03:04+01:0"};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!kube_time_valid(bad[i]), "%s", bad[i] ? bad[i] : "NULL");
}
END_TEST

START_TEST(a_name_is_what_the_api_server_takes)
{
	static const char *const good[] = {"a", "0", "a-b", "a--b", "a.b", "a.0.c-d"};
	static const char *const bad[] = {"", "-", ".", "A", "a_b", "a/b", "a b", "-a", "a-", ".a", "a.",
		"a..b", "a-.b", "a.-b", "a\n"};
	char name[255];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ck_assert_msg(kube_is_name(good[i]), "\"%s\"", good[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ck_assert_msg(!kube_is_name(bad[i]), "\"%s\"", bad[i]);
	memset(name, 'a', 254);
	name[254] = '\0';
	ck_assert(!kube_is_name(name));
	name[253] = '\0';
	ck_assert(kube_is_name(name));
}
END_TEST

UNIT_MAIN("kube/objects", a_time_is_written_in_utc, a_time_has_one_form, a_name_is_what_the_api_server_takes,
	a_volume_keeps_what_the_duties_need, nodes_of_a_volume_are_those_that_the_drivers_key_names,
	terms_that_are_cut_off_name_no_nodes, a_claim_keeps_what_the_duties_need_and_no_annotations,
	a_node_keeps_its_labels, a_node_is_out_of_service_by_one_of_its_taints,
	classes_capacities_and_drivers_of_nodes_are_read, a_pod_keeps_its_volumes_that_are_claims_or_of_csi,
	a_new_pod_has_no_name_and_keeps_more, a_text_with_a_nul_is_absent,
	another_reason_why_a_pod_is_not_scheduled_is_told_apart,
	the_owner_that_controls_a_claim_is_known_and_the_modes_of_a_driver,
	the_claim_that_another_one_is_to_be_a_clone_of_is_known, values_of_another_type_read_as_absent,
	malformed_objects_are_refused, the_time_is_told_in_utc_with_six_decimals)
