/* SPDX-License-Identifier: Apache-2.0 */
/* Nothing waits for ever: each volume can be made and deleted while one node is silent, unless that node was
 * asked for it, and in any case when it has been taken out of the cluster. */
#include <assert.h>

#include "base/str.h"
#include "fuzz/hostile/hostile_private.h"

/* More than a lease time, and the time for which a silent node is waited for
 * (controller/inventory_waits.h). */
#define ROUNDS 8
/* Calls that follow one another within a call of the provisioner. */
#define DRAIN_ROUNDS 64

static void drain(struct hostile_cluster *c)
{
	for (unsigned i = 0; c->n_pending > 0; i++) {
		assert(i < DRAIN_ROUNDS);
		hostile_answer_all(c);
		hostile_lose_rest(c);
	}
	hostile_check_state(c);
}

static void pass_time(struct hostile_cluster *c)
{
	for (size_t i = 0; i < HOSTILE_HONEST; i++) {
		c->is_up[i] = true;
		c->is_silent[i] = false;
	}
	hostile_tick(c);
	if (!c->is_rid)
		hostile_report(c, HOSTILE_EVIL, /* is_silent= */ true);
}

/* Whether the node that lies was asked for it, so that it may have a copy. */
static bool may_be_evil(struct hostile_cluster *c, const char *name)
{
	const struct volume_key key = volume_key_of_name(name);
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = hostile_record(c, &key);

	return record && pmem_volume_has_node(record, hostile_node_ids[HOSTILE_EVIL]);
}

/* Whether the name belongs to a volume that was deleted and is still recorded: its node is gone, or one has a
 * copy that was in use. No claim gets that name again. */
static bool is_used_up(struct hostile_cluster *c, const char *name)
{
	const struct volume_key key = volume_key_of_name(name);
	CLEANUP(pmem_volume_freep) struct pmem_volume *record = hostile_record(c, &key);

	return record && (record->retained || record->deleting);
}

static bool is_stuck(struct hostile_cluster *c, const struct claim *claim)
{
	return !c->is_rid && may_be_evil(c, claim->name);
}

static bool group_is_stuck(struct hostile_cluster *c)
{
	return is_stuck(c, &c->group.members[0]) || is_stuck(c, &c->group.members[1]);
}

static void delete_all(struct hostile_cluster *c)
{
	hostile_group_delete(c);
	for (size_t i = 0; i < HOSTILE_CLAIMS; i++)
		hostile_delete(c, &c->claims[i]);
	drain(c);
}

static void check_deleted(struct hostile_cluster *c)
{
	for (size_t i = 0; i < HOSTILE_CLAIMS; i++)
		assert(!c->claims[i].has || is_stuck(c, &c->claims[i]));
	assert(str_empty(c->group.id) || group_is_stuck(c));
}

static bool is_new(const struct claim *claim)
{
	return !claim->has && (claim->kind == CLAIM_VOLUME || claim->kind == CLAIM_CACHE);
}

static void create_all(struct hostile_cluster *c)
{
	for (size_t i = 0; i < HOSTILE_CLAIMS; i++) {
		if (is_new(&c->claims[i]))
			hostile_create(c, &c->claims[i]);
	}
	drain(c);
}

static void check_created(struct hostile_cluster *c)
{
	for (size_t i = 0; i < HOSTILE_CLAIMS; i++)
		assert(!is_new(&c->claims[i]) || is_stuck(c, &c->claims[i]) ||
			is_used_up(c, c->claims[i].name));
}

static void check_flow(struct hostile_cluster *c)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		pass_time(c);
		delete_all(c);
	}
	check_deleted(c);
	for (unsigned i = 0; i < ROUNDS; i++) {
		pass_time(c);
		create_all(c);
	}
	check_created(c);
}

void hostile_check_end(struct hostile_cluster *c)
{
	hostile_restart(c);
	check_flow(c);
	c->is_rid = true;
	check_flow(c);
	bool is_listed = hostile_list(c);
	assert(is_listed);
}
