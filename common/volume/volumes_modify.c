/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerModifyVolume: parameters of a volume change in its record, in one durable write. Nothing is done
 * to its device: the usage decides how it is mounted next, and the others how it is erased and copied. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

#define TEXT_MAX_BYTES 16384

/* Why the usage of a volume is what it was created with; NULL: it can be changed. */
static const char *fixed_usage(const struct volumes *v, const struct volume_params *have)
{
	const char *mode = have->device_mode ? have->device_mode : v->devices->ops->mode;

	if (have->is_inline)
		return "an inline volume keeps its usage";
	if (have->is_cache)
		return "a cache volume keeps its usage";
	if (have->kata_containers)
		return "it is for Kata Containers, whose guests need DAX";
	if (str_eq(mode, "direct"))
		return "it is a namespace, in fsdax mode for AppDirect and in sector mode for FileIO; a clone can "
		       "have the other usage";
	return NULL;
}

static void note_modified(struct volume_record *r, const char *key)
{
	if (!strv_contains(r->modified, key))
		strv_add(&r->modified, key);
}

/* Where it is mounted already, it stays as it is: staged_usage says how, until it is mounted again. */
static int change_usage(const struct volumes *v, struct volume_record *r, const struct volume_params *have,
	enum volume_usage wanted, struct error **err)
{
	const char *why = fixed_usage(v, have);

	if (wanted == have->usage)
		return 0;
	if (why)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"parameter \"" PARAMS_USAGE "\" of volume %s cannot be changed to \"%s\": %s", r->id,
			volume_usage_name(wanted), why);
	if (!r->staged_usage && volume_record_may_hold_data(r))
		r->staged_usage = x_strdup(volume_usage_name(have->usage));
	strmap_set(&r->parameters, PARAMS_USAGE, volume_usage_name(wanted));
	note_modified(r, PARAMS_USAGE);
	return 0;
}

static void change_erase_after(struct volume_record *r, const struct volume_params *have, bool wanted)
{
	if (wanted == have->erase_after)
		return;
	strmap_set(&r->parameters, PARAMS_ERASE_AFTER, wanted ? "true" : "false");
	note_modified(r, PARAMS_ERASE_AFTER);
}

static void change_bandwidth(struct volume_record *r, const char *key, uint64_t *at, uint64_t wanted)
{
	if (wanted == *at)
		return;
	*at = wanted;
	note_modified(r, key);
}

/* Changes those parameters in @r that are in @said, to the values in @wanted. */
static int change_record(const struct volumes *v, struct volume_record *r, const struct strmap *said,
	const struct volume_params *wanted, struct error **err)
{
	CLEANUP(params_done) struct volume_params have = {0};

	if (params_parse(PARAMS_STATE, &r->parameters, &have, err) < 0)
		return err_wrap(err, "state of volume %s", r->id);
	if (strmap_get(said, PARAMS_USAGE) && change_usage(v, r, &have, wanted->usage, err) < 0)
		return -1;
	if (strmap_get(said, PARAMS_ERASE_AFTER))
		change_erase_after(r, &have, wanted->erase_after);
	if (strmap_get(said, PARAMS_ERASE_BANDWIDTH))
		change_bandwidth(r, PARAMS_ERASE_BANDWIDTH, &r->erase_bytes_per_s, wanted->erase_bytes_per_s);
	if (strmap_get(said, PARAMS_COPY_BANDWIDTH))
		change_bandwidth(r, PARAMS_COPY_BANDWIDTH, &r->copy_bytes_per_s, wanted->copy_bytes_per_s);
	return 0;
}

/* For the log: what was asked for, without what external-resizer adds. */
static char *describe(const struct strmap *said)
{
	static const char *const keys[] = {
		PARAMS_USAGE, PARAMS_ERASE_AFTER, PARAMS_ERASE_BANDWIDTH, PARAMS_COPY_BANDWIDTH};
	CLEANUP(buf_done) struct buf out = BUF_INIT(TEXT_MAX_BYTES);

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const char *value = strmap_get(said, keys[i]);

		if (value)
			buf_addf(&out, "%s%s=%s", out.len > 0 ? " " : "", keys[i], value);
	}
	return x_strdup(buf_str(&out));
}

static bool is_same(const struct volume_record *a, const struct volume_record *b)
{
	static const char *const keys[] = {PARAMS_USAGE, PARAMS_ERASE_AFTER};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		if (!str_eq(strmap_get(&a->parameters, keys[i]), strmap_get(&b->parameters, keys[i])))
			return false;
	}
	return a->erase_bytes_per_s == b->erase_bytes_per_s && a->copy_bytes_per_s == b->copy_bytes_per_s;
}

int volumes_modify(struct volumes *v, const struct modify_request *q, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *before = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(params_done) struct volume_params wanted = {0};
	struct volume_change change = {.what = "volume modified", .begun_ns = clock_ns()};

	if (volumes_require_ready(v, err) < 0 || params_parse(PARAMS_MODIFY, q->parameters, &wanted, err) < 0)
		return -1;
	if (volumes_lock_ready(v, q->handle, /* wait_ms= */ 0, &lock, &r, err) < 0)
		return -1;
	before = volume_record_dup(r);
	if (change_record(v, r, q->parameters, &wanted, err) < 0)
		return -1;
	if (is_same(before, r))
		return 0;
	if (records_save(v->records, r, err) < 0)
		return -1;
	STEP_POINT("modify-recorded");
	CLEANUP(free_charp) char *changed = describe(q->parameters);
	change.changed = changed;
	volumes_log_change(v, r, &change);
	return 0;
}
