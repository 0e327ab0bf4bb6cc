/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/nd/nd_fake.h"

#include <assert.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"

/* default_align() of the kernel's drivers/nvdimm/region_devs.c, MEMREMAP_COMPAT_ALIGN_MAX on x86 */
#define KERNEL_ALIGN_BYTES (16ULL << 20)

struct fake {
	struct nd_inventory *inv; /* free sizes are filled in by listing */
	struct nd_fake_region *configs;
	unsigned next_id;
	unsigned next_block;
	enum err_code fail;     /* 0: none */
	enum nd_fake_step stop; /* 0: nowhere */
};

/* Copies @ns with the attributes that the kernel shows: a disabled namespace has no block device and no
 * usable size. */
static struct nd_namespace *show_namespace(const struct nd_namespace *ns)
{
	struct nd_namespace *copy = nd_namespace_dup(ns);

	if (!ns->active) {
		free(TAKE_PTR(copy->block_path));
		copy->usable_bytes = 0;
		copy->bare = false;
	}
	return copy;
}

static uint64_t kernel_align(const struct nd_region *r)
{
	return r->align_bytes ? r->align_bytes : KERNEL_ALIGN_BYTES;
}

static uint64_t max_extent(const struct nd_region *r)
{
	struct extent *used = x_calloc(r->n_namespaces, sizeof(*used));

	for (size_t i = 0; i < r->n_namespaces; i++)
		used[i] = (struct extent){r->namespaces[i].offset_bytes, r->namespaces[i].raw_bytes};
	uint64_t bytes = layout_largest_extent(used, r->n_namespaces, r->size_bytes, kernel_align(r));
	free(used);
	return bytes;
}

static struct nd_region copy_region(const struct nd_region *r, unsigned label_slots)
{
	struct nd_region copy = *r;

	copy.bus = x_strdup(r->bus);
	copy.name = x_strdup(r->name);
	copy.identity = x_strdup(r->identity);
	copy.namespaces = x_calloc(r->n_namespaces, sizeof(*copy.namespaces));
	copy.available_bytes = r->size_bytes;
	copy.max_extent_bytes = max_extent(r);
	copy.free_labels = label_slots > r->n_namespaces ? label_slots - (unsigned)r->n_namespaces : 0;
	/* the kernel takes the devices of a region away with it */
	if (!r->enabled)
		copy.n_namespaces = 0;
	for (size_t i = 0; i < copy.n_namespaces; i++) {
		struct nd_namespace *ns = show_namespace(&r->namespaces[i]);
		copy.namespaces[i] = *ns;
		free(ns);
		/* Without a label, nothing shows what an inactive one was. */
		if (!r->has_labels && !r->namespaces[i].active)
			copy.namespaces[i].mode = ND_RAW;
		copy.available_bytes -= r->namespaces[i].raw_bytes;
	}
	return copy;
}

static int fake_list(void *self, struct nd_inventory **ret, struct error **err)
{
	const struct fake *fake = self;
	struct nd_inventory *inv = x_calloc(1, sizeof(*inv));

	(void)err;
	inv->n_regions = fake->inv->n_regions;
	inv->regions = x_calloc(inv->n_regions, sizeof(*inv->regions));
	for (size_t i = 0; i < inv->n_regions; i++)
		inv->regions[i] = copy_region(&fake->inv->regions[i], fake->configs[i].label_slots);
	*ret = inv;
	return 0;
}

static void make_active(struct fake *fake, const struct nd_region *r, struct nd_namespace *ns)
{
	ns->active = true;
	ns->usable_bytes = nd_usable_bytes(r, ns->mode, ns->raw_bytes);
	if (ns->mode != ND_DEVDAX && !ns->block_path)
		ns->block_path =
			x_asprintf("/dev/pmem%u%s", fake->next_block++, ns->mode == ND_SECTOR ? "s" : "");
}

static struct nd_namespace *add_namespace(struct fake *fake, struct nd_region *r, const char *name,
	const char *uuid, enum nd_mode mode, struct extent place)
{
	struct nd_namespace ns = {
		.dev = x_asprintf("namespace%zu.%u", (size_t)(r - fake->inv->regions), fake->next_id++),
		.name = x_strdup(name),
		.uuid = x_strdup(uuid),
		.mode = mode,
		.raw_bytes = place.size_bytes,
		.offset_bytes = place.start_bytes,
		.bare = mode == ND_RAW,
	};

	make_active(fake, r, &ns);
	r->namespaces = x_realloc(r->namespaces, r->n_namespaces + 1, sizeof(*r->namespaces));
	r->namespaces[r->n_namespaces++] = ns;
	nd_region_sort(r);

	size_t i = 0;
	while (r->namespaces[i].offset_bytes != place.start_bytes)
		i++;
	return &r->namespaces[i];
}

/* As space_valid() of drivers/nvdimm/namespace_devs.c: the lowest place that holds the size. */
static bool first_fit(const struct nd_region *r, uint64_t size_bytes, uint64_t *ret_start)
{
	uint64_t start = 0;

	for (size_t i = 0; i <= r->n_namespaces; i++) {
		uint64_t end = i < r->n_namespaces ? r->namespaces[i].offset_bytes : r->size_bytes;
		start = layout_round_up(start, kernel_align(r));
		if (start <= end && end - start >= size_bytes) {
			*ret_start = start;
			return true;
		}
		if (i < r->n_namespaces)
			start = end + r->namespaces[i].raw_bytes;
	}
	return false;
}

static struct nd_region *find_region(struct fake *fake, const char *bus, const char *name)
{
	for (size_t i = 0; i < fake->inv->n_regions; i++) {
		struct nd_region *r = &fake->inv->regions[i];
		if (str_eq(r->bus, bus) && str_eq(r->name, name))
			return r;
	}
	return NULL;
}

static int check_region(const struct nd_region *r, struct error **err)
{
	if (!r->enabled)
		return err_set(err, ERR_PRECONDITION, "%s is disabled", r->name);
	if (r->readonly)
		return err_set(err, ERR_PRECONDITION, "%s is read-only", r->name);
	if (!r->is_pmem || !r->has_labels)
		return err_set(err, ERR_PRECONDITION, "%s has no labels", r->name);
	return 0;
}

static int check_fits(const struct fake *fake, const struct nd_region *r, const struct nd_spec *spec,
	uint64_t *ret_start, struct error **err)
{
	if (check_region(r, err) < 0)
		return -1;
	if (spec->raw_bytes % nd_region_unit(r) || spec->raw_bytes % kernel_align(r))
		return err_set(err, ERR_INVALID_ARGUMENT, "size is not a multiple of the region's unit");
	if (nd_usable_bytes(r, spec->mode, spec->raw_bytes) == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "size is too small");
	if (r->n_namespaces >= fake->configs[r - fake->inv->regions].label_slots)
		return err_set(err, ERR_EXHAUSTED, "no free label slot");
	if (!first_fit(r, spec->raw_bytes, ret_start))
		return err_set(err, ERR_EXHAUSTED, "no free extent is large enough");
	return 0;
}

static int fake_confirm(void *self, const char *block_path, const char *uuid, struct error **err)
{
	const struct fake *fake = self;

	for (size_t i = 0; i < fake->inv->n_regions; i++) {
		const struct nd_region *r = &fake->inv->regions[i];
		for (size_t k = 0; k < r->n_namespaces; k++) {
			const struct nd_namespace *ns = &r->namespaces[k];
			if (ns->active && str_eq(ns->uuid, uuid) && str_eq(ns->block_path, block_path))
				return 0;
		}
	}
	return err_set(err, ERR_UNAVAILABLE, "%s is not the device of namespace %s", block_path, uuid);
}

static int fake_create(void *self, const struct nd_spec *spec, struct nd_namespace **ret,
	struct nd_inventory **ret_after, struct error **err)
{
	struct fake *fake = self;
	struct nd_region *r = find_region(fake, spec->bus, spec->region);
	struct extent place = {.size_bytes = spec->raw_bytes};

	if (!r)
		return err_set(err, ERR_NOT_FOUND, "no region %s on %s", spec->region, spec->bus);
	if (check_fits(fake, r, spec, &place.start_bytes, err) < 0)
		return -1;
	if (fake->fail) {
		enum err_code code = fake->fail;
		fake->fail = 0;
		fake->next_id++;
		return err_set(err, code, "the kernel refused");
	}
	*ret = show_namespace(add_namespace(fake, r, spec->label, spec->uuid, spec->mode, place));
	return fake_list(fake, ret_after, err);
}

static void remove_namespace(struct nd_region *r, size_t at)
{
	struct nd_namespace *gone = x_malloc(sizeof(*gone));

	*gone = r->namespaces[at];
	for (size_t i = at; i + 1 < r->n_namespaces; i++)
		r->namespaces[i] = r->namespaces[i + 1];
	r->n_namespaces--;
	nd_namespace_free(gone);
}

/* @ret: its place in @ret_region, or that is NULL when there is none. */
static int find_own(struct fake *fake, const char *uuid, const char *name, struct nd_region **ret_region,
	size_t *ret, struct error **err)
{
	*ret_region = NULL;
	for (size_t i = 0; i < fake->inv->n_regions; i++) {
		struct nd_region *r = &fake->inv->regions[i];
		for (size_t k = 0; r->enabled && k < r->n_namespaces; k++) {
			const struct nd_namespace *ns = &r->namespaces[k];
			if (!str_eq(ns->uuid, uuid))
				continue;
			if (!str_eq(ns->name, name))
				return err_set(
					err, ERR_PRECONDITION, "%s is named \"%s\"", ns->dev, ns->name);
			*ret_region = r;
			*ret = k;
			return 0;
		}
	}
	return 0;
}

static int fake_destroy(
	void *self, const char *uuid, const char *name, struct nd_inventory **ret_after, struct error **err)
{
	struct nd_region *r = NULL;
	size_t at = 0;

	if (find_own(self, uuid, name, &r, &at, err) < 0)
		return -1;
	if (r)
		remove_namespace(r, at);
	return fake_list(self, ret_after, err);
}

static int fake_enable(void *self, const char *uuid, const char *name, struct error **err)
{
	struct nd_region *r = NULL;
	size_t at = 0;

	if (find_own(self, uuid, name, &r, &at, err) < 0)
		return -1;
	if (!r)
		return err_set(err, ERR_NOT_FOUND, "no such namespace exists");
	if (!r->namespaces[at].active)
		make_active(self, r, &r->namespaces[at]);
	return 0;
}

static struct nd_namespace *find_namespace(struct fake *fake, const char *dev, const struct nd_region **ret)
{
	for (size_t i = 0; i < fake->inv->n_regions; i++) {
		struct nd_region *r = &fake->inv->regions[i];
		for (size_t k = 0; k < r->n_namespaces; k++) {
			if (!str_eq(r->namespaces[k].dev, dev))
				continue;
			*ret = r;
			return &r->namespaces[k];
		}
	}
	return NULL;
}

static int fake_enable_device(void *self, const char *dev, struct error **err)
{
	const struct nd_region *r;
	struct nd_namespace *ns = find_namespace(self, dev, &r);

	if (!ns)
		return err_set(err, ERR_NOT_FOUND, "%s does not exist", dev);
	if (ns->bare && r->has_labels)
		ns->mode = ND_RAW;
	ns->active = true;
	return 0;
}

static bool stops_at(struct fake *fake, enum nd_fake_step step, struct error **err)
{
	if (fake->stop != step)
		return false;
	fake->stop = 0;
	err_set(err, ERR_INTERNAL, "killed");
	return true;
}

/* Reconfigures a namespace in the same steps as the real implementation. */
static int reconfigure(
	struct fake *fake, const struct nd_region *r, struct nd_namespace *ns, struct error **err)
{
	ns->active = false;
	if (stops_at(fake, ND_FAKE_DISABLED, err))
		return -1;
	if (r->has_labels) {
		free(ns->name);
		ns->name = x_strdup(POOL_NAMESPACE_NAME);
		ns->mode = ND_FSDAX;
	}
	if (stops_at(fake, ND_FAKE_NAMED, err))
		return -1;
	ns->mode = ND_FSDAX;
	ns->bare = false;
	ns->usable_bytes = nd_usable_bytes(r, ND_FSDAX, ns->raw_bytes);
	ns->active = true;
	return stops_at(fake, ND_FAKE_MAPPED, err) ? -1 : 0;
}

static int fake_convert(void *self, const struct nd_namespace *wanted, const struct nd_look *look,
	struct nd_namespace **ret, struct error **err)
{
	struct fake *fake = self;
	const struct nd_region *r;
	struct nd_namespace *ns = find_namespace(fake, wanted->dev, &r);

	if (!ns)
		return err_set(err, ERR_NOT_FOUND, "%s does not exist", wanted->dev);
	if (!ns->active || !ns->bare || !str_eq(ns->uuid, wanted->uuid) || ns->raw_bytes != wanted->raw_bytes)
		return err_set(
			err, ERR_PRECONDITION, "%s has changed in the meantime, or is not raw", wanted->dev);
	if (fake->fail) {
		enum err_code code = fake->fail;
		fake->fail = 0;
		return err_set(err, code, "the kernel refused");
	}
	if (nd_look_at(look, ns, err) < 0 || reconfigure(fake, r, ns, err) < 0)
		return -1;
	*ret = show_namespace(ns);
	return 0;
}

static int fake_describe(void *self, const char *region, struct nd_memory *ret, struct error **err)
{
	struct fake *fake = self;
	const struct nd_region *r = find_region(fake, "ndbus0", region);

	if (!r)
		return err_set(err, ERR_NOT_FOUND, "no region %s", region);
	const struct nd_fake_region *config = &fake->configs[r - fake->inv->regions];
	*ret = (struct nd_memory){.kind = config->kind ? config->kind : ND_MEMORY_NO_LABELS};
	if (!r->is_pmem)
		ret->kind = ND_MEMORY_VOLATILE;
	else if (r->has_labels)
		ret->kind = ND_MEMORY_LABELLED;
	else if (config->blank_labels)
		ret->kind = ND_MEMORY_BLANK;
	strv_add(&ret->modules, "nmem0");
	return 0;
}

static int fake_init_labels(
	void *self, const struct nd_region *wanted, const struct nd_look *look, struct error **err)
{
	struct fake *fake = self;
	struct nd_region *r = find_region(fake, wanted->bus, wanted->name);

	if (fake->fail) {
		enum err_code code = fake->fail;
		fake->fail = 0;
		return err_set(err, code, "the kernel refused");
	}
	assert(r && fake->configs[r - fake->inv->regions].blank_labels);
	while (r->n_namespaces > 0) {
		if (!r->namespaces[0].bare || !r->namespaces[0].active)
			return err_set(err, ERR_PRECONDITION, "%s is not raw", r->namespaces[0].dev);
		if (nd_look_at(look, &r->namespaces[0], err) < 0)
			return -1;
		remove_namespace(r, 0);
	}
	r->has_labels = true;
	return 0;
}

static int fake_settle_labels(void *self, bool *ret_changed, struct error **err)
{
	(void)self;
	(void)err;
	*ret_changed = false;
	return 0;
}

static void fake_close(void *self)
{
	struct fake *fake = self;

	nd_inventory_free(fake->inv);
	free(fake->configs);
	free(fake);
}

static const struct nd_ops fake_ops = {
	.list = fake_list,
	.confirm = fake_confirm,
	.create = fake_create,
	.destroy = fake_destroy,
	.enable = fake_enable,
	.enable_device = fake_enable_device,
	.convert = fake_convert,
	.describe = fake_describe,
	.init_labels = fake_init_labels,
	.settle_labels = fake_settle_labels,
	.close = fake_close,
};

static struct nd_region make_region(const struct nd_fake_region *config, size_t number)
{
	return (struct nd_region){
		.bus = x_strdup("ndbus0"),
		.name = x_asprintf("region%zu", number),
		.identity = config->kind == ND_MEMORY_LEGACY ? x_asprintf("e820/region%zu", number)
							     : x_asprintf("iset-%016zx", 0x1000 + number),
		.size_bytes = config->size_bytes,
		.align_bytes = config->align_bytes,
		.pfn_align_bytes = PFN_ALIGN_BYTES,
		.btt_start_bytes = config->new_labels ? 0 : BTT_START_OLD_BYTES,
		.ways = config->ways ? config->ways : 1,
		.numa_node = -1,
		.is_pmem = !config->not_pmem,
		.enabled = !config->disabled,
		.readonly = config->readonly,
		.has_labels = config->label_slots > 0 && !config->blank_labels,
	};
}

struct nd *nd_open_fake(const struct nd_fake_region *regions, size_t n)
{
	struct fake *fake = x_calloc(1, sizeof(*fake));
	struct nd *nd = x_calloc(1, sizeof(*nd));

	fake->inv = x_calloc(1, sizeof(*fake->inv));
	fake->inv->regions = x_calloc(n, sizeof(*fake->inv->regions));
	fake->inv->n_regions = n;
	fake->configs = x_calloc(n, sizeof(*fake->configs));
	for (size_t i = 0; i < n; i++) {
		fake->configs[i] = regions[i];
		fake->inv->regions[i] = make_region(&regions[i], i);
	}
	nd->ops = &fake_ops;
	nd->self = fake;
	return nd;
}

static struct fake *fake_of(struct nd *nd)
{
	assert(nd->ops == &fake_ops);
	return nd->self;
}

void nd_fake_add(struct nd *nd, size_t region, const char *name, enum nd_mode mode, uint64_t offset_bytes,
	uint64_t size_bytes)
{
	struct fake *fake = fake_of(nd);
	char uuid[UUID_TEXT_LEN + 1];

	assert(region < fake->inv->n_regions);
	uuid_generate_text(uuid);
	add_namespace(fake, &fake->inv->regions[region], name,
		fake->inv->regions[region].has_labels ? uuid : "", mode,
		(struct extent){offset_bytes, size_bytes});
}

/* Return: the namespace at @offset_bytes. */
static struct nd_namespace *namespace_at(struct nd *nd, size_t region, uint64_t offset_bytes)
{
	const struct fake *fake = fake_of(nd);
	size_t i = 0;

	assert(region < fake->inv->n_regions);
	const struct nd_region *r = &fake->inv->regions[region];
	while (i < r->n_namespaces && r->namespaces[i].offset_bytes != offset_bytes)
		i++;
	assert(i < r->n_namespaces);
	return &r->namespaces[i];
}

void nd_fake_disable(struct nd *nd, size_t region, uint64_t offset_bytes)
{
	namespace_at(nd, region, offset_bytes)->active = false;
}

void nd_fake_legacy(struct nd *nd, size_t region, uint64_t offset_bytes)
{
	namespace_at(nd, region, offset_bytes)->bare = true;
}

void nd_fake_block(struct nd *nd, size_t region, uint64_t offset_bytes, const char *path)
{
	struct nd_namespace *ns = namespace_at(nd, region, offset_bytes);

	free(ns->block_path);
	ns->block_path = x_strdup(path);
}

void nd_fake_stop(struct nd *nd, enum nd_fake_step step)
{
	fake_of(nd)->stop = step;
}

void nd_fake_enable_region(struct nd *nd, size_t region, bool enabled)
{
	const struct fake *fake = fake_of(nd);

	assert(region < fake->inv->n_regions);
	fake->inv->regions[region].enabled = enabled;
}

void nd_fake_fail(struct nd *nd, enum err_code code)
{
	fake_of(nd)->fail = code;
}
