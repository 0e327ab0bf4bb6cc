/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile.h - runs every mutation of a request through what the server does with it: unpack within the
 * arena's limit, call the method, pack the reply. Judges the answer by the CSI specification, not by our
 * code.
 */
#pragma once

#include "net/grpc/grpc_service.h"
#include "unit/csi/mutate.h"

/* Is in the secrets of all valid requests, and must be nowhere else. */
#define HOSTILE_SECRET "correct horse battery staple"

struct hostile_rpc {
	const struct grpc_service *service;
	const char *path; /* "/csi.v1.Node/NodeStageVolume" */
	const ProtobufCMessage *valid;
	bool bytes;         /* also mutate_bytes() */
	char *const *texts; /* as of mutate_fields() */
	/* Variants that are left out; may be NULL. */
	bool (*skip)(const struct variant *v);
	size_t min; /* so many variants at least */
	/* Everything that a request can change, as text. Return: caller frees. */
	char *(*look)(void);
	/* Takes back what a request did that succeeded, so that look() says the same as before; may be NULL.
	 */
	void (*undo)(const void *reply);
};

/** hostile_run() - all of it; fails the test at the first answer that is wrong. Prints what was answered. */
void hostile_run(const struct hostile_rpc *rpc);

/** HOSTILE_SECRETS() - put HOSTILE_SECRET into the secrets of request @q, whose entries are @Entry. */
#define HOSTILE_SECRETS(q, Entry, entry_init)                                                                \
	do {                                                                                                 \
		static Entry entry_;                                                                         \
		static Entry *entries_[] = {&entry_};                                                        \
		static char key_[] = "token", value_[] = HOSTILE_SECRET;                                     \
		entry_init(&entry_);                                                                         \
		entry_.key = key_;                                                                           \
		entry_.value = value_;                                                                       \
		(q)->n_secrets = 1;                                                                          \
		(q)->secrets = entries_;                                                                     \
	} while (0)
