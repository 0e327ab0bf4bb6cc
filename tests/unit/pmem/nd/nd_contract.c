/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/nd/nd_contract.h"

#include <string.h>

#include "base/random.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"
#include "unit/unit.h"

#define NAME    "contract"
#define NO_UUID "6f1d2c3b-0000-4000-8000-00000000000f"

static struct nd_inventory *list(struct nd *nd)
{
	struct nd_inventory *inv = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_list(nd, &inv, &err));
	ck_assert_uint_ge(inv->n_regions, 1);
	return inv;
}

static void assert_empty(struct nd *nd)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];

	ck_assert_uint_eq(r->n_namespaces, 0);
	ck_assert_uint_eq(r->available_bytes, r->size_bytes);
	ck_assert_uint_eq(r->max_extent_bytes, r->size_bytes);
}

static bool shows(const struct nd_inventory *inv, const char *uuid)
{
	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++)
			if (str_eq(inv->regions[i].namespaces[k].uuid, uuid))
				return true;
	return false;
}

static struct nd_namespace *create_as(
	struct nd *nd, const struct nd_region *r, uint64_t size_bytes, enum nd_mode mode)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct nd_spec spec = {r->bus, r->name, NAME, uuid, size_bytes, mode};
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	struct nd_namespace *ns = NULL;
	struct error *err = NULL;

	uuid_generate_text(uuid);
	ASSERT_OK(nd_create(nd, &spec, &ns, &after, &err));
	ck_assert_str_eq(ns->uuid, uuid);
	ck_assert(shows(after, uuid));
	return ns;
}

static struct nd_namespace *create(struct nd *nd, const struct nd_region *r, uint64_t size_bytes)
{
	return create_as(nd, r, size_bytes, ND_FSDAX);
}

static void destroy(struct nd *nd, const struct nd_namespace *ns)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *after = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_destroy(nd, ns->uuid, ns->name, &after, &err));
	ck_assert(!shows(after, ns->uuid));
}

static void assert_refused(struct nd *nd, const struct nd_spec *spec, enum err_code code)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct nd_inventory *after = NULL;
	struct nd_namespace *ns = NULL;

	ck_assert_int_eq(nd_create(nd, spec, &ns, &after, &err), -1);
	ck_assert_ptr_null(ns);
	ck_assert_ptr_null(after);
	ck_assert_msg(err->code == code, "%s: %s", err_code_name(err->code), err->msg);
}

void nd_contract_create(struct nd *nd)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *before = list(nd);
	const struct nd_region *r = &before->regions[0];
	uint64_t size = layout_round_up(POOL_MIN_BYTES, nd_region_unit(r));
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = create(nd, r, size);
	struct error *err = NULL;

	ck_assert_str_eq(ns->name, NAME);
	ck_assert_int_eq(ns->mode, ND_FSDAX);
	ck_assert(ns->active);
	ck_assert_uint_eq(ns->raw_bytes, size);
	ck_assert_uint_eq(ns->offset_bytes, 0);
	ck_assert_uint_eq(ns->usable_bytes, nd_usable_bytes(r, ND_FSDAX, size));
	ck_assert(str_starts(ns->block_path, "/dev/pmem"));

	CLEANUP(nd_inventory_freep) struct nd_inventory *with = list(nd);
	ck_assert_uint_eq(with->regions[0].n_namespaces, 1);
	ck_assert_str_eq(with->regions[0].namespaces[0].uuid, ns->uuid);
	ck_assert_str_eq(with->regions[0].namespaces[0].dev, ns->dev);
	ck_assert_uint_eq(with->regions[0].available_bytes, r->available_bytes - size);
	ck_assert_uint_eq(with->regions[0].max_extent_bytes, r->max_extent_bytes - size);
	ck_assert_uint_eq(with->regions[0].free_labels, r->free_labels - 1);
	ck_assert_str_eq(with->regions[0].identity, r->identity);
	ASSERT_OK(nd_confirm(nd, ns->block_path, ns->uuid, &err));
	ASSERT_FAILS(nd_confirm(nd, ns->block_path, NO_UUID, &err), ERR_UNAVAILABLE, NO_UUID);

	destroy(nd, ns);
	assert_empty(nd);
	ASSERT_FAILS(nd_confirm(nd, ns->block_path, ns->uuid, &err), ERR_UNAVAILABLE, ns->block_path);
	destroy(nd, ns);
}

void nd_contract_sizes(struct nd *nd)
{
	static const unsigned units[] = {2, 3, 8, 31};
	static const enum nd_mode modes[] = {ND_FSDAX, ND_SECTOR};
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];

	for (size_t i = 0; i < ARRAY_SIZE(units) * ARRAY_SIZE(modes); i++) {
		enum nd_mode mode = modes[i % ARRAY_SIZE(modes)];
		uint64_t size = nd_region_unit(r) * units[i / ARRAY_SIZE(modes)];
		CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;

		if (size > r->max_extent_bytes)
			continue;
		ns = create_as(nd, r, size, mode);
		ck_assert_uint_eq(ns->usable_bytes, nd_usable_bytes(r, mode, size));
		destroy(nd, ns);
	}
}

void nd_contract_sector(struct nd *nd)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *before = list(nd);
	const struct nd_region *r = &before->regions[0];
	uint64_t size = layout_round_up(POOL_MIN_BYTES, nd_region_unit(r));
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = create_as(nd, r, size, ND_SECTOR);
	struct error *err = NULL;

	ck_assert_int_eq(ns->mode, ND_SECTOR);
	ck_assert(ns->active);
	ck_assert_uint_eq(ns->raw_bytes, size);
	ck_assert_uint_eq(ns->usable_bytes % 4096, 0);
	ck_assert_int_eq(ns->block_path[strlen(ns->block_path) - 1], 's');
	ASSERT_OK(nd_confirm(nd, ns->block_path, ns->uuid, &err));
	ASSERT_OK(nd_enable(nd, ns->uuid, ns->name, &err));
	destroy(nd, ns);
	assert_empty(nd);
	ASSERT_FAILS(nd_enable(nd, ns->uuid, ns->name, &err), ERR_NOT_FOUND, NAME);
}

void nd_contract_refusals(struct nd *nd)
{
	static const char uuid[] = "6f1d2c3b-0000-4000-8000-123456789abc";
	static const char name_of_64[] = "0123456789012345678901234567890123456789012345678901234567890123";
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];
	uint64_t unit = nd_region_unit(r);
	uint64_t too_large = layout_round_down(r->max_extent_bytes, unit) + unit;

	assert_refused(
		nd, &(struct nd_spec){r->bus, r->name, "", uuid, unit, ND_FSDAX}, ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, name_of_64, uuid, unit, ND_FSDAX},
		ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, NAME, "6f1d2c3b", unit, ND_FSDAX},
		ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, 0, ND_FSDAX}, ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, unit + 4096, ND_FSDAX},
		ERR_INVALID_ARGUMENT);
	assert_refused(
		nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, unit, ND_RAW}, ERR_INVALID_ARGUMENT);
	assert_refused(
		nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, unit, ND_DEVDAX}, ERR_INVALID_ARGUMENT);
	assert_refused(
		nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, too_large, ND_FSDAX}, ERR_EXHAUSTED);
	assert_refused(nd, &(struct nd_spec){r->bus, "region99", NAME, uuid, unit, ND_FSDAX}, ERR_NOT_FOUND);
	assert_refused(nd, &(struct nd_spec){"ndbus99", r->name, NAME, uuid, unit, ND_FSDAX}, ERR_NOT_FOUND);
	assert_empty(nd);
}

void nd_contract_foreign(struct nd *nd)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];
	uint64_t size = layout_round_up(POOL_MIN_BYTES, nd_region_unit(r));
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = create(nd, r, size);
	struct nd_inventory *unchanged = NULL;
	struct error *err = NULL;

	ASSERT_FAILS(nd_destroy(nd, ns->uuid, "another", &unchanged, &err), ERR_PRECONDITION, "another");
	ASSERT_FAILS(nd_enable(nd, ns->uuid, "another", &err), ERR_PRECONDITION, "another");

	CLEANUP(nd_inventory_freep) struct nd_inventory *after = list(nd);
	ck_assert_uint_eq(after->regions[0].n_namespaces, 1);
	ck_assert(after->regions[0].namespaces[0].active);
	destroy(nd, ns);
}

/* Three neighbours, the middle one removed: two extents are free. */
void nd_contract_extents(struct nd *nd)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];
	uint64_t unit = nd_region_unit(r);
	uint64_t size = layout_round_up(r->size_bytes / 4, unit);
	CLEANUP(nd_namespace_freep) struct nd_namespace *a = create(nd, r, size);
	CLEANUP(nd_namespace_freep) struct nd_namespace *b = create(nd, r, size);
	CLEANUP(nd_namespace_freep) struct nd_namespace *c = create(nd, r, size);

	destroy(nd, b);
	CLEANUP(nd_inventory_freep) struct nd_inventory *holed = list(nd);
	const struct nd_region *h = &holed->regions[0];
	ck_assert_uint_eq(h->n_namespaces, 2);
	ck_assert_uint_eq(h->namespaces[0].offset_bytes, 0);
	ck_assert_uint_eq(h->namespaces[1].offset_bytes, 2 * size);
	ck_assert_uint_eq(h->available_bytes, h->size_bytes - 2 * size);
	ck_assert_uint_eq(h->max_extent_bytes, size);

	CLEANUP(nd_namespace_freep)
	struct nd_namespace *d = create(nd, r, layout_round_down(h->max_extent_bytes, unit));
	ck_assert_uint_eq(d->offset_bytes, size);
	destroy(nd, a);
	destroy(nd, c);
	destroy(nd, d);
	assert_empty(nd);
}
