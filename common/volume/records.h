/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records.h - the volume records of a node: a table in memory, and the state store behind it.
 *
 * Records are copied out, changed, made durable, and swapped in: a caller that holds a volume's lock works on
 * a private copy, and readers never see a half-changed one. Changes of one volume are serialised by its lock.
 *
 * The records and the snapshot (snapshot.h) share one mutex, which is held for work in memory only. Whether a
 * volume is missing and whether a device is a stranger depends on both: a reader of both holds the mutex all
 * the time, so that a report shows each volume exactly once. A single mutex needs no locking order. Functions
 * whose results are borrowed require that the caller has the mutex; all others take it. Threads: safe. Blocks
 * on the disk where the return values refer to the state store.
 */
#pragma once

#include <pthread.h>

#include "volume/state.h"

/* What the records and the snapshot of one node share. */
struct volumes_shared {
	pthread_mutex_t mutex;
	void (*changed)(void *user); /* as in volumes_config */
	void *user;
};

/** volumes_changed() - report that records or what is seen of devices may have changed. Without the mutex. */
void volumes_changed(const struct volumes_shared *shared);

/* A volume that is being created: reported before it is recorded, so that a controller that starts in the
 * meantime, which knows nothing of the call, does not have it made elsewhere too. */
struct pending_creation {
	const struct volume_record
		*r; /* only what is never changed is read: ID, name, claim, made_by_controller */
	struct pending_creation *next;
};

struct records;

/* All that is recorded. Borrowed, for as long as the caller has the mutex. */
struct records_view {
	struct volume_record *const *list; /* sorted by ID */
	size_t n;
	const struct pending_creation *pending; /* some may be in `list` or `damaged` too */
	size_t n_pending;
	char *const *damaged; /* IDs whose state file could not be read: strv; some may be in `list` too */
	const char *no_room;  /* why the state folder takes no new volume; NULL: it does */
};

/** records_new() - an empty table without a store. @shared: borrowed. Return: never NULL; records_free(). */
struct records *records_new(struct volumes_shared *shared);

/** records_free() - release @t, and the state folder. NULL is allowed. */
void records_free(struct records *t);

/** records_open() - take the state folder at @path, unless that was done. Return: 0, or -1 as state_open().
 */
int records_open(struct records *t, const char *path, struct error **err) MUST_CHECK;

/** records_load() - read the open state folder. A record that licenses the destruction of its device is left
 * out while another file of the same volume is damaged, unless it is read @for_repair. Return: 0, or -1 as
 * state_load(). */
int records_load(struct records *t, bool for_repair, struct error **err) MUST_CHECK;

/** records_store() - the open state folder, for repairs of single files. */
struct state_store *records_store(const struct records *t);

/** records_find() - a copy of the record that @handle means: by ID, or by stored name if it is no ID of ours.
 * Return: volume_record_free(), or NULL. */
struct volume_record *records_find(struct records *t, const char *handle);

/** records_find_name() - a copy of the record whose stored name is @name, or NULL. */
struct volume_record *records_find_name(struct records *t, const char *name);

/** records_mounted_at() - the ID of the volume that is recorded to be staged or published at @path. @but: ID
 * of one that does not count, or NULL. Return: caller frees; NULL: none is. */
char *records_mounted_at(struct records *t, const char *path, const char *but);

/** records_page() - copies of ready records in order of their IDs, and the other parameters, as
 * volumes_list(). Return: array of *@ret_n, each volume_record_free(), the array free(). */
struct volume_record **records_page(
	struct records *t, const char *after, size_t max, size_t *ret_n, bool *ret_more);

/** records_view() - the whole table. The caller has the mutex. */
struct records_view records_view(const struct records *t);

/** records_has() - whether @id has a record. The caller has the mutex. */
bool records_has(const struct records *t, const char *id);

/** records_keep() - put a copy of @r in the place of the record with its ID, or add it; in memory. */
void records_keep(struct records *t, const struct volume_record *r);

/** records_save() - make @r durable and keep it. Return: 0, or -1 as state_put(). */
int records_save(struct records *t, const struct volume_record *r, struct error **err) MUST_CHECK;

/** records_advance() - durably move @r to phase @to and keep it. Return: 0, or -1 as state_advance(). */
int records_advance(
	struct records *t, struct volume_record *r, enum volume_phase to, struct error **err) MUST_CHECK;

/** records_drop() - durably forget @r. Return: 0, or -1 as state_remove(). */
int records_drop(struct records *t, const struct volume_record *r, struct error **err) MUST_CHECK;

/** records_begin() - report @a, from now on, as a volume that is being created. @a: borrowed until
 * records_end() */
void records_begin(struct records *t, struct pending_creation *a);

/** records_end() - take @a out: the volume is recorded, or is not made. */
void records_end(struct records *t, const struct pending_creation *a);

/** records_check_room() - look whether the state folder can record a further volume, and remember it for what
 * capacity is told. Return: 0, or -1 with ERR_EXHAUSTED. */
int records_check_room(struct records *t, struct error **err) MUST_CHECK;

/** records_note_room() - remember why the state folder takes no new volume. @no_room: NULL: it does. Return:
 * whether that is news. */
bool records_note_room(struct records *t, const char *no_room);
