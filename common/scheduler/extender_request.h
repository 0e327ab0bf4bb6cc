/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extender_request.h - the requests of kube-scheduler to an extender: ExtenderArgs and
 * ExtenderPreemptionArgs.
 *
 * Node objects, which may be megabytes, are neither decoded nor copied: a node is its name and the text of
 * its object, which a reply repeats unchanged. Keys are the names in Go's source, matched without regard to
 * case; if a key occurs twice, the last one counts (encoding/json). Threads: pure functions. Source:
 * k8s.io/kube-scheduler/extender/v1.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/span.h"

/* More nodes than the largest clusters have; each takes 48 bytes. */
#define EXTENDER_REQUEST_MAX_NODES (128u << 10)

struct extender_request_node {
	struct span name;   /* 1 to 253 bytes, decoded */
	struct span quoted; /* the name as the request writes it, with its quotes */
	struct span raw; /* the text of the Node object; of a request with names: as quoted; of a preemption:
			  * the node's MetaVictims */
};

struct extender_request {
	struct span pod;  /* the text of an object */
	bool has_objects; /* the request has Nodes; otherwise NodeNames. The reply has the same */
	struct extender_request_node *nodes;
	size_t n;
	size_t room;          /* in nodes */
	struct arena *copies; /* names that were written with escapes, and victims; NULL: no copies */
};

/**
 * extender_request_read() - parse a request.
 * @body: of the request; @ret points into it
 * @ret:  extender_request_done()
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT: not JSON, no pod, neither or both of Nodes and NodeNames, a
 * node without a name, more nodes than EXTENDER_REQUEST_MAX_NODES.
 */
int extender_request_read(struct span body, struct extender_request *ret, struct error **err) MUST_CHECK;

/**
 * extender_request_read_preemption() - parse a request about nodes from which pods would be evicted.
 * @body: of the request; @ret points into it
 * @ret:  extender_request_done(). Victims that came as whole pods are converted to the form of replies. A
 *        node without victims is left out, because kube-scheduler would treat it as an error in the reply
 *        (framework/preemption, callExtenders())
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT: not JSON, no pod, neither or both of NodeNameToVictims and
 * NodeNameToMetaVictims, a node without a name, a victim without a UID, more nodes than
 * EXTENDER_REQUEST_MAX_NODES.
 */
int extender_request_read_preemption(
	struct span body, struct extender_request *ret, struct error **err) MUST_CHECK;

/** extender_request_done() - release what @a holds; NULL is allowed. */
void extender_request_done(struct extender_request *a);
