/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/volume_status.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "controller/volume_key.h"
#include "volume/id.h"

/* Copies by what they mean for the volume. */
struct tally {
	size_t n; /* all of them */
	size_t n_ready;
	size_t n_creating;
	size_t n_erasing;
	size_t n_missing;
	size_t n_damaged;
	size_t n_unreachable;
	size_t n_out; /* of those: on nodes that are out of service */
	size_t n_lost;
};

/* The copy whose health the condition of the volume describes, and its node. Borrowed. */
struct ailing {
	const struct node *node;
	const struct volume_health *health; /* NULL: nothing is wrong with any */
};

struct summary {
	const char *phase;
	struct pmem_verdict ready;
};

bool volume_status_is_copy(const struct pmem_volume *record, const struct volume_report *report)
{
	struct volume_key key;

	if (record->handle && str_eq(report->id, record->handle))
		return true;
	if (record->volume_name && str_eq(report->name, record->volume_name))
		return true;
	key = volume_key_of_handle(report->id);
	return strncmp(record->meta.name, key.hex, PMEM_VOLUME_KEY_LEN) == 0;
}

/* Nothing but the key is known of a damaged volume that was reported and not given a handle yet. */
static size_t find_by_key(
	const struct pmem_volume *record, const struct node_table *nodes, struct node_hit **ret)
{
	size_t n = 0;

	for (size_t i = 0; i < strv_len(record->nodes); i++) {
		const struct node *node = node_table_get(nodes, record->nodes[i]);
		const struct volume_report *v;
		size_t at = 0;

		while (node && (v = node_next_volume(node, &at)) != NULL) {
			if (!volume_status_is_copy(record, v))
				continue;
			*ret = x_realloc(*ret, n + 1, sizeof(**ret));
			(*ret)[n++] = (struct node_hit){node, v};
		}
	}
	return n;
}

/* @by_handle: the hit has the handle of the volume, and not only its name */
static bool is_believed(const struct pmem_volume *record, const struct node_hit *hit, bool by_handle)
{
	return record->origin || (by_handle && volume_id_has_node(hit->volume->id)) ||
	       pmem_volume_has_node(record, hit->node->report.node_id);
}

static size_t drop_unbelieved(
	const struct pmem_volume *record, bool by_handle, struct node_hit *hits, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_believed(record, &hits[i], by_handle))
			hits[kept++] = hits[i];
	}
	return kept;
}

size_t volume_status_holders(const struct pmem_volume *record, const struct node_table *nodes,
	const char *handle, struct node_hit **ret)
{
	size_t n = node_table_find_volume(nodes, handle, ret);
	bool is_of_handle = record && (!record->handle || str_eq(record->handle, handle));

	return is_of_handle ? drop_unbelieved(record, /* by_handle= */ true, *ret, n) : n;
}

size_t volume_status_find(
	const struct pmem_volume *record, const struct node_table *nodes, struct node_hit **ret)
{
	*ret = NULL;
	/* damaged copies are known by their handle only, and unfinished ones by their name */
	if (record->handle)
		return volume_status_holders(record, nodes, record->handle, ret);
	if (record->volume_name) {
		size_t n = node_table_find_name(nodes, record->volume_name, ret);

		return drop_unbelieved(record, /* by_handle= */ false, *ret, n);
	}
	return find_by_key(record, nodes, ret);
}

static bool is_out_of_service(const struct volume_view *view, const char *node_id)
{
	return cluster_nodes_out_of_service(view->cluster, node_id);
}

/* Whether @node_id is lost, or is still so. */
static bool is_lost(const struct volume_view *view, const struct pmem_volume *record, const char *node_id)
{
	const struct node *node = node_table_get(view->nodes, node_id);
	enum node_fate fate = FATE_UNKNOWN;

	if ((node && node->live) ||
		(cluster_nodes_ready(view->cluster) && cluster_nodes_have(view->cluster, node_id)))
		return false;
	if (view->judge)
		fate = view->judge(view->user, node_id);
	return fate == FATE_UNKNOWN ? pmem_volume_is_lost(record, node_id) : fate == FATE_LOST;
}

/* Counts a copy on a node that is not live, out of service or unknown: only the record and the Node object
 * tell its state. Return: phase of the copy in the status. */
static const char *count_absent(struct tally *t, const struct volume_view *view,
	const struct pmem_volume *record, const char *node_id)
{
	t->n++;
	if (is_lost(view, record, node_id)) {
		t->n_lost++;
		return PMEM_VOLUME_LOST;
	}
	t->n_unreachable++;
	t->n_out += is_out_of_service(view, node_id);
	return "Unreachable";
}

static const char *count_copy(struct tally *t, const struct volume_view *view,
	const struct pmem_volume *record, const struct node_hit *hit)
{
	const char *node_id = hit->node->report.node_id;

	if (!hit->node->live || is_out_of_service(view, node_id))
		return count_absent(t, view, record, node_id);
	t->n++;
	switch (hit->volume->phase) {
	case PHASE_CREATING:
		t->n_creating++;
		return "Creating";
	case PHASE_READY:
		t->n_ready++;
		return "Ready";
	case PHASE_ERASING:
		t->n_erasing++;
		return "Erasing";
	case PHASE_MISSING:
		t->n_missing++;
		return "Missing";
	case PHASE_DAMAGED:
		t->n_damaged++;
		return "Damaged";
	case PHASE_LATER:
		break;
	}
	return "Unknown";
}

/* Whether such a node has a copy is not known before it reports. */
static bool is_unknown(const struct node_table *nodes, const char *node_id)
{
	const struct node *node = node_table_get(nodes, node_id);

	return !node || !node->live || !node->report.has_inventory;
}

static bool has_copy(const struct pmem_volume *v, const char *node_id)
{
	for (size_t i = 0; i < v->n_copies; i++) {
		if (str_eq(v->copies[i].node, node_id))
			return true;
	}
	return false;
}

static struct summary summarize(const struct pmem_volume *v, const struct tally *t)
{
	if (t->n_lost > 0 && t->n_lost == t->n)
		return (struct summary){PMEM_VOLUME_LOST,
			{"False", "NodeLost",
				"No node that may have the volume is in the cluster any more. If one returns, its "
				"copy is shown again. Deleting the volume succeeds and erases nothing."}};
	if (v->deleting && t->n_erasing > 0 && t->n_erasing == t->n)
		return (struct summary){"Erasing",
			{"False", "Erasing", "The volume was deleted, and its data is being overwritten."}};
	if (v->deleting)
		return (struct summary){"Deleting",
			{"False", "Deleting",
				"Not all nodes have confirmed that they have no copy of the volume."}};
	if (!v->handle)
		return (struct summary){"Creating",
			{"False", "Creating", "CreateVolume has not been answered with success."}};
	if (t->n_damaged > 0)
		return (struct summary){"Damaged",
			{"False", "StateFileDamaged", "A node cannot read the state file of the volume."}};
	if (t->n_missing > 0)
		return (struct summary){"Missing",
			{"False", "DeviceMissing", "A node does not see the device of the volume."}};
	if (t->n_ready > 0 && v->retained)
		return (struct summary){"Retained", {"False", "NodeReturned", ""}};
	if (t->n_ready > 0)
		return (struct summary){
			"Ready", {"True", "Ready",
					 v->snapshot ? "Volumes can be restored from the snapshot."
						     : "The volume can be used."}};
	if (t->n_out > 0)
		return (struct summary){"Unreachable",
			{"Unknown", "NodeOutOfService",
				"A node that has the volume has the taint node.kubernetes.io/out-of-service."}};
	if (t->n_unreachable > 0)
		return (struct summary){
			"Unreachable", {"Unknown", "NodeUnreachable",
					       "No node that has the volume reports to the controller."}};
	return (struct summary){"Missing", {"False", "NoCopy", "No node reports a copy of the volume."}};
}

static void take_report(struct pmem_volume *v, const struct volume_report *r)
{
	if (!v->handle && v->origin)
		v->handle = x_strdup(r->id);
	if (!v->claim && r->claim)
		v->claim = x_strdup(r->claim);
}

/* The size that the volume has on all nodes which report it: of a cache volume that grows, the copies differ
 * for a while. Without any, what the record says stays. */
static void set_size(struct pmem_volume *v, const struct node_hit *hits, size_t n)
{
	uint64_t size_bytes = 0;

	for (size_t i = 0; i < n; i++) {
		const struct volume_report *r = hits[i].volume;
		bool counts = r->phase != PHASE_ERASING && r->phase != PHASE_CREATING && r->size_bytes > 0;

		if (counts && (size_bytes == 0 || r->size_bytes < size_bytes))
			size_bytes = r->size_bytes;
	}
	if (size_bytes > 0)
		v->capacity_bytes = size_bytes;
}

/* The report in which the copy was seen first after it had been made. It stays in the record, which would
 * otherwise be written after each report. A reply of the node is in no report; a larger number is of a run of
 * the driver before its clock was set back. */
static uint64_t find_report(const struct pmem_volume *record, const struct node_hit *hit)
{
	const struct node_report *report = &hit->node->report;

	if (hit->volume->phase == PHASE_CREATING)
		return 0;
	for (size_t i = 0; i < record->n_copies; i++) {
		const struct pmem_volume_copy *c = &record->copies[i];

		if (c->report > 0 && c->report <= report->number && str_eq(c->node, report->node_id) &&
			!str_eq(c->phase, "Erasing"))
			return c->report;
	}
	return node_hit_is_noted(hit) ? 0 : report->number;
}

/* Whether another volume of that node is shown: the definition of the object has one copy per node. A copy
 * that is being erased is shown only if the node has no other one: it may be left over from an earlier volume
 * of that name. @hits: those of a node stand together */
static bool is_shadowed(const struct node_hit *hits, size_t n, size_t i)
{
	bool erasing = hits[i].volume->phase == PHASE_ERASING;
	size_t first = i;

	while (first > 0 && hits[first - 1].node == hits[i].node)
		first--;
	for (size_t j = first; j < n && hits[j].node == hits[i].node; j++) {
		bool other_erasing = hits[j].volume->phase == PHASE_ERASING;

		if (j != i && (erasing == other_erasing ? j < i : erasing))
			return true;
	}
	return false;
}

/* Copies that are known from the status alone: their nodes have not registered. */
static void show_former(struct pmem_volume *v, const struct pmem_volume *record,
	const struct volume_view *view, struct tally *t)
{
	for (size_t i = 0; i < record->n_copies; i++) {
		const struct pmem_volume_copy *c = &record->copies[i];
		const struct node *node = c->node ? node_table_get(view->nodes, c->node) : NULL;

		if (!c->node || (node && node->report.has_inventory) || has_copy(v, c->node))
			continue;
		pmem_volume_add_copy(
			v, c->node, count_absent(t, view, record, c->node), c->size_bytes, c->report);
	}
}

/* That of the copy with the worst status counts, since a volume has one condition. */
static void note_health(struct ailing *a, const struct volume_view *view, const struct node_hit *hit)
{
	const struct health_status *s = health_worst(&hit->volume->health);

	if (!s || !hit->node->live || hit->volume->phase != PHASE_READY ||
		is_out_of_service(view, hit->node->report.node_id))
		return;
	if (!a->health || s->severity > health_worst(a->health)->severity)
		*a = (struct ailing){hit->node, &hit->volume->health};
}

/* The last progress of a node that does not report any more says nothing. */
static struct volume_filling filling_of(const struct node_hit *hit)
{
	bool is_filling = hit->node->live && hit->volume->phase == PHASE_CREATING;

	return is_filling ? hit->volume->filling : (struct volume_filling){0};
}

static void show_filling(struct pmem_volume *v, const struct node_hit *hit)
{
	struct volume_filling f = filling_of(hit);

	pmem_volume_show_filling(v, hit->node->report.node_id, f.done_bytes, f.total_bytes);
}

/* How it is mounted is known while its node reports. */
static void show_dax(struct pmem_volume *v, const struct node_hit *hit)
{
	const char *node_id = hit->node->report.node_id;

	if (hit->node->live)
		pmem_volume_show_dax(v, node_id, volume_dax_name(hit->volume->dax), hit->volume->lacks_sync);
}

static void show_copies(struct pmem_volume *v, const struct pmem_volume *record,
	const struct volume_view *view, struct tally *t, struct ailing *a)
{
	struct node_hit *hits;
	size_t n = volume_status_find(v, view->nodes, &hits);

	for (size_t i = 0; i < n; i++) {
		if (is_shadowed(hits, n, i))
			continue;
		pmem_volume_add_copy(v, hits[i].node->report.node_id, count_copy(t, view, record, &hits[i]),
			hits[i].volume->size_bytes, find_report(record, &hits[i]));
		show_filling(v, &hits[i]);
		show_dax(v, &hits[i]);
		take_report(v, hits[i].volume);
		note_health(a, view, &hits[i]);
	}
	set_size(v, hits, n);
	free(hits);
	show_former(v, record, view, t);
	for (size_t i = 0; i < strv_len(v->nodes); i++) {
		const char *node_id = v->nodes[i];

		if (!has_copy(v, node_id) && is_unknown(view->nodes, node_id))
			pmem_volume_add_copy(v, node_id, count_absent(t, view, record, node_id),
				/* size_bytes= */ 0, /* report= */ 0);
	}
}

/* Explains to the user how to erase or to keep a volume that was deleted while its node was lost. Return:
 * caller frees. */
static char *explain_return(const struct pmem_volume *v)
{
	if (v->snapshot)
		return x_asprintf(
			"The snapshot was deleted while its node was lost, and the node has returned with the data. "
			"To erase it, run in a pod of the controller: csi-client delete-snapshot %s. To use it, create "
			"a VolumeSnapshotContent with this snapshotHandle.",
			v->handle);
	return x_asprintf(
		"The volume was deleted while its node was lost, and the node has returned with the data. To erase "
		"it, run in a pod of the controller: csi-client delete %s. To use it, create a PersistentVolume "
		"with this volumeHandle.",
		v->handle);
}

/* Whether something is wrong with the content of the volume or the access to it. The text is @ret_message,
 * freed by the caller. */
static struct pmem_verdict judge_health(const struct tally *t, const struct ailing *a, char **ret_message)
{
	CLEANUP(free_charp) char *text = a->health ? health_text(a->health) : NULL;

	if (text) {
		*ret_message = x_asprintf("Node %s: %s.", a->node->report.node_id, text);
		return (struct pmem_verdict){"False", health_worst(a->health)->reason, *ret_message};
	}
	if (t->n_damaged > 0)
		return (struct pmem_verdict){
			"False", HEALTH_STATE_DAMAGED, "A node cannot read the state file of the volume."};
	if (t->n_missing > 0)
		return (struct pmem_verdict){
			"False", HEALTH_DEVICE_MISSING, "A node does not see the device of the volume."};
	if (t->n_ready > 0)
		return (struct pmem_verdict){"True", "NoError", "No error is known."};
	return (struct pmem_verdict){
		"Unknown", "NotReported", "No node that has the volume reports how it is."};
}

static void set_conditions(struct pmem_volume *v, const struct pmem_volume *record, const struct tally *t,
	const struct ailing *a, const struct pmem_verdict *ready)
{
	CLEANUP(free_charp) char *text = NULL;
	struct pmem_verdict healthy = judge_health(t, a, &text);

	pmem_condition_set(&v->conditions, &record->conditions, "Ready", ready);
	/* of a volume that is not made yet, or is deleted, there is nothing to say */
	if (v->handle && !v->deleting)
		pmem_condition_set(&v->conditions, &record->conditions, "Healthy", &healthy);
}

struct pmem_volume *volume_status_new(const struct pmem_volume *record, const struct volume_view *view)
{
	struct pmem_volume *v = pmem_volume_dup(record);
	struct ailing ailing = {0};
	struct tally tally = {0};
	struct summary summary;
	CLEANUP(free_charp) char *message = NULL;

	pmem_volume_clear_copies(v);
	pmem_conditions_done(&v->conditions);
	pmem_volume_set_location(v);
	show_copies(v, record, view, &tally, &ailing);
	summary = summarize(v, &tally);
	if (str_eq(summary.phase, "Retained"))
		summary.ready.message = message = explain_return(v);
	free(v->phase);
	v->phase = x_strdup(summary.phase);
	set_conditions(v, record, &tally, &ailing, &summary.ready);
	return v;
}

bool volume_status_is_filling(const struct pmem_volume *record, const struct node_table *nodes)
{
	struct node_hit *hits = NULL;
	size_t n = volume_status_find(record, nodes, &hits);
	bool is_filling = false;

	for (size_t i = 0; i < n; i++)
		is_filling = is_filling || filling_of(&hits[i]).total_bytes > 0;
	free(hits);
	return is_filling;
}

static bool node_is_noted(const struct node *node, const char *key)
{
	for (size_t i = 0; i < node->n_notes; i++) {
		struct volume_key of = volume_key_of_handle(node->notes[i].volume.id);

		if (str_eq(of.hex, key))
			return true;
	}
	return false;
}

bool volume_status_is_noted(const struct node_table *table, const char *key)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(table, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (node_is_noted(nodes[i], key))
			return true;
	}
	return false;
}
