/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume: from a name to a device with a durable record, and back again when that fails. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/fs.h"
#include "pmem/zero_range.h"
#include "volume/attachment/allowed_mount_flags.h"
#include "volume/attachment/mount_flags.h"
#include "volume/copies/copy_completion.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/pool_choice.h"
#include "volume/volumes_private.h"

#define ZERO_STEP_BYTES (64ULL << 20)
#define ZERO_WAIT_MS    10000
#define MAKE_WAIT_MS    20000
#define MAKE_PIECE_MS   500
/* A device is made in less: what takes longer is not to hold more threads. */
#define SLOW_NS (2 * NS_PER_S)
/* An operation on devices that takes longer hangs, or handles a device so large that new volumes are better
 * refused until it has finished. */
#define HANGS_NS (20 * NS_PER_S)

static int check_request(const struct volume_request *q, struct volume_params *ret, struct error **err)
{
	if (volume_name_check(q->name, err) < 0)
		return -1;
	if (!q->fs_type && !q->block && !q->snapshot)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "neither a file system nor a block device is requested");
	if (q->fs_type && !fs_known(q->fs_type))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "file system \"%s\" is neither ext4 nor xfs", q->fs_type);
	if (q->limit_bytes > 0 && q->required_bytes > q->limit_bytes)
		return err_set(err, ERR_INVALID_ARGUMENT, "required_bytes is larger than limit_bytes");
	if (params_parse(q->inline_target ? PARAMS_INLINE : PARAMS_CREATE, q->parameters, ret, err) < 0)
		return -1;
	if (ret->kata_containers && q->block) {
		params_done(ret);
		return err_set(err, ERR_INVALID_ARGUMENT,
			"parameter kataContainers=true is for volumes with a file system, not for block volumes");
	}
	if (ret->direct_volume && q->block) {
		params_done(ret);
		return err_set(err, ERR_INVALID_ARGUMENT,
			"parameter " PARAMS_DIRECT
			"=true is for volumes with a file system: a guest gets the device "
			"of a block volume without it");
	}
	if (q->source && ret->is_cache) {
		params_done(ret);
		return err_set(
			err, ERR_INVALID_ARGUMENT, "a cache volume cannot be a clone of another volume");
	}
	if (access_check(q->spans_nodes, ret->is_cache, err) < 0) {
		params_done(ret);
		return -1;
	}
	return 0;
}

const char *volumes_wanted_fs(const struct volume_request *q)
{
	return q->source && q->any_fs ? NULL : q->fs_type;
}

static int check_source(const struct volume_record *r, const struct volume_request *q, struct error **err)
{
	if (str_eq(r->source, q->source) && r->source_is_snapshot == (q->source && q->source_is_snapshot))
		return 0;
	if (!r->source)
		return err_set(err, ERR_EXISTS, "volume %s exists, and is no copy of a volume", r->id);
	return err_set(err, ERR_EXISTS, "%s %s exists, and is a copy of %s %s", volume_noun(r->snapshot),
		r->id, volume_noun(r->source_is_snapshot), r->source);
}

/* A retry may come after the volume was modified, and asks for what it was made with: what was changed by a
 * later call is no difference then. */
static bool is_as_asked(const struct volume_record *r, const char *key, bool same)
{
	return same || strv_contains(r->modified, key);
}

static bool mutable_are_as_asked(
	const struct volume_record *r, const struct volume_params *have, const struct volume_params *wanted)
{
	return is_as_asked(r, PARAMS_USAGE, have->usage == wanted->usage) &&
	       is_as_asked(r, PARAMS_ERASE_AFTER, have->erase_after == wanted->erase_after) &&
	       is_as_asked(r, PARAMS_ERASE_BANDWIDTH, r->erase_bytes_per_s == wanted->erase_bytes_per_s) &&
	       is_as_asked(r, PARAMS_COPY_BANDWIDTH, r->copy_bytes_per_s == wanted->copy_bytes_per_s);
}

/* Whether the volume that bears the name already is the one that is asked for. */
static int check_existing(const struct volume_record *r, const struct volume_request *q,
	const struct volume_params *wanted, struct error **err)
{
	struct volume_params have;

	if (r->snapshot != q->snapshot)
		return err_set(err, ERR_EXISTS, "a %s has that name: %s", volume_noun(r->snapshot), r->id);
	if (q->snapshot)
		return check_source(r, q, err);
	if (r->size_bytes < q->required_bytes || (q->limit_bytes > 0 && r->size_bytes > q->limit_bytes))
		return err_set(err, ERR_EXISTS, "volume %s exists with another size (%llu bytes)", r->id,
			(unsigned long long)r->size_bytes);
	if (params_parse(PARAMS_STATE, &r->parameters, &have, err) < 0)
		return err_wrap(err, "state of volume %s", r->id);
	bool same = mutable_are_as_asked(r, &have, wanted) &&
		    have.kata_containers == wanted->kata_containers && r->direct == wanted->direct_volume &&
		    have.is_cache == wanted->is_cache && have.is_inline == wanted->is_inline &&
		    have.cache_size == wanted->cache_size &&
		    (!r->fs_type || !volumes_wanted_fs(q) || str_eq(r->fs_type, volumes_wanted_fs(q))) &&
		    (!q->block || volume_record_may_be_block(r));
	params_done(&have);
	if (!same)
		return err_set(err, ERR_EXISTS, "volume %s exists with other parameters", r->id);
	return check_source(r, q, err);
}

static int require_existing(struct volumes *v, const struct volume_record *r, const struct volume_request *q,
	const struct volume_params *wanted, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;

	if (device_view_require_content(v->device_view, r, &d, err) < 0)
		return -1;
	return check_existing(r, q, wanted, err);
}

static char *make_uuid(void)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_generate_text(text);
	return x_strdup(text);
}

static struct volume_record *new_record(
	struct volumes *v, const char *id, const struct volume_request *q, const struct volume_params *wanted)
{
	struct volume_record *r = x_calloc(1, sizeof(*r));

	r->id = x_strdup(id);
	r->phase = PHASE_CREATING;
	r->identity = make_uuid();
	r->fs_type = x_strdup(volumes_wanted_fs(q));
	r->made_by_controller = q->made_by_controller;
	r->direct = wanted->direct_volume;
	r->fsync_suffices = wanted->fsync_suffices;
	r->snapshot = q->snapshot;
	/* exactly known when it is filled, which this record may not have */
	r->taken_s = q->snapshot ? (uint64_t)time(NULL) : 0;
	r->group = x_strdup(q->group);
	r->group_size = q->group_size;
	r->erase_bytes_per_s = wanted->erase_bytes_per_s;
	r->copy_bytes_per_s = wanted->copy_bytes_per_s;
	params_to_state(q->parameters, &r->parameters);
	strmap_set(&r->parameters, "name", q->name);
	strmap_set(&r->parameters, "deviceMode", v->devices->ops->mode);
	if (q->inline_target) {
		strmap_set(&r->parameters, "persistencyModel", "ephemeral");
		strv_add(&r->targets, q->inline_target);
	}
	volumes_read_claim(r, q->parameters, &r->claim);
	return r;
}

/* In pieces, so that it can be given up: what is half zeroed is rolled back. */
int volumes_zero(struct volumes *v, int fd, uint64_t size_bytes, struct error **err)
{
	for (uint64_t at = 0; at < size_bytes; at += ZERO_STEP_BYTES) {
		uint64_t left_bytes = size_bytes - at;

		if (erase_queue_is_stopping(v->erase_queue))
			return err_set(err, ERR_UNAVAILABLE, "the driver is stopping");
		if (zero_range(fd, at, left_bytes < ZERO_STEP_BYTES ? left_bytes : ZERO_STEP_BYTES, err) < 0)
			return -1;
	}
	return 0;
}

/* So that nothing of a former owner is recognised; and where a pod or a guest sees the device itself, nothing
 * is left. */
static int clear_device(struct volumes *v, const struct device *d, bool whole, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;

	if (!d->path)
		return 0;
	if (blockdev_open_exclusive(d->path, &fd, err) < 0)
		return -1;
	return whole ? volumes_zero(v, fd, d->size_bytes, err) : zero_ends(fd, d->size_bytes, err);
}

/* A volume that is being made. */
struct creation {
	struct volume_record *r;
	bool sector;
	bool sync;                         /* it needs MAP_SYNC */
	bool block;                        /* it is for block access */
	bool kata;                         /* an image for Kata Containers is to fit into it */
	struct clone_source *source;       /* NULL: it is empty */
	struct concurrency_limit *making;  /* left when the device is there */
	struct concurrency_limit *filling; /* for zeroing or copying; NULL: neither */
	bool in_steps;                     /* it is filled and finished by its caller */
	uint64_t begun_ns;                 /* of one that is made in steps */
	struct device *device;             /* of one that is made in steps */
	bool device_failed;                /* the pool is to blame */
};

static void creation_done(struct creation *c)
{
	concurrency_limit_leave(c->making);
	concurrency_limit_leave(c->filling);
	volumes_close_source(c->source);
	device_free(c->device);
	volume_record_free(c->r);
}

void volumes_close_creation(struct creation *c)
{
	if (!c)
		return;
	creation_done(c);
	free(c);
}

/* Whether pods or guests read the device itself, so that all of it must be zeroed. Parts of a copy that its
 * source does not fill are zeroed when the copy is filled. */
static bool is_seen_raw(const struct creation *c)
{
	return c->block || volume_record_is_seen_raw(c->r);
}

static int make_device(struct volumes *v, struct creation *c, struct device **ret, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	const struct volume_record *r = c->r;
	const struct device_spec spec = {.id = r->id,
		.pool = r->pool,
		.identity = r->identity,
		.size_bytes = r->size_bytes,
		.sector = c->sector};

	volume_lock_set_step(v->locks, r->id, "creating its device");
	if (device_create(v->devices, &spec, &d, err) < 0)
		return -1;
	concurrency_limit_leave(TAKE_PTR(c->making));
	device_view_apply_change(v->device_view, d, /* exists= */ true);
	volume_lock_set_step(v->locks, r->id, "zeroing its device");
	if (!c->source && clear_device(v, d, is_seen_raw(c), err) < 0)
		return err_wrap(err, "new device");
	*ret = TAKE_PTR(d);
	return 0;
}

static int check_room(const struct creation *c, const struct device *d, struct error **err)
{
	if (d->size_bytes >= volumes_source_bytes(c->source))
		return 0;
	return err_set(err, ERR_RANGE, "the new device has %ju bytes, and volume %s has %ju",
		(uintmax_t)d->size_bytes, volumes_source_id(c->source),
		(uintmax_t)volumes_source_bytes(c->source));
}

static int fill_from_source(struct volumes *v, struct creation *c, const struct device *d, struct error **err)
{
	const struct copy_request q = {.source = c->source, .r = c->r, .to = d};

	if (check_room(c, d, err) < 0 || volumes_fill_copies(v, &q, /* n= */ 1, err) < 0)
		return -1;
	STEP_POINT("create-filled");
	return 0;
}

/* Nothing is made yet, so that another node may be better. */
static int record_creation(struct volumes *v, const struct volume_record *r, struct error **err)
{
	CLEANUP(error_freep) struct error *refusal = NULL;

	if (records_save(v->records, r, &refusal) == 0)
		return 0;
	if (state_refuses(refusal)) {
		/* until the next refresh looks: statvfs(3) may not show that a file system has failed */
		(void)records_note_space(v->records, refusal->msg);
		return err_set(
			err, ERR_EXHAUSTED, "no volume can be recorded on this node: %s", refusal->msg);
	}
	*err = TAKE_PTR(refusal);
	return -1;
}

/* Before anything is copied, so that the device says itself whether it was finished. */
static int mark_copy(struct volumes *v, struct creation *c, const struct device *d, struct error **err)
{
	if (!d->path)
		return 0;
	if (copy_completion_mark(d->path, c->r->identity, err) < 0)
		return err_wrap(err, "new device");
	c->r->copy_marked = true;
	c->r->size_bytes = d->size_bytes;
	c->r->block_clean = is_seen_raw(c);
	return records_save(v->records, c->r, err);
}

/* Records the size and the content of the device, which is there and filled. The record of a copy with a mark
 * had both before the copy was complete. */
static int record_device(struct volumes *v, struct creation *c, const struct device *d, struct error **err)
{
	if (c->r->copy_marked)
		return 0;
	c->r->size_bytes = d->size_bytes;
	c->r->block_clean = is_seen_raw(c);
	return records_save(v->records, c->r, err);
}

static int create_in_pool(
	struct volumes *v, struct creation *c, const struct pool_candidate *pool, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	struct volume_record *r = c->r;

	free(r->pool);
	r->pool = x_strdup(pool->uuid);
	r->size_bytes = pool->granted_bytes;
	r->block_clean = false;
	r->copy_marked = false;
	if (record_creation(v, r, err) < 0)
		return -1;
	STEP_POINT("create-recorded");
	c->device_failed = make_device(v, c, &d, err) < 0;
	if (c->device_failed)
		return -1;
	/* a failure from here on is not the pool's */
	if (c->source && mark_copy(v, c, d, err) < 0)
		return -1;
	STEP_POINT("create-device-made");
	if (c->in_steps) {
		c->device = TAKE_PTR(d);
		return check_room(c, c->device, err);
	}
	if (c->source && fill_from_source(v, c, d, err) < 0)
		return -1;
	if ((d->size_bytes != r->size_bytes || is_seen_raw(c) || c->source) &&
		record_device(v, c, d, err) < 0)
		return -1;
	if (records_advance(v->records, r, PHASE_READY, err) < 0)
		return -1;
	STEP_POINT("create-ready");
	return 0;
}

/* The copied data is that of the source's owner, and is erased as the whole volume would be. The rest of the
 * device is left as it is, since the name is in use until then. */
static int give_up_copy(
	struct volumes *v, const struct volume_record *r, const struct fs_extent *written, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *changed = volume_record_dup(r);

	changed->erased_bytes = written->at_bytes / ZERO_UNIT_BYTES * ZERO_UNIT_BYTES;
	if (written->length_bytes < r->size_bytes - written->at_bytes)
		changed->written_end_bytes = written->at_bytes + written->length_bytes;
	if (records_advance(v->records, changed, PHASE_ERASING, err) < 0)
		return -1;
	STEP_POINT("create-copy-given-up");
	return 0;
}

/* @written: by a copy; length 0: nothing was */
static int roll_back(
	struct volumes *v, const struct volume_record *r, const struct fs_extent *written, struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence;

	if (device_view_find_device(v->device_view, r, &d, &presence, err) < 0)
		return -1;
	if (presence == DEVICE_MISSING)
		return err_set(err, ERR_UNAVAILABLE, "its pool is absent or incomplete");
	/* a record without identity was not written by us, and cannot claim a device */
	if (d && r->identity && written->length_bytes > 0)
		return give_up_copy(v, r, written, err);
	if (d && r->identity &&
		device_view_destroy_device(v->device_view, d, /* exclusive_fd= */ -1, err) < 0)
		return -1;
	return records_remove(v->records, r, err);
}

/* How far a copy of an earlier process came is not known. */
int volumes_roll_back(struct volumes *v, const struct volume_record *r, struct error **err)
{
	return roll_back(v, r, &(struct fs_extent){.length_bytes = r->source ? UINT64_MAX : 0}, err);
}

static struct fs_extent written_by(const struct creation *c)
{
	return c->source ? volumes_source_written(c->source) : (struct fs_extent){0};
}

bool volumes_undo_creation(struct volumes *v, struct creation *c, struct error **err)
{
	CLEANUP(error_freep) struct error *undo = NULL;
	struct fs_extent written = written_by(c);

	if (roll_back(v, c->r, &written, &undo) == 0)
		return true;
	/* no other node may be tried while something of it is here */
	err_recode(err, ERR_UNAVAILABLE);
	err_wrap(err, "creation failed and could not be undone yet (%s)", undo->msg);
	return false;
}

/* After a failure nothing partly created is left, unless undoing fails too; then the record stays for the
 * next attempt. Return: whether it is undone. */
static bool undo_create(struct volumes *v, struct creation *c, struct error **err)
{
	/* what was copied has the name until it is erased */
	return volumes_undo_creation(v, c, err) && written_by(c).length_bytes == 0;
}

/* The name's ID in today's form and in the Go driver's. */
static int refuse_strangers(struct volumes *v, const char *id, const char *name, struct error **err)
{
	char go_id[VOLUME_ID_MAX + 1];

	volume_id_mint_go(name, go_id);
	const char *const ids[] = {id, go_id};
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		if (volumes_refuse_stranger(v, ids[i], err) < 0)
			return -1;
	}
	return 0;
}

/* Return: for how long the present operation of the device manager has been going on; 0: none is. */
static uint64_t activity_ns(struct volumes *v, struct device_activity *ret)
{
	device_activity(v->devices, ret);
	uint64_t now_ns = clock_ns();
	return ret->command[0] && now_ns > ret->since_ns ? now_ns - ret->since_ns : 0;
}

/* Where the kernel or LVM hangs, each attempt would hold a thread and leave a record. */
static int refuse_while_stuck(struct volumes *v, struct error **err)
{
	struct device_activity a;
	uint64_t age_ns = activity_ns(v, &a);

	if (age_ns < HANGS_NS)
		return 0;
	return err_set(err, ERR_UNAVAILABLE,
		"no device can be created until \"%s\" has finished, which has been running for %ju s",
		a.command, (uintmax_t)(age_ns / NS_PER_S));
}

/* A burst of requests waits its turn, as long as devices are made at the usual pace. */
int volumes_enter_making(struct volumes *v, struct concurrency_limit **ret, struct error **err)
{
	uint64_t deadline_ns = clock_ns() + MAKE_WAIT_MS * NS_PER_MS;
	struct device_activity a;

	if (refuse_while_stuck(v, err) < 0)
		return -1;
	for (;;) {
		bool wait = clock_ns() < deadline_ns && activity_ns(v, &a) < SLOW_NS;

		if (concurrency_limit_enter(v->making, wait ? MAKE_PIECE_MS : 0, ret, err) == 0)
			return 0;
		if (!wait)
			return err_wrap(err, "create devices");
		error_clear(err);
	}
}

int volumes_enter_zeroing(
	struct volumes *v, const char *id, struct concurrency_limit **ret, struct error **err)
{
	volume_lock_set_step(v->locks, id, "waiting until it can be zeroed");
	return concurrency_limit_enter(v->zeroing, ZERO_WAIT_MS, ret, err);
}

int volumes_enter_cloning(
	struct volumes *v, const char *id, struct concurrency_limit **ret, struct error **err)
{
	volume_lock_set_step(v->locks, id, "waiting until it can be cloned");
	return concurrency_limit_enter(v->cloning, ZERO_WAIT_MS, ret, err);
}

/* Before anything is written, so that refused calls leave nothing. */
static int enter_limits(struct volumes *v, struct creation *c, struct error **err)
{
	if (refuse_while_stuck(v, err) < 0)
		return -1;
	if (c->source && !c->in_steps && volumes_enter_cloning(v, c->r->id, &c->filling, err) < 0)
		return err_wrap(err, "copy a volume");
	if (is_seen_raw(c) && !c->source && volumes_enter_zeroing(v, c->r->id, &c->filling, err) < 0)
		return err_wrap(err, "zero a new %s volume", c->block ? "block" : "direct");
	volume_lock_set_step(v->locks, c->r->id, "waiting until its device can be created");
	return volumes_enter_making(v, &c->making, err);
}

/* Return: whether another pool may do better. */
static bool blame_pool(struct volumes *v, const struct creation *c, const struct error *err)
{
	if (!c->device_failed || err->code == ERR_EXISTS || err->code == ERR_ABORTED ||
		err->code == ERR_INVALID_ARGUMENT)
		return false;
	/* another one was faster; or something hangs that may have nothing to do with this pool */
	if (err->code == ERR_EXHAUSTED || err->code == ERR_UNAVAILABLE)
		return true;
	pthread_mutex_lock(&v->shared.mutex);
	unsigned seconds =
		failing_pools_note(device_view_failing_pools(v->device_view), c->r->pool, clock_ns());
	pthread_mutex_unlock(&v->shared.mutex);
	log_warn("a device could not be created; its pool is avoided and offers no capacity for some time",
		F_STR("pool", c->r->pool), F_U64("seconds", seconds), F_ERR(err));
	volumes_changed(&v->shared);
	return true;
}

static void praise_pool(struct volumes *v, const struct creation *c)
{
	pthread_mutex_lock(&v->shared.mutex);
	bool failed_before = failing_pools_clear(device_view_failing_pools(v->device_view), c->r->pool);
	pthread_mutex_unlock(&v->shared.mutex);
	if (failed_before)
		log_info("devices can be created in the pool again", F_STR("pool", c->r->pool));
}

static int create_in_any(
	struct volumes *v, struct creation *c, const struct pool_choice *pools, struct error **err)
{
	for (size_t i = 0;; i++) {
		c->device_failed = false;
		if (create_in_pool(v, c, &pools->list[i], err) == 0) {
			praise_pool(v, c);
			return 0;
		}
		bool next = blame_pool(v, c, *err);
		if (!undo_create(v, c, err) || !next || i + 1 == pools->n)
			return -1;
		error_clear(err);
	}
}

static void find_pools(struct volumes *v, const struct pool_request *q, struct pool_choice *ret)
{
	pthread_mutex_lock(&v->shared.mutex);
	pool_choice_find(v->devices, device_view_list(v->device_view),
		device_view_failing_pools(v->device_view), &v->durabilities, clock_ns(), q, ret);
	pthread_mutex_unlock(&v->shared.mutex);
}

/* Chooses pools with room for the volume. If none has room, devices are listed again: a pool may have grown
 * since the last listing, and then the pod must not be sent to another node. */
static int choose_pools(struct volumes *v, const struct creation *c, const struct volume_request *q,
	struct pool_choice *ret, struct error **err)
{
	struct pool_request wanted = {.limit_bytes = q->limit_bytes, .sector = c->sector, .sync = c->sync};

	if (pool_required_bytes(q, c->kata, &wanted.required_bytes, err) < 0)
		return -1;
	if (c->source && wanted.required_bytes < volumes_source_bytes(c->source))
		wanted.required_bytes = volumes_source_bytes(c->source);
	find_pools(v, &wanted, ret);
	if (ret->n == 0 && !ret->over_limit) {
		if (device_view_relist(v->device_view, err) < 0)
			return -1;
		pool_choice_done(ret);
		find_pools(v, &wanted, ret);
	}
	return pool_choice_require(ret, wanted.required_bytes, err);
}

/* Another node may have a state folder from which mounts reach the host. */
static int require_kata(struct volumes *v, const struct volume_record *r, struct error **err)
{
	CLEANUP(free_charp) char *why = NULL;

	if (!volumes_offers_kata(v, &why))
		return err_set(err, ERR_EXHAUSTED, "this node has no volumes for Kata Containers: %s", why);
	if (str_eq(v->devices->ops->mode, "fake"))
		log_warn(
			"a volume for Kata Containers is made on a device that stands in for persistent memory: "
			"what a guest flushes there is not durable",
			F_STR("volume", r->id));
	return 0;
}

/* Another node may have the folder. */
static int require_direct(struct volumes *v, struct error **err)
{
	CLEANUP(free_charp) char *why = NULL;

	if (volumes_offers_direct(v, &why))
		return 0;
	return err_set(err, ERR_EXHAUSTED, "this node has no direct volumes: %s", why);
}

/* Once it is made, they cannot be changed any more. A guest has a kernel of its own. */
static int check_mount_flags(
	const struct volume_record *r, const struct volume_request *q, struct error **err)
{
	if (allowed_mount_flags_check(q->mount_flags, r->fs_type, err) < 0)
		return -1;
	if (r->direct || !r->fs_type || mount_flags_check_known(q->mount_flags, r->fs_type, err) == 0)
		return 0;
	/* another node may have an older kernel */
	err_recode(err, ERR_EXHAUSTED);
	return -1;
}

/* Before anything is written. In which pool it will be is not known yet, and the unit of each pool is
 * another. */
static int admit_inline(struct volumes *v, struct pending_creation *pending, const struct pool_choice *pools,
	struct error **err)
{
	uint64_t size_bytes = 0;

	for (size_t i = 0; i < pools->n; i++) {
		if (size_bytes < pools->list[i].granted_bytes)
			size_bytes = pools->list[i].granted_bytes;
	}
	return records_admit_inline(v->records, pending, size_bytes, &v->inline_limits, err);
}

static int record_and_make(struct volumes *v, struct creation *c, struct pending_creation *pending,
	const struct volume_request *q, const struct volume_params *wanted, struct error **err)
{
	CLEANUP(pool_choice_done) struct pool_choice pools = {0};

	if (check_mount_flags(c->r, q, err) < 0)
		return -1;
	if (wanted->kata_containers && require_kata(v, c->r, err) < 0)
		return -1;
	if (wanted->direct_volume && require_direct(v, err) < 0)
		return -1;
	if (refuse_strangers(v, c->r->id, q->name, err) < 0 || records_check_space(v->records, err) < 0)
		return -1;
	if (choose_pools(v, c, q, &pools, err) < 0)
		return -1;
	if (q->inline_target && admit_inline(v, pending, &pools, err) < 0)
		return -1;
	if (enter_limits(v, c, err) < 0)
		return -1;
	return create_in_any(v, c, &pools, err);
}

/* @c: with its record. Opens the source, and makes the device. */
static int make_recorded(struct volumes *v, struct creation *c, const struct volume_request *q,
	const struct volume_params *wanted, struct error **err)
{
	struct pending_creation pending = {.r = c->r};

	if (q->source && volumes_open_source(v, q, wanted, &c->source, err) < 0)
		return -1;
	if (c->source) {
		if (!c->block)
			c->r->fs_uuid = make_uuid();
		c->r->copy_shows = true;
		c->r->source = x_strdup(volumes_source_id(c->source));
		c->r->source_is_snapshot = q->source_is_snapshot;
		volumes_source_layout(c->source, c->r);
	}
	records_begin(v->records, &pending);
	int rc = record_and_make(v, c, &pending, q, wanted, err);
	records_end(v->records, &pending);
	if (rc == 0 || (*err)->code != ERR_EXISTS)
		return rc;
	err_recode(err, ERR_PRECONDITION);
	return err_wrap(err, "device %s exists, but has no state file; see pmem-csi-driver check -repair %s",
		c->r->id, c->r->id);
}

/* No program maps a snapshot. */
static bool needs_sync(const struct volume_request *q, const struct volume_params *wanted)
{
	return !q->snapshot && (params_needs_of(wanted) & PARAMS_NEED_SYNC);
}

static int create_new(struct volumes *v, const char *id, const struct volume_request *q,
	const struct volume_params *wanted, struct volume_record **ret, struct error **err)
{
	CLEANUP(creation_done)
	struct creation c = {.r = new_record(v, id, q, wanted),
		.sector = wanted->usage == USAGE_FILE_IO,
		.sync = needs_sync(q, wanted),
		.block = q->block,
		.kata = wanted->kata_containers};
	const struct volume_change change = {
		.what = q->snapshot ? "snapshot created" : "volume created", .begun_ns = clock_ns()};

	if (make_recorded(v, &c, q, wanted, err) < 0)
		return -1;
	volumes_log_change(v, c.r, &change);
	*ret = TAKE_PTR(c.r);
	return 0;
}

int volumes_begin_creation(struct volumes *v, const char *id, const struct volume_request *q,
	struct creation **ret, struct error **err)
{
	CLEANUP(volumes_close_creationp) struct creation *c = x_calloc(1, sizeof(*c));
	CLEANUP(params_done) struct volume_params wanted = {0};

	if (check_request(q, &wanted, err) < 0)
		return -1;
	*c = (struct creation){.r = new_record(v, id, q, &wanted),
		.sector = wanted.usage == USAGE_FILE_IO,
		.sync = needs_sync(q, &wanted),
		.block = q->block,
		.in_steps = true,
		.begun_ns = clock_ns()};
	if (make_recorded(v, c, q, &wanted, err) < 0)
		return -1;
	*ret = TAKE_PTR(c);
	return 0;
}

struct copy_request volumes_creation_copy(const struct creation *c)
{
	return (struct copy_request){.source = c->source, .r = c->r, .to = c->device};
}

int volumes_record_creation(struct volumes *v, struct creation *c, struct error **err)
{
	return record_device(v, c, c->device, err);
}

int volumes_finish_creation(struct volumes *v, struct creation *c, struct error **err)
{
	const struct volume_change change = {.what = "snapshot created", .begun_ns = c->begun_ns};

	if (records_advance(v->records, c->r, PHASE_READY, err) < 0)
		return -1;
	volumes_log_change(v, c->r, &change);
	return 0;
}

static int refuse_erasing(const struct volume_record *r, struct error **err)
{
	if (r && r->phase == PHASE_ERASING)
		return err_set(err, ERR_ABORTED, "the former volume %s is still being erased", r->id);
	return 0;
}

/* The record that has the name, or else the one that has the ID which the name gives. */
static struct volume_record *find_existing(struct volumes *v, const char *name, const char *id)
{
	struct volume_record *r = records_find_name(v->records, name);

	return r ? r : records_find(v->records, id);
}

static int make_locked(struct volumes *v, const char *id, const struct volume_request *q,
	const struct volume_params *wanted, struct volume_record **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = find_existing(v, q->name, id);

	if (refuse_erasing(r, err) < 0)
		return -1;
	if (r && r->phase == PHASE_CREATING) {
		if (volumes_settle_creation(v, r, err) < 0)
			return err_wrap(err, "volume %s is only partly created", r->id);
		/* what was copied is ready or being erased now */
		volume_record_free(r);
		r = find_existing(v, q->name, id);
		if (refuse_erasing(r, err) < 0)
			return -1;
	}
	if (r && require_existing(v, r, q, wanted, err) < 0)
		return -1;
	if (r)
		volumes_note_claim(v, r, q->parameters);
	/* A claim shows the text of each node that cannot take the volume, so those do not repeat the ID. */
	if (!r && create_new(v, id, q, wanted, &r, err) < 0)
		return (*err)->code == ERR_EXHAUSTED || (*err)->code == ERR_RANGE
			       ? -1
			       : err_wrap(err, "create %s %s", volume_noun(q->snapshot), id);
	*ret = TAKE_PTR(r);
	return 0;
}

void volumes_erase_given_up_copy(struct volumes *v, const char *id)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, id);
	CLEANUP(error_freep) struct error *err = NULL;

	if (r && r->source && r->phase == PHASE_ERASING &&
		erase_queue_add(v->erase_queue, id, /* claim= */ NULL, &err) < 0)
		log_debug("an unfinished clone could not be erased, will be tried again", F_STR("volume", id),
			F_ERR(err));
}

int volumes_create_and_lock(struct volumes *v, const struct volume_request *q, int wait_ms,
	struct volume_lock **ret_lock, struct volume_record **ret, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *known = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(params_done) struct volume_params wanted = {0};
	char id[VOLUME_ID_MAX + 1];

	if (volumes_require_ready(v, err) < 0)
		return -1;
	if (check_request(q, &wanted, err) < 0)
		return -1;
	/* A volume of the Go driver, or one made under another node id, has another ID than the name gives
	 * today. */
	volume_id_mint(q->name, wanted.is_cache ? NULL : v->node_id, id);
	known = find_existing(v, q->name, id);
	/* its lock is held for as long as that takes */
	if (refuse_erasing(known, err) < 0)
		return -1;
	if (known)
		snprintf(id, sizeof(id), "%s", known->id);
	if (volume_lock(v->locks, id, wait_ms, &lock, err) < 0)
		return -1;
	if (make_locked(v, id, q, &wanted, ret, err) < 0) {
		volume_unlock(TAKE_PTR(lock));
		volumes_erase_given_up_copy(v, id);
		return -1;
	}
	*ret_lock = TAKE_PTR(lock);
	return 0;
}

int volumes_create(
	struct volumes *v, const struct volume_request *q, struct volume_info **ret, struct error **err)
{
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	if (volumes_create_and_lock(v, q, /* wait_ms= */ 0, &lock, &r, err) < 0)
		return -1;
	*ret = volumes_info(v, r);
	return 0;
}
