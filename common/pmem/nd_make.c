/* From an idle namespace to one that is labelled and enabled. Source: the sequence of ndctl's namespace
 * creation. */
#include <limits.h>
#include <linux/ndctl.h>
#include <ndctl/libndctl.h>
#include <uuid/uuid.h>

#include "base/random.h"
#include "base/step.h"
#include "base/str.h"
#include "pmem/layout.h"
#include "pmem/nd_private.h"

#define SECTOR_BYTES     512
#define BTT_SECTOR_BYTES 4096

static struct ndctl_region *find_region(struct ndctl_ctx *ctx, const char *bus_name, const char *name)
{
	struct ndctl_bus *bus;
	struct ndctl_region *region;

	ndctl_bus_foreach(ctx, bus)
	{
		if (!str_eq(ndctl_bus_get_devname(bus), bus_name))
			continue;
		ndctl_region_foreach(bus, region)
		{
			if (str_eq(ndctl_region_get_devname(region), name))
				return region;
		}
	}
	return NULL;
}

static int check_region(struct ndctl_region *region, struct error **err)
{
	const char *name = ndctl_region_get_devname(region);

	if (ndctl_region_get_type(region) != ND_DEVICE_REGION_PMEM ||
		ndctl_region_get_nstype(region) != ND_DEVICE_NAMESPACE_PMEM)
		return err_set(err, ERR_PRECONDITION, "%s has no labels", name);
	if (!ndctl_region_is_enabled(region))
		return err_set(err, ERR_PRECONDITION, "%s is disabled", name);
	if (ndctl_region_get_ro(region) != 0)
		return err_set(err, ERR_PRECONDITION, "%s is read-only", name);
	return nd_check_writable(name, err);
}

static int check_size(struct ndctl_region *region, const struct nd_spec *spec, struct error **err)
{
	uint64_t size_bytes = spec->size_bytes;
	uint64_t unit = layout_alignment(nd_seed_align(ndctl_region_get_devname(region)),
		ndctl_region_get_interleave_ways(region), ndctl_region_get_align(region));
	uint64_t extent = ndctl_region_get_max_available_extent(region);

	if (size_bytes % unit)
		return err_set(err, ERR_INVALID_ARGUMENT, "%ju bytes is not a multiple of %ju",
			(uintmax_t)size_bytes, (uintmax_t)unit);
	if (spec->mode == ND_SECTOR &&
		layout_btt_usable(size_bytes, nd_btt_start(ndctl_region_get_devname(region))) == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "%ju bytes are too few for sector mode",
			(uintmax_t)size_bytes);
	if (extent == ULLONG_MAX)
		extent = ndctl_region_get_available_size(region);
	if (size_bytes > extent)
		return err_set(err, ERR_EXHAUSTED, "%ju bytes asked for, the largest free extent has %ju",
			(uintmax_t)size_bytes, (uintmax_t)extent);
	return 0;
}

/* A namespace takes a slot on each module of the interleave set. */
static int check_label_slots(struct ndctl_region *region, struct error **err)
{
	struct ndctl_dimm *dimm;

	ndctl_dimm_foreach_in_region(region, dimm)
	{
		if (ndctl_dimm_get_available_labels(dimm) == 0)
			return err_set(err, ERR_EXHAUSTED, "all label slots of %s are in use",
				ndctl_dimm_get_devname(dimm));
	}
	return 0;
}

static bool is_idle(struct ndctl_namespace *ndns)
{
	return ndctl_namespace_get_size(ndns) == 0 && !ndctl_namespace_is_active(ndns);
}

/* The kernel keeps one namespace of size 0 ready; a failed creation can leave further ones. */
static struct ndctl_namespace *find_idle(struct ndctl_region *region)
{
	struct ndctl_namespace *ndns = ndctl_region_get_namespace_seed(region);

	if (ndns && is_idle(ndns))
		return ndns;
	ndctl_namespace_foreach(region, ndns)
	{
		if (is_idle(ndns))
			return ndns;
	}
	return NULL;
}

static int set_sector_size(struct ndctl_namespace *ndns, unsigned bytes, struct error **err)
{
	int rc = 0;

	for (int i = 0; i < ndctl_namespace_get_num_sector_sizes(ndns); i++) {
		if (ndctl_namespace_get_supported_sector_size(ndns, i) != bytes)
			continue;
		if ((rc = STEP("nd-sector", ndctl_namespace_set_sector_size(ndns, bytes))) < 0)
			return nd_refused(err, rc, "set sector size");
	}
	return 0;
}

/* The size comes last of what makes a namespace show in a listing: one that shows bears its name and UUID. */
static int set_label(struct ndctl_namespace *ndns, const struct nd_spec *spec, struct error **err)
{
	bool sector = spec->mode == ND_SECTOR;
	uuid_t uuid;
	int rc = 0;

	if (uuid_parse(spec->uuid, uuid) < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a UUID", spec->uuid);
	if ((rc = STEP("nd-uuid", ndctl_namespace_set_uuid(ndns, uuid))) < 0)
		return nd_refused(err, rc, "set UUID");
	if ((rc = STEP("nd-name", ndctl_namespace_set_alt_name(ndns, spec->name))) < 0)
		return nd_refused(err, rc, "set name");
	if ((rc = STEP("nd-size", ndctl_namespace_set_size(ndns, spec->size_bytes))) < 0)
		return nd_refused(err, rc, "set size");
	if (set_sector_size(ndns, sector ? BTT_SECTOR_BYTES : SECTOR_BYTES, err) < 0)
		return -1;
	rc = STEP("nd-mode",
		ndctl_namespace_set_enforce_mode(ndns, sector ? NDCTL_NS_MODE_SECTOR : NDCTL_NS_MODE_FSDAX));
	return rc < 0 ? nd_refused(err, rc, "set mode") : 0;
}

/* The kernel keeps one of each kind ready in a region, to be put before a namespace. */
struct seeds {
	struct ndctl_pfn *pfn;
	struct ndctl_btt *btt;
	struct ndctl_dax *dax;
};

static struct seeds find_seeds(struct ndctl_region *region)
{
	return (struct seeds){
		.pfn = ndctl_region_get_pfn_seed(region),
		.btt = ndctl_region_get_btt_seed(region),
		.dax = ndctl_region_get_dax_seed(region),
	};
}

/* A process that was killed in the middle leaves its claim; it would make every later one fail. */
static void drop_claims(const struct seeds *s)
{
	if (s->pfn && ndctl_pfn_get_namespace(s->pfn) && !ndctl_pfn_is_enabled(s->pfn))
		STEP("nd-free-pfn", ndctl_pfn_set_namespace(s->pfn, NULL));
	if (s->btt && ndctl_btt_get_namespace(s->btt) && !ndctl_btt_is_enabled(s->btt))
		STEP("nd-free-btt", ndctl_btt_set_namespace(s->btt, NULL));
	if (s->dax && ndctl_dax_get_namespace(s->dax) && !ndctl_dax_is_enabled(s->dax))
		STEP("nd-free-dax", ndctl_dax_set_namespace(s->dax, NULL));
}

/*
 * The kernel makes the next idle namespace when the present one is enabled (nd_region_advance_seeds()). One
 * that was given a size and never enabled, because its maker was killed, keeps it from that: it is enabled
 * once, raw, so that nothing is assembled of its content, which stays as it is.
 */
static int advance_seed(struct ndctl_region *region, struct error **err)
{
	struct ndctl_namespace *seed = ndctl_region_get_namespace_seed(region);
	int rc = 0;

	if (!seed || ndctl_namespace_is_active(seed))
		return err_set(err, ERR_UNAVAILABLE, "the kernel offers no idle namespace");
	if ((rc = STEP("nd-seed-raw", ndctl_namespace_set_raw_mode(seed, 1))) < 0)
		return nd_refused(err, rc, "set raw mode of an abandoned namespace");
	rc = STEP("nd-seed-enable", ndctl_namespace_enable(seed));
	STEP("nd-seed-raw-end", ndctl_namespace_set_raw_mode(seed, 0));
	if (rc < 0)
		return nd_refused(err, rc, "enable an abandoned namespace");
	rc = STEP("nd-seed-disable", ndctl_namespace_disable_invalidate(seed));
	return rc < 0 ? nd_refused(err, rc, "disable an abandoned namespace") : 0;
}

/*
 * A creation that was stopped leaves its UUID on an idle namespace, which the kernel does not change while no
 * label of the module is in use (drivers/nvdimm/namespace_devs.c, namespace_update_uuid()): deleting takes it
 * away. @ndns is gone afterwards.
 */
static int drop_uuid(struct ndctl_namespace *ndns, struct error **err)
{
	int rc = STEP("nd-drop-uuid", ndctl_namespace_delete(ndns));

	return rc < 0 ? nd_refused(err, rc, "drop the UUID of an abandoned namespace") : 0;
}

static bool has_uuid(struct ndctl_namespace *ndns)
{
	uuid_t uuid;

	ndctl_namespace_get_uuid(ndns, uuid);
	return !uuid_is_null(uuid);
}

static int find_or_free_idle(struct ndctl_region *region, struct ndctl_namespace **ret, struct error **err)
{
	struct ndctl_namespace *ndns = find_idle(region);

	if (ndns && !has_uuid(ndns)) {
		*ret = ndns;
		return 0;
	}
	if ((ndns ? drop_uuid(ndns, err) : advance_seed(region, err)) < 0)
		return -1;
	ndns = find_idle(region);
	if (!ndns)
		return err_set(err, ERR_UNAVAILABLE, "the kernel offers no idle namespace");
	*ret = ndns;
	return 0;
}

static int new_uuid(uuid_t ret, struct error **err)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_generate_text(text);
	return uuid_parse(text, ret) < 0 ? err_set(err, ERR_INTERNAL, "generate UUID") : 0;
}

static int claim_as_fsdax(struct ndctl_pfn *pfn, struct ndctl_namespace *ndns, struct error **err)
{
	uint64_t align = nd_seed_align(ndctl_region_get_devname(ndctl_namespace_get_region(ndns)));
	uuid_t uuid;
	int rc = 0;

	if (!pfn)
		return err_set(err, ERR_UNAVAILABLE, "the kernel offers no page map");
	if (new_uuid(uuid, err) < 0)
		return -1;
	if ((rc = STEP("nd-pfn-uuid", ndctl_pfn_set_uuid(pfn, uuid))) < 0)
		return nd_refused(err, rc, "set UUID of the page map");
	if ((rc = STEP("nd-pfn-place", ndctl_pfn_set_location(pfn, NDCTL_PFN_LOC_PMEM))) < 0)
		return nd_refused(err, rc, "set place of the page map");
	if (align && (rc = STEP("nd-pfn-align", ndctl_pfn_set_align(pfn, align))) < 0)
		return nd_refused(err, rc, "set alignment");
	if ((rc = STEP("nd-pfn-claim", ndctl_pfn_set_namespace(pfn, ndns))) < 0)
		return nd_refused(err, rc, "claim namespace");
	if ((rc = STEP("nd-pfn-enable", ndctl_pfn_enable(pfn))) < 0)
		return nd_refused(err, rc, "enable namespace");
	return 0;
}

static int claim_as_sector(struct ndctl_btt *btt, struct ndctl_namespace *ndns, struct error **err)
{
	uuid_t uuid;
	int rc = 0;

	if (!btt)
		return err_set(err, ERR_UNAVAILABLE, "the kernel offers no block translation table");
	if (new_uuid(uuid, err) < 0)
		return -1;
	if ((rc = STEP("nd-btt-uuid", ndctl_btt_set_uuid(btt, uuid))) < 0)
		return nd_refused(err, rc, "set UUID of the block translation table");
	if ((rc = STEP("nd-btt-sector", ndctl_btt_set_sector_size(btt, BTT_SECTOR_BYTES))) < 0)
		return nd_refused(err, rc, "set sector size of the block translation table");
	if ((rc = STEP("nd-btt-claim", ndctl_btt_set_namespace(btt, ndns))) < 0)
		return nd_refused(err, rc, "claim namespace");
	if ((rc = STEP("nd-btt-enable", ndctl_btt_enable(btt))) < 0)
		return nd_refused(err, rc, "enable namespace");
	return 0;
}

static int claim(const struct seeds *s, struct ndctl_namespace *ndns, enum nd_mode mode, struct error **err)
{
	return mode == ND_SECTOR ? claim_as_sector(s->btt, ndns, err) : claim_as_fsdax(s->pfn, ndns, err);
}

/* The first failure is the one to report; whatever cannot be taken back here shows in the next listing. */
static void give_back(const struct seeds *s, struct ndctl_namespace *ndns)
{
	drop_claims(s);
	STEP("nd-undo-mode", ndctl_namespace_set_enforce_mode(ndns, NDCTL_NS_MODE_RAW));
	STEP("nd-undo-label", ndctl_namespace_delete(ndns));
}

int nd_make(const struct nd_spec *spec, struct error **err)
{
	CLEANUP(nd_context_freep) struct ndctl_ctx *ctx = NULL;
	struct ndctl_namespace *ndns = NULL;

	if (nd_context_new(&ctx, err) < 0)
		return -1;

	struct ndctl_region *region = find_region(ctx, spec->bus, spec->region);
	if (!region)
		return err_set(err, ERR_NOT_FOUND, "no region %s on %s", spec->region, spec->bus);
	if (check_region(region, err) < 0 || check_size(region, spec, err) < 0 ||
		check_label_slots(region, err) < 0)
		return -1;

	struct seeds seeds = find_seeds(region);
	drop_claims(&seeds);
	if (find_or_free_idle(region, &ndns, err) < 0)
		return -1;
	if (set_label(ndns, spec, err) < 0 || claim(&seeds, ndns, spec->mode, err) < 0) {
		give_back(&seeds, ndns);
		return -1;
	}
	return 0;
}

int nd_claim_fsdax(struct ndctl_namespace *ndns, struct error **err)
{
	struct seeds seeds = find_seeds(ndctl_namespace_get_region(ndns));

	drop_claims(&seeds);
	if (claim_as_fsdax(seeds.pfn, ndns, err) == 0)
		return 0;
	drop_claims(&seeds);
	return -1;
}
