/* SPDX-License-Identifier: Apache-2.0 */
/*
 * state.h - what is intended: one durable file per volume in the state folder.
 *
 * The phase is the file's suffix: <id>.creating -> <id>.json -> <id>.erasing -> gone, each step a durable
 * rename, so a Go driver after a roll-back, which reads *.json only, never serves a half-made or dying
 * volume. Content: the Go driver's keys (id, size, parameters) plus our own at top level; unknown keys are
 * kept. The folder's `.lock` is held for life. Threads: safe; the caller serialises changes of one volume by
 * its lock. Blocks on the disk.
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
	uint64_t size_bytes;      /* usable bytes; requested ones while creating */
	struct strmap parameters; /* the Go driver's: the given ones plus name and deviceMode */
	char *identity;           /* of the device; NULL in a file of the Go driver */
	char *pool;               /* uuid; NULL in a file of the Go driver until its device is seen */
	char *fs_type;            /* asked for at creation: "ext4", "xfs"; NULL unknown */
	char *fs_uuid; /* of the file system that we make: recorded before mkfs runs; NULL: none was begun */
	uint64_t erased_bytes; /* while erasing: so many from the start are zero, durably */
	bool block_clean;      /* every byte was zeroed before it was handed out: may be served as block */
	bool erased_raw;       /* that is, of the namespace without its mode */
	bool formatting;       /* as earlier versions recorded it: a mkfs on the empty device was begun */
	bool adopted;          /* written for a device that had no state: nothing is known of its content */
	bool ever_staged;
	bool staged_block;       /* for block access: nothing is mounted at the staging path */
	bool made_by_controller; /* made for the central controller, not for a provisioner on the node */
	char *staging_path;      /* canonical, while staged; else NULL */
	char **staged_flags; /* of the file system, as asked for at the mount: the kernel may drop some. strv
			      */
	char **targets;      /* canonical target paths that were published: strv */
	struct volume_claim claim; /* for whom it was made, as far as somebody has said so */
	char *unknown_json; /* members of keys that are not ours, as JSON text without braces; NULL none */
};

void volume_record_free(struct volume_record *r);
DEFINE_CLEANUP(struct volume_record *, volume_record_free);

/** volume_record_dup() - a deep copy. Return: volume_record_free(). */
struct volume_record *volume_record_dup(const struct volume_record *r);

struct state_store;

/**
 * state_open() - open (make, mode 0750) the state folder and take its lock.
 * @path: absolute folder; its parent must exist
 * @ret:  state_close()
 * Return: 0, or -1 with ERR_UNAVAILABLE (another driver holds the lock), ERR_NOT_FOUND (no parent),
 * ERR_INTERNAL.
 */
int state_open(const char *path, struct state_store **ret, struct error **err) MUST_CHECK;
/**
 * state_open_read() - open the state folder for state_load() alone: neither made nor locked, so that one may
 * look while a driver runs.
 * @path: absolute folder
 * @ret:  state_close()
 * Return: 0, or -1 with ERR_NOT_FOUND, ERR_INTERNAL.
 */
int state_open_read(const char *path, struct state_store **ret, struct error **err) MUST_CHECK;
void state_close(struct state_store *s);
DEFINE_CLEANUP(struct state_store *, state_close);

enum state_problem_kind {
	STATE_DAMAGED,   /* unreadable, or named after another volume */
	STATE_TWIN,      /* another file of the same volume counts; the ready one wins */
	STATE_TEMPORARY, /* what was about to be written when its writer was stopped */
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
	struct state_problem *problems; /* left as they are */
	size_t n_problems;
};

/** state_load() - read all volumes. One bad file hides no other; it is reported and left alone. Temporaries
 * of ours are removed, unless the folder is open for reading alone. Return: 0, or -1 with ERR_INTERNAL
 * (folder unreadable; memory or descriptors are short). @ret: state_content_done(). */
int state_load(struct state_store *s, struct state_content *ret, struct error **err) MUST_CHECK;

/** state_content_done() - release what @c owns; safe on a zeroed one. */
void state_content_done(struct state_content *c);

/** state_check_room() - whether the folder can take the file of a further volume, as far as its file system
 * says. Return: 0, or -1 with ERR_EXHAUSTED (full or read-only), ERR_INTERNAL. */
int state_check_room(const struct state_store *s, struct error **err) MUST_CHECK;

/** state_refuses() - whether @err, of state_put(), means that the disk of the folder is full, read-only or
 * failing.
 */
bool state_refuses(const struct error *err);

/** state_put() - write @r durably under its id and phase, creating or replacing. On failure the old one
 * stays, or the new one is there without being durable. Return: 0, or -1 with ERR_UNAVAILABLE (disk full,
 * read-only or failing), ERR_INTERNAL. */
int state_put(struct state_store *s, const struct volume_record *r, struct error **err) MUST_CHECK;

/** state_advance() - durably rename from @r's phase to @to, and set it in @r on success; content as it was
 * put. May be repeated after a failure, whatever that left. Return: 0, or -1 as file_rename_durable(). */
int state_advance(
	struct state_store *s, struct volume_record *r, enum volume_phase to, struct error **err) MUST_CHECK;

/** state_remove() - durably forget the file of @r in its phase; a missing one is success. Of one that is
 * being created, what a failed state_advance() left goes too. Return: 0, or -1 as file_unlink_durable(). */
int state_remove(struct state_store *s, const struct volume_record *r, struct error **err) MUST_CHECK;

/** state_set_aside() - durably rename @file, which state_load() found damaged, so that no driver reads it any
 * more; nothing is lost.
 * @ret_name: its new name, "<file>.damaged" or with a number behind; caller frees
 * Return: 0, or -1 as file_rename_durable(). */
int state_set_aside(struct state_store *s, const char *file, char **ret_name, struct error **err) MUST_CHECK;

/** state_remove_file() - durably remove @file, which state_load() found to be a twin or a temporary; a
 * missing one is success. Return: 0, or -1 as file_unlink_durable(). */
int state_remove_file(struct state_store *s, const char *file, struct error **err) MUST_CHECK;

/** state_holder() - the process that has the folder's lock, as far as /proc/locks shows it; 0: none is seen.
 * Return: 0, or -1 with ERR_INTERNAL. */
int state_holder(struct state_store *s, pid_t *ret, struct error **err) MUST_CHECK;

/** state_parse() and state_format() - the file's content; exposed for tests and `check`. @text: at most 64
 * KiB. */
int state_parse(struct span text, struct volume_record **ret, struct error **err) MUST_CHECK;
int state_format(const struct volume_record *r, struct buf *out, struct error **err) MUST_CHECK;
