/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extender_rig.h - what the scheduler extender serves, on a loopback port: objects come from the
 * test (fake_kube.h), which is also the client of the server.
 */
#pragma once

#include "scheduler/extender_service.h"
#include "scheduler/webhook_service.h"
#include "unit/kube/fake_kube.h"
#include "unit/unit.h"

#define RIG_DRIVER "pmem"
#define RIG_QPS    50
#define RIG_BURST  100

/* on their way at a time */
#define EXTENDER_RIG_MAX_PODS 3

struct extender_rig {
	struct loop *loop;
	struct kube_client *client;
	struct sched_nodes *nodes;
	struct reservations *reservations;
	struct cluster_view *cluster;
	struct extender_service *service; /* NULL before extender_rig_serve() */
	struct webhook_service *webhook;
	struct http_server *http; /* as service */
	struct http_route routes[5];
	struct http_call *call; /* that came last; gone when it is answered */
	size_t n_asked;
	size_t n_ended; /* by the service's observer */
	size_t n_failed;
	bool drained;
	uint32_t from; /* address from which the test connects, as INADDR_LOOPBACK; 0: any */
};

/** extender_rig_open() - all but what extender_rig_serve() makes. extender_rig_close(): end it, whatever is
 * open. */
void extender_rig_open(struct extender_rig *rig);
void extender_rig_close(struct extender_rig *rig);

/** extender_rig_serve() - begin to serve. */
void extender_rig_serve(struct extender_rig *rig);

/** extender_rig_sync() - the watches of Kubernetes' objects have shown all. */
void extender_rig_sync(struct extender_rig *rig);

/** extender_rig_put() - the object @json (taken) of the kind @what. */
void extender_rig_put(struct extender_rig *rig, const char *what, char *json);

/** extender_rig_node() - the object of a node with these regions; @b_gib 0: only one. */
void extender_rig_node(struct extender_rig *rig, const char *name, uint64_t a_gib, uint64_t b_gib);

/** extender_rig_remove_node() - the object of the node is gone. */
void extender_rig_remove_node(struct extender_rig *rig, const char *name);

/** extender_rig_drain() - end the server orderly. */
void extender_rig_drain(struct extender_rig *rig);

/** extender_rig_dial() - a connection. extender_rig_say(): POST @body to @path on it; @last: nothing follows.
 */
int extender_rig_dial(const struct extender_rig *rig);
void extender_rig_say(int fd, const char *path, const char *body, bool last);

/** extender_rig_round() - run the loop for a moment. */
void extender_rig_round(struct extender_rig *rig);

/** extender_rig_ask() - POST @body to @path. Return, as soon as it was looked at: a socket. */
int extender_rig_ask(struct extender_rig *rig, const char *path, const char *body);

/** extender_rig_hear() - all that comes until the server closes @fd, which is closed. Return: caller frees.
 */
char *extender_rig_hear(struct extender_rig *rig, int fd);
