/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_ns.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/random.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/lock.h"
#include "pmem/namespace_layout.h"

#define LOCK_NAME       "pool.lock"
#define LOCK_TIMEOUT_MS 300000

#define NODE_WAIT_MS 5000
/* Superblocks of file systems, partition tables and LVM's labels lie in it. */
#define LOOK_BYTES (1U << 20)

int pool_ns_lock(int *ret_fd, struct error **err)
{
	return host_lock_run(LOCK_NAME, LOCK_TIMEOUT_MS, ret_fd, err);
}

/* The smallest pool namespace of a region. */
static uint64_t min_bytes(uint64_t unit_bytes)
{
	return layout_round_up(POOL_MIN_BYTES, unit_bytes);
}

static const char *unusable(const struct nd_region *r, uint64_t unit_bytes)
{
	if (!r->is_pmem)
		return "not persistent memory";
	if (r->refused)
		return r->refused;
	if (!r->enabled)
		return "the region is disabled";
	if (r->readonly)
		return "the region is read-only";
	if (!r->has_labels)
		return "no labels: the region cannot be divided into namespaces with names (pmem-ns-init "
		       "advise says what makes it usable)";
	if (unit_bytes == UINT64_MAX)
		return "the alignment of the region is invalid";
	return NULL;
}

static uint64_t percent_of(uint64_t bytes, unsigned percent)
{
	return (uint64_t)((unsigned __int128)bytes * percent / 100);
}

static uint64_t sum_own(const struct nd_region *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n_namespaces; i++)
		if (nd_is_own(&r->namespaces[i]) &&
			__builtin_add_overflow(sum, r->namespaces[i].raw_bytes, &sum))
			return UINT64_MAX;
	return sum;
}

static const struct nd_namespace *find_broken(const struct nd_region *r)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (str_eq(r->namespaces[i].name, POOL_NAMESPACE_NAME) && !nd_is_pool(&r->namespaces[i]))
			return &r->namespaces[i];
	return NULL;
}

struct space {
	struct extent *used; /* sorted; room for those that are planned */
	size_t n;
	uint64_t region_bytes;
	uint64_t unit_bytes;
	uint64_t first_bytes; /* the largest offer, before anything is planned */
	bool is_mapped;       /* places are known; otherwise only the largest extent is */
};

static void insert_extent(struct space *s, struct extent e)
{
	size_t i = s->n++;

	for (; i > 0 && s->used[i - 1].start_bytes > e.start_bytes; i--)
		s->used[i] = s->used[i - 1];
	s->used[i] = e;
}

/* The kernel also knows allocations that no namespace shows, so if its largest extent is smaller, it is
 * used.
 */
static void space_init(struct space *s, const struct nd_region *r, uint64_t unit_bytes, size_t max_new)
{
	uint64_t kernel_bytes = layout_round_down(r->max_extent_bytes, unit_bytes);

	*s = (struct space){
		.used = x_calloc(r->n_namespaces + max_new, sizeof(*s->used)),
		.region_bytes = r->size_bytes,
		.unit_bytes = unit_bytes,
		.is_mapped = true,
	};
	for (size_t i = 0; i < r->n_namespaces; i++) {
		const struct nd_namespace *ns = &r->namespaces[i];
		if (ns->offset_bytes == ND_OFFSET_UNKNOWN)
			s->is_mapped = false;
		else
			insert_extent(s, (struct extent){ns->offset_bytes, ns->raw_bytes});
	}
	s->first_bytes = layout_largest_extent(s->used, s->n, s->region_bytes, unit_bytes);
	if (!s->is_mapped || s->first_bytes > kernel_bytes) {
		s->is_mapped = false;
		s->first_bytes = kernel_bytes;
	}
}

static uint64_t space_offer(const struct space *s, size_t n_taken)
{
	if (n_taken == 0)
		return s->first_bytes;
	return s->is_mapped ? layout_largest_extent(s->used, s->n, s->region_bytes, s->unit_bytes) : 0;
}

static void space_take(struct space *s, uint64_t size_bytes)
{
	struct extent e = {.size_bytes = size_bytes};

	if (layout_find_extent(s->used, s->n, s->region_bytes, size_bytes, s->unit_bytes, &e.start_bytes))
		insert_extent(s, e);
}

/* Return: what of @want_bytes found no place. */
static uint64_t fill(struct pool_ns_plan *p, struct space *s, uint64_t want_bytes, size_t max_new)
{
	while (p->n_sizes < max_new) {
		uint64_t offer = space_offer(s, p->n_sizes);
		uint64_t size = layout_round_down(want_bytes < offer ? want_bytes : offer, p->unit_bytes);
		if (size < min_bytes(p->unit_bytes))
			break;
		space_take(s, size);
		p->sizes_bytes = x_realloc(p->sizes_bytes, p->n_sizes + 1, sizeof(*p->sizes_bytes));
		p->sizes_bytes[p->n_sizes++] = size;
		p->create_bytes += size;
		want_bytes -= size;
	}
	return want_bytes;
}

static char *explain(const struct pool_ns_plan *p, uint64_t left_bytes)
{
	const struct nd_namespace *broken = find_broken(p->region);
	uint64_t min = min_bytes(p->unit_bytes);
	char a[24];
	char b[24];

	if (broken)
		return x_asprintf("%s is named " POOL_NAMESPACE_NAME
				  " but is not an active fsdax namespace: its %s count as used",
			broken->dev, format_bytes(broken->raw_bytes, a));
	if (p->own_bytes > p->budget_bytes)
		return x_asprintf(
			"pool namespaces take %s, more than the budget of %s; they are never shrunk",
			format_bytes(p->own_bytes, a), format_bytes(p->budget_bytes, b));
	if (left_bytes < p->unit_bytes)
		return NULL;
	if (left_bytes < min)
		return x_asprintf("%s of the budget are left, less than the smallest pool namespace (%s)",
			format_bytes(left_bytes, a), format_bytes(min, b));

	return x_asprintf("%s of the budget cannot be used: no further free extent can hold the smallest "
			  "pool namespace (%s)",
		format_bytes(left_bytes, a), format_bytes(min, b));
}

void pool_ns_plan_region(const struct nd_region *region, unsigned percent, struct pool_ns_plan *ret)
{
	struct pool_ns_plan p = {.region = region, .unit_bytes = nd_region_unit(region)};
	const char *why = unusable(region, p.unit_bytes);

	p.own_bytes = sum_own(region);
	p.budget_bytes = percent_of(region->size_bytes, percent);
	/* A converted region without labels is used as far as possible, which is no reason to report it. */
	p.skipped = why && (region->has_labels || p.own_bytes == 0);
	if (why) {
		p.reason = p.skipped ? x_strdup(why) : NULL;
		*ret = p;
		return;
	}

	/* At most one namespace is made in each free extent, and there is at most one more free extent than
	 * namespaces. */
	size_t max_new = region->n_namespaces + 1;
	uint64_t want = p.budget_bytes > p.own_bytes ? p.budget_bytes - p.own_bytes : 0;
	struct space space;
	space_init(&space, region, p.unit_bytes, max_new);
	uint64_t left = fill(&p, &space, want, max_new);
	p.reason = explain(&p, left);
	free(space.used);
	*ret = p;
}

void pool_ns_plan_done(struct pool_ns_plan *p)
{
	free(p->sizes_bytes);
	free(p->reason);
	*p = (struct pool_ns_plan){0};
}

int pool_ns_apply(struct nd *nd, const struct pool_ns_plan *plan, size_t i, struct nd_namespace **ret,
	struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	char uuid[UUID_TEXT_LEN + 1];
	struct nd_spec spec = {
		.bus = plan->region->bus,
		.region = plan->region->name,
		.label = POOL_NAMESPACE_NAME,
		.uuid = uuid,
		.raw_bytes = plan->sizes_bytes[i],
		.mode = ND_FSDAX,
	};

	uuid_generate_text(uuid);
	return nd_create(nd, &spec, ret, &after, err);
}

static int is_zero_at(int fd, uint64_t at_bytes, bool *ret, struct error **err)
{
	CLEANUP(free_charp) char *bytes = x_malloc(LOOK_BYTES);
	size_t n = 0;

	while (n < LOOK_BYTES) {
		ssize_t got = pread(fd, bytes + n, LOOK_BYTES - n, (off_t)(at_bytes + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "read");
		if (got == 0)
			break;
		n += (size_t)got;
	}
	*ret = true;
	for (size_t i = 0; i < n && *ret; i++)
		*ret = bytes[i] == 0;
	return 0;
}

/* If a pool namespace has lost its page map, its data are still there, after the place of the map. */
static int is_blank(
	const struct nd_region *region, const struct nd_namespace *ns, bool *ret, struct error **err)
{
	uint64_t usable = nd_usable_bytes(region, ND_FSDAX, ns->raw_bytes);
	uint64_t data = ns->raw_bytes - usable;
	bool head = false;
	bool behind = false;

	if (access(ns->block_path, F_OK) < 0 && blockdev_wait(ns->block_path, NODE_WAIT_MS, err) < 0)
		return -1;
	CLEANUP(fd_closep) int fd = open(ns->block_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "open %s", ns->block_path);
	if (is_zero_at(fd, 0, &head, err) < 0 || is_zero_at(fd, data, &behind, err) < 0)
		return err_wrap(err, "%s", ns->block_path);
	*ret = head && behind;
	return 0;
}

/* @ret: nd_namespace_free(); NULL: gone */
static int look_again(struct nd *nd, const char *uuid, struct nd_namespace **ret, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;

	if (nd_list(nd, &inv, err) < 0)
		return -1;
	*ret = NULL;
	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces && !*ret; k++)
			if (str_eq(inv->regions[i].namespaces[k].uuid, uuid))
				*ret = nd_namespace_dup(&inv->regions[i].namespaces[k]);
	return 0;
}

static int give_back(struct nd *nd, const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;

	return nd_destroy(nd, ns->uuid, ns->name, &after, err);
}

int pool_ns_settle(struct nd *nd, const struct nd_region *region, const struct nd_namespace *ns,
	enum pool_ns_outcome *ret, struct error **err)
{
	CLEANUP(nd_namespace_freep) struct nd_namespace *now = NULL;
	bool blank = false;

	*ret = POOL_NS_WHOLE;
	if (!region->has_labels || !region->enabled || region->readonly || nd_is_pool(ns) ||
		!str_eq(ns->name, POOL_NAMESPACE_NAME) || str_empty(ns->uuid))
		return 0;
	*ret = POOL_NS_LEFT;
	if (!ns->active && nd_enable_device(nd, ns->dev, err) < 0)
		return -1;
	if (look_again(nd, ns->uuid, &now, err) < 0)
		return -1;
	if (now && nd_is_pool(now)) {
		*ret = POOL_NS_USED;
		return 0;
	}
	if (!now || !now->active || now->mode != ND_RAW || !now->block_path)
		return 0;
	if (is_blank(region, now, &blank, err) < 0)
		return -1;
	if (blank && give_back(nd, now, err) < 0)
		return -1;
	*ret = blank ? POOL_NS_GIVEN_BACK : POOL_NS_LEFT;
	return 0;
}
