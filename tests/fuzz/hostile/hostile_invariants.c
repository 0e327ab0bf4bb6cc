/* SPDX-License-Identifier: Apache-2.0 */
/* The invariants, which hold whatever one node says. */
#include <assert.h>

#include "base/str.h"
#include "fuzz/hostile/hostile_private.h"

/* The handle of what @request is about, unless that is a group; NULL: none. @ret_deletes: it does not have to
 * be where the call goes. */
static const char *handle_of(const ProtobufCMessage *request, bool *ret_deletes)
{
	const ProtobufCMessageDescriptor *type = request->descriptor;
	const Csi__V1__VolumeContentSource *s;

	*ret_deletes = false;
	if (type == &csi__v1__create_volume_request__descriptor) {
		s = ((const Csi__V1__CreateVolumeRequest *)request)->volume_content_source;
		if (s && s->type_case == CSI__V1__VOLUME_CONTENT_SOURCE__TYPE_SNAPSHOT)
			return s->snapshot->snapshot_id;
		return s ? s->volume->volume_id : NULL;
	}
	if (type == &csi__v1__create_snapshot_request__descriptor)
		return ((const Csi__V1__CreateSnapshotRequest *)request)->source_volume_id;
	if (type == &csi__v1__controller_expand_volume_request__descriptor)
		return ((const Csi__V1__ControllerExpandVolumeRequest *)request)->volume_id;
	if (type == &csi__v1__controller_modify_volume_request__descriptor)
		return ((const Csi__V1__ControllerModifyVolumeRequest *)request)->volume_id;
	*ret_deletes = true;
	if (type == &csi__v1__delete_volume_request__descriptor)
		return ((const Csi__V1__DeleteVolumeRequest *)request)->volume_id;
	if (type == &csi__v1__delete_snapshot_request__descriptor)
		return ((const Csi__V1__DeleteSnapshotRequest *)request)->snapshot_id;
	assert(type == &registry__v0__delete_if_never_staged_request__descriptor);
	return ((const Registry__V0__DeleteIfNeverStagedRequest *)request)->volume_id;
}

static const char *name_of(const ProtobufCMessage *request)
{
	if (request->descriptor == &csi__v1__create_volume_request__descriptor)
		return ((const Csi__V1__CreateVolumeRequest *)request)->name;
	if (request->descriptor == &csi__v1__create_snapshot_request__descriptor)
		return ((const Csi__V1__CreateSnapshotRequest *)request)->name;
	return NULL;
}

static void check_made(struct hostile_cluster *c, const char *node_id, const char *name)
{
	const struct volume_key key = volume_key_of_name(name);
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = hostile_record(c, &key);

	assert(record && pmem_volume_has_node(record, node_id));
}

bool hostile_can_be_on(struct hostile_cluster *c, const char *node_id, const char *handle)
{
	const struct volume_key key = volume_key_of_handle(handle);
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = NULL;

	if (volume_id_has_node(handle))
		return volume_id_names_node(handle, node_id);
	record = hostile_record(c, &key);
	return !record || record->deleting || !str_eq(record->handle, handle) ||
	       pmem_volume_has_node(record, node_id);
}

/* Each snapshot of a group has a record of its own. */
static void check_group_made(
	struct hostile_cluster *c, const char *node_id, const Csi__V1__CreateVolumeGroupSnapshotRequest *q)
{
	char name[VOLUME_NAME_MAX + 1];

	for (size_t i = 0; i < q->n_source_volume_ids; i++) {
		volume_group_member_name(q->name, q->source_volume_ids[i], name);
		check_made(c, node_id, name);
		assert(!volume_id_names_other_node(q->source_volume_ids[i], node_id));
	}
}

void hostile_check_call(struct hostile_cluster *c, const char *node_id, const ProtobufCMessage *request)
{
	const char *name = name_of(request);
	const char *handle;
	bool deletes;

	if (request->descriptor == &csi__v1__create_volume_group_snapshot_request__descriptor) {
		check_group_made(c, node_id, (const Csi__V1__CreateVolumeGroupSnapshotRequest *)request);
		return;
	}
	if (request->descriptor == &csi__v1__get_volume_group_snapshot_request__descriptor) {
		assert(volume_id_names_node(
			((const Csi__V1__GetVolumeGroupSnapshotRequest *)request)->group_snapshot_id,
			node_id));
		return;
	}
	handle = handle_of(request, &deletes);
	if (name)
		check_made(c, node_id, name);
	if (!handle)
		return;
	assert(!volume_id_names_other_node(handle, node_id));
	/* A node that has begun a copy finishes it without the source, so that hostile_check_write() looks at
	 * its source. */
	assert(deletes || name || hostile_can_be_on(c, node_id, handle));
}

/* Finds what is wanted as @name, and for which a call is in progress. Return: NULL if nothing is. */
static const struct claim *find_making(const struct hostile_cluster *c, const char *name)
{
	for (size_t i = 0; i < HOSTILE_CLAIMS; i++) {
		if (c->claims[i].is_busy && str_eq(c->claims[i].name, name))
			return &c->claims[i];
	}
	for (size_t i = 0; i < HOSTILE_MEMBERS && c->group.is_busy; i++) {
		if (str_eq(c->group.members[i].name, name))
			return &c->group.members[i];
	}
	return NULL;
}

/* The source may have left the node since the call began. */
static void check_added(struct hostile_cluster *c, const struct pmem_volume *v, const char *node_id)
{
	const struct claim *claim = find_making(c, v->volume_name);

	assert(claim);
	assert(!v->source || claim->source_was_on[hostile_node_number(node_id)] ||
		hostile_can_be_on(c, node_id, v->source));
}

void hostile_check_write(struct hostile_cluster *c, enum volume_record_write what,
	const struct pmem_volume *before, const struct pmem_volume *v)
{
	for (size_t i = 0; what == RECORD_STATUS && i < v->n_copies; i++)
		assert(pmem_volume_has_node(v, v->copies[i].node));
	for (size_t i = 0; i < strv_len(v->nodes); i++) {
		if (!before || !pmem_volume_has_node(before, v->nodes[i]))
			check_added(c, v, v->nodes[i]);
	}
}

/* Whether @node can have @handle for @claim. */
static bool is_minted(const struct claim *claim, const char *handle, size_t node)
{
	char own[VOLUME_ID_MAX + 1];
	char go[VOLUME_ID_MAX + 1];

	volume_id_mint(claim->name, claim->kind == CLAIM_CACHE ? NULL : hostile_node_ids[node], own);
	volume_id_mint_go(claim->name, go);
	return str_eq(handle, own) || str_eq(handle, go);
}

bool hostile_is_there(struct hostile_cluster *c, const struct handed *h)
{
	for (size_t i = 0; h && i < HOSTILE_HONEST; i++) {
		if (h->on[i] && node_table_get_live(c->table, hostile_node_ids[i]) &&
			honest_node_find(&c->honest[i], h->handle))
			return true;
	}
	return false;
}

void hostile_check_given(const struct handed *handed)
{
	const struct claim *claim = handed->claim;
	size_t n = 0;

	for (size_t i = 0; i < HOSTILE_NODES; i++) {
		n += handed->on[i];
		assert(!handed->on[i] || is_minted(claim, handed->handle, i));
	}
	assert(n > 0 || !volume_id_has_node(handed->handle));
	assert(!claim->was_there || claim->had == handed || claim->had->is_deleting);
}

void hostile_check_deletion(
	const struct hostile_cluster *c, const struct honest_node *n, const struct honest_volume *v)
{
	size_t node = hostile_node_number(n->node_id);

	for (size_t i = 0; i < c->n_handed; i++) {
		const struct handed *h = &c->handed[i];

		if (!str_eq(h->handle, v->id) || h->is_deleting)
			continue;
		assert(!v->staged && (h->is_replaced || !h->on[node]));
	}
}

void hostile_check_deleted(struct hostile_cluster *c, const struct handed *handed)
{
	for (size_t i = 0; i < HOSTILE_HONEST; i++)
		assert(!honest_node_find(&c->honest[i], handed->handle));
}

static void check_volumes(struct hostile_cluster *c)
{
	for (size_t i = 0; i < c->n_handed; i++) {
		const struct handed *h = &c->handed[i];

		for (size_t node = 0; node < HOSTILE_HONEST; node++)
			assert(h->is_deleting || h->is_replaced || !h->on[node] || h->claim->has != h ||
				honest_node_find(&c->honest[node], h->handle));
	}
}

static void check_table(struct hostile_cluster *c)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(c->table, &nodes);
	const struct volume_report *v;

	for (size_t i = 0; i < n; i++) {
		for (size_t at = 0; (v = node_next_volume(nodes[i], &at)) != NULL;)
			assert(!volume_id_names_other_node(v->id, nodes[i]->report.node_id));
	}
}

/* A call that waits for a node has asked it. */
static void check_asks(const struct hostile_cluster *c)
{
	for (const struct ask *a = c->asks; a && c->n_pending == 0; a = a->next)
		assert(a->is_over);
}

void hostile_check_state(struct hostile_cluster *c)
{
	check_asks(c);
	check_volumes(c);
	check_table(c);
}
