/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/duties/node_objects_rig.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/kube/fake_kube.h"
#include "unit/nodes/fake_cluster_nodes.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"

struct rig rig;

static uint64_t get_now(void *user)
{
	ck_assert_ptr_eq(user, &rig.now);
	return rig.now;
}

static bool cluster_ready(void *self)
{
	(void)self;
	return rig.cluster_known;
}

static bool cluster_has(void *self, const char *node_id)
{
	(void)self;
	ck_assert_int_eq(node_id[0], 'n');
	return rig.node_exists;
}

static struct cluster_nodes cluster = {.ready = cluster_ready, .has = cluster_has};

static void shown(void *user, const char *node_id)
{
	ck_assert_ptr_eq(user, &rig);
	ck_assert_int_eq(node_id[0], 'n');
	rig.n_shown++;
}

static const char *recorded(void *user, const struct node *node, const char *before)
{
	ck_assert_ptr_eq(user, &rig);
	ck_assert_ptr_nonnull(node);
	return rig.keeps_recorded ? before : rig.recorded_until;
}

static void begin_duty(void)
{
	const struct node_objects_config config = {.client = rig.client,
		.driver_name = RIG_DRIVER,
		.nodes = rig.nodes,
		.cluster = &cluster,
		.shown = shown,
		.shown_user = &rig,
		.recorded = recorded,
		.recorded_user = &rig,
		.now_ns = get_now,
		.user = &rig.now};

	rig.duty = node_objects_new(&config);
	rig.objects = fake_kube_informer(rig.client, "pmemnodes");
	ck_assert_ptr_nonnull(rig.objects);
}

void rig_set_up(void)
{
	rig.now = 1000000 * NS_PER_S;
	rig.cluster_known = rig.node_exists = true;
	rig.client = fake_kube_new(/* loop= */ NULL);
	rig.nodes = node_table_new();
	begin_duty();
}

static void stored_free(struct rig_object *s)
{
	free(s->name);
	free(s->spec);
	free(s->status);
	free(s);
}

void rig_tear_down(void)
{
	node_objects_free(rig.duty);
	node_table_free(rig.nodes);
	kube_client_free(rig.client);
	while (rig.store) {
		struct rig_object *s = rig.store;

		rig.store = s->next;
		stored_free(s);
	}
}

struct rig_object *rig_find(const char *name)
{
	struct rig_object *s = rig.store;

	while (s && !str_eq(s->name, name))
		s = s->next;
	return s;
}

/* Another replica leads now, with which no node has registered yet. */
void rig_change_leader(void)
{
	node_objects_free(rig.duty);
	node_table_free(rig.nodes);
	rig.nodes = node_table_new();
	begin_duty();
}

void rig_show(const struct rig_object *s)
{
	CLEANUP(free_charp)
	char *json = x_asprintf("%s%s%s", s->spec, s->status ? "," : "", s->status ? s->status : "}");

	fake_informer_put(rig.objects, json);
}

void rig_show_all(void)
{
	for (const struct rig_object *s = rig.store; s; s = s->next)
		rig_show(s);
}

static void apply_spec(const char *name, const char *body)
{
	struct rig_object *s = rig_find(name);

	if (!s) {
		s = x_calloc(1, sizeof(*s));
		s->name = x_strdup(name);
		s->next = rig.store;
		rig.store = s;
	}
	free(s->spec);
	s->spec = x_strndup(body, strlen(body) - 1);
	rig.n_specs++;
	fake_kube_answer(rig.client, 200, "{}");
	if (!rig.lagging)
		rig_show(s);
}

static void apply_status(const char *name, const char *body)
{
	struct rig_object *s = rig_find(name);

	rig.n_statuses++;
	if (!s) {
		fake_kube_answer(rig.client, 404, NULL);
		return;
	}
	free(s->status);
	s->status = x_strdup(strstr(body, "\"status\":"));
	fake_kube_answer(rig.client, 200, "{}");
	if (!rig.lagging)
		rig_show(s);
}

static void delete_stored(const char *name)
{
	struct rig_object **at = &rig.store;
	struct rig_object *s = rig_find(name);

	rig.n_deletes++;
	fake_kube_answer(rig.client, s ? 200 : 404, "{}");
	if (!s)
		return;
	while (*at != s)
		at = &(*at)->next;
	*at = s->next;
	if (!rig.lagging)
		fake_informer_remove(rig.objects, name);
	stored_free(s);
}

/* Serve the oldest request. */
void rig_serve_one(void)
{
	const struct fake_request *r = fake_kube_next(rig.client);
	CLEANUP(free_charp) char *path = x_strdup(r->path);
	CLEANUP(free_charp) char *body = x_strdup(r->body);
	char *name = path + strlen(RIG_COLLECTION);
	char *rest = name + strcspn(name, "/?");
	bool is_status = strncmp(rest, "/status", strlen("/status")) == 0;
	bool deletes = str_eq(r->method, "DELETE");

	ck_assert_int_eq(strncmp(path, RIG_COLLECTION, strlen(RIG_COLLECTION)), 0);
	ck_assert_str_eq(rest, deletes ? "" : is_status ? "/status" RIG_QUERY : RIG_QUERY);
	ck_assert_str_eq(r->content_type, deletes ? "" : "application/apply-patch+yaml");
	*rest = '\0';
	if (deletes)
		delete_stored(name);
	else if (is_status)
		apply_status(name, body);
	else
		apply_spec(name, body);
}

void rig_serve_all(void)
{
	while (fake_kube_count(rig.client) > 0)
		rig_serve_one();
}

void rig_begin_count(void)
{
	rig.n_specs = rig.n_statuses = rig.n_deletes = 0;
}

void rig_assert_written(unsigned specs, unsigned statuses, unsigned deletes)
{
	rig_serve_all();
	ck_assert_uint_eq(rig.n_specs, specs);
	ck_assert_uint_eq(rig.n_statuses, statuses);
	ck_assert_uint_eq(rig.n_deletes, deletes);
	rig_begin_count();
}

/* Time goes on; nothing is answered. */
void rig_wait_s(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		rig.now += NS_PER_S;
		node_objects_tick(rig.duty);
	}
}

/* As long as no write has to wait. */
void rig_let_pass_s(unsigned seconds)
{
	for (unsigned i = 0; i < seconds; i++) {
		rig_wait_s(1);
		rig_serve_all();
	}
}

void rig_put(const char *id, uint64_t number)
{
	struct node_report *r = report_new(id);

	r->number = number;
	node_table_put(rig.nodes, r, rig.now);
}

void rig_status_has(const char *name, const char *text)
{
	const struct rig_object *s = rig_find(name);

	ck_assert_ptr_nonnull(s);
	ck_assert_ptr_nonnull(s->status);
	ck_assert_msg(strstr(s->status, text), "%s is not in %s", text, s->status);
}

void rig_condition_is(const char *type, const char *status, const char *reason)
{
	CLEANUP(free_charp)
	char *text = x_asprintf(
		"{\"type\":\"%s\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":\"", type, status, reason);

	rig_status_has("n1.pmem", text);
}

/* Put @to over @from, which is as long, in the object of n1, and let the watch show it. */
void rig_change_by_hand(const char *from, const char *to)
{
	struct rig_object *s = rig_find("n1.pmem");
	char *at = strstr(s->status, from);

	ck_assert_uint_eq(strlen(from), strlen(to));
	if (!at)
		at = strstr(s->spec, from);
	ck_assert_ptr_nonnull(at);
	memcpy(at, to, strlen(to));
	rig_show(s);
}

/* One node, whose object shows its report, and nothing is in its interval. */
void rig_publish(void)
{
	fake_informer_sync(rig.objects);
	rig_put("n1", 1);
	rig_serve_all();
	rig_let_pass_s(11);
	rig_begin_count();
}

void rig_lose(void)
{
	struct rig_object *s = rig.store;

	rig.store = s->next;
	fake_informer_remove(rig.objects, s->name);
	stored_free(s);
}
