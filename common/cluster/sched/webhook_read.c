/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_scan.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/kube/read.h"
#include "cluster/sched/webhook_private.h"

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

int webhook_review_read(struct webhook_review *v, struct span body, struct error **err)
{
	struct reading r = {.review = v, .at = JSON_SCAN(body), .err = err};

	v->resource = x_asprintf("%s/scheduler", v->driver_name);
	v->label = x_asprintf("%s/webhook", v->driver_name);
	read_review(&r);
	if (r.has_failed || json_scan_end(&r.at, err) < 0)
		return err_wrap(err, "AdmissionReview");
	return 0;
}

void webhook_review_done(struct webhook_review *v)
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
