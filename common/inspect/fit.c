/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/fit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/fs.h"

#define TEXT_MAX 48

static const char *const kind_names[] = {
	[FIT_MINIMUM] = "file-system-minimum",
	[FIT_ROUNDING] = "rounding",
	[FIT_DURABILITY] = "durability",
	[FIT_CLOSED] = "other-device-mode",
	[FIT_INCOMPLETE] = "incomplete-pool",
	[FIT_SPACE] = "space",
	[FIT_FRAGMENTATION] = "fragmentation",
	[FIT_LABELS] = "label-slots",
	[FIT_METADATA] = "group-metadata",
	[FIT_REGION] = "region",
	[FIT_ERASING] = "erasing",
	[FIT_SHARE] = "pool-share",
	[FIT_FOREIGN] = "foreign-namespaces",
};

const char *fit_kind_name(enum fit_kind kind)
{
	return kind_names[kind];
}

void fit_answer_done(struct fit_answer *a)
{
	for (size_t i = 0; i < a->n_reasons; i++)
		free(a->reasons[i].text);
	free(a->reasons);
	*a = (struct fit_answer){0};
}

static void __attribute__((format(printf, 4, 5))) add(
	struct fit_answer *a, enum fit_kind kind, uint64_t bytes, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = x_vasprintf(fmt, ap);
	va_end(ap);
	a->reasons = x_realloc(a->reasons, a->n_reasons + 1, sizeof(*a->reasons));
	a->reasons[a->n_reasons++] = (struct fit_reason){.kind = kind, .bytes = bytes, .text = text};
}

/* "1234 bytes (1.2 KiB)": the one to compare with other tools, the other to read */
static const char *show(uint64_t bytes, char out[static TEXT_MAX])
{
	char text[24];

	snprintf(out, TEXT_MAX, "%ju bytes (%s)", (uintmax_t)bytes, format_bytes(bytes, text));
	return out;
}

static uint64_t needed_bytes(const struct fit_request *q, struct fit_answer *a)
{
	uint64_t min_bytes = q->block ? 0 : fs_min_bytes(q->fs_type);
	char min[TEXT_MAX];

	if (q->size_bytes >= min_bytes)
		return q->size_bytes;
	add(a, FIT_MINIMUM, min_bytes, "%s needs at least %s", q->fs_type, show(min_bytes, min));
	return min_bytes;
}

/* A logical volume may lie in several pieces, a namespace may not. */
static bool is_contiguous(const struct fit_node *node, const struct device_pool *p)
{
	for (size_t i = 0; node->regions && i < node->regions->n_regions; i++) {
		if (str_eq(p->uuid, node->regions->regions[i].identity))
			return true;
	}
	return !node->regions;
}

static void explain_space(const struct fit_node *node, const struct device_pool *p, uint64_t largest_bytes,
	struct fit_answer *a)
{
	char needed[TEXT_MAX];
	char free_bytes[TEXT_MAX];
	char largest[TEXT_MAX];
	char unit[TEXT_MAX];

	show(a->needed_bytes, needed);
	if (p->capacity.available_bytes < a->needed_bytes) {
		add(a, FIT_SPACE, a->needed_bytes - p->capacity.available_bytes, "%s needed, %s free", needed,
			show(p->capacity.available_bytes, free_bytes));
		return;
	}
	if (!is_contiguous(node, p) && p->used_up) {
		add(a, FIT_METADATA, 0,
			"no free %s: volume group %s cannot have more volumes, however much space is "
			"free",
			p->used_up, p->name);
		return;
	}
	if (!is_contiguous(node, p)) {
		add(a, FIT_ROUNDING, p->rules.unit_bytes, "%s needed, rounded up to extents of %s; %s free",
			needed, show(p->rules.unit_bytes, unit),
			show(p->capacity.available_bytes, free_bytes));
		return;
	}
	add(a, FIT_FRAGMENTATION, largest_bytes,
		"%s needed in one extent, %s free, and the largest volume that fits into one extent is %s, "
		"in units of %s",
		needed, show(p->capacity.available_bytes, free_bytes), show(largest_bytes, largest),
		show(p->rules.unit_bytes, unit));
}

static void explain_region(
	const struct nd_region *r, const struct inventory_region *row, bool is_pool, struct fit_answer *a)
{
	char bytes[TEXT_MAX];
	char total[TEXT_MAX];

	if (!r->enabled || r->readonly)
		add(a, FIT_REGION, 0, "%s is %s", r->name, r->enabled ? "read-only" : "disabled");
	if (is_pool && r->free_labels == 0)
		add(a, FIT_LABELS, 0, "%s has no free label slot: %zu namespaces use all of them", r->name,
			r->n_namespaces);
	if (!is_pool && r->available_bytes > 0)
		add(a, FIT_SHARE, r->available_bytes,
			"%s has %s outside of its pool namespaces, which take %ju %% of its %s: pmem-ns-init "
			"with a larger -useforfsdax, then pmem-vgm, would add it",
			r->name, show(r->available_bytes, bytes),
			(uintmax_t)(r->size_bytes ? row->pool_bytes * 100 / r->size_bytes : 0),
			show(r->size_bytes, total));
	if (row->foreign_bytes > 0)
		add(a, FIT_FOREIGN, row->foreign_bytes, "%s has %u foreign namespaces, which take %s",
			r->name, row->n_foreign, show(row->foreign_bytes, bytes));
}

static void explain(const struct fit_node *node, const struct device_pool *p, uint64_t largest_bytes,
	struct fit_answer *a)
{
	uint64_t erasing_bytes = inventory_erasing(node->view, p);
	char bytes[TEXT_MAX];

	if (p->closed)
		add(a, FIT_CLOSED, 0,
			"the pool is of the other device mode: no new volumes are created in it");
	if (!p->complete)
		add(a, FIT_INCOMPLETE, 0, "parts of it are missing or disabled");
	if (!p->closed && p->complete)
		explain_space(node, p, largest_bytes, a);
	if (erasing_bytes > 0)
		add(a, FIT_ERASING, erasing_bytes, "%s will be free when unfinished deletions are done",
			show(erasing_bytes, bytes));
	for (size_t i = 0; node->regions && i < node->regions->n_regions; i++) {
		const struct nd_region *r = &node->regions->regions[i];
		struct inventory_region row;

		if (!inventory_pool_has(p, r, node->report))
			continue;
		inventory_region(r, node->view, &row);
		explain_region(r, &row, str_eq(p->uuid, r->identity), a);
	}
}

void fit_explain(const struct fit_node *node, const struct fit_request *q, size_t at, struct fit_answer *ret)
{
	const struct device_pool *p = &node->view->devices->pools[at];
	struct fit_answer a = {0};
	char unit[TEXT_MAX];

	a.needed_bytes = needed_bytes(q, &a);
	a.size_bytes = device_fit(node->manager, p, q->sector, a.needed_bytes);
	if (q->sync && region_durabilities_of(&node->view->durabilities, p->region) == DURABILITY_FSYNC) {
		a.size_bytes = UINT64_MAX;
		add(&a, FIT_DURABILITY, 0,
			"the kernel refuses MAP_SYNC on its memory: only volumes of a StorageClass with "
			"durability=fsync, or usage=FileIO, are made there");
	} else if (a.size_bytes == UINT64_MAX)
		explain(node, p, capacity_max_bytes(&p->capacity, q->sector), &a);
	else if (a.size_bytes > a.needed_bytes)
		add(&a, FIT_ROUNDING, a.size_bytes - a.needed_bytes, "%ju bytes more, for units of %s",
			(uintmax_t)(a.size_bytes - a.needed_bytes), show(p->rules.unit_bytes, unit));
	*ret = a;
}
