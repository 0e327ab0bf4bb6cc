/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of several volumes that show all of them at the same moment.
 *
 * A group has no record of its own: its snapshots name it, and say how many they are. All stay in phase
 * CREATING until every one is filled and recorded. The first that becomes READY decides: before that a crash
 * or a failure undoes all, and after that the others become READY, too.
 */
#include <stdlib.h>
#include <string.h>

#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "volume/id.h"
#include "volume/params.h"
#include "volume/volumes_private.h"

void group_info_free(struct group_info *g)
{
	if (!g)
		return;
	free(g->id);
	for (size_t i = 0; i < g->n; i++)
		snapshot_info_free(g->snapshots[i]);
	free(g->snapshots);
	free(g);
}

/* The records of the snapshots of a group. */
struct members {
	struct volume_record **list;
	size_t n;
};

static void members_done(struct members *m)
{
	for (size_t i = 0; i < m->n; i++)
		volume_record_free(m->list[i]);
	free(m->list);
}

static void find_members(struct volumes *v, const char *group, struct members *ret)
{
	pthread_mutex_lock(&v->shared.mutex);
	const struct records_view view = records_view(v->records);
	for (size_t i = 0; i < view.n; i++) {
		if (!view.list[i]->group || !str_eq(view.list[i]->group, group))
			continue;
		ret->list = x_realloc(ret->list, ret->n + 1, sizeof(struct volume_record *));
		ret->list[ret->n++] = volume_record_dup(view.list[i]);
	}
	pthread_mutex_unlock(&v->shared.mutex);
}

static size_t count_in_phase(const struct members *m, enum volume_phase phase)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		n += m->list[i]->phase == phase;
	return n;
}

/* A single unfinished snapshot makes the group unfinished, because none becomes ready before all are
 * finished. */
int volumes_group_completion(struct volumes *v, const char *id, enum copy_completion *ret, struct error **err)
{
	CLEANUP(members_done) struct members m = {0};

	find_members(v, id, &m);
	bool whole = m.n > 0 && m.n == m.list[0]->group_size;
	*ret = whole || count_in_phase(&m, PHASE_READY) > 0 ? COPY_FINISHED : COPY_UNKNOWN;
	if (count_in_phase(&m, PHASE_READY) > 0)
		return 0;
	for (size_t i = 0; i < m.n && *ret != COPY_UNFINISHED; i++) {
		enum copy_completion one = COPY_UNFINISHED;

		if (m.list[i]->phase == PHASE_CREATING &&
			volumes_copy_completion(v, m.list[i], &one, err) < 0)
			return -1;
		if (one != COPY_FINISHED)
			*ret = one;
	}
	return 0;
}

static struct group_info *make_info(struct volumes *v, const char *id, const struct members *m)
{
	struct group_info *g = x_calloc(1, sizeof(*g));

	g->id = x_strdup(id);
	g->complete = m->n > 0 && count_in_phase(m, PHASE_READY) == m->list[0]->group_size;
	g->snapshots = x_calloc(m->n, sizeof(struct snapshot_info *));
	for (size_t i = 0; i < m->n; i++) {
		if (m->list[i]->phase == PHASE_READY)
			g->snapshots[g->n++] = volumes_snapshot_info(v, m->list[i]);
	}
	return g;
}

/* A snapshot of the group that is being made. */
struct member {
	const char *source;
	char name[VOLUME_NAME_MAX + 1];
	char id[VOLUME_ID_MAX + 1];
	struct volume_lock *lock;
	struct creation *creation;
};

struct group {
	struct volumes *v;
	const struct group_request *request;
	const char *id;
	struct member *list;
	size_t n;
	struct concurrency_limit *copying;
};

static void group_done(struct group *g)
{
	for (size_t i = 0; i < g->n; i++) {
		volumes_close_creation(g->list[i].creation);
		volume_unlock(g->list[i].lock);
	}
	free(g->list);
	concurrency_limit_leave(g->copying);
}

static int begin_member(struct group *g, struct member *m, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *source = records_find(g->v->records, m->source);
	CLEANUP(strmap_done) struct strmap parameters = {0};
	const struct snapshot_request q = {.name = m->name,
		.source = m->source,
		.made_by_controller = g->request->made_by_controller,
		.parameters = g->request->parameters};
	struct volume_request made = volumes_snapshot_request(source, &q, &parameters);

	made.group = g->id;
	made.group_size = g->n;
	return volumes_begin_creation(g->v, m->id, &made, &m->creation, err);
}

static int fill(struct group *g, struct error **err)
{
	struct copy_request *copies = x_calloc(g->n, sizeof(*copies));

	for (size_t i = 0; i < g->n; i++)
		copies[i] = volumes_creation_copy(g->list[i].creation);
	int rc = volumes_fill_copies(g->v, copies, g->n, err);
	free(copies);
	return rc;
}

static int make_all(struct group *g, struct error **err)
{
	for (size_t i = 0; i < g->n; i++) {
		if (begin_member(g, &g->list[i], err) < 0)
			return err_wrap(err, "snapshot of volume %s", g->list[i].source);
		STEP_POINT("group-member-made");
	}
	if (fill(g, err) < 0)
		return -1;
	STEP_POINT("group-filled");
	for (size_t i = 0; i < g->n; i++) {
		if (volumes_record_creation(g->v, g->list[i].creation, err) < 0)
			return -1;
		STEP_POINT("group-member-recorded");
	}
	return volumes_finish_creation(g->v, g->list[0].creation, err);
}

/* From here on there is no way back: a retry, or the next refresh, continues. */
static int finish_others(struct group *g, struct error **err)
{
	for (size_t i = 1; i < g->n; i++) {
		STEP_POINT("group-member-ready");
		if (volumes_finish_creation(g->v, g->list[i].creation, err) < 0) {
			err_recode(err, ERR_UNAVAILABLE);
			return err_wrap(
				err, "group snapshot %s is complete, but not recorded as such yet", g->id);
		}
	}
	return 0;
}

/* Locks are released first: erasing takes them. If the first one cannot be undone, it may be ready on the
 * disk: then the others are to become ready at the next start. */
static void undo(struct group *g, struct error **err)
{
	for (size_t i = 0; i < g->n; i++) {
		struct member *m = &g->list[i];

		if (m->creation && !volumes_undo_creation(g->v, m->creation, err) && i == 0)
			return;
		volumes_close_creation(TAKE_PTR(m->creation));
		volume_unlock(TAKE_PTR(m->lock));
		volumes_erase_given_up_copy(g->v, m->id);
	}
}

/* Refuses a record that has the ID or the name of a snapshot of the group, and does not belong to the group.
 * A snapshot is such a stranger if its state file was damaged and replaced by one that does not name its
 * group. */
static int refuse_stranger(struct group *g, const struct member *m, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *by_id = records_find(g->v->records, m->id);
	CLEANUP(volume_record_freep)
	struct volume_record *by_name = records_find_name(g->v->records, m->name);
	const struct volume_record *r = by_id ? by_id : by_name;

	if (!r)
		return 0;
	if (r->phase == PHASE_ERASING)
		return err_set(err, ERR_ABORTED, "the former snapshot %s is still being erased", r->id);
	return err_set(err, ERR_PRECONDITION,
		"snapshot %s has the name of the one that would be taken of volume %s, and is in no group: "
		"delete it",
		r->id, m->source);
}

static int lock_members(struct group *g, struct error **err)
{
	for (size_t i = 0; i < g->n; i++) {
		struct member *m = &g->list[i];

		if (volume_lock(g->v->locks, m->id, /* wait_ms= */ 0, &m->lock, err) < 0 ||
			refuse_stranger(g, m, err) < 0)
			return -1;
	}
	return volumes_enter_cloning(g->v, g->id, &g->copying, err);
}

static int create_new(struct group *g, struct error **err)
{
	if (lock_members(g, err) < 0)
		return -1;
	if (make_all(g, err) < 0) {
		undo(g, err);
		return err_wrap(err, "create group snapshot %s", g->id);
	}
	return finish_others(g, err);
}

static int settle_member(struct volumes *v, const char *id, struct error **err)
{
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;

	if (volume_lock(v->locks, id, /* wait_ms= */ 0, &lock, err) < 0)
		return -1;
	r = records_find(v->records, id);
	if (!r || r->phase != PHASE_CREATING)
		return 0;
	return volumes_settle_creation(v, r, err);
}

/* Finishes or rolls back the snapshots that an earlier call has left in phase CREATING. */
static int settle_members(struct volumes *v, const struct members *m, struct error **err)
{
	for (size_t i = 0; i < m->n; i++) {
		if (m->list[i]->phase != PHASE_CREATING)
			continue;
		if (settle_member(v, m->list[i]->id, err) < 0)
			return err_wrap(
				err, "snapshot %s of the group is only partly created", m->list[i]->id);
	}
	/* not before all are decided, by each other's records */
	for (size_t i = 0; i < m->n; i++) {
		if (m->list[i]->phase == PHASE_CREATING)
			volumes_erase_given_up_copy(v, m->list[i]->id);
	}
	return 0;
}

/* Return: the record of the snapshot of @source; NULL: the group has no such snapshot. */
static const struct volume_record *find_of(const struct members *m, const char *source)
{
	for (size_t i = 0; i < m->n; i++) {
		if (str_eq(m->list[i]->source, source))
			return m->list[i];
	}
	return NULL;
}

/* Whether the group that exists is the one that is asked for. */
static int require_existing(const struct group *g, const struct members *m, struct error **err)
{
	size_t n = count_in_phase(m, PHASE_READY);

	if (n < m->n)
		return err_set(err, ERR_ABORTED, "the former group snapshot %s is still being erased", g->id);
	if (n != m->list[0]->group_size)
		return err_set(err, ERR_PRECONDITION,
			"group snapshot %s has %zu snapshots left of %ju: delete it", g->id, n,
			(uintmax_t)m->list[0]->group_size);
	for (size_t i = 0; i < g->n; i++) {
		CLEANUP(device_freep) struct device *d = NULL;
		const struct volume_record *r = find_of(m, g->list[i].source);

		if (!r || n != g->n)
			return err_set(
				err, ERR_EXISTS, "group snapshot %s exists, and is of other volumes", g->id);
		if (device_view_require_content(g->v->device_view, r, &d, err) < 0)
			return -1;
	}
	return 0;
}

static int make_locked(struct group *g, struct group_info **ret, struct error **err)
{
	CLEANUP(members_done) struct members before = {0};
	CLEANUP(members_done) struct members after = {0};
	CLEANUP(members_done) struct members made = {0};

	find_members(g->v, g->id, &before);
	if (settle_members(g->v, &before, err) < 0)
		return -1;
	find_members(g->v, g->id, &after);
	if (after.n > 0 && require_existing(g, &after, err) < 0)
		return -1;
	if (after.n == 0 && create_new(g, err) < 0)
		return -1;
	find_members(g->v, g->id, &made);
	CLEANUP(group_info_freep) struct group_info *info = make_info(g->v, g->id, &made);
	if (!info->complete)
		return err_set(
			err, ERR_ABORTED, "a snapshot of group snapshot %s was deleted meanwhile", g->id);
	*ret = TAKE_PTR(info);
	return 0;
}

static int order_members(const void *a, const void *b)
{
	return strcmp(((const struct member *)a)->source, ((const struct member *)b)->source);
}

/* In one order, so that two calls for the same volumes cannot wait for each other in a circle. */
static int list_members(struct group *g, struct error **err)
{
	const struct group_request *q = g->request;
	size_t n = strv_len(q->sources);

	if (n == 0 || n > VOLUME_GROUP_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"a group snapshot is of 1 to %d volumes, and not of %zu", VOLUME_GROUP_MAX, n);
	g->list = x_calloc(n, sizeof(*g->list));
	for (size_t i = 0; i < n; i++) {
		struct member *m = &g->list[g->n++];

		m->source = q->sources[i];
		if (volume_id_names_other_node(m->source, g->v->node_id))
			return err_set(err, ERR_PRECONDITION,
				"volume %s is on another node: a group snapshot is of volumes on one node",
				m->source);
		volume_group_member_name(q->name, m->source, m->name);
		volume_id_mint(m->name, g->v->node_id, m->id);
	}
	qsort(g->list, n, sizeof(*g->list), order_members);
	for (size_t i = 1; i < n; i++) {
		if (str_eq(g->list[i].source, g->list[i - 1].source))
			return err_set(
				err, ERR_INVALID_ARGUMENT, "volume %s is listed twice", g->list[i].source);
	}
	return 0;
}

int volumes_create_group(
	struct volumes *v, const struct group_request *q, struct group_info **ret, struct error **err)
{
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(params_done) struct volume_params params = {0};
	char id[VOLUME_ID_MAX + 1];
	CLEANUP(group_done) struct group g = {.v = v, .request = q, .id = id};

	if (volumes_require_ready(v, err) < 0 || volume_name_check(q->name, err) < 0 ||
		params_parse(PARAMS_SNAPSHOT, q->parameters, &params, err) < 0 || list_members(&g, err) < 0)
		return -1;
	volume_group_id(q->name, v->node_id, id);
	if (volume_lock(v->locks, id, /* wait_ms= */ 0, &lock, err) < 0)
		return -1;
	return make_locked(&g, ret, err);
}

int volumes_get_group(struct volumes *v, const char *id, char *const *snapshots, struct group_info **ret,
	struct error **err)
{
	CLEANUP(members_done) struct members m = {0};
	CLEANUP(group_info_freep) struct group_info *g = NULL;

	find_members(v, id, &m);
	g = make_info(v, id, &m);
	if (g->n == 0)
		return err_set(err, ERR_NOT_FOUND, "group snapshot %s does not exist", id);
	for (size_t i = 0; snapshots && snapshots[i]; i++) {
		bool found = false;

		for (size_t j = 0; j < g->n && !found; j++)
			found = str_eq(g->snapshots[j]->id, snapshots[i]);
		if (found)
			continue;
		return g->complete
			       ? err_set(err, ERR_INVALID_ARGUMENT, "snapshot %s is not in group snapshot %s",
					 snapshots[i], id)
			       : err_set(err, ERR_INVALID_ARGUMENT,
					 "snapshot %s is not in group snapshot %s, of whose %ju snapshots %zu are "
					 "there",
					 snapshots[i], id, (uintmax_t)m.list[0]->group_size, g->n);
	}
	*ret = TAKE_PTR(g);
	return 0;
}

/* A snapshot whose state file was damaged and replaced does not know its group. */
static int check_listed(struct volumes *v, const char *group, const char *snapshot, struct error **err)
{
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(v->records, snapshot);

	if (!r || (r->snapshot && (r->group ? str_eq(r->group, group) : r->adopted)))
		return 0;
	return err_set(
		err, ERR_INVALID_ARGUMENT, "%s is no snapshot of the group snapshot %s", snapshot, group);
}

int volumes_delete_group(struct volumes *v, const char *id, char *const *snapshots, struct error **err)
{
	CLEANUP(volume_unlockp) struct volume_lock *lock = NULL;
	CLEANUP(members_done) struct members m = {0};

	if (volumes_require_ready(v, err) < 0)
		return -1;
	for (size_t i = 0; snapshots && snapshots[i]; i++) {
		if (check_listed(v, id, snapshots[i], err) < 0)
			return -1;
	}
	if (volume_lock(v->locks, id, /* wait_ms= */ 0, &lock, err) < 0)
		return -1;
	find_members(v, id, &m);
	for (size_t i = 0; i < m.n; i++) {
		if (volumes_delete_snapshot(v, m.list[i]->id, err) < 0)
			return -1;
	}
	for (size_t i = 0; snapshots && snapshots[i]; i++) {
		if (volumes_delete_snapshot(v, snapshots[i], err) < 0)
			return -1;
	}
	return 0;
}
