/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/extender_request.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_scan.h"
#include "base/mem.h"

/* RFC 1123 subdomain, which names of nodes are */
#define NAME_MAX_BYTES 253

#define MIN_ROOM 64

/* Of one node, where Kubernetes has some hundred pods: their UIDs. */
#define VICTIMS_MAX_BYTES (1u << 20)

/* A request that is being read. */
struct reading {
	struct json_scan scan;
	struct extender_request *args;
	bool has_names;
	size_t seen; /* nodes, also of keys that are there again */
};

/* Escapes are never needed in the name of a node, but they are allowed. */
static int unquote(struct extender_request *a, struct span quoted, struct span *ret, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = NULL;
	struct json_event ev;
	uint8_t *copy;

	*ret = (struct span){quoted.p + 1, quoted.n - 2};
	if (!memchr(quoted.p, '\\', quoted.n))
		return 0;
	r = json_reader_new(quoted);
	if (json_expect(r, JSON_STRING, &ev, err) < 0)
		return -1;
	if (!a->copies)
		a->copies = arena_new(SIZE_MAX);
	copy = arena_alloc(a->copies, ev.len);
	memcpy(copy, ev.text, ev.len);
	*ret = (struct span){copy, ev.len};
	return 0;
}

static int read_name(struct reading *r, struct span *ret_quoted, struct error **err)
{
	if (json_scan_peek(&r->scan) != JSON_STRING)
		return err_set(err, ERR_INVALID_ARGUMENT, "the name of a node is not a string");
	return json_scan_value(&r->scan, ret_quoted, err);
}

static int check_name(const struct extender_request_node *node, struct error **err)
{
	if (node->name.n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "a node has no name");
	if (node->name.n > NAME_MAX_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "the name of a node is too long");
	return 0;
}

static int add_node(struct reading *r, struct span quoted, struct span raw, struct error **err)
{
	struct extender_request_node node = {.quoted = quoted, .raw = raw};
	struct extender_request *a = r->args;

	if (r->seen++ == EXTENDER_REQUEST_MAX_NODES)
		return err_set(err, ERR_INVALID_ARGUMENT, "more than %u nodes", EXTENDER_REQUEST_MAX_NODES);
	if (quoted.n > 0 && unquote(a, quoted, &node.name, err) < 0)
		return -1;
	if (check_name(&node, err) < 0)
		return -1;
	if (a->n == a->room) {
		a->room = a->room ? 2 * a->room : MIN_ROOM;
		a->nodes = x_realloc(a->nodes, a->room, sizeof(*a->nodes));
	}
	a->nodes[a->n++] = node;
	return 0;
}

static int read_metadata(struct reading *r, struct span *ret_quoted, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span key, ignored;
	bool more;

	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
		return -1;
	while (more) {
		int rv = json_scan_key_is(key, "name") ? read_name(r, ret_quoted, err)
						       : json_scan_value(s, &ignored, err);

		if (rv < 0 || json_scan_member(s, &key, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int read_object(struct reading *r, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span quoted = {0};
	struct span raw, key, ignored;
	bool more;

	json_scan_peek(s);
	raw.p = s->text.p + s->at;
	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
		return -1;
	while (more) {
		int rv = json_scan_key_is(key, "metadata") ? read_metadata(r, &quoted, err)
							   : json_scan_value(s, &ignored, err);

		if (rv < 0 || json_scan_member(s, &key, &more, err) < 0)
			return -1;
	}
	raw.n = (size_t)(s->text.p + s->at - raw.p);
	return add_node(r, quoted, raw, err);
}

static int read_string(struct reading *r, struct error **err)
{
	struct span quoted;

	if (read_name(r, &quoted, err) < 0)
		return -1;
	return add_node(r, quoted, quoted, err);
}

/* An array; null is an empty one, as in Go. */
static int read_array(
	struct reading *r, int (*read_one)(struct reading *, struct error **), struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span ignored;
	bool more;

	r->args->n = 0;
	if (json_scan_peek(s) == JSON_NULL)
		return json_scan_value(s, &ignored, err);
	if (json_scan_enter(s, JSON_ARRAY, err) < 0 || json_scan_element(s, &more, err) < 0)
		return -1;
	while (more) {
		if (read_one(r, err) < 0 || json_scan_element(s, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int read_list(struct reading *r, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span key, ignored;
	bool more;

	r->args->n = 0;
	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
		return -1;
	while (more) {
		int rv = json_scan_key_is(key, "items") ? read_array(r, read_object, err)
							: json_scan_value(s, &ignored, err);

		if (rv < 0 || json_scan_member(s, &key, &more, err) < 0)
			return -1;
	}
	return 0;
}

/* The form that is null is the one that the request does not have. */
static int read_form(struct reading *r, bool objects, struct error **err)
{
	bool *has = objects ? &r->args->has_objects : &r->has_names;
	struct span ignored;

	if (json_scan_peek(&r->scan) == JSON_NULL) {
		*has = false;
		return json_scan_value(&r->scan, &ignored, err);
	}
	*has = true;
	if (r->args->has_objects && r->has_names)
		return err_set(err, ERR_INVALID_ARGUMENT, "both Nodes and NodeNames");
	return objects ? read_list(r, err) : read_array(r, read_string, err);
}

static int read_pod(struct reading *r, struct error **err)
{
	enum json_type type = json_scan_peek(&r->scan);

	if (json_scan_value(&r->scan, &r->args->pod, err) < 0)
		return -1;
	if (type == JSON_NULL)
		r->args->pod = (struct span){0};
	else if (type != JSON_OBJECT)
		return err_set(err, ERR_INVALID_ARGUMENT, "Pod is not an object");
	return 0;
}

static int read_member(struct reading *r, struct span key, struct error **err)
{
	struct span ignored;

	if (json_scan_key_is(key, "Pod"))
		return read_pod(r, err);
	if (json_scan_key_is(key, "Nodes"))
		return read_form(r, true, err);
	if (json_scan_key_is(key, "NodeNames"))
		return read_form(r, false, err);
	return json_scan_value(&r->scan, &ignored, err);
}

static int read_members(struct reading *r,
	int (*read_one)(struct reading *r, struct span key, struct error **err), struct error **err)
{
	struct span key;
	bool more;

	if (json_scan_enter(&r->scan, JSON_OBJECT, err) < 0 ||
		json_scan_member(&r->scan, &key, &more, err) < 0)
		return -1;
	while (more) {
		if (read_one(r, key, err) < 0 || json_scan_member(&r->scan, &key, &more, err) < 0)
			return -1;
	}
	return json_scan_end(&r->scan, err);
}

/* The victims on a node, as an answer has them. */
struct victims {
	struct buf text;
	size_t n;
	struct span n_violations; /* as the request writes it */
};

static void victims_done(struct victims *v)
{
	buf_done(&v->text);
}

static void add_victim(struct victims *v, struct span quoted_uid)
{
	buf_adds(&v->text, v->n++ == 0 ? "{\"Pods\":[{\"UID\":" : ",{\"UID\":");
	buf_add(&v->text, quoted_uid.p, quoted_uid.n);
	buf_addc(&v->text, '}');
}

static int read_uid(struct reading *r, const char *key_of_uid, struct span *ret_quoted, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span key, ignored;
	bool more;

	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
		return -1;
	while (more) {
		bool is_uid = json_scan_key_is(key, key_of_uid);
		bool is_text = json_scan_peek(s) == JSON_STRING;

		if (json_scan_value(s, is_uid && is_text ? ret_quoted : &ignored, err) < 0 ||
			json_scan_member(s, &key, &more, err) < 0)
			return -1;
	}
	return 0;
}

/* A v1 Pod, whose UID is in its metadata. */
static int read_uid_of_pod(struct reading *r, struct span *ret_quoted, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span key, ignored;
	bool more;

	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
		return -1;
	while (more) {
		int rv = json_scan_key_is(key, "metadata") ? read_uid(r, "uid", ret_quoted, err)
							   : json_scan_value(s, &ignored, err);

		if (rv < 0 || json_scan_member(s, &key, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int read_victim_pods(struct reading *r, struct victims *v, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span ignored;
	bool more;

	if (json_scan_peek(s) == JSON_NULL)
		return json_scan_value(s, &ignored, err);
	if (json_scan_enter(s, JSON_ARRAY, err) < 0 || json_scan_element(s, &more, err) < 0)
		return -1;
	while (more) {
		struct span uid = {0};
		int rv = r->args->has_objects ? read_uid_of_pod(r, &uid, err) : read_uid(r, "UID", &uid, err);

		if (rv < 0)
			return -1;
		if (uid.n <= 2)
			return err_set(err, ERR_INVALID_ARGUMENT, "a victim has no UID");
		add_victim(v, uid);
		if (json_scan_element(s, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int read_violations(struct reading *r, struct victims *v, struct error **err)
{
	if (json_scan_peek(&r->scan) != JSON_NUMBER)
		return err_set(err, ERR_INVALID_ARGUMENT, "NumPDBViolations is not a number");
	return json_scan_value(&r->scan, &v->n_violations, err);
}

static int read_members_of_victims(struct reading *r, struct victims *v, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span key, ignored;
	bool more;

	if (json_scan_peek(s) == JSON_NULL)
		return json_scan_value(s, &ignored, err);
	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &key, &more, err) < 0)
		return -1;
	while (more) {
		int rv;

		if (json_scan_key_is(key, "Pods"))
			rv = read_victim_pods(r, v, err);
		else if (json_scan_key_is(key, "NumPDBViolations"))
			rv = read_violations(r, v, err);
		else
			rv = json_scan_value(s, &ignored, err);
		if (rv < 0 || json_scan_member(s, &key, &more, err) < 0)
			return -1;
	}
	return 0;
}

/* @name: of the node, with its quotes */
static int read_victims(struct reading *r, struct span name, struct error **err)
{
	CLEANUP(victims_done) struct victims v = {.text = BUF_INIT(VICTIMS_MAX_BYTES)};
	struct extender_request *a = r->args;
	uint8_t *copy;

	if (read_members_of_victims(r, &v, err) < 0)
		return -1;
	if (v.n == 0)
		return 0;
	buf_adds(&v.text, "],\"NumPDBViolations\":");
	if (v.n_violations.n > 0)
		buf_add(&v.text, v.n_violations.p, v.n_violations.n);
	else
		buf_addc(&v.text, '0');
	buf_addc(&v.text, '}');
	if (buf_check(&v.text, "the victims on a node", err) < 0)
		return -1;
	if (!a->copies)
		a->copies = arena_new(SIZE_MAX);
	copy = arena_alloc(a->copies, v.text.len);
	memcpy(copy, v.text.data, v.text.len);
	return add_node(r, name, (struct span){copy, v.text.len}, err);
}

/* A map from names of nodes. */
static int read_nodes_with_victims(struct reading *r, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span name;
	bool more;

	r->args->n = 0;
	if (json_scan_enter(s, JSON_OBJECT, err) < 0 || json_scan_member(s, &name, &more, err) < 0)
		return -1;
	while (more) {
		if (read_victims(r, name, err) < 0 || json_scan_member(s, &name, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int read_preemption_member(struct reading *r, struct span key, struct error **err)
{
	bool pods = json_scan_key_is(key, "NodeNameToVictims");
	struct span ignored;

	if (json_scan_key_is(key, "Pod"))
		return read_pod(r, err);
	if (json_scan_peek(&r->scan) == JSON_NULL ||
		(!pods && !json_scan_key_is(key, "NodeNameToMetaVictims")))
		return json_scan_value(&r->scan, &ignored, err);
	if (pods ? r->has_names : r->args->has_objects)
		return err_set(err, ERR_INVALID_ARGUMENT, "both NodeNameToVictims and NodeNameToMetaVictims");
	*(pods ? &r->args->has_objects : &r->has_names) = true;
	return read_nodes_with_victims(r, err);
}

/* @nodes: how the request may say which nodes it is about */
static int read_request(struct span body,
	int (*read_one)(struct reading *r, struct span key, struct error **err), const char *nodes,
	struct extender_request *ret, struct error **err)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	struct reading r = {.scan = JSON_SCAN(body), .args = &args};

	if (read_members(&r, read_one, err) < 0)
		return -1;
	if (!args.pod.p)
		return err_set(err, ERR_INVALID_ARGUMENT, "no Pod");
	if (!args.has_objects && !r.has_names)
		return err_set(err, ERR_INVALID_ARGUMENT, "neither %s", nodes);
	*ret = args;
	args = (struct extender_request){0};
	return 0;
}

int extender_request_read(struct span body, struct extender_request *ret, struct error **err)
{
	return read_request(body, read_member, "Nodes nor NodeNames", ret, err);
}

int extender_request_read_preemption(struct span body, struct extender_request *ret, struct error **err)
{
	return read_request(
		body, read_preemption_member, "NodeNameToVictims nor NodeNameToMetaVictims", ret, err);
}

void extender_request_done(struct extender_request *a)
{
	if (!a)
		return;
	arena_free(a->copies);
	free(a->nodes);
	*a = (struct extender_request){0};
}
