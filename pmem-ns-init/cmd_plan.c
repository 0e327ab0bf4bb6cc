/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/json.h"
#include "base/parse.h"
#include "commands.h"
#include "pmem/pool/pool_ns.h"

static void write_sizes(const struct pool_ns_plan *p, struct buf *out)
{
	char size[24];

	if (p->n_sizes == 0)
		buf_adds(out, "nothing to create");
	for (size_t i = 0; i < p->n_sizes; i++)
		buf_addf(out, "%s%s", i ? " + " : "create ", format_bytes(p->sizes_bytes[i], size));
}

static void write_text(const struct pool_ns_plan *p, struct buf *out)
{
	char budget[24];
	char own[24];
	char unit[24];

	buf_addf(out, "%s on %s: ", p->region->name, p->region->bus);
	if (p->skipped) {
		buf_addf(out, "skipped: %s\n", p->reason);
		return;
	}
	write_sizes(p, out);
	buf_addf(out, " (budget %s, own %s, unit %s)\n", format_bytes(p->budget_bytes, budget),
		format_bytes(p->own_bytes, own), format_bytes(p->unit_bytes, unit));
	if (p->reason)
		buf_addf(out, "  %s\n", p->reason);
}

static void write_json(const struct pool_ns_plan *p, struct json_writer *w)
{
	json_object(w);
	json_key_str(w, "bus", p->region->bus);
	json_key_str(w, "region", p->region->name);
	json_key_u64(w, "sizeBytes", p->region->size_bytes);
	json_key_bool(w, "skipped", p->skipped);
	json_key_u64(w, "unitBytes", p->unit_bytes);
	json_key_u64(w, "budgetBytes", p->budget_bytes);
	json_key_u64(w, "ownBytes", p->own_bytes);
	json_key_u64(w, "createBytes", p->create_bytes);
	json_key(w, "namespaces");
	json_array(w);
	for (size_t i = 0; i < p->n_sizes; i++)
		json_u64(w, p->sizes_bytes[i]);
	json_array_end(w);
	json_key_str(w, "reason", p->reason);
	json_object_end(w);
}

bool cmd_plan(const struct nd_inventory *inv, unsigned percent, bool json, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);
	bool complete = inv->n_regions > 0;

	if (json) {
		json_document(&w);
		json_key_u64(&w, "percent", percent);
		json_key(&w, "regions");
		json_array(&w);
	}
	for (size_t i = 0; i < inv->n_regions; i++) {
		CLEANUP(pool_ns_plan_done) struct pool_ns_plan p = {0};
		pool_ns_plan_region(&inv->regions[i], percent, &p);
		if (json)
			write_json(&p, &w);
		else
			write_text(&p, out);
		complete = complete && !(p.skipped && p.region->is_pmem);
	}
	if (json) {
		json_array_end(&w);
		json_object_end(&w);
		buf_addc(out, '\n');
	} else if (inv->n_regions == 0) {
		buf_adds(out, "no regions\n");
	}
	return complete;
}
