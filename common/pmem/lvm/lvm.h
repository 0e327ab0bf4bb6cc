/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm.h - runs LVM commands and reads their reports.
 *
 * Default runner: one long-lived `lvm` shell child that answers each command with one JSON document on
 * LVM_REPORT_FD. Fallback: one process per command. A fake for tests answers from a table. Every command runs
 * with a configuration of ours instead of the host's, without udev and with a device filter that admits
 * exactly the devices set with lvm_set_devices(), so that the host's other volume groups are neither listed
 * nor touched. A command that is too slow is asked to end but never killed; until it has ended, others fail.
 * The program ignores SIGPIPE. Callers are serialised by the runner. Threads: safe. Blocks as long as LVM
 * needs. Source: lvm(8) "shell", lvmreport(7), lvmdbusd's use of the shell.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

#define LVM_TIMEOUT_MS       120000
#define LVM_ANSWER_MAX_BYTES (16U << 20)
/* The shell drops a command of MAX_ARGS words, which is 64 (LVM's tools/tools.h); one is ours. */
#define LVM_WORDS_MAX 62

struct lvm_ops {
	/* argv without "lvm"; config is a whole lvm.conf but for its log section; the JSON document is
	 * appended to report */
	int (*run)(void *self, const char *const argv[], const char *config, struct buf *report,
		int timeout_ms, struct error **err);
	void (*idle)(void *self); /* called from time to time while no command runs; may be NULL */
	/* how often a process ended unexpectedly or was given up; any thread; may be NULL */
	uint64_t (*restarts)(void *self);
	void (*close)(void *self);
};

struct lvm;

/** lvm_open_shell() - the shell runner. @idle_ms: the child ends after that long without a command (0:
 * never); one that has let a volume grow ends after two seconds, since it keeps 16 MiB more. The first
 * command runs as with lvm_open_exec(), and the child is started after it; if it cannot be used, all commands
 * run that way, and that is logged once. Return: never NULL; lvm_close(). */
struct lvm *lvm_open_shell(uint64_t idle_ms);

/** lvm_open_exec() - the process-per-command runner. */
struct lvm *lvm_open_exec(void);

/** lvm_open_with() - a runner of the caller (tests). @self is closed by ops->close. */
struct lvm *lvm_open_with(const struct lvm_ops *ops, void *self);

void lvm_close(struct lvm *l);
DEFINE_CLEANUP(struct lvm *, lvm_close);

/** lvm_idle() - reap a shell child that has ended, and end one whose idle time is over, which a later call
 * then reaps; called from a timer. Waits neither for a busy runner nor for a process. */
void lvm_idle(struct lvm *l);

struct lvm_activity {
	char command[96]; /* that runs now: "lvm lvcreate"; "": none */
	uint64_t since_ns;
	uint64_t restarts; /* how often the shell child died, sent an invalid reply or was too slow */
};

/** lvm_activity() - what LVM does now. Never waits for a command. */
void lvm_activity(struct lvm *l, struct lvm_activity *ret);

/** lvm_set_devices() - the block devices that LVM may see from now on; copied. With none, LVM sees no device.
 * Paths with characters other than [A-Za-z0-9/_.+:@,=%-] are never seen. */
void lvm_set_devices(struct lvm *l, const char *const *paths, size_t n);

/**
 * lvm_set_backup_dir() - the existing folder in which LVM keeps a copy of a group's metadata, under the
 * group's name, after each change that it makes from now on; copied. NULL, as at first: nowhere.
 *
 * LVM replaces a copy atomically (temporary file, fsync, rename, fsync of the folder; _vg_write_file() and
 * _vg_commit_file_backup() of LVM's lib/format_text/format-text.c), and commands do not fail when a copy
 * cannot be written (vg_backup_if_needed() in its lib/metadata/vg.c).
 */
void lvm_set_backup_dir(struct lvm *l, const char *dir);

/**
 * lvm_run() - run one command.
 * @argv:   NULL-terminated, at most LVM_WORDS_MAX words without blanks, quotes, backslashes, '#' and control
 * characters
 * @report: JSON report appended when the command prints one; NULL to drop it
 *
 * The error code does not say why LVM refused: callers that need to know list the devices. Return: 0 when LVM
 * says success, or -1 with ERR_INTERNAL (LVM's own messages, one line), ERR_INVALID_ARGUMENT (argv cannot be
 * passed), ERR_DEADLINE (LVM_TIMEOUT_MS), ERR_UNAVAILABLE (the child died or sent an invalid reply, or an
 * earlier command is still running), ERR_PRECONDITION (no such program).
 */
int lvm_run(struct lvm *l, const char *const argv[], struct buf *report, struct error **err) MUST_CHECK;

/** lvm_set_timeout() - use another time limit than LVM_TIMEOUT_MS (tests). */
void lvm_set_timeout(struct lvm *l, int timeout_ms);

/* Option of vgchange(8) that activates all volumes, also those of lvchange -ky. */
#define LVM_ACTIVATE "-Kay"

/** lvm_activate() - activate the volumes of the groups @vg_names; none is success. Return: 0, or -1 as
 * lvm_run(). */
int lvm_activate(struct lvm *l, char *const *vg_names, struct error **err) MUST_CHECK;

struct lvm_pv {
	char *path; /* "[unknown]" when missing */
	char *uuid;
	char *vg_name; /* "" when in none */
	char *vg_uuid;
	uint64_t size_bytes;
	uint64_t withheld_bytes; /* free space that LVM does not allocate, after pvchange -xn */
	bool missing;
};

struct lvm_vg {
	char *name;
	char *uuid;
	uint64_t size_bytes;
	uint64_t free_bytes; /* without that of devices from which LVM does not allocate */
	uint64_t extent_bytes;
	uint64_t seqno;     /* version of its metadata, increased by each change; 0: unknown */
	uint64_t mda_bytes; /* size of its smallest metadata area, which holds two versions of the text; 0:
			       unknown */
	uint64_t mda_free_bytes; /* by how much the text may still grow */
	uint64_t max_lvs;        /* limit of vgchange --logicalvolume; 0: none */
	uint64_t more_lvs;       /* volumes until then */
	unsigned missing_pvs;
	char *system_id; /* lvmsystemid(7): of the machine that the group belongs to, which is not this one,
			    since our commands have none; "": it belongs to none */
	bool exported;   /* vgexport(8): LVM neither changes nor activates its volumes */
	bool is_limited; /* lvm_usable_find(): volumes may take the extents of @usable only, also if there are
			    none */
	char **usable;   /* "/dev/pmem0:0-99:200-299": strv */
	uint64_t bad_bytes; /* free space that is not part of @free_bytes because of media errors */
};

/* Extents of a PV that no volume has, and from which LVM allocates. */
struct lvm_free {
	char *pv_path;
	uint64_t start_bytes; /* where the first extent of the PV is on its device */
	uint64_t first;       /* in extents, from there */
	uint64_t n;
};

struct lvm_lv {
	char *name;
	char *uuid;
	char *vg_uuid;
	char *vg_name;
	char *path; /* "/dev/vg/lv" */
	char **tags;
	uint64_t size_bytes;
	bool active;
};

struct lvm_report {
	struct lvm_pv *pvs; /* sorted by path */
	size_t n_pvs;
	struct lvm_vg *vgs; /* sorted by uuid */
	size_t n_vgs;
	struct lvm_lv *lvs; /* sorted by name */
	size_t n_lvs;
	struct lvm_free *free;
	size_t n_free;
};

/** lvm_list() - PVs, VGs and LVs on the admitted devices. Return: 0, or -1 as lvm_run().
 * @ret: lvm_report_free(). */
int lvm_list(struct lvm *l, struct lvm_report **ret, struct error **err) MUST_CHECK;

/** lvm_report_parse() - the same from the JSON text of one report. Adds to @r, which is consistent in any
 * case. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int lvm_report_parse(struct span json, struct lvm_report *r, struct error **err) MUST_CHECK;

/** lvm_ranges_parse() - read from the JSON text of one report on which extents of which devices volumes lie,
 * as "/dev/pmem0:100-199". @ret: strv_free(). Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int lvm_ranges_parse(struct span json, char ***ret, struct error **err) MUST_CHECK;

/** lvm_answer_check() - check the result of a command in the log of a shell's answer. Return: 0 for success,
 * or -1 with ERR_INTERNAL (LVM's messages), ERR_UNAVAILABLE (no answer of LVM's shell). */
int lvm_answer_check(struct span answer, struct error **err) MUST_CHECK;

/** lvm_vg_is_withheld() - whether LVM neither changes @vg nor activates its volumes, although its devices may
 * all be there. */
bool lvm_vg_is_withheld(const struct lvm_vg *vg);

/** lvm_vg_obstacle() - why LVM refuses to change @vg or to activate all its volumes: it is exported, another
 * machine's or incomplete, and what to do. Return: caller frees; NULL: there is no reason. */
char *lvm_vg_obstacle(const struct lvm_vg *vg);

/** lvm_report_pv() - the PV at @path, or NULL. */
const struct lvm_pv *lvm_report_pv(const struct lvm_report *r, const char *path);

void lvm_report_free(struct lvm_report *r);
DEFINE_CLEANUP(struct lvm_report *, lvm_report_free);

/**
 * lvm_group_exists() - whether any device of the host belongs to a volume group called @name.
 *
 * This is the only command that may see all devices; it only reads (vgs --readonly). For use before a group
 * is made.
 * Return: 0, or -1 as lvm_run().
 */
int lvm_group_exists(struct lvm *l, const char *name, bool *ret, struct error **err) MUST_CHECK;
