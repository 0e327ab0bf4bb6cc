/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/node_check.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "inspect/inventory.h"
#include "inspect/node_findings.h"
#include "inspect/propagation_check.h"
#include "os/file.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_lost_pvs.h"
#include "volume/direct/direct_folder.h"
#include "volume/durability/region_durability.h"

#define STATE_MIN_BYTES (16ULL << 20) /* some thousand state files with their temporaries */
#define SMALL_FILE_MAX  4096
/* Advice how regions of persistent memory are made. */
#define MEMORY_REMEDY                                                                                        \
	"NVDIMMs: ipmctl create -goal PersistentMemoryType=AppDirect and a reboot; CXL: cxl create-region; " \
	"for a trial: memmap=4G!4G on the kernel's command line, and then pmem-ns-init create -unlabelled=convert"
#define LVM_LOCKS "/run/lock/lvm" /* global/locking_dir of lvm.conf(5) */

struct look {
	const struct node_check_config *config;
	struct node_findings *f;
};

static bool exists(const struct look *l, const char *path)
{
	CLEANUP(free_charp) char *full = x_asprintf("%s%s", l->config->root, path);

	return access(full, F_OK) == 0;
}

static bool is_fake(const struct look *l)
{
	return str_eq(l->config->mode, "fake");
}

static bool is_root(const struct look *l)
{
	return l->config->user == 0;
}

static void check_user(struct look *l)
{
	if (!is_root(l))
		node_findings_add(l->f, "user", NODE_UNKNOWN,
			"this is uid %u, but some checks need root: run it as root",
			(unsigned)l->config->user);
}

static void check_sys(struct look *l)
{
	CLEANUP(free_charp) char *sys = x_asprintf("%s/sys", l->config->root);
	struct statvfs st;

	if (statvfs(sys, &st) < 0 || (st.f_flag & ST_RDONLY))
		node_findings_add(l->f, "sys-writable", NODE_PROBLEM,
			"/sys is read-only: namespaces cannot be created or destroyed; the container must be "
			"privileged, or the host's /sys must be mounted into it");
	else if (!is_root(l))
		node_findings_add(l->f, "sys-writable", NODE_UNKNOWN,
			"only root can find out whether /sys is writable");
	else
		node_findings_add(l->f, "sys-writable", NODE_OK, "/sys is writable");
}

static void check_nd(struct look *l)
{
	const struct nd_inventory *inv = l->config->regions;

	if (!exists(l, "/sys/bus/nd"))
		node_findings_add(l->f, "libnvdimm", NODE_PROBLEM,
			"/sys/bus/nd does not exist: the module libnvdimm is not loaded, or there is no "
			"persistent memory: modprobe nd_pmem; " MEMORY_REMEDY);
	else if (!inv)
		node_findings_add(l->f, "libnvdimm", is_root(l) ? NODE_PROBLEM : NODE_UNKNOWN,
			"regions cannot be listed: %s",
			l->config->regions_problem ? l->config->regions_problem : "unknown reason");
	else if (inv->n_regions == 0)
		node_findings_add(l->f, "libnvdimm", NODE_PROBLEM,
			"the kernel shows no region of persistent memory: " MEMORY_REMEDY);
	else
		node_findings_add(l->f, "libnvdimm", NODE_OK, "the kernel shows %zu regions", inv->n_regions);
}

static bool is_readonly(const struct look *l, const char *block_path)
{
	const char *slash = strrchr(block_path, '/');
	CLEANUP(free_charp)
	char *path = x_asprintf("%s/sys/class/block/%s/ro", l->config->root, slash ? slash + 1 : block_path);
	CLEANUP(buf_done) struct buf text = BUF_INIT(SMALL_FILE_MAX);
	CLEANUP(error_freep) struct error *ignored = NULL;

	return file_read(AT_FDCWD, path, &text, &ignored) == 0 && str_starts(buf_str(&text), "1");
}

static void check_readonly(struct look *l, const struct nd_region *r)
{
	for (size_t i = 0; i < r->n_namespaces; i++) {
		const char *path = r->namespaces[i].block_path;
		if (path && !r->readonly && is_readonly(l, path))
			node_findings_add(l->f, "region", NODE_PROBLEM,
				"%s in %s is read-only: no volume is created on it, and existing volumes are "
				"not mounted for writing (blockdev --setrw makes it writable, unless the "
				"DIMM is faulty)",
				path, r->name);
	}
}

/* Why no volume is made in a region. */
static void check_regions(struct look *l)
{
	const struct nd_inventory *inv = l->config->regions;

	for (size_t i = 0; inv && i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];

		if (!r->is_pmem)
			continue;
		if (!r->enabled)
			node_findings_add(l->f, "region", NODE_PROBLEM,
				"%s on %s is disabled: no volume is created in it, and existing volumes are "
				"missing (ndctl enable-region %s)",
				r->name, r->bus, r->name);
		if (r->readonly)
			node_findings_add(l->f, "region", NODE_PROBLEM,
				"%s on %s is read-only: no volume is created in it, and existing volumes are "
				"not mounted for writing (echo 0 >/sys/bus/nd/devices/%s/read_only makes it "
				"writable, unless the DIMM is faulty)",
				r->name, r->bus, r->name);
		if (r->refused)
			node_findings_add(l->f, "region", NODE_PROBLEM,
				"%s on %s: no namespace is created in it: %s", r->name, r->bus, r->refused);
		check_readonly(l, r);
	}
}

/* Memory of other owners is no problem where there is memory for volumes. */
static bool has_usable_region(const struct nd_inventory *inv)
{
	for (size_t i = 0; inv && i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];
		if (r->is_pmem && r->enabled && r->has_labels)
			return true;
		for (size_t k = 0; k < r->n_namespaces; k++)
			if (nd_is_own(&r->namespaces[k]))
				return true;
	}
	return false;
}

static void check_memory(struct look *l)
{
	const struct memory_advices *all = l->config->memory;
	enum node_level level = has_usable_region(l->config->regions) ? NODE_NOTE : NODE_PROBLEM;

	for (size_t i = 0; all && i < all->n; i++) {
		const struct memory_advice *a = &all->list[i];
		/* check_regions() has named these */
		if (a->action == MEMORY_NOTHING ||
			(a->region && (!a->region->enabled || a->region->readonly)))
			continue;
		CLEANUP(free_charp) char *line = memory_advice_line(a);
		node_findings_add(l->f, "memory", level, "%s", line);
	}
}

/* Not a problem: the memory is as it is, and programs can know it. */
static void check_durability(struct look *l)
{
	const struct nd_inventory *inv = l->config->regions;

	for (size_t i = 0; inv && l->config->durabilities && i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];

		if (r->is_pmem &&
			region_durabilities_of(l->config->durabilities, r->identity) == DURABILITY_FSYNC)
			node_findings_add(l->f, "durability", NODE_NOTE,
				"the kernel refuses MAP_SYNC on %s: what programs store through mappings is "
				"durable after fsync only, and no volumes with usage=AppDirect are created "
				"in it, except by a StorageClass with durability=fsync",
				r->name);
	}
}

static void check_cxl(struct look *l)
{
	static const enum node_level levels[] = {[CXL_AS_RECORDED] = NODE_OK,
		[CXL_NOT_RECORDED] = NODE_NOTE,
		[CXL_MISSING] = NODE_PROBLEM,
		[CXL_PROBLEM] = NODE_PROBLEM};
	const struct cxl_findings *f = l->config->cxl;

	if (l->config->cxl_problem)
		node_findings_add(l->f, "cxl-region", is_root(l) ? NODE_PROBLEM : NODE_UNKNOWN,
			"CXL memory cannot be looked at: %s", l->config->cxl_problem);
	for (size_t i = 0; f && i < f->n; i++)
		node_findings_add(l->f, "cxl-region", levels[f->list[i].kind], "%s", f->list[i].text);
}

static void check_dimm(struct look *l, const struct dimm *d)
{
	CLEANUP(free_charp) char *problems = dimm_problems_text(d->problems);

	if (d->problems & DIMM_LOSSES)
		node_findings_add(l->f, "dimm", NODE_PROBLEM,
			"memory module %s (%s) has lost content at the last shutdown or start (%s): check what "
			"is in the volumes on it; one that does so again should be replaced (ndctl list -DH)",
			d->name, d->id, problems);
	else if (d->problems)
		node_findings_add(l->f, "dimm", NODE_PROBLEM,
			"memory module %s (%s) reports %s: ndctl list -DH shows its health; one that is "
			"not_armed saves nothing when the power fails",
			d->name, d->id, problems);
	if (d->rose_by > 0)
		node_findings_add(l->f, "dimm", NODE_PROBLEM,
			"memory module %s (%s) lost power before everything was saved, %ju times since the boot "
			"before this one: what was written last may be missing in the volumes on it; check "
			"them, and the power supply",
			d->name, d->id, (uintmax_t)d->rose_by);
}

static void check_dimms(struct look *l)
{
	const struct dimms *dimms = l->config->dimms;

	for (size_t i = 0; dimms && i < dimms->n; i++)
		check_dimm(l, &dimms->list[i]);
	if (dimms && dimms->n > 0)
		node_findings_add(
			l->f, "dimms", NODE_OK, "the flags of %zu memory modules were looked at", dimms->n);
}

/* A driver that is built in has no folder in /sys/module without parameters, but one on its bus. */
static void check_driver(struct look *l, const char *module, const char *bus_driver, enum node_level level,
	const char *purpose)
{
	CLEANUP(free_charp) char *in_module = x_asprintf("/sys/module/%s", module);

	if (exists(l, in_module) || exists(l, bus_driver))
		node_findings_add(l->f, module, NODE_OK, "module %s is available", module);
	else
		node_findings_add(l->f, module, level, "module %s is not available: %s; modprobe %s", module,
			purpose, module);
}

static void check_modules(struct look *l)
{
	check_driver(
		l, "nd_pmem", "/sys/bus/nd/drivers/nd_pmem", NODE_PROBLEM, "namespaces get no block devices");
	if (str_eq(l->config->mode, "direct"))
		check_driver(l, "nd_btt", "/sys/module/nd_btt", NODE_NOTE, "no usage=FileIO in direct mode");
	if (str_eq(l->config->mode, "lvm"))
		check_driver(l, "dm_mod", "/dev/mapper/control", NODE_PROBLEM, "no logical volumes");
}

static void check_nodes(struct look *l)
{
	const struct nd_inventory *inv = l->config->regions;
	size_t n = 0;
	size_t n_missing = 0;

	if (!inv)
		node_findings_add(l->f, "dev-nodes", NODE_UNKNOWN,
			"namespaces cannot be listed, so their nodes in /dev cannot be checked");
	for (size_t i = 0; inv && i < inv->n_regions; i++) {
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++) {
			const char *path = inv->regions[i].namespaces[k].block_path;
			n += path != NULL;
			n_missing += path && !exists(l, path);
		}
	}
	if (n_missing > 0)
		node_findings_add(l->f, "dev-nodes", NODE_PROBLEM,
			"%zu of %zu block devices of namespaces have no node in /dev: the container must "
			"mount the host's /dev",
			n_missing, n);
	else if (inv)
		node_findings_add(l->f, "dev-nodes", NODE_OK,
			"all %zu block devices of namespaces have a node in /dev", n);
	if (str_eq(l->config->mode, "lvm") && !exists(l, "/dev/mapper/control"))
		node_findings_add(l->f, "dev-mapper", NODE_PROBLEM,
			"/dev/mapper/control does not exist: no logical volume can be activated; modprobe "
			"dm_mod, and in a container mount the host's /dev");
}

static void check_mount_propagation(struct look *l)
{
	const struct propagation_check_config config = {.root = l->config->root,
		.kubelet_dirs = l->config->kubelet_dirs,
		.state_path = l->config->state_path,
		.mounts = l->config->mounts};

	propagation_check(&config, l->f);
}

/* /run/lock is writable for all on many hosts: whoever makes the folder first can hold its locks for ever. */
static void check_lvm_locks(struct look *l)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s" LVM_LOCKS, l->config->root);
	struct stat st;

	if (lstat(path, &st) < 0)
		return;
	if (!S_ISDIR(st.st_mode) || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		node_findings_add(l->f, "lvm-locks", NODE_PROBLEM,
			LVM_LOCKS
			" is not a folder that only root may write to (uid %u, mode %04o): others can hold "
			"LVM's locks, for which every LVM command then waits; remove it while no lvm command "
			"runs",
			(unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
}

/* Return: the path of a namespace that the host's LVM looks into, borrowed, or NULL. */
static const char *find_scanned(const struct look *l)
{
	const struct nd_inventory *inv = l->config->regions;

	for (size_t i = 0; inv && i < inv->n_regions; i++) {
		const struct nd_region *r = &inv->regions[i];

		for (size_t j = 0; j < r->n_namespaces; j++) {
			const char *path = r->namespaces[j].block_path;
			if (path && lvm_host_scans(l->config->host_lvm, path))
				return path;
		}
	}
	/* the next volume may be the first one */
	return lvm_host_scans(l->config->host_lvm, "/dev/pmem0") ? "/dev/pmem0" : NULL;
}

/* A pod writes to a block volume what it likes, such as a volume group. */
static void check_host_lvm(struct look *l)
{
	const char *path = l->config->host_lvm ? find_scanned(l) : NULL;

	if (!l->config->host_lvm)
		node_findings_add(l->f, "host-lvm", NODE_NOTE,
			"the LVM configuration of the host is not visible here%s%s, so that it is not known "
			"whether the host's LVM reads block volumes: run pmem-csi-driver doctor on the host, or "
			"see \"What the host reads of volumes in direct mode\" in docs/INSTALL.md",
			l->config->host_lvm_problem ? ": " : "",
			l->config->host_lvm_problem ? l->config->host_lvm_problem : "");
	else if (path)
		node_findings_add(l->f, "host-lvm", NODE_NOTE,
			"the host's LVM looks into %s, so that it shows, and may activate, volume groups which "
			"pods write to block volumes: unless the host has groups of its own in persistent "
			"memory, add global_filter = [ \"r|^/dev/pmem|\" ] to the section devices of "
			"/etc/lvm/lvm.conf there; see \"What the host reads of volumes in direct mode\" in "
			"docs/INSTALL.md",
			path);
	else
		node_findings_add(l->f, "host-lvm", NODE_OK,
			"the host's LVM does not look into namespaces of persistent memory");
}

static void check_lvm(struct look *l)
{
	check_lvm_locks(l);
	if (str_eq(l->config->mode, "direct"))
		check_host_lvm(l);
	if (!str_eq(l->config->mode, "lvm"))
		return;
	if (exists(l, "/etc/lvm/devices/system.devices"))
		node_findings_add(l->f, "lvm-devices-file", NODE_NOTE,
			"/etc/lvm/devices/system.devices exists: the host's own vgs and lvs show our groups "
			"only if their devices are in it; our programs ignore it");
}

/* In direct mode, too: volumes that were made in the other mode are served. */
static void check_groups(struct look *l)
{
	CLEANUP(free_charp) char *state_path = x_asprintf("%s%s", l->config->root, l->config->state_path);
	CLEANUP(free_charp) char *folder = pool_backup_folder(state_path);
	CLEANUP(pool_lost_pvs_done) struct pool_lost_pvs lost = {0};
	CLEANUP(strv_freep) char **stale = NULL;
	size_t n_obstacles = 0;

	if (!l->config->regions || !l->config->groups)
		return;
	pool_lost_pvs_find(folder, l->config->regions, l->config->groups, &lost);
	for (size_t i = 0; i < lost.n; i++) {
		CLEANUP(free_charp) char *text = pool_lost_pv_text(&lost.list[i]);
		node_findings_add(l->f, "volume-group", NODE_PROBLEM, "%s", text);
	}
	for (size_t i = 0; i < l->config->groups->n_vgs; i++) {
		CLEANUP(free_charp) char *obstacle = lvm_vg_obstacle(&l->config->groups->vgs[i]);
		if (obstacle)
			node_findings_add(l->f, "volume-group", NODE_PROBLEM, "%s", obstacle);
		n_obstacles += obstacle != NULL;
	}
	stale = pool_backup_stale(folder, l->config->groups);
	for (char **name = stale; name && *name; name++)
		node_findings_add(l->f, "group-copy", NODE_NOTE,
			"no current copy of the metadata of volume group %s exists in %s: the driver and "
			"pmem-vgm write it when they run, if they can write there",
			*name, folder);
	if (lost.n == 0 && n_obstacles == 0 && !stale && l->config->groups->n_vgs > 0)
		node_findings_add(l->f, "volume-group", NODE_OK,
			"%zu volume groups, each with a copy of its metadata in %s", l->config->groups->n_vgs,
			folder);
}

static void check_tool(struct look *l, const char *tool, const char *package, const char *purpose)
{
	static const char *const folders[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folders[i], tool);
		if (exists(l, path)) {
			node_findings_add(l->f, tool, NODE_OK, "%s is there", path);
			return;
		}
	}
	node_findings_add(l->f, tool, NODE_PROBLEM, "no %s: %s; install %s", tool, purpose, package);
}

static const char *volatile_name(const struct statfs *st)
{
	switch ((unsigned long)st->f_type) {
	case TMPFS_MAGIC:
		return "tmpfs";
	case RAMFS_MAGIC:
		return "ramfs";
	case OVERLAYFS_SUPER_MAGIC:
		return "overlay";
	default:
		return NULL;
	}
}

/* The nearest folder that exists: the driver makes the last part itself. */
static int stat_state(const struct look *l, struct statfs *ret)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s%s", l->config->root, l->config->state_path);
	char *slash = NULL;

	if (statfs(path, ret) == 0)
		return 0;
	slash = strrchr(path, '/');
	if (!slash || slash == path)
		return -1;
	*slash = '\0';
	return statfs(path, ret);
}

static void check_state(struct look *l)
{
	const char *path = l->config->state_path;
	struct statfs st;
	char text[24];

	if (stat_state(l, &st) < 0) {
		node_findings_add(l->f, "state-folder", NODE_PROBLEM,
			"neither %s nor its parent exists: create it, or set -statePath to another folder",
			path);
		return;
	}
	const char *kind = volatile_name(&st);
	if (kind)
		node_findings_add(l->f, "state-folder", NODE_PROBLEM,
			"%s is on %s, whose content is lost: volumes would be unknown after the next start; "
			"set -statePath to a folder on a disk",
			path, kind);
	else
		node_findings_add(l->f, "state-folder", NODE_OK, "%s is on a persistent file system", path);

	uint64_t free_bytes = (uint64_t)st.f_bavail * (uint64_t)st.f_bsize;
	if (st.f_flags & ST_RDONLY)
		node_findings_add(l->f, "state-space", NODE_PROBLEM,
			"the file system of %s is read-only: see dmesg for errors, then remount it", path);
	else
		node_findings_add(l->f, "state-space", free_bytes < STATE_MIN_BYTES ? NODE_PROBLEM : NODE_OK,
			"the file system of %s has %s free%s", path,
			format_bytes(free_bytes >> 20 << 20, text),
			free_bytes < STATE_MIN_BYTES ? ": free some space there" : "");
	if (l->config->not_ready)
		node_findings_add(l->f, "driver", NODE_PROBLEM, "a driver is running and not ready: %s",
			l->config->not_ready);
	else if (l->config->holder > 0)
		node_findings_add(l->f, "driver", NODE_OK,
			"a driver is running: process %ld uses the state folder", (long)l->config->holder);
	else
		node_findings_add(l->f, "driver", NODE_NOTE, "no driver is using the state folder");
}

/* Whether the nearest folder above that exists can be written to: then the driver makes those below it. */
static bool can_be_made(const char *path)
{
	CLEANUP(free_charp) char *above = x_strdup(path);
	char *slash;

	while ((slash = strrchr(above, '/')) && slash != above) {
		*slash = '\0';
		if (access(above, F_OK) == 0)
			return access(above, W_OK) == 0;
	}
	return access("/", W_OK) == 0;
}

/* Most nodes need no such volumes, and a folder for them is missing there as it should be. In a
 * container that does not have the folder from the host, the driver cannot make it. A process that is the
 * first one of its PID namespace does not see those around it. */
static void check_direct_volumes(struct look *l)
{
	const char *dir = l->config->direct_volumes_dir;
	const struct inventory_counts *c = l->config->volumes;
	CLEANUP(free_charp) char *path = x_asprintf("%s%s", l->config->root, str_empty(dir) ? "" : dir);
	CLEANUP(error_freep) struct error *why = NULL;
	CLEANUP(fd_closep) int fd = -1;
	uint32_t n = c ? c->n_direct : 0;

	if (str_empty(dir) || !is_root(l))
		return;
	bool is_there = direct_folder_open(path, /* create= */ false, &fd, &why) == 0;
	bool is_missing = !is_there && why->code == ERR_NOT_FOUND;
	const char *advice = is_missing ? "; a pod needs that folder from the host (component kata)" : "";
	/* what a container makes is not the host's */
	bool is_usable = is_there || (is_missing && l->config->holder != 1 && can_be_made(path));
	if (!is_usable && n > 0)
		node_findings_add(l->f, "direct-volumes", NODE_PROBLEM,
			"no direct volumes can be created, and of the %u that exist it is not known which guests "
			"use them: %s%s",
			n, why->msg, advice);
	else if (!is_usable)
		node_findings_add(l->f, "direct-volumes", is_missing ? NODE_OK : NODE_NOTE,
			"this node offers no direct volumes: %s%s", why->msg, advice);
	else if (l->config->holder == 1)
		node_findings_add(l->f, "direct-volumes", NODE_PROBLEM,
			"the driver sees no other process of the host, so it does not know which one has the "
			"device of a direct volume open: set hostPID: true for the pod");
	else
		node_findings_add(l->f, "direct-volumes", NODE_OK,
			"direct volumes can be created: runtimes look for them in %s", dir);
}

/* In the words that metrics and the other commands have for phases. */
static void check_volumes(struct look *l)
{
	const struct inventory_counts *c = l->config->volumes;

	if (!c && l->config->volumes_problem)
		node_findings_add(l->f, "volumes", NODE_UNKNOWN, "%s", l->config->volumes_problem);
	if (!c)
		return;
	if (c->n_absent + c->n_damaged + c->n_strangers == 0)
		node_findings_add(l->f, "volumes", NODE_OK, "%u volumes, all of them in order", c->n_volumes);
	else
		node_findings_add(l->f, "volumes", NODE_PROBLEM,
			"of %u volumes, %u are missing; in addition, %u are damaged (their state file cannot "
			"be read), and %u devices have no state: pmem-csi-driver check lists them and says "
			"what to do",
			c->n_volumes, c->n_absent, c->n_damaged, c->n_strangers);
}

static void check_huge_pages(struct look *l)
{
	CLEANUP(free_charp)
	char *path = x_asprintf("%s/sys/kernel/mm/transparent_hugepage/enabled", l->config->root);
	CLEANUP(buf_done) struct buf text = BUF_INIT(SMALL_FILE_MAX);
	CLEANUP(error_freep) struct error *ignored = NULL;

	if (file_read(AT_FDCWD, path, &text, &ignored) < 0 || strstr(buf_str(&text), "[never]"))
		node_findings_add(l->f, "huge-pages", NODE_NOTE,
			"transparent huge pages are off: mapped files get pages of 4 KiB on some kernels");
	else
		node_findings_add(l->f, "huge-pages", NODE_OK, "mapped files can get pages of 2 MiB");
}

void node_check(const struct node_check_config *config, struct node_findings *ret)
{
	struct node_findings f = {0};
	struct look l = {.config = config, .f = &f};

	check_user(&l);
	if (!is_fake(&l)) {
		check_sys(&l);
		check_nd(&l);
		check_regions(&l);
		check_memory(&l);
		check_durability(&l);
		check_cxl(&l);
		check_dimms(&l);
		check_modules(&l);
		check_nodes(&l);
		check_lvm(&l);
		check_groups(&l);
		check_huge_pages(&l);
	}
	check_mount_propagation(&l);
	check_tool(&l, "mkfs.ext4", "e2fsprogs", "no ext4 volume can be staged for the first time");
	check_tool(&l, "mkfs.xfs", "xfsprogs", "no xfs volume can be staged for the first time");
	check_tool(&l, "tune2fs", "e2fsprogs", "no ext4 volume can be copied");
	check_tool(&l, "xfs_db", "xfsprogs", "no xfs volume can be copied");
	if (str_eq(config->mode, "lvm"))
		check_tool(&l, "lvm", "lvm2", "volume groups cannot be used");
	check_state(&l);
	check_volumes(&l);
	check_direct_volumes(&l);
	*ret = f;
}
