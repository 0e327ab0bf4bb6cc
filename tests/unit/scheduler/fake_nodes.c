/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/scheduler/fake_nodes.h"

#include <stdlib.h>

#include "base/mem.h"

struct sched_nodes {
	struct buf told;
};

struct sched_nodes *sched_nodes_new(void)
{
	struct sched_nodes *n = x_calloc(1, sizeof(*n));

	n->told = BUF_INIT(1u << 20);
	return n;
}

void sched_nodes_free(struct sched_nodes *n)
{
	buf_done(&n->told);
	free(n);
}

void sched_nodes_put(struct sched_nodes *n, struct node_report *report)
{
	buf_addf(&n->told, "put %s", report->node_id);
	for (size_t i = 0; i < report->n_pools; i++)
		buf_addf(&n->told, " %llu", (unsigned long long)report->pools[i].capacity.max_volume_bytes);
	for (size_t i = 0; i < report->n_volumes; i++)
		buf_addf(&n->told, " %s", report->volumes[i].name);
	buf_adds(&n->told, "\n");
	node_report_free(report);
}

void sched_nodes_end(struct sched_nodes *n, const char *node_id)
{
	buf_addf(&n->told, "end %s\n", node_id);
}

void sched_nodes_begin_table(struct sched_nodes *n)
{
	buf_adds(&n->told, "begin\n");
}

void sched_nodes_end_table(struct sched_nodes *n)
{
	buf_adds(&n->told, "over\n");
}

void sched_nodes_sweep(struct sched_nodes *n)
{
	buf_adds(&n->told, "sweep\n");
}

const char *fake_nodes_told(const struct sched_nodes *n)
{
	return buf_str(&n->told);
}
