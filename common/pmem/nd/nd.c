/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/nd.h"

#include <ctype.h>
#include <pthread.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "pmem/bounded_lock.h"
#include "pmem/namespace_layout.h"

/* NSLABEL_NAME_LEN of the kernel's drivers/nvdimm/label.h, with its NUL */
#define LABEL_NAME_BYTES 64

/* As long as an operation of moderate size may take. An operation that hangs in the kernel never ends, so
 * callers do not wait longer. */
#define WAIT_MS 20000

/* Idle namespaces and seeds can be taken by any thread, so one operation runs at a time in this process. */
static struct bounded_lock one_operation;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void prepare(void)
{
	bounded_lock_init(&one_operation);
}

/* @what, @where: what is done, for those that wait */
static int take_lock(const char *what, const char *where, struct bounded_lock **ret, struct error **err)
{
	CLEANUP(free_charp) char *step = x_asprintf("%s%s", what, where);

	pthread_once(&once, prepare);
	if (bounded_lock_take(&one_operation, step, WAIT_MS, ret, err) < 0)
		return err_wrap(err, "namespaces");
	return 0;
}

uint64_t nd_activity(char ret_step[static BOUNDED_LOCK_STEP_MAX])
{
	pthread_once(&once, prepare);
	return bounded_lock_current_step(&one_operation, ret_step);
}

void nd_close(struct nd *nd)
{
	if (!nd)
		return;
	nd->ops->close(nd->self);
	free(nd->guard_folder);
	free(nd);
}

void nd_set_guard(struct nd *nd, nd_guard_fn guard, const char *folder)
{
	free(nd->guard_folder);
	nd->guard_folder = x_strdup(folder);
	nd->guard = guard;
}

static void look_over(const struct nd *nd, struct nd_inventory *inv)
{
	if (nd->guard)
		nd->guard(nd->guard_folder, inv);
}

int nd_list(struct nd *nd, struct nd_inventory **ret, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("list namespaces", "", &lock, err) < 0)
		return -1;
	if (nd->ops->list(nd->self, ret, err) < 0)
		return -1;
	look_over(nd, *ret);
	return 0;
}

int nd_confirm(struct nd *nd, const char *block_path, const char *uuid, struct error **err)
{
	return nd->ops->confirm(nd->self, block_path, uuid, err);
}

static bool is_uuid(const char *text)
{
	if (strlen(text) != UUID_TEXT_LEN)
		return false;
	for (size_t i = 0; i < UUID_TEXT_LEN; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;
		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]))
			return false;
	}
	return true;
}

static int check_spec(const struct nd_spec *spec, struct error **err)
{
	size_t len = strlen(spec->label);

	if (len == 0 || len >= LABEL_NAME_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the name of the namespace has %zu bytes, 1 to %d are allowed", len,
			LABEL_NAME_BYTES - 1);
	if (!is_uuid(spec->uuid))
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a UUID", spec->uuid);
	if (spec->mode != ND_FSDAX && spec->mode != ND_SECTOR)
		return err_set(err, ERR_INVALID_ARGUMENT, "namespaces of mode %s cannot be created",
			nd_mode_name(spec->mode));
	if (spec->raw_bytes == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "namespace of 0 bytes");
	return 0;
}

int nd_create(struct nd *nd, const struct nd_spec *spec, struct nd_namespace **ret,
	struct nd_inventory **ret_after, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (check_spec(spec, err) < 0)
		return -1;
	if (take_lock("create namespace in ", spec->region, &lock, err) < 0)
		return -1;
	if (nd->ops->create(nd->self, spec, ret, ret_after, err) < 0)
		return err_wrap(err, "create namespace in %s", spec->region);
	look_over(nd, *ret_after);
	return 0;
}

int nd_destroy(struct nd *nd, const char *uuid, const char *name, struct nd_inventory **ret_after,
	struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("destroy namespace ", name, &lock, err) < 0)
		return -1;
	if (nd->ops->destroy(nd->self, uuid, name, ret_after, err) < 0)
		return err_wrap(err, "destroy namespace %s", name);
	look_over(nd, *ret_after);
	return 0;
}

int nd_enable(struct nd *nd, const char *uuid, const char *name, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("enable namespace ", name, &lock, err) < 0)
		return -1;
	int rc = nd->ops->enable(nd->self, uuid, name, err);
	if (rc < 0)
		err_wrap(err, "enable namespace %s", name);
	return rc;
}

int nd_enable_device(struct nd *nd, const char *dev, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("enable ", dev, &lock, err) < 0)
		return -1;
	int rc = nd->ops->enable_device(nd->self, dev, err);
	if (rc < 0)
		err_wrap(err, "enable %s", dev);
	return rc;
}

int nd_convert(struct nd *nd, const struct nd_namespace *ns, const struct nd_look *look,
	struct nd_namespace **ret, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("convert ", ns->dev, &lock, err) < 0)
		return -1;
	int rc = nd->ops->convert(nd->self, ns, look, ret, err);
	if (rc < 0)
		err_wrap(err, "convert %s", ns->dev);
	return rc;
}

int nd_describe(struct nd *nd, const char *region, struct nd_memory *ret, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("look at ", region, &lock, err) < 0)
		return -1;
	int rc = nd->ops->describe(nd->self, region, ret, err);
	if (rc < 0)
		err_wrap(err, "look at %s", region);
	return rc;
}

int nd_look_at(const struct nd_look *look, const struct nd_namespace *ns, struct error **err)
{
	return look ? look->run(look->folder, look->region, ns, err) : 0;
}

int nd_init_labels(struct nd *nd, const struct nd_region *r, const struct nd_look *look, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("initialise labels of ", r->name, &lock, err) < 0)
		return -1;
	int rc = nd->ops->init_labels(nd->self, r, look, err);
	if (rc < 0)
		err_wrap(err, "initialise labels of %s", r->name);
	return rc;
}

int nd_settle_labels(struct nd *nd, bool *ret_changed, struct error **err)
{
	CLEANUP(bounded_lock_releasep) struct bounded_lock *lock = NULL;

	if (take_lock("settle labels", "", &lock, err) < 0)
		return -1;
	return nd->ops->settle_labels(nd->self, ret_changed, err);
}

void nd_memory_done(struct nd_memory *m)
{
	strv_free(m->modules);
	free(m->problem);
	*m = (struct nd_memory){0};
}

static void namespace_done(struct nd_namespace *ns)
{
	free(ns->dev);
	free(ns->name);
	free(ns->uuid);
	free(ns->block_path);
}

void nd_namespace_free(struct nd_namespace *ns)
{
	if (!ns)
		return;
	namespace_done(ns);
	free(ns);
}

struct nd_namespace *nd_namespace_dup(const struct nd_namespace *ns)
{
	struct nd_namespace *copy = x_malloc(sizeof(*copy));

	*copy = *ns;
	copy->dev = x_strdup(ns->dev);
	copy->name = x_strdup(ns->name);
	copy->uuid = x_strdup(ns->uuid);
	copy->block_path = x_strdup(ns->block_path);
	return copy;
}

static void region_done(struct nd_region *r)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		namespace_done(&r->namespaces[i]);
	free(r->namespaces);
	free(r->bus);
	free(r->name);
	free(r->identity);
}

void nd_region_free(struct nd_region *r)
{
	if (!r)
		return;
	region_done(r);
	free(r);
}

void nd_inventory_free(struct nd_inventory *inv)
{
	if (!inv)
		return;
	for (size_t i = 0; i < inv->n_regions; i++)
		region_done(&inv->regions[i]);
	free(inv->regions);
	free(inv);
}

uint64_t nd_region_unit(const struct nd_region *r)
{
	return layout_alignment(r->pfn_align_bytes, r->ways, r->align_bytes);
}

uint64_t nd_usable_bytes(const struct nd_region *r, enum nd_mode mode, uint64_t raw_bytes)
{
	switch (mode) {
	case ND_FSDAX:
		return layout_fsdax_usable(raw_bytes, r->pfn_align_bytes);
	case ND_SECTOR:
		return layout_btt_usable(raw_bytes, r->btt_start_bytes);
	case ND_DEVDAX:
		return 0;
	case ND_RAW:
		break;
	}
	return raw_bytes;
}

/* ND_OFFSET_UNKNOWN is the largest number, so that those come last. */
static int compare_offsets(const void *a, const void *b)
{
	uint64_t x = ((const struct nd_namespace *)a)->offset_bytes;
	uint64_t y = ((const struct nd_namespace *)b)->offset_bytes;

	return x < y ? -1 : x > y;
}

void nd_region_sort(struct nd_region *r)
{
	if (r->n_namespaces)
		qsort(r->namespaces, r->n_namespaces, sizeof(*r->namespaces), compare_offsets);
}

/* Sorted by offset, those of unknown offset last. */
bool nd_has_offsets(const struct nd_region *r)
{
	return r->n_namespaces == 0 || r->namespaces[r->n_namespaces - 1].offset_bytes != ND_OFFSET_UNKNOWN;
}

struct extent nd_free_extent(const struct nd_region *r, size_t i)
{
	uint64_t start = i > 0 ? r->namespaces[i - 1].offset_bytes + r->namespaces[i - 1].raw_bytes : 0;
	uint64_t end = i < r->n_namespaces ? r->namespaces[i].offset_bytes : r->size_bytes;

	return (struct extent){start, start < end ? end - start : 0};
}

const char *nd_mode_name(enum nd_mode mode)
{
	switch (mode) {
	case ND_FSDAX:
		return "fsdax";
	case ND_DEVDAX:
		return "devdax";
	case ND_SECTOR:
		return "sector";
	case ND_RAW:
		break;
	}
	return "raw";
}

bool nd_is_own(const struct nd_namespace *ns)
{
	return ns->grouped || str_eq(ns->name, POOL_NAMESPACE_NAME);
}

bool nd_is_pool(const struct nd_namespace *ns)
{
	return ns->active && ns->mode == ND_FSDAX && nd_is_own(ns);
}
