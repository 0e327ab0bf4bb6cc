/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists regions and namespaces from sysfs.
 *
 * libndctl is not used: it first reads forty attributes of each device, looks up a kernel module for each,
 * and waits for udev (docs/decisions/015).
 */
#include <limits.h>
#include <linux/ndctl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "pmem/namespace_layout.h"
#include "pmem/nd/label_area.h"
#include "pmem/nd/nd_private.h"

#define SECTOR_BYTES 512

uint64_t nd_seed_align(const char *region)
{
	CLEANUP(free_charp) char *seed = nd_attr_hint(region, "pfn_seed");
	CLEANUP(free_charp) char *offered = NULL;
	CLEANUP(free_charp) char *preferred = x_asprintf("%llu", PFN_ALIGN_BYTES);

	if (str_empty(seed))
		return 0;
	offered = nd_attr_hint(seed, "supported_alignments");
	if (nd_has_word(offered, preferred))
		return PFN_ALIGN_BYTES;
	return nd_attr_hint_number(seed, "align", 0);
}

int nd_block_device(const char *device, char **ret_path, uint64_t *ret_bytes, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	uint64_t sectors = 0;

	*ret_path = NULL;
	*ret_bytes = 0;
	if (nd_attr_names(device, "block", &names, err) < 0)
		return -1;
	if (!names[0])
		return 0;
	CLEANUP(free_charp) char *attribute = x_asprintf("block/%s/size", names[0]);
	if (nd_attr_number(device, attribute, &sectors, err) < 0)
		return -1;
	*ret_bytes = sectors * SECTOR_BYTES;
	*ret_path = x_asprintf("/dev/%s", names[0]);
	return 0;
}

/* As mode_show() and holder_class_show() of drivers/nvdimm/namespace_devs.c say. */
static enum nd_mode mode_of(const char *text)
{
	if (str_eq(text, "memory") || str_eq(text, "pfn"))
		return ND_FSDAX;
	if (str_eq(text, "dax"))
		return ND_DEVDAX;
	return str_eq(text, "safe") || str_eq(text, "btt") ? ND_SECTOR : ND_RAW;
}

/* The kernel shows an inactive namespace as raw; the mode that it will have when it is enabled is read from
 * its label. */
static int read_mode(struct nd_namespace *ns, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;

	if (nd_attr(ns->dev, ns->active ? "mode" : "holder_class", &text, err) < 0)
		return -1;
	ns->mode = mode_of(text);
	return 0;
}

/* Name and UUID are in the label, so that a namespace in a region without labels has neither. */
static int read_label(const struct nd_region *r, struct nd_namespace *ns, struct error **err)
{
	if (!r->has_labels) {
		ns->name = x_strdup("");
		ns->uuid = x_strdup("");
		return 0;
	}
	if (nd_attr(ns->dev, "alt_name", &ns->name, err) < 0)
		return -1;
	return nd_attr(ns->dev, "uuid", &ns->uuid, err);
}

static uint64_t offset_in(const struct nd_region *r, const char *namespace)
{
	uint64_t start = nd_attr_hint_number(r->name, "resource", UINT64_MAX);
	uint64_t at = nd_attr_hint_number(namespace, "resource", UINT64_MAX);

	if (start == UINT64_MAX || at == UINT64_MAX || at < start || at - start >= r->size_bytes)
		return ND_OFFSET_UNKNOWN;
	return at - start;
}

/* @ns: empty, of size @raw_bytes. */
static int read_namespace(const struct nd_region *r, const char *dev, uint64_t raw_bytes,
	struct nd_namespace *ns, struct error **err)
{
	CLEANUP(free_charp) char *holder = NULL;

	ns->dev = x_strdup(dev);
	ns->raw_bytes = raw_bytes;
	ns->offset_bytes = offset_in(r, dev);
	if (nd_attr(dev, "holder", &holder, err) < 0)
		return -1;
	const char *front = str_empty(holder) ? dev : holder;
	ns->active = nd_is_bound(front);
	ns->bare = ns->active && str_empty(holder);
	if (read_label(r, ns, err) < 0 || read_mode(ns, err) < 0)
		return -1;
	return ns->active ? nd_block_device(front, &ns->block_path, &ns->usable_bytes, err) : 0;
}

/* @devices: all on the bus. Seeds and remains of failed creations have no size. */
static int read_namespaces(char *const *devices, struct nd_region *r, struct error **err)
{
	CLEANUP(free_charp) char *prefix = x_asprintf("namespace%s.", r->name + strlen("region"));

	for (; *devices; devices++) {
		uint64_t raw_bytes = 0;

		if (!str_starts(*devices, prefix))
			continue;
		if (nd_attr_number(*devices, "size", &raw_bytes, err) < 0)
			return -1;
		if (raw_bytes == 0)
			continue;
		r->namespaces = x_realloc(r->namespaces, r->n_namespaces + 1, sizeof(*r->namespaces));
		struct nd_namespace *ns = &r->namespaces[r->n_namespaces++];
		*ns = (struct nd_namespace){0};
		if (read_namespace(r, *devices, raw_bytes, ns, err) < 0)
			return -1;
	}
	nd_region_sort(r);
	return 0;
}

static int read_cookie(const char *region, uint64_t *ret, struct error **err)
{
	if (nd_attr_number(region, "set_cookie", ret, err) == 0)
		return 0;
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	*ret = 0;
	return 0;
}

/* Bus and region numbers are assigned at each boot; the cookie is derived from the properties of the
 * modules. */
static int read_identity(struct nd_region *r, struct error **err)
{
	CLEANUP(free_charp) char *provider = NULL;
	uint64_t cookie = 0;

	if (r->has_labels && read_cookie(r->name, &cookie, err) < 0)
		return -1;
	if (cookie) {
		r->identity = x_asprintf("iset-%016jx", (uintmax_t)cookie);
		return 0;
	}
	if (nd_attr(r->bus, "provider", &provider, err) < 0)
		return -1;
	r->identity = x_asprintf("%s/%s", provider, r->name);
	return 0;
}

static unsigned read_free_labels(const struct nd_region *r)
{
	uint64_t least = UINT_MAX;

	for (unsigned i = 0; i < r->ways; i++) {
		CLEANUP(free_charp) char *module = nd_module_of(r->name, i);
		uint64_t n = str_empty(module) ? UINT_MAX
					       : nd_attr_hint_number(module, "available_slots", UINT_MAX);
		if (n < least)
			least = n;
	}
	return (unsigned)least;
}

/* As btt_claim_class() of drivers/nvdimm/namespace_devs.c, which requires the same version on all modules. */
static uint64_t read_btt_start(const char *region)
{
	CLEANUP(free_charp) char *module = nd_module_of(region, 0);
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint8_t index[LABEL_INDEX_BYTES];

	if (str_empty(module) || label_area_peek(module, 0, sizeof(index), index, &ignored) < 0 ||
		memcmp(index, LABEL_INDEX_SIGNATURE, sizeof(LABEL_INDEX_SIGNATURE)) != 0)
		return BTT_START_OLD_BYTES;

	unsigned major = index[LABEL_INDEX_MAJOR_AT] | (unsigned)index[LABEL_INDEX_MAJOR_AT + 1] << 8;
	unsigned minor = index[LABEL_INDEX_MINOR_AT] | (unsigned)index[LABEL_INDEX_MINOR_AT + 1] << 8;
	return major == 1 && minor == 1 ? BTT_START_OLD_BYTES : 0;
}

static int read_numa_node(const char *region)
{
	uint64_t node = nd_attr_hint_number(region, "numa_node", INT_MAX);

	return node < INT_MAX ? (int)node : -1;
}

/* As persistence_domain_show() of drivers/nvdimm/region_devs.c: the attribute is absent where the platform
 * does not report it. */
static const char *read_persistence_domain(const char *region)
{
	static const char *const known[] = {"cpu_cache", "memory_controller"};
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(free_charp) char *text = NULL;

	if (nd_attr(region, "persistence_domain", &text, &ignored) < 0)
		return "";
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (str_eq(text, known[i]))
			return known[i];
	}
	return "";
}

/* @r: its name is set. */
static int read_attributes(struct nd_region *r, struct error **err)
{
	const char *name = r->name;
	uint64_t type = 0;
	uint64_t ways = 0;

	if (nd_parent(name, &r->bus, err) < 0 || nd_attr_number(name, "size", &r->size_bytes, err) < 0 ||
		nd_attr_number(name, "nstype", &type, err) < 0 ||
		nd_attr_number(name, "mappings", &ways, err) < 0)
		return -1;
	r->is_pmem = type == ND_DEVICE_NAMESPACE_PMEM || type == ND_DEVICE_NAMESPACE_IO;
	r->has_labels = type == ND_DEVICE_NAMESPACE_PMEM;
	r->ways = ways > 0 ? (unsigned)ways : 1;
	if (read_identity(r, err) < 0)
		return -1;
	r->available_bytes = nd_attr_hint_number(name, "available_size", 0);
	r->max_extent_bytes = nd_attr_hint_number(name, "max_available_extent", r->available_bytes);
	r->align_bytes = nd_attr_hint_number(name, "align", 0);
	r->pfn_align_bytes = nd_seed_align(name);
	r->btt_start_bytes = read_btt_start(name);
	r->free_labels = read_free_labels(r);
	r->numa_node = read_numa_node(name);
	r->persistence_domain = read_persistence_domain(name);
	r->readonly = nd_attr_hint_number(name, "read_only", 0) != 0;
	r->enabled = nd_is_bound(name);
	return 0;
}

static uint64_t number_in(const char *name, const char *prefix)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t n = 0;

	return str_starts(name, prefix) && parse_u64(name + strlen(prefix), &n, &ignored) == 0 ? n
											       : UINT64_MAX;
}

static int compare_regions(const void *a, const void *b)
{
	const struct nd_region *x = a;
	const struct nd_region *y = b;
	uint64_t x_bus = number_in(x->bus, "ndbus");
	uint64_t y_bus = number_in(y->bus, "ndbus");
	uint64_t x_region = number_in(x->name, "region");
	uint64_t y_region = number_in(y->name, "region");

	if (x_bus != y_bus)
		return x_bus < y_bus ? -1 : 1;
	return x_region < y_region ? -1 : x_region > y_region;
}

/* The kernel counts what labels allocate; without labels a namespace lies over the region and is not counted
 * (nd_region_available_dpa() of drivers/nvdimm/region_devs.c). */
static void count_unlabelled(struct nd_region *r)
{
	for (size_t i = 0; !r->has_labels && i < r->n_namespaces; i++) {
		uint64_t bytes = r->namespaces[i].raw_bytes;
		r->available_bytes -= bytes < r->available_bytes ? bytes : r->available_bytes;
	}
	if (!r->has_labels && r->max_extent_bytes > r->available_bytes)
		r->max_extent_bytes = r->available_bytes;
}

/* @enabled_before: regions that were enabled before @devices were listed. A region that was enabled after
 * that is returned as disabled, because @devices may lack its namespaces. */
static int read_regions(
	char *const *devices, char *const *enabled_before, struct nd_inventory *inv, struct error **err)
{
	for (char *const *name = devices; *name; name++) {
		if (number_in(*name, "region") == UINT64_MAX)
			continue;
		inv->regions = x_realloc(inv->regions, inv->n_regions + 1, sizeof(*inv->regions));
		struct nd_region *r = &inv->regions[inv->n_regions++];
		*r = (struct nd_region){.name = x_strdup(*name)};
		if (read_attributes(r, err) < 0 || read_namespaces(devices, r, err) < 0)
			return -1;
		count_unlabelled(r);
		r->enabled = r->enabled && strv_contains(enabled_before, r->name);
	}
	if (inv->n_regions)
		qsort(inv->regions, inv->n_regions, sizeof(*inv->regions), compare_regions);
	return 0;
}

int nd_region_read(const char *name, struct nd_region **ret, struct error **err)
{
	CLEANUP(nd_region_freep) struct nd_region *r = x_calloc(1, sizeof(*r));
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s", name);

	if (access(path, F_OK) < 0)
		return err_set(err, ERR_NOT_FOUND, "no region %s", name);
	r->name = x_strdup(name);
	if (read_attributes(r, err) < 0)
		return -1;
	*ret = TAKE_PTR(r);
	return 0;
}

/* Waits until the kernel has added all devices of enabled regions. @ret_enabled: regions; strv_free() */
static int wait_until_probed(char ***ret_enabled, struct error **err)
{
	CLEANUP(strv_freep) char **devices = NULL;

	if (nd_attr_names(".", ".", &devices, err) < 0)
		return -1;
	for (char **name = devices; *name; name++)
		if (number_in(*name, "region") != UINT64_MAX && nd_is_bound(*name))
			strv_add(ret_enabled, *name);
	for (char **name = devices; *name; name++)
		if (str_starts(*name, "ndbus") && nd_wait_probed(*name, err) < 0)
			return -1;
	return 0;
}

static int read_all(struct nd_inventory **ret, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = x_calloc(1, sizeof(*inv));
	CLEANUP(strv_freep) char **enabled = NULL;
	CLEANUP(strv_freep) char **devices = NULL;

	if (wait_until_probed(&enabled, err) < 0 || nd_attr_names(".", ".", &devices, err) < 0 ||
		read_regions(devices, enabled, inv, err) < 0)
		return -1;
	*ret = TAKE_PTR(inv);
	return 0;
}

int nd_list_read(struct nd_inventory **ret, struct error **err)
{
	CLEANUP(error_freep) struct error *first = NULL;

	/* others may have made or destroyed one meanwhile: they do not take our lock */
	if (read_all(ret, &first) == 0)
		return 0;
	log_debug("namespaces could not be listed, trying again", F_ERR(first));
	if (read_all(ret, err) == 0)
		return 0;
	return err_recode(err, ERR_UNAVAILABLE);
}
