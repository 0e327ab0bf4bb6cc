/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/nd_kind.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "pmem/nd/label_area.h"
#include "pmem/nd/nd_dimms.h"
#include "pmem/nd/nd_private.h"

/* How many of a region's modules have which label area. */
struct areas {
	unsigned n_none;
	unsigned n_free; /* without a label */
};

/* Return: false where @ret->problem has been set. */
static bool count_area(const char *module, struct areas *areas, struct nd_memory *ret)
{
	CLEANUP(error_freep) struct error *err = NULL;
	enum label_area area;

	if (label_area_read(module, /* whole= */ false, &area, &err) < 0) {
		ret->problem = x_strdup(err->msg);
		return false;
	}
	switch (area) {
	case LABEL_AREA_NONE:
		areas->n_none++;
		return true;
	case LABEL_AREA_BLANK:
	case LABEL_AREA_EMPTY:
		areas->n_free++;
		return true;
	case LABEL_AREA_USED:
		break;
	}
	ret->problem =
		x_asprintf("the label area of %s is not blank, and the kernel finds no labels in it", module);
	return false;
}

/* Return: the other region that @module has a part of, or NULL. */
static const char *other_region(const struct dimms *all, const char *module, const char *region)
{
	for (size_t i = 0; i < all->n; i++) {
		char *const *names = all->list[i].regions;
		for (; str_eq(all->list[i].name, module) && names && *names; names++)
			if (!str_eq(*names, region))
				return *names;
	}
	return NULL;
}

/* The labels of a module are those of each region that it has a part of. */
static bool find_shared(const struct dimms *all, const char *region, struct nd_memory *ret)
{
	for (char **module = ret->modules; module && *module; module++) {
		const char *other = other_region(all, *module, region);
		if (!other)
			continue;
		ret->problem =
			x_asprintf("%s, whose label area is blank, has a part of %s, too", *module, other);
		return true;
	}
	return false;
}

static enum nd_memory_kind judge_areas(const char *region, const struct dimms *all, struct nd_memory *ret)
{
	struct areas areas = {0};

	for (char **module = ret->modules; module && *module; module++)
		if (!count_area(*module, &areas, ret))
			return ND_MEMORY_ODD;
	if (areas.n_free == 0)
		return ND_MEMORY_NO_LABELS;
	if (areas.n_none > 0) {
		ret->problem = x_strdup("only some of its modules have label areas");
		return ND_MEMORY_ODD;
	}
	return find_shared(all, region, ret) ? ND_MEMORY_ODD : ND_MEMORY_BLANK;
}

int nd_kind_read(const char *name, struct nd_memory *ret, struct error **err)
{
	CLEANUP(nd_memory_done) struct nd_memory m = {0};
	CLEANUP(nd_region_freep) struct nd_region *r = NULL;
	CLEANUP(free_charp) char *provider = NULL;
	CLEANUP(dimms_done) struct dimms all = {0};

	if (nd_region_read(name, &r, err) < 0 || dimms_read(&all, err) < 0)
		return -1;
	provider = nd_attr_hint(r->bus, "provider");
	m.is_cxl = str_eq(provider, "CXL");
	for (unsigned i = 0; i < r->ways; i++) {
		CLEANUP(free_charp) char *module = nd_module_of(name, i);
		if (!str_empty(module))
			strv_add(&m.modules, module);
	}
	if (!r->is_pmem)
		m.kind = ND_MEMORY_VOLATILE;
	else if (r->has_labels)
		m.kind = ND_MEMORY_LABELLED;
	else if (str_eq(provider, "e820"))
		m.kind = ND_MEMORY_LEGACY;
	else if (str_eq(provider, "virtio-pmem"))
		m.kind = ND_MEMORY_VIRTIO;
	else
		m.kind = judge_areas(name, &all, &m);
	*ret = m;
	m = (struct nd_memory){0};
	return 0;
}
