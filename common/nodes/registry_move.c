/* SPDX-License-Identifier: Apache-2.0 */
/* Registrations that cannot be taken at once: a live lease that changes its endpoint, a node that has to be
 * asked for its volumes. */
#include "csi.pb-c.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "nodes/node_inquiry.h"
#include "nodes/registry_private.h"

static bool is_go(const struct node_report *report)
{
	return report->lease_ms == 0 && !report->has_inventory;
}

/* An address that another node has by now says nothing about this one. */
static bool another_has(const struct registry *r, const struct node *node)
{
	const struct node *const *nodes;
	size_t n = node_table_nodes(r->config.table, &nodes);

	for (size_t i = 0; i < n; i++) {
		if (nodes[i] != node && nodes[i]->live &&
			str_eq(nodes[i]->report.endpoint, node->report.endpoint))
			return true;
	}
	return false;
}

/* Whether @report is about to take a lease away from another endpoint that may still be in use. */
static bool contends(const struct registry *r, const struct node *known, const struct node_report *report)
{
	return known && known->live && !str_eq(known->report.endpoint, report->endpoint) &&
	       !another_has(r, known);
}

enum registry_verdict registry_judge(const struct registry *r, const struct node_report *report)
{
	const struct node *known = node_table_get(r->config.table, report->node_id);

	if (contends(r, known, report))
		return REGISTRY_ASK;
	if (!is_go(report))
		return REGISTRY_TAKE;
	/* It registers again after each loss of its connection; it is asked all the time anyway. */
	return known && known->live && known->report.lease_ms == 0 && known->report.has_inventory &&
			       known->report.bound == report->bound &&
			       str_eq(known->report.endpoint, report->endpoint)
		       ? REGISTRY_NOTHING
		       : REGISTRY_ASK;
}

static void move_unlink(struct registry_move *m)
{
	struct registry *r = m->registry;

	for (struct registry_move **at = &r->moves; *at; at = &(*at)->next) {
		if (*at == m) {
			*at = m->next;
			r->n_moves--;
			return;
		}
	}
}

/* The end of @m: @err (taken) for the node, or what it has registered. */
static void move_end(struct registry_move *m, struct error *err)
{
	move_unlink(m);
	/* A caller that no longer waits may be a driver that is gone. */
	if (!err && m->report && grpc_call_is_wanted(m->call))
		registry_admit(m->registry, TAKE_PTR(m->report));
	grpc_call_finish(m->call, err);
	node_report_free(m->report);
	free(m->node_id);
	free(m->old_endpoint);
	free(m);
}

/* What the table says of @report after others were asked: it may have heard from the old endpoint meanwhile,
 * of a third one, or from a peer with the node's own certificate. */
static bool is_still_free(const struct registry_move *m, const struct node_report *report)
{
	const struct node *known = node_table_get(m->registry->config.table, m->node_id);

	if (!known || !known->live)
		return true;
	if (known->report.bound && !report->bound)
		return false;
	if (str_eq(known->report.endpoint, report->endpoint))
		return true;
	return str_eq(known->report.endpoint, m->old_endpoint) && known->registered_ns <= m->begin_ns;
}

static void refuse_late(const struct registry_move *m, struct error **err)
{
	err_set(err, ERR_ABORTED,
		"registry: node \"%s\" has registered differently while that was being checked", m->node_id);
}

static void on_inquired(void *user, struct node_report *report, const struct error *error)
{
	struct registry_move *m = user;
	struct error *err = NULL;

	m->report = report;
	if (error)
		err_set(&err, error->code, "registry: node \"%s\" was asked for its volumes: %s", m->node_id,
			error->msg);
	else if (!is_still_free(m, report))
		refuse_late(m, &err);
	move_end(m, err);
}

static void go_on(struct registry_move *m)
{
	if (!is_go(m->report)) {
		move_end(m, NULL);
		return;
	}
	node_inquire(&m->registry->config.caller, TAKE_PTR(m->report), REGISTRY_INQUIRY_MS, on_inquired, m);
}

static void on_probed(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct registry_move *m = user;
	struct error *err = NULL;

	(void)reply;
	if (error)
		log_debug("old endpoint of a node", F_STR("node", m->node_id), F_ERR(error));
	if (!error || error->code == ERR_CANCELLED)
		err_set(&err, ERR_ABORTED,
			"registry: node \"%s\" has a lease at %s, where a driver still answers: it is not "
			"taken over by %s",
			m->node_id, m->old_endpoint, m->report->endpoint);
	else if (!is_still_free(m, m->report))
		refuse_late(m, &err);
	if (err)
		move_end(m, err);
	else
		go_on(m);
}

static void probe_old(struct registry_move *m, const struct node *known)
{
	static const Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	const struct node_caller *caller = &m->registry->config.caller;

	caller->call(caller->self, known, "/csi.v1.Identity/Probe", &probe.base,
		&csi__v1__probe_response__descriptor, REGISTRY_PROBE_MS, on_probed, m);
}

static int check_alone(const struct registry *r, const char *node_id, struct error **err)
{
	for (const struct registry_move *m = r->moves; m; m = m->next) {
		if (str_eq(m->node_id, node_id))
			return err_set(err, ERR_ABORTED,
				"registry: another registration of node \"%s\" is being checked", node_id);
	}
	if (r->n_moves >= REGISTRY_MAX_MOVES || r->stopping)
		return err_set(
			err, ERR_UNAVAILABLE, "registry: too many nodes are being asked at the moment");
	return 0;
}

void registry_move(struct registry *r, struct node_report *report, struct grpc_call *call)
{
	const struct node *known = node_table_get(r->config.table, report->node_id);
	struct error *err = NULL;
	struct registry_move *m;

	if (check_alone(r, report->node_id, &err) < 0) {
		grpc_call_finish(call, err);
		node_report_free(report);
		return;
	}
	m = x_calloc(1, sizeof(*m));
	m->registry = r;
	m->call = call;
	m->report = report;
	m->node_id = x_strdup(report->node_id);
	if (known && known->live)
		m->old_endpoint = x_strdup(known->report.endpoint);
	m->begin_ns = registry_now(r);
	m->next = r->moves;
	r->moves = m;
	r->n_moves++;
	if (contends(r, known, report))
		probe_old(m, known);
	else
		go_on(m);
}
