/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>

#include "base/base64.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "scheduler/webhook_review.h"
#include "unit/unit.h"

#define DRIVER "pmem-csi.intel.com"

/* Claims are called like their class. */
static enum webhook_claim find_claim(
	void *user, const char *namespace, const char *name, const char **ret_class)
{
	(void)user;
	ck_assert_str_eq(namespace, "testns");
	*ret_class = str_eq(name, "no-class") ? NULL : name;
	if (str_eq(name, "bound"))
		*ret_class = "late";
	return str_eq(name, "no-claim") ? WEBHOOK_CLAIM_UNKNOWN
	       : str_eq(name, "bound")  ? WEBHOOK_CLAIM_BOUND
					: WEBHOOK_CLAIM_UNBOUND;
}

static enum webhook_class default_class = WEBHOOK_CLASS_OTHER;

static enum webhook_class find_class(void *user, const char *name)
{
	(void)user;
	if (!name)
		return default_class;
	if (str_eq(name, "unknown"))
		return WEBHOOK_CLASS_UNKNOWN;
	return str_eq(name, "late") ? WEBHOOK_CLASS_OURS : WEBHOOK_CLASS_OTHER;
}

static const struct webhook_cluster cluster = {.claim = find_claim, .class = find_class};

struct reply {
	unsigned status;
	struct webhook_missing missing;
	char *uid;
	char *patch; /* decoded */
	char *patch_type;
	char *message;
	uint64_t code;
	bool allowed;
};

static struct reply reply;
static struct buf out;

static void read_status(struct json_reader *r)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event ev;

	ASSERT_OK(json_expect(r, JSON_OBJECT, &ev, &err));
	for (;;) {
		ASSERT_OK(json_next(r, &ev, &err));
		if (ev.type == JSON_OBJECT_END)
			return;
		if (str_eq(ev.text, "code"))
			ASSERT_OK(json_read_u64(r, &reply.code, &err));
		else
			ASSERT_OK(json_read_str(r, &reply.message, &err));
	}
}

static void read_patch(struct json_reader *r)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf patch = BUF_INIT(64 << 10);
	CLEANUP(free_charp) char *text = NULL;

	ASSERT_OK(json_read_str(r, &text, &err));
	ASSERT_OK(base64_decode(text, &patch, &err));
	reply.patch = x_strdup(buf_str(&patch));
}

static void read_response(struct json_reader *r)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event ev;

	ASSERT_OK(json_expect(r, JSON_OBJECT, &ev, &err));
	for (;;) {
		ASSERT_OK(json_next(r, &ev, &err));
		if (ev.type == JSON_OBJECT_END)
			return;
		if (str_eq(ev.text, "uid"))
			ASSERT_OK(json_read_str(r, &reply.uid, &err));
		else if (str_eq(ev.text, "allowed"))
			ASSERT_OK(json_read_bool(r, &reply.allowed, &err));
		else if (str_eq(ev.text, "status"))
			read_status(r);
		else if (str_eq(ev.text, "patchType"))
			ASSERT_OK(json_read_str(r, &reply.patch_type, &err));
		else if (str_eq(ev.text, "patch"))
			read_patch(r);
		else
			ck_abort_msg("unknown member %s", ev.text);
	}
}

static void read_reply(void)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(buf_span(&out));
	CLEANUP(free_charp) char *kind = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_event ev;

	ASSERT_OK(json_expect(r, JSON_OBJECT, &ev, &err));
	ASSERT_OK(json_expect(r, JSON_KEY, &ev, &err));
	ASSERT_OK(json_read_str(r, &kind, &err));
	ck_assert_str_eq(kind, "AdmissionReview");
	ASSERT_OK(json_expect(r, JSON_KEY, &ev, &err));
	ASSERT_OK(json_read_str(r, &kind, &err));
	ck_assert(str_starts(kind, "admission.k8s.io/v1"));
	ASSERT_OK(json_expect(r, JSON_KEY, &ev, &err));
	ck_assert_str_eq(ev.text, "response");
	read_response(r);
	ASSERT_OK(json_expect(r, JSON_OBJECT_END, &ev, &err));
	ASSERT_OK(json_expect(r, JSON_END, &ev, &err));
	ck_assert_int_eq(reply.patch != NULL, reply.patch_type != NULL);
	if (reply.patch)
		ck_assert_str_eq(reply.patch_type, "JSONPatch");
}

static void forget_reply(void)
{
	webhook_missing_done(&reply.missing);
	free(reply.uid);
	free(reply.patch);
	free(reply.patch_type);
	free(reply.message);
	reply = (struct reply){.status = 0};
	buf_done(&out);
	out = BUF_INIT(64 << 10);
}

static void review_bytes(struct span body, const char *driver_name)
{
	static char first[] = "default-scheduler";
	static char second[] = "ours";
	static char *const schedulers[] = {first, second, NULL};
	const struct webhook_rules rules = {driver_name, schedulers};

	forget_reply();
	reply.status = webhook_review(&cluster, &rules, body, &reply.missing, &out);
	read_reply();
}

static void review_text(const char *body)
{
	review_bytes(span_of(body), DRIVER);
}

static void review_object(const char *object, const char *driver_name)
{
	CLEANUP(free_charp)
	char *body = x_asprintf("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"
				"v1\",\"request\":{\"uid\":\"u-1\","
				"\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"
				"\"operation\":\"CREATE\","
				"\"object\":%s,\"oldObject\":null,\"dryRun\":true,\"namespace\":\"testns\"}}",
		object);

	review_bytes(span_of(body), driver_name);
	ck_assert_str_eq(reply.uid, "u-1");
}

/* @volumes, @containers: the text between the brackets. */
static void review_pod(const char *volumes, const char *containers)
{
	CLEANUP(free_charp)
	char *object = x_asprintf("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{},"
				  "\"spec\":{\"volumes\":[%s],\"containers\":[%s]}}",
		volumes, containers);

	review_object(object, DRIVER);
}

static void is_unchanged(const char *message)
{
	ck_assert_uint_eq(reply.status, 200);
	ck_assert(reply.allowed);
	ck_assert_uint_eq(reply.code, 200);
	ck_assert_ptr_null(reply.patch);
	ck_assert_str_eq(reply.message, message);
}

static void is_denied(unsigned code, const char *message)
{
	ck_assert(!reply.allowed);
	ck_assert_uint_eq(reply.code, code);
	ck_assert_ptr_null(reply.patch);
	ck_assert_msg(strstr(reply.message, message) != NULL, "%s", reply.message);
}

#define CLAIM(name) "{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"" name "\"}}"
#define INLINE(driver)                                                                                       \
	"{\"name\":\"i\",\"csi\":{\"driver\":\"" driver "\",\"volumeAttributes\":{\"size\":\"1Gi\"}}}"
#define EPHEMERAL(spec) "{\"name\":\"e\",\"ephemeral\":{\"volumeClaimTemplate\":{\"spec\":{" spec "}}}}"
#define IRRELEVANT      "no relevant PMEM volumes"

static const char whole_patch[] = "[{\"op\":\"add\",\"path\":\"/spec/containers/0/resources\",\"value\":{"
				  "\"limits\":{\"pmem-csi.intel.com/scheduler\":\"1\"},"
				  "\"requests\":{\"pmem-csi.intel.com/scheduler\":\"1\"}}}]";

static void is_marked(void)
{
	ck_assert_uint_eq(reply.status, 200);
	ck_assert(reply.allowed);
	ck_assert_ptr_nonnull(reply.patch);
	ck_assert_str_eq(reply.patch, whole_patch);
	ck_assert_ptr_null(reply.missing.claims);
	ck_assert_ptr_null(reply.missing.classes);
}

/* PMEM-CSI 1.0 pkg/scheduler/scheduler_test.go, TestMutatePod */
START_TEST(the_cases_of_the_go_driver_end_as_there)
{
	review_pod("", "{}");
	is_unchanged("no volumes");
	review_pod(CLAIM("late"), "{}");
	is_marked();
	review_pod(CLAIM("other"), "{}");
	is_unchanged(IRRELEVANT);
	review_pod(CLAIM("other") "," CLAIM("late"), "{}");
	is_marked();
	review_pod(CLAIM("no-claim"), "{}");
	is_unchanged(IRRELEVANT);
	review_pod(CLAIM("unknown"), "{}");
	is_unchanged(IRRELEVANT);
	review_pod(INLINE(DRIVER), "{}");
	is_marked();
	review_pod(INLINE(DRIVER ".example"), "{}");
	is_unchanged(IRRELEVANT);
	review_pod(INLINE(DRIVER) "," CLAIM("late"), "{}");
	is_marked();
	review_pod("{\"emptyDir\":{}}", "{}");
	is_unchanged(IRRELEVANT);
	review_pod("{\"emptyDir\":{}}", "");
	is_denied(403, "pod has no containers");
	ck_assert_uint_eq(reply.status, 200);
	review_pod(CLAIM("no-class"), "{}");
	is_unchanged(IRRELEVANT);
}
END_TEST

START_TEST(a_claim_that_is_bound_needs_no_decision)
{
	review_pod(CLAIM("bound"), "{}");
	is_unchanged(IRRELEVANT);
	ck_assert_ptr_null(reply.missing.claims);
	review_pod(CLAIM("bound") "," CLAIM("late"), "{}");
	is_marked();
}
END_TEST

static void review_spec(const char *member)
{
	CLEANUP(free_charp)
	char *object =
		x_asprintf("{\"spec\":{%s,\"volumes\":[" INLINE(DRIVER) "],\"containers\":[{}]}}", member);

	review_object(object, DRIVER);
}

/* No node offers the resource: a scheduler that does not know that it is to be ignored keeps the pod waiting
 * for ever. */
START_TEST(only_pods_of_schedulers_that_ask_are_marked)
{
	review_spec("\"schedulerName\":\"volcano\"");
	is_unchanged("uses another scheduler");
	review_spec("\"schedulerName\":\"default-scheduler-2\"");
	is_unchanged("uses another scheduler");
	review_spec("\"schedulerName\":\"ours\"");
	is_marked();
	review_spec("\"schedulerName\":\"default-scheduler\"");
	is_marked();
	review_spec("\"schedulerName\":\"\"");
	is_marked();
	review_spec("\"schedulerName\":null");
	is_marked();
}
END_TEST

START_TEST(a_pod_that_has_a_node_is_not_scheduled)
{
	review_spec("\"nodeName\":\"n1\"");
	is_unchanged("has a node already");
	review_spec("\"nodeName\":\"\"");
	is_marked();
}
END_TEST

START_TEST(claims_that_will_be_made_for_the_pod_count)
{
	review_pod(EPHEMERAL("\"storageClassName\":\"late\""), "{}");
	is_marked();
	review_pod(EPHEMERAL("\"storageClassName\":\"other\""), "{}");
	is_unchanged(IRRELEVANT);
	review_pod(EPHEMERAL("\"storageClassName\":\"\""), "{}");
	is_unchanged(IRRELEVANT);
	review_pod(EPHEMERAL(""), "{}");
	is_unchanged(IRRELEVANT);
	default_class = WEBHOOK_CLASS_OURS;
	review_pod(EPHEMERAL(""), "{}");
	is_marked();
	review_pod(EPHEMERAL("\"storageClassName\":\"\""), "{}");
	is_unchanged(IRRELEVANT);
}
END_TEST

START_TEST(what_is_not_known_is_told_once_the_answer_hangs_on_it)
{
	review_pod(
		CLAIM("no-claim") "," CLAIM("other") "," EPHEMERAL("\"storageClassName\":\"unknown\""), "{}");
	is_unchanged(IRRELEVANT);
	ck_assert_str_eq(reply.missing.namespace, "testns");
	ck_assert_uint_eq(strv_len(reply.missing.claims), 1);
	ck_assert_str_eq(reply.missing.claims[0], "no-claim");
	ck_assert_uint_eq(strv_len(reply.missing.classes), 1);
	ck_assert_str_eq(reply.missing.classes[0], "unknown");
	review_pod(CLAIM("no-claim") "," CLAIM("late"), "{}");
	is_marked();
}
END_TEST

#define PATCHES(resources, expected)                                                                         \
	do {                                                                                                 \
		review_pod(INLINE(DRIVER), "{\"name\":\"c\",\"resources\":" resources "},{}");               \
		ck_assert_ptr_nonnull(reply.patch);                                                          \
		ck_assert_str_eq(reply.patch, expected);                                                     \
	} while (0)
#define OP(path, value)                                                                                      \
	"{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/" path "\",\"value\":" value "}"
#define MAP "{\"pmem-csi.intel.com/scheduler\":\"1\"}"

START_TEST(the_patch_fits_what_the_container_has)
{
	PATCHES("null", whole_patch);
	PATCHES("{}", "[" OP("limits", MAP) "," OP("requests", MAP) "]");
	PATCHES("{\"limits\":null,\"requests\":{}}",
		"[" OP("limits", MAP) "," OP("requests/pmem-csi.intel.com~1scheduler", "\"1\"") "]");
	PATCHES("{\"limits\":{\"cpu\":\"1\"}}",
		"[" OP("limits/pmem-csi.intel.com~1scheduler", "\"1\"") "," OP("requests", MAP) "]");
	PATCHES("{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"},\"requests\":{\"cpu\":1},\"claims\":[]}",
		"[" OP("limits/pmem-csi.intel.com~1scheduler", "\"1\"") "," OP(
			"requests/pmem-csi.intel.com~1scheduler", "\"1\"") "]");
}
END_TEST

START_TEST(a_name_is_escaped_in_the_path_and_not_in_the_value)
{
	review_object("{\"spec\":{\"volumes\":[" INLINE(
			      "a~b/c") "],\"containers\":[{\"resources\":{\"limits\":{}}}]}}",
		"a~b/c");
	ck_assert_str_eq(reply.patch, "[" OP("limits/a~0b~1c~1scheduler", "\"1\"") "," OP(
					      "requests", "{\"a~b/c/scheduler\":\"1\"}") "]");
}
END_TEST

#define BOTH "{\"resources\":{\"limits\":" MAP ",\"requests\":" MAP "}}"

START_TEST(a_pod_that_has_the_resource_is_not_changed_again)
{
	review_pod(INLINE(DRIVER), BOTH);
	is_unchanged("requests the resource already");
	review_pod(INLINE(DRIVER), "{\"name\":\"put-before-by-another-webhook\"}," BOTH);
	is_unchanged("requests the resource already");
	review_object("{\"spec\":{\"volumes\":[" INLINE(
			      DRIVER) "],\"containers\":[{}],\"initContainers\":[" BOTH "]}}",
		DRIVER);
	is_unchanged("requests the resource already");
	review_pod(INLINE(DRIVER), "{\"resources\":{\"limits\":{\"pmem-csi.intel.com\\/"
				   "\\u0073cheduler\":\"1\"},\"requests\":" MAP "}}");
	is_unchanged("requests the resource already");
}
END_TEST

START_TEST(half_of_the_resource_is_completed)
{
	PATCHES("{\"requests\":" MAP "}",
		"[" OP("limits", MAP) "," OP("requests/pmem-csi.intel.com~1scheduler", "\"1\"") "]");
}
END_TEST

START_TEST(the_label_keeps_a_pod_as_it_is)
{
	static const char pod[] =
		"{\"metadata\":{\"labels\":{\"" DRIVER
		"/webhook\":\"%s\"}},\"spec\":{\"volumes\":[" INLINE(DRIVER) "],\"containers\":[{}]}}";
	CLEANUP(free_charp) char *ignored = x_asprintf(pod, "ignore");
	CLEANUP(free_charp) char *not_ignored = x_asprintf(pod, "yes");

	review_object(ignored, DRIVER);
	is_unchanged("is excluded by its label");
	review_object(not_ignored, DRIVER);
	is_marked();
}
END_TEST

START_TEST(only_new_pods_are_looked_at)
{
#define REQUEST(members)                                                                                     \
	"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/"                                   \
	"v1\",\"request\":{\"uid\":\"u\"," members                                                           \
	"\"object\":{\"spec\":{\"volumes\":[" INLINE(DRIVER) "],\"containers\":[{}]}}}}"
	review_text(REQUEST(""));
	is_marked();
	review_text(REQUEST("\"operation\":\"CREATE\",\"resource\":{\"group\":\"\",\"resource\":\"pods\"},"));
	is_marked();
	review_text(REQUEST("\"operation\":\"UPDATE\","));
	is_unchanged("not a new pod");
	review_text(REQUEST("\"subResource\":\"ephemeralcontainers\","));
	is_unchanged("not a new pod");
	review_text(REQUEST("\"resource\":{\"group\":\"apps\",\"resource\":\"deployments\"},"));
	is_unchanged("not a new pod");
}
END_TEST

/* API servers take a NUL in many places where we do not look. */
START_TEST(odd_strings_elsewhere_do_not_matter)
{
	review_object("{\"metadata\":{\"annotations\":{\"a\":\"\\u0000\",\"b\\u0000\":\"\\ud800\"}},"
		      "\"spec\":{\"volumes\":[" INLINE(
			      DRIVER) "],\"containers\":[{\"env\":[{\"value\":\"\\u0000\"}]}]}}",
		DRIVER);
	is_marked();
}
END_TEST

START_TEST(a_pod_of_the_wrong_shape_is_denied_with_its_uid)
{
	static const char *const objects[] = {"null", "5", "[]", "\"pod\"", "{\"spec\":7}",
		"{\"spec\":{\"containers\":{}}}", "{\"spec\":{\"containers\":[5]}}",
		"{\"spec\":{\"containers\":[{}],\"volumes\":\"x\"}}",
		"{\"spec\":{\"containers\":[{}],\"volumes\":[[]]}}",
		"{\"spec\":{\"containers\":[{}],\"volumes\":[{\"ephemeral\":5}]}}",
		"{\"spec\":{\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":{}}}]}}",
		"{\"spec\":{\"containers\":[{\"resources\":[]}]}}",
		"{\"spec\":{\"containers\":[{\"resources\":{\"limits\":1}}]}}", "{\"metadata\":[]}",
		"{\"metadata\":{\"labels\":[]}}"};

	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		review_object(objects[i], DRIVER);
		ck_assert_uint_eq(reply.status, 200);
		is_denied(400, i == 0  ? "the review has no pod"
			       : i < 4 ? "found another type"
				       : "has the wrong type");
	}
	review_object("{\"spec\":{\"containers\":[{\"resources\":{\"limits\":1}}]}}", DRIVER);
	is_denied(400, "spec: containers: resources: limits: ");
	review_object("{}", DRIVER);
	is_denied(403, "pod has no containers");
}
END_TEST

/* It would read as a pod without the claim, for the default scheduler, of the default class. */
START_TEST(a_pod_with_a_nul_where_it_matters_is_denied)
{
	static const char *const specs[] = {"\"schedulerName\":\"other\\u0000\"", "\"nodeName\":\"n\\u0000\"",
		"\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":\"c\\u0000\"}}]",
		("\"volumes\":[{\"name\":\"v\",\"ephemeral\":{\"volumeClaimTemplate\":{\"spec\":{"
		 "\"storageClassName\":\"s\\u0000\"}}}}]")};

	for (size_t i = 0; i < ARRAY_SIZE(specs); i++) {
		CLEANUP(free_charp)
		char *object = x_asprintf("{\"spec\":{\"containers\":[{}],%s}}", specs[i]);

		review_object(object, DRIVER);
		is_denied(400, "a NUL or invalid UTF-8");
	}
}
END_TEST

START_TEST(what_is_no_review_is_refused)
{
	static const char *const bodies[] = {"", " ", "x", "{", "[]", "{}", "null", "{\"kind\":\"Pod\"}",
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v2\",\"request\":{}}",
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\"}",
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":null}",
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{}}x",
		"{\"kind\":\"AdmissionReview\",\"request\":{\"uid\":\"u\"}"};

	for (size_t i = 0; i < ARRAY_SIZE(bodies); i++) {
		review_text(bodies[i]);
		ck_assert_msg(reply.status == 400, "%s: %u", bodies[i], reply.status);
		is_denied(400, "");
	}
}
END_TEST

START_TEST(the_version_of_the_review_is_that_of_the_reply)
{
	review_text(
		"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\",\"request\":{}}");
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\"admission.k8s.io/v1beta1\""));
	review_text("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v2\",\"request\":{}}");
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\"admission.k8s.io/v1\""));
}
END_TEST

START_TEST(depth_and_length_are_limited)
{
	CLEANUP(buf_done) struct buf deep = BUF_INIT(1 << 20);
	CLEANUP(buf_done) struct buf long_one = BUF_INIT(WEBHOOK_BODY_BYTES + 1);

	buf_adds(&deep, "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"x\":");
	for (int i = 0; i < 100000; i++)
		buf_addc(&deep, '[');
	review_bytes(buf_span(&deep), DRIVER);
	ck_assert_uint_eq(reply.status, 400);
	while (!long_one.overflowed)
		buf_addc(&long_one, ' ');
	review_bytes(buf_span(&long_one), DRIVER);
	ck_assert_uint_eq(reply.status, 413);
	is_denied(413, "8 MiB");
}
END_TEST

START_TEST(a_review_of_a_real_api_server_is_understood)
{
	CLEANUP(buf_done) struct buf body = BUF_INIT(1 << 20);
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(file_read(AT_FDCWD, TEST_DATA "/kube-apiserver/review-pod.json", &body, &err));
	review_bytes(buf_span(&body), DRIVER);
	is_unchanged("no volumes");
	ck_assert_str_eq(reply.uid, "ad863e10-0216-410a-a6f2-99aab501b098");
}
END_TEST

UNIT_MAIN("scheduler/webhook_review", the_cases_of_the_go_driver_end_as_there,
	a_claim_that_is_bound_needs_no_decision, only_pods_of_schedulers_that_ask_are_marked,
	a_pod_that_has_a_node_is_not_scheduled, claims_that_will_be_made_for_the_pod_count,
	what_is_not_known_is_told_once_the_answer_hangs_on_it, the_patch_fits_what_the_container_has,
	a_name_is_escaped_in_the_path_and_not_in_the_value, a_pod_that_has_the_resource_is_not_changed_again,
	half_of_the_resource_is_completed, the_label_keeps_a_pod_as_it_is, only_new_pods_are_looked_at,
	odd_strings_elsewhere_do_not_matter, a_pod_with_a_nul_where_it_matters_is_denied,
	a_pod_of_the_wrong_shape_is_denied_with_its_uid, what_is_no_review_is_refused,
	the_version_of_the_review_is_that_of_the_reply, depth_and_length_are_limited,
	a_review_of_a_real_api_server_is_understood)
