/* SPDX-License-Identifier: Apache-2.0 */
/* The records of volumes, as an API server keeps them: requests take time, get lost before or after they have
 * been carried out, meet the writes of others, and all fail while the server is down. */
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/duties/world.h"
#include "volume/id.h"

#define REPLY_MAX_MS 20
#define TIMEOUT_NS   (8 * NS_PER_S)

struct world_record_call {
	struct world_record_call *next;
	struct world *world;
	struct volume_key key; /* of a read */
	bool is_read;
	enum volume_record_write what;
	struct pmem_volume *record; /* that is written */
	volume_record_fn fn;
	void *user;
	struct pmem_volume *reply; /* NULL with error */
	struct error *error;
	bool carried_out;
	bool done; /* its function was called */
};

static void end_call(struct world_record_call *c)
{
	struct world_record_call **at = &c->world->record_calls;
	CLEANUP(error_freep) struct error *error = TAKE_PTR(c->error);

	if (c->done)
		return;
	c->done = true;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	pmem_volume_free(TAKE_PTR(c->record));
	c->fn(c->user, TAKE_PTR(c->reply), error);
}

static void fail(struct world_record_call *c, enum err_code code, const char *why)
{
	pmem_volume_free(TAKE_PTR(c->reply));
	error_free(TAKE_PTR(c->error));
	(void)err_set(&c->error, code, "%s", why);
	end_call(c);
}

static void reply_arrives(void *user)
{
	end_call(user);
}

static void time_out(void *user)
{
	struct world_record_call *c = user;

	if (!c->done)
		fail(c, ERR_DEADLINE, "the API server does not answer");
}

static void keep_reply(void *user, struct pmem_volume *record, const struct error *error)
{
	struct world_record_call *c = user;

	c->reply = record;
	if (error)
		(void)err_set(&c->error, error->code, "%s", error->msg);
}

static void take_version(void *user, struct pmem_volume *record, const struct error *error)
{
	char **version = user;

	(void)error;
	if (record)
		*version = x_strdup(record->meta.resource_version);
	pmem_volume_free(record);
}

static void keep(void *user, struct pmem_volume *record, const struct error *error)
{
	struct pmem_volume **ret = user;

	(void)error;
	*ret = record;
}

static void make_copy(void *user, struct pmem_volume *record, const struct error *error)
{
	struct world_node *n = user;
	struct world_volume *v;
	char id[VOLUME_ID_MAX + 1];

	if (!error) {
		volume_id_mint(record->volume_name, strv_len(record->parameters) > 0 ? NULL : n->id, id);
		v = world_node_add(n, id, record->volume_name, record->size_bytes);
		v->made_by_controller = true;
		if (record->source)
			world_node_fill(n, v, world_node_find(n, record->source));
		world_node_report(n);
	}
	pmem_volume_free(record);
}

/* Acts as another replica that gets the same call: it adds a node to the record, and asks that node for the
 * volume. */
static void create_elsewhere(void *user, struct pmem_volume *record, const struct error *error)
{
	struct world *w = user;
	const struct volume_records r = memory_records_interface(w->memory_records);
	struct world_node *n = &w->nodes[world_random(w, WORLD_NODES)];

	(void)error;
	if (record && !record->deleting && !record->retained && !n->cut &&
		(!record->source || world_node_find(n, record->source)) &&
		pmem_volume_add_node(record, n->id))
		r.write(r.self, RECORD_SPEC, record, make_copy, n);
	pmem_volume_free(record);
}

static void interfere(struct world *w, const struct volume_key *key)
{
	const struct volume_records r = memory_records_interface(w->memory_records);

	r.read(r.self, key->hex, create_elsewhere, w);
}

/* Lets a write succeed that the API refuses as it is based on an old version: the record gets the newest one.
 */
static void take_newest_version(struct world *w, struct pmem_volume *v, const struct volume_key *key)
{
	const struct volume_records r = memory_records_interface(w->memory_records);
	CLEANUP(free_charp) char *version = NULL;

	r.read(r.self, key->hex, take_version, &version);
	if (!version)
		return;
	free(v->meta.resource_version);
	v->meta.resource_version = TAKE_PTR(version);
}

/* Lets the record keep its old size, as if the write did not contain it. */
static void keep_size(const struct world_record_call *c, const struct volume_records *r)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *old = NULL;

	r->read(r->self, c->key.hex, keep, &old);
	if (old)
		c->record->size_bytes = old->size_bytes;
}

static void carry_out(struct world_record_call *c)
{
	struct world *w = c->world;
	const struct volume_records r = memory_records_interface(w->memory_records);

	c->carried_out = true;
	if (c->is_read) {
		r.read(r.self, c->key.hex, keep_reply, c);
		return;
	}
	if (w->config.defect == DEFECT_VERSION && c->what != RECORD_CREATE)
		take_newest_version(w, c->record, &c->key);
	if (w->config.defect == DEFECT_FORGET)
		strv_free(TAKE_PTR(c->record->nodes));
	if (w->config.defect == DEFECT_SIZE && c->what != RECORD_CREATE)
		keep_size(c, &r);
	c->record->retained = c->record->retained && w->config.defect != DEFECT_RETAINED;
	r.write(r.self, c->what, c->record, keep_reply, c);
}

static void request_arrives(void *user)
{
	struct world_record_call *c = user;
	struct world *w = c->world;
	bool lost;

	if (c->done)
		return;
	if (w->api_down) {
		fail(c, ERR_UNAVAILABLE, "the API server is down");
		return;
	}
	if (w->config.wild && !w->calm && world_chance(w, 2))
		interfere(w, &c->key);
	lost = !w->calm && world_chance(w, 3);
	if (lost && world_chance(w, 50))
		return;
	carry_out(c);
	if (!lost)
		world_at(w, world_delay_ms(w, REPLY_MAX_MS), reply_arrives, c);
}

static struct world_record_call *begin(struct world *w, volume_record_fn fn, void *user)
{
	struct world_record_call *c = arena_alloc(w->memory, sizeof(*c));

	*c = (struct world_record_call){.world = w, .fn = fn, .user = user, .next = w->record_calls};
	w->record_calls = c;
	world_at(w, world_delay_ms(w, REPLY_MAX_MS), request_arrives, c);
	world_at(w, TIMEOUT_NS, time_out, c);
	return c;
}

static void read_record(void *self, const char *key, volume_record_fn fn, void *user)
{
	struct world_record_call *c = begin(self, fn, user);

	c->is_read = true;
	memcpy(c->key.hex, key, PMEM_VOLUME_KEY_LEN);
}

static void write_record(void *self, enum volume_record_write what, const struct pmem_volume *record,
	volume_record_fn fn, void *user)
{
	struct world_record_call *c = begin(self, fn, user);

	c->what = what;
	c->record = pmem_volume_dup(record);
	memcpy(c->key.hex, record->meta.name, PMEM_VOLUME_KEY_LEN);
}

struct volume_records world_records(struct world *w)
{
	return (struct volume_records){.read = read_record, .write = write_record, .self = w};
}

void world_records_drop_all(struct world *w)
{
	while (w->record_calls) {
		struct world_record_call *c = w->record_calls;

		if (!c->carried_out && world_chance(w, 50))
			carry_out(c);
		fail(c, ERR_CANCELLED, "the controller ends");
	}
}

struct pmem_volume *world_record_of(struct world *w, const char *handle, const char *name)
{
	const struct volume_records r = memory_records_interface(w->memory_records);
	struct volume_key key = *name ? volume_key_of_name(name) : volume_key_of_handle(handle);
	struct pmem_volume *record = NULL;

	r.read(r.self, key.hex, keep, &record);
	return record;
}

/* An informer that is up to date: what is on no node is of no interest to the duty. */
static void each_record(void *self, void (*fn)(void *user, const struct pmem_volume *record), void *user)
{
	struct world *w = self;

	for (size_t i = 0; i < WORLD_NODES; i++) {
		for (size_t k = 0; k < w->nodes[i].n_volumes; k++) {
			CLEANUP(pmem_volume_freep)
			struct pmem_volume *record = world_record_of(w, w->nodes[i].volumes[k].id, "");

			if (record)
				fn(user, record);
		}
	}
}

struct record_list world_record_list(struct world *w)
{
	return (struct record_list){.each = each_record, .self = w};
}

static void reported(void *user, struct pmem_volume *record, const struct error *error)
{
	if (error)
		world_break(user, "no record was made of a report: %s", error->msg);
	pmem_volume_free(record);
}

/* As the leader does for a volume that a node reports and no record knows. */
void world_record_report(struct world *w, const char *handle, const char *name, const char *node_id)
{
	const struct volume_records r = memory_records_interface(w->memory_records);
	struct volume_key key = volume_key_of_handle(handle);
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = pmem_volume_new(key.hex, WORLD_DRIVER);

	if (w->config.defect != DEFECT_ORIGIN)
		v->origin = x_strdup(PMEM_VOLUME_REPORTED);
	v->volume_name = x_strdup(name);
	v->size_bytes = WORLD_UNIT / 16;
	pmem_volume_add_node(v, node_id);
	r.write(r.self, RECORD_CREATE, v, reported, w);
}

static void come_up(void *user)
{
	struct world *w = user;

	w->api_down = false;
}

void world_api_down(struct world *w, uint64_t duration_ns)
{
	w->api_down = true;
	world_at(w, duration_ns, come_up, w);
}
