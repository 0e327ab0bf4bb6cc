/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_health.h - looks at the health of a node's volumes again and again, on a thread of its own, and shows
 * it in the metrics.
 *
 * A look that takes long, since file systems hang, delays only the next one. Threads: the loop's.
 */
#pragma once

#include "base/buf.h"
#include "base/cleanup.h"
#include "net/core/loop.h"
#include "net/core/workers.h"
#include "volume/volumes.h"

/* All borrowed. */
struct node_health_config {
	struct loop *loop;
	struct workers *threads; /* has one to spare for this */
	struct volumes *volumes;
	const char *driver_name;
	const char *node_id;
};

struct node_health;

/** node_health_new() - begin to look. Return: never NULL; node_health_free(). */
struct node_health *node_health_new(const struct node_health_config *config);

/** node_health_stop() - begin no further look. NULL is allowed. */
void node_health_stop(struct node_health *h);

/** node_health_free() - to be called when the threads have ended. NULL is allowed. */
void node_health_free(struct node_health *h);

/** node_health_metrics() - append how many volumes have which trouble. */
void node_health_metrics(const struct node_health *h, struct buf *out);
