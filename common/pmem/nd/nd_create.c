/* SPDX-License-Identifier: Apache-2.0 */
/* From an idle namespace to one that is labelled and enabled. Source: the sequence of ndctl's namespace
 * creation; drivers/nvdimm/namespace_devs.c, drivers/nvdimm/claim.c. */
#include <string.h>
#include <strings.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"
#include "pmem/nd/nd_private.h"

#define SECTOR_BYTES     512
#define BTT_SECTOR_BYTES 4096

static int check_region(const struct nd_region *r, const struct nd_spec *spec, struct error **err)
{
	if (!str_eq(r->bus, spec->bus))
		return err_set(err, ERR_NOT_FOUND, "no region %s on %s", spec->region, spec->bus);
	if (!r->is_pmem || !r->has_labels)
		return err_set(err, ERR_PRECONDITION, "%s has no labels", r->name);
	if (!r->enabled)
		return err_set(err, ERR_PRECONDITION, "%s is disabled", r->name);
	if (r->readonly)
		return err_set(err, ERR_PRECONDITION, "%s is read-only", r->name);
	if (r->free_labels == 0)
		return err_set(err, ERR_EXHAUSTED, "all label slots of %s are in use", r->name);
	return nd_check_writable(r->name, err);
}

static int check_size(const struct nd_region *r, const struct nd_spec *spec, struct error **err)
{
	uint64_t raw_bytes = spec->raw_bytes;
	uint64_t unit = nd_region_unit(r);

	if (raw_bytes % unit)
		return err_set(err, ERR_INVALID_ARGUMENT, "%ju bytes is not a multiple of %ju",
			(uintmax_t)raw_bytes, (uintmax_t)unit);
	if (spec->mode == ND_SECTOR && layout_btt_usable(raw_bytes, r->btt_start_bytes) == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "%ju bytes are too few for sector mode",
			(uintmax_t)raw_bytes);
	if (raw_bytes > r->max_extent_bytes)
		return err_set(err, ERR_EXHAUSTED, "%ju bytes requested, but the largest free extent has %ju",
			(uintmax_t)raw_bytes, (uintmax_t)r->max_extent_bytes);
	return 0;
}

static bool is_idle(const char *dev)
{
	return nd_attr_hint_number(dev, "size", UINT64_MAX) == 0 && !nd_is_bound(dev);
}

/* The kernel keeps one namespace of size 0 ready; a failed creation can leave further ones. @ret: NULL when
 * there is none; caller frees. */
static int find_idle(const struct nd_region *r, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *seed = nd_attr_hint(r->name, "namespace_seed");
	CLEANUP(strv_freep) char **names = NULL;

	*ret = NULL;
	if (!str_empty(seed) && is_idle(seed)) {
		*ret = TAKE_PTR(seed);
		return 0;
	}
	if (nd_attr_names(r->name, ".", &names, err) < 0)
		return -1;
	for (char **name = names; *name; name++) {
		if (!str_starts(*name, "namespace") || !strchr(*name, '.') || !is_idle(*name))
			continue;
		*ret = x_strdup(*name);
		return 0;
	}
	return 0;
}

/* The size is written last, which makes the kernel write the label: a namespace in a listing thus has
 * everything else. */
static int set_label(const char *dev, const struct nd_spec *spec, struct error **err)
{
	bool sector = spec->mode == ND_SECTOR;
	unsigned sector_bytes = sector ? BTT_SECTOR_BYTES : SECTOR_BYTES;

	if (STEP("nd-uuid", nd_attr_write(dev, "uuid", spec->uuid, err)) < 0 ||
		STEP("nd-name", nd_attr_write(dev, "alt_name", spec->label, err)) < 0 ||
		STEP("nd-sector", nd_attr_write_number(dev, "sector_size", sector_bytes, err)) < 0 ||
		STEP("nd-mode", nd_attr_write(dev, "holder_class", sector ? "btt" : "pfn", err)) < 0)
		return -1;
	return STEP("nd-size", nd_attr_write_number(dev, "size", spec->raw_bytes, err));
}

/* The kernel keeps one seed of each kind ready in a region, which claims a namespace. A process that was
 * killed meanwhile leaves its claim, which would make all later ones fail. */
static void drop_claim(const char *region, const char *kind)
{
	CLEANUP(free_charp) char *seed = nd_attr_hint(region, kind);
	CLEANUP(free_charp) char *claimed = str_empty(seed) ? x_strdup("") : nd_attr_hint(seed, "namespace");
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (!str_empty(claimed) && !nd_is_bound(seed))
		(void)!STEP("nd-free-claim", nd_attr_write(seed, "namespace", "", &ignored));
}

static void drop_claims(const char *region)
{
	drop_claim(region, "pfn_seed");
	drop_claim(region, "btt_seed");
	drop_claim(region, "dax_seed");
}

/*
 * The kernel makes the next idle namespace when the present one is enabled (nd_region_advance_seeds()). A
 * namespace that got a size but was never enabled, because its process was killed, prevents that. It is
 * enabled once, in raw mode, so that the kernel ignores its content, which is not changed.
 */
static int advance_seed(const struct nd_region *r, struct error **err)
{
	CLEANUP(free_charp) char *seed = nd_attr_hint(r->name, "namespace_seed");
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (str_empty(seed) || nd_is_bound(seed))
		return err_set(err, ERR_UNAVAILABLE, "the kernel offers no idle namespace");
	if (STEP("nd-seed-raw", nd_attr_write(seed, "force_raw", "1", err)) < 0)
		return err_wrap(err, "abandoned namespace");
	int rc = STEP("nd-seed-enable", nd_bind(seed, err));
	(void)!STEP("nd-seed-raw-end", nd_attr_write(seed, "force_raw", "0", &ignored));
	if (rc < 0 || STEP("nd-seed-disable", nd_unbind(seed, err)) < 0)
		return err_wrap(err, "abandoned namespace");
	return 0;
}

/*
 * A creation that was stopped leaves its UUID on an idle namespace, which the kernel does not change while no
 * label of the module is in use (drivers/nvdimm/namespace_devs.c, namespace_update_uuid()): setting the size
 * to 0 removes it.
 */
static int drop_uuid(const char *dev, struct error **err)
{
	if (STEP("nd-drop-uuid", nd_attr_write(dev, "size", "0", err)) < 0)
		return err_wrap(err, "abandoned namespace");
	return 0;
}

/* @ret: caller frees. */
static int find_or_free_idle(const struct nd_region *r, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *dev = NULL;
	CLEANUP(free_charp) char *uuid = NULL;

	/* the kernel registers and removes them in the background */
	if (nd_wait_probed(r->bus, err) < 0 || find_idle(r, &dev, err) < 0)
		return -1;
	uuid = dev ? nd_attr_hint(dev, "uuid") : NULL;
	if (dev && str_empty(uuid)) {
		*ret = TAKE_PTR(dev);
		return 0;
	}
	if ((dev ? drop_uuid(dev, err) : advance_seed(r, err)) < 0)
		return -1;
	if (nd_wait_probed(r->bus, err) < 0 || find_idle(r, ret, err) < 0)
		return -1;
	return *ret ? 0 : err_set(err, ERR_UNAVAILABLE, "the kernel offers no idle namespace");
}

static int claim_as_fsdax(const char *region, const char *dev, struct error **err)
{
	CLEANUP(free_charp) char *pfn = nd_attr_hint(region, "pfn_seed");
	uint64_t align = nd_seed_align(region);
	char uuid[UUID_TEXT_LEN + 1];

	if (str_empty(pfn))
		return err_set(err, ERR_UNAVAILABLE, "the kernel offers no page map");
	uuid_generate_text(uuid);
	if (STEP("nd-pfn-uuid", nd_attr_write(pfn, "uuid", uuid, err)) < 0 ||
		STEP("nd-pfn-place", nd_attr_write(pfn, "mode", "pmem", err)) < 0)
		return -1;
	if (align && STEP("nd-pfn-align", nd_attr_write_number(pfn, "align", align, err)) < 0)
		return -1;
	if (STEP("nd-pfn-claim", nd_attr_write(pfn, "namespace", dev, err)) < 0)
		return -1;
	return STEP("nd-pfn-enable", nd_bind(pfn, err));
}

static int claim_as_sector(const char *region, const char *dev, struct error **err)
{
	CLEANUP(free_charp) char *btt = nd_attr_hint(region, "btt_seed");
	char uuid[UUID_TEXT_LEN + 1];

	if (str_empty(btt))
		return err_set(err, ERR_UNAVAILABLE, "the kernel offers no block translation table");
	uuid_generate_text(uuid);
	if (STEP("nd-btt-uuid", nd_attr_write(btt, "uuid", uuid, err)) < 0 ||
		STEP("nd-btt-sector", nd_attr_write_number(btt, "sector_size", BTT_SECTOR_BYTES, err)) < 0 ||
		STEP("nd-btt-claim", nd_attr_write(btt, "namespace", dev, err)) < 0)
		return -1;
	return STEP("nd-btt-enable", nd_bind(btt, err));
}

/* The device that has claimed @dev: a seed whose claim has succeeded is no longer the seed. */
static void release(const char *dev)
{
	CLEANUP(free_charp) char *holder = nd_attr_hint(dev, "holder");
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (str_empty(holder))
		return;
	if (nd_is_bound(holder) && STEP("nd-undo-enable", nd_unbind(holder, &ignored)) < 0)
		error_clear(&ignored);
	(void)!STEP("nd-undo-claim", nd_attr_write(holder, "namespace", "", &ignored));
}

/* The first failure is the one to report; what cannot be undone here shows in the next listing. A namespace
 * without our UUID has been taken by another program meanwhile. */
static void give_back(const char *dev, const char *uuid)
{
	CLEANUP(free_charp) char *found = nd_attr_hint(dev, "uuid");
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (strcasecmp(found, uuid) != 0)
		return;
	release(dev);
	if (STEP("nd-undo-mode", nd_attr_write(dev, "holder_class", "", &ignored)) < 0)
		error_clear(&ignored);
	(void)!STEP("nd-undo-label", nd_attr_write(dev, "size", "0", &ignored));
}

static int label_and_claim(const char *dev, const struct nd_spec *spec, struct error **err)
{
	if (set_label(dev, spec, err) < 0)
		return -1;
	if (spec->mode == ND_SECTOR)
		return claim_as_sector(spec->region, dev, err);
	return claim_as_fsdax(spec->region, dev, err);
}

int nd_make(const struct nd_spec *spec, struct error **err)
{
	CLEANUP(nd_region_freep) struct nd_region *r = NULL;
	CLEANUP(free_charp) char *dev = NULL;

	if (nd_load_driver(err) < 0 || nd_region_read(spec->region, &r, err) < 0)
		return -1;
	if (check_region(r, spec, err) < 0 || check_size(r, spec, err) < 0)
		return -1;
	drop_claims(spec->region);
	if (find_or_free_idle(r, &dev, err) < 0)
		return -1;
	if (label_and_claim(dev, spec, err) == 0)
		return 0;
	give_back(dev, spec->uuid);
	return -1;
}

int nd_claim_fsdax(const char *dev, struct error **err)
{
	CLEANUP(free_charp) char *region = NULL;

	if (nd_load_driver(err) < 0 || nd_parent(dev, &region, err) < 0)
		return -1;
	drop_claims(region);
	if (claim_as_fsdax(region, dev, err) == 0)
		return 0;
	release(dev);
	return -1;
}
