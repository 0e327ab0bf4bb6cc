/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cert_watch.h - when certificate files expire: for metrics, and for the log while there is time to act.
 *
 * Files are read once a minute on a worker's thread. A certificate that lasts less than 14 days and less than
 * a third of its life is warned of when that is first seen, once a day from then on, and when the file is
 * replaced by another such one. Threads: the loop's.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "base/prometheus.h"
#include "net/core/loop.h"
#include "net/core/workers.h"

struct cert_watch;

struct cert_watch_config {
	struct loop *loop;       /* borrowed */
	struct workers *workers; /* borrowed; waited for by their owner, before cert_watch_free() */
	const char *const
		*cert_files; /* own chains: the certificate that expires first counts. NULL-terminated */
	const char *const *
		ca_files; /* authorities: the one that lasts longest does, as old ones stay beside new ones */
	int64_t (*now_s)(void); /* since 1970; NULL: the clock's */
};

/** cert_watch_new() - look at the files at once, and then once a minute. Paths are copied; empty ones, and
 * what is there twice, are left out. Return: never NULL; cert_watch_free(). */
struct cert_watch *cert_watch_new(const struct cert_watch_config *config);

/** cert_watch_free() - release @w; NULL is allowed. */
void cert_watch_free(struct cert_watch *w);

/** cert_watch_look() - look at the files now, as is done each minute. Any thread, but one at a time. Blocks
 * on files. */
void cert_watch_look(struct cert_watch *w);

/** cert_watch_metrics() - add when each file expires; one that could not be read has no sample. @labels: of
 * all samples, besides "file"; at most four. Never waits. */
void cert_watch_metrics(struct cert_watch *w, const struct prometheus_label *labels, struct buf *out);
