/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes without a lease time: Go drivers register once, so that they have to be asked whether they are there.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "nodes/node_inquiry.h"
#include "nodes/registry_private.h"

/* The node that @p asks, or NULL when it has moved, ended or become one with leases. */
static const struct node *node_of(const struct registry_polled *p)
{
	const struct node *node = node_table_get(p->registry->config.table, p->node_id);

	return node && node->live && node->report.lease_ms == 0 && str_eq(node->report.endpoint, p->endpoint)
		       ? node
		       : NULL;
}

static void polled_free(struct registry_polled *p)
{
	free(p->node_id);
	free(p->endpoint);
	free(p);
}

void registry_poll_add(struct registry *r, const struct node_report *report)
{
	struct registry_polled *p;

	for (p = r->polled; p; p = p->next) {
		if (str_eq(p->node_id, report->node_id) && str_eq(p->endpoint, report->endpoint))
			return;
	}
	p = x_calloc(1, sizeof(*p));
	p->registry = r;
	p->node_id = x_strdup(report->node_id);
	p->endpoint = x_strdup(report->endpoint);
	p->next_ns = registry_now(r) + REGISTRY_POLL_NS;
	p->next = r->polled;
	r->polled = p;
}

static void on_answer(void *user, struct node_report *report, const struct error *error)
{
	struct registry_polled *p = user;
	struct registry *r = p->registry;
	const struct node *node = node_of(p);

	p->asking = false;
	p->next_ns = registry_now(r) + REGISTRY_POLL_NS;
	if (!node) {
		node_report_free(report);
		return;
	}
	if (report) {
		p->failures = 0;
		/* it may have registered again meanwhile */
		report->bound = node->report.bound;
		node_table_put(r->config.table, report, registry_now(r));
		return;
	}
	log_debug("node without a lease time", F_STR("node", p->node_id), F_ERR(error));
	if (++p->failures >= REGISTRY_POLL_FAILURES)
		registry_lose(r, p->node_id, error);
}

static void poll(struct registry_polled *p, const struct node *node)
{
	struct node_report *report = x_calloc(1, sizeof(*report));
	const struct node_report *known = &node->report;

	report->node_id = x_strdup(known->node_id);
	report->endpoint = x_strdup(known->endpoint);
	report->device_mode = x_strdup(known->device_mode);
	report->version = x_strdup(known->version);
	report->boot_id = x_strdup(known->boot_id);
	report->instance = x_strdup(known->instance);
	report->bound = known->bound;
	p->asking = true;
	node_inquire(&p->registry->config.caller, report, REGISTRY_INQUIRY_MS, on_answer, p);
}

void registry_poll_tick(struct registry *r, uint64_t now_ns)
{
	for (struct registry_polled **at = &r->polled, *p; (p = *at) != NULL;) {
		const struct node *node = node_of(p);

		if (p->asking) {
			at = &p->next;
		} else if (!node) {
			*at = p->next;
			polled_free(p);
		} else {
			if (now_ns >= p->next_ns)
				poll(p, node);
			at = &p->next;
		}
	}
}

void registry_poll_free(struct registry *r)
{
	while (r->polled) {
		struct registry_polled *p = r->polled;

		r->polled = p->next;
		polled_free(p);
	}
}
