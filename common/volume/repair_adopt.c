/* SPDX-License-Identifier: Apache-2.0 */
/* A state file for a device that has none. */
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/fs.h"
#include "volume/repair_private.h"

static const struct device *only_candidate(struct repair *p)
{
	const struct device_list *l = p->v->seen;
	const struct device *found = NULL;

	for (size_t i = 0; i < l->n_devices; i++) {
		if (!str_eq(l->devices[i].id, p->id))
			continue;
		if (found) {
			repair_leave(p, "several devices have that name: which of them is the volume cannot "
					"be known");
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

bool repair_has_device(const struct repair *p)
{
	const struct device_list *l = p->v->seen;

	for (size_t i = 0; i < l->n_devices; i++) {
		if (str_eq(l->devices[i].id, p->id))
			return true;
	}
	return false;
}

/* Nothing may use it meanwhile, for what uses it may be its real owner. @ret_found: what is recognised on it
 */
static int take(struct repair *p, struct volume_record *r, char **ret_found, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (volumes_require_device(p->v, r, &d, err) < 0)
		return -1;
	r->size_bytes = d->size_bytes;
	if (d->path && volumes_claim_device(p->v, r, d, &fd, err) < 0)
		return -1;
	return d->path ? fs_probe(d->path, ret_found, err) : 0;
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
	r->staged_ever = true;
	r->block_clean = p->block;
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
	const struct device_pool *pool = device_list_pool(p->v->seen, d->pool);
	if (!pool || !pool->complete) {
		repair_leave(p, "the device's pool is incomplete: bring it back first");
		return NULL;
	}
	if (d->raw) {
		repair_leave(p,
			"the namespace has no mode, so it is half made or half destroyed: nothing in it "
			"can be kept");
		return NULL;
	}
	r = new_record(p, d, pool);
	/* what was seen is listed again while the device is taken */
	*ret_pool = x_strdup(pool->name);
	if (take(p, r, ret_found, &err) < 0) {
		repair_leave(p, "the device has no state and gets none: %s", err->msg);
		return NULL;
	}
	return TAKE_PTR(r);
}

bool repair_can_adopt(struct repair *p)
{
	CLEANUP(free_charp) char *pool = NULL;
	CLEANUP(free_charp) char *found = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = prepare(p, &pool, &found);

	return r != NULL;
}

static const char *describe(const struct volume_record *r, const char *found)
{
	if (r->block_clean)
		return "a block volume; it can be used or deleted now";
	if (r->fs_type)
		return "it can be used or deleted now, but not become a block volume";
	if (!str_empty(found))
		return "content of another kind; it is never formatted: repair it with -block if it is a "
		       "block volume, or "
		       "delete it";
	return "no content recognised; it is never formatted: repair it with -block if it is a block volume, "
	       "or delete it";
}

void repair_adopt(struct repair *p)
{
	CLEANUP(free_charp) char *pool = NULL;
	CLEANUP(free_charp) char *found = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = prepare(p, &pool, &found);
	CLEANUP(error_freep) struct error *err = NULL;
	char size[24];

	if (!r)
		return;
	if (!p->block && found && fs_known(found))
		r->fs_type = x_strdup(found);
	if (volumes_save(p->v, r, &err) < 0) {
		repair_leave(p, "the device has no state and gets none: %s", err->msg);
		return;
	}
	repair_did(p, "wrote a state file for the device: %s in pool %s, %s%s%s",
		format_bytes(r->size_bytes, size), pool, r->fs_type ? r->fs_type : "", r->fs_type ? "; " : "",
		describe(r, found));
}
