/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/nd_dimms.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "pmem/nd/nd_sysfs.h"

#define PROBLEMS_TEXT_MAX 256
#define DIGITS            "0123456789"

static const char *const problem_names[DIMM_PROBLEMS] = {
	"save_fail", "restore_fail", "flush_fail", "not_armed", "smart_event", "map_fail"};

const char *dimm_problem_name(unsigned i)
{
	return problem_names[i];
}

char *dimm_problems_text(unsigned problems)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(PROBLEMS_TEXT_MAX);

	for (unsigned i = 0; i < DIMM_PROBLEMS; i++) {
		if (problems & 1U << i)
			buf_addf(&text, "%s%s", text.len > 0 ? ", " : "", problem_names[i]);
	}
	return x_strdup(buf_str(&text));
}

void dimms_done(struct dimms *d)
{
	for (size_t i = 0; i < d->n; i++) {
		free(d->list[i].name);
		free(d->list[i].id);
		strv_free(d->list[i].regions);
	}
	free(d->list);
	*d = (struct dimms){0};
}

void dimms_dup(const struct dimms *d, struct dimms *ret)
{
	*ret = (struct dimms){.list = x_calloc(d->n, sizeof(*d->list)), .n = d->n};
	for (size_t i = 0; i < d->n; i++) {
		ret->list[i] = d->list[i];
		ret->list[i].name = x_strdup(d->list[i].name);
		ret->list[i].id = x_strdup(d->list[i].id);
		ret->list[i].regions = strv_dup(d->list[i].regions);
	}
}

/* @text: words, each followed by a blank */
static unsigned parse_flags(const char *text)
{
	unsigned problems = 0;

	for (const char *p = text; *p;) {
		size_t len = strcspn(p, " ");

		for (unsigned i = 0; i < DIMM_PROBLEMS; i++) {
			if (strlen(problem_names[i]) == len && memcmp(problem_names[i], p, len) == 0)
				problems |= 1U << i;
		}
		p += len;
		p += strspn(p, " ");
	}
	return problems;
}

/* @family: folder of the driver that has found the module. Return: whether it was that one. */
static bool read_family(struct dimm *d, const char *family)
{
	CLEANUP(free_charp) char *id_name = x_asprintf("%s/id", family);
	CLEANUP(free_charp) char *flags_name = x_asprintf("%s/flags", family);
	CLEANUP(free_charp) char *count_name = x_asprintf("%s/dirty_shutdown", family);
	CLEANUP(free_charp) char *flags = NULL;
	char *id = nd_attr_hint(d->name, id_name);

	if (str_empty(id)) {
		free(id);
		return false;
	}
	free(d->id);
	d->id = id;
	flags = nd_attr_hint(d->name, flags_name);
	d->problems = parse_flags(flags);
	d->dirty_shutdowns = nd_attr_hint_number(d->name, count_name, UINT64_MAX);
	d->counts = d->dirty_shutdowns != UINT64_MAX;
	if (!d->counts)
		d->dirty_shutdowns = 0;
	return true;
}

static bool is_on_cxl(const char *name)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(free_charp) char *bus = NULL;
	CLEANUP(free_charp) char *provider = NULL;

	if (nd_parent(name, &bus, &ignored) < 0)
		return false;
	provider = nd_attr_hint(bus, "provider");
	return str_eq(provider, "CXL");
}

static void read_module(const char *name, struct dimm *ret)
{
	static const char *const families[] = {"nfit", "cxl"};

	*ret = (struct dimm){.name = x_strdup(name), .id = x_strdup(""), .is_cxl = is_on_cxl(name)};
	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		if (read_family(ret, families[i]))
			return;
	}
}

static void note_region(struct dimms *d, const char *region)
{
	uint64_t ways = nd_attr_hint_number(region, "mappings", 0);

	for (unsigned i = 0; i < ways; i++) {
		CLEANUP(free_charp) char *module = nd_module_of(region, i);

		for (size_t k = 0; k < d->n; k++) {
			if (str_eq(d->list[k].name, module))
				strv_add(&d->list[k].regions, region);
		}
	}
}

static bool is_numbered(const char *name, const char *prefix)
{
	if (!str_starts(name, prefix))
		return false;
	const char *digits = name + strlen(prefix);
	return *digits && digits[strspn(digits, DIGITS)] == '\0';
}

int dimms_read(struct dimms *ret, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	struct dimms d = {0};

	if (nd_attr_names(".", ".", &names, err) < 0)
		return -1;
	d.list = x_calloc(strv_len(names), sizeof(*d.list));
	for (char **name = names; *name; name++) {
		if (is_numbered(*name, "nmem"))
			read_module(*name, &d.list[d.n++]);
	}
	for (char **name = names; *name; name++) {
		if (is_numbered(*name, "region"))
			note_region(&d, *name);
	}
	*ret = d;
	return 0;
}

/* The region in whose folder the block device is; NULL: in none. Return: caller frees. */
static char *region_of(dev_t dev)
{
	CLEANUP(free_charp) char *path = x_asprintf("/sys/dev/block/%u:%u", major(dev), minor(dev));
	CLEANUP(free_charp) char *target = NULL;
	CLEANUP(error_freep) struct error *gone = NULL;

	if (nd_link(path, &target, &gone) < 0)
		return NULL;
	for (const char *p = target; *p;) {
		size_t len = strcspn(p, "/");
		CLEANUP(free_charp) char *name = x_strndup(p, len);

		if (is_numbered(name, "region"))
			return TAKE_PTR(name);
		p += len + (p[len] == '/');
	}
	return NULL;
}

static void mark(const struct dimms *d, dev_t dev, bool *below)
{
	CLEANUP(free_charp) char *region = region_of(dev);

	for (size_t i = 0; region && i < d->n; i++)
		below[i] = below[i] || strv_contains(d->list[i].regions, region);
}

static void segments_freep(struct dm_segment **segments)
{
	free(*segments);
}

int dimms_find_below(const struct dimms *d, const char *path, bool *ret_below, struct error **err)
{
	CLEANUP(segments_freep) struct dm_segment *segments = NULL;
	size_t n = 0;
	struct stat st;

	memset(ret_below, 0, d->n * sizeof(*ret_below));
	if (stat(path, &st) < 0 || !S_ISBLK(st.st_mode))
		return 0;
	if (dm_list_segments(st.st_rdev, &segments, &n, err) < 0)
		return err_wrap(err, "%s", path);
	mark(d, st.st_rdev, ret_below);
	for (size_t i = 0; i < n; i++)
		mark(d, segments[i].dev, ret_below);
	return 0;
}
