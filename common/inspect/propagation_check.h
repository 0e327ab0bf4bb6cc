/* SPDX-License-Identifier: Apache-2.0 */
/*
 * propagation_check.h - whether mounts that are made in kubelet's folders propagate to the host, and thus
 * reach the pods; and those in the state folder, where the runtime of Kata Containers looks for images.
 *
 * A volume whose mount does not propagate looks like an empty folder to its pod, which then writes to the
 * disk below. The driver warns of that when it starts, and doctor shows it. Threads: none. Blocks on
 * kubelet's folders.
 */
#pragma once

#include "inspect/node_findings.h"

struct mount_table;

struct propagation_check_config {
	const char *root;                 /* in front of all paths: "" on a real node */
	char *const *kubelet_dirs;        /* strv; NULL: /var/lib/kubelet */
	const char *state_path;           /* NULL: it is not looked at */
	const struct mount_table *mounts; /* borrowed */
};

/** propagation_check() - add to @f a finding "kubelet-dir" for each folder, and a finding "state-mounts" if
 * there is a state folder. Cannot fail. */
void propagation_check(const struct propagation_check_config *config, struct node_findings *f);

/** propagation_check_warn() - log a warning for each of kubelet's folders in which mounts do not propagate,
 * and if that cannot be found out. @kubelet_dirs: strv; NULL: /var/lib/kubelet */
void propagation_check_warn(char *const *kubelet_dirs);
