/* SPDX-License-Identifier: Apache-2.0 */
/* Erases a deleted volume after DeleteVolume has been answered: first its content, then its device and its
 * record. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/blockdev.h"
#include "pmem/zero_range.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

/* So much is done again after a crash, at most. */
#define CHECKPOINT_BYTES (1ULL << 30)
#define TELL_NS          (60 * NS_PER_S)
#define TELL_PARTS       10
/* The caller that has put the volume into the phase ERASING releases its lock soon. */
#define LOCK_WAIT_MS 10000

struct work {
	struct volumes *v;
	struct volume_record *r;
	struct erasure *erasure;
	uint64_t size_bytes;
	uint64_t end_bytes; /* of what is erased, if all is */
	uint64_t at;        /* what lies before it is zero, or was never written */
	uint64_t written;   /* by this attempt */
	uint64_t bad; /* bytes of bad blocks that the kernel knows of, without those that were left out */
	uint64_t checkpoint; /* where the next one is due */
	uint64_t begun_ns;
	uint64_t told_ns;
	uint64_t told_at;
};

static uint64_t rate(const struct work *w)
{
	uint64_t ms = (clock_ns() - w->begun_ns) / NS_PER_MS;

	return w->written * 1000 / (ms > 0 ? ms : 1);
}

/* Not for what is done within a moment. */
static void tell_progress(struct work *w)
{
	uint64_t now_ns = clock_ns();
	bool further = w->at - w->told_at >= w->end_bytes / TELL_PARTS && now_ns - w->told_ns >= NS_PER_S;

	if (!further && now_ns - w->told_ns < TELL_NS)
		return;
	w->told_ns = now_ns;
	w->told_at = w->at;
	log_info("erasing", F_STR("volume", w->r->id), F_U64("done_bytes", w->at),
		F_U64("size_bytes", w->end_bytes), F_U64("bytes_per_s", rate(w)));
}

/* A record that cannot be written, as on a full disk, only costs time after a crash. */
static void checkpoint(struct work *w)
{
	CLEANUP(error_freep) struct error *err = NULL;

	w->checkpoint = w->at + CHECKPOINT_BYTES;
	w->r->erased_bytes = w->at;
	if (records_save(w->v->records, w->r, &err) < 0)
		log_debug("progress of erasing is not recorded, ignoring", F_STR("volume", w->r->id),
			F_ERR(err));
	STEP_POINT("erase-checkpoint");
}

static int erase_whole(struct work *w, int fd, struct error **err)
{
	while (w->at < w->end_bytes) {
		uint64_t piece;

		if (erasure_turn(w->erasure, w->end_bytes - w->at, &piece, err) < 0)
			return -1;
		if (zero_around(fd, w->at, piece, &w->bad, err) < 0)
			return -1;
		w->at += piece;
		w->written += piece;
		erasure_note(w->erasure, w->at, piece);
		tell_progress(w);
		if (w->at >= w->checkpoint && w->at < w->end_bytes)
			checkpoint(w);
	}
	return 0;
}

static int erase_ends(struct work *w, int fd, struct error **err)
{
	uint64_t end = w->size_bytes < ZERO_ENDS_BYTES ? w->size_bytes : ZERO_ENDS_BYTES;
	uint64_t piece;

	if (erasure_turn(w->erasure, 2 * ZERO_ENDS_BYTES, &piece, err) < 0)
		return -1;
	if (zero_around(fd, 0, end, &w->bad, err) < 0 ||
		zero_around(fd, w->size_bytes - end, end, &w->bad, err) < 0)
		return -1;
	w->written = 2 * ZERO_ENDS_BYTES;
	erasure_note(w->erasure, w->size_bytes, w->written);
	return 0;
}

bool volumes_erases_whole(const struct volume_record *r)
{
	CLEANUP(params_done) struct volume_params params = {0};
	CLEANUP(error_freep) struct error *ignored = NULL;

	/* parameters that cannot be understood are no licence to keep content */
	return params_parse(PARAMS_STATE, &r->parameters, &params, &ignored) < 0 || params.erase_after;
}

uint64_t volumes_erase_end(const struct volume_record *r, uint64_t size_bytes)
{
	uint64_t end_bytes = r->written_end_bytes;

	if (end_bytes == 0 || end_bytes >= size_bytes - size_bytes % ZERO_UNIT_BYTES)
		return size_bytes;
	return (end_bytes + ZERO_UNIT_BYTES - 1) / ZERO_UNIT_BYTES * ZERO_UNIT_BYTES;
}

/* A list that cannot be read has no bad blocks: nothing is left out then. */
static uint64_t find_bad_bytes(struct volumes *v, const struct device *d)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(device_freep) struct device *copy = device_dup(d);
	const struct device_list list = {.devices = copy, .n_devices = 1};
	struct media_errors *found = NULL;

	if (device_media_errors(v->devices, &list, &found, &err) < 0)
		log_debug("media errors are not known, ignoring", F_STR("device", d->path), F_ERR(err));
	uint64_t bytes = found[0].bytes;
	free(found);
	return bytes;
}

static int erase_extent(struct work *w, const struct device *d, bool whole, int fd, struct error **err)
{
	uint64_t bad = find_bad_bytes(w->v, d);

	w->bad = bad;
	if ((whole ? erase_whole(w, fd, err) : erase_ends(w, fd, err)) < 0)
		return -1;
	if (w->bad < bad)
		log_warn("blocks that can be neither written nor read are left out, ignoring",
			F_STR("volume", w->r->id), F_STR("device", d->path), F_U64("bytes", bad - w->bad));
	return 0;
}

static int erase_device(struct work *w, const struct device *d, int fd, struct error **err)
{
	enum log_level level = erasure_is_retry(w->erasure) ? LOG_DEBUG : LOG_INFO;
	CLEANUP(free_charp) char *claim = claim_text(&w->r->claim);
	CLEANUP(free_charp) char *pool = volumes_pool_name(w->v, d->pool);
	bool whole = volumes_erases_whole(w->r);

	erasure_limit(w->erasure, w->r->erase_bytes_per_s);
	volume_lock_set_step(w->v->locks, w->r->id, "erasing its device");
	LOG_AT(level, "erasing begins", F_STR("volume", w->r->id), F_STR("extent", whole ? "all" : "ends"),
		F_U64("done_bytes", w->at), F_U64("size_bytes", w->size_bytes));
	if (erase_extent(w, d, whole, fd, err) < 0)
		return -1;
	/* a field without a key ends the line */
	LOG_AT(level, "volume is erased", F_STR("volume", w->r->id), F_STR("pool", pool),
		F_STR("device", d->path), F_U64("bytes", w->written), F_U64("bytes_per_s", rate(w)),
		F_U64("ms", (clock_ns() - w->begun_ns) / NS_PER_MS),
		claim ? F_STR("claim", claim) : (struct log_field){0});
	STEP_POINT("erase-done");
	return 0;
}

static int erase_and_destroy(
	struct work *w, const struct device *d, struct erase_claim *claim, struct error **err)
{
	if (d->path) {
		if (claim->fd < 0 &&
			device_view_claim_device(w->v->device_view, w->r, d, &claim->fd, err) < 0)
			return -1;
		if (erase_device(w, d, claim->fd, err) < 0)
			return err_wrap(err, "erase volume %s", w->r->id);
	}
	if (device_view_destroy_device(w->v->device_view, d, TAKE_FD(claim->fd), err) < 0) {
		/* the next attempt is not to write it all again */
		checkpoint(w);
		return err_wrap(err, "delete volume %s", w->r->id);
	}
	STEP_POINT("erase-destroyed");
	return 0;
}

/* All that can be read there: a device may be larger than it is listed after an extension that was cut off.
 */
static int size_to_erase(const struct device *d, uint64_t *ret, struct error **err)
{
	struct blockdev_info info = {0};

	if (d->path && blockdev_stat(d->path, &info, err) < 0)
		return -1;
	*ret = info.size_bytes > d->size_bytes ? info.size_bytes : d->size_bytes;
	return 0;
}

/* Returns where erasing continues. It begins again if the namespace has another mode than before, because the
 * same offset is then another place. */
static uint64_t resume_at(const struct volume_record *r, const struct device *d)
{
	if (d->raw != r->erased_raw)
		return 0;
	return r->erased_bytes < d->size_bytes ? r->erased_bytes : d->size_bytes;
}

/* Notes where erasing begins. The progress in the record is discarded if it belongs to the other mode of the
 * namespace, so that reports do not show it. */
static void note_start(struct volumes *v, struct volume_record *r, uint64_t at, bool raw)
{
	if (r->erased_bytes == at && r->erased_raw == raw)
		return;
	if (r->erased_raw != raw)
		r->written_end_bytes = 0;
	r->erased_bytes = at;
	r->erased_raw = raw;
	records_update_memory(v->records, r);
}

static int finish(struct volumes *v, struct volume_record *r, struct erase_claim *claim, struct erasure *e,
	struct error **err)
{
	CLEANUP(device_freep) struct device *d = NULL;
	enum presence presence;

	if (device_view_find_device(v->device_view, r, &d, &presence, err) < 0)
		return -1;
	if (presence != DEVICE_GONE) {
		device_free(TAKE_PTR(d));
		if (device_view_require_device(v->device_view, r, &d, err) < 0)
			return -1;
		uint64_t now_ns = clock_ns();
		uint64_t size_bytes;
		if (size_to_erase(d, &size_bytes, err) < 0)
			return -1;
		uint64_t at = resume_at(r, d);
		note_start(v, r, at, d->raw);
		struct work w = {.v = v,
			.r = r,
			.erasure = e,
			.size_bytes = size_bytes,
			.end_bytes = volumes_erase_end(r, size_bytes),
			.at = at,
			.checkpoint = at + CHECKPOINT_BYTES,
			.begun_ns = now_ns,
			.told_ns = now_ns,
			.told_at = at};
		if (erase_and_destroy(&w, d, claim, err) < 0)
			return -1;
	}
	return records_remove(v->records, r, err);
}

int volumes_erase(
	void *user, const char *id, struct erase_claim *claim, struct erasure *e, struct error **err)
{
	struct volumes *v = user;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	if (!claim->lock && volume_lock(v->locks, id, LOCK_WAIT_MS, &claim->lock, err) < 0)
		return -1;
	r = records_find(v->records, id);
	if (!r || r->phase != PHASE_ERASING)
		return 0;
	if (finish(v, r, claim, e, err) == 0)
		return 0;
	/* FAILED_PRECONDITION would say that nothing was touched */
	if ((*err)->code == ERR_PRECONDITION)
		err_recode(err, ERR_UNAVAILABLE);
	return -1;
}
