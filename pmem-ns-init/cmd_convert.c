/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>

#include "base/json/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "commands.h"
#include "os/process.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_convert.h"
#include "pmem/pool/pool_vg.h"

/* The namespaces, and what is to be done with each. */
struct view {
	struct nd_inventory *inv;
	struct convert_plan plan;
};

static void view_done(struct view *v)
{
	convert_plan_done(&v->plan);
	nd_inventory_free(v->inv);
	*v = (struct view){0};
}

static int view_read(
	struct nd *nd, struct lvm *lvm, const struct convert_options *o, struct view *ret, struct error **err)
{
	CLEANUP(view_done) struct view v = {0};

	if (nd_list(nd, &v.inv, err) < 0 || pool_vg_claim(lvm, v.inv, err) < 0)
		return -1;
	if (pool_convert_plan(lvm, o->folder, v.inv, o->force, o->only, &v.plan, err) < 0)
		return -1;
	view_done(ret);
	*ret = v;
	v = (struct view){0};
	return 0;
}

static const char *describe(const struct convert_item *item)
{
	switch (item->action) {
	case CONVERT_REFUSE:
		return "refused";
	case CONVERT_ENABLE:
		return "to be enabled";
	case CONVERT_MAP:
		return item->region->has_labels ? "convert to fsdax, called " POOL_NAMESPACE_NAME
						: "convert to fsdax; it keeps no name";
	case CONVERT_GROUP:
		return "is fsdax; put it into a volume group";
	case CONVERT_LEAVE:
		break;
	}
	return "left alone";
}

static bool is_lossy(const struct convert_item *item)
{
	return item->action == CONVERT_MAP || item->action == CONVERT_GROUP;
}

static void write_text(const struct convert_plan *plan, struct buf *out)
{
	char size[24];

	for (size_t i = 0; i < plan->n; i++) {
		const struct convert_item *item = &plan->items[i];
		buf_addf(out, "%s in %s on %s, %s: %s", item->ns->dev, item->region->name, item->region->bus,
			format_bytes(item->ns->raw_bytes, size), describe(item));
		if (item->reason)
			buf_addf(out, is_lossy(item) ? " (LOST: %s)" : " (%s)", item->reason);
		buf_addc(out, '\n');
	}
	if (plan->n == 0)
		buf_adds(out, "nothing to convert\n");
}

static void write_json(const struct convert_plan *plan, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key(&w, "namespaces");
	json_array(&w);
	for (size_t i = 0; i < plan->n; i++) {
		const struct convert_item *item = &plan->items[i];
		json_object(&w);
		json_key_str(&w, "namespace", item->ns->dev);
		json_key_str(&w, "bus", item->region->bus);
		json_key_str(&w, "region", item->region->name);
		json_key_u64(&w, "sizeBytes", item->ns->raw_bytes);
		json_key_str(&w, "device", item->ns->block_path);
		json_key_str(&w, "action", convert_action_name(item->action));
		json_key_str(&w, "reason", item->reason);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}

/* Return: whether one was. */
static bool enable_inactive(struct nd *nd, const struct convert_plan *plan, bool *ret_complete)
{
	bool any = false;

	for (size_t i = 0; i < plan->n; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		if (plan->items[i].action != CONVERT_ENABLE)
			continue;
		any = true;
		if (nd_enable_device(nd, plan->items[i].ns->dev, &err) == 0) {
			log_info("enabled namespace", F_STR("namespace", plan->items[i].ns->dev));
			continue;
		}
		log_warn("namespace not enabled", F_ERR(err));
		*ret_complete = false;
	}
	return any;
}

/* Return: whether the namespace is to be grouped. */
static bool convert_one(
	struct nd *nd, const struct convert_options *o, const struct convert_item *item, bool *ret_complete)
{
	const struct nd_look look = {memory_look, o->folder, item->region};
	CLEANUP(nd_namespace_freep) struct nd_namespace *ns = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (item->action == CONVERT_GROUP)
		return true;
	if (item->action != CONVERT_MAP) {
		*ret_complete = *ret_complete && item->action == CONVERT_LEAVE;
		return false;
	}
	if (nd_convert(nd, item->ns, o->force ? NULL : &look, &ns, &err) < 0) {
		log_warn("namespace not converted", F_STR("region", item->region->name), F_ERR(err));
		*ret_complete = false;
		return false;
	}
	log_info("converted namespace", F_STR("region", item->region->name), F_STR("namespace", ns->dev),
		F_STR("name", ns->name), F_STR("device", ns->block_path),
		F_U64("usableBytes", ns->usable_bytes));
	return true;
}

static bool group_region(
	struct nd *nd, struct lvm *lvm, const char *folder, const struct nd_region *r, char *const *devs)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *group = NULL;

	if (pool_convert_group(nd, lvm, folder, r->bus, r->name, devs, &group, &err) < 0) {
		log_warn("volume group not created", F_STR("region", r->name), F_ERR(err));
		return false;
	}
	if (group)
		log_info("put namespaces into volume group", F_STR("region", r->name), F_STR("group", group));
	return true;
}

static bool has_pool(const struct nd_region *r)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (nd_is_pool(&r->namespaces[i]))
			return true;
	return false;
}

/* Adds those namespaces whose names the user has given and that an earlier run of the same command has
 * converted: they are ours already, and their earlier content is lost. */
static void add_insisted(const struct convert_options *o, const struct nd_region *r, char ***devs)
{
	for (size_t i = 0; o->force && o->only && i < r->n_namespaces; i++) {
		const struct nd_namespace *ns = &r->namespaces[i];
		if (nd_is_pool(ns) && strv_contains(o->only, ns->dev))
			strv_add(devs, ns->dev);
	}
}

/* The group is made before the next region is touched, so that as little as possible has no owner at any
 * time; pool namespaces of before may lack theirs because the command was killed. */
static bool carry_out(struct nd *nd, struct lvm *lvm, const struct convert_options *o, const struct view *v)
{
	bool complete = true;

	for (size_t k = 0; k < v->inv->n_regions && !process_stop_signal(); k++) {
		const struct nd_region *r = &v->inv->regions[k];
		CLEANUP(strv_freep) char **devs = NULL;
		for (size_t i = 0; i < v->plan.n && !process_stop_signal(); i++)
			if (v->plan.items[i].region == r && convert_one(nd, o, &v->plan.items[i], &complete))
				strv_add(&devs, v->plan.items[i].ns->dev);
		add_insisted(o, r, &devs);
		if ((devs || has_pool(r)) && !group_region(nd, lvm, o->folder, r, devs))
			complete = false;
	}
	return complete;
}

static bool has_any_pool(const struct nd_inventory *inv)
{
	for (size_t i = 0; i < inv->n_regions; i++)
		if (has_pool(&inv->regions[i]))
			return true;
	return false;
}

static int show(const struct convert_options *o, const struct convert_plan *plan, struct error **err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);

	if (o->json)
		write_json(plan, &out);
	else
		write_text(plan, &out);
	if (buf_check(&out, "output", err) < 0)
		return -1;
	return process_print(buf_str(&out), err);
}

static void note_lack_of_records(const char *folder)
{
	struct stat st;

	if (stat(folder, &st) < 0 && errno == ENOENT)
		log_info("there are no records of former volume groups: "
			 "if a driver has run on this node, -statePath has to be the driver's",
			F_STR("folder", folder));
}

int cmd_convert(struct nd *nd, struct lvm *lvm, const struct convert_options *o, bool *ret_complete,
	struct error **err)
{
	CLEANUP(view_done) struct view v = {0};
	bool complete = true;

	note_lack_of_records(o->folder);
	if (view_read(nd, lvm, o, &v, err) < 0)
		return -1;
	if (!o->dry_run && enable_inactive(nd, &v.plan, &complete) && view_read(nd, lvm, o, &v, err) < 0)
		return -1;
	if (show(o, &v.plan, err) < 0)
		return -1;
	if (!o->dry_run && (v.plan.n > 0 || has_any_pool(v.inv))) {
		if (pool_backup_open(o->state_path, lvm, err) < 0)
			return err_wrap(
				err, "nothing is converted, since volume groups could not be recorded");
		complete = carry_out(nd, lvm, o, &v) && complete;
	}
	if (v.plan.n == 0 && !has_any_pool(v.inv)) {
		log_warn("there is no namespace to convert, and none that belongs to the driver");
		complete = false;
	}
	*ret_complete = complete;
	return 0;
}
