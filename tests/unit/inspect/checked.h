/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checked.h - looking at the fixture's node with check.h, for tests.
 */
#pragma once

#include "inspect/check.h"
#include "unit/volume/fixture.h"

/** checked_look() - look and compare again; the driver may run or not. */
void checked_look(void);

/** checked_n() - mismatches of the last look. */
size_t checked_n(void);

/** checked_find() - the first finding of @kind about @id, or NULL. Stays until the next look. */
const struct check_finding *checked_find(enum check_kind kind, const char *id);

/** checked_only() - @kind about @id is the only mismatch, and there are no notes. */
void checked_only(enum check_kind kind, const char *id);

/** checked_done() - forget the last look. */
void checked_done(void);

/** checked_write() - a state file of our own driver: @suffix such as ".json"; @pool: number; @identity: NULL:
 * none */
void checked_write(
	const char *id, const char *suffix, const char *identity, size_t pool, uint64_t size_bytes);
