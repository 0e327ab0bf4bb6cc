/* SPDX-License-Identifier: Apache-2.0 */
/* Why a node is not among those that a pod may go to, for readers of the pod's Events. */
#include "base/parse.h"
#include "base/str.h"
#include "pmem/capacity.h"
#include "scheduler/node_choice.h"

#define TEXT_LEN 24

/* With @sync, only pools count that take volumes which need MAP_SYNC. Return: the name of the pool, or NULL.
 */
static const char *roomiest_pool(const struct sched_node *node, bool sector, bool sync, uint64_t *ret_bytes)
{
	const char *best = NULL;

	*ret_bytes = 0;
	for (size_t i = 0; i < node->n_pools; i++) {
		uint64_t bytes = capacity_max_bytes(&node->pools[i].capacity, sector);

		if ((best && bytes <= *ret_bytes) || (sync && node->pools[i].only_fsync))
			continue;
		best = node->pool_names[i];
		*ret_bytes = bytes;
	}
	return best;
}

/* Return: whether the need alone is more than the node can make. */
static bool explain_need(const struct sched_node *node, const struct pod_need *need, struct buf *out)
{
	uint64_t bytes;
	const char *pool = roomiest_pool(node, need->sector, need->sync, &bytes);
	char largest[TEXT_LEN];
	char needed[TEXT_LEN];

	if (pool && need->size_bytes <= bytes)
		return false;
	if (!pool) {
		buf_adds(out, node->n_pools > 0 ? "the kernel refuses MAP_SYNC on its memory, which only a "
						  "StorageClass with durability=fsync uses"
						: "no persistent memory for volumes");
		return true;
	}
	buf_addf(out, "largest creatable volume %s in %s, %s needed for %s", format_bytes(bytes, largest),
		str_empty(pool) ? "its pool" : pool, format_bytes(need->size_bytes, needed), need->what);
	return true;
}

static void explain_room(const struct node_choice *q, const struct sched_node *node, struct buf *out)
{
	uint64_t needed_bytes = 0;
	uint64_t free_bytes = 0;
	char needed[TEXT_LEN];
	char available[TEXT_LEN];

	for (size_t i = 0; i < q->needs->n; i++) {
		const struct pod_need *need = &q->needs->v[i];

		if (strv_contains(need->nodes, node->name))
			continue;
		if (explain_need(node, need, out))
			return;
		needed_bytes += need->size_bytes;
	}
	for (size_t i = 0; i < node->n_extents; i++)
		free_bytes += node->extents[i].bytes;
	buf_addf(out, "the pod's new volumes do not fit together: %s needed, %s free in %zu piece%s",
		format_bytes(needed_bytes, needed), format_bytes(free_bytes, available), node->n_extents,
		node->n_extents == 1 ? "" : "s");
}

static void explain_home(const struct node_choice *q, size_t i, struct buf *out)
{
	const struct pod_home *home = pod_needs_away(q->needs, q->candidates[i].name);

	buf_adds(out, home && home->why ? home->why : "a volume of the pod exists on other nodes only");
}

void node_choice_explain(const struct node_choice *q, size_t i, enum sched_fit fit, struct buf *out)
{
	switch (fit) {
	case SCHED_FITS:
		break;
	case SCHED_HELD_BACK:
		buf_adds(out, "would lack room for further pods, and another node is a better fit");
		break;
	case SCHED_FITS_WITHOUT_UNDECIDED:
	case SCHED_FITS_WITHOUT_RESERVATIONS:
		buf_adds(out,
			"its free capacity is reserved for volumes of other pods that are being scheduled");
		break;
	case SCHED_NEVER:
		explain_room(q, q->candidates[i].node, out);
		break;
	case SCHED_ELSEWHERE:
		explain_home(q, i, out);
		break;
	case SCHED_UNKNOWN_NODE:
		buf_adds(out, "its driver has not registered with the controller");
		break;
	case SCHED_STALE:
		buf_adds(out, "its driver no longer reports to the controller");
		break;
	}
}
