/* SPDX-License-Identifier: Apache-2.0 */
/* The state folder, and the content of its files as JSON. */
#include "volume/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/sorted.h"
#include "base/str.h"
#include "os/file.h"
#include "os/lock.h"
#include "volume/id.h"
#include "volume/params.h"

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

static int read_direct(struct json_reader *r, const char *key, struct volume_record *rec, struct buf *unknown,
	struct error **err)
{
	if (str_eq(key, PARAMS_DIRECT))
		return json_read_bool(r, &rec->direct, err);
	if (str_eq(key, "fsyncSuffices"))
		return json_read_bool(r, &rec->fsync_suffices, err);
	if (str_eq(key, "directEntry"))
		return json_read_str(r, &rec->direct_entry, err);
	if (str_eq(key, "directDevice"))
		return json_read_str(r, &rec->direct_device, err);
	if (str_eq(key, "sandboxes"))
		return json_read_strv(r, &rec->sandboxes, err);
	if (str_eq(key, "sandboxBoot"))
		return json_read_str(r, &rec->sandbox_boot, err);
	return read_claim(r, key, &rec->claim, unknown, err);
}

static int read_copy(struct json_reader *r, const char *key, struct volume_record *rec, struct buf *unknown,
	struct error **err)
{
	if (str_eq(key, "source"))
		return json_read_str(r, &rec->source, err);
	if (str_eq(key, "sourceIsSnapshot"))
		return json_read_bool(r, &rec->source_is_snapshot, err);
	if (str_eq(key, "copyShows"))
		return json_read_bool(r, &rec->copy_shows, err);
	if (str_eq(key, "copyMarked"))
		return json_read_bool(r, &rec->copy_marked, err);
	if (str_eq(key, "snapshot"))
		return json_read_bool(r, &rec->snapshot, err);
	if (str_eq(key, "taken"))
		return json_read_u64(r, &rec->taken_s, err);
	if (str_eq(key, "group"))
		return json_read_str(r, &rec->group, err);
	if (str_eq(key, "groupSize"))
		return json_read_u64(r, &rec->group_size, err);
	return read_direct(r, key, rec, unknown, err);
}

static int read_member(struct json_reader *r, const char *key, struct volume_record *rec, struct buf *unknown,
	struct error **err)
{
	if (str_eq(key, "id"))
		return json_read_str(r, &rec->id, err);
	if (str_eq(key, "size"))
		return json_read_u64(r, &rec->size_bytes, err);
	if (str_eq(key, "resizing"))
		return json_read_u64(r, &rec->resizing_bytes, err);
	if (str_eq(key, "imageBytes"))
		return json_read_u64(r, &rec->image_bytes, err);
	if (str_eq(key, "freezing"))
		return json_read_bool(r, &rec->freezing, err);
	if (str_eq(key, "suspending"))
		return json_read_bool(r, &rec->suspending, err);
	if (str_eq(key, "eraseBandwidth"))
		return json_read_u64(r, &rec->erase_bytes_per_s, err);
	if (str_eq(key, "copyBandwidth"))
		return json_read_u64(r, &rec->copy_bytes_per_s, err);
	if (str_eq(key, "modified"))
		return json_read_strv(r, &rec->modified, err);
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
	if (str_eq(key, "writtenEndBytes"))
		return json_read_u64(r, &rec->written_end_bytes, err);
	if (str_eq(key, "erasedRaw"))
		return json_read_bool(r, &rec->erased_raw, err);
	if (str_eq(key, "fsUUID"))
		return json_read_str(r, &rec->fs_uuid, err);
	if (str_eq(key, "formatting"))
		return json_read_bool(r, &rec->formatting, err);
	if (str_eq(key, "stagedEver"))
		return json_read_bool(r, &rec->ever_staged, err);
	if (str_eq(key, "madeByController"))
		return json_read_bool(r, &rec->made_by_controller, err);
	if (str_eq(key, "stagingPath"))
		return json_read_str(r, &rec->staging_path, err);
	if (str_eq(key, "stagedBlock"))
		return json_read_bool(r, &rec->staged_block, err);
	if (str_eq(key, "stagedFlags"))
		return json_read_strv(r, &rec->staged_flags, err);
	if (str_eq(key, "stagedUsage"))
		return json_read_str(r, &rec->staged_usage, err);
	if (str_eq(key, "targets"))
		return json_read_strv(r, &rec->targets, err);
	return read_copy(r, key, rec, unknown, err);
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

static void write_direct(struct json_writer *w, const struct volume_record *r)
{
	if (r->direct)
		json_key_bool(w, PARAMS_DIRECT, true);
	if (r->fsync_suffices)
		json_key_bool(w, "fsyncSuffices", true);
	json_key_known(w, "directEntry", r->direct_entry);
	json_key_known(w, "directDevice", r->direct_device);
	write_strings(w, "sandboxes", r->sandboxes);
	json_key_known(w, "sandboxBoot", r->sandbox_boot);
}

static void write_erasing(struct json_writer *w, const struct volume_record *r)
{
	if (r->erased_bytes > 0)
		json_key_u64(w, "erasedBytes", r->erased_bytes);
	if (r->written_end_bytes > 0)
		json_key_u64(w, "writtenEndBytes", r->written_end_bytes);
	if (r->erased_raw)
		json_key_bool(w, "erasedRaw", true);
}

static void write_copy(struct json_writer *w, const struct volume_record *r)
{
	if (r->source)
		json_key_str(w, "source", r->source);
	if (r->source_is_snapshot)
		json_key_bool(w, "sourceIsSnapshot", true);
	if (r->copy_shows)
		json_key_bool(w, "copyShows", true);
	if (r->copy_marked)
		json_key_bool(w, "copyMarked", true);
	if (r->snapshot)
		json_key_bool(w, "snapshot", true);
	if (r->taken_s > 0)
		json_key_u64(w, "taken", r->taken_s);
	if (r->group) {
		json_key_str(w, "group", r->group);
		json_key_u64(w, "groupSize", r->group_size);
	}
}

static void write_ours(struct json_writer *w, const struct volume_record *r)
{
	if (r->identity)
		json_key_str(w, "identity", r->identity);
	if (r->resizing_bytes > 0)
		json_key_u64(w, "resizing", r->resizing_bytes);
	write_copy(w, r);
	if (r->image_bytes > 0)
		json_key_u64(w, "imageBytes", r->image_bytes);
	if (r->freezing)
		json_key_bool(w, "freezing", true);
	if (r->suspending)
		json_key_bool(w, "suspending", true);
	if (r->erase_bytes_per_s > 0)
		json_key_u64(w, "eraseBandwidth", r->erase_bytes_per_s);
	if (r->copy_bytes_per_s > 0)
		json_key_u64(w, "copyBandwidth", r->copy_bytes_per_s);
	write_strings(w, "modified", r->modified);
	if (r->adopted)
		json_key_bool(w, "adopted", true);
	if (r->pool)
		json_key_str(w, "pool", r->pool);
	if (r->fs_type)
		json_key_str(w, "fsType", r->fs_type);
	if (r->block_clean)
		json_key_bool(w, "blockClean", true);
	write_erasing(w, r);
	if (r->fs_uuid)
		json_key_str(w, "fsUUID", r->fs_uuid);
	if (r->formatting)
		json_key_bool(w, "formatting", true);
	if (r->ever_staged)
		json_key_bool(w, "stagedEver", true);
	if (r->made_by_controller)
		json_key_bool(w, "madeByController", true);
	if (r->staging_path)
		json_key_str(w, "stagingPath", r->staging_path);
	if (r->staged_block)
		json_key_bool(w, "stagedBlock", true);
	write_strings(w, "stagedFlags", r->staged_flags);
	if (r->staged_usage)
		json_key_str(w, "stagedUsage", r->staged_usage);
	write_strings(w, "targets", r->targets);
	write_direct(w, r);
	claim_write_json(&r->claim, w);
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

#define STATE_DIR_MODE  0750
#define STATE_FILE_MODE 0600
#define STATE_LOCK_NAME ".lock"
/* A file of the usual size and its successor. */
#define ROOM_MIN_BYTES 8192

struct state_store {
	int dir_fd;
	int lock_fd; /* -1: open for reading alone */
	char *path;
};

static const char *const phase_suffix[] = {
	[PHASE_CREATING] = ".creating",
	[PHASE_READY] = ".json",
	[PHASE_ERASING] = ".erasing",
};
/* Suffix of the state file of a snapshot, in place of ".json". */
#define SNAPSHOT_SUFFIX ".snapshot"

void volume_record_free(struct volume_record *r)
{
	if (!r)
		return;
	free(r->id);
	strmap_done(&r->parameters);
	free(r->identity);
	free(r->pool);
	free(r->source);
	free(r->group);
	free(r->fs_type);
	free(r->fs_uuid);
	strv_free(r->modified);
	free(r->staging_path);
	strv_free(r->staged_flags);
	free(r->staged_usage);
	strv_free(r->targets);
	free(r->direct_entry);
	free(r->direct_device);
	strv_free(r->sandboxes);
	free(r->sandbox_boot);
	claim_done(&r->claim);
	free(r->unknown_json);
	free(r);
}

static char **dup_strings(char *const *strings)
{
	char **copy = NULL;

	for (size_t i = 0; strings && strings[i]; i++)
		strv_add(&copy, strings[i]);
	return copy;
}

struct volume_record *volume_record_dup(const struct volume_record *r)
{
	struct volume_record *copy = x_malloc(sizeof(*copy));

	*copy = *r;
	copy->id = x_strdup(r->id);
	copy->parameters = (struct strmap){0};
	strmap_copy(&copy->parameters, &r->parameters);
	copy->identity = x_strdup(r->identity);
	copy->pool = x_strdup(r->pool);
	copy->source = x_strdup(r->source);
	copy->group = x_strdup(r->group);
	copy->fs_type = x_strdup(r->fs_type);
	copy->fs_uuid = x_strdup(r->fs_uuid);
	copy->modified = dup_strings(r->modified);
	copy->staging_path = x_strdup(r->staging_path);
	copy->staged_flags = dup_strings(r->staged_flags);
	copy->staged_usage = x_strdup(r->staged_usage);
	copy->targets = dup_strings(r->targets);
	copy->direct_entry = x_strdup(r->direct_entry);
	copy->direct_device = x_strdup(r->direct_device);
	copy->sandboxes = dup_strings(r->sandboxes);
	copy->sandbox_boot = x_strdup(r->sandbox_boot);
	claim_copy(&r->claim, &copy->claim);
	copy->unknown_json = x_strdup(r->unknown_json);
	return copy;
}

bool volume_record_is_volume(const struct volume_record *r)
{
	return r->phase == PHASE_READY && !r->snapshot;
}

bool volume_record_is_inline(const struct volume_record *r)
{
	return str_eq(strmap_get(&r->parameters, "persistencyModel"), "ephemeral");
}

bool volume_record_may_hold_data(const struct volume_record *r)
{
	return r->ever_staged || !r->identity || r->adopted || r->source;
}

bool volume_record_is_taken_over(const struct volume_record *r)
{
	return !r->identity && !r->adopted;
}

bool volume_record_is_foreign(const struct volume_record *r)
{
	return r->adopted && !volume_id_has_minted_form(r->id);
}

bool volume_record_may_be_block(const struct volume_record *r)
{
	return !r->direct && (r->block_clean || volume_record_is_taken_over(r));
}

bool volume_record_is_block_only(const struct volume_record *r)
{
	return !r->direct && r->block_clean && !r->fs_type;
}

bool volume_record_is_seen_raw(const struct volume_record *r)
{
	return r->direct || volume_record_may_be_block(r);
}

bool state_refuses(const struct error *err)
{
	return err->os_errno == ENOSPC || err->os_errno == EDQUOT || err->os_errno == EROFS ||
	       err->os_errno == EIO;
}

/* A call about a volume that is here is to be made again here, whatever happened to the folder:
 * external-provisioner gives up the node for RESOURCE_EXHAUSTED. */
static int fail(struct error **err, const char *what, const char *name)
{
	bool removed = (*err)->os_errno == ENOENT && (*err)->code == ERR_INTERNAL;

	if (state_refuses(*err) || removed)
		err_recode(err, ERR_UNAVAILABLE);
	return err_wrap(err, "%s %s", what, name);
}

static int fail_volume(const struct state_store *s, const struct volume_record *r, struct error **err)
{
	CLEANUP(free_charp) char *where = x_asprintf("%s in %s", r->id, s->path);

	return fail(err, "state of volume", where);
}

static const char *suffix_in(const struct volume_record *r, enum volume_phase phase)
{
	return phase == PHASE_READY && r->snapshot ? SNAPSHOT_SUFFIX : phase_suffix[phase];
}

/* The name of its file when it is in @phase. */
static char *file_name(const struct volume_record *r, enum volume_phase phase)
{
	return x_asprintf("%s%s", r->id, suffix_in(r, phase));
}

int state_open(const char *path, struct state_store **ret, struct error **err)
{
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(fd_closep) int lock_fd = -1;

	if (dir_open(path, /* create= */ true, STATE_DIR_MODE, &dir_fd, err) < 0)
		return fail(err, "state folder", path);
	if (host_lock(dir_fd, STATE_LOCK_NAME, /* timeout_ms= */ 0, &lock_fd, err) < 0)
		return fail(err, "state folder", path);
	struct state_store *s = x_malloc(sizeof(*s));
	*s = (struct state_store){
		.dir_fd = TAKE_FD(dir_fd), .lock_fd = TAKE_FD(lock_fd), .path = x_strdup(path)};
	*ret = s;
	return 0;
}

int state_open_read(const char *path, struct state_store **ret, struct error **err)
{
	int dir_fd = -1;

	if (dir_open(path, /* create= */ false, 0, &dir_fd, err) < 0)
		return fail(err, "state folder", path);
	struct state_store *s = x_malloc(sizeof(*s));
	*s = (struct state_store){.dir_fd = dir_fd, .lock_fd = -1, .path = x_strdup(path)};
	*ret = s;
	return 0;
}

void state_close(struct state_store *s)
{
	if (!s)
		return;
	close(s->dir_fd);
	fd_closep(&s->lock_fd);
	free(s->path);
	free(s);
}

/* Return: the new one, until the next is added. */
static struct state_problem *add_problem(
	struct state_content *c, enum state_problem_kind kind, const char *file, const char *reason)
{
	c->problems = x_realloc(c->problems, c->n_problems + 1, sizeof(*c->problems));
	c->problems[c->n_problems] =
		(struct state_problem){.kind = kind, .file = x_strdup(file), .reason = x_strdup(reason)};
	return &c->problems[c->n_problems++];
}

/* Whether an id stands before @suffix in @name. */
static bool ends_in(const char *name, const char *suffix, size_t *ret_id_len)
{
	if (name[0] == '.' || !str_ends(name, suffix))
		return false;
	*ret_id_len = strlen(name) - strlen(suffix);
	return *ret_id_len > 0;
}

/* Whether @name is a volume's file; then its id's length and its phase are returned. */
static bool is_volume_file(const char *name, size_t *ret_id_len, enum volume_phase *ret_phase)
{
	for (size_t i = 0; i < ARRAY_SIZE(phase_suffix); i++) {
		*ret_phase = (enum volume_phase)i;
		if (ends_in(name, phase_suffix[i], ret_id_len))
			return true;
	}
	*ret_phase = PHASE_READY;
	return ends_in(name, SNAPSHOT_SUFFIX, ret_id_len);
}

bool state_file_is_snapshot(const char *file)
{
	size_t ignored;

	return ends_in(file, SNAPSHOT_SUFFIX, &ignored);
}

bool state_file_is_ready(const char *file)
{
	enum volume_phase phase;
	size_t ignored;

	return is_volume_file(file, &ignored, &phase) && phase == PHASE_READY;
}

static int load_file(struct state_store *s, const char *name, size_t id_len, enum volume_phase phase,
	struct volume_record **ret, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
	CLEANUP(volume_record_freep) struct volume_record *rec = NULL;

	if (file_read(s->dir_fd, name, &text, err) < 0)
		return -1;
	if (state_parse(buf_span(&text), &rec, err) < 0)
		return -1;
	if (strlen(rec->id) != id_len || memcmp(rec->id, name, id_len) != 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "the file has the name of a volume other than %s",
			rec->id);
	if (!volume_id_valid(rec->id))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is not a valid volume ID", rec->id);
	rec->phase = phase;
	if (!str_ends(name, suffix_in(rec, phase)))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the file describes a %s, whose name ends with \"%s\"", volume_noun(rec->snapshot),
			suffix_in(rec, phase));
	*ret = TAKE_PTR(rec);
	return 0;
}

static int order_record(const void *element, const void *key)
{
	const struct volume_record *const *r = element;

	return strcmp((*r)->id, key);
}

/* Names of files come sorted, so that a new record belongs near the end as a rule. */
static void add_record(struct state_content *c, struct volume_record *rec)
{
	bool found;
	size_t at = sorted_find(
		c->records, c->n_records, sizeof(struct volume_record *), rec->id, order_record, &found);
	struct volume_record *loser = rec;

	if (!found) {
		c->records = x_realloc(c->records, c->n_records + 1, sizeof(struct volume_record *));
		memmove(&c->records[at + 1], &c->records[at],
			(c->n_records - at) * sizeof(struct volume_record *));
		c->records[at] = rec;
		c->n_records++;
		return;
	}
	if (rec->phase == PHASE_READY) {
		loser = c->records[at];
		c->records[at] = rec;
	}
	CLEANUP(free_charp) char *name = file_name(loser, loser->phase);
	add_problem(c, STATE_TWIN, name, "another file of the same volume is used")->record = loser;
}

/* Whether this process lacked a resource, so that nothing is known of the file. */
static bool is_shortage(const struct error *err)
{
	return err->os_errno == EMFILE || err->os_errno == ENFILE || err->os_errno == ENOMEM;
}

/* The Go driver's, since 1.0, are in the way of its own next write of that volume. */
static bool is_foreign_temporary(const char *name)
{
	return name[0] != '.' && str_ends(name, ".json.tmp");
}

static void load_temporary(struct state_store *s, const char *name, struct state_content *c)
{
	CLEANUP(error_freep) struct error *problem = NULL;

	if (s->lock_fd < 0)
		add_problem(c, STATE_TEMPORARY, name, "writing it was interrupted");
	else if (!is_foreign_temporary(name) && file_unlink_durable(s->dir_fd, name, &problem) < 0)
		add_problem(c, STATE_TEMPORARY, name, problem->msg);
}

static int load_entry(struct state_store *s, const char *name, struct state_content *c, struct error **err)
{
	CLEANUP(error_freep) struct error *problem = NULL;
	struct volume_record *rec = NULL;
	enum volume_phase phase;
	size_t id_len;

	/* what file_write_atomic() was about to write when it was stopped */
	if (is_foreign_temporary(name) || (name[0] == '.' && str_ends(name, ".tmp"))) {
		load_temporary(s, name, c);
		return 0;
	}
	if (!is_volume_file(name, &id_len, &phase))
		return 0;
	if (load_file(s, name, id_len, phase, &rec, &problem) == 0) {
		add_record(c, rec);
		return 0;
	}
	if (is_shortage(problem)) {
		*err = TAKE_PTR(problem);
		return -1;
	}
	/* renamed or removed since the folder was listed: by a driver that runs meanwhile */
	if (s->lock_fd < 0 && problem->code == ERR_NOT_FOUND)
		return 0;
	add_problem(c, STATE_DAMAGED, name, problem->msg)->id = x_strndup(name, id_len);
	return 0;
}

int state_load(struct state_store *s, struct state_content *ret, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(state_content_done) struct state_content c = {0};

	if (dir_list(s->dir_fd, &names, err) < 0)
		return fail(err, "state folder", s->path);
	for (size_t i = 0; names[i]; i++) {
		if (load_entry(s, names[i], &c, err) < 0)
			return fail(err, "state folder", s->path);
	}
	*ret = c;
	c = (struct state_content){0};
	return 0;
}

void state_content_done(struct state_content *c)
{
	for (size_t i = 0; i < c->n_records; i++)
		volume_record_free(c->records[i]);
	free(c->records);
	for (size_t i = 0; i < c->n_problems; i++) {
		free(c->problems[i].file);
		free(c->problems[i].id);
		free(c->problems[i].reason);
		volume_record_free(c->problems[i].record);
	}
	free(c->problems);
	*c = (struct state_content){0};
}

/* Root may use what is kept back from others. Network file systems, and those of user space that do not
 * implement statfs, may know no number of blocks or files: it is 0 then. */
int state_check_space(const struct state_store *s, struct error **err)
{
	struct statvfs fs;

	if (fstatvfs(s->dir_fd, &fs) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "state folder %s", s->path);
	if (fs.f_flag & ST_RDONLY)
		return err_set(
			err, ERR_EXHAUSTED, "the file system of the state folder %s is read-only", s->path);
	if (fs.f_blocks > 0 && (uint64_t)fs.f_bfree * fs.f_frsize < ROOM_MIN_BYTES)
		return err_set(err, ERR_EXHAUSTED, "the file system of the state folder %s is full", s->path);
	if (fs.f_files > 0 && fs.f_ffree == 0)
		return err_set(err, ERR_EXHAUSTED,
			"the file system of the state folder %s has no free inodes", s->path);
	return 0;
}

typedef int (*write_fn)(int dir_fd, const char *name, struct span content, mode_t mode, struct error **err);

static int put(struct state_store *s, const struct volume_record *r, write_fn write_file, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
	CLEANUP(free_charp) char *name = file_name(r, r->phase);

	if (state_format(r, &text, err) < 0)
		return fail_volume(s, r, err);
	if (write_file(s->dir_fd, name, buf_span(&text), STATE_FILE_MODE, err) < 0)
		return fail_volume(s, r, err);
	return 0;
}

int state_put(struct state_store *s, const struct volume_record *r, struct error **err)
{
	return put(s, r, file_write_atomic, err);
}

int state_put_until_boot(struct state_store *s, const struct volume_record *r, struct error **err)
{
	return put(s, r, file_write_whole, err);
}

static bool is_missing(const struct state_store *s, const char *name)
{
	return faccessat(s->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT;
}

int state_advance(struct state_store *s, struct volume_record *r, enum volume_phase to, struct error **err)
{
	CLEANUP(free_charp) char *from_name = file_name(r, r->phase);
	CLEANUP(free_charp) char *to_name = file_name(r, to);
	CLEANUP(error_freep) struct error *ignored = NULL;
	int rc = file_rename_durable(s->dir_fd, from_name, to_name, err);

	/* an earlier try has renamed it, and could neither finish nor go back */
	if (rc < 0 && (*err)->code == ERR_NOT_FOUND && !is_missing(s, to_name)) {
		error_clear(err);
		rc = file_rename_durable(s->dir_fd, to_name, to_name, err);
	}
	if (rc == 0) {
		r->phase = to;
		return 0;
	}
	/* renamed, but not durably: back, so that the name says what the caller keeps using; while the old
	 * name is there, the new one is another file's */
	if ((*err)->code != ERR_NOT_FOUND && is_missing(s, from_name))
		(void)!file_rename_durable(s->dir_fd, to_name, from_name, &ignored);
	return fail_volume(s, r, err);
}

int state_remove(struct state_store *s, const struct volume_record *r, struct error **err)
{
	CLEANUP(free_charp) char *name = file_name(r, r->phase);
	CLEANUP(free_charp) char *ready = file_name(r, PHASE_READY);

	/* Beside a file that counts as ready no other is loaded: it is what state_advance() could not undo.
	 */
	if (r->phase == PHASE_CREATING && !is_missing(s, ready) &&
		file_unlink_durable(s->dir_fd, ready, err) < 0)
		return fail_volume(s, r, err);
	if (file_unlink_durable(s->dir_fd, name, err) == 0)
		return 0;
	/* a read-only file system refuses before it looks whether there is anything to remove */
	if ((*err)->os_errno != EROFS || !is_missing(s, name))
		return fail_volume(s, r, err);
	error_clear(err);
	return 0;
}

int state_set_aside(struct state_store *s, const char *file, char **ret_name, struct error **err)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s.damaged", file);

	/* no other process renames files here while we have the lock */
	for (unsigned n = 2; !is_missing(s, name); n++) {
		free(name);
		name = x_asprintf("%s.damaged.%u", file, n);
	}
	if (file_rename_durable(s->dir_fd, file, name, err) < 0)
		return fail(err, "state folder", s->path);
	*ret_name = TAKE_PTR(name);
	return 0;
}

int state_read_file(struct state_store *s, const char *file, struct buf *ret, struct error **err)
{
	return file_read(s->dir_fd, file, ret, err);
}

int state_remove_file(struct state_store *s, const char *file, struct error **err)
{
	if (file_unlink_durable(s->dir_fd, file, err) < 0)
		return fail(err, "state folder", s->path);
	return 0;
}

int state_holder(struct state_store *s, pid_t *ret, struct error **err)
{
	return host_lock_holder(s->dir_fd, STATE_LOCK_NAME, ret, err);
}
