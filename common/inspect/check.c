/* SPDX-License-Identifier: Apache-2.0 */
/* State files and devices against each other. */
#include "inspect/check.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "inspect/check_private.h"

static const char *const kind_names[] = {
	[CHECK_NO_STATE_FOLDER] = "no-state-folder",
	[CHECK_DAMAGED] = "damaged",
	[CHECK_TWO_FILES] = "two-files",
	[CHECK_TEMPORARY] = "leftover-temporary",
	[CHECK_CREATING] = "unfinished-creation",
	[CHECK_ERASING] = "unfinished-deletion",
	[CHECK_MISSING] = "device-missing",
	[CHECK_GONE] = "device-gone",
	[CHECK_IDENTITY] = "identity-mismatch",
	[CHECK_SAME_NAME] = "same-name-device",
	[CHECK_SIZE] = "size-differs",
	[CHECK_MODE] = "device-mode",
	[CHECK_INACTIVE] = "inactive-device",
	[CHECK_RAW] = "raw-namespace",
	[CHECK_NO_POOL_RECORD] = "pool-not-recorded",
	[CHECK_STRANGER] = "device-without-state",
	[CHECK_POOL_INCOMPLETE] = "incomplete-pool",
	[CHECK_STALE_STAGING] = "stale-staging",
	[CHECK_STALE_TARGET] = "stale-target",
	[CHECK_UNKNOWN_MOUNT] = "unknown-mount",
	[CHECK_LOOP] = "leftover-loop",
};

const char *check_kind_name(enum check_kind kind)
{
	return kind_names[kind];
}

struct check_finding *check_add(
	struct check_findings *f, enum check_kind kind, const char *id, char *text, char *remedy)
{
	f->list = x_realloc(f->list, f->n + 1, sizeof(*f->list));
	f->list[f->n] =
		(struct check_finding){.kind = kind, .id = x_strdup(id), .text = text, .remedy = remedy};
	f->n_mismatches++;
	return &f->list[f->n++];
}

void check_note(struct check_findings *f)
{
	f->list[f->n - 1].is_note = true;
	f->n_mismatches--;
}

void check_findings_done(struct check_findings *f)
{
	for (size_t i = 0; i < f->n; i++) {
		free(f->list[i].id);
		free(f->list[i].text);
		free(f->list[i].remedy);
	}
	free(f->list);
	*f = (struct check_findings){0};
}

const struct volume_record *check_record(const struct check_view *v, const char *id)
{
	for (size_t i = 0; i < v->state.n_records; i++) {
		if (str_eq(v->state.records[i]->id, id))
			return v->state.records[i];
	}
	return NULL;
}

/* A temporary is named ".<file>.tmp" by us, "<id>.json.tmp" by the Go driver. Return: caller frees. */
static char *id_of_temporary(const char *file)
{
	const char *id = file[0] == '.' ? file + 1 : file;
	const char *tmp = id + strlen(id) - strlen(".tmp");

	for (const char *dot = tmp - 1; dot > id; dot--) {
		if (*dot == '.')
			return x_strndup(id, (size_t)(dot - id));
	}
	return x_strndup(id, (size_t)(tmp - id));
}

static void check_problem(const struct state_problem *p, struct check_findings *f)
{
	CLEANUP(free_charp) char *id = NULL;

	switch (p->kind) {
	case STATE_DAMAGED:
		check_add(f, CHECK_DAMAGED, p->id,
			x_asprintf("state file %s cannot be used: %s", p->file, p->reason),
			x_asprintf("check -repair %s sets it aside and writes a new one if its device exists",
				p->id));
		break;
	case STATE_TWIN:
		check_add(f, CHECK_TWO_FILES, p->record->id,
			x_asprintf(
				"state file %s does not count: there is another one of this volume", p->file),
			x_asprintf("check -repair %s removes it", p->record->id));
		break;
	case STATE_TEMPORARY:
		id = id_of_temporary(p->file);
		check_add(f, CHECK_TEMPORARY, id,
			x_asprintf("temporary file %s is left: %s", p->file, p->reason),
			x_asprintf("check -repair %s removes it", id));
		break;
	}
}

static char *name_pool(const struct check_view *v, const char *uuid)
{
	const struct device_pool *pool = device_list_pool(v->devices, uuid);

	return pool ? x_asprintf("%s (%s)", pool->name, uuid) : x_strdup(uuid);
}

static void check_missing(const struct check_view *v, const struct volume_record *r, struct check_findings *f)
{
	const char *mode = strmap_get(&r->parameters, "deviceMode");
	CLEANUP(free_charp) char *pool = r->pool ? name_pool(v, r->pool) : NULL;
	bool is_there = r->pool && device_list_pool(v->devices, r->pool);
	char *text = NULL;

	if (pool)
		text = x_asprintf("its device is not seen, and its pool %s is %s", pool,
			is_there ? "incomplete" : "absent");
	else if (mode && !str_eq(mode, v->mode))
		text = x_asprintf("its device is not seen; it was made in device mode %s", mode);
	else
		text = x_strdup("its device is not seen, and its pool was never recorded");
	check_add(f, CHECK_MISSING, r->id, text,
		x_asprintf(
			"bring its pool back; if the pool is lost, check -forget %s drops the state", r->id));
}

static void check_identity(
	const struct volume_record *r, const struct device *other, struct check_findings *f)
{
	check_add(f, CHECK_IDENTITY, r->id,
		x_asprintf("its pool has a device of that name with identity %s, recorded is %s",
			*other->identity ? other->identity : "none", r->identity),
		x_asprintf("not repaired: the device belongs to something else, and the volume's own device "
			   "is gone; check -forget %s drops the state and leaves the device alone",
			r->id));
}

static void check_phase(const struct volume_record *r, enum presence presence, struct check_findings *f)
{
	static const char *const device[] = {
		[DEVICE_PRESENT] = "its device exists",
		[DEVICE_MISSING] = "its device is not seen, and its pool is absent or incomplete",
		[DEVICE_GONE] = "it has no device",
		[DEVICE_FOREIGN] = "the device of that name is another one",
	};

	if (r->phase == PHASE_CREATING)
		check_add(f, CHECK_CREATING, r->id,
			x_asprintf("its creation was not finished: %s", device[presence]),
			x_asprintf("the driver undoes it at its next start, check -repair %s does so at once",
				r->id));
	else
		check_add(f, CHECK_ERASING, r->id,
			x_asprintf("its deletion was not finished: %s", device[presence]),
			x_asprintf("the driver continues at its next start, check -repair %s does so at once",
				r->id));
}

static void check_size(const struct volume_record *r, const struct device *d, struct check_findings *f)
{
	if (r->size_bytes == d->size_bytes)
		return;
	bool smaller = d->size_bytes < r->size_bytes;
	check_add(f, CHECK_SIZE, r->id,
		x_asprintf("recorded are %ju bytes, its device has %ju", (uintmax_t)r->size_bytes,
			(uintmax_t)d->size_bytes),
		smaller ? x_strdup("not repaired: the device is smaller than what was promised")
			: x_asprintf("check -repair %s records the device's size", r->id));
	/* before 1.0 the Go driver recorded what was asked for */
	if (!r->identity && !smaller)
		check_note(f);
}

/* A device in a closed pool is of the mode that this device manager does not make. */
static void check_mode(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	const struct device_pool *pool = device_list_pool(v->devices, d->pool);
	const char *mode = strmap_get(&r->parameters, "deviceMode");
	bool is_other = pool && pool->closed;

	if (mode && str_eq(mode, v->mode) == is_other) {
		check_add(f, CHECK_MODE, r->id,
			x_asprintf("recorded is device mode %s, its device is of %s mode", mode,
				is_other ? "the other" : v->mode),
			x_strdup("none is needed: the device is found in both"));
		return;
	}
	if (!is_other)
		return;
	check_add(f, CHECK_MODE, r->id, x_asprintf("its device is of the other device mode than %s", v->mode),
		x_strdup("none is needed: it is served; new volumes are not made there"));
	check_note(f);
}

static void check_active(const char *id, const struct device *d, struct check_findings *f)
{
	if (d->raw)
		check_add(f, CHECK_RAW, id,
			x_strdup("its namespace has no mode: it is half made or half destroyed, or its info "
				 "block is damaged"),
			x_strdup("not repaired: what was in it is not where it was; a deletion destroys it"));
	if (d->active)
		return;
	check_add(f, CHECK_INACTIVE, id, x_asprintf("its device in pool %s is not active", d->pool),
		x_asprintf(
			"the driver activates it at its next start, check -repair %s does so at once", id));
}

/* Others that bear the name of @r's device. */
static void check_same_name(const struct check_view *v, const struct volume_record *r,
	const struct device *own, struct check_findings *f)
{
	for (size_t i = 0; i < v->devices->n_devices; i++) {
		const struct device *d = &v->devices->devices[i];

		if (d == own || !str_eq(d->id, r->id))
			continue;
		check_add(f, CHECK_SAME_NAME, r->id,
			x_asprintf("another device in pool %s has its name, with identity %s", d->pool,
				*d->identity ? d->identity : "none"),
			x_strdup("not repaired: the device belongs to something else, and is never touched"));
	}
}

static void check_present(const struct check_view *v, const struct volume_record *r, const struct device *d,
	struct check_findings *f)
{
	check_same_name(v, r, d, f);
	if (r->phase == PHASE_READY) {
		check_size(r, d, f);
		check_mode(v, r, d, f);
	}
	if (!r->pool) {
		check_add(f, CHECK_NO_POOL_RECORD, r->id,
			x_strdup("its state does not say in which pool its device is"),
			x_asprintf(
				"the driver records it at its next start, check -repair %s does so at once",
				r->id));
		check_note(f);
	}
	check_active(r->id, d, f);
}

static void check_volume(const struct check_view *v, const struct volume_record *r, struct check_findings *f)
{
	const struct device *d = NULL;
	enum presence presence = presence_of(v->devices, r, &d);

	if (r->phase != PHASE_READY)
		check_phase(r, presence, f);
	else if (presence == DEVICE_MISSING)
		check_missing(v, r, f);
	else if (presence == DEVICE_GONE)
		check_add(f, CHECK_GONE, r->id, x_strdup("its pool is complete and has no such device"),
			x_asprintf("check -repair %s drops the state", r->id));
	else if (presence == DEVICE_FOREIGN)
		check_identity(r, d, f);
	if (presence == DEVICE_PRESENT)
		check_present(v, r, d, f);
	check_mounts_of(v, r, presence == DEVICE_PRESENT ? d : NULL, f);
}

static bool is_damaged(const struct check_view *v, const char *id)
{
	for (size_t i = 0; i < v->state.n_problems; i++) {
		if (v->state.problems[i].kind == STATE_DAMAGED && str_eq(v->state.problems[i].id, id))
			return true;
	}
	return false;
}

static bool has_state(const struct check_view *v, const struct device *d)
{
	return check_record(v, d->id) || is_damaged(v, d->id);
}

bool check_is_stranger(const struct check_view *v, const struct device *d)
{
	return !has_state(v, d) && presence_may_be_stranger(v->devices, v->mode, d);
}

bool check_is_damaged(const struct check_view *v, size_t at)
{
	const struct state_problem *p = &v->state.problems[at];
	const struct volume_record *r = p->kind == STATE_DAMAGED ? check_record(v, p->id) : NULL;

	for (size_t i = 0; i < at; i++) {
		if (v->state.problems[i].kind == STATE_DAMAGED && str_eq(v->state.problems[i].id, p->id))
			return false;
	}
	return p->kind == STATE_DAMAGED && !(r && r->phase == PHASE_READY);
}

char *check_claim(const struct check_view *v, const char *id)
{
	const struct volume_record *r = check_record(v, id);
	char *claim = r ? claim_text(&r->claim) : NULL;

	return claim || !r ? claim : claim_pod(&r->claim);
}

static void check_stranger(const struct check_view *v, const struct device *d, struct check_findings *f)
{
	CLEANUP(free_charp) char *pool = name_pool(v, d->pool);
	char size[24];

	if (has_state(v, d))
		return;
	check_add(f, CHECK_STRANGER, d->id,
		x_asprintf("a device of %s in pool %s has no state", format_bytes(d->size_bytes, size), pool),
		x_asprintf(
			"if it is a volume of this driver, check -repair %s writes a state file for it and "
			"keeps its content; otherwise leave it alone",
			d->id));
	if (!check_is_stranger(v, d)) {
		check_note(f);
		return;
	}
	check_mounts_of_stranger(v, d, f);
}

void check_compare(const struct check_view *v, struct check_findings *ret)
{
	struct check_findings f = {0};

	if (!v->has_state)
		check_add(&f, CHECK_NO_STATE_FOLDER, "",
			x_asprintf("there is no state folder %s", v->state_path),
			x_strdup("is -statePath right? The driver makes the folder when it starts"));
	for (size_t i = 0; i < v->state.n_problems; i++)
		check_problem(&v->state.problems[i], &f);
	for (size_t i = 0; i < v->state.n_records; i++)
		check_volume(v, v->state.records[i], &f);
	for (size_t i = 0; i < v->devices->n_devices; i++)
		check_stranger(v, &v->devices->devices[i], &f);
	for (size_t i = 0; i < v->devices->n_pools; i++) {
		const struct device_pool *p = &v->devices->pools[i];

		if (!p->complete)
			check_add(&f, CHECK_POOL_INCOMPLETE, p->name,
				x_asprintf("parts of pool %s (%s) are missing", p->name, p->uuid),
				x_strdup("bring the missing region or device back"));
	}
	check_loops(v, &f);
	*ret = f;
}
