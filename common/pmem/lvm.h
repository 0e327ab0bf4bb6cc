/*
 * lvm.h - running LVM commands behind one seam, and reading their reports.
 *
 * Default runner: one long-lived `lvm` shell child that answers each command with one JSON document on
 * LVM_REPORT_FD. Fallback: one process per command. A fake for tests answers from a table. Every command is given
 * --config with no udev and a device filter that admits exactly the devices set with lvm_set_devices(), so that the
 * host's other volume groups are neither listed nor touched. Callers are serialised by the runner. Blocks as long as
 * LVM needs. Source: lvm(8) "shell", lvmreport(7), lvmdbusd's use of the shell.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define LVM_TIMEOUT_MS 120000

struct lvm_ops {
	/* argv without "lvm" and without common options; the JSON document is appended to report */
	int (*run)(void *self, const char *const argv[], const char *config, struct buf *report, int timeout_ms,
		struct error **err);
	void (*close)(void *self);
};

struct lvm;

/** lvm_open_shell() - the shell runner. @idle_ms: the child ends after that long without a command (0: never).
 * The child is started by the first command; if it cannot be used, commands run as by lvm_open_exec(), and that is
 * logged once. Return: never NULL; lvm_close(). */
struct lvm *lvm_open_shell(uint64_t idle_ms);

/** lvm_open_exec() - the process-per-command runner. */
struct lvm *lvm_open_exec(void);

/** lvm_open_with() - a runner of the caller (tests). @self is closed by ops->close. */
struct lvm *lvm_open_with(const struct lvm_ops *ops, void *self);

void lvm_close(struct lvm *l);
DEFINE_CLEANUP(struct lvm *, lvm_close);

/** lvm_idle() - end an idle shell child if its time is over; called from a timer. Never blocks on a busy runner. */
void lvm_idle(struct lvm *l);

/** lvm_set_devices() - the block devices that LVM may see from now on; copied. None: LVM sees nothing. */
void lvm_set_devices(struct lvm *l, const char *const *paths, size_t n);

/**
 * lvm_run() - run one command.
 * @argv:   NULL-terminated, operands after "--" where the command allows it
 * @report: JSON report appended when the command prints one; NULL to drop it
 *
 * Return: 0 when LVM says success, or -1 with ERR_INTERNAL (LVM's own messages, one line), ERR_EXHAUSTED (not enough
 * free extents), ERR_EXISTS (name in use), ERR_DEADLINE, ERR_UNAVAILABLE (the child died or answered garbage).
 */
int lvm_run(struct lvm *l, const char *const argv[], struct buf *report, struct error **err) MUST_CHECK;

struct lvm_pv {
	char *path;
	char *vg_name; /* "" when in none */
	char *vg_uuid;
	uint64_t size_bytes;
};

struct lvm_vg {
	char *name;
	char *uuid;
	uint64_t size_bytes;
	uint64_t free_bytes;
	uint64_t extent_bytes;
	unsigned missing_pvs;
};

struct lvm_lv {
	char *name;
	char *vg_uuid;
	char *vg_name;
	char *path; /* "/dev/vg/lv" */
	char **tags;
	uint64_t size_bytes;
	bool active;
};

struct lvm_report {
	struct lvm_pv *pvs;
	size_t n_pvs;
	struct lvm_vg *vgs;
	size_t n_vgs;
	struct lvm_lv *lvs;
	size_t n_lvs;
};

/** lvm_list() - PVs, VGs and LVs on the admitted devices. Return: 0, or -1 as lvm_run(). @ret: lvm_report_free(). */
int lvm_list(struct lvm *l, struct lvm_report **ret, struct error **err) MUST_CHECK;

/** lvm_report_parse() - the same from the JSON text of one report. Adds to @r. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int lvm_report_parse(struct span json, struct lvm_report *r, struct error **err) MUST_CHECK;
void lvm_report_free(struct lvm_report *r);
DEFINE_CLEANUP(struct lvm_report *, lvm_report_free);
