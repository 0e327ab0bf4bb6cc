/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity_private.h - what capacity_objects.c (what there should be) and capacity_write.c (making it so)
 * share.
 */
#pragma once

#include "cluster/capacity_objects.h"
#include "cluster/class_room.h"
#include "cluster/kube/client.h"
#include "net/backoff.h"

#define LABEL_DRIVER  "csi.storage.k8s.io/drivername"
#define LABEL_MANAGER "csi.storage.k8s.io/managed-by"

/* Requests at once: enough to use up the rate that the client allows. */
#define CAPACITY_MAX_RUNNING 16

/* What there is and what should be for one node and class. */
struct capacity_slot {
	struct capacity_objects *owner;
	char *class_name;
	char *node_id;
	char *object; /* its name; NULL: there is none */
	char *version;
	struct class_room published;
	bool is_wanted;
	struct class_room wanted;
	bool queued;
	struct capacity_slot *next; /* in the queue */
	struct kube_request *request;
	struct backoff backoff;
	/* What we wrote: older states that the watch still brings are not looked at. */
	uint64_t wrote_until_ns;
};

/* An object that is nobody's: a second one, one that cannot be read, one of another publisher. */
struct capacity_stray {
	struct capacity_objects *owner;
	char *object;
	struct kube_request *request;
	struct backoff backoff;
};

struct capacity_objects {
	struct capacity_objects_config config;
	char *manager; /* value of LABEL_MANAGER */
	char *topology_key;
	char *selector;
	char *path;
	char *what_prefix; /* "csistoragecapacities <namespace>/" */
	struct kube_kind kind;
	struct informer *objects;
	bool leading;
	bool active; /* leading, and all lists are there */
	uint64_t start_ns;
	uint64_t looked_ns;           /* when all slots were looked at last */
	struct capacity_slot **slots; /* sorted by class and node; empty unless active */
	size_t n_slots;
	struct capacity_slot *queue_first;
	struct capacity_slot **queue_end;
	struct capacity_stray **strays;
	size_t n_strays;
	unsigned running;
	bool failing; /* told in the log */
};

/** capacity_now() - of the table's clock. */
uint64_t capacity_now(const struct capacity_objects *c);

/** capacity_settle() - find out what @slot should be, and write it if it is not. @slot may be freed. */
void capacity_settle(struct capacity_slot *slot);

/** capacity_adopt() - @object is that of @slot, or a second one, which goes. */
void capacity_adopt(struct capacity_slot *slot, const struct kube_capacity *object);

/** capacity_look_again() - take for the object's state what the watch brought last. */
void capacity_look_again(struct capacity_slot *slot);

/** capacity_differs() - whether @slot has to be written. */
bool capacity_differs(const struct capacity_slot *slot);

/** capacity_enqueue() - @slot has to be written; idempotent. */
void capacity_enqueue(struct capacity_slot *slot);

/** capacity_stray_add() - @object (its name) has to go; idempotent. */
void capacity_stray_add(struct capacity_objects *c, const char *object);

/** capacity_pump() - begin as many requests as may run. */
void capacity_pump(struct capacity_objects *c);

/** capacity_slot_free() - also while its request runs, which is given up; not while it is queued. */
void capacity_slot_free(struct capacity_slot *slot);

/** capacity_stray_free() - likewise. */
void capacity_stray_free(struct capacity_stray *stray);
