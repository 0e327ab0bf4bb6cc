/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_registry.h - controllers that nodes register with, and the name that leads to them, on one loop.
 *
 * loop_look_up() is wrapped: what it finds is what the test says.
 */
#pragma once

#include "registry.pb-c.h"

#include "net/core/loop.h"
#include "net/core/workers.h"
#include "net/grpc/grpc_server.h"

#define MAX_ADDRESSES 4
#define MAX_HELD      4

/* One controller. */
struct registry_side {
	struct grpc_service services[2];
	struct grpc_server *server; /* NULL: it does not run */
	char endpoint[64];
	unsigned registered;   /* calls of RegisterController */
	unsigned unregistered; /* calls of UnregisterController */
	enum err_code refuse;  /* what RegisterController fails with; 0: it does not */
	bool hold;             /* calls are not answered until registry_release() */
	struct grpc_call *held[MAX_HELD];
	unsigned n_held;
	Registry__V0__RegisterControllerRequest *last; /* copy of what came last, or NULL */
	bool is_old;                                   /* does not know DescribePod */
	const char *runtime_class;                     /* of each pod; NULL: none */
	uint32_t fs_group;                             /* of all pods; 0: none */
	const char *fs_group_policy;
	enum err_code refuse_pods; /* what DescribePod fails with; 0: it does not */
	bool hold_pods;            /* DescribePod is not answered until registry_release_pods() */
	struct grpc_call *held_pods[MAX_HELD];
	unsigned n_held_pods;
	unsigned asked;  /* calls of DescribePod */
	char *asked_pod; /* "namespace/name/uid" of the last one */
	bool drained;
};

struct registry_rig {
	struct loop *loop;
	struct workers *workers;
	char *found[MAX_ADDRESSES + 1]; /* what the name leads to; none: it is not known */
	unsigned lookups;
};

extern struct registry_rig rig;

/** rig_open() and rig_close() - around each test; nothing runs yet. */
void rig_open(void);
void rig_close(void);

/** rig_until() - run the loop until @done(@user). */
void rig_until(bool (*done)(void *user), void *user);

/** rig_until_number() - run the loop until *@n is @wanted or more. */
void rig_until_number(const unsigned *n, unsigned wanted);

/** rig_until_set() - run the loop until *@flag. */
void rig_until_set(const bool *flag);

/** rig_rounds() - run the loop for a while, in which nothing is to happen. */
void rig_rounds(void);

/** registry_serve() - start @s, at the address where it was before if there is one. @tls and @handshakes:
 * NULL: plain. */
void registry_serve(struct registry_side *s, struct tls_context *tls, struct handshakes *handshakes);

/** registry_end() - stop @s; registry_forget(): and what it remembers goes. */
void registry_end(struct registry_side *s);
void registry_forget(struct registry_side *s);

/** registry_release() - answer the calls that are held. */
void registry_release(struct registry_side *s);
void registry_release_pods(struct registry_side *s);
