/* SPDX-License-Identifier: Apache-2.0 */
/*
 * liar.h - what a hostile node replies and reports: messages as an honest node would send them, of which
 * bytes of an input change each field. Bytes of zero leave the field as it is.
 *
 * Threads: one owner.
 */
#pragma once

#include "csi.pb-c.h"
#include "registry.pb-c.h"

#include "base/arena.h"
#include "base/error.h"
#include "base/span.h"

/* The facts about its victims that the node knows. */
struct liar {
	const char *node_id;
	const char *endpoint;
	const char *const *nodes; /* IDs, the last of which is that of the liar; as many as endpoints */
	const char *const *endpoints;
	size_t n_nodes;
	const char *const *names; /* of volumes and snapshots; the last is that of a group */
	size_t n_names;
};

/** liar_reply() - the reply to @request, in @arena, of @type or NULL with an error of the node. */
const ProtobufCMessage *liar_reply(const struct liar *l, struct span *in, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *type, struct arena *arena, struct error **err);

/** liar_report() - a registration, in @arena. @is_silent: it does not say which volumes there are */
const Registry__V0__RegisterControllerRequest *liar_report(
	const struct liar *l, struct span *in, bool is_silent, struct arena *arena);
