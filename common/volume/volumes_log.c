/* SPDX-License-Identifier: Apache-2.0 */
/* For whom volumes are, and the one line in the log for each change of what a volume is or where it is. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "volume/volumes_private.h"

/* More than volumes_log_change() adds, and the end. */
#define FIELDS_MAX 14

char *volumes_pool_name(struct volumes *v, const char *uuid)
{
	pthread_mutex_lock(&v->shared.mutex);
	const struct device_list *seen = device_view_list(v->device_view);
	const struct device_pool *p = seen && uuid ? device_list_pool(seen, uuid) : NULL;
	char *name = x_strdup(p ? p->name : uuid);
	pthread_mutex_unlock(&v->shared.mutex);
	return name;
}

static void add(struct log_field *fields, size_t *n, const char *key, const char *value)
{
	if (value)
		fields[(*n)++] = F_STR(key, value);
}

void volumes_log_change(struct volumes *v, const struct volume_record *r, const struct volume_change *c)
{
	CLEANUP(device_freep)
	struct device *seen = c->device ? NULL : device_view_seen_device(v->device_view, r);
	CLEANUP(free_charp) char *pool = volumes_pool_name(v, r->pool);
	CLEANUP(free_charp) char *claim = claim_text(&r->claim);
	CLEANUP(free_charp) char *pod = claim_pod(c->of ? c->of : &r->claim);
	struct log_field fields[FIELDS_MAX] = {{0}};
	size_t n = 0;

	add(fields, &n, "volume", r->id);
	add(fields, &n, "claim", claim);
	add(fields, &n, "pod", pod);
	add(fields, &n, "kind", volume_record_is_inline(r) ? "inline" : NULL);
	fields[n++] = F_U64("size_bytes", r->size_bytes);
	if (c->from_bytes > 0)
		fields[n++] = F_U64("from_bytes", c->from_bytes);
	add(fields, &n, "pool", pool);
	add(fields, &n, "device", c->device ? c->device : seen ? seen->path : NULL);
	add(fields, &n, "staging", c->staging);
	add(fields, &n, "changed", c->changed);
	add(fields, &n, "target", c->target);
	fields[n++] = F_U64("ms", (clock_ns() - c->begun_ns) / NS_PER_MS);
	log_event(LOG_INFO, c->what, fields);
}

void volumes_read_claim(const struct volume_record *r, const struct strmap *said, struct volume_claim *ret)
{
	/* the parameters of an inline one are what its pod's author writes; only the pod is kubelet's word.
	 * Others have as many pods as they like */
	claim_read(said, volume_record_is_inline(r) ? CLAIM_POD : CLAIM_PVC, ret);
}

void volumes_note_claim(struct volumes *v, struct volume_record *r, const struct strmap *said)
{
	CLEANUP(claim_done) struct volume_claim claim = {0};
	CLEANUP(error_freep) struct error *err = NULL;

	volumes_read_claim(r, said, &claim);
	if (!claim_add(&r->claim, &claim))
		return;
	if (records_save(v->records, r, &err) == 0)
		return;
	records_update_memory(v->records, r);
	log_debug("the claim of a volume is not recorded until its next change", F_STR("volume", r->id),
		F_ERR(err));
}
