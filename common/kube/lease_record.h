/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease_record.h - a Lease as it was read, and whether another replica may take it. No clock, no requests.
 * Threads: one owner at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

struct lease_record {
	char *version;       /* resourceVersion; NULL: none was read yet */
	char *holder;        /* "": no holder */
	char *acquired;      /* since when the holder has it */
	uint32_t duration_s; /* how long it holds without a change */
	uint32_t transitions;
	struct buf metadata;  /* the metadata as read, which updates repeat */
	uint64_t observed_ns; /* when this version was seen first */
};

#define LEASE_RECORD ((struct lease_record){.metadata = BUF_INIT(64u << 10)})

/** lease_record_done() - release @l, and reset it to LEASE_RECORD. */
void lease_record_done(struct lease_record *l);

/** lease_record_read() - replace @l by the Lease in @json, read at @now_ns. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT; @l is unchanged then. */
int lease_record_read(
	struct lease_record *l, struct span json, uint64_t now_ns, struct error **err) MUST_CHECK;

/** lease_record_may_take() - whether @identity may take the Lease: it is the holder already, there is no
 * holder, or the holder has not renewed the Lease for its duration. */
bool lease_record_may_take(const struct lease_record *l, const char *identity, uint64_t now_ns);

/** lease_record_write() - append the JSON with which @identity takes or renews @l at the wall-clock time
 * @now. @l NULL: it creates the Lease @name in @namespace; @identity "": it releases the Lease. */
void lease_record_write(const struct lease_record *l, const char *namespace, const char *name,
	const char *identity, uint32_t duration_s, const char *now, struct buf *out);
