/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/pool/pool_restore.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/blockdev.h"
#include "os/file.h"
#include "os/fs.h"
#include "pmem/lvm/lvm_metadata_area.h"
#include "pmem/pool/pool_backup.h"

/* As new groups have them: pool_vg.c. */
#define AREA_ALIGN_BYTES (2ULL << 20)
#define READ_TRIES       3

/* A namespace that is in a group according to its record, and what is on it. */
struct member {
	const struct nd_namespace *ns;
	char *pv_uuid;
	struct lvm_label label;
	struct lvm_metadata_areas areas;
	uint64_t seqno;  /* newest in its sound areas; 0: none is sound */
	uint64_t oldest; /* likewise */
	bool shown;      /* LVM shows it in the group */
	size_t n_areas;  /* that its label names; without a label, both */
	bool sound[LVM_AREAS_MAX];
	bool all_sound;
};

struct draft {
	struct pool_restore_group g;
	const char *folder; /* borrowed */
	struct member *members;
	size_t n_members;
	bool named;
	bool writes_areas; /* in addition to what is written with a label */
};

static void draft_done(struct draft *d)
{
	for (size_t i = 0; i < d->n_members; i++)
		free(d->members[i].pv_uuid);
	free(d->members);
}

__attribute__((format(printf, 2, 3))) static void refuse(struct draft *d, const char *fmt, ...)
{
	va_list ap;

	if (d->g.problem)
		return;
	va_start(ap, fmt);
	d->g.problem = x_vasprintf(fmt, ap);
	va_end(ap);
}

/* --- what is on the devices */

/* The newer of what the draft has and @text, which is not kept otherwise. */
static void offer_text(
	struct draft *d, const struct buf *text, const char *source, bool from_copy, uint64_t *seqno)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(lvm_text_done) struct lvm_text t = {0};

	if (lvm_text_parse(buf_span(text), &t, &ignored) < 0 || !str_eq(t.group_uuid, d->g.uuid))
		return;
	*seqno = t.seqno;
	if (d->g.source && t.seqno <= d->g.text.seqno)
		return;
	lvm_text_done(&d->g.text);
	free(d->g.source);
	free(d->g.raw);
	d->g.raw = from_copy ? NULL : x_strdup(buf_str(text));
	d->g.text = t;
	t = (struct lvm_text){0};
	d->g.source = x_strdup(source);
	d->g.from_copy = from_copy;
}

/* Return: whether it is sound. */
static bool look_at_area(struct draft *d, struct member *m, uint64_t offset)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(LVM_TEXT_MAX_BYTES);
	CLEANUP(error_freep) struct error *why = NULL;
	uint64_t seqno = 0;
	bool sound = false;

	/* LVM may be writing there */
	for (unsigned i = 0; i < READ_TRIES && !sound && !why; i++)
		if (lvm_metadata_area_text(m->ns->block_path, offset, &text, &sound, &why) < 0)
			refuse(d, "%s", why->msg);
	if (!sound)
		return false;
	offer_text(d, &text, m->ns->block_path, /* from_copy= */ false, &seqno);
	if (seqno == 0)
		return false;
	if (seqno > m->seqno)
		m->seqno = seqno;
	if (m->oldest == 0 || seqno < m->oldest)
		m->oldest = seqno;
	return true;
}

static void look_at_areas(struct draft *d, struct member *m)
{
	uint64_t offsets[LVM_AREAS_MAX] = {LVM_AREA_FIRST_OFFSET, m->areas.second_offset_bytes};

	m->n_areas = LVM_AREAS_MAX;
	if (m->label.sound) {
		m->n_areas = m->label.n_areas;
		memcpy(offsets, m->label.area_offsets, sizeof(offsets));
	}
	m->all_sound = m->n_areas > 0;
	for (size_t i = 0; i < m->n_areas; i++) {
		m->sound[i] = offsets[i] > 0 && look_at_area(d, m, offsets[i]);
		m->all_sound = m->all_sound && m->sound[i];
	}
}

/* It can only be written with a label. */
static void look_at_copy(struct draft *d, const char *folder)
{
	CLEANUP(free_charp) char *path = pool_backup_newest(folder, d->g.uuid);
	CLEANUP(buf_done) struct buf text = BUF_INIT(LVM_TEXT_MAX_BYTES);
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t seqno = 0;

	if (path && file_read(AT_FDCWD, path, &text, &ignored) == 0)
		offer_text(d, &text, path, /* from_copy= */ true, &seqno);
}

/* --- which namespaces are in which group */

static struct draft *draft_of(struct draft **drafts, size_t *n, const struct pool_record *r)
{
	for (size_t i = 0; i < *n; i++)
		if (str_eq((*drafts)[i].g.uuid, r->group_uuid))
			return &(*drafts)[i];
	*drafts = x_realloc(*drafts, *n + 1, sizeof(**drafts));
	(*drafts)[*n] = (struct draft){
		.g = {.name = x_strdup(r->group), .uuid = x_strdup(r->group_uuid)},
	};
	return &(*drafts)[(*n)++];
}

/* LVM itself takes devices out of groups by emptying their first metadata area. */
static bool is_released(const struct member *m)
{
	return !m->shown && m->areas.first == LVM_AREA_EMPTY;
}

static void add_member(struct draft *d, const struct nd_namespace *ns, char *pv_uuid, const struct lvm_pv *pv)
{
	struct member m = {.ns = ns, .pv_uuid = pv_uuid};
	CLEANUP(error_freep) struct error *why = NULL;

	m.shown = pv && str_eq(pv->vg_uuid, d->g.uuid);
	if (lvm_label_read(ns->block_path, &m.label, &why) < 0 ||
		lvm_metadata_area_read(ns->block_path, &m.areas, &why) < 0)
		refuse(d, "%s cannot be examined: %s", ns->dev, why->msg);
	if (pv && *pv->vg_uuid && !m.shown)
		refuse(d, "%s (%s) is in volume group %s now", ns->dev, ns->block_path, pv->vg_name);
	d->members = x_realloc(d->members, d->n_members + 1, sizeof(*d->members));
	d->members[d->n_members++] = m;
}

/* A namespace that has a record of a group, and that LVM shows in another one, has moved there. */
static bool has_moved(const struct pool_record *r, const struct lvm_pv *pv)
{
	return pv && *pv->vg_uuid && !str_eq(pv->vg_uuid, r->group_uuid);
}

static bool is_wanted(const struct pool_restore_request *request, const char *group)
{
	return strv_len(request->groups) == 0 || strv_contains(request->groups, group);
}

static void gather(const struct pool_restore_request *request, const struct nd_region *region,
	const struct nd_namespace *ns, const struct lvm_report *report, struct draft **drafts, size_t *n,
	char ***unreadable)
{
	bool named = strv_len(request->groups) > 0;
	CLEANUP(pool_record_done) struct pool_record r = {0};
	CLEANUP(error_freep) struct error *why = NULL;

	if (!ns->active || !ns->block_path)
		return;
	if (pool_backup_find(request->folder, region, ns, &r, &why) < 0) {
		strv_add(unreadable, why->msg);
		return;
	}
	const struct lvm_pv *pv = lvm_report_pv(report, ns->block_path);
	/* a group whose UUID is not recorded has not been seen since it was made, and has no volumes */
	if (!r.group || !*r.group_uuid || !is_wanted(request, r.group) || (has_moved(&r, pv) && !named))
		return;
	struct draft *d = draft_of(drafts, n, &r);
	d->named = named;
	d->folder = request->folder;
	add_member(d, ns, TAKE_PTR(r.pv_uuid), pv);
}

/* --- what is to be done */

static const char *damage_of(const struct member *m)
{
	if (!m->label.sound)
		return m->seqno > 0 ? "the label is lost" : "label and metadata are lost";
	return m->seqno > 0 ? "a metadata area is damaged" : "the metadata is lost";
}

static bool is_ours(const struct member *m)
{
	return m->shown || str_eq(m->label.pv_uuid, m->pv_uuid);
}

static bool is_damaged(const struct member *m)
{
	return !is_released(m) && !(m->all_sound && is_ours(m));
}

static bool has_lost_its_label(const struct member *m)
{
	return is_damaged(m) && !m->shown;
}

static size_t add_pv(struct draft *d, const struct member *m)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	struct pool_restore_pv pv = {
		.dev = x_strdup(m->ns->dev),
		.uuid = x_strdup(m->ns->uuid),
		.device = x_strdup(m->ns->block_path),
		.pv_uuid = x_strdup(m->pv_uuid),
		.damage = damage_of(m),
	};

	if (blockdev_count_users(pv.device, &pv.n_users, &ignored) < 0)
		pv.n_users = 0;
	d->g.pvs = x_realloc(d->g.pvs, d->g.n_pvs + 1, sizeof(*d->g.pvs));
	d->g.pvs[d->g.n_pvs] = pv;
	return d->g.n_pvs++;
}

/* Refuses the group if the beginning of the device has content that must not be overwritten. */
static void check_content(struct draft *d, const struct member *m, bool in_use)
{
	CLEANUP(free_charp) char *type = NULL;
	CLEANUP(error_freep) struct error *why = NULL;

	if (m->label.sound && !is_ours(m))
		refuse(d,
			"%s (%s) has the label of another physical volume, %s, and not of %s, which it was in this "
			"group: whatever made that has used the namespace for something else",
			m->ns->dev, m->ns->block_path, m->label.pv_uuid, m->pv_uuid);
	if (fs_probe(m->ns->block_path, &type, &why) < 0)
		refuse(d, "%s (%s): %s", m->ns->dev, m->ns->block_path, why->msg);
	else if (*type && !str_eq(type, "LVM2_member"))
		refuse(d,
			"%s (%s) holds %s, which was written over the group; if that may be lost, remove it with "
			"\"wipefs -a%s %s\" and restore again",
			m->ns->dev, m->ns->block_path, type, in_use ? "f" : "", m->ns->block_path);
}

static bool device_size(const char *path, uint64_t *ret)
{
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);

	*ret = size < 0 ? 0 : (uint64_t)size;
	return size >= 0;
}

static const struct lvm_text_pv *check_text(struct draft *d, const struct member *m)
{
	const struct lvm_text_pv *pv = lvm_text_pv(&d->g.text, m->pv_uuid);
	uint64_t size = 0;

	if (!pv) {
		refuse(d,
			"the newest metadata of the group, in %s, does not have the physical volume of %s: %s",
			d->g.source, m->ns->dev, m->pv_uuid);
		return NULL;
	}
	if (!device_size(m->ns->block_path, &size) || pv->device_bytes > size || pv->data_end_bytes > size)
		refuse(d, "%s has %ju bytes, and the metadata in %s is of a physical volume of %ju",
			m->ns->block_path, (uintmax_t)size, d->g.source, (uintmax_t)pv->device_bytes);
	return pv;
}

__attribute__((format(printf, 2, 3))) static void add_word(char ***argv, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CLEANUP(free_charp) char *word = x_vasprintf(fmt, ap);
	va_end(ap);
	strv_add(argv, word);
}

static void add_setting(char ***argv, const char *key, uint64_t value)
{
	strv_add(argv, "--settings");
	add_word(argv, "%s=%ju", key, (uintmax_t)value);
}

/*
 * A second area may only be where no extent is: what looks like the header of one can be of a group that was
 * there before. pvck looks for one 1 MiB before the end only (_check_for_mda2() of LVM's tools/pvck.c); ours
 * is at a multiple of the data alignment. One whose header is lost, too, is put where LVM would make it.
 */
static bool add_second_area(char ***argv, const struct member *m, const struct lvm_text_pv *pv)
{
	uint64_t offset = m->areas.second_offset_bytes;
	uint64_t end = pv->device_bytes;

	if (offset == 0 && end > 2 * AREA_ALIGN_BYTES)
		offset = (end & ~(AREA_ALIGN_BYTES - 1)) - AREA_ALIGN_BYTES;
	else
		end = offset + m->areas.second_bytes;
	if (offset == 0 || offset < pv->data_end_bytes)
		return false;
	add_setting(argv, "mda2_offset", offset);
	add_setting(argv, "mda2_size", end - offset);
	return true;
}

static void add_step(struct draft *d, struct pool_restore_step step)
{
	d->g.steps = x_realloc(d->g.steps, d->g.n_steps + 1, sizeof(*d->g.steps));
	d->g.steps[d->g.n_steps++] = step;
}

/* Without a file, pvck writes the label only; with one it writes the metadata, too. Return: how many areas
 * the label then names. */
static size_t plan_label(struct draft *d, const struct member *m, const struct lvm_text_pv *pv, size_t index)
{
	char **argv = NULL;

	strv_add(&argv, "pvck");
	strv_add(&argv, "--yes");
	if (d->g.from_copy) {
		strv_add(&argv, "--repair");
		strv_add(&argv, "--file");
		strv_add(&argv, d->g.source);
	} else {
		strv_add(&argv, "--repairtype");
		strv_add(&argv, "pv_header");
		add_setting(&argv, "device_size", pv->device_bytes);
		add_setting(&argv, "data_offset", pv->data_offset_bytes);
	}
	strv_add(&argv, "--settings");
	add_word(&argv, "pv_uuid=%s", m->pv_uuid);
	size_t n = add_second_area(&argv, m, pv) ? 2 : 1;
	strv_add(&argv, m->ns->block_path);
	add_step(d, (struct pool_restore_step){.argv = argv, .pv = index});
	return n;
}

/*
 * "vgck --updatemetadata" does not write to an area whose header is lost (vg_write_commit_bad_mdas() of LVM's
 * lib/metadata/metadata.c). pvck writes to one area only, so that a change which LVM makes meanwhile stays.
 */
static void plan_area(struct draft *d, const struct member *m, unsigned number, size_t index)
{
	char **argv = NULL;

	if (!d->g.from_copy && !d->g.file)
		d->g.file = pool_backup_older_path(d->folder, d->g.uuid, d->g.text.seqno);
	strv_add(&argv, "pvck");
	strv_add(&argv, "--yes");
	strv_add(&argv, "--repairtype");
	strv_add(&argv, "metadata");
	strv_add(&argv, "--file");
	strv_add(&argv, d->g.from_copy ? d->g.source : d->g.file);
	add_setting(&argv, "mda_num", number);
	strv_add(&argv, m->ns->block_path);
	add_step(d, (struct pool_restore_step){.argv = argv, .pv = index});
	d->writes_areas = true;
}

static void plan_member(struct draft *d, const struct member *m)
{
	const struct lvm_text_pv *pv = NULL;
	size_t n_areas = m->n_areas;

	if (!is_damaged(m))
		return;
	size_t index = add_pv(d, m);
	if (!m->shown)
		check_content(d, m, d->g.pvs[index].n_users > 0);
	if (d->g.source)
		pv = check_text(d, m);
	if (!pv)
		return;
	if (!m->shown)
		n_areas = plan_label(d, m, pv, index);
	if (!m->shown && d->g.from_copy)
		return;
	for (unsigned i = 0; i < n_areas; i++)
		if (!m->sound[i])
			plan_area(d, m, i + 1, index);
}

/* Whether LVM itself has to bring areas to one version: older ones, or because it may have changed the group
 * meanwhile. */
static bool needs_update(const struct draft *d)
{
	for (size_t i = 0; i < d->n_members; i++) {
		const struct member *m = &d->members[i];

		/* pvck has written both areas of those */
		if (is_released(m) || (d->g.from_copy && has_lost_its_label(m)))
			continue;
		if (m->oldest < d->g.text.seqno)
			return true;
	}
	return d->writes_areas;
}

static bool has_inactive(const struct lvm_report *report, const char *group_uuid)
{
	for (size_t i = 0; i < report->n_lvs; i++)
		if (str_eq(report->lvs[i].vg_uuid, group_uuid) && !report->lvs[i].active)
			return true;
	return false;
}

static void plan_group_step(struct draft *d, const char *command, const char *option, bool activates)
{
	char **argv = NULL;

	strv_add(&argv, command);
	strv_add(&argv, option);
	strv_add(&argv, d->g.text.group ? d->g.text.group : d->g.name);
	add_step(d, (struct pool_restore_step){.argv = argv, .pv = SIZE_MAX, .activates = activates});
}

/* A volume that is larger than recorded has lost nothing. */
static void compare_volume(
	struct draft *d, const struct pool_restore_volume *v, const struct lvm_text_volume *lv)
{
	CLEANUP(free_charp) char *what = NULL;

	if (v->tag && !strv_contains(lv->tags, v->tag))
		what = x_asprintf("%s has the tag %s, which it does not have in the metadata", v->id, v->tag);
	else if (lv->size_bytes < v->size_bytes)
		what = x_asprintf("%s has %ju bytes, and %ju in the metadata", v->id,
			(uintmax_t)v->size_bytes, (uintmax_t)lv->size_bytes);
	if (what)
		strv_add(&d->g.changed_volumes, what);
}

static void compare_volumes(struct draft *d, const struct pool_restore_request *request)
{
	for (size_t i = 0; i < request->n_volumes; i++) {
		const struct pool_restore_volume *v = &request->volumes[i];
		const struct lvm_text_volume *lv = lvm_text_volume(&d->g.text, v->id);

		if (!str_eq(v->pool, d->g.uuid))
			continue;
		if (lv)
			compare_volume(d, v, lv);
		else
			strv_add(&d->g.lost_volumes, v->id);
	}
}

static bool any_member(const struct draft *d, bool (*is)(const struct member *))
{
	for (size_t i = 0; i < d->n_members; i++)
		if (is(&d->members[i]))
			return true;
	return false;
}

static bool all_released(const struct draft *d)
{
	for (size_t i = 0; i < d->n_members; i++)
		if (!is_released(&d->members[i]))
			return false;
	return true;
}

static void plan_damaged(struct draft *d, const struct pool_restore_request *request)
{
	if (any_member(d, has_lost_its_label))
		look_at_copy(d, request->folder);
	for (size_t i = 0; i < d->n_members; i++)
		plan_member(d, &d->members[i]);
	if (!d->g.source) {
		refuse(d,
			"neither a copy of its metadata in %s/copies nor a metadata area of its devices can be "
			"read; see pvck(8), metadata_search",
			request->folder);
		return;
	}
	compare_volumes(d, request);
	if (d->g.lost_volumes && !request->without_volumes)
		refuse(d,
			"the newest metadata, in %s, is older than volumes that the state folder knows: their "
			"data would become free space; look for newer metadata (pvck --dump metadata_search), "
			"or give them up with -force",
			d->g.source);
	if (d->g.changed_volumes && !request->without_volumes)
		refuse(d,
			"the newest metadata, in %s, is of a time before volumes were grown, or made again, "
			"according to the state folder: data of theirs would become free space; look for newer "
			"metadata (pvck --dump metadata_search), or give that up with -force",
			d->g.source);
	if (needs_update(d))
		plan_group_step(d, "vgck", "--updatemetadata", /* activates= */ false);
}

static void plan_group(
	struct draft *d, const struct pool_restore_request *request, const struct lvm_report *report)
{
	for (size_t i = 0; i < d->n_members; i++)
		look_at_areas(d, &d->members[i]);
	bool damaged = any_member(d, is_damaged);
	if (all_released(d))
		refuse(d, "LVM itself has taken its namespaces out of it (vgremove, vgreduce, pvcreate)");
	else if (damaged)
		plan_damaged(d, request);
	if (damaged || has_inactive(report, d->g.uuid))
		plan_group_step(d, "vgchange", LVM_ACTIVATE, /* activates= */ true);
}

static void step_done(struct pool_restore_step *s)
{
	strv_free(s->argv);
}

static void drop_steps(struct pool_restore_group *g)
{
	for (size_t i = 0; i < g->n_steps; i++)
		step_done(&g->steps[i]);
	free(g->steps);
	g->steps = NULL;
	g->n_steps = 0;
}

static void group_done(struct pool_restore_group *g)
{
	drop_steps(g);
	for (size_t i = 0; i < g->n_pvs; i++) {
		free(g->pvs[i].dev);
		free(g->pvs[i].uuid);
		free(g->pvs[i].device);
		free(g->pvs[i].pv_uuid);
	}
	free(g->pvs);
	free(g->name);
	free(g->uuid);
	free(g->problem);
	free(g->source);
	free(g->raw);
	free(g->file);
	strv_free(g->lost_volumes);
	strv_free(g->changed_volumes);
	lvm_text_done(&g->text);
}

void pool_restore_done(struct pool_restore *r)
{
	for (size_t i = 0; i < r->n_groups; i++)
		group_done(&r->groups[i]);
	free(r->groups);
	strv_free(r->unreadable);
	*r = (struct pool_restore){0};
}

static void take_draft(struct draft *d, struct pool_restore *r)
{
	/* a record is never removed, so that groups which were removed still have one */
	if (all_released(d) && !d->named) {
		group_done(&d->g);
		return;
	}
	if (d->g.problem)
		drop_steps(&d->g);
	r->groups = x_realloc(r->groups, r->n_groups + 1, sizeof(*r->groups));
	r->groups[r->n_groups++] = d->g;
}

static int check_names(
	const struct pool_restore_request *request, const struct pool_restore *r, struct error **err)
{
	for (char *const *name = request->groups; name && *name; name++) {
		bool found = false;

		for (size_t i = 0; i < r->n_groups; i++)
			found |= str_eq(r->groups[i].name, *name);
		if (!found)
			return err_set(err, ERR_NOT_FOUND,
				"no namespace of this host has been in volume group %s according to the records in "
				"%s/namespaces: give the state folder of the driver with -statePath, and the "
				"name as doctor shows it",
				*name, request->folder);
	}
	return 0;
}

int pool_restore_plan(const struct pool_restore_request *request, const struct nd_inventory *inv,
	const struct lvm_report *report, struct pool_restore *ret, struct error **err)
{
	CLEANUP(pool_restore_done) struct pool_restore r = {0};
	struct draft *drafts = NULL;
	size_t n = 0;

	for (size_t i = 0; i < inv->n_regions; i++)
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++)
			gather(request, &inv->regions[i], &inv->regions[i].namespaces[k], report, &drafts, &n,
				&r.unreadable);
	for (size_t i = 0; i < n; i++) {
		plan_group(&drafts[i], request, report);
		take_draft(&drafts[i], &r);
		draft_done(&drafts[i]);
	}
	free(drafts);
	if (check_names(request, &r, err) < 0)
		return -1;
	*ret = r;
	r = (struct pool_restore){0};
	return 0;
}

void pool_restore_devices(const struct pool_restore *r, char ***paths)
{
	for (size_t i = 0; i < r->n_groups; i++)
		for (size_t k = 0; k < r->groups[i].n_pvs; k++)
			if (!strv_contains(*paths, r->groups[i].pvs[k].device))
				strv_add(paths, r->groups[i].pvs[k].device);
}
