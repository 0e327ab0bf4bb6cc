/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cert_expiry.h - when certificate files expire: for metrics, and for the log while there is time to act.
 *
 * Files are read once a minute on a worker's thread. A warning is logged for a certificate that expires
 * within 14 days and has less than a third of its lifetime left: at once, then daily, and when the file is
 * replaced by another such certificate. Threads: the loop's.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/prometheus.h"
#include "net/core/loop.h"
#include "net/core/workers.h"

struct cert_expiry;

struct cert_expiry_config {
	struct loop *loop; /* borrowed */
	struct workers *
		workers; /* borrowed; their owner waits for running work before it calls cert_expiry_free() */
	const char *const
		*cert_files; /* own chains: the certificate that expires first counts. NULL-terminated */
	const char *const *ca_files; /* authorities: the certificate that expires last counts, because old
					ones are kept beside new ones */
	int64_t (*now_s)(void);      /* since 1970; NULL: the clock's */
};

/** cert_expiry_new() - check the files at once, and then once a minute. Paths are copied; empty ones and
 * duplicates are left out. Return: never NULL; cert_expiry_free(). */
struct cert_expiry *cert_expiry_new(const struct cert_expiry_config *config);

/** cert_expiry_free() - release @w; NULL is allowed. */
void cert_expiry_free(struct cert_expiry *w);

/** cert_expiry_look() - check the files now, as is done each minute. Any thread, but one at a time. Blocks on
 * files. */
void cert_expiry_look(struct cert_expiry *w);

/** cert_expiry_metrics() - add a sample with the expiry time of each file that could be read. @labels: of all
 * samples, besides "file"; at most four. Never waits. */
void cert_expiry_metrics(struct cert_expiry *w, const struct prometheus_label *labels, struct buf *out);
