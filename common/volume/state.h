/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - the records of volumes on disk: one durable file per volume in the state folder.
 *
 * The phase is the file's suffix: <id>.creating -> <id>.json -> <id>.erasing -> no file, each step a durable
 * rename, so a Go driver after a roll-back, which reads *.json only, never serves a volume that is only
 * partly created or being erased. A snapshot that is ready is <id>.snapshot, which no pod uses and neither
 * the Go driver nor an earlier release reads. Content: the Go driver's keys (id, size, parameters) plus our
 * own at top level; unknown keys are kept. The folder's `.lock` is held until state_close(). Threads: safe;
 * the caller serialises changes of one volume by its lock. Blocks on the disk.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"
#include "base/strmap.h"
#include "volume/claim.h"
#include "volume/phase.h"

#define STATE_MAX_BYTES 65536 /* of one file */

struct volume_record {
	char *id;
	enum volume_phase phase;
	uint64_t size_bytes;     /* usable bytes; requested ones while creating */
	uint64_t resizing_bytes; /* to which its device is being grown; 0: it is not */
	char *source;            /* ID of the volume or snapshot of which it is a copy; NULL: none */
	bool source_is_snapshot; /* the source was a snapshot, and no volume */
	bool copy_shows;  /* its device shows when the copy is finished, which earlier versions did not see to
			   */
	bool copy_marked; /* its device was marked before anything was copied to it: copy_completion.h */
	bool snapshot;    /* it is a snapshot of the source: kept, and copied, but never used itself */
	uint64_t taken_s; /* of a snapshot: when the source was as it shows it, seconds since 1970 in UTC */
	char *group;      /* of a snapshot: ID of the group that it was taken with; NULL: none */
	uint64_t group_size;  /* number of snapshots in its group, with this one; 0: in no group */
	uint64_t image_bytes; /* size of the image for Kata Containers in it, which was made; 0: none yet */
	bool fsync_suffices;  /* durability=fsync: it needs no MAP_SYNC */
	bool direct;          /* its device is given to guests, and its file system not mounted on the host */
	char *direct_entry;  /* name of its entry in the folder of direct volumes, which may exist; NULL: none
			      */
	char *direct_device; /* path of the device that the entry names, or named last */
	char **sandboxes;    /* IDs of guests that were given the device, and may still have it: strv */
	char *sandbox_boot;  /* boot_id_read() when the entry was made or those were seen: no guest outlives
				that */
	bool freezing;       /* its file system is frozen, or may be: it is being copied */
	bool suspending;     /* its device is suspended, or may be: it is being copied */
	uint64_t erase_bytes_per_s; /* limit of its own for erasing it; 0: none */
	uint64_t copy_bytes_per_s;  /* likewise for copying it */
	char **modified;            /* keys of parameters that were changed after its creation: strv */
	struct strmap parameters;   /* the Go driver's: the given ones plus name and deviceMode */
	char *identity;             /* of the device; NULL in a file of the Go driver */
	char *pool;                 /* uuid; NULL in a file of the Go driver until its device is seen */
	char *fs_type;              /* requested at creation: "ext4", "xfs"; NULL: unknown */
	char *fs_uuid; /* of the file system that mkfs makes or a copy has in the end: recorded before that;
			* NULL: neither was begun */
	uint64_t erased_bytes;      /* while erasing: that many from the start are durably zero, or were never
				     * written */
	uint64_t written_end_bytes; /* while erasing: nothing from there on was written; 0: not known */
	bool block_clean;           /* every byte was zeroed before it was handed out: may be seen raw */
	bool erased_raw;            /* both count from the start of the namespace in raw mode */
	bool formatting; /* recorded by earlier versions only: mkfs was started on the empty device */
	bool adopted; /* the record was written for a device without a state file: its content is unknown */
	bool ever_staged;
	bool staged_block;       /* for block access or guests: nothing is mounted at the staging path */
	bool made_by_controller; /* made for the central controller, not for a provisioner on the node */
	char *staging_path;      /* canonical, while staged; else NULL */
	char **staged_flags;     /* mount flags as requested: the kernel may drop some; strv */
	char *staged_usage; /* with which it was mounted, if its usage has been changed since; NULL: as the
			       parameters say */
	char **targets;     /* canonical target paths that were published: strv */
	struct volume_claim claim; /* for which it was created, as far as callers have sent it */
	char *unknown_json; /* members with keys that are not ours, as JSON text without braces; NULL: none */
};

void volume_record_free(struct volume_record *r);
DEFINE_CLEANUP(struct volume_record *, volume_record_free);

/** volume_record_dup() - a deep copy. Return: volume_record_free(). */
struct volume_record *volume_record_dup(const struct volume_record *r);

/** volume_record_is_volume() - whether @r is what callers know as a volume: it is ready, and no snapshot. */
bool volume_record_is_volume(const struct volume_record *r);

/** volume_record_is_inline() - whether @r is an inline volume, which is deleted with its pod. */
bool volume_record_is_inline(const struct volume_record *r);

/** volume_record_may_hold_data() - whether @r was staged or published, or may have been, or was made as a
 * copy of a volume. */
bool volume_record_may_hold_data(const struct volume_record *r);

/** volume_record_is_foreign() - whether @r was written by an earlier version for a foreign device, which is
 * not ours in spite of that: see volume_id_has_minted_form(). */
bool volume_record_is_foreign(const struct volume_record *r);

/** volume_record_is_taken_over() - whether @r was created by the Go driver, which neither checked access
 * modes and mount flags nor recorded what it did. */
bool volume_record_is_taken_over(const struct volume_record *r);

/** volume_record_may_be_block() - whether @r may be used as a block volume: its device was zeroed, so that no
 * data of earlier volumes can be read, or was created by the Go driver, whose volumes are served unchanged.
 */
bool volume_record_may_be_block(const struct volume_record *r);

/** volume_record_is_block_only() - whether @r was created for block access only. No file system in it is
 * mounted: pods and guests may have written any content, such as an ext4 that asks the kernel to panic. */
bool volume_record_is_block_only(const struct volume_record *r);

/** volume_record_is_seen_raw() - whether pods or guests read the device of @r itself, as they do of block and
 * direct volumes, and not only files in it. Each of its bytes is zeroed before its first use, and so is what
 * it gains when it grows. */
bool volume_record_is_seen_raw(const struct volume_record *r);

struct state_store;

/**
 * state_open() - open the state folder, which is created with mode 0750 if it does not exist, and take its
 * lock.
 * @path: absolute folder; its parent must exist
 * @ret:  state_close()
 * Return: 0, or -1 with ERR_UNAVAILABLE (another driver holds the lock), ERR_NOT_FOUND (no parent),
 * ERR_INTERNAL.
 */
int state_open(const char *path, struct state_store **ret, struct error **err) MUST_CHECK;
/**
 * state_open_read() - open the state folder for state_load() alone: the folder is neither
 * created nor locked, so that this is allowed while a driver runs.
 * @path: absolute folder
 * @ret:  state_close()
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_INTERNAL.
 */
int state_open_read(const char *path, struct state_store **ret, struct error **err) MUST_CHECK;
void state_close(struct state_store *s);
DEFINE_CLEANUP(struct state_store *, state_close);

enum state_problem_kind {
	STATE_DAMAGED,   /* unreadable, or named after another volume */
	STATE_TWIN,      /* another file of the same volume is used instead; a ready one is preferred */
	STATE_TEMPORARY, /* a write that was interrupted */
};

struct state_problem {
	enum state_problem_kind kind;
	char *file;
	char *id; /* of a volume whose file could not be read, else NULL */
	char *reason;
	struct volume_record *record; /* STATE_TWIN: what the file says, else NULL */
};

struct state_content {
	struct volume_record **records; /* sorted by id */
	size_t n_records;
	struct state_problem *problems; /* their files are not changed */
	size_t n_problems;
};

/** state_load() - read all volumes. A bad file is reported and not changed, and the others are still read.
 * Temporary files of ours are removed, unless the folder is open for reading only. Return: 0, or -1 with
 * ERR_INTERNAL (folder unreadable; memory or descriptors are short). @ret: state_content_done(). */
int state_load(struct state_store *s, struct state_content *ret, struct error **err) MUST_CHECK;

/** state_content_done() - release what @c owns; safe on a zeroed one. */
void state_content_done(struct state_content *c);

/** state_file_is_ready() - whether @file has the name of a volume, or a snapshot, in phase READY.
 * state_file_is_snapshot(): of a snapshot in that phase. */
bool state_file_is_ready(const char *file);
bool state_file_is_snapshot(const char *file);

/** state_check_space() - whether the folder can take the file of a further volume, according to its file
 * system. Return: 0, or -1 with ERR_EXHAUSTED (full or read-only), ERR_INTERNAL. */
int state_check_space(const struct state_store *s, struct error **err) MUST_CHECK;

/** state_refuses() - whether @err, of state_put(), means that the disk of the folder is full, read-only or
 * failing.
 */
bool state_refuses(const struct error *err);

/** state_put() - write @r durably under its id and phase, creating or replacing. On failure the old
 * file stays, or the new one exists without being durable. Return: 0, or -1 with ERR_UNAVAILABLE (disk full,
 * read-only or failing), ERR_INTERNAL. */
int state_put(struct state_store *s, const struct volume_record *r, struct error **err) MUST_CHECK;

/** state_put_until_boot() - as state_put(), but after a power cut the record may be the one before, whole.
 * For changes that are void after a boot. */
int state_put_until_boot(struct state_store *s, const struct volume_record *r, struct error **err) MUST_CHECK;

/** state_advance() - durably rename the file from the phase of @r to @to, and set the phase in @r on
 * success; the content stays as state_put() has written it. May be repeated after any failure. Return: 0, or
 * -1 as file_rename_durable(). */
int state_advance(
	struct state_store *s, struct volume_record *r, enum volume_phase to, struct error **err) MUST_CHECK;

/** state_remove() - durably remove the file of @r in its phase; a missing file is success. In the phase
 * creating, a file that a failed state_advance() has left is removed, too. Return: 0, or -1 as
 * file_unlink_durable(). */
int state_remove(struct state_store *s, const struct volume_record *r, struct error **err) MUST_CHECK;

/** state_set_aside() - durably rename @file, which state_load() found damaged, so that no driver reads it
 * any more; its content is kept.
 * @ret_name: its new name, "<file>.damaged" or with a number appended; caller frees
 * Return: 0, or -1 as file_rename_durable(). */
int state_set_aside(struct state_store *s, const char *file, char **ret_name, struct error **err) MUST_CHECK;

/** state_read_file() - append the content of @file, which state_load() found damaged, to @ret. Return: 0, or
 * -1 as file_read(). */
int state_read_file(struct state_store *s, const char *file, struct buf *ret, struct error **err) MUST_CHECK;

/** state_remove_file() - durably remove @file, which state_load() found to be a twin or a temporary; a
 * missing one is success. Return: 0, or -1 as file_unlink_durable(). */
int state_remove_file(struct state_store *s, const char *file, struct error **err) MUST_CHECK;

/** state_holder() - find the process that holds the folder's lock, as far as /proc/locks shows it; 0: none.
 * Return: 0, or -1 with ERR_INTERNAL. */
int state_holder(struct state_store *s, pid_t *ret, struct error **err) MUST_CHECK;

/** state_parse() and state_format() - parse and write the content of a file; exposed for tests and `check`.
 * @text: at most 64 KiB. */
int state_parse(struct span text, struct volume_record **ret, struct error **err) MUST_CHECK;
int state_format(const struct volume_record *r, struct buf *out, struct error **err) MUST_CHECK;
