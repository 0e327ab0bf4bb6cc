/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/pool_choice.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "os/fs.h"
#include "pmem/best_fit.h"

/* Bytes that the file system around an image needs for itself, such as for its log. */
#define AROUND_IMAGE_BYTES (16ULL << 20)

/* The file system in an image is as large as any, and that around it a third larger. */
uint64_t pool_min_bytes(const char *fs_type, bool image)
{
	uint64_t bytes = fs_min_bytes(fs_type);

	return image ? bytes + bytes / 3 + AROUND_IMAGE_BYTES : bytes;
}

int pool_required_bytes(const struct volume_request *q, bool image, uint64_t *ret, struct error **err)
{
	char text[24];
	uint64_t min_bytes = q->fs_type ? pool_min_bytes(q->fs_type, image) : 0;
	uint64_t bytes = q->required_bytes > min_bytes ? q->required_bytes : min_bytes;

	if (q->limit_bytes > 0 && bytes > q->limit_bytes)
		return err_set(err, ERR_RANGE, "limit_bytes %llu is below the minimum of %s for %s",
			(unsigned long long)q->limit_bytes, format_bytes(min_bytes, text), q->fs_type);
	*ret = bytes;
	return 0;
}

void pool_choice_done(struct pool_choice *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->list[i].uuid);
	free(c->list);
	*c = (struct pool_choice){0};
}

static int compare_candidates(const void *a, const void *b)
{
	const struct pool_candidate *x = a;
	const struct pool_candidate *y = b;

	if (x->avoided != y->avoided)
		return x->avoided ? 1 : -1;
	return best_fit_compare(x->max_volume_bytes, y->max_volume_bytes);
}

/* Whether MAP_SYNC is needed and refused there. */
static bool lacks_sync(
	const struct pool_request *q, const struct region_durabilities *known, const struct device_pool *p)
{
	return q->sync && region_durabilities_of(known, p->region) == DURABILITY_FSYNC;
}

void pool_choice_find(const struct device_manager *devices, const struct device_list *seen,
	const struct failing_pools *failing, const struct region_durabilities *known, uint64_t now_ns,
	const struct pool_request *q, struct pool_choice *ret)
{
	struct pool_choice c = {0};

	for (size_t i = 0; i < seen->n_pools; i++) {
		const struct device_pool *p = &seen->pools[i];
		uint64_t max_bytes = capacity_max_bytes(&p->capacity, q->sector);
		uint64_t granted_bytes = device_fit(devices, p, q->sector, q->required_bytes);

		if (lacks_sync(q, known, p)) {
			if (granted_bytes != UINT64_MAX)
				snprintf(c.no_sync, sizeof(c.no_sync), "%s", p->name);
			continue;
		}
		if (p->complete && !p->closed && max_bytes > c.max_volume_bytes)
			c.max_volume_bytes = max_bytes;
		if (p->used_up && !p->closed && !c.used_up[0])
			snprintf(c.used_up, sizeof(c.used_up), "%s in %s", p->used_up, p->name);
		if (granted_bytes == UINT64_MAX)
			continue;
		if (q->limit_bytes > 0 && granted_bytes > q->limit_bytes) {
			c.over_limit = true;
			continue;
		}
		c.list = x_realloc(c.list, c.n + 1, sizeof(*c.list));
		c.list[c.n++] = (struct pool_candidate){.uuid = x_strdup(p->uuid),
			.avoided = failing_pools_avoids(failing, p->uuid, now_ns),
			.granted_bytes = granted_bytes,
			.max_volume_bytes = max_bytes};
	}
	if (c.n > 1)
		qsort(c.list, c.n, sizeof(*c.list), compare_candidates);
	*ret = c;
}

int pool_choice_require(const struct pool_choice *c, uint64_t required_bytes, struct error **err)
{
	char largest[24];
	char required[24];

	if (c->n > 0)
		return 0;
	format_bytes(required_bytes, required);
	if (c->over_limit)
		return err_set(err, ERR_RANGE,
			"%s, rounded up to what the pool can allocate, exceed limit_bytes", required);
	return err_set(err, ERR_EXHAUSTED,
		"not enough space: %s needed, the largest possible volume has %s%s%s%s%s%s", required,
		format_bytes(c->max_volume_bytes, largest), c->used_up[0] ? "; no free " : "", c->used_up,
		c->no_sync[0] ? "; " : "", c->no_sync,
		c->no_sync[0]
			? " has room, but the kernel refuses MAP_SYNC on its memory: a StorageClass with "
			  "durability=fsync uses it, for programs that call fsync"
			: "");
}
