/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/node_check.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "inspect/inventory.h"
#include "os/file.h"
#include "pmem/pool/pool_saved.h"

#define KUBELET_DIR     "/var/lib/kubelet"
#define STATE_MIN_BYTES (16ULL << 20) /* some thousand state files with their temporaries */
#define SMALL_FILE_MAX  4096
/* What makes regions. */
#define MEMORY_REMEDY                                                                                        \
	"NVDIMMs: ipmctl create -goal PersistentMemoryType=AppDirect and a reboot; CXL: cxl create-region; " \
	"for a trial: memmap=4G!4G on the kernel's command line"
#define LVM_LOCKS "/run/lock/lvm" /* global/locking_dir of lvm.conf(5) */

struct look {
	const struct node_check_config *config;
	struct node_findings *f;
};

static void __attribute__((format(printf, 4, 5)))
add(struct look *l, const char *name, enum node_level level, const char *fmt, ...)
{
	struct node_findings *f = l->f;
	va_list ap;

	va_start(ap, fmt);
	char *text = x_vasprintf(fmt, ap);
	va_end(ap);
	f->list = x_realloc(f->list, f->n + 1, sizeof(*f->list));
	f->list[f->n++] = (struct node_finding){.name = name, .level = level, .text = text};
	f->n_problems += level == NODE_PROBLEM;
	f->n_unknown += level == NODE_UNKNOWN;
}

const char *node_level_name(enum node_level level)
{
	static const char *const names[] = {[NODE_OK] = "ok",
		[NODE_NOTE] = "note",
		[NODE_UNKNOWN] = "unknown",
		[NODE_PROBLEM] = "problem"};

	return names[level];
}

void node_findings_done(struct node_findings *f)
{
	for (size_t i = 0; i < f->n; i++)
		free(f->list[i].text);
	free(f->list);
	*f = (struct node_findings){0};
}

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
		add(l, "user", NODE_UNKNOWN, "this is uid %u, but some checks need root: run it as root",
			(unsigned)l->config->user);
}

static void check_sys(struct look *l)
{
	CLEANUP(free_charp) char *sys = x_asprintf("%s/sys", l->config->root);
	struct statvfs st;

	if (statvfs(sys, &st) < 0 || (st.f_flag & ST_RDONLY))
		add(l, "sys-writable", NODE_PROBLEM,
			"/sys is read-only: namespaces cannot be made or destroyed; the container must be "
			"privileged, or /sys be mounted into it");
	else if (!is_root(l))
		add(l, "sys-writable", NODE_UNKNOWN, "only root can find out whether /sys is writable");
	else
		add(l, "sys-writable", NODE_OK, "/sys is writable");
}

static void check_nd(struct look *l)
{
	const struct nd_inventory *inv = l->config->regions;

	if (!exists(l, "/sys/bus/nd"))
		add(l, "libnvdimm", NODE_PROBLEM,
			"no /sys/bus/nd: the module libnvdimm is not loaded, or there is no persistent "
			"memory: modprobe nd_pmem; " MEMORY_REMEDY);
	else if (!inv)
		add(l, "libnvdimm", is_root(l) ? NODE_PROBLEM : NODE_UNKNOWN, "regions cannot be listed: %s",
			l->config->regions_problem ? l->config->regions_problem : "unknown reason");
	else if (inv->n_regions == 0)
		add(l, "libnvdimm", NODE_PROBLEM,
			"the kernel shows no region of persistent memory: " MEMORY_REMEDY);
	else
		add(l, "libnvdimm", NODE_OK, "the kernel shows %zu regions", inv->n_regions);
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
			add(l, "region", NODE_PROBLEM,
				"%s in %s is read-only: nothing is made on it, and what is there is not "
				"mounted for writing (blockdev --setrw ends that, unless the DIMM is faulty)",
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
			add(l, "region", NODE_PROBLEM,
				"%s on %s is disabled: nothing is made in it, and what is there is missing "
				"(ndctl "
				"enable-region %s)",
				r->name, r->bus, r->name);
		if (r->readonly)
			add(l, "region", NODE_PROBLEM,
				"%s on %s is read-only: nothing is made in it, and what is there is not "
				"mounted for writing (echo 0 >/sys/bus/nd/devices/%s/read_only ends that, "
				"unless the DIMM is faulty)",
				r->name, r->bus, r->name);
		check_readonly(l, r);
	}
}

/* A driver that is built in has no folder in /sys/module without parameters, but one on its bus. */
static void check_driver(struct look *l, const char *module, const char *bus_driver, enum node_level level,
	const char *purpose)
{
	CLEANUP(free_charp) char *in_module = x_asprintf("/sys/module/%s", module);

	if (exists(l, in_module) || exists(l, bus_driver))
		add(l, module, NODE_OK, "module %s is there", module);
	else
		add(l, module, level, "module %s is not there: %s; modprobe %s", module, purpose, module);
}

static void check_modules(struct look *l)
{
	check_driver(
		l, "nd_pmem", "/sys/bus/nd/drivers/nd_pmem", NODE_PROBLEM, "namespaces get no block devices");
	check_driver(l, "nd_btt", "/sys/module/nd_btt", NODE_NOTE, "no usage=FileIO in direct mode");
	check_driver(l, "dax", "/sys/class/dax", NODE_NOTE, "loaded with nd_pmem where it is needed");
	if (str_eq(l->config->mode, "lvm"))
		check_driver(l, "dm_mod", "/dev/mapper/control", NODE_PROBLEM, "no logical volumes");
}

static void check_nodes(struct look *l)
{
	const struct nd_inventory *inv = l->config->regions;
	size_t n = 0;
	size_t n_missing = 0;

	if (!inv)
		add(l, "dev-nodes", NODE_UNKNOWN,
			"without a list of namespaces, their nodes in /dev are not looked for");
	for (size_t i = 0; inv && i < inv->n_regions; i++) {
		for (size_t k = 0; k < inv->regions[i].n_namespaces; k++) {
			const char *path = inv->regions[i].namespaces[k].block_path;
			n += path != NULL;
			n_missing += path && !exists(l, path);
		}
	}
	if (n_missing > 0)
		add(l, "dev-nodes", NODE_PROBLEM,
			"%zu of %zu block devices of namespaces have no node in /dev: the container must "
			"mount the host's /dev",
			n_missing, n);
	else if (inv)
		add(l, "dev-nodes", NODE_OK, "all %zu block devices of namespaces have a node in /dev", n);
	if (str_eq(l->config->mode, "lvm") && !exists(l, "/dev/mapper/control"))
		add(l, "dev-mapper", NODE_PROBLEM,
			"no /dev/mapper/control: no logical volume can be activated; modprobe dm_mod, and in "
			"a "
			"container mount the host's /dev");
}

/* Whether @path is at or below @folder. */
static bool is_within(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	if (str_eq(folder, "/"))
		return true;
	return str_starts(path, folder) && (path[n] == '\0' || path[n] == '/');
}

/* The mount that shows @path: the deepest, and of several at one place the last. */
static const struct mount_entry *mount_of(const struct mount_table *t, const char *path)
{
	const struct mount_entry *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct mount_entry *e = &t->entries[i];
		if (is_within(path, e->target) && (!best || strlen(e->target) >= strlen(best->target)))
			best = e;
	}
	return best;
}

/* Whether mounts made at @place spread; *@ret_target is the mount that decides. */
static bool spreads(struct look *l, const char *place, const char **ret_target)
{
	CLEANUP(free_charp) char *full = x_asprintf("%s%s", l->config->root, place);
	CLEANUP(free_charp) char *resolved = realpath(full, NULL);
	const struct mount_entry *e = resolved ? mount_of(l->config->mounts, resolved) : NULL;

	*ret_target = e ? e->target : "/";
	return e && e->shared;
}

/* In a pod of the driver, two folders below kubelet's are mounts from the host, and kubelet's own folder is
 * none. */
static void check_propagation(struct look *l, const char *dir)
{
	static const char *const used[] = {"pods", "plugins/kubernetes.io/csi"};
	const char *target = NULL;

	if (!exists(l, dir)) {
		add(l, "kubelet-dir", NODE_NOTE, "%s is not there: is kubelet's folder another one?", dir);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(used); i++) {
		CLEANUP(free_charp) char *below = x_asprintf("%s/%s", dir, used[i]);
		const char *place = exists(l, below) ? below : dir;
		if (spreads(l, place, &target))
			continue;
		add(l, "kubelet-dir", NODE_PROBLEM,
			"%s: mounts made there stay here, and pods see empty folders: %s is not shared; in a "
			"pod the volume needs mountPropagation: Bidirectional, on the host mount "
			"--make-rshared "
			"does it",
			place, target);
		return;
	}
	add(l, "kubelet-dir", NODE_OK, "%s: mounts made there spread (%s is shared)", dir, target);
}

static void check_kubelet(struct look *l)
{
	char *const *dirs = l->config->kubelet_dirs;

	if (!dirs || !dirs[0])
		check_propagation(l, KUBELET_DIR);
	for (size_t i = 0; dirs && dirs[i]; i++)
		check_propagation(l, dirs[i]);
}

/* /run/lock is writable for all on many hosts: whoever makes the folder first can hold its locks for ever. */
static void check_lvm_locks(struct look *l)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s" LVM_LOCKS, l->config->root);
	struct stat st;

	if (lstat(path, &st) < 0)
		return;
	if (!S_ISDIR(st.st_mode) || st.st_uid != 0 || (st.st_mode & (S_IWGRP | S_IWOTH)))
		add(l, "lvm-locks", NODE_PROBLEM,
			LVM_LOCKS
			" is not a folder that only root may write to (uid %u, mode %04o): others can hold "
			"LVM's locks, and every command of LVM waits then; remove it while no lvm command "
			"runs",
			(unsigned)st.st_uid, (unsigned)(st.st_mode & 07777));
}

static void check_lvm(struct look *l)
{
	check_lvm_locks(l);
	if (!str_eq(l->config->mode, "lvm"))
		return;
	if (exists(l, "/etc/lvm/devices/system.devices"))
		add(l, "lvm-devices-file", NODE_NOTE,
			"/etc/lvm/devices/system.devices exists: the host's own vgs and lvs show our groups "
			"only if their devices are in it; our programs ignore it");
	if (exists(l, "/run/udev/control"))
		add(l, "udev", NODE_NOTE,
			"udev runs: its rules may activate our volumes before the driver does, and open "
			"devices for some milliseconds after they were written; both are waited for");
	else
		add(l, "udev", NODE_NOTE,
			"no udev: nothing but pmem-vgm and the driver activates volumes after a boot");
	if (exists(l, "/etc/lvm/lvm.conf"))
		add(l, "lvm-conf", NODE_NOTE,
			"/etc/lvm/lvm.conf has no effect on our programs, which bring their own settings; a "
			"filter or system_id there is in force for commands by hand only");
}

/* In direct mode, too: volumes that were made in the other mode are served. */
static void check_groups(struct look *l)
{
	CLEANUP(free_charp) char *state_path = x_asprintf("%s%s", l->config->root, l->config->state_path);
	CLEANUP(free_charp) char *folder = pool_saved_folder(state_path);
	CLEANUP(pool_lost_list_done) struct pool_lost_list lost = {0};
	CLEANUP(strv_freep) char **stale = NULL;
	size_t n_obstacles = 0;

	if (!l->config->regions || !l->config->groups)
		return;
	pool_saved_lost(folder, l->config->regions, l->config->groups, &lost);
	for (size_t i = 0; i < lost.n; i++) {
		CLEANUP(free_charp) char *text = pool_lost_text(&lost.list[i]);
		add(l, "volume-group", NODE_PROBLEM, "%s", text);
	}
	for (size_t i = 0; i < l->config->groups->n_vgs; i++) {
		CLEANUP(free_charp) char *obstacle = lvm_vg_obstacle(&l->config->groups->vgs[i]);
		if (obstacle)
			add(l, "volume-group", NODE_PROBLEM, "%s", obstacle);
		n_obstacles += obstacle != NULL;
	}
	stale = pool_saved_stale(folder, l->config->groups);
	for (char **name = stale; name && *name; name++)
		add(l, "group-copy", NODE_NOTE,
			"there is no current copy of the metadata of volume group %s in %s: the driver and "
			"pmem-vgm write it, when they run and can write there",
			*name, folder);
	if (lost.n == 0 && n_obstacles == 0 && !stale && l->config->groups->n_vgs > 0)
		add(l, "volume-group", NODE_OK, "%zu volume groups, each with a copy of its metadata in %s",
			l->config->groups->n_vgs, folder);
}

static void check_tool(struct look *l, const char *tool, const char *package, const char *purpose)
{
	static const char *const folders[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folders[i], tool);
		if (exists(l, path)) {
			add(l, tool, NODE_OK, "%s is there", path);
			return;
		}
	}
	add(l, tool, NODE_PROBLEM, "no %s: %s; install %s", tool, purpose, package);
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
		add(l, "state-folder", NODE_PROBLEM,
			"neither %s nor its parent is there: make it, or give -statePath another folder",
			path);
		return;
	}
	const char *kind = volatile_name(&st);
	if (kind)
		add(l, "state-folder", NODE_PROBLEM,
			"%s is on %s and does not survive: volumes would be unknown after the next start; "
			"give "
			"-statePath a folder on a disk",
			path, kind);
	else
		add(l, "state-folder", NODE_OK, "%s is on a file system that lasts", path);

	uint64_t free_bytes = (uint64_t)st.f_bavail * (uint64_t)st.f_bsize;
	if (st.f_flags & ST_RDONLY)
		add(l, "state-space", NODE_PROBLEM,
			"the file system of %s is read-only: see dmesg for errors, then remount it", path);
	else
		add(l, "state-space", free_bytes < STATE_MIN_BYTES ? NODE_PROBLEM : NODE_OK,
			"the file system of %s has %s free%s", path,
			format_bytes(free_bytes >> 20 << 20, text),
			free_bytes < STATE_MIN_BYTES ? ": make room there" : "");
	if (l->config->not_ready)
		add(l, "driver", NODE_PROBLEM, "a driver runs and is not ready: %s", l->config->not_ready);
	else if (l->config->holder > 0)
		add(l, "driver", NODE_OK, "a driver runs: process %ld has the state folder",
			(long)l->config->holder);
	else
		add(l, "driver", NODE_NOTE, "no driver is seen that has the state folder");
}

/* In the words that metrics and the other commands have for phases. */
static void check_volumes(struct look *l)
{
	const struct inventory_counts *c = l->config->volumes;

	if (!c && l->config->volumes_problem)
		add(l, "volumes", NODE_UNKNOWN, "%s", l->config->volumes_problem);
	if (!c)
		return;
	if (c->n_absent + c->n_damaged + c->n_strangers == 0)
		add(l, "volumes", NODE_OK, "%u volumes, all of them in order", c->n_volumes);
	else
		add(l, "volumes", NODE_PROBLEM,
			"of %u volumes, %u are missing; in addition, %u are damaged (their state file cannot "
			"be read), and %u are device-without-state: pmem-csi-driver check says which, and "
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
		add(l, "huge-pages", NODE_NOTE,
			"transparent huge pages are off: mapped files get pages of 4 KiB on some kernels");
	else
		add(l, "huge-pages", NODE_OK, "mapped files can get pages of 2 MiB");
}

void node_check_propagation(const struct node_check_config *config, struct node_findings *ret)
{
	struct node_findings f = {0};
	struct look l = {.config = config, .f = &f};

	check_kubelet(&l);
	*ret = f;
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
		check_modules(&l);
		check_nodes(&l);
		check_lvm(&l);
		check_groups(&l);
		check_huge_pages(&l);
	}
	check_kubelet(&l);
	check_tool(&l, "mkfs.ext4", "e2fsprogs", "no ext4 volume can be staged for the first time");
	check_tool(&l, "mkfs.xfs", "xfsprogs", "no xfs volume can be staged for the first time");
	if (str_eq(config->mode, "lvm"))
		check_tool(&l, "lvm", "lvm2", "volume groups cannot be used");
	check_state(&l);
	check_volumes(&l);
	*ret = f;
}
