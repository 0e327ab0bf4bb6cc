/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_check/cluster_findings.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "controller/volume_key.h"
#include "volume/id.h"

#define IN_CONTROLLER "kubectl -n pmem-csi exec deploy/pmem-csi-controller -- csi-client"

/* As external-provisioner names volumes: "pvc-<uid of the claim>". */
#define NAME_PREFIX "pvc-"

/* The lists with all indexes of them. */
struct comparison {
	const struct cluster_lists *lists;
	char *label;                      /* of Nodes, whose value is the node's ID */
	struct cluster_index pvs;         /* by handle */
	struct cluster_index pvs_by_name; /* by name */
	struct cluster_index claims;      /* by uid */
	struct cluster_index classes;     /* by name */
	struct cluster_index nodes;       /* by node ID */
	struct cluster_index csi_nodes;   /* by name */
	struct cluster_index pmem_nodes;  /* by node ID */
	struct cluster_index volumes;     /* PmemVolumes, by handle */
	struct cluster_index records;     /* PmemVolumes, by name */
	struct cluster_findings *findings;
};

/* The object that a finding is about. A member that is NULL has the meaning that struct cluster_finding gives
 * it. */
struct subject {
	const char *kind;
	const char *name;
	const char *handle;
	const char *claim;
	const char *node;
};

static const struct {
	const char *name;
	const char *remedy;
} reasons[] = {
	[CLUSTER_DRIVER_WITHOUT_CLASS] = {"DriverWithoutStorageClass",
		"look again with -drivername if the driver has another name; otherwise apply its manifests, or a StorageClass "
		"of your own"},
	[CLUSTER_DRIVER_WITHOUT_NODE] = {"DriverWithoutNode",
		"look again with -drivername if the driver has another name; otherwise see whether its pods run on the nodes, "
		"whether the controllers run, and what their logs say"},
	[CLUSTER_NAMESPACE_WITHOUT_CAPACITY] = {"NamespaceWithoutCapacity",
		"look again with -namespace if the driver runs in another namespace; otherwise the log of the leading "
		"controller says why it writes none (it writes none with -publishCapacity=false)"},
	[CLUSTER_PV_WITHOUT_VOLUME] = {"PersistentVolumeWithoutVolume",
		"if `pmem-csi-driver volumes` shows the volume on a node, the controller records it when that node registers: "
		"look at its PmemNode and at the logs of driver and controller; otherwise delete the claim and restore its "
		"data from a backup"},
	[CLUSTER_BOUND_VOLUME_DELETED] = {"BoundVolumeIsBeingDeleted",
		"DeleteVolume was called, or spec.deleting was set, by hand: save the data if a pod still has the volume "
		"mounted, then delete the claim"},
	[CLUSTER_VOLUME_LOST] = {"VolumeLost",
		"bring a node that has the volume back; if they are gone for good, delete the claim and restore its data from "
		"a backup"},
	[CLUSTER_VOLUME_DAMAGED] = {"VolumeDamaged",
		"stop the driver on the node and run `pmem-csi-driver check -repair HANDLE` there"},
	[CLUSTER_VOLUME_MISSING] = {"VolumeMissing",
		"`pmem-csi-driver check` on the node says what is missing; if the volume is gone for good, delete the "
		"claim and restore its data from a backup"},
	[CLUSTER_VOLUME_UNREACHABLE] = {"VolumeUnreachable",
		"start the node or its driver; if the node is gone for good, delete its Node object, delete the claim when the "
		"volume has the phase Lost (-nodeLostAfter), and restore its data from a backup"},
	[CLUSTER_VOLUME_NOT_READY] = {"VolumeNotReady",
		"the log of the controller says what keeps the volume from being ready"},
	[CLUSTER_VOLUME_WITHOUT_PV] = {"VolumeWithoutPersistentVolume",
		"if its claim exists, the log of external-provisioner says why there is no PersistentVolume; otherwise "
		"create a PersistentVolume with the handle to keep the data, or delete the volume: "
		"`" IN_CONTROLLER " delete HANDLE`"},
	[CLUSTER_VOLUME_RETAINED] = {"RetainedVolume",
		"to erase the volume, `" IN_CONTROLLER
		" delete HANDLE`; to use it, create a PersistentVolume with its handle"},
	[CLUSTER_DELETION_STALLED] = {"DeletionStalled",
		"start the node or its driver: the deletion of a volume goes on by itself when the node has registered, or the "
		"log of the leading controller says why it cannot; that of a snapshot goes on if its VolumeSnapshotContent "
		"exists, and otherwise with `" IN_CONTROLLER
		" delete-snapshot HANDLE`; if the node is gone for good, delete its Node object"},
	[CLUSTER_RECORD_WITHOUT_NODE] = {"RecordWithoutNode",
		"the record is of no use: if it stays for more than a day, `kubectl delete pmemvolume NAME` and remove its "
		"finalizer; this erases nothing"},
	[CLUSTER_RECORD_LACKS_NODE] = {"RecordLacksNode",
		"the record was changed by hand, or is older than the volume: the controller adds the node when it "
		"registers; do not delete the record before"},
	[CLUSTER_RECORD_OF_UNKNOWN_NODE] = {"RecordOfUnknownNode",
		"if the node was removed for good, delete the claim; if the record was changed by hand, patch spec.nodes "
		"with the account of the controller (kubectl --as)"},
	[CLUSTER_RECORD_WITHOUT_FINALIZER] = {"RecordWithoutFinalizer",
		"do not delete the record; the controller adds the finalizer when it changes the record"},
	[CLUSTER_RECORD_NAME] = {"RecordNameMismatch",
		"the object was made or changed by hand, and the controller does not find it: delete it with its "
		"finalizer; the controller makes another one of what the node reports"},
	[CLUSTER_PMEM_NODE_WITHOUT_NODE] = {"PmemNodeWithoutNode",
		"if the node was removed for good, delete the claims of its volumes; the controller deletes the PmemNode "
		"an hour later; otherwise start kubelet and the driver there"},
	[CLUSTER_NODE_WITHOUT_PMEM_NODE] = {"NodeWithoutPmemNode",
		"the driver on the node has not registered with the controller: the logs of both say why"},
	[CLUSTER_NODE_WITHOUT_DRIVER] = {"NodeWithoutDriver",
		"`kubectl -n pmem-csi get pods -o wide` shows whether the driver's pod runs on the node, and its log why "
		"kubelet has not registered it; if the driver is not wanted there, the label can be removed; if "
		"nodes are chosen by other labels, look again with -nodeSelector"},
	[CLUSTER_PMEM_NODE_NOT_READY] = {"PmemNodeNotReady",
		"the log of the driver on the node, or of the controller, says why the driver does not register"},
	[CLUSTER_CAPACITY_WITHOUT_CLASS] = {"CapacityWithoutStorageClass",
		"the leader deletes it within a minute; if it stays, the log of the controller says why"},
	[CLUSTER_CAPACITY_WITHOUT_NODE] = {"CapacityWithoutPmemNode",
		"if the node exists, the leader makes its PmemNode within minutes, otherwise it deletes the object; if neither "
		"happens, the log of the controller says why"},
};

const char *cluster_reason_name(enum cluster_reason reason)
{
	return reasons[reason].name;
}

const char *cluster_reason_remedy(enum cluster_reason reason)
{
	return reasons[reason].remedy;
}

/* @subject: copied; @text: taken over */
static void add_finding(
	const struct comparison *v, enum cluster_reason reason, const struct subject *subject, char *text)
{
	struct cluster_findings *f = v->findings;

	f->list = x_realloc(f->list, f->n + 1, sizeof(*f->list));
	f->list[f->n++] = (struct cluster_finding){.reason = reason,
		.kind = subject->kind,
		.name = x_strdup(subject->name),
		.handle = x_strdup(subject->handle),
		.claim = x_strdup(subject->claim),
		.node = x_strdup(subject->node),
		.text = text};
}

static void finding_done(struct cluster_finding *f)
{
	free(f->name);
	free(f->handle);
	free(f->claim);
	free(f->node);
	free(f->text);
}

void cluster_findings_done(struct cluster_findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		finding_done(&f->list[i]);
	free(f->list);
	*f = (struct cluster_findings){0};
}

static int compare_texts(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int compare_findings(const void *a, const void *b)
{
	const struct cluster_finding *x = a;
	const struct cluster_finding *y = b;

	if (x->reason != y->reason)
		return x->reason < y->reason ? -1 : 1;
	return strcmp(x->name, y->name) ? strcmp(x->name, y->name) : compare_texts(x->node, y->node);
}

void cluster_findings_keep(struct cluster_findings *f, const struct cluster_findings *before)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++) {
		if (before->n > 0 && bsearch(&f->list[i], before->list, before->n, sizeof(*before->list),
					     compare_findings))
			f->list[n++] = f->list[i];
		else
			finding_done(&f->list[i]);
	}
	f->n = n;
}

/* Return: "namespace/name" of the claim that @pv is bound to, caller frees; NULL: none. */
static char *claim_of_pv(const struct kube_volume *pv)
{
	if (str_empty(pv->claim_name))
		return NULL;
	return x_asprintf("%s/%s", pv->claim_namespace ? pv->claim_namespace : "", pv->claim_name);
}

static const struct kube_claim *find_claim(const struct comparison *v, const struct pmem_volume *record)
{
	if (!record->volume_name || !str_starts(record->volume_name, NAME_PREFIX))
		return NULL;
	return cluster_index_get(&v->claims, record->volume_name + strlen(NAME_PREFIX));
}

/* A PersistentVolume is created after CreateVolume was answered, with the handle, and has the volume name. */
static bool has_pv(const struct comparison *v, const struct pmem_volume *record)
{
	if (record->handle)
		return cluster_index_get(&v->pvs, record->handle) != NULL;
	return record->volume_name && cluster_index_get(&v->pvs_by_name, record->volume_name);
}

static const struct pmem_volume *find_record(const struct comparison *v, const char *handle)
{
	const struct pmem_volume *record = cluster_index_get(&v->volumes, handle);
	struct volume_key key;
	CLEANUP(free_charp) char *name = NULL;

	if (record)
		return record;
	key = volume_key_of_handle(handle);
	name = pmem_volume_object_name(key.hex, v->lists->scope.driver_name);
	return cluster_index_get(&v->records, name);
}

static void add_pv(const struct comparison *v, enum cluster_reason reason, const struct kube_volume *pv,
	const char *node, char *text)
{
	CLEANUP(free_charp) char *claim = claim_of_pv(pv);
	const struct subject subject = {.kind = "PersistentVolume",
		.name = pv->meta.name,
		.handle = pv->handle,
		.claim = claim,
		.node = node};

	add_finding(v, reason, &subject, text);
}

/* Phases of a PmemVolume in which its volume cannot be used. */
static const struct {
	const char *phase;
	enum cluster_reason reason;
} bad_phases[] = {
	{"Lost", CLUSTER_VOLUME_LOST},
	{"Damaged", CLUSTER_VOLUME_DAMAGED},
	{"Missing", CLUSTER_VOLUME_MISSING},
	{"Unreachable", CLUSTER_VOLUME_UNREACHABLE},
};

static enum cluster_reason reason_of_phase(const char *phase)
{
	for (size_t i = 0; i < ARRAY_SIZE(bad_phases); i++) {
		if (str_eq(phase, bad_phases[i].phase))
			return bad_phases[i].reason;
	}
	return CLUSTER_VOLUME_NOT_READY;
}

/* The only node of the record; NULL: there are none or several. */
static const char *node_of(const struct pmem_volume *record)
{
	return strv_len(record->nodes) == 1 ? record->nodes[0] : NULL;
}

static void compare_phase(
	const struct comparison *v, const struct kube_volume *pv, const struct pmem_volume *record)
{
	const struct pmem_condition *ready = pmem_condition_find(&record->conditions, "Ready");

	/* The status follows the spec within seconds. A retained volume is used by a PersistentVolume that an
	 * administrator has made for it. */
	if (!record->phase || str_eq(record->phase, "Ready") || str_eq(record->phase, "Retained"))
		return;
	add_pv(v, reason_of_phase(record->phase), pv, node_of(record),
		x_asprintf("its PmemVolume %s has the phase %s%s%s", record->meta.name, record->phase,
			ready && !str_empty(ready->reason) ? ", reason " : "",
			ready && !str_empty(ready->reason) ? ready->reason : ""));
}

static void compare_pv(const struct comparison *v, const struct kube_volume *pv)
{
	const struct pmem_volume *record;
	/* Failed: the deletion of the volume has failed, and is tried again. */
	bool is_deleted = pv->meta.deleting || str_eq(pv->phase, "Released") || str_eq(pv->phase, "Failed");

	if (str_empty(pv->handle))
		return;
	record = find_record(v, pv->handle);
	if (!record)
		add_pv(v, CLUSTER_PV_WITHOUT_VOLUME, pv, /* node= */ NULL,
			x_strdup("there is no PmemVolume with its handle"));
	else if (record->handle && !str_eq(record->handle, pv->handle))
		add_pv(v, CLUSTER_PV_WITHOUT_VOLUME, pv, node_of(record),
			x_asprintf("PmemVolume %s of that name has another handle, %s", record->meta.name,
				record->handle));
	else if (record->retained && is_deleted)
		return;
	else if (!record->deleting)
		compare_phase(v, pv, record);
	else if (!is_deleted)
		add_pv(v, CLUSTER_BOUND_VOLUME_DELETED, pv, node_of(record),
			x_asprintf("PmemVolume %s says that the volume is being deleted, while the "
				   "PersistentVolume is neither released nor deleted",
				record->meta.name));
}

static void add_record(const struct comparison *v, enum cluster_reason reason,
	const struct pmem_volume *record, const char *node, char *text)
{
	const struct kube_claim *claim = find_claim(v, record);
	CLEANUP(free_charp) char *key = claim ? kube_meta_key(&claim->meta) : x_strdup(record->claim);
	const struct subject subject = {.kind = "PmemVolume",
		.name = record->meta.name,
		.handle = record->handle,
		.claim = key,
		.node = node ? node : node_of(record)};

	add_finding(v, reason, &subject, text);
}

/* The message about a volume without PersistentVolume. Return: caller frees. */
static char *explain_without_pv(const struct pmem_volume *record, const struct kube_claim *claim)
{
	if (claim)
		return x_strdup("no PersistentVolume has its handle, while its claim exists");
	if (!record->volume_name)
		return x_strdup("no PersistentVolume has its handle, and the volume name is not known, "
				"by which its claim could be found");
	if (!str_starts(record->volume_name, NAME_PREFIX))
		return x_asprintf(
			"no PersistentVolume has its handle, and the volume name \"%s\" is not that of "
			"a claim",
			record->volume_name);
	return x_strdup("no PersistentVolume has its handle, and its claim does not exist");
}

/* Since when nodes have not confirmed the deletion of @record: the condition has had the status for so long,
 * and another one before, unless the volume was in trouble already. A volume that is being erased makes
 * progress. */
static bool is_stalled(const struct comparison *v, const struct pmem_volume *record)
{
	const struct pmem_condition *ready = pmem_condition_find(&record->conditions, "Ready");
	int64_t before_s = v->lists->scope.now_s - CLUSTER_DELETION_MAX_S;
	char before[KUBE_SECONDS_LEN + 1];

	if (before_s <= 0 || !ready || !ready->since || !str_eq(record->phase, "Deleting") ||
		strv_len(record->nodes) == 0)
		return false;
	kube_time_format(before_s, before);
	return strcmp(ready->since, before) < 0;
}

/* No controller finishes the deletion of a snapshot without a caller (duties/begun_deletions.h). */
static void compare_deletion(const struct comparison *v, const struct pmem_volume *record)
{
	CLEANUP(free_charp) char *advice = NULL;

	if (!is_stalled(v, record)) {
		v->findings->n_deleting++;
		return;
	}
	if (record->snapshot && record->handle)
		advice =
			x_asprintf("; if its VolumeSnapshotContent has gone, no caller repeats the deletion: "
				   "run `" IN_CONTROLLER " delete-snapshot %s`",
				record->handle);
	add_record(v, CLUSTER_DELETION_STALLED, record, /* node= */ NULL,
		x_asprintf("it has been being deleted for more than %d minutes, and not all of its nodes "
			   "have confirmed that they have no copy%s",
			CLUSTER_DELETION_MAX_S / 60, advice ? advice : ""));
}

static void compare_use(const struct comparison *v, const struct pmem_volume *record)
{
	const struct kube_claim *claim = find_claim(v, record);

	if (record->deleting) {
		compare_deletion(v, record);
		return;
	}
	if (has_pv(v, record))
		return;
	/* Its node is lost, and nothing can be done about the volume, until the node returns with it. */
	if (record->retained) {
		if (str_eq(record->phase, "Retained"))
			add_record(v, CLUSTER_VOLUME_RETAINED, record, /* node= */ NULL,
				x_strdup("it was deleted while its node was lost, and the node has returned "
					 "with the data"));
		return;
	}
	if (strv_len(record->nodes) == 0 && !claim)
		add_record(v, CLUSTER_RECORD_WITHOUT_NODE, record, /* node= */ NULL,
			x_strdup(
				"it names no node, and there is neither a PersistentVolume nor a claim for it"));
	else if (!record->handle)
		v->findings->n_creating++;
	else if (!record->snapshot) /* what refers to one are objects that a cluster need not have */
		add_record(v, CLUSTER_VOLUME_WITHOUT_PV, record, /* node= */ NULL,
			explain_without_pv(record, claim));
}

static void compare_record_nodes(const struct comparison *v, const struct pmem_volume *record)
{
	for (size_t i = 0; !record->deleting && i < record->n_copies; i++) {
		const struct pmem_volume_copy *c = &record->copies[i];

		if (!c->node || str_eq(c->phase, "Erasing") || pmem_volume_has_node(record, c->node))
			continue;
		add_record(v, CLUSTER_RECORD_LACKS_NODE, record, c->node,
			x_asprintf("its spec does not name the node, which has a copy in the phase %s",
				c->phase ? c->phase : "Unknown"));
	}
	for (size_t i = 0; i < strv_len(record->nodes); i++) {
		const char *id = record->nodes[i];

		/* A lost node is not reported here, because it is reported for each of its volumes. */
		if (cluster_index_get(&v->pmem_nodes, id) || cluster_index_get(&v->nodes, id) ||
			pmem_volume_is_lost(record, id))
			continue;
		add_record(v, CLUSTER_RECORD_OF_UNKNOWN_NODE, record, id,
			x_strdup("its spec names a node that has neither a PmemNode nor a Node"));
	}
}

/* Handles of other forms, of drivers before the Go driver 0.7, do not follow from the name of the volume. */
static bool name_fits(const struct pmem_volume *record, const char *driver_name)
{
	bool follows = !record->handle || volume_id_has_minted_form(record->handle);
	struct volume_key key;
	CLEANUP(free_charp) char *expected = NULL;

	if (record->volume_name && follows)
		key = volume_key_of_name(record->volume_name);
	else if (record->handle && (follows || !record->volume_name))
		key = volume_key_of_handle(record->handle);
	else
		return true;
	expected = pmem_volume_object_name(key.hex, driver_name);
	return str_eq(record->meta.name, expected);
}

static bool handle_fits(const struct pmem_volume *record)
{
	struct volume_key key;

	if (!record->handle || !volume_id_has_minted_form(record->handle))
		return true;
	key = volume_key_of_handle(record->handle);
	return strncmp(record->meta.name, key.hex, PMEM_VOLUME_KEY_LEN) == 0;
}

static void compare_metadata(const struct comparison *v, const struct pmem_volume *record)
{
	bool has_finalizer =
		record->meta.finalizers && strv_contains(record->meta.finalizers, PMEM_VOLUME_FINALIZER);

	/* The finalizers of others may keep a record that was released. */
	if (!has_finalizer && !record->meta.deleting)
		add_record(v, CLUSTER_RECORD_WITHOUT_FINALIZER, record, /* node= */ NULL,
			x_strdup("it lacks the finalizer " PMEM_VOLUME_FINALIZER
				 ", so that its deletion would make the controller forget where copies are"));
	if (!handle_fits(record))
		add_record(v, CLUSTER_RECORD_NAME, record, /* node= */ NULL,
			x_strdup("its handle is that of another volume, by the name of the object"));
	else if (!name_fits(record, v->lists->scope.driver_name))
		add_record(v, CLUSTER_RECORD_NAME, record, /* node= */ NULL,
			x_strdup("its volume name calls for an object of another name"));
}

static void compare_volumes(const struct comparison *v)
{
	const struct cluster_lists *l = v->lists;

	for (size_t i = 0; i < l->pvs.n; i++)
		compare_pv(v, l->pvs.objects[i]);
	for (size_t i = 0; i < l->pmem_volumes.n; i++) {
		compare_use(v, l->pmem_volumes.objects[i]);
		compare_record_nodes(v, l->pmem_volumes.objects[i]);
		compare_metadata(v, l->pmem_volumes.objects[i]);
	}
}

static void add_node_finding(const struct comparison *v, enum cluster_reason reason, const char *kind,
	const char *name, const char *node, char *text)
{
	const struct subject subject = {.kind = kind, .name = name, .node = node};

	add_finding(v, reason, &subject, text);
}

static void compare_pmem_node(const struct comparison *v, const struct pmem_node *n)
{
	const struct pmem_condition *ready = pmem_condition_find(&n->conditions, "Ready");

	if (!n->node)
		add_node_finding(v, CLUSTER_PMEM_NODE_WITHOUT_NODE, "PmemNode", n->meta.name,
			/* node= */ NULL, x_strdup("its spec names no node"));
	else if (!cluster_index_get(&v->nodes, n->node))
		add_node_finding(v, CLUSTER_PMEM_NODE_WITHOUT_NODE, "PmemNode", n->meta.name, n->node,
			x_asprintf(
				"no Node has the label %s=%s, which kubelet sets when the driver registers",
				v->label, n->node));
	if (!ready)
		add_node_finding(v, CLUSTER_PMEM_NODE_NOT_READY, "PmemNode", n->meta.name, n->node,
			x_strdup("it has no condition Ready"));
	else if (!str_eq(ready->status, "True"))
		add_node_finding(v, CLUSTER_PMEM_NODE_NOT_READY, "PmemNode", n->meta.name, n->node,
			x_asprintf("its condition Ready is %s, reason %s",
				ready->status ? ready->status : "absent",
				ready->reason ? ready->reason : "not given"));
}

/* Kubelet leaves the label when the driver goes, so that the CSINode decides. */
static void compare_node(const struct comparison *v, const struct kube_node *n)
{
	const char *id = kube_meta_label(&n->meta, v->label);
	const struct kube_csi_node *csi_node = cluster_index_get(&v->csi_nodes, n->meta.name);

	if (!id || cluster_index_get(&v->pmem_nodes, id))
		return;
	if (csi_node && csi_node->drivers && strv_contains(csi_node->drivers, v->lists->scope.driver_name))
		add_node_finding(v, CLUSTER_NODE_WITHOUT_PMEM_NODE, "Node", n->meta.name, id,
			x_strdup("its CSINode has the driver, and there is no PmemNode"));
}

static void compare_capacity(const struct comparison *v, const struct kube_capacity *c)
{
	const char *id = kube_pairs_get(&c->topology, v->label);
	CLEANUP(free_charp) char *name = kube_meta_key(&c->meta);

	if (!c->storage_class || !cluster_index_get(&v->classes, c->storage_class))
		add_node_finding(v, CLUSTER_CAPACITY_WITHOUT_CLASS, "CSIStorageCapacity", name, id,
			x_asprintf("its StorageClass %s does not exist",
				c->storage_class ? c->storage_class : "\"\""));
	if (!id)
		add_node_finding(v, CLUSTER_CAPACITY_WITHOUT_NODE, "CSIStorageCapacity", name,
			/* node= */ NULL, x_asprintf("its topology has no label %s", v->label));
	else if (!cluster_index_get(&v->pmem_nodes, id))
		add_node_finding(v, CLUSTER_CAPACITY_WITHOUT_NODE, "CSIStorageCapacity", name, id,
			x_strdup("its topology names a node that has no PmemNode"));
}

/* Kubelet adds the label of the driver when the driver registers, and leaves it there. */
static void compare_chosen_node(const struct comparison *v, const struct kube_node *n)
{
	const char *id = kube_meta_label(&n->meta, v->label);
	const struct kube_csi_node *csi_node = cluster_index_get(&v->csi_nodes, n->meta.name);

	if (id && cluster_index_get(&v->pmem_nodes, id))
		return;
	if (csi_node && csi_node->drivers && strv_contains(csi_node->drivers, v->lists->scope.driver_name))
		return; /* compare_node() reports it */
	add_node_finding(v, CLUSTER_NODE_WITHOUT_DRIVER, "Node", n->meta.name, id,
		x_strdup(
			"it has the labels of a node on which the driver runs, and no driver is registered there"));
}

static bool has_class(const struct cluster_lists *l, bool late_only)
{
	for (size_t i = 0; i < l->classes.n; i++) {
		const struct kube_class *c = l->classes.objects[i];

		if (str_eq(c->provisioner, l->scope.driver_name) && (c->waits_for_consumer || !late_only))
			return true;
	}
	return false;
}

/* Nodes that are full, or not ready, need no CSIStorageCapacity. */
static bool offers_capacity(const struct cluster_lists *l)
{
	for (size_t i = 0; i < l->pmem_nodes.n; i++) {
		const struct pmem_node *n = l->pmem_nodes.objects[i];
		const struct pmem_condition *ready = pmem_condition_find(&n->conditions, "Ready");

		for (size_t k = 0; ready && str_eq(ready->status, "True") && k < n->n_regions; k++) {
			if (n->regions[k].max_volume_bytes > 0)
				return true;
		}
	}
	return false;
}

/* Reports that there are no objects at all: with a wrong name of the driver or a wrong namespace none is
 * found, and so none is inconsistent. */
static void compare_scope(const struct comparison *v)
{
	const struct cluster_lists *l = v->lists;
	const char *driver = l->scope.driver_name;

	if (!has_class(l, /* late_only= */ false))
		add_node_finding(v, CLUSTER_DRIVER_WITHOUT_CLASS, "CSIDriver", driver, /* node= */ NULL,
			x_strdup("no StorageClass has it as provisioner"));
	if (l->pmem_nodes.n == 0)
		add_node_finding(v, CLUSTER_DRIVER_WITHOUT_NODE, "CSIDriver", driver, /* node= */ NULL,
			x_strdup("no PmemNode is of this driver"));
	/* only classes with late binding have CSIStorageCapacities */
	if (has_class(l, /* late_only= */ true) && l->capacities.n == 0 && offers_capacity(l))
		add_node_finding(v, CLUSTER_NAMESPACE_WITHOUT_CAPACITY, "Namespace", l->scope.namespace,
			/* node= */ NULL,
			x_strdup("it has no CSIStorageCapacity of the driver, although nodes have capacity"));
}

static void compare_nodes(const struct comparison *v)
{
	const struct cluster_lists *l = v->lists;

	for (size_t i = 0; i < l->pmem_nodes.n; i++)
		compare_pmem_node(v, l->pmem_nodes.objects[i]);
	for (size_t i = 0; i < l->nodes.n; i++)
		compare_node(v, l->nodes.objects[i]);
	for (size_t i = 0; i < l->chosen.n; i++)
		compare_chosen_node(v, l->chosen.objects[i]);
	for (size_t i = 0; i < l->capacities.n; i++)
		compare_capacity(v, l->capacities.objects[i]);
}

static const char *name_of(const void *object, const void *user)
{
	const struct kube_meta *m = object;

	(void)user;
	return m->name;
}

static const char *uid_of(const void *object, const void *user)
{
	const struct kube_meta *m = object;

	(void)user;
	return m->uid;
}

static const char *handle_of_pv(const void *object, const void *user)
{
	const struct kube_volume *pv = object;

	(void)user;
	return pv->handle;
}

static const char *handle_of_record(const void *object, const void *user)
{
	const struct pmem_volume *v = object;

	(void)user;
	return v->handle;
}

/* @user: the label */
static const char *id_of_node(const void *object, const void *user)
{
	const struct kube_node *n = object;

	return kube_meta_label(&n->meta, user);
}

static const char *id_of_pmem_node(const void *object, const void *user)
{
	const struct pmem_node *n = object;

	(void)user;
	return n->node;
}

static struct comparison make_view(const struct cluster_lists *l, struct cluster_findings *findings)
{
	struct comparison v = {
		.lists = l, .label = name_topology_key(l->scope.driver_name), .findings = findings};

	v.pvs = cluster_index_make(&l->pvs, handle_of_pv, NULL);
	v.pvs_by_name = cluster_index_make(&l->pvs, name_of, NULL);
	v.claims = cluster_index_make(&l->claims, uid_of, NULL);
	v.classes = cluster_index_make(&l->classes, name_of, NULL);
	v.nodes = cluster_index_make(&l->nodes, id_of_node, v.label);
	v.csi_nodes = cluster_index_make(&l->csi_nodes, name_of, NULL);
	v.pmem_nodes = cluster_index_make(&l->pmem_nodes, id_of_pmem_node, NULL);
	v.volumes = cluster_index_make(&l->pmem_volumes, handle_of_record, NULL);
	v.records = cluster_index_make(&l->pmem_volumes, name_of, NULL);
	return v;
}

static void view_done(struct comparison *v)
{
	free(v->label);
	cluster_index_done(&v->pvs);
	cluster_index_done(&v->pvs_by_name);
	cluster_index_done(&v->claims);
	cluster_index_done(&v->classes);
	cluster_index_done(&v->nodes);
	cluster_index_done(&v->csi_nodes);
	cluster_index_done(&v->pmem_nodes);
	cluster_index_done(&v->volumes);
	cluster_index_done(&v->records);
}

void cluster_compare(const struct cluster_lists *l, struct cluster_findings *ret)
{
	struct comparison v = make_view(l, ret);

	*ret = (struct cluster_findings){0};
	compare_scope(&v);
	compare_volumes(&v);
	compare_nodes(&v);
	if (ret->n > 0)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare_findings);
	view_done(&v);
}
