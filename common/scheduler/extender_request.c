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

/* Limit for the UIDs of the victims on one node, on which Kubernetes runs some hundred pods. */
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

static int read_name(struct json_scan *s, struct span *ret_quoted, struct error **err)
{
	if (json_scan_peek(s) != JSON_STRING)
		return err_set(err, ERR_INVALID_ARGUMENT, "the name of a node is not a string");
	return json_scan_value(s, ret_quoted, err);
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
		return err_set(err, ERR_INVALID_ARGUMENT, "the request has more than %u nodes",
			EXTENDER_REQUEST_MAX_NODES);
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

static int read_metadata(void *user, struct span key, struct json_scan *s, struct error **err)
{
	return json_scan_key_is(key, "name") ? read_name(s, user, err) : json_scan_skip(s, err);
}

static int read_object_member(void *user, struct span key, struct json_scan *s, struct error **err)
{
	if (json_scan_key_is(key, "metadata"))
		return json_scan_members(s, read_metadata, user, err);
	return json_scan_skip(s, err);
}

static int read_object(struct reading *r, struct error **err)
{
	struct json_scan *s = &r->scan;
	struct span quoted = {0};
	struct span raw;

	json_scan_peek(s);
	raw.p = s->text.p + s->at;
	if (json_scan_members(s, read_object_member, &quoted, err) < 0)
		return -1;
	raw.n = (size_t)(s->text.p + s->at - raw.p);
	return add_node(r, quoted, raw, err);
}

static int read_string(struct reading *r, struct error **err)
{
	struct span quoted;

	if (read_name(&r->scan, &quoted, err) < 0)
		return -1;
	return add_node(r, quoted, quoted, err);
}

/* An array; null is an empty one, as in Go. */
static int read_array(
	struct reading *r, int (*read_one)(struct reading *, struct error **), struct error **err)
{
	struct json_scan *s = &r->scan;
	bool more;

	r->args->n = 0;
	if (json_scan_peek(s) == JSON_NULL)
		return json_scan_skip(s, err);
	if (json_scan_enter(s, JSON_ARRAY, err) < 0 || json_scan_element(s, &more, err) < 0)
		return -1;
	while (more) {
		if (read_one(r, err) < 0 || json_scan_element(s, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int read_list(void *user, struct span key, struct json_scan *s, struct error **err)
{
	return json_scan_key_is(key, "items") ? read_array(user, read_object, err) : json_scan_skip(s, err);
}

/* A form that is null counts as absent. */
static int read_form(struct reading *r, bool objects, struct error **err)
{
	bool *has = objects ? &r->args->has_objects : &r->has_names;

	if (json_scan_peek(&r->scan) == JSON_NULL) {
		*has = false;
		return json_scan_skip(&r->scan, err);
	}
	*has = true;
	if (r->args->has_objects && r->has_names)
		return err_set(err, ERR_INVALID_ARGUMENT, "the request has both Nodes and NodeNames");
	if (!objects)
		return read_array(r, read_string, err);
	r->args->n = 0;
	return json_scan_members(&r->scan, read_list, r, err);
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

static int read_member(void *user, struct span key, struct json_scan *s, struct error **err)
{
	if (json_scan_key_is(key, "Pod"))
		return read_pod(user, err);
	if (json_scan_key_is(key, "Nodes"))
		return read_form(user, true, err);
	if (json_scan_key_is(key, "NodeNames"))
		return read_form(user, false, err);
	return json_scan_skip(s, err);
}

/* The victims on a node, as an answer has them. */
struct victims {
	struct buf text;
	size_t n;
	bool are_pods;            /* the request has them whole */
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

struct uid_reading {
	const char *key;
	struct span quoted;
};

static int read_uid(void *user, struct span key, struct json_scan *s, struct error **err)
{
	struct uid_reading *u = user;
	bool is_uid = json_scan_key_is(key, u->key) && json_scan_peek(s) == JSON_STRING;

	return is_uid ? json_scan_value(s, &u->quoted, err) : json_scan_skip(s, err);
}

/* A v1 Pod, whose UID is in its metadata. */
static int read_uid_of_pod(void *user, struct span key, struct json_scan *s, struct error **err)
{
	if (json_scan_key_is(key, "metadata"))
		return json_scan_members(s, read_uid, user, err);
	return json_scan_skip(s, err);
}

static int read_victim_pods(struct json_scan *s, struct victims *v, struct error **err)
{
	bool more;

	if (json_scan_peek(s) == JSON_NULL)
		return json_scan_skip(s, err);
	if (json_scan_enter(s, JSON_ARRAY, err) < 0 || json_scan_element(s, &more, err) < 0)
		return -1;
	while (more) {
		struct uid_reading uid = {.key = v->are_pods ? "uid" : "UID"};

		if (json_scan_members(s, v->are_pods ? read_uid_of_pod : read_uid, &uid, err) < 0)
			return -1;
		if (uid.quoted.n <= 2)
			return err_set(err, ERR_INVALID_ARGUMENT, "a victim has no UID");
		add_victim(v, uid.quoted);
		if (json_scan_element(s, &more, err) < 0)
			return -1;
	}
	return 0;
}

static int read_violations(struct json_scan *s, struct victims *v, struct error **err)
{
	if (json_scan_peek(s) != JSON_NUMBER)
		return err_set(err, ERR_INVALID_ARGUMENT, "NumPDBViolations is not a number");
	return json_scan_value(s, &v->n_violations, err);
}

static int read_member_of_victims(void *user, struct span key, struct json_scan *s, struct error **err)
{
	if (json_scan_key_is(key, "Pods"))
		return read_victim_pods(s, user, err);
	if (json_scan_key_is(key, "NumPDBViolations"))
		return read_violations(s, user, err);
	return json_scan_skip(s, err);
}

/* A member of a map from names of nodes. @name: with its quotes */
static int read_victims(void *user, struct span name, struct json_scan *s, struct error **err)
{
	struct reading *r = user;
	struct extender_request *a = r->args;
	CLEANUP(victims_done)
	struct victims v = {.text = BUF_INIT(VICTIMS_MAX_BYTES), .are_pods = a->has_objects};
	uint8_t *copy;

	if (json_scan_peek(s) == JSON_NULL)
		return json_scan_skip(s, err);
	if (json_scan_members(s, read_member_of_victims, &v, err) < 0)
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

static int read_preemption_member(void *user, struct span key, struct json_scan *s, struct error **err)
{
	bool pods = json_scan_key_is(key, "NodeNameToVictims");
	struct reading *r = user;

	if (json_scan_key_is(key, "Pod"))
		return read_pod(r, err);
	if (json_scan_peek(s) == JSON_NULL || (!pods && !json_scan_key_is(key, "NodeNameToMetaVictims")))
		return json_scan_skip(s, err);
	if (pods ? r->has_names : r->args->has_objects)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the request has both NodeNameToVictims and NodeNameToMetaVictims");
	*(pods ? &r->args->has_objects : &r->has_names) = true;
	r->args->n = 0;
	return json_scan_members(s, read_victims, r, err);
}

/* @nodes: how the request may say which nodes it is about */
static int read_request(struct span body, json_scan_member_fn *member, const char *nodes,
	struct extender_request *ret, struct error **err)
{
	CLEANUP(extender_request_done) struct extender_request args = {0};
	struct reading r = {.scan = JSON_SCAN(body), .args = &args};

	if (json_scan_members(&r.scan, member, &r, err) < 0 || json_scan_end(&r.scan, err) < 0)
		return -1;
	if (!args.pod.p)
		return err_set(err, ERR_INVALID_ARGUMENT, "the request has no Pod");
	if (!args.has_objects && !r.has_names)
		return err_set(err, ERR_INVALID_ARGUMENT, "the request has neither %s", nodes);
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
