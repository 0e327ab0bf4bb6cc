/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object_call.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json.h"
#include "base/mem.h"

static const struct {
	const char *verb;
	const char *method;
	const char *content_type;
} verbs[] = {
	[KUBE_GET] = {"get", "GET", NULL},
	[KUBE_CREATE] = {"create", "POST", NULL},
	[KUBE_UPDATE] = {"update", "PUT", NULL},
	[KUBE_PATCH] = {"patch", "PATCH", "application/merge-patch+json"},
	[KUBE_STRATEGIC_PATCH] = {"patch", "PATCH", "application/strategic-merge-patch+json"},
	/* JSON is YAML. Source: apimachinery pkg/types/patch.go, ApplyYAMLPatchType */
	[KUBE_APPLY] = {"patch", "PATCH", "application/apply-patch+yaml"},
	[KUBE_DELETE] = {"delete", "DELETE", NULL},
};

#define ESCAPED_BYTES 3
#define APPLY_QUERY   "?force=true&fieldManager"

/* RFC 3986 section 2.3 */
static void add_escaped(struct buf *path, char before, const char *text)
{
	static const char unreserved[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

	buf_addc(path, before);
	for (const char *p = text; *p; p++) {
		if (strchr(unreserved, *p))
			buf_addc(path, *p);
		else
			buf_addf(path, "%%%02X", (unsigned char)*p);
	}
}

static size_t text_bytes(const char *text)
{
	return text ? ESCAPED_BYTES * strlen(text) : 0;
}

static size_t path_max_bytes(const struct kube_object_call *call)
{
	return strlen(call->kind->path) + sizeof("/namespaces///" APPLY_QUERY) + text_bytes(call->namespace) +
	       text_bytes(call->name) + text_bytes(call->subresource) + text_bytes(call->field_manager);
}

static void add_path(struct buf *path, const struct kube_object_call *call)
{
	const char *resource = strrchr(call->kind->path, '/');

	buf_add(path, call->kind->path, (size_t)(resource - call->kind->path));
	if (call->namespace) {
		buf_adds(path, "/namespaces");
		add_escaped(path, '/', call->namespace);
	}
	buf_adds(path, resource);
	if (call->verb != KUBE_CREATE)
		add_escaped(path, '/', call->name);
	if (call->subresource)
		add_escaped(path, '/', call->subresource);
	if (call->verb == KUBE_APPLY) {
		buf_adds(path, APPLY_QUERY);
		add_escaped(path, '=', call->field_manager);
	}
}

void kube_write_preconditions(const struct kube_meta *meta, const char *version, struct buf *body)
{
	struct json_writer w = JSON_WRITER(body);

	json_object(&w);
	json_key(&w, "preconditions");
	json_object(&w);
	json_key_str(&w, "uid", meta->uid);
	if (version)
		json_key_str(&w, "resourceVersion", version);
	json_object_end(&w);
	json_object_end(&w);
}

struct kube_request *kube_object_call(
	struct kube_client *c, const struct kube_object_call *call, kube_reply_fn fn, void *user)
{
	const char *namespace = call->namespace ? call->namespace : "";
	CLEANUP(buf_done) struct buf path = BUF_INIT(path_max_bytes(call));
	CLEANUP(free_charp)
	char *what =
		x_asprintf("%s %s%s%s", call->kind->what, namespace, call->namespace ? "/" : "", call->name);

	add_path(&path, call);
	const struct kube_call request = {
		.verb = verbs[call->verb].verb,
		.what = what,
		.method = verbs[call->verb].method,
		.path = buf_str(&path),
		.accept = call->metadata_only ? "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
					      : NULL,
		.content_type = verbs[call->verb].content_type,
		.body = call->body,
		.timeout_ms = call->timeout_ms,
	};

	return kube_client_call(c, &request, fn, user);
}
