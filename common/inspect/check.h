/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.h - what is intended compared with what exists: every difference between state folder and kernel.
 *
 * Looking changes nothing and takes no lock, so that it may be done while a driver runs; what that is in the
 * middle of then shows as a difference. check_compare() is pure. Threads: none. Only check_view_read()
 * blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "os/loopdev.h"
#include "os/mount_table.h"
#include "pmem/device/device.h"
#include "volume/state.h"

struct check_config {
	struct device_manager *devices; /* borrowed */
	const char *state_path;
	const char *fake_path; /* folder of fake devices, or NULL */
};

/** What there is. */
struct check_view {
	char *mode; /* of the device manager */
	char *state_path;
	char *fake_path; /* NULL: none */
	bool has_state;  /* the state folder exists */
	pid_t holder;    /* of its lock: a driver that runs; 0: none is seen */
	struct state_content state;
	struct device_list *devices;
	dev_t *numbers; /* of the devices' nodes, in the same order; 0: there is none */
	struct mount_table *mounts;
	struct loop_list *loops;
};

/** check_view_read() - look. Return: 0, or -1 as device_list_read(), state_load() and mount_table_read().
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
	CHECK_NO_POOL_RECORD,
	CHECK_STRANGER,
	CHECK_POOL_INCOMPLETE,
	CHECK_STALE_STAGING,
	CHECK_STALE_TARGET,
	CHECK_UNKNOWN_MOUNT,
	CHECK_LOOP,
};

/** check_kind_name() - such as "device-without-state". */
const char *check_kind_name(enum check_kind kind);

struct check_finding {
	enum check_kind kind;
	bool is_note; /* to be expected, so no mismatch: what the Go driver or the other device mode leaves */
	char *id;     /* of the volume, device or pool */
	char *text;   /* what differs, with both sides */
	char *remedy; /* what can be done about it */
};

struct check_findings {
	struct check_finding *list;
	size_t n;
	size_t n_mismatches; /* those that are no notes */
};

/** check_compare() - all differences: of state files, in the order of their IDs, then of devices, mounts and
 * loops. @ret: check_findings_done() */
void check_compare(const struct check_view *v, struct check_findings *ret);

/** check_is_stranger() - whether @d of the view is a device of ours that has no state file. */
bool check_is_stranger(const struct check_view *v, const struct device *d);

/** check_is_damaged() - whether the problem @at of the view's state is all that is known of a volume: one
 * whose file cannot be read. Another file of it that counts, or an earlier problem, speaks for it otherwise.
 */
bool check_is_damaged(const struct check_view *v, size_t at);

/** check_claim() - for whom the volume @id is, as claim_text(), or claim_pod() of an inline one. Return:
 * caller frees; NULL: not known. */
char *check_claim(const struct check_view *v, const char *id);

/** check_findings_done() - release what @f owns; safe on a zeroed one. */
void check_findings_done(struct check_findings *f);
