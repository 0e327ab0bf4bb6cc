/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/memory_advice.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "pmem/pool/pool_vg.h"
#include "pmem/pool/raw_content.h"

#define LINE_MAX_BYTES 4096

const char *memory_kind_name(enum nd_memory_kind kind)
{
	static const char *const names[] = {
		[ND_MEMORY_LABELLED] = "labelled",
		[ND_MEMORY_BLANK] = "blank-labels",
		[ND_MEMORY_NO_LABELS] = "no-label-area",
		[ND_MEMORY_LEGACY] = "legacy",
		[ND_MEMORY_VIRTIO] = "virtio-pmem",
		[ND_MEMORY_ODD] = "odd-labels",
		[ND_MEMORY_VOLATILE] = "volatile",
	};

	return names[kind];
}

const char *memory_action_name(enum memory_action action)
{
	static const char *const names[] = {
		[MEMORY_NOTHING] = "none",
		[MEMORY_INIT_LABELS] = "init-labels",
		[MEMORY_CONVERT] = "convert",
		[MEMORY_BY_HAND] = "by-hand",
	};

	return names[action];
}

static void join(char *const *words, const char *between, struct buf *out)
{
	for (size_t i = 0; words && words[i]; i++)
		buf_addf(out, "%s%s", i ? between : "", words[i]);
}

/* Return: caller frees. */
static char *describe(const struct nd_memory *m)
{
	static const char *const texts[] = {
		[ND_MEMORY_LABELLED] = "NVDIMMs with labels",
		[ND_MEMORY_BLANK] = "NVDIMMs whose label areas are blank",
		[ND_MEMORY_NO_LABELS] = "NVDIMMs without a label area",
		[ND_MEMORY_LEGACY] = "legacy memory of the e820 table (memmap=), without labels",
		[ND_MEMORY_VIRTIO] = "a virtio-pmem device, without labels",
		[ND_MEMORY_ODD] = "NVDIMMs with label areas that are not understood",
		[ND_MEMORY_VOLATILE] = "memory that is not persistent",
	};
	bool cxl = m->is_cxl && m->kind == ND_MEMORY_LABELLED;
	CLEANUP(buf_done) struct buf text = BUF_INIT(LINE_MAX_BYTES);

	buf_adds(&text, cxl ? "CXL memory devices with labels" : texts[m->kind]);
	if (m->modules) {
		buf_adds(&text, " (");
		join(m->modules, ", ", &text);
		buf_adds(&text, ")");
	}
	return x_strdup(buf_str(&text));
}

/* Takes @command. */
static void add_command(struct memory_advice *a, char *command)
{
	strv_add(&a->commands, command);
	free(command);
}

static void set_state(struct memory_advice *a, enum memory_action action, char *state)
{
	free(a->state);
	a->state = state;
	a->action = action;
}

/* The sequence by which an administrator initialises labels; what the memory holds stays in it, but the raw
 * namespace vanishes. */
static void add_label_commands(struct memory_advice *a, const struct nd_memory *m, bool force)
{
	add_command(a, x_asprintf("ndctl disable-region %s", a->region->name));
	for (char **module = m->modules; module && *module; module++)
		add_command(a, x_asprintf("ndctl init-labels %s%s", force ? "-f " : "", *module));
	add_command(a, x_asprintf("ndctl enable-region %s", a->region->name));
}

enum obstacle {
	OBSTACLE_NONE,    /* it is raw, and nothing is on it */
	OBSTACLE_USE,     /* it is in use, or cannot be read */
	OBSTACLE_CONTENT, /* a signature, several, or data without one */
	OBSTACLE_RECORD,  /* it was in a volume group */
};

/* Use is not looked for. @ret_text: caller frees */
static enum obstacle find_content(
	const char *folder, const struct nd_region *r, const struct nd_namespace *ns, char **ret_text)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *type = NULL;
	CLEANUP(free_charp) char *former = NULL;

	if (raw_content_find(ns->block_path, &type, &err) < 0) {
		*ret_text = x_asprintf("%s: %s", ns->dev, err->msg);
		return err->code == ERR_PRECONDITION ? OBSTACLE_CONTENT : OBSTACLE_USE;
	}
	former = ns->bare && !*type ? raw_content_former_group(folder, r, ns) : NULL;
	if (former) {
		*ret_text = x_asprintf("%s %s", ns->dev, former);
		return OBSTACLE_RECORD;
	}
	if (!*type && raw_content_may_hide(r, ns)) {
		free(TAKE_PTR(type));
		if (raw_content_find_hidden(ns->block_path, &type, &err) < 0) {
			*ret_text = x_asprintf("%s: %s", ns->dev, err->msg);
			return OBSTACLE_USE;
		}
	}
	if (!*type)
		return OBSTACLE_NONE;
	*ret_text = x_asprintf("%s (%s) holds %s", ns->dev, ns->block_path, type);
	return OBSTACLE_CONTENT;
}

/* @ret_text: caller frees */
static enum obstacle find_obstacle(
	const char *folder, const struct nd_region *r, const struct nd_namespace *ns, char **ret_text)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (raw_content_check_unused(ns->block_path, &err) == 0)
		return find_content(folder, r, ns, ret_text);
	*ret_text = x_asprintf("%s: %s", ns->dev, err->msg);
	return OBSTACLE_USE;
}

int memory_look(
	const char *folder, const struct nd_region *r, const struct nd_namespace *ns, struct error **err)
{
	CLEANUP(free_charp) char *text = NULL;

	if (find_content(folder, r, ns, &text) == OBSTACLE_NONE)
		return 0;
	return err_set(err, ERR_PRECONDITION, "%s", text);
}

static bool has_pool(const struct nd_region *r)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (nd_is_own(&r->namespaces[i]))
			return true;
	return false;
}

/* Return: whether the region itself is in the way of any use. */
static bool advise_on_region_state(struct memory_advice *a)
{
	const struct nd_region *r = a->region;

	if (a->kind == ND_MEMORY_VOLATILE) {
		set_state(a, MEMORY_NOTHING, x_strdup("cannot be used"));
	} else if (!r->enabled) {
		set_state(a, MEMORY_BY_HAND, x_strdup("is not used: the region is disabled"));
		add_command(a, x_asprintf("ndctl enable-region %s", r->name));
	} else if (r->readonly) {
		set_state(a, MEMORY_BY_HAND,
			x_strdup("is not used: the region is read-only, as with modules that are not armed"));
		add_command(a, x_asprintf("echo 0 >/sys/bus/nd/devices/%s/read_only", r->name));
	} else {
		return false;
	}
	return true;
}

static void advise_on_odd(struct memory_advice *a, const struct nd_memory *m)
{
	set_state(
		a, MEMORY_BY_HAND, x_asprintf("is not used: %s", m->problem ? m->problem : "unknown labels"));
	a->condition = x_strdup("all namespaces that the labels describe are lost: look at them with ndctl "
				"read-labels first");
	add_label_commands(a, m, /* force= */ true);
}

/* A namespace over all of a region whose label areas are blank. Return: whether it is in the way. */
static bool advise_on_blank_namespace(
	struct memory_advice *a, const char *folder, const struct nd_namespace *ns)
{
	CLEANUP(free_charp) char *content = NULL;

	if (!ns->active) {
		set_state(a, MEMORY_BY_HAND,
			x_asprintf("is not used: %s is disabled, so that what it holds cannot be seen",
				ns->dev));
		add_command(a, x_asprintf("ndctl enable-namespace %s", ns->dev));
		return true;
	}
	if (!ns->bare || ns->mode != ND_RAW || !ns->block_path) {
		set_state(a, MEMORY_BY_HAND,
			x_asprintf("is not used: %s is a namespace of mode %s that is not the driver's",
				ns->dev, nd_mode_name(ns->mode)));
		a->condition = x_strdup("its content is lost");
		add_command(a, x_asprintf("ndctl destroy-namespace -f %s", ns->dev));
		add_command(a, x_strdup("pmem-ns-init create -initLabels"));
		return true;
	}
	enum obstacle obstacle = find_obstacle(folder, a->region, ns, &content);
	if (obstacle == OBSTACLE_NONE)
		return false;
	set_state(a, MEMORY_BY_HAND, x_asprintf("is not used: %s", content));
	if (obstacle != OBSTACLE_CONTENT)
		return true;
	a->condition = x_strdup("its content is lost");
	add_command(a, x_asprintf("blkdiscard -fz %s", ns->block_path));
	add_command(a, x_strdup("pmem-ns-init create -initLabels"));
	return true;
}

static void advise_on_blank(struct memory_advice *a, const char *folder)
{
	const struct nd_region *r = a->region;

	for (size_t i = 0; i < r->n_namespaces; i++)
		if (advise_on_blank_namespace(a, folder, &r->namespaces[i]))
			return;
	set_state(a, MEMORY_INIT_LABELS,
		x_strdup(
			"is not used: without labels the region cannot be divided into namespaces with names"));
	add_command(a, x_strdup("pmem-ns-init create -initLabels"));
}

/* A namespace in memory that can never have labels. Return: whether it is in the way. */
static bool advise_on_unlabelled_namespace(
	struct memory_advice *a, const char *folder, const struct nd_namespace *ns)
{
	CLEANUP(free_charp) char *content = NULL;
	enum obstacle obstacle = OBSTACLE_NONE;

	if (ns->active && !ns->bare && !pool_vg_may_claim(ns)) {
		set_state(a, MEMORY_BY_HAND,
			x_asprintf("is not used: %s is a namespace of mode %s that is not the driver's",
				ns->dev, nd_mode_name(ns->mode)));
		return true;
	}
	if (ns->active && ns->block_path)
		obstacle = find_obstacle(folder, a->region, ns, &content);
	/* a device of LVM without a group is what a killed conversion leaves; the conversion looks */
	if (obstacle == OBSTACLE_NONE || (!ns->bare && str_ends(content, " holds LVM2_member"))) {
		strv_add(&a->namespaces, ns->dev);
		return false;
	}
	set_state(a, MEMORY_BY_HAND, x_asprintf("is not used: %s", content));
	if (!ns->bare || obstacle == OBSTACLE_USE)
		return true;
	a->condition = x_strdup("its content is lost");
	add_command(a, x_asprintf("pmem-ns-init -force convert %s", ns->dev));
	return true;
}

static void advise_on_unlabelled(struct memory_advice *a, const char *folder)
{
	const struct nd_region *r = a->region;

	if (r->n_namespaces == 0) {
		set_state(a, MEMORY_NOTHING, x_strdup("is not used: the kernel shows no namespace over it"));
		return;
	}
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (advise_on_unlabelled_namespace(a, folder, &r->namespaces[i])) {
			strv_free(a->namespaces);
			a->namespaces = NULL;
			return;
		}
	set_state(a, MEMORY_CONVERT, x_strdup("is not used: it can only be converted as a whole"));
	add_command(a, x_strdup("pmem-ns-init create -unlabelled=convert"));
}

/* Raw namespaces beside pools are taken only when that is asked for. */
static void advise_on_labelled(struct memory_advice *a, const char *folder)
{
	const struct nd_region *r = a->region;
	CLEANUP(buf_done) struct buf names = BUF_INIT(LINE_MAX_BYTES);

	set_state(a, MEMORY_NOTHING,
		x_strdup(has_pool(r) ? "is used" : "is used for what pmem-ns-init create makes in it"));
	for (size_t i = 0; i < r->n_namespaces; i++) {
		const struct nd_namespace *ns = &r->namespaces[i];
		if (!ns->active || !ns->bare || !ns->block_path || nd_is_own(ns))
			continue;
		CLEANUP(free_charp) char *content = NULL;
		if (find_obstacle(folder, a->region, ns, &content) != OBSTACLE_NONE)
			continue;
		buf_addf(&names, "%s%s", names.len ? ", " : "", ns->dev);
		add_command(a, x_asprintf("pmem-ns-init convert %s", ns->dev));
	}
	if (a->commands)
		set_state(a, MEMORY_BY_HAND,
			x_asprintf("is used but for %s, raw and without content", buf_str(&names)));
}

static void advise_on_region(const char *folder, const struct nd_memory *m, struct memory_advice *a)
{
	if (advise_on_region_state(a))
		return;
	if (a->kind != ND_MEMORY_LABELLED && has_pool(a->region)) {
		set_state(a, MEMORY_NOTHING, x_strdup("is used as a whole"));
		return;
	}
	switch (a->kind) {
	case ND_MEMORY_LABELLED:
		advise_on_labelled(a, folder);
		break;
	case ND_MEMORY_BLANK:
		advise_on_blank(a, folder);
		break;
	case ND_MEMORY_ODD:
		advise_on_odd(a, m);
		break;
	case ND_MEMORY_NO_LABELS:
	case ND_MEMORY_LEGACY:
	case ND_MEMORY_VIRTIO:
	case ND_MEMORY_VOLATILE:
		advise_on_unlabelled(a, folder);
		break;
	}
}

static struct memory_advice *append(struct memory_advices *all)
{
	all->list = x_realloc(all->list, all->n + 1, sizeof(*all->list));
	all->list[all->n] = (struct memory_advice){0};
	return &all->list[all->n++];
}

/* A module that is part of no region: what it holds cannot be reached. */
static void advise_on_module(const struct dimm *module, struct memory_advice *a)
{
	a->name = x_strdup(module->name);
	a->what = x_strdup("an NVDIMM");
	set_state(a, MEMORY_BY_HAND, x_strdup("is not used: it is part of no region"));
	a->condition = x_strdup("the content of all NVDIMMs is lost");
	add_command(a, x_strdup("ipmctl create -goal PersistentMemoryType=AppDirect"));
	add_command(a, x_strdup("reboot"));
}

/* A device of CXL no part of which is allocated. The kernel forgets regions at a boot. */
static void advise_on_cxl(const struct cxl_device *device, struct memory_advice *a)
{
	char size[24];

	a->name = x_asprintf("%s (serial 0x%jx)", device->name, (uintmax_t)device->serial);
	a->what = x_asprintf(
		"a CXL memory device with %s of persistent memory", format_bytes(device->pmem_bytes, size));
	if (device->n_roots == 0) {
		set_state(a, MEMORY_BY_HAND,
			x_strdup(
				"is not used: it is disabled, or no root decoder for persistent memory leads to it"));
		add_command(a, x_asprintf("cxl enable-memdev %s", device->name));
		add_command(a, x_strdup("cxl list -M -D"));
		return;
	}
	set_state(a, MEMORY_BY_HAND, x_strdup("is not used: it is part of no region"));
	a->condition = x_strdup(
		"devices that were one region before need the same order, decoder and ways in `cxl create-region -m -t "
		"pmem`, or their content is not found; the command below refuses devices whose label areas are not empty");
	add_command(a, x_strdup("pmem-ns-init create -cxlRegions=create"));
}

static void advise_on_unreadable_cxl(const char *name, struct memory_advice *a)
{
	CLEANUP(free_charp) char *why = cxl_unreadable_why(name);

	a->name = x_strdup(name);
	a->what = x_strdup("a CXL memory device that cannot be read");
	set_state(a, MEMORY_BY_HAND, x_asprintf("is not used: %s", why));
	a->condition = x_strdup("in a container, mount the host's /dev; the command is one for the host");
	add_command(a, x_strdup("udevadm trigger --action=add --subsystem-match=cxl"));
}

static void advise_on_hidden(const struct hidden_memory *m, struct memory_advice *a)
{
	a->name = x_strdup(m->name);
	a->what = x_strdup(m->what);
	set_state(a, MEMORY_BY_HAND, x_strdup(m->state));
	add_command(a, x_strdup(m->command));
}

static void advise_on_devices(const struct memory_devices *d, struct memory_advices *all)
{
	for (size_t i = 0; d->hidden && i < d->hidden->n; i++)
		advise_on_hidden(&d->hidden->list[i], append(all));
	for (size_t i = 0; d->modules && i < d->modules->n; i++)
		if (!d->modules->list[i].regions && !d->modules->list[i].is_cxl)
			advise_on_module(&d->modules->list[i], append(all));
	for (size_t i = 0; d->cxl && i < d->cxl->n_devices; i++)
		if (!d->cxl->devices[i].used)
			advise_on_cxl(&d->cxl->devices[i], append(all));
	for (char **name = d->cxl ? d->cxl->unreadable : NULL; name && *name; name++)
		advise_on_unreadable_cxl(*name, append(all));
}

int memory_advise(struct nd *nd, const char *folder, const struct nd_inventory *inv,
	const struct memory_devices *devices, struct memory_advices *ret, struct error **err)
{
	CLEANUP(memory_advices_done) struct memory_advices all = {0};

	for (size_t i = 0; inv && i < inv->n_regions; i++) {
		CLEANUP(nd_memory_done) struct nd_memory m = {0};
		const struct nd_region *r = &inv->regions[i];

		if (nd_describe(nd, r->name, &m, err) < 0)
			return -1;
		struct memory_advice *a = append(&all);
		a->region = r;
		a->name = x_asprintf("%s on %s", r->name, r->bus);
		a->kind = m.kind;
		a->what = describe(&m);
		advise_on_region(folder, &m, a);
	}
	if (devices)
		advise_on_devices(devices, &all);
	*ret = all;
	all = (struct memory_advices){0};
	return 0;
}

void memory_advices_done(struct memory_advices *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct memory_advice *a = &all->list[i];
		free(a->name);
		free(a->what);
		free(a->state);
		free(a->condition);
		strv_free(a->commands);
		strv_free(a->namespaces);
	}
	free(all->list);
	*all = (struct memory_advices){0};
}

char *memory_advice_line(const struct memory_advice *a)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(LINE_MAX_BYTES);
	char size[24];

	buf_adds(&text, a->name);
	if (a->region)
		buf_addf(&text, ", %s", format_bytes(a->region->size_bytes, size));
	buf_addf(&text, ": %s; it %s", a->what, a->state);
	if (a->commands) {
		buf_addf(&text, "; %s%sto change this: ", a->condition ? a->condition : "",
			a->condition ? "; " : "");
		join(a->commands, " && ", &text);
	}
	return x_strdup(buf_str(&text));
}
