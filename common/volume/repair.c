/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/repair.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/fs.h"
#include "os/mount_table.h"
#include "volume/check_private.h"
#include "volume/id.h"
#include "volume/repair_private.h"

__attribute__((format(printf, 2, 0))) static void report(char ***lines, const char *fmt, va_list ap)
{
	CLEANUP(free_charp) char *line = x_vasprintf(fmt, ap);

	strv_add(lines, line);
}

void repair_did(struct repair *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	report(&p->report->done, fmt, ap);
	va_end(ap);
}

void repair_leave(struct repair *p, const char *fmt, ...)
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

/* Somebody may still have files open there, whatever became of the device. Return: a path, borrowed, or NULL.
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
	else if (volumes_drop(p->v, r, &err) < 0)
		repair_leave(p, "%s", err->msg);
	else
		repair_did(p, "dropped the state: %s", why);
}

/* Its state file is older than its content: the volume was finished and used since. */
static int finish_creation(struct repair *p, struct volume_record *r, char **found, struct error **err)
{
	r->staged_ever = true;
	if (fs_known(*found)) {
		free(r->fs_type);
		r->fs_type = TAKE_PTR(*found);
	}
	if (volumes_save(p->v, r, err) < 0)
		return -1;
	return state_advance(p->v->state, r, PHASE_READY, err);
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

static void settle_creation(struct repair *p, struct volume_record *r, enum presence presence)
{
	CLEANUP(free_charp) char *found = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (volumes_find_content(p->v, r, &found, &err) < 0)
		repair_leave(p, "what its device holds cannot be seen: %s", err->msg);
	else if (!*found)
		undo_creation(p, r, presence);
	else if (finish_creation(p, r, &found, &err) < 0)
		repair_leave(p, "its device holds content, but its state cannot be written: %s", err->msg);
	else
		repair_did(p,
			"kept its device, which holds content: it is ready now, although its state said that "
			"its creation was never finished");
}

static void finish_deletion(struct repair *p, const struct volume_record *r)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (volumes_delete(p->v, r->id, &err) < 0)
		repair_leave(p, "its deletion cannot be finished: %s", err->msg);
	else
		repair_did(p, "finished its deletion");
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

/* Only of a device whose state was lost nobody knows what it was: all others are recorded as they were made.
 */
static bool fix_block(struct repair *p, struct volume_record *r, char ***changes)
{
	if (!p->block || r->block_clean)
		return false;
	if (!r->adopted) {
		repair_leave(p, "it was not made as a block volume");
		return false;
	}
	r->block_clean = true;
	free(TAKE_PTR(r->fs_type));
	strv_add(changes, "recorded it as a block volume");
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
		if (!check_is_stale(view, r, r->targets[i], d)) {
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
	changed = fix_block(p, r, &changes) || changed;
	changed = fix_mounts(r, &view, d, &changes) || changed;
	if (changed && volumes_save(p->v, r, err) < 0)
		return -1;
	for (size_t i = 0; changes && changes[i]; i++)
		repair_did(p, "%s", changes[i]);
	return 0;
}

static void fix_present(struct repair *p, struct volume_record *r, bool active)
{
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (!active && volumes_require_device(p->v, r, &d, &err) < 0) {
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
			"the device of that name does not bear the recorded identity, so it is somebody "
			"else's; check -forget %s drops the state and leaves the device alone",
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
	r = volumes_record(p->v, p->id);
	if (!r) {
		if (repair_has_device(p))
			repair_adopt(p);
		return;
	}
	enum presence presence = presence_of(p->v->seen, r, &d);
	if (r->phase == PHASE_CREATING)
		settle_creation(p, r, presence);
	else if (r->phase == PHASE_ERASING)
		finish_deletion(p, r);
	else
		fix_ready(p, r, presence, d && d->active);
}

/* Opened for reading, so that leftovers of a Go driver are told, too. */
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
	CLEANUP(volume_record_freep) struct volume_record *r = volumes_record(p->v, p->id);

	if (r || repair_has_device(p))
		return true;
	for (size_t i = 0; i < content->n_problems; i++) {
		if (repair_is_about(p, &content->problems[i]))
			return true;
	}
	return false;
}

int volumes_repair(
	struct volumes *v, const char *id, bool block, struct repair_report *ret, struct error **err)
{
	CLEANUP(state_content_done) struct state_content content = {0};
	struct repair_report done = {0};
	struct repair p = {.v = v, .id = id, .block = block, .report = &done};

	if (!v->state && state_open(v->state_path, &v->state, err) < 0)
		return -1;
	/* before loading, which clears temporaries away */
	if (read_content(v, &content, err) < 0)
		return -1;
	if (volumes_load(v, err) < 0)
		return -1;
	if (!is_known(&p, &content))
		repair_leave(&p, "there is neither a volume, nor a device, nor a state file of that name");
	else if (repair_files(&p, &content))
		repair_volume(&p);
	*ret = done;
	return 0;
}

int volumes_forget(struct volumes *v, const char *id, struct repair_report *ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	struct repair_report done = {0};
	struct repair p = {.v = v, .id = id, .report = &done};
	const struct device *d = NULL;

	if (volumes_load(v, err) < 0)
		return -1;
	r = volume_id_valid(id) ? volumes_record(v, id) : NULL;
	if (!r)
		repair_leave(&p, "there is no state that could be dropped");
	else if (presence_of(v->seen, r, &d) == DEVICE_PRESENT)
		repair_leave(&p, "its device exists: delete the volume instead");
	else
		drop(&p, r, "its device is not there");
	*ret = done;
	return 0;
}
