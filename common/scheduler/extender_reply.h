/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extender_reply.h - the replies of an extender to kube-scheduler: ExtenderFilterResult, HostPriorityList and
 * ExtenderPreemptionResult.
 *
 * Nodes are handed back in the form of the request and as they were written there. Threads: pure functions.
 * Source: k8s.io/kube-scheduler/extender/v1.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "scheduler/extender_request.h"

struct extender_verdicts {
	const bool *passes; /* one for each node of the request */
	/* append why node @i of the request fails */
	void (*explain)(void *user, size_t i, struct buf *out);
	void *user;
};

/**
 * extender_reply_filter() - append the reply to a filter request to @out; ask buf_check() afterwards.
 *
 * A node that fails is always among the FailedAndUnresolvableNodes. One among the FailedNodes would be tried
 * for preemption, where all filters of kube-scheduler itself pass without any victim, which it treats as an
 * error of the whole attempt (framework/preemption, DryRunPreemption()).
 */
void extender_reply_filter(
	const struct extender_request *args, const struct extender_verdicts *verdicts, struct buf *out);

/** extender_reply_preemption() - append the reply to a preemption request: the nodes that pass, with the
 * victims that they came with. */
void extender_reply_preemption(const struct extender_request *args, const bool *passes, struct buf *out);

/** extender_reply_error() - append the reply that fails the attempt as a whole; kube-scheduler tries the pod
 * again later. */
void extender_reply_error(const char *message, struct buf *out);

/** extender_reply_scores() - append the reply to a prioritize request. @scores: one for each node of the
 * request, 0 to 10. */
void extender_reply_scores(const struct extender_request *args, const int *scores, struct buf *out);
