/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - finds every difference between the state folder (what is intended) and the kernel (what exists).
 *
 * Nothing is changed and no lock is taken, so that this is allowed while a driver runs; operations that are
 * in progress then show as differences. check_compare() is pure. Threads: none. Only check_view_read()
 * blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "os/loopdev.h"
#include "os/mount_table.h"
#include "pmem/device/device.h"
#include "volume/durability/region_durability.h"
#include "volume/state.h"

struct check_config {
	struct device_manager *devices; /* borrowed */
	const char *state_path;
	const char *fake_path; /* folder of fake devices, or NULL */
};

/** The state folder and the devices of the kernel, as they were read for the check. */
struct check_view {
	char *mode; /* of the device manager */
	char *state_path;
	char *fake_path; /* NULL: none */
	bool has_state;  /* the state folder exists */
	pid_t holder;    /* of the folder's lock: a driver that runs; 0: none */
	struct state_content state;
	struct region_durabilities durabilities; /* of regions, as far as they are known */
	struct device_list *devices;
	dev_t *numbers;             /* of the devices' nodes, in the same order; 0: there is none */
	struct media_errors *media; /* of the devices, in the same order; NULL: not known */
	char *media_failure;        /* why some of them are unknown; NULL: none is */
	struct mount_table *mounts;
	struct loop_list *loops;
	char **left_over; /* IDs of inline volumes whose pods are gone: strv */
};

/** check_view_read() - read the state folder and list devices, media errors, mounts and loop devices. Media
 * errors that cannot be found are no failure. Return: 0, or -1 as device_list_read(), state_load() and
 * mount_table_read().
 * @ret: check_view_done() */
int check_view_read(const struct check_config *config, struct check_view *ret, struct error **err) MUST_CHECK;

/** check_view_done() - release what @v owns; safe on a zeroed one. */
void check_view_done(struct check_view *v);

enum check_kind {
	CHECK_NO_STATE_FOLDER,
	CHECK_DAMAGED,
	CHECK_TWO_FILES,
	CHECK_TEMPORARY,
	CHECK_CREATING,
	CHECK_ERASING,
	CHECK_MISSING,
	CHECK_GONE,
	CHECK_IDENTITY,
	CHECK_SAME_NAME,
	CHECK_SIZE,
	CHECK_MODE,
	CHECK_INACTIVE,
	CHECK_RAW,
	CHECK_MEDIA_ERROR,
	CHECK_MEDIA_UNKNOWN,
	CHECK_NO_POOL_RECORD,
	CHECK_STRANGER,
	CHECK_FOREIGN,
	CHECK_POOL_INCOMPLETE,
	CHECK_STALE_STAGING,
	CHECK_STALE_TARGET,
	CHECK_LEFT_OVER,
	CHECK_UNKNOWN_MOUNT,
	CHECK_LOOP,
};

/** check_kind_name() - get the name of @kind, such as "device-without-state". */
const char *check_kind_name(enum check_kind kind);

struct check_finding {
	enum check_kind kind;
	bool is_note; /* expected, so not a mismatch: left by the Go driver or the other mode, or foreign */
	char *id;     /* of the volume, device or pool */
	char *text;   /* what differs, with both values */
	char *remedy; /* what can be done about it */
};

struct check_findings {
	struct check_finding *list;
	size_t n;
	size_t n_mismatches; /* findings that are not notes */
};

/** check_compare() - find all differences: first of state files, in the order of their IDs, then of devices,
 * mounts and loop devices. @ret: check_findings_done() */
void check_compare(const struct check_view *v, struct check_findings *ret);

/** check_record() - find the record of @id, borrowed, or NULL. */
const struct volume_record *check_record(const struct check_view *v, const char *id);

/** check_is_stale() - whether @r, whose device is @d (NULL: missing), is not mounted at @path, although it
 * is recorded to be. If the device of a mount there is unknown, the mount counts as that of @r. */
bool check_is_stale(
	const struct check_view *v, const struct volume_record *r, const char *path, const struct device *d);

/** check_staging_is_stale() - check_is_stale() for the staging path, where nothing is mounted for block
 * access. */
bool check_staging_is_stale(
	const struct check_view *v, const struct volume_record *r, const struct device *d);

/** check_is_stranger() - whether @d of the view has no state file and may be ours: see
 * volume_id_has_minted_form(). */
bool check_is_stranger(const struct check_view *v, const struct device *d);

/** check_is_damaged() - whether the problem @at of the view's state is a state file that cannot be read, of a
 * volume that has neither another file that is used nor an earlier problem. */
bool check_is_damaged(const struct check_view *v, size_t at);

/** check_claim() - get the claim of the volume @id as claim_text(), or its pod as claim_pod() if it is
 * inline. Return: caller frees; NULL: not known. */
char *check_claim(const struct check_view *v, const char *id);

/** check_findings_done() - release what @f owns; safe on a zeroed one. */
void check_findings_done(struct check_findings *f);
