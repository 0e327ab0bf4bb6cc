/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics.h - what the driver serves for monitoring: its metrics in Prometheus' format, and whether it is
 * alive and ready.
 *
 * Names and labels are those of the Go driver 1.1 and of csi-lib-utils. Nothing here waits: amounts come from
 * the device view of volumes.h, and values in files from a sample that another thread has taken
 * (metrics_snapshot.h). `/healthz` and `<path>/simple` use nothing that a running call can lock, so that a
 * liveness probe fails only when the loop is stuck. They do not depend on whether the driver is ready, which
 * `/readyz` reports. Memory is bounded by the number of methods and status codes. Threads: the loop's.
 */
#pragma once

#include "net/core/cert_expiry.h"
#include "net/grpc/grpc_server.h"
#include "net/http1/http_server.h"
#include "pmem/device/device.h"
#include "probes.h"
#include "volume/volumes.h"

struct metrics;

/* The work of the driver at the moment. */
struct metrics_work {
	struct workers_usage workers;      /* for calls of all services, but for the next */
	struct workers_usage node_workers; /* for those of the CSI service Node alone; .max 0: it has none */
	struct device_activity devices;
	unsigned calls;
	unsigned connections;
	double refreshed_s; /* when devices were listed last, seconds since 1970; 0: never */
};

/* All borrowed. */
struct metrics_config {
	const char *path; /* "/metrics" */
	const char *version;
	const char *driver_name;
	const char *node_id;
	const char *regions_path; /* sysfs folder of the nvdimm bus; NULL: only what is managed is there */
	struct volumes *volumes;  /* NULL: of a controller */
	const struct grpc_service *services; /* whose calls are counted; ends with methods NULL */
	struct loop *loop;
	struct workers *threads;                            /* where files are read */
	void (*work)(void *user, struct metrics_work *ret); /* loop thread; must not wait */
	void *work_user;
	struct readiness ready;
	void (*add)(void *user, struct buf *out); /* more metrics; must not wait; NULL: none */
	void *add_user;
};

/** metrics_count_server() - add what @server has to do to @w; NULL has nothing. */
void metrics_count_server(const struct grpc_server *server, struct metrics_work *w);

/** metrics_certificates() - add what @certs knows, with the labels of all metrics. */
void metrics_certificates(const struct metrics *m, struct cert_expiry *certs, struct buf *out);

/** metrics_now_s() - seconds since 1970, for gauges that show when something was. */
double metrics_now_s(void);

/** metrics_new() - nothing is counted yet. Return: never NULL; metrics_free(). */
struct metrics *metrics_new(const struct metrics_config *config);

/** metrics_free() - after the servers that use it and when config.threads have ended. NULL is allowed. */
void metrics_free(struct metrics *m);

/**
 * metrics_serve() - serve the metrics, /healthz and /readyz over plain HTTP, also beyond this host: nothing
 * in it is confidential, as with the Go driver.
 * @listen: as http_server_listen()
 * @ret:    http_server_free(), also after a failure
 *
 * Return: 0, or -1 with the error of http_server_listen(), which names the flag.
 */
int metrics_serve(const struct metrics *m, struct loop *loop, const char *listen, struct http_server **ret,
	struct error **err) MUST_CHECK;

/** metrics_observer() - for gRPC servers of the same services. */
struct grpc_observer metrics_observer(struct metrics *m);
