/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/inventory.h"

#include "base/str.h"
#include "os/blockdev_mounts.h"

/* Describes the DAX of a volume, by the mounts that the kernel shows and the durability of the region. */
static const char *dax_of(const struct check_view *v, const struct device *d, const struct device_pool *pool)
{
	dev_t number = d ? v->numbers[d - v->devices->devices] : 0;
	const struct mount_entry *e =
		number ? blockdev_mount_find_kind(v->mounts, number, BLOCKDEV_MOUNT_FS) : NULL;
	enum durability durability =
		pool ? region_durabilities_of(&v->durabilities, pool->region) : DURABILITY_UNKNOWN;

	if (!e)
		return NULL;
	if (!mount_entry_has(e, "dax=always"))
		return "no";
	return durability == DURABILITY_UNKNOWN ? "yes" : durability_name(durability);
}

void inventory_volume(const struct check_view *v, const struct volume_record *r, struct inventory_volume *ret)
{
	const struct device *d = NULL;
	struct inventory_volume row = {.presence = presence_of(v->devices, r, &d)};
	const char *pool = r->pool;

	if (row.presence == DEVICE_PRESENT) {
		row.device = d;
		pool = d->pool;
	}
	row.pool = pool ? device_list_pool(v->devices, pool) : NULL;
	row.dax = dax_of(v, row.device, row.pool);
	row.staged = r->staging_path && !check_staging_is_stale(v, r, row.device);
	for (size_t i = 0; r->targets && r->targets[i]; i++)
		row.n_published += !check_is_stale(v, r, r->targets[i], row.device);
	*ret = row;
}

const char *inventory_phase(const struct volume_record *r, enum presence presence)
{
	if (r->phase != PHASE_READY)
		return volume_phase_name(r->phase);
	if (presence == DEVICE_GONE)
		return "gone";
	if (presence == DEVICE_FOREIGN)
		return "foreign";
	if (presence == DEVICE_MISSING)
		return volume_phase_name(PHASE_MISSING);
	return r->snapshot ? "snapshot" : volume_phase_name(PHASE_READY);
}

void inventory_count(const struct check_view *v, struct inventory_counts *ret)
{
	struct inventory_counts c = {0};

	for (size_t i = 0; i < v->state.n_records; i++) {
		const struct volume_record *r = v->state.records[i];
		const struct device *ignored;

		c.n_volumes++;
		c.n_direct += r->direct;
		c.n_absent +=
			r->phase == PHASE_READY && presence_of(v->devices, r, &ignored) != DEVICE_PRESENT;
	}
	for (size_t i = 0; i < v->state.n_problems; i++)
		c.n_damaged += check_is_damaged(v, i);
	for (size_t i = 0; i < v->devices->n_devices; i++)
		c.n_strangers += check_is_stranger(v, &v->devices->devices[i]);
	*ret = c;
}

/* The Go driver recorded no identity. */
static bool is_volume(const struct check_view *v, const struct nd_namespace *ns)
{
	const struct volume_record *r = *ns->name ? check_record(v, ns->name) : NULL;

	return r && (!r->identity || str_eq(r->identity, ns->uuid));
}

static void count_namespace(
	const struct check_view *v, const struct nd_namespace *ns, struct inventory_region *row)
{
	if (nd_is_own(ns)) {
		row->pool_bytes += ns->raw_bytes;
		row->n_pool++;
	} else if (is_volume(v, ns)) {
		row->volume_bytes += ns->raw_bytes;
		row->n_volumes++;
	} else {
		row->foreign_bytes += ns->raw_bytes;
		row->n_foreign++;
	}
}

static uint32_t count_free_extents(const struct nd_region *r)
{
	uint32_t n = 0;

	if (!nd_has_offsets(r))
		return INVENTORY_UNKNOWN;
	for (size_t i = 0; i <= r->n_namespaces; i++)
		n += nd_free_extent(r, i).size_bytes > 0;
	return n;
}

void inventory_region(
	const struct nd_region *region, const struct check_view *v, struct inventory_region *ret)
{
	struct inventory_region row = {.n_free_extents = count_free_extents(region)};

	for (size_t i = 0; i < region->n_namespaces; i++)
		count_namespace(v, &region->namespaces[i], &row);
	*ret = row;
}

static bool has_block_device(const struct nd_region *region, const char *path)
{
	for (size_t i = 0; i < region->n_namespaces; i++) {
		if (str_eq(region->namespaces[i].block_path, path))
			return true;
	}
	return false;
}

bool inventory_pool_has(
	const struct device_pool *pool, const struct nd_region *region, const struct lvm_report *report)
{
	if (str_eq(pool->uuid, region->identity))
		return true;
	for (size_t i = 0; report && i < report->n_pvs; i++) {
		if (str_eq(report->pvs[i].vg_uuid, pool->uuid) &&
			has_block_device(region, report->pvs[i].path))
			return true;
	}
	return false;
}

uint64_t inventory_erasing(const struct check_view *v, const struct device_pool *pool)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < v->state.n_records; i++) {
		const struct volume_record *r = v->state.records[i];
		const struct device *d = NULL;

		if (r->phase == PHASE_ERASING && presence_of(v->devices, r, &d) == DEVICE_PRESENT &&
			str_eq(d->pool, pool->uuid))
			bytes += d->size_bytes;
	}
	return bytes;
}
