/* SPDX-License-Identifier: Apache-2.0 */
/*
 * registry_private.h - inside of the registry. Private to registry*.c and node_inquiry.c.
 *
 * Threads: the loop's.
 */
#pragma once

#include "registry.pb-c.h"

#include "net/core/log_quota.h"
#include "nodes/registry.h"

/* What one registration may hold; a driver of ours never comes near. */
#define REGISTRY_MAX_NODES   20000
#define REGISTRY_MAX_NODE_ID 253
#define REGISTRY_MAX_TEXT    255
#define REGISTRY_MAX_REGIONS 256
#define REGISTRY_MAX_VOLUMES 10000
#define REGISTRY_MIN_LEASE_S 5
#define REGISTRY_MAX_LEASE_S 3600
#define REGISTRY_MAX_MOVES   1000

#define REGISTRY_PROBE_MS 3000

/* A node without a lease time is asked that often, and ends after that many failures in turn. */
#define REGISTRY_POLL_NS       30000000000ULL
#define REGISTRY_POLL_FAILURES 3
#define REGISTRY_INQUIRY_MS    10000

#define REGISTRY_MAX_WATCH_MS 60000
#define REGISTRY_MAX_WATCHERS 16
/* Changes come in crowds; watchers are notified of them together. */
#define REGISTRY_WATCH_DELAY_MS 20
/* Of a reply; but a node that is larger goes alone: with all that it may register it has less than
 * LIMIT_MESSAGE_BYTES. */
#define REGISTRY_WATCH_BYTES (1u << 20)

/* A registration that waits for an answer of the old or the new endpoint. */
struct registry_move {
	struct registry_move *next;
	struct registry *registry;
	struct grpc_call *call;
	struct node_report *report;
	char *node_id;
	char *old_endpoint; /* of a live lease at the beginning; NULL without one */
	uint64_t begin_ns;
};

/* A node without a lease time. */
struct registry_polled {
	struct registry_polled *next;
	struct registry *registry;
	char *node_id;
	char *endpoint;
	unsigned failures;
	bool asking;
	bool over; /* it is not the table's any more; goes when its answer has come */
	uint64_t next_ns;
};

struct registry_watch {
	struct registry_watch *next;
	struct grpc_call *call;
	const Registry__V0__WatchNodesRequest *request;
	Registry__V0__WatchNodesReply *reply;
	uint64_t until_ns;
};

struct registry {
	struct registry_config config;
	struct registry_move *moves;
	unsigned n_moves;
	struct registry_polled *polled;
	struct registry_watch *watches;
	unsigned n_watches;
	struct loop_timer *watch_timer;
	bool watch_due; /* the timer runs */
	bool stopping;
	struct log_quota *log;
};

/** registry_now() - of the table's clock. */
uint64_t registry_now(const struct registry *r);

/* registry_peer.c */

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

/** registry_check_scheduler() - whether the peer of @call may watch. Return: 0, or -1 with ERR_PERMISSION. */
int registry_check_scheduler(const struct grpc_call *call, struct error **err) MUST_CHECK;

/* registry_report.c */

/** registry_report_read() - check and copy @m. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the
 * field.
 * @ret: node_report_free(). */
int registry_report_read(const Registry__V0__RegisterControllerRequest *m, struct node_report **ret,
	struct error **err) MUST_CHECK;

/** registry_check_leaving() - Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the field. */
int registry_check_leaving(const Registry__V0__UnregisterControllerRequest *m, struct error **err) MUST_CHECK;

/* registry_admit.c */

/** registry_admit() - put @report (taken) into the table, and say in the log what is new about it. */
void registry_admit(struct registry *r, struct node_report *report);

/** registry_dismiss() - end the lease that @m describes. Nothing happens when the node's lease is another
 * one, or over. */
void registry_dismiss(struct registry *r, const Registry__V0__UnregisterControllerRequest *m);

/** registry_lose() - @node_id does not answer any more, as @why says. */
void registry_lose(struct registry *r, const char *node_id, const struct error *why);

/** registry_expire() - end the leases that are over at @now_ns. */
void registry_expire(struct registry *r, uint64_t now_ns);

/* registry_move.c */

enum registry_verdict {
	REGISTRY_TAKE,
	REGISTRY_ASK,     /* something has to be asked first: registry_move() */
	REGISTRY_NOTHING, /* all that it says is known, and more */
};

/** registry_judge() - what is to be done with @report. */
enum registry_verdict registry_judge(const struct registry *r, const struct node_report *report);

/** registry_move() - ask, then take @report (taken) or refuse it, and finish @call. */
void registry_move(struct registry *r, struct node_report *report, struct grpc_call *call);

/* registry_poll.c */

/** registry_poll_add() - @report of a node without a lease time was put into the table. */
void registry_poll_add(struct registry *r, const struct node_report *report);

/** registry_poll_tick() - ask those that it is time for at @now_ns. */
void registry_poll_tick(struct registry *r, uint64_t now_ns);

/** registry_poll_free() - forget them; nothing is being asked. */
void registry_poll_free(struct registry *r);

/* registry_watch.c */

/** registry_watch_start() - WatchNodes. */
void registry_watch_start(void *self, struct grpc_call *call, const void *request, void *reply);

/** registry_watch_init() - begin to look at the table. registry_watch_done(): end it; nobody waits. */
void registry_watch_init(struct registry *r);
void registry_watch_done(struct registry *r);

/** registry_watch_answer() - answer all whose time is over at @now_ns, or that have something to hear. */
void registry_watch_answer(struct registry *r, uint64_t now_ns);
