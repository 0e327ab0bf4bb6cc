/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/sched/webhook.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/kube/read.h"
#include "cluster/sched/webhook_private.h"

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

void sched_webhook_missing_done(struct sched_webhook_missing *m)
{
	free(m->namespace);
	strv_free(m->claims);
	strv_free(m->classes);
	*m = (struct sched_webhook_missing){.namespace = NULL};
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
	const struct sched_webhook_world *world, const char *name, struct sched_webhook_missing *missing)
{
	enum sched_class found = world->class(world->user, name);

	if (found == SCHED_CLASS_UNKNOWN && name)
		kube_add_text(&missing->classes, name);
	return found == SCHED_CLASS_OURS;
}

/* Whether a claim of the pod is ours and waits for the pod to be placed. */
static bool has_our_claim(const struct webhook_review *v, const char *namespace,
	const struct sched_webhook_world *world, struct sched_webhook_missing *missing)
{
	for (char **claim = v->pod.claims; claim && *claim; claim++) {
		const char *class = NULL;
		enum sched_claim found = world->claim(world->user, namespace, *claim, &class);

		if (found == SCHED_CLAIM_UNKNOWN)
			kube_add_text(&missing->claims, *claim);
		else if (found == SCHED_CLAIM_UNBOUND && !str_empty(class) &&
			 is_our_class(world, class, missing))
			return true;
	}
	return false;
}

/* Whether the pod has a volume that is still to be made where the pod runs. */
static bool needs_us(const struct webhook_review *v, const struct sched_webhook_world *world,
	struct sched_webhook_missing *missing)
{
	const char *namespace = str_empty(v->namespace) ? v->pod.namespace : v->namespace;

	if (v->pod.has_inline)
		return true;
	if (v->pod.has_default_class && is_our_class(world, NULL, missing))
		return true;
	for (char **class = v->pod.classes; class && *class; class ++) {
		if (is_our_class(world, *class, missing))
			return true;
	}
	return !str_empty(namespace) && has_our_claim(v, namespace, world, missing);
}

/* What is absent stands for what the configuration asks for: pods that are created. */
static bool is_new_pod(const struct webhook_review *v)
{
	return (!v->operation || str_eq(v->operation, "CREATE")) && str_empty(v->sub_resource) &&
	       str_empty(v->group) && (!v->plural || str_eq(v->plural, "pods"));
}

/* An API server fills the default in before it asks (pkg/apis/core/v1, SetDefaults_PodSpec()); others that
 * send reviews may not. */
static bool is_of_our_scheduler(const struct webhook_review *v, const struct sched_webhook_rules *rules)
{
	return strv_contains(
		rules->schedulers, str_empty(v->pod.scheduler) ? DEFAULT_SCHEDULER : v->pod.scheduler);
}

static struct verdict decide(const struct webhook_review *v, const struct sched_webhook_world *world,
	const struct sched_webhook_rules *rules, struct sched_webhook_missing *missing)
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
	return needs_us(v, world, missing) ? marked
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

unsigned sched_webhook_review(const struct sched_webhook_world *world,
	const struct sched_webhook_rules *rules, struct span body, struct sched_webhook_missing *missing,
	struct buf *out)
{
	CLEANUP(webhook_review_done) struct webhook_review v = {.driver_name = rules->driver_name};
	CLEANUP(error_freep) struct error *err = NULL;

	if (body.n > SCHED_WEBHOOK_BODY_BYTES)
		return refuse(&v, 413, "longer than 8 MiB", out);
	if (webhook_review_read(&v, body, &err) < 0)
		return refuse(&v, 400, err->msg, out);
	const char *fault = find_fault(&v);

	if (fault)
		return refuse(&v, 400, fault, out);
	struct verdict verdict = decide(&v, world, rules, missing);

	if (verdict.changes)
		sched_webhook_missing_done(missing);
	else if (missing->claims)
		missing->namespace = x_strdup(str_empty(v.namespace) ? v.pod.namespace : v.namespace);
	write_reply(&v, &verdict, out);
	return 200;
}
