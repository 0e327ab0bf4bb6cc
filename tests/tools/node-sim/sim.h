/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim.h - nodes that exist in memory only: each registers over a connection of its own with the code of the
 * real driver, and serves csi.v1 Identity and Controller at an address of its own of 127/8.
 */
#pragma once

#include <stdbool.h>

#include "net/core/workers.h"
#include "net/grpc/grpc_server.h"
#include "nodes/registration.h"

struct options {
	const char *registry;
	const char *ca_file, *cert_file, *key_file;
	const char *driver_name;
	const char *prefix;      /* of node IDs */
	uint32_t count;          /* nodes */
	uint32_t volumes;        /* that each node has at the start */
	uint64_t capacity_bytes; /* of each node, unless it has regions */
	char **region_sizes;     /* of each node; NULL: one region of capacity_bytes */
	uint64_t heartbeat_ms;
	uint64_t delay_ms; /* of CreateVolume and DeleteVolume */
	unsigned
		failure_rate; /* percent of them that end with UNAVAILABLE, every second one after the work */
	uint64_t health_ms;   /* interval after which the health of all volumes changes; 0: never */
	uint64_t run_ms;      /* 0: until a signal */
	uint32_t port;
	bool show_help;
};

/* The sizes of volumes are multiples of this, as with LVM, whose extents have this size. */
#define UNIT_BYTES (4ULL << 20)

struct volume {
	struct volume *next;
	char *id;
	char *name;
	uint64_t size_bytes;
	uint32_t region;
};

struct region {
	char *name;
	uint64_t total_bytes;
	uint64_t free_bytes;
};

struct node {
	struct sim *sim;
	char *id;
	char *endpoint;
	struct grpc_server *server;
	struct grpc_service services[4];
	struct registration *registration;
	struct volume *volumes;
	size_t n_volumes;
	struct region *regions;
	uint32_t n_regions;
	bool stopped;
};

struct sim {
	const struct options *options;
	struct loop *loop;
	struct workers *workers;
	struct handshakes *handshakes;
	struct tls_context *client_tls; /* NULL: plain */
	struct tls_context *server_tls;
	struct node *nodes;
	uint32_t n_nodes;
	uint64_t begin_ns;
	uint64_t all_registered_ns; /* 0: not yet */
	uint64_t created, deleted, failed;
	uint64_t refused; /* volumes for which there was no room */
	uint32_t calls;   /* of those that may fail */
	bool is_sick;     /* volumes report that their memory cannot be read */
	uint32_t ended;   /* nodes that have stopped */
};

/** node_add_regions() - empty ones, as the options say. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int node_add_regions(struct node *n, struct error **err) MUST_CHECK;

/** node_room() - the largest volume that can be made. @ret_free_bytes: of all regions. */
uint64_t node_room(const struct node *n, uint64_t *ret_free_bytes);

/** node_add_volume() - make it in the region with least room that has enough, as the driver does. Return:
 * NULL: there is none. */
struct volume *node_add_volume(struct node *n, const char *name, uint64_t size_bytes);

/** node_remove_volume() - if it is there. */
void node_remove_volume(struct node *n, const char *id);

/** node_find_volume() - by name, or by ID when @name is NULL. Return: NULL: it is not there. */
struct volume *node_find_volume(const struct node *n, const char *name, const char *id);

/** node_services() - set n->services. */
void node_services(struct node *n);

/** node_fill() - registration_config.fill. */
void node_fill(void *user, Registry__V0__RegisterControllerRequest *request, struct arena *arena);
