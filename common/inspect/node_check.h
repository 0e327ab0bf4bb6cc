/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_check.h - whether a node is set up so that volumes can be made, mounted and kept.
 *
 * By looking at sysfs, /dev, /etc, the mount table, the state folder and the beginnings of pool namespaces
 * alone, and at what its caller has read; no tool is run and nothing is changed. Threads:
 * none. Blocks on the file systems that it looks at.
 */
#pragma once

#include <sys/types.h>

#include "inspect/node_findings.h"
#include "os/mount_table.h"
#include "pmem/cxl/cxl_regions.h"
#include "pmem/lvm/lvm.h"
#include "pmem/lvm/lvm_host.h"
#include "pmem/nd/nd.h"
#include "pmem/nd/nd_dimms.h"
#include "pmem/pool/memory_advice.h"

struct inventory_counts;
struct region_durabilities;

struct node_check_config {
	const char *root; /* in front of all paths: "" on a real node */
	const char *mode; /* of the device manager: "lvm", "direct" or "fake" */
	const char *state_path;
	char *const *kubelet_dirs;           /* strv; NULL: /var/lib/kubelet */
	const char *direct_volumes_dir;      /* of entries for guests; NULL or "": not looked at */
	const struct mount_table *mounts;    /* borrowed */
	const struct nd_inventory *regions;  /* NULL: unknown */
	const struct lvm_report *groups;     /* NULL: unknown */
	const struct lvm_host *host_lvm;     /* settings of the host; NULL: unknown */
	const char *host_lvm_problem;        /* why they are; NULL: a container does not see them */
	const struct memory_advices *memory; /* NULL: unknown */
	const struct dimms *dimms;           /* NULL: unknown */
	const char *regions_problem;         /* why they are */
	const struct region_durabilities *durabilities; /* of regions; NULL: unknown */
	const struct cxl_findings *cxl;                 /* NULL: unknown */
	const char *cxl_problem;                        /* why they are; NULL: not looked at */
	uid_t user;                             /* that looks: what only root may see is unknown to others */
	pid_t holder;                           /* of the state folder; 0: none is seen */
	const char *not_ready;                  /* what a driver that was asked said; NULL: nothing */
	const struct inventory_counts *volumes; /* NULL: unknown */
	const char *volumes_problem;            /* why they are; NULL: not looked at */
};

/** node_check() - look at everything. @ret: node_findings_done(). Cannot fail. */
void node_check(const struct node_check_config *config, struct node_findings *ret);
