/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "inspect/inventory.h"
#include "os/table.h"
#include "pmem/usage.h"

static const char help[] =
	"usage: pmem-csi-driver volumes [flags]\n"
	"\n"
	"Shows the volumes of this node: size, phase, device mode, pool, device, staging path, number of\n"
	"target paths, usage, how much of it is erased, the claim or pod for which it was created, and DAX:\n"
	"no, or synchronous where the kernel accepts MAP_SYNC, fsync where it refuses it, yes where that is\n"
	"not known; empty while its file system is not mounted.\n"
	"Phases are ready, creating and erasing; snapshot: a ready snapshot, which no pod uses; missing: the\n"
	"device is not seen because its pool is absent or incomplete; gone: the pool is complete and does\n"
	"not have the device; damaged: the state file cannot be read; device-without-state: there is a\n"
	"device, but no state file.\n"
	"\n"
	"Exit status: 0 done, 2 wrong usage, 3 the node cannot be examined.\n";

static const char *param(const struct volume_record *r, const char *key, const char *otherwise)
{
	const char *value = strmap_get(&r->parameters, key);

	return str_empty(value) ? otherwise : value;
}

static void write_row(const struct check_view *v, const struct volume_record *r, struct table *t)
{
	CLEANUP(free_charp) char *claim = check_claim(v, r->id);
	CLEANUP(free_charp) char *progress = NULL;
	struct inventory_volume row;

	inventory_volume(v, r, &row);
	if (r->phase == PHASE_ERASING && r->size_bytes > 0)
		progress = x_asprintf("%ju %%", (uintmax_t)(r->erased_bytes * 100 / r->size_bytes));
	table_cell(t, r->id);
	table_cell(t, param(r, "name", ""));
	table_bytes(t, r->size_bytes);
	table_cell(t, inventory_phase(r, row.presence));
	table_cell(t, param(r, "deviceMode", "unknown"));
	table_cell(t, row.pool ? row.pool->name : r->pool);
	table_cell(t, row.device ? row.device->path : NULL);
	table_cell(t, row.staged ? r->staging_path : NULL);
	table_number(t, row.n_published);
	table_cell(t, param(r, "usage", volume_usage_name(USAGE_APP_DIRECT)));
	table_cell(t, progress);
	table_cell(t, claim);
	table_cell(t, row.dax);
}

/* Writes the row of a volume or device without a record: columns for which only the record has a value stay
 * empty. */
static void write_unrecorded(const struct check_view *v, const char *id, const char *phase,
	const struct device *d, struct table *t)
{
	const struct device_pool *pool = d ? device_list_pool(v->devices, d->pool) : NULL;

	table_cell(t, id);
	table_cell(t, NULL);
	if (d)
		table_bytes(t, d->size_bytes);
	else
		table_cell(t, NULL);
	table_cell(t, phase);
	table_cell(t, NULL);
	table_cell(t, pool ? pool->name : NULL);
	table_cell(t, d ? d->path : NULL);
	for (unsigned filled = 7; filled < t->n_columns; filled++)
		table_cell(t, NULL);
}

/* Writes an object with the members that every volume has, so that programs can read them without looking at
 * the phase first. */
static void json_unrecorded(const struct check_view *v, const char *id, const char *phase,
	const struct device *d, struct json_writer *w)
{
	const struct device_pool *pool = d ? device_list_pool(v->devices, d->pool) : NULL;

	json_object(w);
	json_key_str(w, "id", id);
	json_key_str(w, "name", "");
	json_key_u64(w, "sizeBytes", d ? d->size_bytes : 0);
	json_key_str(w, "phase", phase);
	json_key_str(w, "deviceMode", "");
	json_key_str(w, "usage", "");
	json_key_str(w, "dax", "");
	json_key_str(w, "pool", d ? d->pool : "");
	json_key_str(w, "poolName", pool ? pool->name : "");
	json_key_str(w, "device", d && d->path ? d->path : "");
	json_key_bool(w, "active", d && d->active);
	json_key_str(w, "stagedAt", "");
	json_key_u64(w, "published", 0);
	json_key(w, "targets");
	json_array(w);
	json_array_end(w);
	json_object_end(w);
}

/* Volumes whose state file is damaged, then devices that have none: to @t, or to @w. */
static void write_all_unrecorded(const struct check_view *v, struct table *t, struct json_writer *w)
{
	for (size_t i = 0; i < v->state.n_problems; i++) {
		const char *id = v->state.problems[i].id;

		if (!check_is_damaged(v, i))
			continue;
		if (t)
			write_unrecorded(v, id, "damaged", device_list_find(v->devices, id), t);
		else
			json_unrecorded(v, id, "damaged", device_list_find(v->devices, id), w);
	}
	for (size_t i = 0; i < v->devices->n_devices; i++) {
		const struct device *d = &v->devices->devices[i];

		if (!check_is_stranger(v, d))
			continue;
		if (t)
			write_unrecorded(v, d->id, "device-without-state", d, t);
		else
			json_unrecorded(v, d->id, "device-without-state", d, w);
	}
}

static void write_text(const struct check_view *v, struct buf *out)
{
	static const char *const heading[] = {"ID", "NAME", "SIZE", "PHASE", "MODE", "POOL", "DEVICE",
		"STAGED AT", "PUBLISHED", "USAGE", "ERASED", "CLAIM", "DAX"};
	CLEANUP(table_done) struct table t = {.n_columns = ARRAY_SIZE(heading)};

	for (size_t i = 0; i < ARRAY_SIZE(heading); i++)
		table_cell(&t, heading[i]);
	for (size_t i = 0; i < v->state.n_records; i++)
		write_row(v, v->state.records[i], &t);
	write_all_unrecorded(v, &t, /* w= */ NULL);
	if (t.n_cells > t.n_columns)
		table_write(&t, out);
	else
		buf_adds(out, "no volumes\n");
}

static void json_volume(const struct check_view *v, const struct volume_record *r, struct json_writer *w)
{
	struct inventory_volume row;

	inventory_volume(v, r, &row);
	json_object(w);
	json_key_str(w, "id", r->id);
	json_key_str(w, "name", param(r, "name", ""));
	json_key_u64(w, "sizeBytes", r->size_bytes);
	json_key_str(w, "phase", inventory_phase(r, row.presence));
	json_key_str(w, "deviceMode", param(r, "deviceMode", ""));
	json_key_str(w, "usage", param(r, "usage", volume_usage_name(USAGE_APP_DIRECT)));
	json_key_str(w, "dax", row.dax ? row.dax : "");
	json_key_str(w, "pool", row.pool ? row.pool->uuid : r->pool ? r->pool : "");
	json_key_str(w, "poolName", row.pool ? row.pool->name : "");
	json_key_str(w, "device", row.device && row.device->path ? row.device->path : "");
	json_key_bool(w, "active", row.device && row.device->active);
	json_key_str(w, "stagedAt", row.staged ? r->staging_path : "");
	json_key_u64(w, "published", row.n_published);
	json_key(w, "targets");
	json_array(w);
	for (size_t i = 0; r->targets && r->targets[i]; i++)
		json_str(w, r->targets[i]);
	json_array_end(w);
	if (r->phase == PHASE_ERASING)
		json_key_u64(w, "erasedBytes", r->erased_bytes);
	claim_write_json(&r->claim, w);
	json_object_end(w);
}

static void write_json(const struct check_view *v, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key(&w, "volumes");
	json_array(&w);
	for (size_t i = 0; i < v->state.n_records; i++)
		json_volume(v, v->state.records[i], &w);
	write_all_unrecorded(v, /* t= */ NULL, &w);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}

static void write_volumes(const struct check_view *v, const void *user, bool json, struct buf *out)
{
	(void)user;
	if (json)
		write_json(v, out);
	else
		write_text(v, out);
}

int cmd_volumes(int argc, char **argv)
{
	static const struct command_view view = {.name = "volumes", .help = help, .write = write_volumes};

	return command_show(&view, argc, argv, /* user= */ NULL);
}
