/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/propagation_check.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "os/mount_table.h"

#define KUBELET_DIR "/var/lib/kubelet"

static bool exists(const struct propagation_check_config *c, const char *path)
{
	CLEANUP(free_charp) char *full = x_asprintf("%s%s", c->root, path);

	return access(full, F_OK) == 0;
}

/* Whether mounts made at @place propagate; *@ret_target is the mount that decides. */
static bool propagates(const struct propagation_check_config *c, const char *place, const char **ret_target)
{
	CLEANUP(free_charp) char *full = x_asprintf("%s%s", c->root, place);
	CLEANUP(free_charp) char *resolved = realpath(full, NULL);

	*ret_target = "/";
	return resolved && mount_table_propagates(c->mounts, resolved, ret_target);
}

/* In a pod of the driver, two folders below kubelet's are mounts from the host, and kubelet's own folder is
 * none. */
static void check_folder(const struct propagation_check_config *c, const char *dir, struct node_findings *f)
{
	static const char *const used[] = {"pods", "plugins/kubernetes.io/csi"};
	const char *target = NULL;

	if (!exists(c, dir)) {
		node_findings_add(f, "kubelet-dir", NODE_NOTE,
			"%s does not exist: does kubelet use another folder?", dir);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
		CLEANUP(free_charp) char *below = x_asprintf("%s/%s", dir, used[i]);
		const char *place = exists(c, below) ? below : dir;
		if (propagates(c, place, &target))
			continue;
		node_findings_add(f, "kubelet-dir", NODE_PROBLEM,
			"%s: mounts created there are not propagated, so pods see empty folders: %s is not "
			"shared; in a pod set mountPropagation: Bidirectional for the volume, on the host "
			"use mount --make-rshared",
			place, target);
		return;
	}
	node_findings_add(f, "kubelet-dir", NODE_OK, "%s: mounts created there are propagated (%s is shared)",
		dir, target);
}

/* Without that, other volumes are served all the same. */
static void check_state(const struct propagation_check_config *c, struct node_findings *f)
{
	const char *target = NULL;

	if (!exists(c, c->state_path))
		return;
	if (propagates(c, c->state_path, &target))
		node_findings_add(f, "state-mounts", NODE_OK,
			"%s: mounts created there are propagated (%s is shared)", c->state_path, target);
	else
		node_findings_add(f, "state-mounts", NODE_NOTE,
			"%s: mounts created there are not propagated, so that no volumes for Kata Containers are "
			"made: %s is not shared; in a pod set mountPropagation: Bidirectional for the volume, on "
			"the host use mount --make-rshared",
			c->state_path, target);
}

void propagation_check(const struct propagation_check_config *config, struct node_findings *f)
{
	char *const *dirs = config->kubelet_dirs;

	if (!dirs || !dirs[0])
		check_folder(config, KUBELET_DIR, f);
	for (size_t i = 0; dirs && dirs[i]; i++)
		check_folder(config, dirs[i], f);
	if (config->state_path)
		check_state(config, f);
}

void propagation_check_warn(char *const *kubelet_dirs)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(mount_table_freep) struct mount_table *mounts = NULL;
	CLEANUP(node_findings_done) struct node_findings findings = {0};

	if (mount_table_read(&mounts, &err) < 0) {
		log_warn("cannot find out whether mounts reach the pods", F_ERR(err));
		return;
	}
	const struct propagation_check_config config = {
		.root = "", .kubelet_dirs = kubelet_dirs, .mounts = mounts};
	propagation_check(&config, &findings);
	for (size_t i = 0; i < findings.n; i++) {
		if (findings.list[i].level == NODE_PROBLEM)
			log_warn("mounts do not reach the pods", F_STR("reason", findings.list[i].text));
	}
}
