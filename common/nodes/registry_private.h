/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_private.h - inside of the registry. Private to registry*.c.
 *
 * Threads: the loop's.
 */
#pragma once

#include "registry.pb-c.h"

#include "net/core/log_quota.h"
#include "nodes/registry.h"

/* Limits for one registration, well above the needs of our own driver. */
#define REGISTRY_MAX_NODES   20000
#define REGISTRY_MAX_NODE_ID 253
#define REGISTRY_MAX_TEXT    255
#define REGISTRY_MAX_REGIONS 256
#define REGISTRY_MAX_VOLUMES 10000
#define REGISTRY_MIN_LEASE_S 5
#define REGISTRY_MAX_LEASE_S 3600
#define MS_PER_S             1000

struct registry {
	struct registry_config config;
	struct log_quota *log;
};

/** registry_now() - of the table's clock. */
uint64_t registry_now(const struct registry *r);

/* registry_authorize.c */

enum registry_standing {
	REGISTRY_IS_NODE,     /* its certificate says that it is that node */
	REGISTRY_IS_ANY,      /* it may be any node, and that suffices */
	REGISTRY_NEEDS_TOKEN, /* it may be any node, and has to prove which */
};

/** registry_check_node() - what the certificate of @call's peer says about speaking for @node_id. Return: 0,
 * or -1 with ERR_PERMISSION. */
int registry_check_node(const struct registry *r, const struct grpc_call *call, const char *node_id,
	enum registry_standing *ret, struct error **err) MUST_CHECK;

/** registry_has_lease() - whether endpoint and instance of @claim have the live lease of its node. */
bool registry_has_lease(const struct registry *r, const struct node_claim *claim);

/* registry_report.c */

/** registry_report_read() - check and copy @m. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the
 * field.
 * @ret: node_report_free(). */
int registry_report_read(const Registry__V0__RegisterControllerRequest *m, struct node_report **ret,
	struct error **err) MUST_CHECK;

/** registry_check_leaving() - Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the field. */
int registry_check_leaving(const Registry__V0__UnregisterControllerRequest *m, struct error **err) MUST_CHECK;

/** registry_check_asking() - Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the field. */
int registry_check_asking(const Registry__V0__DescribePodRequest *m, struct error **err) MUST_CHECK;

/* registry_admit.c */

/** registry_check_lease() - whether @report may have the lease of its node now, as registry.h says. Return:
 * 0, or -1 with ERR_ABORTED. */
int registry_check_lease(
	const struct registry *r, const struct node_report *report, struct error **err) MUST_CHECK;

/** registry_admit() - put @report (taken) into the table, and say in the log what is new about it. */
void registry_admit(struct registry *r, struct node_report *report);

/** registry_dismiss() - end the lease that @m describes. Nothing happens when the node's lease is another
 * one, or over. */
void registry_dismiss(struct registry *r, const Registry__V0__UnregisterControllerRequest *m);

/** registry_expire() - end the leases that are over at @now_ns. */
void registry_expire(struct registry *r, uint64_t now_ns);
