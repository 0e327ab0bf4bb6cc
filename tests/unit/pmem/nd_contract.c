#include "unit/pmem/nd_contract.h"

#include "base/random.h"
#include "base/str.h"
#include "pmem/layout.h"
#include "unit/unit.h"

#define NAME "contract"

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

static struct nd_namespace *create(struct nd *nd, const struct nd_region *r, uint64_t size_bytes)
{
	char uuid[UUID_TEXT_LEN + 1];
	struct nd_spec spec = {r->bus, r->name, NAME, uuid, size_bytes};
	struct nd_namespace *ns = NULL;
	struct error *err = NULL;

	uuid_generate_text(uuid);
	ASSERT_OK(nd_create(nd, &spec, &ns, &err));
	ck_assert_str_eq(ns->uuid, uuid);
	return ns;
}

static void destroy(struct nd *nd, const struct nd_namespace *ns)
{
	struct error *err = NULL;

	ASSERT_OK(nd_destroy(nd, ns->uuid, ns->name, &err));
}

static void assert_refused(struct nd *nd, const struct nd_spec *spec, enum err_code code)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct nd_namespace *ns = NULL;

	ck_assert_int_eq(nd_create(nd, spec, &ns, &err), -1);
	ck_assert_ptr_null(ns);
	ck_assert_msg(err->code == code, "%s: %s", err_code_name(err->code), err->msg);
}

void nd_contract_create(struct nd *nd)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *before = list(nd);
	const struct nd_region *r = &before->regions[0];
	uint64_t size = layout_round_up(POOL_MIN_BYTES, nd_region_unit(r));
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = create(nd, r, size);

	ck_assert_str_eq(ns->name, NAME);
	ck_assert_int_eq(ns->mode, ND_FSDAX);
	ck_assert(ns->active);
	ck_assert_uint_eq(ns->raw_bytes, size);
	ck_assert_uint_eq(ns->offset_bytes, 0);
	/* 64 bytes per 4 KiB page, and the header, rounded up to 2 MiB */
	ck_assert_uint_lt(ns->usable_bytes, size - size / 64);
	ck_assert_uint_gt(ns->usable_bytes, size - size / 64 - 2 * PFN_ALIGN_BYTES);
	ck_assert(str_starts(ns->block_path, "/dev/pmem"));

	CLEANUP(nd_inventory_freep) struct nd_inventory *with = list(nd);
	ck_assert_uint_eq(with->regions[0].n_namespaces, 1);
	ck_assert_str_eq(with->regions[0].namespaces[0].uuid, ns->uuid);
	ck_assert_str_eq(with->regions[0].namespaces[0].dev, ns->dev);
	ck_assert_uint_eq(with->regions[0].available_bytes, r->available_bytes - size);
	ck_assert_uint_eq(with->regions[0].max_extent_bytes, r->max_extent_bytes - size);

	destroy(nd, ns);
	assert_empty(nd);
	destroy(nd, ns);
}

void nd_contract_refusals(struct nd *nd)
{
	static const char uuid[] = "6f1d2c3b-0000-4000-8000-123456789abc";
	static const char name_of_64[] = "0123456789012345678901234567890123456789012345678901234567890123";
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];
	uint64_t unit = nd_region_unit(r);
	uint64_t too_large = layout_round_down(r->max_extent_bytes, unit) + unit;

	assert_refused(nd, &(struct nd_spec){r->bus, r->name, "", uuid, unit}, ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, name_of_64, uuid, unit}, ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, NAME, "6f1d2c3b", unit}, ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, 0}, ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, unit + 4096}, ERR_INVALID_ARGUMENT);
	assert_refused(nd, &(struct nd_spec){r->bus, r->name, NAME, uuid, too_large}, ERR_EXHAUSTED);
	assert_refused(nd, &(struct nd_spec){r->bus, "region99", NAME, uuid, unit}, ERR_NOT_FOUND);
	assert_refused(nd, &(struct nd_spec){"ndbus99", r->name, NAME, uuid, unit}, ERR_NOT_FOUND);
	assert_empty(nd);
}

void nd_contract_foreign(struct nd *nd)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = list(nd);
	const struct nd_region *r = &inv->regions[0];
	uint64_t size = layout_round_up(POOL_MIN_BYTES, nd_region_unit(r));
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = create(nd, r, size);
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(nd_destroy(nd, ns->uuid, "another", &err), -1);
	ck_assert_int_eq(err->code, ERR_PRECONDITION);

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
