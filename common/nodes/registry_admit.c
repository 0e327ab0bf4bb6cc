/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the table of nodes for registrations and ends of leases, and logs the changes. */
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "nodes/registry_private.h"

/* The log message for the registration @report of the node @known; NULL: nothing has changed. */
static const char *news(const struct node *known, const struct node_report *report)
{
	if (!known)
		return "node registered";
	if (!known->live)
		return "node registered again";
	if (!str_eq(known->report.boot_id, report->boot_id))
		return "node has rebooted";
	if (!str_eq(known->report.version, report->version))
		return "node runs another version of the driver";
	if (!str_eq(known->report.endpoint, report->endpoint))
		return "node has moved";
	return NULL;
}

static bool may_log(struct registry *r)
{
	return log_quota_take(r->log, clock_ns());
}

/* Another live node with the endpoint of @report; NULL: none. */
static const struct node *find_holder(const struct registry *r, const struct node_report *report)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(r->config.table, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->live && str_eq(nodes[i]->report.endpoint, report->endpoint) &&
			!str_eq(nodes[i]->report.node_id, report->node_id))
			return nodes[i];
	}
	return NULL;
}

int registry_check_lease(const struct registry *r, const struct node_report *report, struct error **err)
{
	const struct node *known = node_table_get_live(r->config.table, report->node_id);
	const struct node *holder;

	if (known && str_eq(known->report.endpoint, report->endpoint))
		return 0;
	if (known)
		return err_set(err, ERR_ABORTED,
			"node \"%s\" has a lease at %s: it is given to %s when the driver there has unregistered, or "
			"has sent nothing for %" PRIu64 " s",
			report->node_id, known->report.endpoint, report->endpoint,
			known->report.lease_ms / MS_PER_S);
	holder = find_holder(r, report);
	if (!holder || report->is_at_endpoint)
		return 0;
	return err_set(err, ERR_ABORTED,
		"node \"%s\" has a lease at %s: node \"%s\", which has registered from another address, can have that "
		"endpoint when the lease is over",
		holder->report.node_id, report->endpoint, report->node_id);
}

/* A node that calls from the endpoint is there. The node that had it before is not there any more, since
 * addresses of pods are given out again, or it never was. */
static void evict(struct registry *r, const struct node_report *report)
{
	const struct node *holder = find_holder(r, report);

	if (!holder)
		return;
	if (may_log(r))
		log_warn("the endpoint of a node is another node's now: its lease has ended",
			F_STR("node", holder->report.node_id), F_STR("endpoint", report->endpoint),
			F_STR("now", report->node_id));
	node_table_end(r->config.table, holder->report.node_id);
}

void registry_admit(struct registry *r, struct node_report *report)
{
	const struct node *live = node_table_get_live(r->config.table, report->node_id);
	const char *msg = news(node_table_get(r->config.table, report->node_id), report);

	if (!live || !str_eq(live->report.endpoint, report->endpoint))
		evict(r, report);
	if (strv_len(report->foreign) > 0 && msg && may_log(r))
		log_warn(
			"a node reports volumes whose IDs name another node: they are ignored, unless they are deleted "
			"while no node has that name",
			F_STR("node", report->node_id), F_STR("first", report->foreign[0]),
			F_U64("volumes", strv_len(report->foreign)));
	if (msg && may_log(r))
		log_info(msg, F_STR("node", report->node_id), F_STR("endpoint", report->endpoint),
			F_STR("version", report->version), F_U64("volumes", report->n_volumes),
			F_STR("inventory", report->has_inventory ? "yes" : "no"));
	node_table_put(r->config.table, report, registry_now(r));
}

static bool is_same_run(const struct node_report *report, const Registry__V0__UnregisterControllerRequest *m)
{
	return str_eq(report->instance, m->instance) && str_eq(report->endpoint, m->endpoint);
}

void registry_dismiss(struct registry *r, const Registry__V0__UnregisterControllerRequest *m)
{
	const struct node *node = node_table_get(r->config.table, m->node_id);

	if (!node || !node->live)
		return;
	if (!is_same_run(&node->report, m)) {
		if (may_log(r))
			log_info("a driver without the lease of its node has unregistered",
				F_STR("node", m->node_id), F_STR("endpoint", m->endpoint),
				F_STR("lease", node->report.endpoint));
		return;
	}
	if (may_log(r))
		log_info("node has unregistered", F_STR("node", m->node_id));
	node_table_end(r->config.table, m->node_id);
}

void registry_expire(struct registry *r, uint64_t now_ns)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(r->config.table, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (nodes[i]->live && now_ns >= nodes[i]->lease_until_ns && may_log(r))
			log_warn("lease of a node has expired: it was not renewed in time",
				F_STR("node", nodes[i]->report.node_id));
	}
	node_table_expire(r->config.table, now_ns);
}
