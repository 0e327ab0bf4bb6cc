/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <time.h>

#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "os/process.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_restore.h"
#include "pmem/pool/pool_vg.h"
#include "volume/state.h"

#define TIME_LEN (sizeof("YYYY-MM-DDTHH:MM:SSZ"))

/* The result of the command for a volume group. */
enum outcome { PLANNED, RESTORED, FAILED };

/* Borrows from @content. Volumes that are being made or erased need not have a device. */
static struct pool_restore_volume *gather_volumes(const struct state_content *content, size_t *ret_n)
{
	struct pool_restore_volume *volumes = x_calloc(content->n_records + 1, sizeof(*volumes));

	*ret_n = 0;
	for (size_t i = 0; i < content->n_records; i++) {
		const struct volume_record *r = content->records[i];
		if (r->phase == PHASE_READY)
			volumes[(*ret_n)++] =
				(struct pool_restore_volume){r->id, r->pool, r->identity, r->size_bytes};
	}
	return volumes;
}

static int load_state(const char *state_path, struct state_content *ret, struct error **err)
{
	CLEANUP(state_closep) struct state_store *store = NULL;

	if (state_open_read(state_path, &store, err) < 0 || state_load(store, ret, err) < 0)
		return err_wrap(err, "read which volumes there are");
	for (size_t i = 0; i < ret->n_problems; i++)
		if (ret->problems[i].kind == STATE_DAMAGED)
			log_warn("cannot check whether the saved metadata has this volume",
				F_STR("file", ret->problems[i].file),
				F_STR("reason", ret->problems[i].reason));
	return 0;
}

static const char *action(const struct pool_restore_group *g, enum outcome outcome)
{
	if (g->problem || outcome == FAILED)
		return "fail";
	if (g->n_steps == 0)
		return "nothing";
	if (outcome == RESTORED)
		return g->n_pvs > 0 ? "restored" : "activated";
	return g->n_pvs > 0 ? "restore" : "activate";
}

/* @out: "" when it is unknown */
static void format_time(uint64_t seconds, char out[static TIME_LEN])
{
	time_t at = (time_t)seconds;
	struct tm tm;

	out[0] = '\0';
	if (seconds > 0 && gmtime_r(&at, &tm))
		strftime(out, TIME_LEN, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void add_command(const struct pool_restore_step *s, struct buf *out)
{
	buf_adds(out, "lvm");
	for (char **word = s->argv; *word; word++)
		buf_addf(out, " %s", *word);
}

static void write_source(const struct pool_restore_group *g, struct buf *out)
{
	char when[TIME_LEN];

	if (!g->source)
		return;
	format_time(g->text.written_s, when);
	buf_addf(out, "  metadata: %s %s, version %ju%s%s, %zu volumes\n",
		g->from_copy ? "copy" : "metadata area of", g->source, (uintmax_t)g->text.seqno,
		*when ? ", written " : "", when, g->text.n_volumes);
}

static void write_text(const struct pool_restore_group *g, enum outcome outcome, struct buf *out)
{
	buf_addf(out, "%s: %s", g->name, action(g, outcome));
	if (g->problem)
		buf_addf(out, ": %s", g->problem);
	buf_addc(out, '\n');
	if (g->n_pvs == 0 && !g->problem && outcome == PLANNED && g->n_steps == 0)
		return;
	write_source(g, out);
	for (size_t i = 0; i < g->n_pvs; i++) {
		const struct pool_restore_pv *pv = &g->pvs[i];
		buf_addf(out, "  damaged: %s (%s), physical volume %s: %s; %zu volumes are active on it\n",
			pv->dev, pv->device, pv->pv_uuid, pv->damage, pv->n_users);
	}
	for (char **id = g->lost_volumes; id && *id; id++)
		buf_addf(out, "  not in the metadata: volume %s\n", *id);
	for (char **what = g->changed_volumes; what && *what; what++)
		buf_addf(out, "  older in the metadata: volume %s\n", *what);
	if (outcome == PLANNED && g->file && !g->problem)
		buf_addf(out, "  would write: %s, for LVM, from that area\n", g->file);
	for (size_t i = 0; outcome == PLANNED && i < g->n_steps; i++) {
		buf_adds(out, "  would run: ");
		add_command(&g->steps[i], out);
		buf_addc(out, '\n');
	}
	for (size_t i = 0; outcome == RESTORED && i < g->text.n_volumes; i++)
		buf_addf(out, "  is back: volume %s\n", g->text.volumes[i].name);
}

static void json_strv(struct json_writer *w, const char *key, char *const *v)
{
	json_key(w, key);
	json_array(w);
	for (; v && *v; v++)
		json_str(w, *v);
	json_array_end(w);
}

static void json_volumes(const struct pool_restore_group *g, struct json_writer *w)
{
	json_key(w, "volumes");
	json_array(w);
	for (size_t i = 0; i < g->text.n_volumes; i++)
		json_str(w, g->text.volumes[i].name);
	json_array_end(w);
}

static void json_damaged(const struct pool_restore_group *g, struct json_writer *w)
{
	json_key(w, "damaged");
	json_array(w);
	for (size_t i = 0; i < g->n_pvs; i++) {
		json_object(w);
		json_key_str(w, "namespace", g->pvs[i].dev);
		json_key_str(w, "device", g->pvs[i].device);
		json_key_str(w, "pvUUID", g->pvs[i].pv_uuid);
		json_key_str(w, "damage", g->pvs[i].damage);
		json_key_u64(w, "activeVolumes", g->pvs[i].n_users);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_commands(const struct pool_restore_group *g, struct json_writer *w)
{
	json_key(w, "commands");
	json_array(w);
	for (size_t i = 0; i < g->n_steps; i++) {
		CLEANUP(buf_done) struct buf command = BUF_INIT(64U << 10);
		add_command(&g->steps[i], &command);
		json_str(w, buf_str(&command));
	}
	json_array_end(w);
}

static void write_json(const struct pool_restore_group *g, enum outcome outcome, struct json_writer *w)
{
	char when[TIME_LEN];

	format_time(g->text.written_s, when);
	json_object(w);
	json_key_str(w, "group", g->name);
	json_key_str(w, "uuid", g->uuid);
	json_key_str(w, "action", action(g, outcome));
	json_key_str(w, "problem", g->problem);
	json_key_str(w, "source", g->source);
	json_key_bool(w, "fromCopy", g->from_copy);
	json_key_str(w, "writtenTo", g->file);
	json_key_u64(w, "version", g->text.seqno);
	json_key_str(w, "written", *when ? when : NULL);
	json_volumes(g, w);
	json_strv(w, "missingVolumes", g->lost_volumes);
	json_strv(w, "changedVolumes", g->changed_volumes);
	json_damaged(g, w);
	json_commands(g, w);
	json_object_end(w);
}

static void write_all(const struct pool_restore *r, const enum outcome *outcomes, bool json, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	for (size_t i = 0; !json && i < r->n_groups; i++)
		write_text(&r->groups[i], outcomes[i], out);
	if (!json && r->n_groups == 0)
		buf_adds(out, "nothing to do: no namespace of this host has a record of a volume group\n");
	if (!json)
		return;
	json_document(&w);
	json_key(&w, "groups");
	json_array(&w);
	for (size_t i = 0; i < r->n_groups; i++)
		write_json(&r->groups[i], outcomes[i], &w);
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}

static enum outcome apply(struct nd *nd, struct lvm *lvm, const char *folder, const struct view *v,
	const struct pool_restore_group *g)
{
	struct view after = {.inv = v->inv};
	CLEANUP(lvm_report_freep) struct lvm_report *report = NULL;
	CLEANUP(error_freep) struct error *err = NULL;

	if (!g->problem && g->n_steps == 0)
		return PLANNED;
	if (pool_restore_apply(lvm, nd, folder, g, &report, &err) < 0) {
		log_error("volume group not restored", F_STR("group", g->name), F_ERR(err));
		return FAILED;
	}
	after.report = report;
	view_save(lvm, folder, &after);
	log_info("restored volume group", F_STR("group", g->name), F_STR("metadata", g->source),
		F_U64("volumes", g->text.n_volumes));
	return RESTORED;
}

/* LVM has to see the damaged devices, too, which it shows in no group. */
static void admit_damaged(struct lvm *lvm, const struct view *v, const struct pool_restore *r)
{
	CLEANUP(strv_freep) char **paths = NULL;

	pool_vg_devices(v->inv, &paths);
	pool_restore_devices(r, &paths);
	lvm_set_devices(lvm, (const char *const *)paths, strv_len(paths));
}

static bool run_all(struct nd *nd, struct lvm *lvm, const struct view *v, const struct restore_options *o,
	const char *folder, const struct pool_restore *r, struct buf *out)
{
	enum outcome *outcomes = x_calloc(r->n_groups + 1, sizeof(*outcomes));
	bool complete = !r->unreadable;

	for (char **why = r->unreadable; why && *why; why++)
		log_error("a record cannot be read, so its group is not restored", F_STR("error", *why));
	if (!o->dry_run)
		admit_damaged(lvm, v, r);
	for (size_t i = 0; i < r->n_groups; i++) {
		if (!o->dry_run)
			outcomes[i] = apply(nd, lvm, folder, v, &r->groups[i]);
		complete = complete && !r->groups[i].problem && outcomes[i] != FAILED;
	}
	write_all(r, outcomes, o->json, out);
	free(outcomes);
	return complete;
}

int cmd_restore(struct nd *nd, struct lvm *lvm, const struct restore_options *o, struct buf *out,
	bool *ret_complete, struct error **err)
{
	CLEANUP(free_charp) char *folder = pool_backup_folder(o->state_path);
	CLEANUP(state_content_done) struct state_content content = {0};
	CLEANUP(pool_restore_done) struct pool_restore r = {0};
	CLEANUP(view_done) struct view v = {0};
	size_t n = 0;

	if (load_state(o->state_path, &content, err) < 0)
		return -1;
	if (!o->dry_run && pool_backup_open(o->state_path, lvm, err) < 0)
		return -1;
	if (view_read(nd, lvm, &v, err) < 0)
		return -1;
	struct pool_restore_volume *volumes = gather_volumes(&content, &n);
	const struct pool_restore_request request = {.folder = folder,
		.groups = o->groups,
		.without_volumes = o->force,
		.volumes = volumes,
		.n_volumes = n};
	int rc = pool_restore_plan(&request, v.inv, v.report, &r, err);
	free(volumes);
	if (rc < 0)
		return -1;
	*ret_complete = run_all(nd, lvm, &v, o, folder, &r, out);
	return 0;
}
