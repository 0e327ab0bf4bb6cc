/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/repair.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "inspect/check.h"
#include "inspect/damaged_record.h"
#include "os/fs.h"
#include "os/mount_table.h"
#include "volume/copies/copy_completion.h"
#include "volume/direct/volumes_direct.h"
#include "volume/id.h"
#include "volume/volumes_private.h"

struct repair {
	struct volumes *v;
	const char *id;
	enum adopted_kind kind; /* the kind as which the volume is adopted */
	bool snapshot;          /* it is a snapshot: its damaged file was set aside */
	struct repair_report *report;
};

static void repair_did(struct repair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void repair_leave(struct repair *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool repair_has_device(const struct repair *p);
static bool repair_can_adopt(struct repair *p, bool may_be_copy);
static void repair_adopt(struct repair *p);

static void remove_file(struct repair *p, const char *file, const char *what)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (state_remove_file(records_store(p->v->records), file, &err) < 0)
		repair_leave(p, "%s", err->msg);
	else
		repair_did(p, "removed %s %s", what, file);
}

/* While its own device may exist, a file is the only record of it. */
static void remove_twin(struct repair *p, const struct state_problem *problem)
{
	CLEANUP(volume_record_freep) struct volume_record *winner = records_find(p->v->records, p->id);
	const struct volume_record *loser = problem->record;
	const struct device *d = NULL;

	if (loser->identity && winner && !str_eq(loser->identity, winner->identity)) {
		enum presence presence = presence_of(device_view_list(p->v->device_view), loser, &d);

		if (presence == DEVICE_PRESENT || presence == DEVICE_MISSING) {
			repair_leave(p,
				"%s records identity %s, the file in use records another one, and a device "
				"with it %s",
				problem->file, loser->identity,
				presence == DEVICE_PRESENT ? "exists" : "may exist");
			return;
		}
	}
	remove_file(p, problem->file, "the unused file");
}

/* A volume that was not ready may be half a copy. */
static bool may_be_copy(struct repair *p, const struct state_problem *problem)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (state_file_is_ready(problem->file))
		return false;
	return state_read_file(records_store(p->v->records), problem->file, &text, &ignored) < 0 ||
	       !damaged_record_is_no_copy(buf_span(&text));
}

static bool set_aside(struct repair *p, const struct state_problem *problem)
{
	CLEANUP(volume_record_freep) struct volume_record *other = records_find(p->v->records, p->id);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *name = NULL;

	/* without the ready one, the other file would be undone or finished, and the device with it */
	if (other && other->phase != PHASE_READY && state_file_is_ready(problem->file)) {
		repair_leave(p,
			"%s is damaged, and another file says that the volume is only partly created or "
			"deleted: which of them is right cannot be determined",
			problem->file);
		return false;
	}
	p->snapshot = !other && state_file_is_snapshot(problem->file);
	/* once it is aside, a device that cannot be adopted would have no state at all */
	if (!other && repair_has_device(p) && !repair_can_adopt(p, may_be_copy(p, problem)))
		return false;
	if (state_set_aside(records_store(p->v->records), problem->file, &name, &err) < 0) {
		repair_leave(p, "%s", err->msg);
		return false;
	}
	STEP_POINT("repair-set-aside");
	repair_did(p, "set the damaged %s aside as %s", problem->file, name);
	return true;
}

/* ".<id>.json.tmp" and the like of ours, "<id>.json.tmp" of the Go driver */
static bool is_temporary_of(const char *file, const char *id)
{
	const char *name = file[0] == '.' ? file + 1 : file;

	return str_starts(name, id) && name[strlen(id)] == '.' &&
	       (str_eq(name + strlen(id), ".json.tmp") || str_eq(name + strlen(id), ".creating.tmp") ||
		       str_eq(name + strlen(id), ".erasing.tmp") ||
		       str_eq(name + strlen(id), ".snapshot.tmp"));
}

/* Whether @problem is one of the volume. */
static bool repair_is_about(const struct repair *p, const struct state_problem *problem)
{
	switch (problem->kind) {
	case STATE_DAMAGED:
		return str_eq(problem->id, p->id);
	case STATE_TWIN:
		return str_eq(problem->record->id, p->id);
	case STATE_TEMPORARY:
		return is_temporary_of(problem->file, p->id);
	}
	return false;
}

static bool repair_file(struct repair *p, const struct state_problem *problem)
{
	if (!repair_is_about(p, problem))
		return true;
	switch (problem->kind) {
	case STATE_DAMAGED:
		return set_aside(p, problem);
	case STATE_TWIN:
		remove_twin(p, problem);
		return true;
	case STATE_TEMPORARY:
		remove_file(p, problem->file, "the temporary");
		return true;
	}
	return true;
}

/* The files of the volume that do not count. Return: whether one that counts, or none, is left, so that one
 * may go on. */
static bool repair_files(struct repair *p, const struct state_content *content)
{
	for (size_t i = 0; i < content->n_problems; i++) {
		if (!repair_file(p, &content->problems[i]))
			return false;
	}
	return true;
}

static const struct device *only_candidate(struct repair *p)
{
	const struct device_list *l = device_view_list(p->v->device_view);
	const struct device *found = NULL;

	if (!volume_id_has_minted_form(p->id)) {
		repair_leave(p, "the device is foreign, because its name does not have the form of an ID of "
				"this driver: it is left alone");
		return NULL;
	}
	for (size_t i = 0; i < l->n_devices; i++) {
		if (!str_eq(l->devices[i].id, p->id))
			continue;
		if (found) {
			repair_leave(p, "several devices have that name: which of them is the volume cannot "
					"be determined");
			return NULL;
		}
		found = &l->devices[i];
	}
	return found;
}

/* A closed pool is of the device mode that is not the manager's own. */
static const char *mode_of(const struct repair *p, const struct device_pool *pool)
{
	const char *mode = p->v->devices->ops->mode;

	if (!pool->closed)
		return mode;
	return str_eq(mode, "lvm") ? "direct" : "lvm";
}

/* Whether there is a device of that name. */
static bool repair_has_device(const struct repair *p)
{
	const struct device_list *l = device_view_list(p->v->device_view);

	for (size_t i = 0; i < l->n_devices; i++) {
		if (str_eq(l->devices[i].id, p->id))
			return true;
	}
	return false;
}

/* Recognises the content of the device. It fails if a process uses the device, which may be its real owner or
 * a guest; guests do not open it exclusively, so that all processes are searched. If the device has the mark
 * of an unfinished copy, @r gets the phase in which it is erased. @ret_found: the content, as
 * volumes_recognise() */
static int look_at_device(
	struct repair *p, struct volume_record *r, struct device *d, char **ret_found, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	bool unfinished = false;

	if (volumes_refuse_process(r, d, err) < 0 ||
		device_view_claim_device(p->v->device_view, r, d, &fd, err) < 0)
		return -1;
	if (r->identity && copy_completion_is_marked(d->path, r->identity, &unfinished, err) < 0)
		return -1;
	if (unfinished)
		r->phase = PHASE_ERASING;
	return unfinished ? 0 : volumes_recognise(r, d->path, ret_found, err);
}

/* Finds out size and kind of the volume from its device. @ret_found: content of the device, as
 * volumes_recognise() */
static int settle_kind(struct repair *p, struct volume_record *r, char **ret_found, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;

	if (device_view_require_device(p->v->device_view, r, &d, err) < 0)
		return -1;
	r->size_bytes = d->size_bytes;
	if (d->path && look_at_device(p, r, d, ret_found, err) < 0)
		return -1;
	return r->phase == PHASE_ERASING ? 0 : adopted_kind_settle(r, d, *ret_found, p->kind, err);
}

static struct volume_record *new_record(
	const struct repair *p, const struct device *d, const struct device_pool *pool)
{
	struct volume_record *r = x_calloc(1, sizeof(*r));

	r->id = x_strdup(p->id);
	r->phase = PHASE_READY;
	r->identity = *d->identity ? x_strdup(d->identity) : NULL;
	r->adopted = true;
	/* Data in no form that is recognised is data nevertheless: nothing is ever formatted here. */
	r->ever_staged = true;
	r->snapshot = p->snapshot;
	r->pool = x_strdup(d->pool);
	strmap_set(&r->parameters, "deviceMode", mode_of(p, pool));
	return r;
}

/* All that comes before the state file is written. Return: the record, volume_record_free(); or NULL, and the
 * report says why. */
static struct volume_record *prepare(struct repair *p, char **ret_pool, char **ret_found)
{
	const struct device *d = only_candidate(p);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (!d)
		return NULL;
	const struct device_pool *pool = device_list_pool(device_view_list(p->v->device_view), d->pool);
	if (!pool || !pool->complete) {
		repair_leave(p, "the device's pool is incomplete: bring it back first");
		return NULL;
	}
	if (d->raw) {
		repair_leave(p, "the namespace has no mode, so it is only partly created or destroyed: its "
				"content cannot be kept");
		return NULL;
	}
	r = new_record(p, d, pool);
	/* what was seen is listed again while the device is taken */
	*ret_pool = x_strdup(pool->name);
	if (settle_kind(p, r, ret_found, &err) < 0) {
		repair_leave(p, "no state file was written for the device: %s", err->msg);
		return NULL;
	}
	return TAKE_PTR(r);
}

/* Whether repair_adopt() would write a state file now; if not, the report says why. Changes nothing, but for
 * activating the device. @may_be_copy: it may be a copy that was never finished */
static bool repair_can_adopt(struct repair *p, bool may_be_copy)
{
	CLEANUP(free_charp) char *pool = NULL;
	CLEANUP(free_charp) char *found = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = prepare(p, &pool, &found);

	if (!r || !may_be_copy || r->phase == PHASE_ERASING)
		return r != NULL;
	repair_leave(p,
		"its damaged state file does not show that the volume is no copy of another one, which may "
		"never have been finished: if all that it is to hold is on its device, move the file out of "
		"the state folder and repair it again; if not, remove the device and the file");
	return false;
}

static void finish_deletion(struct repair *p, const struct volume_record *r)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if ((r->snapshot ? volumes_delete_snapshot(p->v, r->id, &err) : volumes_delete(p->v, r->id, &err)) <
		0)
		repair_leave(p, "its deletion cannot be finished: %s", err->msg);
	else
		repair_did(p, "finished its deletion");
}

static const char *describe(const struct volume_record *r, const char *found)
{
	if (r->snapshot)
		return "a snapshot; volumes can be restored from it, and it can be deleted now";
	if (r->block_clean)
		return "a block volume; it can be used or deleted now";
	if (r->direct)
		return "it is given to guests; it can be used or deleted now";
	if (r->image_bytes > 0)
		return "with the image of a volume for Kata Containers; it can be used or deleted now";
	if (r->fs_type)
		return "it can be used or deleted now, but not become a block volume";
	if (!str_empty(found))
		return "content of another kind; it is never formatted: repair it with -block if it is a "
		       "block volume, or delete it";
	return "no content recognised; it is never formatted: repair it with -block if it is a block volume, "
	       "or delete it";
}

/* Write a state file for the device without state. */
static void repair_adopt(struct repair *p)
{
	CLEANUP(free_charp) char *pool = NULL;
	CLEANUP(free_charp) char *found = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = prepare(p, &pool, &found);
	CLEANUP(error_freep) struct error *err = NULL;
	char size[24];

	if (!r)
		return;
	if (records_save(p->v->records, r, &err) < 0) {
		repair_leave(p, "no state file was written for the device: %s", err->msg);
		return;
	}
	if (r->phase == PHASE_ERASING) {
		repair_did(p, "wrote a state file for the device, which holds an unfinished copy");
		finish_deletion(p, r);
		return;
	}
	repair_did(p, "wrote a state file for the device: %s in pool %s, %s%s%s",
		format_bytes(r->size_bytes, size), pool, r->fs_type ? r->fs_type : "", r->fs_type ? "; " : "",
		describe(r, found));
}

__attribute__((format(printf, 2, 0))) static void report(char ***lines, const char *fmt, va_list ap)
{
	CLEANUP(free_charp) char *line = x_vasprintf(fmt, ap);

	strv_add(lines, line);
}

/* Report a change. */
static void repair_did(struct repair *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(&p->report->done, fmt, ap);
	va_end(ap);
}

/* Report what stays as it is. */
static void repair_leave(struct repair *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(&p->report->left, fmt, ap);
	va_end(ap);
}

void repair_report_done(struct repair_report *r)
{
	strv_free(r->done);
	strv_free(r->left);
	*r = (struct repair_report){0};
}

/* Processes may still have files open there, whether the device still exists or not. Return: a path,
 * borrowed, or NULL.
 */
static const char *mounted_path(const struct volume_record *r, const struct mount_table *table)
{
	if (r->staging_path && mount_table_at(table, r->staging_path))
		return r->staging_path;
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		if (mount_table_at(table, r->targets[i]))
			return r->targets[i];
	}
	return NULL;
}

static void drop(struct repair *p, const struct volume_record *r, const char *why)
{
	CLEANUP(mount_table_freep) struct mount_table *table = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (mount_table_read(&table, &err) < 0) {
		repair_leave(p, "%s", err->msg);
		return;
	}
	const char *mounted = mounted_path(r, table);
	if (mounted)
		repair_leave(p, "something is still mounted at %s: unmount it first", mounted);
	else if (records_remove(p->v->records, r, &err) < 0)
		repair_leave(p, "%s", err->msg);
	else
		repair_did(p, "dropped the state: %s", why);
}

/* Its state file is older than its content: the volume was finished and used since. */
static int finish_creation(struct repair *p, struct volume_record *r, char **found, struct error **err)
{
	r->ever_staged = true;
	if (fs_known(*found)) {
		free(r->fs_type);
		r->fs_type = TAKE_PTR(*found);
	}
	if (records_save(p->v->records, r, err) < 0)
		return -1;
	return records_advance(p->v->records, r, PHASE_READY, err);
}

static void undo_creation(struct repair *p, const struct volume_record *r, enum presence presence)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (volumes_roll_back(p->v, r, &err) < 0)
		repair_leave(p, "its unfinished creation cannot be undone: %s", err->msg);
	else if (presence == DEVICE_PRESENT && r->identity)
		repair_did(p, "undid its unfinished creation: removed its device and the state");
	else
		repair_did(p, "undid its unfinished creation: dropped the state");
}

/* A copy has content before it is finished. */
static void settle_copy(struct repair *p, struct volume_record *r)
{
	CLEANUP(volume_record_freep) struct volume_record *left = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (volumes_settle_creation(p->v, r, &err) < 0) {
		repair_leave(p, "%s", err->msg);
		return;
	}
	left = records_find(p->v->records, r->id);
	if (left && left->phase == PHASE_READY)
		repair_did(p, "kept its device, which shows that the copy was finished: it is ready now");
	else
		repair_did(p, "undid its unfinished creation: %s",
			left ? "its device is to be erased" : "dropped the state");
	if (left && left->phase == PHASE_ERASING)
		finish_deletion(p, left);
}

static void settle_creation(struct repair *p, struct volume_record *r, enum presence presence)
{
	CLEANUP(free_charp) char *found = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (r->source)
		settle_copy(p, r);
	else if (volumes_find_content(p->v, r, &found, &err) < 0)
		repair_leave(p, "the content of its device cannot be read: %s", err->msg);
	else if (!*found)
		undo_creation(p, r, presence);
	else if (finish_creation(p, r, &found, &err) < 0)
		repair_leave(p, "its device holds content, but its state cannot be written: %s", err->msg);
	else
		repair_did(p,
			"kept its device, which holds content: it is ready now, although its state said that "
			"its creation was never finished");
}

static bool fix_size(struct repair *p, struct volume_record *r, const struct device *d, char ***changes)
{
	CLEANUP(free_charp) char *text = NULL;

	if (r->size_bytes == d->size_bytes)
		return false;
	if (d->size_bytes < r->size_bytes) {
		repair_leave(p, "its device has %ju bytes, %ju are recorded: less than what was promised",
			(uintmax_t)d->size_bytes, (uintmax_t)r->size_bytes);
		return false;
	}
	text = x_asprintf("recorded its size: %ju bytes instead of %ju", (uintmax_t)d->size_bytes,
		(uintmax_t)r->size_bytes);
	strv_add(changes, text);
	r->size_bytes = d->size_bytes;
	return true;
}

static bool fix_pool(struct volume_record *r, const struct device *d, char ***changes)
{
	if (r->pool)
		return false;
	r->pool = x_strdup(d->pool);
	strv_add(changes, "recorded the pool of its device");
	return true;
}

static bool is_same_kind(const struct volume_record *a, const struct volume_record *b)
{
	return a->direct == b->direct && a->block_clean == b->block_clean &&
	       a->image_bytes == b->image_bytes && str_eq(a->fs_type, b->fs_type);
}

/* Changes the kind of a volume to that which the administrator names. Only a volume whose state was lost can
 * have a wrong kind: all others are recorded as they were created. */
static bool fix_kind(struct repair *p, struct volume_record *r, char ***changes)
{
	CLEANUP(volume_record_freep) struct volume_record *now = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *found = NULL;

	if (adopted_kind_is(r, p->kind))
		return false;
	if (!r->adopted) {
		repair_leave(p, "it was not created as a %s", adopted_kind_noun(p->kind));
		return false;
	}
	now = volume_record_dup(r);
	if (settle_kind(p, now, &found, &err) < 0) {
		repair_leave(p, "it is not recorded as a %s: %s", adopted_kind_noun(p->kind), err->msg);
		return false;
	}
	if (is_same_kind(r, now))
		return false;
	CLEANUP(free_charp)
	char *text = x_asprintf("recorded it as a %s%s", adopted_kind_noun(p->kind),
		now->image_bytes > 0 ? ", with an image for Kata Containers" : "");
	strv_add(changes, text);
	struct volume_record was = *r;
	*r = *now;
	*now = was;
	return true;
}

/* @d: in the view's listing */
static bool fix_mounts(
	struct volume_record *r, const struct check_view *view, const struct device *d, char ***changes)
{
	char **targets = NULL;
	bool changed = false;

	if (check_staging_is_stale(view, r, d)) {
		CLEANUP(free_charp)
		char *text = x_asprintf("dropped the stale staging path %s", r->staging_path);
		strv_add(changes, text);
		free(TAKE_PTR(r->staging_path));
		changed = true;
	}
	for (size_t i = 0; r->targets && r->targets[i]; i++) {
		/* the target of an inline volume says of which pod it is */
		if (volume_record_is_inline(r) || !check_is_stale(view, r, r->targets[i], d)) {
			strv_add(&targets, r->targets[i]);
			continue;
		}
		CLEANUP(free_charp) char *text = x_asprintf("dropped the stale target %s", r->targets[i]);
		strv_add(changes, text);
		changed = true;
	}
	strv_free(r->targets);
	r->targets = targets;
	return changed;
}

static int save_facts(struct repair *p, struct volume_record *r, struct error **err)
{
	const struct check_config config = {.devices = p->v->devices, .state_path = p->v->state_path};
	CLEANUP(check_view_done) struct check_view view = {0};
	CLEANUP(strv_freep) char **changes = NULL;
	const struct device *d = NULL;

	if (check_view_read(&config, &view, err) < 0)
		return -1;
	if (presence_of(view.devices, r, &d) != DEVICE_PRESENT)
		return 0;
	bool changed = fix_size(p, r, d, &changes);
	changed = fix_pool(r, d, &changes) || changed;
	changed = fix_kind(p, r, &changes) || changed;
	changed = fix_mounts(r, &view, d, &changes) || changed;
	if (changed && records_save(p->v->records, r, err) < 0)
		return -1;
	for (size_t i = 0; changes && changes[i]; i++)
		repair_did(p, "%s", changes[i]);
	return 0;
}

static void fix_present(struct repair *p, struct volume_record *r, bool active)
{
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (!active && device_view_require_device(p->v->device_view, r, &d, &err) < 0) {
		repair_leave(p, "%s", err->msg);
		return;
	}
	if (!active)
		repair_did(p, "activated its device");
	if (save_facts(p, r, &err) < 0)
		repair_leave(p, "%s", err->msg);
}

static void fix_ready(struct repair *p, struct volume_record *r, enum presence presence, bool active)
{
	switch (presence) {
	case DEVICE_PRESENT:
		fix_present(p, r, active);
		break;
	case DEVICE_GONE:
		drop(p, r, "its pool is complete and has no such device");
		break;
	case DEVICE_MISSING:
		repair_leave(p,
			"its device is missing, and nothing proves that it is gone: bring its pool back, or "
			"drop the state with check -forget %s",
			r->id);
		break;
	case DEVICE_FOREIGN:
		repair_leave(p,
			"the device of that name does not have the recorded identity, so it belongs to "
			"something else; check -forget %s drops the state and leaves the device alone",
			r->id);
		break;
	}
}

static void repair_volume(struct repair *p)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	const struct device *d = NULL;

	if (!volume_id_valid(p->id))
		return;
	r = records_find(p->v->records, p->id);
	if (!r) {
		if (repair_has_device(p))
			repair_adopt(p);
		return;
	}
	enum presence presence = presence_of(device_view_list(p->v->device_view), r, &d);
	if (r->phase == PHASE_CREATING)
		settle_creation(p, r, presence);
	else if (r->phase == PHASE_ERASING)
		finish_deletion(p, r);
	else
		fix_ready(p, r, presence, d && d->active);
}

/* Opened for reading, so that leftovers of a Go driver are reported, too. */
static int read_content(struct volumes *v, struct state_content *ret, struct error **err)
{
	CLEANUP(state_closep) struct state_store *store = NULL;

	if (state_open_read(v->state_path, &store, err) < 0)
		return -1;
	return state_load(store, ret, err);
}

/* Whether there is anything that the name could mean. */
static bool is_known(const struct repair *p, const struct state_content *content)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(p->v->records, p->id);

	if (r || repair_has_device(p))
		return true;
	for (size_t i = 0; i < content->n_problems; i++) {
		if (repair_is_about(p, &content->problems[i]))
			return true;
	}
	return false;
}

int volumes_repair(struct volumes *v, const char *id, enum adopted_kind kind, struct repair_report *ret,
	struct error **err)
{
	CLEANUP(state_content_done) struct state_content content = {0};
	struct repair_report done = {0};
	struct repair p = {.v = v, .id = id, .kind = kind, .report = &done};

	if (records_open(v->records, v->state_path, err) < 0)
		return -1;
	/* before loading, which clears temporaries away */
	if (read_content(v, &content, err) < 0)
		return -1;
	if (volumes_load(v, /* for_repair= */ true, err) < 0)
		return -1;
	if (!is_known(&p, &content))
		repair_leave(&p, "no volume, device or state file has that name");
	else if (repair_files(&p, &content))
		repair_volume(&p);
	*ret = done;
	return 0;
}

int volumes_drop_state(struct volumes *v, const char *id, struct repair_report *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	struct repair_report done = {0};
	struct repair p = {.v = v, .id = id, .report = &done};
	const struct device *d = NULL;

	if (volumes_load(v, /* for_repair= */ true, err) < 0)
		return -1;
	r = volume_id_valid(id) ? records_find(v->records, id) : NULL;
	if (!r)
		repair_leave(&p, "no state exists that could be dropped");
	else if (volume_record_is_foreign(r))
		drop(&p, r, "its device is foreign, and is left alone");
	else if (presence_of(device_view_list(v->device_view), r, &d) == DEVICE_PRESENT)
		repair_leave(&p, "its device exists: delete the volume instead");
	else
		drop(&p, r, "its device is not available");
	*ret = done;
	return 0;
}
