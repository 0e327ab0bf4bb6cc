/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutate_private.h - the walk over a request. Private to mutate*.c.
 */
#pragma once

#include "unit/csi/mutate.h"
#include "unit/csi/wire.h"

#define MUTATE_DEPTH_MAX 8

/* A message in the request; the first one is the request itself. */
struct mutate_level {
	const ProtobufCMessageDescriptor *type;
	const ProtobufCFieldDescriptor *field; /* that holds it */
	struct span body;                      /* in the valid request */
	bool present;                          /* there */
};

struct mutator {
	struct mutate_level levels[MUTATE_DEPTH_MAX];
	size_t depth; /* index of the current one */
	const ProtobufCFieldDescriptor *field;
	char *const *texts;
	variant_fn fn;
	void *user;
	struct buf body;    /* what the current message becomes */
	struct buf wrap[2]; /* it in its parents */
	char path[256];
};

/** mutate_rest() - begin a body: the current message without the current field. */
struct buf *mutate_rest(struct mutator *m);

/** mutate_whole() - begin a body: the current message as it is. */
struct buf *mutate_whole(struct mutator *m);

/** mutate_emit() - the body is complete. */
void mutate_emit(struct mutator *m, enum mutation kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/** mutate_string(), mutate_number() - values for the current field. */
void mutate_string(struct mutator *m);
void mutate_number(struct mutator *m);
