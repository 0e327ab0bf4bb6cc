/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a state file: reading and writing JSON. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "volume/state.h"

static int read_map(struct json_reader *r, struct strmap *out, struct error **err)
{
	struct json_event ev;

	if (json_next(r, &ev, err) < 0)
		return -1;
	/* encoding/json writes a nil map as null */
	if (ev.type == JSON_NULL)
		return 0;
	if (ev.type != JSON_OBJECT)
		return err_set(err, ERR_INVALID_ARGUMENT, "not an object of strings");
	for (;;) {
		CLEANUP(free_charp) char *key = NULL;

		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_OBJECT_END)
			return 0;
		key = x_strdup(ev.text);
		if (json_expect(r, JSON_STRING, &ev, err) < 0)
			return -1;
		strmap_set(out, key, ev.text);
	}
}

static int keep_unknown(struct json_reader *r, const char *key, struct buf *unknown, struct error **err)
{
	struct json_writer w = JSON_WRITER(unknown);
	struct json_event ev;

	if (json_next(r, &ev, err) < 0)
		return -1;
	w.comma = unknown->len > 0;
	json_key(&w, key);
	return json_copy(r, &ev, &w, err);
}

/* Nothing depends on it: what is no string is as if it were not there, and the record stays good. */
static int read_name(struct json_reader *r, char **ret, struct error **err)
{
	struct json_event ev;

	if (json_next(r, &ev, err) < 0)
		return -1;
	free(TAKE_PTR(*ret));
	if (ev.type != JSON_STRING)
		return json_skip(r, &ev, err);
	*ret = x_strdup(ev.text);
	return 0;
}

static int read_claim(struct json_reader *r, const char *key, struct volume_claim *c, struct buf *unknown,
	struct error **err)
{
	if (str_eq(key, "claimNamespace"))
		return read_name(r, &c->namespace, err);
	if (str_eq(key, "claimName"))
		return read_name(r, &c->name, err);
	if (str_eq(key, "pvName"))
		return read_name(r, &c->pv, err);
	if (str_eq(key, "podNamespace"))
		return read_name(r, &c->pod_namespace, err);
	if (str_eq(key, "podName"))
		return read_name(r, &c->pod, err);
	return keep_unknown(r, key, unknown, err);
}

static int read_member(struct json_reader *r, const char *key, struct volume_record *rec, struct buf *unknown,
	struct error **err)
{
	if (str_eq(key, "id"))
		return json_read_str(r, &rec->id, err);
	if (str_eq(key, "size"))
		return json_read_u64(r, &rec->size_bytes, err);
	if (str_eq(key, "parameters"))
		return read_map(r, &rec->parameters, err);
	if (str_eq(key, "identity"))
		return json_read_str(r, &rec->identity, err);
	if (str_eq(key, "adopted"))
		return json_read_bool(r, &rec->adopted, err);
	if (str_eq(key, "pool"))
		return json_read_str(r, &rec->pool, err);
	if (str_eq(key, "fsType"))
		return json_read_str(r, &rec->fs_type, err);
	if (str_eq(key, "blockClean"))
		return json_read_bool(r, &rec->block_clean, err);
	if (str_eq(key, "erasedBytes"))
		return json_read_u64(r, &rec->erased_bytes, err);
	if (str_eq(key, "erasedRaw"))
		return json_read_bool(r, &rec->erased_raw, err);
	if (str_eq(key, "fsUUID"))
		return json_read_str(r, &rec->fs_uuid, err);
	if (str_eq(key, "formatting"))
		return json_read_bool(r, &rec->formatting, err);
	if (str_eq(key, "stagedEver"))
		return json_read_bool(r, &rec->staged_ever, err);
	if (str_eq(key, "madeByController"))
		return json_read_bool(r, &rec->by_controller, err);
	if (str_eq(key, "stagingPath"))
		return json_read_str(r, &rec->staging_path, err);
	if (str_eq(key, "stagedBlock"))
		return json_read_bool(r, &rec->staged_block, err);
	if (str_eq(key, "stagedFlags"))
		return json_read_strv(r, &rec->staged_flags, err);
	if (str_eq(key, "targets"))
		return json_read_strv(r, &rec->targets, err);
	return read_claim(r, key, &rec->claim, unknown, err);
}

static int read_record(
	struct json_reader *r, struct volume_record *rec, struct buf *unknown, struct error **err)
{
	struct json_event ev;

	if (json_expect(r, JSON_OBJECT, &ev, err) < 0)
		return -1;
	for (;;) {
		CLEANUP(free_charp) char *key = NULL;

		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type == JSON_OBJECT_END)
			break;
		key = x_strdup(ev.text);
		if (read_member(r, key, rec, unknown, err) < 0)
			return err_wrap(err, "\"%s\"", key);
	}
	return json_expect(r, JSON_END, &ev, err);
}

int state_parse(struct span text, struct volume_record **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *rec = x_calloc(1, sizeof(*rec));
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(text);
	CLEANUP(buf_done) struct buf unknown = BUF_INIT(STATE_MAX_BYTES);

	if (text.n > STATE_MAX_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "longer than %d bytes", STATE_MAX_BYTES);
	if (read_record(r, rec, &unknown, err) < 0)
		return -1;
	if (buf_check(&unknown, "unknown members", err) < 0)
		return -1;
	if (!rec->id || !*rec->id)
		return err_set(err, ERR_INVALID_ARGUMENT, "\"id\" is missing");
	claim_check(&rec->claim);
	if (unknown.len > 0)
		rec->unknown_json = x_strdup(buf_str(&unknown));
	rec->phase = PHASE_READY;
	*ret = TAKE_PTR(rec);
	return 0;
}

static void write_strings(struct json_writer *w, const char *key, char *const *strings)
{
	if (strv_len(strings) == 0)
		return;
	json_key(w, key);
	json_array(w);
	for (size_t i = 0; strings[i]; i++)
		json_str(w, strings[i]);
	json_array_end(w);
}

static void write_claim(struct json_writer *w, const struct volume_claim *c)
{
	if (c->name) {
		json_key_str(w, "claimNamespace", c->namespace);
		json_key_str(w, "claimName", c->name);
	}
	if (c->pv)
		json_key_str(w, "pvName", c->pv);
	if (c->pod) {
		json_key_str(w, "podNamespace", c->pod_namespace);
		json_key_str(w, "podName", c->pod);
	}
}

static void write_ours(struct json_writer *w, const struct volume_record *r)
{
	if (r->identity)
		json_key_str(w, "identity", r->identity);
	if (r->adopted)
		json_key_bool(w, "adopted", true);
	if (r->pool)
		json_key_str(w, "pool", r->pool);
	if (r->fs_type)
		json_key_str(w, "fsType", r->fs_type);
	if (r->block_clean)
		json_key_bool(w, "blockClean", true);
	if (r->erased_bytes > 0)
		json_key_u64(w, "erasedBytes", r->erased_bytes);
	if (r->erased_raw)
		json_key_bool(w, "erasedRaw", true);
	if (r->fs_uuid)
		json_key_str(w, "fsUUID", r->fs_uuid);
	if (r->formatting)
		json_key_bool(w, "formatting", true);
	if (r->staged_ever)
		json_key_bool(w, "stagedEver", true);
	if (r->by_controller)
		json_key_bool(w, "madeByController", true);
	if (r->staging_path)
		json_key_str(w, "stagingPath", r->staging_path);
	if (r->staged_block)
		json_key_bool(w, "stagedBlock", true);
	write_strings(w, "stagedFlags", r->staged_flags);
	write_strings(w, "targets", r->targets);
	write_claim(w, &r->claim);
}

int state_format(const struct volume_record *r, struct buf *out, struct error **err)
{
	struct json_writer w = JSON_WRITER(out);

	json_object(&w);
	json_key_str(&w, "id", r->id);
	json_key_u64(&w, "size", r->size_bytes);
	json_key(&w, "parameters");
	json_object(&w);
	for (size_t i = 0; i < r->parameters.n; i++)
		json_key_str(&w, r->parameters.entries[i].key, r->parameters.entries[i].value);
	json_object_end(&w);
	write_ours(&w, r);
	if (r->unknown_json) {
		buf_addc(out, ',');
		buf_adds(out, r->unknown_json);
	}
	json_object_end(&w);
	buf_addc(out, '\n');
	return buf_check(out, "volume state", err);
}
