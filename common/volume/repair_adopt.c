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

/* What is recognised on the device must survive: only one without content may get a file system. */
static int probe(struct volume_record *r, const char *path, struct error **err)
{
	CLEANUP(free_charp) char *found = NULL;

	if (fs_probe(path, &found, err) < 0)
		return -1;
	r->staged_ever = *found != '\0';
	if (fs_known(found))
		r->fs_type = TAKE_PTR(found);
	return 0;
}

/* Nothing may use it meanwhile, for what uses it may be its real owner. */
static int take(struct repair *p, struct volume_record *r, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (volumes_require_device(p->v, r, &d, err) < 0)
		return -1;
	r->size_bytes = d->size_bytes;
	if (d->path && volumes_claim_device(p->v, r, d, &fd, err) < 0)
		return -1;
	if (d->path && probe(r, d->path, err) < 0)
		return -1;
	return volumes_save(p->v, r, err);
}

void repair_adopt(struct repair *p)
{
	const struct device *d = only_candidate(p);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *pool_name = NULL;
	char size[24];

	if (!d)
		return;
	const struct device_pool *pool = device_list_pool(p->v->seen, d->pool);
	if (!pool || !pool->complete) {
		repair_leave(p, "the device's pool is incomplete: bring it back first");
		return;
	}
	if (d->raw) {
		repair_leave(p,
			"the namespace has no mode, so it is half made or half destroyed: nothing in it "
			"can be kept");
		return;
	}
	r = x_calloc(1, sizeof(*r));
	r->id = x_strdup(p->id);
	r->phase = PHASE_READY;
	r->identity = *d->identity ? x_strdup(d->identity) : NULL;
	r->adopted = true;
	r->pool = x_strdup(d->pool);
	strmap_set(&r->parameters, "deviceMode", mode_of(p, pool));
	/* what was seen is listed anew while the device is taken */
	pool_name = x_strdup(pool->name);
	if (take(p, r, &err) < 0) {
		repair_leave(p, "the device has no state and gets none: %s", err->msg);
		return;
	}
	repair_did(p,
		"wrote a state file for the device: %s in pool %s, %s; it can be used or deleted now, but "
		"not "
		"become a block volume",
		format_bytes(r->size_bytes, size), pool_name,
		r->fs_type       ? r->fs_type
		: r->staged_ever ? "content of another kind"
				 : "no content recognised");
}
