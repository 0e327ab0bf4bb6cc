/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/webhook_review.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/error.h"
#include "base/json/json.h"
#include "base/json/json_scan.h"
#include "base/mem.h"
#include "base/span.h"
#include "base/str.h"
#include "kube/read.h"

struct webhook_container {
	bool has_resources;
	bool has_limits;
	bool has_requests;
	bool is_limited; /* the resource is among the limits */
	bool is_requested;
};

struct webhook_pod {
	bool is_there;
	bool is_ignored; /* by its label */
	bool has_volumes;
	bool has_inline;        /* a volume of our driver */
	bool has_default_class; /* a generic ephemeral volume that names no class */
	char *namespace;
	char *scheduler; /* NULL: the default one */
	char *node;      /* where it is put without a scheduler, or NULL */
	char **claims;   /* strv */
	char **classes;  /* of generic ephemeral volumes; strv */
	size_t n_containers;
	bool is_marked; /* a container, or one that initialises, has the resource */
	struct webhook_container first;
};

struct webhook_review {
	const char *driver_name;
	char *resource; /* "<driver name>/scheduler" */
	char *label;    /* "<driver name>/webhook" */
	char *version;
	char *kind;
	bool has_request;
	char *uid;
	char *namespace;
	char *operation;
	char *group; /* of the resource under review */
	char *plural;
	char *sub_resource;
	struct webhook_pod pod;
	char *odd; /* what has another type than it should, the first of it */
};

struct reading {
	struct webhook_review *review;
	struct json_scan at;
	struct error **err;
	bool has_failed; /* malformed: nothing is read from then on */
};

/* Only the first is kept, and reading goes on: whom to answer may come later. */
static void note_odd(struct reading *r, const char *what)
{
	if (!r->review->odd)
		r->review->odd = x_asprintf("%s has the wrong type", what);
}

static void skip(struct reading *r)
{
	struct span value;

	if (!r->has_failed)
		r->has_failed = json_scan_value(&r->at, &value, r->err) < 0;
}

/* Go into the next value. Return: whether it is of @type; null is as good as absent. */
static bool enter(struct reading *r, enum json_type type, const char *what)
{
	if (r->has_failed)
		return false;
	enum json_type found = json_scan_peek(&r->at);

	if (found == type) {
		r->has_failed = json_scan_enter(&r->at, type, r->err) < 0;
		return !r->has_failed;
	}
	if (found != JSON_NULL)
		note_odd(r, what);
	skip(r);
	return false;
}

static bool next_member(struct reading *r, struct span *ret_key)
{
	bool more = false;

	if (!r->has_failed)
		r->has_failed = json_scan_member(&r->at, ret_key, &more, r->err) < 0;
	return !r->has_failed && more;
}

static bool next_element(struct reading *r)
{
	bool more = false;

	if (!r->has_failed)
		r->has_failed = json_scan_element(&r->at, &more, r->err) < 0;
	return !r->has_failed && more;
}

/* Return: NULL for what stands for no text, such as one with a NUL; caller frees. */
static char *decode(struct span quoted)
{
	CLEANUP(json_reader_freep) struct json_reader *reader = json_reader_new(quoted);
	CLEANUP(error_freep) struct error *odd = NULL;
	char *text = NULL;

	return json_read_str(reader, &text, &odd) == 0 ? text : NULL;
}

static void read_text(struct reading *r, const char *what, char **ret)
{
	struct span value;

	if (r->has_failed)
		return;
	enum json_type type = json_scan_peek(&r->at);

	r->has_failed = json_scan_value(&r->at, &value, r->err) < 0;
	if (r->has_failed)
		return;
	free(*ret);
	*ret = type == JSON_STRING ? decode(value) : NULL;
	if (!*ret && type != JSON_NULL)
		note_odd(r, what);
}

/* A key of a map means what it spells, unlike the name of a field. */
static bool is_map_key(struct span key, const char *name)
{
	if (!memchr(key.p, '\\', key.n))
		return span_eq((struct span){key.p + 1, key.n - 2}, name);
	CLEANUP(free_charp) char *text = decode(key);

	return str_eq(text, name);
}

/* Limits or requests: @ret_has: whether there are any, @ret_is_marked: whether the resource is among them. */
static void read_amounts(struct reading *r, const char *what, bool *ret_has, bool *ret_is_marked)
{
	struct span key;

	*ret_is_marked = false;
	*ret_has = enter(r, JSON_OBJECT, what);
	while (*ret_has && next_member(r, &key)) {
		*ret_is_marked |= is_map_key(key, r->review->resource);
		skip(r);
	}
}

static void read_resources(struct reading *r, struct webhook_container *c)
{
	struct span key;

	*c = (struct webhook_container){.has_resources = enter(r, JSON_OBJECT, "resources")};
	while (c->has_resources && next_member(r, &key)) {
		if (json_scan_key_is(key, "limits"))
			read_amounts(r, "limits", &c->has_limits, &c->is_limited);
		else if (json_scan_key_is(key, "requests"))
			read_amounts(r, "requests", &c->has_requests, &c->is_requested);
		else
			skip(r);
	}
}

static bool read_container(struct reading *r, struct webhook_container *c)
{
	struct span key;

	*c = (struct webhook_container){.has_resources = false};
	if (!enter(r, JSON_OBJECT, "a container"))
		return false;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "resources"))
			read_resources(r, c);
		else
			skip(r);
	}
	return true;
}

static void read_containers(struct reading *r, struct webhook_pod *pod, bool initialise)
{
	if (!enter(r, JSON_ARRAY, initialise ? "initContainers" : "containers"))
		return;
	if (!initialise)
		pod->n_containers = 0;
	while (next_element(r)) {
		struct webhook_container c;

		if (!read_container(r, &c))
			note_odd(r, "a container");
		pod->is_marked |= c.is_limited && c.is_requested;
		if (!initialise && pod->n_containers++ == 0)
			pod->first = c;
	}
}

static void read_claim(struct reading *r, struct webhook_pod *pod)
{
	CLEANUP(free_charp) char *name = NULL;
	struct span key;

	if (!enter(r, JSON_OBJECT, "persistentVolumeClaim"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "claimName"))
			read_text(r, "claimName", &name);
		else
			skip(r);
	}
	if (!str_empty(name))
		kube_add_text(&pod->claims, name);
}

static void read_inline(struct reading *r, struct webhook_pod *pod)
{
	CLEANUP(free_charp) char *driver = NULL;
	struct span key;

	if (!enter(r, JSON_OBJECT, "csi"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "driver"))
			read_text(r, "csi driver", &driver);
		else
			skip(r);
	}
	pod->has_inline |= str_eq(driver, r->review->driver_name);
}

/* The claim will be made of this: what has no class will get the default one. */
static void read_template_spec(struct reading *r, struct webhook_pod *pod)
{
	CLEANUP(free_charp) char *class = NULL;
	struct span key;

	if (!enter(r, JSON_OBJECT, "volumeClaimTemplate.spec"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "storageClassName"))
			read_text(r, "storageClassName", &class);
		else
			skip(r);
	}
	if (!class)
		pod->has_default_class = true;
	else if (*class)
		kube_add_text(&pod->classes, class);
}

static void read_template(struct reading *r, struct webhook_pod *pod)
{
	struct span key;

	if (!enter(r, JSON_OBJECT, "volumeClaimTemplate"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "spec"))
			read_template_spec(r, pod);
		else
			skip(r);
	}
}

static void read_ephemeral(struct reading *r, struct webhook_pod *pod)
{
	struct span key;

	if (!enter(r, JSON_OBJECT, "ephemeral"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "volumeClaimTemplate"))
			read_template(r, pod);
		else
			skip(r);
	}
}

static void read_volume(struct reading *r, struct webhook_pod *pod)
{
	struct span key;

	if (!enter(r, JSON_OBJECT, "a volume"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "persistentVolumeClaim"))
			read_claim(r, pod);
		else if (json_scan_key_is(key, "csi"))
			read_inline(r, pod);
		else if (json_scan_key_is(key, "ephemeral"))
			read_ephemeral(r, pod);
		else
			skip(r);
	}
}

static void read_volumes(struct reading *r, struct webhook_pod *pod)
{
	if (!enter(r, JSON_ARRAY, "volumes"))
		return;
	while (next_element(r)) {
		pod->has_volumes = true;
		read_volume(r, pod);
	}
}

static void read_spec(struct reading *r, struct webhook_pod *pod)
{
	struct span key;

	if (!enter(r, JSON_OBJECT, "spec"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "containers")) {
			read_containers(r, pod, /* initialise= */ false);
		} else if (json_scan_key_is(key, "initContainers")) {
			read_containers(r, pod, /* initialise= */ true);
		} else if (json_scan_key_is(key, "volumes")) {
			read_volumes(r, pod);
		} else if (json_scan_key_is(key, "schedulerName")) {
			read_text(r, "schedulerName", &pod->scheduler);
		} else if (json_scan_key_is(key, "nodeName")) {
			read_text(r, "nodeName", &pod->node);
		} else {
			skip(r);
		}
	}
}

static void read_labels(struct reading *r, struct webhook_pod *pod)
{
	CLEANUP(free_charp) char *value = NULL;
	struct span key;

	if (!enter(r, JSON_OBJECT, "labels"))
		return;
	while (next_member(r, &key)) {
		if (is_map_key(key, r->review->label))
			read_text(r, "a label", &value);
		else
			skip(r);
	}
	pod->is_ignored = str_eq(value, "ignore");
}

static void read_metadata(struct reading *r, struct webhook_pod *pod)
{
	struct span key;

	if (!enter(r, JSON_OBJECT, "metadata"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "labels"))
			read_labels(r, pod);
		else if (json_scan_key_is(key, "namespace"))
			read_text(r, "namespace", &pod->namespace);
		else
			skip(r);
	}
}

static void read_pod(struct reading *r, struct webhook_pod *pod)
{
	struct span key;

	pod->is_there = enter(r, JSON_OBJECT, "object");
	while (pod->is_there && next_member(r, &key)) {
		if (json_scan_key_is(key, "metadata"))
			read_metadata(r, pod);
		else if (json_scan_key_is(key, "spec"))
			read_spec(r, pod);
		else
			skip(r);
	}
}

static void read_kind_of_resource(struct reading *r)
{
	struct webhook_review *v = r->review;
	struct span key;

	if (!enter(r, JSON_OBJECT, "resource"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "group"))
			read_text(r, "group", &v->group);
		else if (json_scan_key_is(key, "resource"))
			read_text(r, "resource", &v->plural);
		else
			skip(r);
	}
}

static void read_request(struct reading *r)
{
	struct webhook_review *v = r->review;
	struct span key;

	v->has_request = enter(r, JSON_OBJECT, "request");
	while (v->has_request && next_member(r, &key)) {
		if (json_scan_key_is(key, "uid"))
			read_text(r, "uid", &v->uid);
		else if (json_scan_key_is(key, "namespace"))
			read_text(r, "namespace", &v->namespace);
		else if (json_scan_key_is(key, "operation"))
			read_text(r, "operation", &v->operation);
		else if (json_scan_key_is(key, "resource"))
			read_kind_of_resource(r);
		else if (json_scan_key_is(key, "subResource"))
			read_text(r, "subResource", &v->sub_resource);
		else if (json_scan_key_is(key, "object"))
			read_pod(r, &v->pod);
		else
			skip(r);
	}
}

static void read_review(struct reading *r)
{
	struct webhook_review *v = r->review;
	struct span key;

	if (!enter(r, JSON_OBJECT, "the body"))
		return;
	while (next_member(r, &key)) {
		if (json_scan_key_is(key, "apiVersion"))
			read_text(r, "apiVersion", &v->version);
		else if (json_scan_key_is(key, "kind"))
			read_text(r, "kind", &v->kind);
		else if (json_scan_key_is(key, "request"))
			read_request(r);
		else
			skip(r);
	}
}

/* Fill in @v, of which only .driver_name is set. Also after a failure the caller's to release. Return: 0, or
 * -1 with ERR_INVALID_ARGUMENT (malformed, too deep). */
static int webhook_review_read(struct webhook_review *v, struct span body, struct error **err)
{
	struct reading r = {.review = v, .at = JSON_SCAN(body), .err = err};

	v->resource = x_asprintf("%s/scheduler", v->driver_name);
	v->label = x_asprintf("%s/webhook", v->driver_name);
	read_review(&r);
	if (r.has_failed || json_scan_end(&r.at, err) < 0)
		return err_wrap(err, "AdmissionReview");
	return 0;
}

/* Release the content of @v. */
static void webhook_review_done(struct webhook_review *v)
{
	free(v->resource);
	free(v->label);
	free(v->version);
	free(v->kind);
	free(v->uid);
	free(v->namespace);
	free(v->operation);
	free(v->group);
	free(v->plural);
	free(v->sub_resource);
	free(v->pod.namespace);
	free(v->pod.scheduler);
	free(v->pod.node);
	strv_free(v->pod.claims);
	strv_free(v->pod.classes);
	free(v->odd);
	*v = (struct webhook_review){.driver_name = NULL};
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
	const struct webhook_container *c = &v->pod.first;
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

/* Whether a claim of the pod is ours and waits for the pod to be placed. */
static bool has_our_claim(const struct webhook_review *v, const char *namespace,
	const struct webhook_cluster *cluster, struct webhook_missing *missing)
{
	for (char **claim = v->pod.claims; claim && *claim; claim++) {
		const char *class = NULL;
		enum webhook_claim found = cluster->claim(cluster->user, namespace, *claim, &class);

		if (found == WEBHOOK_CLAIM_UNKNOWN)
			kube_add_text(&missing->claims, *claim);
		else if (found == WEBHOOK_CLAIM_UNBOUND && !str_empty(class) &&
			 is_our_class(cluster, class, missing))
			return true;
	}
	return false;
}

/* Whether the pod has a volume that is still to be made where the pod runs. */
static bool needs_us(const struct webhook_review *v, const struct webhook_cluster *cluster,
	struct webhook_missing *missing)
{
	const char *namespace = str_empty(v->namespace) ? v->pod.namespace : v->namespace;

	if (v->pod.has_inline)
		return true;
	if (v->pod.has_default_class && is_our_class(cluster, NULL, missing))
		return true;
	for (char **class = v->pod.classes; class && *class; class ++) {
		if (is_our_class(cluster, *class, missing))
			return true;
	}
	return !str_empty(namespace) && has_our_claim(v, namespace, cluster, missing);
}

/* What is absent stands for what the configuration asks for: pods that are created. */
static bool is_new_pod(const struct webhook_review *v)
{
	return (!v->operation || str_eq(v->operation, "CREATE")) && str_empty(v->sub_resource) &&
	       str_empty(v->group) && (!v->plural || str_eq(v->plural, "pods"));
}

/* An API server fills the default in before it asks (pkg/apis/core/v1, SetDefaults_PodSpec()); others that
 * send reviews may not. */
static bool is_of_our_scheduler(const struct webhook_review *v, const struct webhook_rules *rules)
{
	return strv_contains(
		rules->schedulers, str_empty(v->pod.scheduler) ? DEFAULT_SCHEDULER : v->pod.scheduler);
}

static struct verdict decide(const struct webhook_review *v, const struct webhook_cluster *cluster,
	const struct webhook_rules *rules, struct webhook_missing *missing)
{
	const struct verdict marked = {true, true, 200, "uses volumes that are made where the pod runs"};

	if (!is_new_pod(v))
		return (struct verdict){true, false, 200, "not a new pod"};
	if (!v->pod.is_there || v->odd)
		return (struct verdict){false, false, 400, v->odd ? v->odd : "there is no pod"};
	if (v->pod.is_ignored)
		return (struct verdict){true, false, 200, "is not to be changed"};
	if (v->pod.n_containers == 0)
		return (struct verdict){false, false, 403, "pod has no containers"};
	if (!v->pod.has_volumes)
		return (struct verdict){true, false, 200, "no volumes"};
	if (!str_empty(v->pod.node))
		return (struct verdict){true, false, 200, "has a node already"};
	if (!is_of_our_scheduler(v, rules))
		return (struct verdict){true, false, 200, "is of another scheduler"};
	if (v->pod.is_marked)
		return (struct verdict){true, false, 200, "requests the resource already"};
	return needs_us(v, cluster, missing) ? marked
					     : (struct verdict){true, false, 200, "no relevant PMEM volumes"};
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
	return v->has_request ? NULL : "there is no request";
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
	CLEANUP(webhook_review_done) struct webhook_review v = {.driver_name = rules->driver_name};
	CLEANUP(error_freep) struct error *err = NULL;

	if (body.n > WEBHOOK_BODY_BYTES)
		return refuse(&v, 413, "longer than 8 MiB", out);
	if (webhook_review_read(&v, body, &err) < 0)
		return refuse(&v, 400, err->msg, out);
	const char *fault = find_fault(&v);

	if (fault)
		return refuse(&v, 400, fault, out);
	struct verdict verdict = decide(&v, cluster, rules, missing);

	if (verdict.changes)
		webhook_missing_done(missing);
	else if (missing->claims)
		missing->namespace = x_strdup(str_empty(v.namespace) ? v.pod.namespace : v.namespace);
	write_reply(&v, &verdict, out);
	return 200;
}
