/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_host.h - which devices the LVM of the host looks into, by the host's own configuration, under which
 * none of our commands runs (lvm_config.h). Read-only, for checks. Threads: none.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"
#include "base/span.h"

struct lvm_host {
	bool is_absent;         /* the host has no LVM */
	bool uses_devices_file; /* LVM looks only into the devices that are listed in it */
	char **global_filter;   /* strv: patterns, such as "r|^/dev/pmem|" */
	char **filter;          /* likewise */
};

/** lvm_host_done() - release what @h owns; safe on a zeroed one. */
void lvm_host_done(struct lvm_host *h);

/**
 * lvm_host_read() - ask LVM for the settings of the host.
 * @root: folder in which the root of the host is seen: "" on the host, or "/proc/1/root"
 * @ret:  lvm_host_done()
 *
 * Blocks for as long as lvmconfig(8) runs, at most 10 s. Return: 0, or -1 with ERR_PRECONDITION (there is no
 * program lvm here), ERR_INTERNAL (LVM's messages), ERR_DEADLINE.
 */
int lvm_host_read(const char *root, struct lvm_host *ret, struct error **err) MUST_CHECK;

/** lvm_host_parse() - read from what lvmconfig prints: lines "filter=[...]". Lines of other settings are left
 * out. @ret: lvm_host_done() */
void lvm_host_parse(struct span text, struct lvm_host *ret);

/** lvm_host_scans() - whether LVM looks into the block device at @path. The first pattern of a filter that
 * matches decides, and a path that matches none is accepted (lvm.conf(5)); links to the device are not
 * looked at. Patterns are taken for POSIX extended expressions, which those of LVM nearly are. */
bool lvm_host_scans(const struct lvm_host *h, const char *path);
