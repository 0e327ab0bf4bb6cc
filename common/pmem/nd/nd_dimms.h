/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_dimms.h - what memory modules say about themselves: flags that mean trouble, and how often they lost
 * power before everything was saved.
 *
 * Nothing is opened but sysfs and the control node of device-mapper; no lock of nd.h is taken. Threads: safe.
 * Blocks: sysfs. Source: drivers/acpi/nfit/core.c, flags_show(), id_show() and dirty_shutdown_show(), which
 * follow the NFIT of ACPI 6.x, "NVDIMM State Flags"; drivers/cxl/pmem.c, id_show() and dirty_shutdown_show():
 * modules of CXL have no flags.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/* Bits. */
enum dimm_problem {
	DIMM_SAVE_FAILED = 1,    /* "save_fail": what was stored before the last power loss was not saved */
	DIMM_RESTORE_FAILED = 2, /* "restore_fail": what was saved could not be read back */
	DIMM_FLUSH_FAILED = 4,   /* "flush_fail": the platform could not flush its buffers into it */
	DIMM_NOT_ARMED = 8,      /* "not_armed": it will not save at the next power loss; it is read-only */
	DIMM_HEALTH_EVENT = 16,  /* "smart_event": it has reported an event about its health */
	DIMM_MAP_FAILED = 32,    /* "map_fail": the firmware has not mapped it */
};

#define DIMM_PROBLEMS 6 /* how many there are: bits 0 to 5 */

/* The problems after which the content of the module is lost. */
#define DIMM_LOSSES (DIMM_SAVE_FAILED | DIMM_RESTORE_FAILED | DIMM_FLUSH_FAILED)

struct dimm {
	char *name; /* "nmem0": another one after each boot, maybe */
	char *id;   /* of the module itself; "": not known */
	unsigned problems;
	bool counts; /* it counts dirty shutdowns */
	uint64_t dirty_shutdowns;
	uint64_t rose_by; /* the count since the boot before this one: dirty_shutdowns.h; 0 here */
	bool is_cxl;      /* a device of CXL */
	char **regions;   /* that have a part of it: strv */
};

struct dimms {
	struct dimm *list;
	size_t n;
};

/** dimms_read() - list all modules. Without a bus there are none. A value that a module does not report
 * counts as no problem. Return: 0, or -1 with ERR_INTERNAL (sysfs cannot be read). @ret: dimms_done(). */
int dimms_read(struct dimms *ret, struct error **err) MUST_CHECK;

/**
 * dimms_find_below() - find the modules below a block device, which may be a mapped one.
 * @path:      of the device; one at which there is no block device has none below it
 * @ret_below: array of d->n, filled
 *
 * Return: 0, or -1 with ERR_INTERNAL.
 */
int dimms_find_below(const struct dimms *d, const char *path, bool *ret_below, struct error **err) MUST_CHECK;

/** dimms_dup() - a deep copy. @ret: dimms_done() */
void dimms_dup(const struct dimms *d, struct dimms *ret);

/** dimms_done() - release what @d owns; safe on a zeroed one. */
void dimms_done(struct dimms *d);

/** dimm_problem_name() - the kernel's word for problem number @i, below DIMM_PROBLEMS: "save_fail". */
const char *dimm_problem_name(unsigned i);

/** dimm_problems_text() - the kernel's words for @problems, with ", " between them. Return: caller frees. */
char *dimm_problems_text(unsigned problems);
