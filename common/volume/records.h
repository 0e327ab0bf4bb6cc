/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - the volume records of a node: a table in memory, and the state store behind it.
 *
 * Records are copied out, changed, made durable, and swapped in: a caller that holds a volume's lock works on
 * a private copy, and readers never see a half-changed one. Changes of one volume are serialised by its lock.
 *
 * The records and the device view (device_view.h) share one mutex, which is held for work in memory only.
 * Whether a volume is missing, and whether a device has no record, depends on both: a reader of both holds
 * the mutex all the time, so that a report shows each volume exactly once. A single mutex needs no locking
 * order. Functions whose comment says so must be called with the mutex held, and all others without it.
 * Threads: safe. Blocks on the disk where the return values refer to the state store.
 */
#pragma once

#include <pthread.h>

#include "volume/state.h"

/* The mutex and the callback that the records and the device view of one node share. */
struct volumes_shared {
	pthread_mutex_t mutex;
	void (*changed)(void *user); /* as in volumes_config */
	void *user;
};

/** volumes_changed() - report that the records or the devices seen may have changed. Without the mutex. */
void volumes_changed(const struct volumes_shared *shared);

/* A volume that is being created. It is reported before it is recorded, so that a controller that has just
 * started, and does not know of the call, does not create the volume on another node, too. */
struct pending_creation {
	const struct volume_record *r; /* only what is never changed is read: ID, name, claim,
					  made_by_controller, and what it is a snapshot of */
	uint64_t inline_bytes;         /* of an inline volume that was admitted: size of its device; else 0 */
	struct pending_creation *next;
};

struct inline_limits;

struct records;

/* All records. Borrowed, for as long as the caller has the mutex. */
struct records_view {
	struct volume_record *const *list; /* sorted by ID */
	size_t n;
	const struct pending_creation *pending; /* some may be in `list` or `damaged` too */
	size_t n_pending;
	char *const *damaged; /* IDs whose state file could not be read: strv; some may be in `list` too */
	const char *no_space; /* why the state folder lacks space for a new volume; NULL: it has space */
};

/** records_new() - an empty table without a store. @shared: borrowed. Return: never NULL; records_free(). */
struct records *records_new(struct volumes_shared *shared);

/** records_free() - release @t, and the state folder. NULL is allowed. */
void records_free(struct records *t);

/** records_open() - open and lock the state folder at @path, unless that was done; to be called before any
 * other thread uses @t. Return: 0, or -1 as state_open(). */
int records_open(struct records *t, const char *path, struct error **err) MUST_CHECK;

/** records_load() - read the open state folder. A record that allows the destruction of its device is left
 * out while another file of the same volume is damaged, except with @for_repair. Return: 0, or -1 as
 * state_load(). */
int records_load(struct records *t, bool for_repair, struct error **err) MUST_CHECK;

/** records_store() - get the open state folder, for repairs of single files; borrowed, and the same for the
 * life of @t once it is open. */
struct state_store *records_store(const struct records *t);

/** records_find() - copy the record with the ID @handle, or with that stored name if @handle does not have
 * the form of our IDs. Return: volume_record_free(), or NULL. */
struct volume_record *records_find(struct records *t, const char *handle);

/** records_find_name() - copy the record whose stored name is @name, or NULL. */
struct volume_record *records_find_name(struct records *t, const char *name);

/** records_mounted_at() - find the volume that is recorded as staged or published at @path, except @but,
 * which may be NULL. Return: its ID, caller frees; NULL: there is none. */
char *records_mounted_at(struct records *t, const char *path, const char *but);

/** records_page() - copy a page of the records that are @wanted, in order of their IDs. Other parameters: as
 * of volumes_list(). Return: array of *@ret_n, each volume_record_free(), the array free(). */
struct volume_record **records_page(struct records *t, bool (*wanted)(const struct volume_record *r),
	const char *after, size_t max, size_t *ret_n, bool *ret_more);

/** records_view() - get the whole table. The caller has the mutex. */
struct records_view records_view(const struct records *t);

/** records_has() - whether @id has a record. The caller has the mutex. */
bool records_has(const struct records *t, const char *id);

/** records_update_memory() - replace the record with the ID of @r by a copy of @r, or add it, in memory only.
 */
void records_update_memory(struct records *t, const struct volume_record *r);

/** records_save() - write @r durably, and then update it in memory. Return: 0, or -1 as state_put(). */
int records_save(struct records *t, const struct volume_record *r, struct error **err) MUST_CHECK;

/** records_save_until_boot() - likewise, but after a power cut the record may be the one before: for mounts,
 * which do not outlive a power cut either. Return: 0, or -1 as state_put(). */
int records_save_until_boot(struct records *t, const struct volume_record *r, struct error **err) MUST_CHECK;

/** records_advance() - durably change the phase of @r to @to, and then update it in memory. Return: 0, or -1
 * as state_advance(). */
int records_advance(
	struct records *t, struct volume_record *r, enum volume_phase to, struct error **err) MUST_CHECK;

/** records_remove() - durably remove @r. Return: 0, or -1 as state_remove(). */
int records_remove(struct records *t, const struct volume_record *r, struct error **err) MUST_CHECK;

/** records_begin() - report @a, from now on, as a volume that is being created. @a: borrowed until
 * records_end() */
void records_begin(struct records *t, struct pending_creation *a);

/** records_admit_inline() - count an inline volume that is about to be recorded, unless the inline volumes
 * that are recorded or admitted, with those in phase ERASING, would exceed @limits with it. @a: after
 * records_begin(), counted until records_end(); @size_bytes: of its device. Return: 0, or -1 with
 * ERR_EXHAUSTED, which names the flag. */
int records_admit_inline(struct records *t, struct pending_creation *a, uint64_t size_bytes,
	const struct inline_limits *limits, struct error **err) MUST_CHECK;

/** records_end() - stop reporting @a, because the volume is recorded or was not created. */
void records_end(struct records *t, const struct pending_creation *a);

/** records_check_space() - check whether the state folder has space for a further volume, and remember the
 * result, on which the reported capacity depends. Return: 0, or -1 with ERR_EXHAUSTED. */
int records_check_space(struct records *t, struct error **err) MUST_CHECK;

/** records_note_space() - remember why the state folder lacks space for a new volume. @no_space: NULL: it has
 * space. Return: whether this differs from what was remembered. */
bool records_note_space(struct records *t, const char *no_space);
