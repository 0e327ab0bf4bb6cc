/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "commands.h"
#include "pmem/pool/pool_vg.h"

static bool has_pool(const struct nd_region *r)
{
	for (size_t i = 0; i < r->n_namespaces; i++)
		if (nd_is_pool(&r->namespaces[i]))
			return true;
	return false;
}

static const char *action(const struct pool_vg_plan *p)
{
	if (p->problem)
		return "fail";
	if (!p->add_paths)
		return "nothing";
	return p->create ? "create" : "extend";
}

static void write_text(const struct pool_vg_plan *p, struct buf *out)
{
	buf_addf(out, "%s on %s: ", p->region->name, p->region->bus);
	if (p->problem) {
		buf_addf(out, "cannot be done: %s\n", p->problem);
		return;
	}
	if (!p->add_paths) {
		buf_addf(out, "nothing to do, volume group %s is complete\n", p->vg_name);
		return;
	}
	buf_addf(out, "%s volume group %s with", action(p), p->vg_name);
	for (char **path = p->add_paths; *path; path++)
		buf_addf(out, " %s", *path);
	buf_addc(out, '\n');
}

static void write_json(const struct pool_vg_plan *p, struct json_writer *w)
{
	json_object(w);
	json_key_str(w, "bus", p->region->bus);
	json_key_str(w, "region", p->region->name);
	json_key_str(w, "action", action(p));
	json_key_str(w, "group", p->vg_name);
	json_key(w, "addDevices");
	json_array(w);
	for (char **path = p->add_paths; path && *path; path++)
		json_str(w, *path);
	json_array_end(w);
	json_key_str(w, "problem", p->problem);
	json_object_end(w);
}

bool cmd_plan(const struct view *v, const char *folder, bool json, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	bool possible = true;
	size_t n = 0;

	if (json) {
		json_document(&w);
		json_key(&w, "regions");
		json_array(&w);
	}
	for (size_t i = 0; i < v->inv->n_regions; i++) {
		CLEANUP(pool_vg_plan_done) struct pool_vg_plan p = {0};
		if (!has_pool(&v->inv->regions[i]))
			continue;
		pool_vg_plan_region(&v->inv->regions[i], v->report, &p);
		pool_vg_examine(folder, /* but= */ NULL, &p);
		if (json)
			write_json(&p, &w);
		else
			write_text(&p, out);
		possible = possible && !p.problem;
		n++;
	}
	if (json) {
		json_array_end(&w);
		json_object_end(&w);
		buf_addc(out, '\n');
	} else if (n == 0) {
		buf_adds(out, "no region has a pool namespace\n");
	}
	return possible && n > 0;
}
