/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logical volumes as devices.
 *
 * The last listing is kept and updated with our own changes, so that creating or destroying a device takes
 * one command. It is relied on only for what LVM itself checks again in the command (a name or extents of one
 * group, a tag); every refusal is decided on a fresh listing. Only a device with the same ID that another
 * program has made in another of our groups since the last listing is not noticed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "pmem/device/device_lvm_private.h"
#include "pmem/lvm/lvm_growth.h"
#include "pmem/lvm/lvm_metadata_reserve.h"
#include "pmem/lvm/lvm_usable.h"
#include "pmem/namespace_layout.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_vg.h"

#define NODE_WAIT_MS 5000
static bool is_uuid(const char *tag)
{
	return strlen(tag) == UUID_TEXT_LEN && strspn(tag, "0123456789abcdef-") == UUID_TEXT_LEN &&
	       tag[8] == '-' && tag[13] == '-' && tag[18] == '-' && tag[23] == '-';
}

/* An administrator may add tags; only ours look like this. Return: "" when there is none. */
static const char *identity_of(const struct lvm_lv *lv)
{
	for (char **tag = lv->tags; tag && *tag; tag++)
		if (is_uuid(*tag))
			return *tag;
	return "";
}

static bool has_node(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

static struct device to_device(const struct lvm_lv *lv)
{
	return (struct device){
		.id = x_strdup(lv->name),
		.pool = x_strdup(lv->vg_uuid),
		.identity = x_strdup(identity_of(lv)),
		.path = x_strdup(lv->path),
		.size_bytes = lv->size_bytes,
		.active = lv->active && has_node(lv->path),
	};
}

static const char *obstacle_of(const struct lvm_vg *vg)
{
	if (!str_empty(vg->system_id))
		return DEVICE_OTHER_MACHINE;
	if (vg->exported)
		return DEVICE_EXPORTED;
	return vg->missing_pvs > 0 ? DEVICE_PARTS_MISSING : NULL;
}

static const struct nd_region *region_with(const struct nd_inventory *inv, const char *block_path)
{
	for (size_t i = 0; i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];

		for (size_t k = 0; k < r->n_namespaces; k++) {
			if (str_eq(r->namespaces[k].block_path, block_path))
				return r;
		}
	}
	return NULL;
}

/* All namespaces of a group are in one region; some may be missing. Return: NULL: all are. */
static const struct nd_region *region_of(const struct device_lvm *m, const struct lvm_vg *vg)
{
	const struct nd_region *r = NULL;

	for (size_t i = 0; i < m->report->n_pvs && !r; i++) {
		if (str_eq(m->report->pvs[i].vg_uuid, vg->uuid))
			r = region_with(m->inv, m->report->pvs[i].path);
	}
	return r;
}

/* How many volumes the group can have: its metadata and an administrator limit that. */
static void set_limits(struct device_pool *p, const struct lvm_vg *vg)
{
	uint64_t more = lvm_metadata_more_volumes(vg);

	p->max_devices = lvm_metadata_max_volumes(vg);
	p->more_devices = more;
	p->limit = DEVICE_NO_TEXT;
	if (vg->max_lvs > 0 && (p->max_devices == 0 || vg->more_lvs < more)) {
		p->max_devices = vg->max_lvs;
		p->more_devices = vg->more_lvs;
		p->limit = DEVICE_NO_VOLUME;
	}
	if (p->complete && p->max_devices > 0 && p->more_devices == 0) {
		p->used_up = p->limit;
		p->capacity.max_volume_bytes = p->capacity.max_sector_volume_bytes = 0;
	}
}

/* LVM changes nothing in a group that lacks parts or is withheld. */
static struct device_pool to_pool(const struct device_lvm *m, const struct lvm_vg *vg)
{
	const struct nd_region *region = region_of(m, vg);
	const char *obstacle = obstacle_of(vg);
	uint64_t usable_bytes = obstacle ? 0 : vg->free_bytes;

	struct device_pool p = {
		.uuid = x_strdup(vg->uuid),
		.name = x_strdup(vg->name),
		.capacity.total_bytes = vg->size_bytes,
		.region = region ? x_strdup(region->identity) : NULL,
		.region_bytes = region ? region->size_bytes : 0,
		.capacity.available_bytes = vg->free_bytes,
		.capacity.max_volume_bytes = usable_bytes,
		.capacity.max_sector_volume_bytes = usable_bytes,
		.rules.unit_bytes = vg->extent_bytes,
		.complete = !obstacle,
		.obstacle = obstacle,
	};
	set_limits(&p, vg);
	return p;
}

static struct device_list *to_list(const struct device_lvm *m)
{
	const struct lvm_report *r = m->report;
	struct device_list *l = x_calloc(1, sizeof(*l));

	l->devices = x_calloc(r->n_lvs, sizeof(*l->devices));
	l->pools = x_calloc(r->n_vgs, sizeof(*l->pools));
	for (size_t i = 0; i < r->n_lvs; i++) {
		if (!lvm_is_spare(&r->lvs[i]))
			l->devices[l->n_devices++] = to_device(&r->lvs[i]);
	}
	for (size_t i = 0; i < r->n_vgs; i++)
		l->pools[l->n_pools++] = to_pool(m, &r->vgs[i]);
	return l;
}

/* @paths: taken over */
static void keep_paths(struct device_lvm *m, char ***paths)
{
	pthread_mutex_lock(&m->mutex);
	char **old = m->paths;
	m->paths = TAKE_PTR(*paths);
	pthread_mutex_unlock(&m->mutex);
	strv_free(old);
}

int device_lvm_refresh(struct device_lvm *m, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;
	CLEANUP(strv_freep) char **paths = NULL;

	if (nd_list(m->nd, &inv, err) < 0)
		return err_wrap(err, "list namespaces");
	if (pool_vg_claim(m->lvm, inv, err) < 0)
		return -1;
	pool_vg_devices(inv, &paths);
	lvm_set_devices(m->lvm, (const char *const *)paths, strv_len(paths));
	keep_paths(m, &paths);
	if (lvm_list(m->lvm, &report, err) < 0)
		return err_wrap(err, "list volume groups");
	device_lvm_limit_space(m, report);
	lvm_report_free(m->report);
	m->report = TAKE_PTR(report);
	nd_inventory_free(m->inv);
	m->inv = TAKE_PTR(inv);
	device_list_free(m->seen);
	m->seen = to_list(m);
	return 0;
}

static int list(void *self, struct device_list **ret, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (bounded_lock_take(&m->lock, "list devices", DEVICE_LVM_WAIT_MS, &lock, err) < 0)
		return -1;
	if (device_lvm_refresh(m, err) < 0)
		return -1;
	*ret = to_list(m);
	return 0;
}

/* A copy of our devices on another disk has volumes of the same names and UUIDs, which may be active: LVM,
 * which does not see that disk, takes them for ours. */
int device_lvm_confirm(void *self, const struct device *d, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(strv_freep) char **paths = NULL;

	pthread_mutex_lock(&m->mutex);
	for (char **path = m->paths; path && *path; path++)
		strv_add(&paths, *path);
	pthread_mutex_unlock(&m->mutex);
	if (dm_require_on(d->path, paths, err) < 0)
		return err_wrap(err,
			"the device that is active as volume %s is not on persistent memory of this driver: "
			"deactivate the copy of its group (lvchange -an)",
			d->id);
	return 0;
}

const struct device *device_lvm_find(const struct device_lvm *m, const char *pool, const char *id)
{
	const struct device *end = m->seen->devices + m->seen->n_devices;

	for (const struct device *d = device_list_find(m->seen, id); d && d < end && str_eq(d->id, id); d++) {
		if (str_eq(d->pool, pool))
			return d;
	}
	return NULL;
}

static int run_lvcreate(struct device_lvm *m, const struct device_spec *spec, const char *group,
	uint64_t bytes, struct error **err)
{
	CLEANUP(free_charp) char *size = x_asprintf("%jub", (uintmax_t)bytes);
	/* -Zn -Wn: the caller clears the content, and LVM does not wait for the node. */
	const char *argv[LVM_WORDS_MAX + 1] = {"lvcreate", "-y", "-Zn", "-Wn", "--addtag", spec->identity,
		"-n", spec->id, "-L", size, group};

	if (lvm_usable_add(device_lvm_group(m, spec->pool), argv, err) < 0)
		return -1;
	return STEP("lvm-create", lvm_run(m->lvm, argv, NULL, err));
}

static int run_lvremove(struct device_lvm *m, const struct device *d, struct error **err)
{
	const struct device_pool *pool = device_list_pool(m->seen, d->pool);
	/* By this selection LVM itself compares the identity, under its own lock. */
	CLEANUP(free_charp)
	char *select =
		*d->identity ? x_asprintf("lv_name=%s&&vg_uuid=%s&&lv_tags={%s}", d->id, d->pool, d->identity)
			     : x_asprintf("lv_name=%s&&vg_uuid=%s", d->id, d->pool);
	const char *const argv[] = {"lvremove", "-y", "-S", select, pool->name, NULL};

	return STEP("lvm-remove", lvm_run(m->lvm, argv, NULL, err));
}

/* Return: 0, or why the device cannot be made, from what was seen. */
static enum err_code find_obstacle(const struct device_lvm *m, const struct device_spec *spec)
{
	const struct device_pool *pool = device_list_pool(m->seen, spec->pool);

	if (!pool)
		return ERR_NOT_FOUND;
	if (device_list_find(m->seen, spec->id))
		return ERR_EXISTS;
	if (!pool->complete)
		return ERR_UNAVAILABLE;
	return pool->used_up || spec->size_bytes > pool->capacity.max_volume_bytes ? ERR_EXHAUSTED : 0;
}

static int fail_obstacle(
	const struct device_lvm *m, enum err_code code, const struct device_spec *spec, struct error **err)
{
	const struct device_pool *pool = device_list_pool(m->seen, spec->pool);

	if (code == ERR_NOT_FOUND)
		return err_set(err, code, "device %s: volume group %s does not exist", spec->id, spec->pool);
	if (code == ERR_EXISTS)
		return err_set(err, code, "device %s exists", spec->id);
	if (code == ERR_UNAVAILABLE)
		return err_set(
			err, code, "device %s: volume group %s %s", spec->id, pool->name, pool->obstacle);
	if (pool->used_up)
		return err_set(err, code,
			"device %s: no free %s of volume group %s: it cannot have more volumes", spec->id,
			pool->used_up, pool->name);
	err_set(err, code, "device %s: %ju bytes do not fit in volume group %s", spec->id,
		(uintmax_t)spec->size_bytes, spec->pool);
	return device_lvm_name_bad_space(m, spec->pool, err);
}

/* The kept listing may be old: an obstacle counts only after a fresh listing. */
static int check_spec(struct device_lvm *m, const struct device_spec *spec, struct error **err)
{
	/* LVM takes "group/name" for a name too, and reads a group out of it. */
	if (!device_id_valid(spec->id))
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a valid name of a volume", spec->id);
	if (!is_uuid(spec->identity))
		return err_set(err, ERR_INVALID_ARGUMENT, "identity \"%s\" is not a UUID", spec->identity);
	if (m->seen && find_obstacle(m, spec) == 0 && device_lvm_is_space_kept(m, spec->pool))
		return 0;
	if (device_lvm_refresh(m, err) < 0)
		return -1;

	enum err_code code = find_obstacle(m, spec);
	return code ? fail_obstacle(m, code, spec, err) : 0;
}

static int make(struct device_lvm *m, const struct device_spec *spec, struct device **ret, struct error **err)
{
	const struct device_pool *pool = device_list_pool(m->seen, spec->pool);
	uint64_t bytes = layout_round_up(spec->size_bytes ? spec->size_bytes : 1, pool->rules.unit_bytes);
	CLEANUP(free_charp) char *path = x_asprintf("/dev/%s/%s", pool->name, spec->id);
	struct blockdev_info info;

	if (run_lvcreate(m, spec, pool->name, bytes, err) < 0)
		return -1;
	if (blockdev_wait(path, NODE_WAIT_MS, err) < 0)
		return -1;
	if (blockdev_stat(path, &info, err) < 0)
		return -1;

	struct device *d = x_malloc(sizeof(*d));
	*d = (struct device){
		.id = x_strdup(spec->id),
		.pool = x_strdup(spec->pool),
		.identity = x_strdup(spec->identity),
		.path = TAKE_PTR(path),
		.size_bytes = info.size_bytes,
		.active = true,
	};
	*ret = d;
	return 0;
}

/* Removes the parts of a device whose creation failed. The error code follows from the state of the pool, and
 * not from LVM's messages. */
static int clean_up_and_explain(struct device_lvm *m, const struct device_spec *spec, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	enum err_code code;

	if (device_lvm_refresh(m, &ignored) < 0)
		return -1;

	const struct device *d = device_lvm_find(m, spec->pool, spec->id);
	if (d && str_eq(d->identity, spec->identity)) {
		if (run_lvremove(m, d, &ignored) < 0)
			return err_wrap(err, "device %s is left partly created (%s)", spec->id, ignored->msg);
		device_list_free(TAKE_PTR(m->seen));
		return err_wrap(err, "device %s", spec->id);
	}
	code = find_obstacle(m, spec);
	if ((*err)->code != ERR_INTERNAL || !code)
		return err_wrap(err, "device %s", spec->id);
	error_clear(err);
	return fail_obstacle(m, code, spec, err);
}

static int create_locked(
	struct device_lvm *m, const struct device_spec *spec, struct device **ret, struct error **err)
{
	if (check_spec(m, spec, err) < 0)
		return -1;
	if (make(m, spec, ret, err) < 0)
		return clean_up_and_explain(m, spec, err);
	device_list_note(m->seen, *ret, /* exists= */ true);
	return 0;
}

static int create(void *self, const struct device_spec *spec, struct device **ret, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (bounded_lock_take(&m->lock, "create a device", DEVICE_LVM_WAIT_MS, &lock, err) < 0)
		return err_wrap(err, "device %s", spec->id);
	return create_locked(m, spec, ret, err);
}

int device_lvm_refuse_other(const struct device *wanted, struct error **err)
{
	return err_set(err, ERR_PRECONDITION, "another logical volume has the name of device %s", wanted->id);
}

/* A device without identity can be distinguished from another one only by a fresh listing.
 * @ret: the device as it was seen, or NULL when its group is complete and lacks it. */
static int find_to_destroy(
	struct device_lvm *m, const struct device *wanted, const struct device **ret, struct error **err)
{
	const struct device *d = m->seen ? device_lvm_find(m, wanted->pool, wanted->id) : NULL;

	if (!d || !*d->identity || !str_eq(d->identity, wanted->identity)) {
		if (device_lvm_refresh(m, err) < 0)
			return -1;
		d = device_lvm_find(m, wanted->pool, wanted->id);
	}
	if (d && !str_eq(d->identity, wanted->identity))
		return device_lvm_refuse_other(wanted, err);

	const struct device_pool *pool = device_list_pool(m->seen, wanted->pool);
	if (!pool || !pool->complete)
		return err_set(err, ERR_UNAVAILABLE, "device %s: volume group %s %s", wanted->id,
			pool ? pool->name : wanted->pool, pool ? pool->obstacle : "is absent");
	*ret = d;
	return 0;
}

/* The selection matches nothing, without an error, if another device has taken the name since the last
 * listing.
 */
static int check_gone(struct device_lvm *m, const struct device *d, struct error **err)
{
	struct stat st;

	if (d->active && stat(d->path, &st) < 0 && errno == ENOENT) {
		device_list_note(m->seen, d, /* exists= */ false);
		return 0;
	}
	if (device_lvm_refresh(m, err) < 0)
		return -1;

	const struct device *now = device_lvm_find(m, d->pool, d->id);
	if (!now)
		return 0;
	if (!str_eq(now->identity, d->identity))
		return device_lvm_refuse_other(d, err);
	return err_set(err, ERR_INTERNAL, "device %s still exists after its removal", d->id);
}

static int destroy_locked(
	struct device_lvm *m, const struct device *wanted, int *exclusive_fd, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	const struct device *found = NULL;

	if (find_to_destroy(m, wanted, &found, err) < 0)
		return -1;
	if (!found)
		return 0;
	d = device_dup(found);
	fd_closep(exclusive_fd);
	*exclusive_fd = -1;
	if (dm_wait_unused(d->path, err) < 0)
		return -1;
	if (run_lvremove(m, d, err) < 0)
		return err_wrap(err, "device %s", d->id);
	return check_gone(m, d, err);
}

static int destroy(void *self, const struct device *device, int exclusive_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = exclusive_fd;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;
	struct device_lvm *m = self;

	if (bounded_lock_take(&m->lock, "remove a device", DEVICE_LVM_WAIT_MS, &lock, err) < 0)
		return err_wrap(err, "device %s", device->id);
	return destroy_locked(m, device, &fd, err);
}

/* Groups with inactive devices in @l: complete ones, or the others. */
static char **inactive_groups(const struct device_list *l, bool complete)
{
	char **names = NULL;

	for (size_t i = 0; i < l->n_devices; i++) {
		const struct device_pool *pool = device_list_pool(l, l->devices[i].pool);
		if (!l->devices[i].active && pool->complete == complete && !strv_contains(names, pool->name))
			strv_add(&names, pool->name);
	}
	return names;
}

/* A device that is active already has no node where another container's LVM made it. */
static int make_nodes(struct device_lvm *m, const struct device_list *l, struct error **err)
{
	static const char *const argv[] = {"vgmknodes", NULL};
	bool tried = false;

	for (size_t i = 0; i < l->n_devices; i++) {
		const struct device *d = &l->devices[i];
		if (d->active || has_node(d->path) || !device_list_pool(l, d->pool)->complete)
			continue;
		if (!tried && STEP("lvm-nodes", lvm_run(m->lvm, argv, NULL, err)) < 0)
			return -1;
		tried = true;
		if (blockdev_wait(d->path, NODE_WAIT_MS, err) < 0)
			return -1;
	}
	return 0;
}

/* The caller has to know: LVM would say nothing that helps. */
static int refuse_withheld(const struct device_list *l, struct error **err)
{
	for (size_t i = 0; i < l->n_devices; i++) {
		const struct device_pool *pool = device_list_pool(l, l->devices[i].pool);
		if (!l->devices[i].active && pool->obstacle && !str_eq(pool->obstacle, DEVICE_PARTS_MISSING))
			return err_set(
				err, ERR_UNAVAILABLE, "volume group %s %s", pool->name, pool->obstacle);
	}
	return 0;
}

static int activate_locked(struct device_lvm *m, const struct device_list *l, struct error **err)
{
	CLEANUP(strv_freep) char **complete = inactive_groups(l, true);
	CLEANUP(strv_freep) char **incomplete = inactive_groups(l, false);
	CLEANUP(error_freep) struct error *partial = NULL;

	if (!complete && !incomplete)
		return 0;
	if (!m->seen && device_lvm_refresh(m, err) < 0)
		return -1;
	/* In an incomplete volume group, LVM activates the volumes whose devices are present, and then
	 * reports failure. */
	if (lvm_activate(m->lvm, incomplete, &partial) < 0)
		log_debug("incomplete volume groups are not all active", F_ERR(partial));
	if (lvm_activate(m->lvm, complete, err) < 0)
		return err_wrap(err, "activate devices");
	if (make_nodes(m, l, err) < 0)
		return err_wrap(err, "activate devices");
	return refuse_withheld(l, err);
}

static int activate(void *self, const struct device_list *l, struct error **err)
{
	struct device_lvm *m = self;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (bounded_lock_take(&m->lock, "activate devices", DEVICE_LVM_WAIT_MS, &lock, err) < 0)
		return -1;
	return activate_locked(m, l, err);
}

/* Nothing is refused if there is no copy: the devices themselves have two copies of the metadata. */
static void back_up(void *self)
{
	struct device_lvm *m = self;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (!m->saved_folder ||
		bounded_lock_take(&m->lock, "save copies of metadata", DEVICE_LVM_WAIT_MS, &lock, &err) < 0 ||
		!m->report)
		return;
	bool failed = pool_backup_catch_up(m->saved_folder, m->lvm, m->report, &err) < 0;
	if (failed && !m->saving_fails)
		log_warn("copies of the volume groups' metadata cannot be kept, continuing without them",
			F_STR("folder", m->saved_folder), F_ERR(err));
	m->saving_fails = failed;
}

static void tick(void *self)
{
	struct device_lvm *m = self;

	lvm_idle(m->lvm);
}

/* Between commands, what may hang is the kernel's list of namespaces, or the disk of the copies. */
static void activity(void *self, struct device_activity *ret)
{
	struct device_lvm *m = self;
	struct lvm_activity lvm;
	char step[BOUNDED_LOCK_STEP_MAX];

	lvm_activity(m->lvm, &lvm);
	*ret = (struct device_activity){.since_ns = lvm.since_ns, .restarts = lvm.restarts};
	snprintf(ret->command, sizeof(ret->command), "%s", lvm.command);
	if (!str_empty(ret->command))
		return;
	ret->since_ns = nd_activity(step);
	if (str_empty(step))
		ret->since_ns = bounded_lock_current_step(&m->lock, step);
	snprintf(ret->command, sizeof(ret->command), "%s", step);
}

static void close_manager(void *self)
{
	struct device_lvm *m = self;

	device_list_free(m->seen);
	lvm_report_free(m->report);
	free(m->saved_folder);
	lvm_close(m->lvm);
	nd_inventory_free(m->inv);
	nd_close(m->nd);
	strv_free(m->spares);
	strv_free(m->paths);
	pthread_mutex_destroy(&m->mutex);
	bounded_lock_done(&m->lock);
	free(m);
}

static const struct device_ops ops = {
	.mode = "lvm",
	.list = list,
	.confirm = device_lvm_confirm,
	.create = create,
	.grow = device_lvm_grow,
	.remove_leftovers = device_lvm_remove_leftovers,
	.destroy = destroy,
	.activate = activate,
	.fit = device_fit_units,
	.media_errors = device_lvm_media_errors,
	.tick = tick,
	.back_up = back_up,
	.activity = activity,
	.close = close_manager,
};

struct device_manager *device_open_lvm(struct nd *nd, struct lvm *lvm, const char *saved_folder)
{
	struct device_manager *manager = x_malloc(sizeof(*manager));
	struct device_lvm *m = x_calloc(1, sizeof(*m));

	bounded_lock_init(&m->lock);
	pthread_mutex_init(&m->mutex, NULL);
	m->nd = nd;
	m->lvm = lvm;
	m->saved_folder = saved_folder ? x_strdup(saved_folder) : NULL;
	*manager = (struct device_manager){.ops = &ops, .self = m};
	return manager;
}
