/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/cxl/cxl_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

#define SERIALS_MAX_BYTES 512
/* drivers/cxl/core/region.c, alloc_hpa(): sizes of regions are multiples of it for each device */
#define PART_BYTES (256ULL << 20)

char *cxl_serials(const struct cxl_layout *l)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(SERIALS_MAX_BYTES);

	for (unsigned i = 0; i < l->ways; i++)
		buf_addf(&text, "%s0x%jx", i > 0 ? ", " : "", (uintmax_t)l->places[i].serial);
	return x_strdup(buf_str(&text));
}

static bool overlap(uint64_t a_start, uint64_t a_bytes, uint64_t b_start, uint64_t b_bytes)
{
	return a_start < b_start ? b_start - a_start < a_bytes : a_start - b_start < b_bytes;
}

static bool layouts_touch(const struct cxl_layout *a, const struct cxl_layout *b)
{
	for (unsigned i = 0; i < a->ways; i++)
		for (unsigned k = 0; k < b->ways; k++)
			if (a->places[i].serial && a->places[i].serial == b->places[k].serial &&
				overlap(a->places[i].start_bytes, a->size_bytes / a->ways,
					b->places[k].start_bytes, b->size_bytes / b->ways))
				return true;
	return false;
}

bool cxl_set_touches(const struct cxl_set *region, const struct cxl_layout *record)
{
	return layouts_touch(&region->layout, record);
}

static bool same_devices(const struct cxl_layout *a, const struct cxl_layout *b)
{
	return a->ways == b->ways && memcmp(a->places, b->places, a->ways * sizeof(a->places[0])) == 0;
}

static bool same_layout(const struct cxl_layout *a, const struct cxl_layout *b)
{
	return same_devices(a, b) && a->size_bytes == b->size_bytes &&
	       a->granularity_bytes == b->granularity_bytes;
}

/* An attempt to make the recorded region was interrupted, or an administrator makes it. */
static bool is_begun(const struct cxl_set *r, const struct cxl_layout *record)
{
	return !r->committed && str_eq(r->layout.uuid, record->uuid);
}

/* A region that has memory of the recorded one. */
static enum cxl_verdict judge_region(
	const struct cxl_layout *record, const struct cxl_set *r, char **ret_text)
{
	CLEANUP(free_charp) char *there = cxl_serials(&r->layout);
	CLEANUP(free_charp) char *recorded = cxl_serials(record);

	if (!r->committed)
		*ret_text = x_asprintf(
			"%s, which is not complete, has devices of it (%s); complete it, or remove it "
			"with \"cxl destroy-region %s\"",
			r->name, there, r->name);
	else if (!same_layout(&r->layout, record))
		*ret_text = x_asprintf(
			"%s has the devices %s with granularity %ju and %ju bytes, recorded are %s with "
			"granularity %ju and %ju bytes: nothing is found in it; remove it with \"cxl "
			"destroy-region -f %s\", and the recorded one is made again",
			r->name, there, (uintmax_t)r->layout.granularity_bytes,
			(uintmax_t)r->layout.size_bytes, recorded, (uintmax_t)record->granularity_bytes,
			(uintmax_t)record->size_bytes, r->name);
	else if (!r->enabled)
		*ret_text = x_asprintf(
			"%s is disabled; enable it with \"cxl enable-region %s\"", r->name, r->name);
	return *ret_text ? CXL_REFUSED : CXL_THERE;
}

static const struct cxl_root *find_root(const struct cxl_topology *t, const struct cxl_window *w)
{
	for (size_t i = 0; i < t->n_roots; i++)
		if (cxl_window_eq(&t->roots[i].window, w))
			return &t->roots[i];
	return NULL;
}

/* Return: NULL, or why the device at position @i of the record cannot be used; caller frees. */
static char *judge_device(const struct cxl_layout *record, unsigned i, const struct cxl_topology *t)
{
	const struct cxl_place *wanted = &record->places[i];
	const struct cxl_device *found = NULL;
	size_t n = 0;

	for (size_t k = 0; k < t->n_devices; k++) {
		if (t->devices[k].serial != wanted->serial)
			continue;
		found = &t->devices[k];
		n++;
	}
	if (n == 0)
		return x_asprintf("the device with serial number 0x%jx (position %u of %u) is missing",
			(uintmax_t)wanted->serial, i, record->ways);
	if (n > 1)
		return x_asprintf("%zu devices have the serial number 0x%jx", n, (uintmax_t)wanted->serial);
	if (found->n_roots == 0)
		return x_asprintf(
			"%s, with serial number 0x%jx, is disabled or belongs to no root decoder for "
			"persistent memory",
			found->name, (uintmax_t)wanted->serial);
	if (found->volatile_bytes > wanted->start_bytes ||
		found->pmem_bytes < record->size_bytes / record->ways)
		return x_asprintf("%s, with serial number 0x%jx, has less persistent memory than before",
			found->name, (uintmax_t)wanted->serial);
	return NULL;
}

enum cxl_verdict cxl_match(const struct cxl_layout *record, const struct cxl_topology *t, char **ret_text)
{
	*ret_text = NULL;
	for (size_t i = 0; i < t->n_sets; i++)
		if (cxl_set_touches(&t->sets[i], record) && !is_begun(&t->sets[i], record))
			return judge_region(record, &t->sets[i], ret_text);
	for (unsigned i = 0; i < record->ways && !*ret_text; i++)
		*ret_text = judge_device(record, i, t);
	if (*ret_text)
		return CXL_REFUSED;
	if (!find_root(t, &record->window)) {
		*ret_text =
			x_asprintf("no root decoder has the recorded window, %ju bytes at 0x%jx over %u host "
				   "bridges; make the region by hand: cxl create-region",
				(uintmax_t)record->window.size_bytes, (uintmax_t)record->window.start_bytes,
				record->window.ways);
		return CXL_REFUSED;
	}
	return CXL_TO_MAKE;
}

/* --- new regions */

static bool is_recorded(const struct cxl_records *records, uint64_t serial)
{
	for (size_t i = 0; i < records->n; i++)
		for (unsigned k = 0; k < records->list[i].ways; k++)
			if (records->list[i].places[k].serial == serial)
				return true;
	return false;
}

static int check_device(const struct cxl_device *d, const struct cxl_device *first, struct error **err)
{
	if (d->serial == 0)
		return err_set(
			err, ERR_PRECONDITION, "%s has serial number 0, which identifies no device", d->name);
	if (d->n_roots > 1)
		return err_set(err, ERR_PRECONDITION,
			"%s (0x%jx) belongs to %u root decoders, and it is not known which one to use",
			d->name, (uintmax_t)d->serial, d->n_roots);
	if (d->pmem_bytes != first->pmem_bytes)
		return err_set(err, ERR_PRECONDITION,
			"%s (0x%jx) has %ju bytes of persistent memory and %s (0x%jx) %ju", d->name,
			(uintmax_t)d->serial, (uintmax_t)d->pmem_bytes, first->name, (uintmax_t)first->serial,
			(uintmax_t)first->pmem_bytes);
	if (d->pmem_bytes % PART_BYTES != 0)
		return err_set(err, ERR_PRECONDITION,
			"%s (0x%jx) has %ju bytes of persistent memory, which is no multiple of %llu",
			d->name, (uintmax_t)d->serial, (uintmax_t)d->pmem_bytes, PART_BYTES);
	return 0;
}

static int compare_serials(const void *a, const void *b)
{
	const struct cxl_device *const *x = a;
	const struct cxl_device *const *y = b;

	return (*x)->serial<(*y)->serial ? -1 : (*x)->serial>(*y)->serial;
}

/* CXL 3.0, 8.2.4.19.7, "Interleave Ways" */
static bool can_interleave(size_t n)
{
	return n == 1 || n == 2 || n == 3 || n == 4 || n == 6 || n == 8 || n == 12 || n == 16;
}

/* Position p of a region is below host bridge p modulo their number (cxl_region_attach()). @devices: by
 * serial number; those that are placed become NULL. */
static int place(const struct cxl_device **devices, size_t n, const struct cxl_window *w,
	struct cxl_layout *l, struct error **err)
{
	for (size_t p = 0; p < n; p++) {
		size_t i = 0;
		while (i < n && (!devices[i] || devices[i]->position != p % w->ways))
			i++;
		if (i == n)
			return err_set(err, ERR_PRECONDITION,
				"the %zu devices are not distributed evenly over %u host bridges", n,
				w->ways);
		l->places[l->ways++] = (struct cxl_place){devices[i]->serial, devices[i]->volatile_bytes};
		devices[i] = NULL;
	}
	return 0;
}

static int choose(const struct cxl_topology *t, const struct cxl_records *records, size_t root,
	const struct cxl_device **chosen, size_t *ret_n, struct error **err)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_devices; i++) {
		const struct cxl_device *d = &t->devices[i];
		if (d->used || d->n_roots == 0 || d->root != root || is_recorded(records, d->serial))
			continue;
		if (check_device(d, n > 0 ? chosen[0] : d, err) < 0)
			return -1;
		chosen[n++] = d;
	}
	if (n > 0)
		qsort(chosen, n, sizeof(chosen[0]), compare_serials);
	for (size_t i = 1; i < n; i++)
		if (chosen[i]->serial == chosen[i - 1]->serial)
			return err_set(err, ERR_PRECONDITION, "%s and %s have the same serial number 0x%jx",
				chosen[i - 1]->name, chosen[i]->name, (uintmax_t)chosen[i]->serial);
	*ret_n = n;
	return 0;
}

static int plan(const struct cxl_topology *t, const struct cxl_records *records, size_t root,
	const struct cxl_device **chosen, struct cxl_layout *ret, struct error **err)
{
	const struct cxl_root *r = &t->roots[root];
	struct cxl_layout l = {.window = r->window, .granularity_bytes = r->window.granularity_bytes};
	size_t n = 0;

	if (choose(t, records, root, chosen, &n, err) < 0)
		return -1;
	if (n == 0)
		return 0;
	if (!can_interleave(n))
		return err_set(err, ERR_PRECONDITION, "%zu devices cannot be interleaved", n);
	l.size_bytes = chosen[0]->pmem_bytes * n;
	if (l.size_bytes > r->free_bytes)
		return err_set(err, ERR_PRECONDITION, "its window has only %ju free bytes for %ju",
			(uintmax_t)r->free_bytes, (uintmax_t)l.size_bytes);
	if (place(chosen, n, &r->window, &l, err) < 0)
		return -1;
	*ret = l;
	return 0;
}

int cxl_plan_new(const struct cxl_topology *t, const struct cxl_records *records, size_t root,
	struct cxl_layout *ret, struct error **err)
{
	const struct cxl_device **chosen = x_calloc(t->n_devices, sizeof(*chosen));

	*ret = (struct cxl_layout){0};
	int rc = plan(t, records, root, chosen, ret, err);
	free(chosen);
	return rc < 0 ? err_wrap(err, "no region is made below %s; make it by hand: cxl create-region",
				t->roots[root].name)
		      : 0;
}
