/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook_review.h"

#include <stdlib.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_scan.h"
#include "base/mem.h"
#include "base/span.h"
#include "base/str.h"
#include "kube/json_members.h"
#include "kube/objects/objects.h"

struct webhook_review {
	char *resource; /* "<driver name>/scheduler" */
	char *version;
	char *kind;
	bool has_request;
	char *uid;
	char *namespace;
	char *operation;
	char *group; /* of the resource under review */
	char *plural;
	char *sub_resource;
	struct span object;       /* raw; .p NULL: no object */
	struct kube_new_pod *pod; /* of a review of a new pod */
	struct error *fault;      /* why there is no pod */
};

static int read_text(struct json_scan *s, char **ret, struct error **err)
{
	bool is_null = json_scan_peek(s) == JSON_NULL;
	struct span value;

	if (json_scan_value(s, &value, err) < 0)
		return -1;
	free(TAKE_PTR(*ret));
	if (is_null)
		return 0;
	CLEANUP(json_reader_freep) struct json_reader *text = json_reader_new(value);

	return json_read_str(text, ret, err);
}

static int read_resource(void *user, struct span key, struct json_scan *s, struct error **err)
{
	struct webhook_review *v = user;

	if (json_scan_key_is(key, "group"))
		return read_text(s, &v->group, err);
	if (json_scan_key_is(key, "resource"))
		return read_text(s, &v->plural, err);
	return json_scan_skip(s, err);
}

static int read_object(struct webhook_review *v, struct json_scan *s, struct error **err)
{
	bool is_null = json_scan_peek(s) == JSON_NULL;
	int rv = json_scan_value(s, &v->object, err);

	if (is_null)
		v->object = (struct span){0};
	return rv;
}

static int read_request(void *user, struct span key, struct json_scan *s, struct error **err)
{
	struct webhook_review *v = user;

	if (json_scan_key_is(key, "uid"))
		return read_text(s, &v->uid, err);
	if (json_scan_key_is(key, "namespace"))
		return read_text(s, &v->namespace, err);
	if (json_scan_key_is(key, "operation"))
		return read_text(s, &v->operation, err);
	if (json_scan_key_is(key, "resource"))
		return json_scan_members(s, read_resource, v, err);
	if (json_scan_key_is(key, "subResource"))
		return read_text(s, &v->sub_resource, err);
	if (json_scan_key_is(key, "object"))
		return read_object(v, s, err);
	return json_scan_skip(s, err);
}

static int read_review(void *user, struct span key, struct json_scan *s, struct error **err)
{
	struct webhook_review *v = user;

	if (json_scan_key_is(key, "apiVersion"))
		return read_text(s, &v->version, err);
	if (json_scan_key_is(key, "kind"))
		return read_text(s, &v->kind, err);
	if (!json_scan_key_is(key, "request"))
		return json_scan_skip(s, err);
	v->has_request = true;
	return json_scan_members(s, read_request, v, err);
}

/* Release the content of @v. */
static void webhook_review_done(struct webhook_review *v)
{
	free(v->resource);
	free(v->version);
	free(v->kind);
	free(v->uid);
	free(v->namespace);
	free(v->operation);
	free(v->group);
	free(v->plural);
	free(v->sub_resource);
	kube_new_pod_free(v->pod);
	error_free(v->fault);
}

#define PATCH_BYTES (64u << 10)

/* k8s.io/api/core/v1 DefaultSchedulerName */
#define DEFAULT_SCHEDULER "default-scheduler"

#define FIRST_CONTAINER "/spec/containers/0/resources"

struct verdict {
	bool is_allowed;
	bool changes;
	unsigned code;
	const char *message;
};

void webhook_missing_done(struct webhook_missing *m)
{
	free(m->namespace);
	strv_free(m->claims);
	strv_free(m->classes);
	*m = (struct webhook_missing){.namespace = NULL};
}

static void add_pair(struct json_writer *w, const char *key, const char *resource)
{
	json_key(w, key);
	json_object(w);
	json_key_str(w, resource, "1");
	json_object_end(w);
}

/* Begins an operation, which ends with its value and the end of the object. */
static void begin_add(struct json_writer *w, const char *path)
{
	json_object(w);
	json_key_str(w, "op", "add");
	json_key_str(w, "path", path);
}

/* RFC 6901 section 3 */
static void add_pointer(struct buf *path, const char *name)
{
	buf_addc(path, '/');
	for (const char *p = name; *p; p++) {
		if (*p == '~')
			buf_adds(path, "~0");
		else if (*p == '/')
			buf_adds(path, "~1");
		else
			buf_addc(path, *p);
	}
}

/* One of limits and requests: "add" needs a parent that is there (RFC 6902 section 4.1), and replaces. */
static void add_amount(struct json_writer *w, const char *map, bool has_map, const char *resource)
{
	CLEANUP(buf_done) struct buf path = BUF_INIT(PATCH_BYTES);

	buf_adds(&path, FIRST_CONTAINER);
	add_pointer(&path, map);
	if (has_map) {
		add_pointer(&path, resource);
		begin_add(w, buf_str(&path));
		json_key_str(w, "value", "1");
	} else {
		begin_add(w, buf_str(&path));
		add_pair(w, "value", resource);
	}
	json_object_end(w);
}

static void write_patch(const struct webhook_review *v, struct buf *out)
{
	const struct kube_container *c = &v->pod->first_container;
	struct json_writer w = JSON_WRITER(out);

	json_array(&w);
	if (c->has_resources) {
		add_amount(&w, "limits", c->has_limits, v->resource);
		add_amount(&w, "requests", c->has_requests, v->resource);
	} else {
		begin_add(&w, FIRST_CONTAINER);
		json_key(&w, "value");
		json_object(&w);
		add_pair(&w, "limits", v->resource);
		add_pair(&w, "requests", v->resource);
		json_object_end(&w);
		json_object_end(&w);
	}
	json_array_end(&w);
}

static void write_reply(const struct webhook_review *v, const struct verdict *verdict, struct buf *out)
{
	CLEANUP(buf_done) struct buf patch = BUF_INIT(PATCH_BYTES);
	CLEANUP(buf_done) struct buf text = BUF_INIT(2 * PATCH_BYTES);
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key_str(&w, "kind", "AdmissionReview");
	json_key_str(&w, "apiVersion", v->version ? v->version : "admission.k8s.io/v1");
	json_key(&w, "response");
	json_object(&w);
	json_key_str(&w, "uid", v->uid ? v->uid : "");
	json_key_bool(&w, "allowed", verdict->is_allowed);
	json_key(&w, "status");
	json_object(&w);
	json_key_u64(&w, "code", verdict->code);
	json_key_str(&w, "message", verdict->message);
	json_object_end(&w);
	if (verdict->changes) {
		write_patch(v, &patch);
		base64_encode(buf_span(&patch), &text);
		json_key_str(&w, "patchType", "JSONPatch");
		json_key_str(&w, "patch", buf_str(&text));
	}
	json_object_end(&w);
	json_object_end(&w);
}

/* Whether a class is ours; one that is missing is noted. */
static bool is_our_class(
	const struct webhook_cluster *cluster, const char *name, struct webhook_missing *missing)
{
	enum webhook_class found = cluster->class(cluster->user, name);

	if (found == WEBHOOK_CLASS_UNKNOWN && name)
		kube_add_text(&missing->classes, name);
	return found == WEBHOOK_CLASS_OURS;
}

static const char *namespace_of(const struct webhook_review *v)
{
	return str_empty(v->namespace) ? v->pod->pod.meta.namespace : v->namespace;
}

/* Whether @claim is ours and waits for the pod to be placed. */
static bool is_our_claim(const char *namespace, const char *claim, const struct webhook_cluster *cluster,
	struct webhook_missing *missing)
{
	const char *class = NULL;

	if (str_empty(namespace) || str_empty(claim))
		return false;
	enum webhook_claim found = cluster->claim(cluster->user, namespace, claim, &class);

	if (found == WEBHOOK_CLAIM_UNKNOWN)
		kube_add_text(&missing->claims, claim);
	return found == WEBHOOK_CLAIM_UNBOUND && !str_empty(class) && is_our_class(cluster, class, missing);
}

/* Whether the pod has a volume that is still to be made where the pod runs. */
static bool needs_us(const struct webhook_review *v, const char *driver_name,
	const struct webhook_cluster *cluster, struct webhook_missing *missing)
{
	const struct kube_pod *pod = &v->pod->pod;

	for (size_t i = 0; i < pod->n_volumes; i++) {
		const struct kube_pod_volume *volume = &pod->volumes[i];
		const char *class = volume->template_class;

		/* The claim that will be made without a class gets the default one; "" stands for none. */
		if (str_eq(volume->driver, driver_name) ||
			(volume->is_ephemeral && !str_eq(class, "") &&
				is_our_class(cluster, class, missing)) ||
			is_our_claim(namespace_of(v), volume->claim, cluster, missing))
			return true;
	}
	return false;
}

/* Whether the review is about the creation of a pod. A field that is absent has the value that the webhook's
 * configuration asks for. */
static bool is_new_pod(const struct webhook_review *v)
{
	return (!v->operation || str_eq(v->operation, "CREATE")) && str_empty(v->sub_resource) &&
	       str_empty(v->group) && (!v->plural || str_eq(v->plural, "pods"));
}

/* An API server fills the default in before it asks (pkg/apis/core/v1, SetDefaults_PodSpec()); others that
 * send reviews may not. */
static bool is_of_our_scheduler(const struct kube_new_pod *pod, const struct webhook_rules *rules)
{
	return strv_contains(
		rules->schedulers, str_empty(pod->scheduler) ? DEFAULT_SCHEDULER : pod->scheduler);
}

static bool is_ignored(const struct kube_new_pod *pod, const struct webhook_rules *rules)
{
	CLEANUP(free_charp) char *label = x_asprintf("%s/webhook", rules->driver_name);

	return str_eq(kube_meta_label(&pod->pod.meta, label), "ignore");
}

static struct verdict decide(struct webhook_review *v, const struct webhook_cluster *cluster,
	const struct webhook_rules *rules, struct webhook_missing *missing)
{
	const struct verdict marked = {true, true, 200, "uses volumes that are made where the pod runs"};

	if (!is_new_pod(v))
		return (struct verdict){true, false, 200, "not a new pod"};
	if (!v->object.p)
		return (struct verdict){false, false, 400, "the review has no pod"};
	v->pod = kube_new_pod_decode(v->object, v->resource, &v->fault);
	if (!v->pod)
		return (struct verdict){false, false, 400, v->fault->msg};
	if (is_ignored(v->pod, rules))
		return (struct verdict){true, false, 200, "is excluded by its label"};
	if (v->pod->n_containers == 0)
		return (struct verdict){false, false, 403, "pod has no containers"};
	if (!v->pod->has_volumes)
		return (struct verdict){true, false, 200, "no volumes"};
	if (!str_empty(v->pod->pod.node_name))
		return (struct verdict){true, false, 200, "has a node already"};
	if (!is_of_our_scheduler(v->pod, rules))
		return (struct verdict){true, false, 200, "uses another scheduler"};
	if (v->pod->has_resource)
		return (struct verdict){true, false, 200, "requests the resource already"};
	if (needs_us(v, rules->driver_name, cluster, missing))
		return marked;
	return (struct verdict){true, false, 200, "no relevant PMEM volumes"};
}

static bool is_known_version(const char *version)
{
	return str_eq(version, "admission.k8s.io/v1") || str_eq(version, "admission.k8s.io/v1beta1");
}

/* Return: why @v cannot be answered, or NULL. */
static const char *find_fault(const struct webhook_review *v)
{
	if (!str_eq(v->kind, "AdmissionReview") || !is_known_version(v->version))
		return "not an AdmissionReview of admission.k8s.io/v1";
	return v->has_request ? NULL : "the review has no request";
}

static unsigned refuse(struct webhook_review *v, unsigned code, const char *why, struct buf *out)
{
	if (!is_known_version(v->version)) {
		free(v->version);
		v->version = NULL;
	}
	write_reply(v, &(struct verdict){false, false, code, why}, out);
	return code;
}

unsigned webhook_review(const struct webhook_cluster *cluster, const struct webhook_rules *rules,
	struct span body, struct webhook_missing *missing, struct buf *out)
{
	CLEANUP(webhook_review_done)
	struct webhook_review v = {.resource = x_asprintf("%s/scheduler", rules->driver_name)};
	CLEANUP(error_freep) struct error *err = NULL;
	struct json_scan scan = JSON_SCAN(body);

	if (body.n > WEBHOOK_BODY_BYTES)
		return refuse(&v, 413, "longer than 8 MiB", out);
	if (json_scan_members(&scan, read_review, &v, &err) < 0 || json_scan_end(&scan, &err) < 0) {
		err_wrap(&err, "AdmissionReview");
		return refuse(&v, 400, err->msg, out);
	}
	const char *fault = find_fault(&v);

	if (fault)
		return refuse(&v, 400, fault, out);
	struct verdict verdict = decide(&v, cluster, rules, missing);

	if (verdict.changes)
		webhook_missing_done(missing);
	else if (missing->claims)
		missing->namespace = x_strdup(namespace_of(&v));
	write_reply(&v, &verdict, out);
	return 200;
}
