/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_concerns.h - what the duty volume_objects has to know of a volume besides its record: how long the
 * record has not changed, or, without a record, the handle that a node has reported.
 *
 * Only of volumes with which something is not as it should be. Threads: one owner; nothing blocks.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/name_index.h"
#include "base/slab.h"

struct concern {
	struct name_link link; /* by key */
	LIST_ENTRY(concern) all;
	char *handle;
	char *version; /* of the record that was seen; NULL: no record */
	uint64_t since_ns;
	uint64_t looked_ns; /* when its claim was looked for; 0: not yet */
	bool is_unwanted;   /* neither a claim nor a PersistentVolume was found */
	bool is_used;       /* a PersistentVolume with its handle was found */
	char key[];
};

struct volume_concerns {
	struct slabs *memory;
	struct name_index index;
	LIST_HEAD(, concern) all;
};

/** volume_concerns_init() - without any. volume_concerns_done(): release all. */
void volume_concerns_init(struct volume_concerns *c);
void volume_concerns_done(struct volume_concerns *c);

/** volume_concerns_find() - get the concern about the volume with @key, or NULL. */
struct concern *volume_concerns_find(const struct volume_concerns *c, const char *key);

/** volume_concerns_note() - that of the volume with @key (copied), which begins at @now_ns if it is new. */
struct concern *volume_concerns_note(struct volume_concerns *c, const char *key, uint64_t now_ns);

/** volume_concerns_note_handle() - likewise, with @handle (copied) that a node reports. */
void volume_concerns_note_handle(
	struct volume_concerns *c, const char *key, const char *handle, uint64_t now_ns);

/** volume_concerns_note_version() - likewise, with the @version (copied, may be NULL) of its record: another
 * one begins the time again. */
struct concern *volume_concerns_note_version(
	struct volume_concerns *c, const char *key, const char *version, uint64_t now_ns);

/** volume_concerns_free() - release @concern of @c. volume_concerns_forget(): that of the volume with @key,
 * if there is one. */
void volume_concerns_free(struct volume_concerns *c, struct concern *concern);
void volume_concerns_forget(struct volume_concerns *c, const char *key);
