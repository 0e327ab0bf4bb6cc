/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry does to the table, and says of it in the log. */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "nodes/registry_private.h"

/* What has happened to @known when it registers as @report, or NULL. */
static const char *news(const struct node *known, const struct node_report *report)
{
	if (!known)
		return "node registered";
	if (!known->live)
		return "node is back";
	if (!str_eq(known->report.boot_id, report->boot_id))
		return "node was booted";
	if (!str_eq(known->report.version, report->version))
		return "node has another version";
	if (!str_eq(known->report.endpoint, report->endpoint))
		return "node has moved";
	return NULL;
}

static bool may_log(struct registry *r)
{
	return log_quota_take(r->log, clock_ns());
}

void registry_admit(struct registry *r, struct node_report *report)
{
	const char *msg = news(node_table_get(r->config.table, report->node_id), report);

	if (msg && may_log(r))
		log_info(msg, F_STR("node", report->node_id), F_STR("endpoint", report->endpoint),
			F_STR("version", report->version), F_U64("volumes", report->n_volumes),
			F_STR("inventory", report->has_inventory ? "yes" : "no"));
	if (report->lease_ms == 0)
		registry_poll_add(r, report);
	node_table_put(r->config.table, report, registry_now(r));
}

/* A driver without instance, such as the Go driver, does not name its endpoint here either. */
static bool is_same_run(const struct node_report *report, const Registry__V0__UnregisterControllerRequest *m)
{
	if (!str_eq(report->instance, m->instance))
		return false;
	return str_eq(report->endpoint, m->endpoint) || (str_empty(m->instance) && str_empty(m->endpoint));
}

void registry_dismiss(struct registry *r, const Registry__V0__UnregisterControllerRequest *m)
{
	const struct node *node = node_table_get(r->config.table, m->node_id);

	if (!node || !node->live)
		return;
	if (!is_same_run(&node->report, m)) {
		if (may_log(r))
			log_info("a driver that does not have the lease of its node has unregistered",
				F_STR("node", m->node_id), F_STR("endpoint", m->endpoint),
				F_STR("lease", node->report.endpoint));
		return;
	}
	if (may_log(r))
		log_info("node has unregistered", F_STR("node", m->node_id));
	node_table_end(r->config.table, m->node_id);
}

void registry_lose(struct registry *r, const char *node_id, const struct error *why)
{
	if (may_log(r))
		log_warn("node no longer answers", F_STR("node", node_id), F_ERR(why));
	node_table_end(r->config.table, node_id);
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
