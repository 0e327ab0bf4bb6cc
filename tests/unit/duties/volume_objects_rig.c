/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/duties/volume_objects_rig.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"

#define BODY_MAX    65536
#define HEARTBEAT_S 10

struct rig rig;

static struct rig_request *append(volume_record_fn fn, void *user)
{
	struct rig_request *r = x_calloc(1, sizeof(*r));
	struct rig_request **at = &rig.requests;

	while (*at)
		at = &(*at)->next;
	*at = r;
	r->fn = fn;
	r->user = user;
	return r;
}

static void read_record(void *self, const char *key, volume_record_fn fn, void *user)
{
	struct rig_request *r = append(fn, user);

	(void)self;
	r->is_read = true;
	r->name = pmem_volume_object_name(key, DESK_DRIVER);
}

/* Finds the value of the member @what in the object that @write makes of @v. */
static char *member_of(void (*write)(const struct pmem_volume *v, struct buf *out), const char *what,
	const struct pmem_volume *v)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(BODY_MAX);
	const char *at;

	write(v, &out);
	at = strstr(buf_str(&out), what);
	ck_assert_ptr_nonnull(at);
	at += strlen(what);
	return x_strndup(at, strlen(at) - 1);
}

/* As a new object has it, but for the members that are only patched. */
static char *spec_of(const struct pmem_volume *v)
{
	CLEANUP(free_charp) char *spec = member_of(pmem_volume_write_new, "\"spec\":", v);

	return x_asprintf("%.*s,\"deleting\":%s,\"retained\":%s}", (int)strlen(spec) - 1, spec,
		v->deleting ? "true" : "false", v->retained ? "true" : "false");
}

static char *status_of(const struct pmem_volume *v)
{
	return member_of(pmem_volume_write_status, "\"status\":", v);
}

static char *labels_of(const struct pmem_volume *v)
{
	CLEANUP(free_charp) char *rest = member_of(pmem_volume_write_new, "\"labels\":", v);

	return x_strndup(rest, strcspn(rest, "}") + 1);
}

static void write_record(void *self, enum volume_record_write what, const struct pmem_volume *v,
	volume_record_fn fn, void *user)
{
	struct rig_request *r = append(fn, user);

	(void)self;
	r->what = what;
	r->name = x_strdup(v->meta.name);
	r->spec = spec_of(v);
	r->status = status_of(v);
	r->labels = labels_of(v);
	r->version = x_strdup(v->meta.resource_version);
}

static void request_free(struct rig_request *r)
{
	free(r->name);
	free(r->spec);
	free(r->status);
	free(r->labels);
	free(r->version);
	free(r);
}

static void object_free(struct rig_object *s)
{
	free(s->name);
	free(s->spec);
	free(s->labels);
	free(s->status);
	free(s);
}

static void look(void *self, const char *volume_name, const char *handle, claim_lookup_fn fn, void *user)
{
	CLEANUP(error_freep) struct error *error = NULL;

	(void)self;
	ck_assert_str_eq(volume_name, RIG_NAME);
	ck_assert_str_eq(handle, rig.id);
	rig.n_looks++;
	if (rig.looks_fail)
		(void)err_set(&error, ERR_UNAVAILABLE, "the API server fails");
	fn(user, error ? NULL : &rig.claim, error);
}

static void tell_claim(
	void *user, const struct kube_meta *claim, const char *reason, const char *message, uint64_t now_ns)
{
	(void)user;
	ck_assert_uint_eq(now_ns, rig.desk.now_ns);
	rig.n_told++;
	snprintf(rig.reported, sizeof(rig.reported), "%s/%s %s: %s", claim->namespace, claim->name, reason,
		message);
}

static void inform_claim(
	void *user, const struct kube_meta *claim, const char *reason, const char *message, uint64_t now_ns)
{
	rig.n_informed++;
	tell_claim(user, claim, reason, message, now_ns);
}

static void tell_node(
	void *user, const char *node_id, const char *reason, const char *message, uint64_t now_ns)
{
	(void)user;
	ck_assert_uint_eq(now_ns, rig.desk.now_ns);
	rig.n_nodes_told++;
	snprintf(rig.reported, sizeof(rig.reported), "%s %s: %s", node_id, reason, message);
}

static void fate_changed(void *user, const char *node_id)
{
	(void)user;
	volume_objects_node_changed(rig.duty, node_id);
}

static void end_duty(void)
{
	volume_objects_free(TAKE_PTR(rig.duty));
	lost_nodes_free(TAKE_PTR(rig.lost));
}

void rig_begin(void)
{
	const struct lost_nodes_config lost = {.client = rig.client,
		.controller = rig.desk.controller,
		.lost_after_ns = RIG_LOST_S * NS_PER_S,
		.changed = fate_changed};

	end_duty();
	rig.lost = lost_nodes_new(&lost);
	const struct volume_objects_config config = {.client = rig.client,
		.driver_name = DESK_DRIVER,
		.controller = rig.desk.controller,
		.lookup = {look, NULL},
		.lost = rig.lost,
		.rebound = rig.rebound,
		.writes = &rig.writes,
		.limit = {.max = RIG_REPORTED_MAX, .tell_node = tell_node},
		.events = {.claims = rig.claims, .tell_claim = tell_claim, .inform_claim = inform_claim}};

	rig.duty = volume_objects_new(&config);
	rig.objects = fake_kube_informer(rig.client, "pmemvolumes");
	ck_assert_ptr_nonnull(rig.objects);
}

void rig_restart(void)
{
	const struct node *const *nodes;

	end_duty();
	while (node_table_nodes(rig.desk.table, &nodes) > 0) {
		CLEANUP(free_charp) char *node_id = x_strdup(nodes[0]->report.node_id);

		node_table_forget(rig.desk.table, node_id);
	}
	rig.desk.controller->started_ns = rig.desk.now_ns;
	rig_begin();
	rig_show();
	fake_informer_sync(rig.objects);
}

static void rebound(void *user, const char *volume_name)
{
	(void)user;
	if (rig.duty)
		volume_objects_claim_changed(rig.duty, volume_name);
}

/* As of struct informer_events. */
static void claim_changed(void *user, const char *key, const void *old, const void *new)
{
	(void)user;
	(void)old;
	rebound_claims_note(rig.rebound, key, new);
}

void rig_set_up(void)
{
	static const struct informer_events events = {.changed = claim_changed};
	struct volume_key key = volume_key_of_name(RIG_NAME);

	desk_open(&rig.desk, /* early= */ false, /* forget_gone= */ false);
	rig.desk.controller->config.records =
		(struct volume_records){.read = read_record, .write = write_record, .self = &rig};
	memcpy(rig.key, key.hex, sizeof(rig.key));
	snprintf(rig.name, sizeof(rig.name), "%s." DESK_DRIVER, rig.key);
	volume_id_mint(RIG_NAME, "n1", rig.id);
	rig.claim.has_volume = true;
	bucket_init(&rig.writes, 100, 200);
	rig.client = fake_kube_new(/* loop= */ NULL);
	rig.rebound = rebound_claims_new(rebound, NULL);
	rig.claims = informer_new(rig.client, &kube_kind_claims, &events, NULL);
	rig_begin();
}

void rig_tear_down(void)
{
	end_duty();
	informer_free(rig.claims);
	rebound_claims_free(TAKE_PTR(rig.rebound));
	while (rig.requests)
		rig_fail(ERR_CANCELLED);
	while (rig.store) {
		struct rig_object *s = rig.store;

		rig.store = s->next;
		object_free(s);
	}
	kube_client_free(rig.client);
	desk_close(&rig.desk);
}

void rig_put_report(struct node_report *report)
{
	report->lease_ms = UINT32_MAX; /* weeks */
	node_table_put(rig.desk.table, report, rig.desk.now_ns);
}

void rig_put(const char *node_id, const char *id, enum volume_phase phase)
{
	struct node_report *r = report_new(node_id);

	if (id)
		report_add_volume(r, id, RIG_NAME)->phase = phase;
	rig_put_report(r);
}

struct pmem_volume *rig_record(const char *nodes)
{
	struct pmem_volume *v = pmem_volume_new(rig.key, DESK_DRIVER);

	v->volume_name = x_strdup(RIG_NAME);
	for (const char *at = nodes; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");
		CLEANUP(free_charp) char *node_id = x_strndup(at, n);

		pmem_volume_add_node(v, node_id);
		at += n;
	}
	return v;
}

static struct rig_object *find(const char *name)
{
	struct rig_object *s = rig.store;

	while (s && !str_eq(s->name, name))
		s = s->next;
	return s;
}

static char *json_with(const struct rig_object *s, const char *labels)
{
	return x_asprintf(
		"{\"metadata\":{\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"%u\",\"creationTimestamp\":\"" RIG_CREATED
		"\","
		"\"labels\":%s,\"finalizers\":[\"" PMEM_VOLUME_FINALIZER "\"]},\"spec\":%s,\"status\":%s}",
		s->name, s->version, labels, s->spec, s->status ? s->status : "{}");
}

static struct pmem_volume *decode_text(const char *json)
{
	struct error *err = NULL;
	struct pmem_volume *v = kube_object_decode(&kube_kind_pmem_volumes, span_of(json), &err);

	ck_assert_msg(v != NULL, "%s: %s", json, err ? err->msg : "");
	return v;
}

static char *json_of(const struct rig_object *s)
{
	if (rig.keeps_labels)
		return json_with(s, s->labels ? s->labels : "{}");
	CLEANUP(free_charp) char *bare = json_with(s, "{}");
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = decode_text(bare);
	CLEANUP(free_charp) char *labels = labels_of(v);

	return json_with(s, labels);
}

static void show(const struct rig_object *s)
{
	CLEANUP(free_charp) char *json = json_of(s);

	if (!rig.lagging)
		fake_informer_put(rig.objects, json);
}

void rig_show(void)
{
	struct rig_object *s = find(rig.name);

	ck_assert_ptr_nonnull(s);
	show(s);
}

/* @spec, @status, @labels: taken; NULL: as it was */
static void keep(const char *name, char *spec, char *status, char *labels)
{
	static unsigned version;
	struct rig_object *s = find(name);

	if (!s) {
		s = x_calloc(1, sizeof(*s));
		s->name = x_strdup(name);
		s->next = rig.store;
		rig.store = s;
	}
	if (spec) {
		free(s->spec);
		s->spec = spec;
	}
	if (status) {
		free(s->status);
		s->status = status;
	}
	if (labels) {
		free(s->labels);
		s->labels = labels;
	}
	s->version = ++version;
	show(s);
}

void rig_store(const struct pmem_volume *v)
{
	keep(v->meta.name, spec_of(v), status_of(v), NULL);
}

void rig_given_out(const char *nodes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_record(nodes);

	v->handle = x_strdup(rig.id);
	rig_store(v);
}

static struct pmem_volume *decode(const struct rig_object *s)
{
	CLEANUP(free_charp) char *json = s ? json_of(s) : NULL;

	return s ? decode_text(json) : NULL;
}

struct pmem_volume *rig_read(void)
{
	return decode(find(rig.name));
}

void rig_check(const char *nodes)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = rig_read();
	char found[256] = "";

	if (!nodes) {
		ck_assert_ptr_null(v);
		return;
	}
	ck_assert_ptr_nonnull(v);
	for (size_t i = 0; i < strv_len(v->nodes); i++)
		snprintf(found + strlen(found), sizeof(found) - strlen(found), "%s%s", i > 0 ? " " : "",
			v->nodes[i]);
	ck_assert_str_eq(found, nodes);
}

static void remove_object(const char *name)
{
	struct rig_object **at = &rig.store;
	struct rig_object *s = find(name);

	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	object_free(s);
	if (!rig.lagging)
		fake_informer_remove(rig.objects, name);
}

void rig_lose(void)
{
	remove_object(rig.name);
}

unsigned rig_count(void)
{
	unsigned n = 0;

	for (const struct rig_request *r = rig.requests; r; r = r->next)
		n++;
	return n;
}

static void end(struct rig_request *r, struct pmem_volume *record, const struct error *error)
{
	volume_record_fn fn = r->fn;
	void *user = r->user;

	rig.requests = r->next;
	request_free(r);
	fn(user, record, error);
}

void rig_fail(enum err_code code)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_ptr_nonnull(rig.requests);
	if (err_set(&err, code, "the API server fails") < 0)
		end(rig.requests, NULL, err);
}

static bool is_newest(const struct rig_object *s, const struct rig_request *r)
{
	CLEANUP(free_charp) char *version = x_asprintf("%u", s->version);

	return str_eq(r->version, version);
}

static void carry_out(struct rig_request *r)
{
	switch (r->what) {
	case RECORD_CREATE:
	case RECORD_SPEC:
		keep(r->name, TAKE_PTR(r->spec), NULL, TAKE_PTR(r->labels));
		break;
	case RECORD_STATUS:
		keep(r->name, NULL, TAKE_PTR(r->status), NULL);
		break;
	case RECORD_RELEASE:
		remove_object(r->name);
		break;
	}
}

void rig_serve(void)
{
	struct rig_request *r = rig.requests;
	struct rig_object *s;

	ck_assert_ptr_nonnull(r);
	s = find(r->name);
	if (r->is_read) {
		rig.n_reads++;
		end(r, decode(s), NULL);
		return;
	}
	rig.n_writes[r->what]++;
	if (r->what == RECORD_CREATE && s) {
		rig_fail(ERR_EXISTS);
	} else if (r->what != RECORD_CREATE && (!s || !is_newest(s, r))) {
		rig_fail(s ? ERR_ABORTED : ERR_NOT_FOUND);
	} else {
		carry_out(r);
		end(r, decode(find(r->name)), NULL);
	}
}

void rig_serve_all(void)
{
	while (rig.requests)
		rig_serve();
}

void rig_check_served(unsigned reads, unsigned creates, unsigned specs, unsigned statuses, unsigned releases)
{
	rig_serve_all();
	ck_assert_uint_eq(rig.n_reads, reads);
	ck_assert_uint_eq(rig.n_writes[RECORD_CREATE], creates);
	ck_assert_uint_eq(rig.n_writes[RECORD_SPEC], specs);
	ck_assert_uint_eq(rig.n_writes[RECORD_STATUS], statuses);
	ck_assert_uint_eq(rig.n_writes[RECORD_RELEASE], releases);
	rig.n_reads = 0;
	memset(rig.n_writes, 0, sizeof(rig.n_writes));
}

void rig_pass_s(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		rig.desk.now_ns += NS_PER_S;
		node_table_expire(rig.desk.table, rig.desk.now_ns);
		lost_nodes_tick(rig.lost);
		volume_objects_tick(rig.duty);
		while (fake_kube_count(rig.client) > 0)
			fake_kube_answer(rig.client, rig.has_node ? 200 : 404,
				rig.has_node ? "{\"metadata\":{\"name\":\"n1\"}}" : "");
	}
}

static struct node_report *dup_report(const struct node_report *from)
{
	struct node_report *r = report_new(from->node_id);

	r->has_inventory = from->has_inventory;
	r->number = from->number;
	for (size_t i = 0; i < from->n_volumes; i++) {
		const struct volume_report *v = &from->volumes[i];
		struct volume_report *copy = report_add_volume(r, v->id, v->name);

		copy->phase = v->phase;
		copy->size_bytes = v->size_bytes;
		copy->snapshot = v->snapshot;
		copy->is_inline = v->is_inline;
		copy->filling = v->filling;
		copy->pause = v->pause;
		copy->dax = v->dax;
		copy->lacks_sync = v->lacks_sync;
	}
	return r;
}

static void send_heartbeats(void)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(rig.desk.table, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->live)
			rig_put_report(dup_report(&nodes[i]->report));
	}
}

void rig_live_s(unsigned seconds)
{
	for (unsigned i = 1; i <= seconds; i++) {
		if (i % HEARTBEAT_S == 0)
			send_heartbeats();
		rig_pass_s(1);
		rig_serve_all();
	}
}
