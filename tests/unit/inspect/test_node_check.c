/* SPDX-License-Identifier: Apache-2.0 */
/* The check of a node finds its problems, in folders that stand for /sys, /dev and /etc. */
#include "inspect/node_check.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/inventory.h"
#include "unit/os/scratch.h"

static struct cxl_findings cxl_findings;
static const char *cxl_problem; /* or NULL */
static struct node_findings found;
static struct nd_region region;
static const char *not_ready;
static struct inventory_counts volumes;
static pid_t holder = 42;

/* @path: below the scratch folder; a folder if it ends with a slash */
static void make(const char *path)
{
	CLEANUP(free_charp) char *full = x_asprintf(SCRATCH "%s", path);

	for (char *slash = strchr(full + strlen(SCRATCH) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)!mkdir(full, 0755);
		*slash = '/';
	}
	if (!str_ends(path, "/"))
		close(open(full, O_WRONLY | O_CREAT | O_CLOEXEC, 0755));
}

static void make_good_node(void)
{
	static const char *const paths[] = {"/sys/bus/nd/drivers/nd_pmem/", "/sys/module/nd_btt/",
		"/sys/class/dax/", "/sys/module/dm_mod/", "/dev/pmem0", "/dev/mapper/control",
		"/var/lib/kubelet/", "/var/lib/driver/", "/usr/sbin/mkfs.ext4", "/sbin/mkfs.xfs",
		"/usr/sbin/tune2fs", "/usr/sbin/xfs_db", "/usr/bin/lvm"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		make(paths[i]);
}

static struct dimms dimms;

static const struct memory_advices *memory; /* or NULL */

static const struct lvm_host *host_lvm; /* or NULL */
static const char *host_lvm_problem;    /* or NULL */

static void look(const char *mode, const char *mountinfo)
{
	static char pmem0[] = "/dev/pmem0";
	char name[] = "";
	struct nd_namespace ns = {.block_path = pmem0, .name = name};
	const struct nd_inventory inv = {.regions = &region, .n_regions = 1};
	CLEANUP(mount_table_freep) struct mount_table *mounts = NULL;
	struct error *err = NULL;

	region.namespaces = &ns;
	region.n_namespaces = 1;
	ASSERT_OK(mount_table_parse(mountinfo, &mounts, &err));
	const struct node_check_config config = {.root = SCRATCH,
		.mode = mode,
		.state_path = "/var/lib/driver",
		.mounts = mounts,
		.regions = &inv,
		.dimms = &dimms,
		.memory = memory,
		.host_lvm = host_lvm,
		.host_lvm_problem = host_lvm_problem,
		.cxl = cxl_problem ? NULL : &cxl_findings,
		.cxl_problem = cxl_problem,
		.direct_volumes_dir = "/run/direct",
		.volumes = &volumes,
		.holder = holder,
		.not_ready = not_ready};
	node_findings_done(&found);
	node_check(&config, &found);
}

static const char *text_of(const char *name)
{
	for (size_t i = 0; i < found.n; i++) {
		if (str_eq(found.list[i].name, name))
			return found.list[i].text;
	}
	ck_abort_msg("%s was not looked at", name);
	return "";
}

static enum node_level level_of(const char *name)
{
	for (size_t i = 0; i < found.n; i++) {
		if (str_eq(found.list[i].name, name))
			return found.list[i].level;
	}
	ck_abort_msg("%s was not looked at", name);
	return NODE_PROBLEM;
}

static const char shared[] = "1 0 0:1 / / rw shared:1 - ext4 /dev/x rw\n";

START_TEST(a_good_node_has_one_problem_here_that_scratch_files_do_not_last)
{
	make_good_node();
	look("lvm", shared);
	for (size_t i = 0; i < found.n; i++)
		ck_assert_msg(
			(found.list[i].level == NODE_PROBLEM) == str_eq(found.list[i].name, "state-folder"),
			"%s: %s", found.list[i].name, found.list[i].text);
	ck_assert_uint_eq(found.n_problems, 1);
	ck_assert_int_eq(level_of("driver"), NODE_OK);
	ck_assert_int_eq(level_of("kubelet-dir"), NODE_OK);
	node_findings_done(&found);
}
END_TEST

START_TEST(module_with_trouble_is_a_problem)
{
	static const struct {
		unsigned problems;
		uint64_t rose_by;
		const char *text;
	} cases[] = {{DIMM_SAVE_FAILED | DIMM_NOT_ARMED, 0, "lost content"}, {DIMM_NOT_ARMED, 0, "not_armed"},
		{DIMM_HEALTH_EVENT, 0, "ndctl list -DH"}, {0, 3, "3 times"}};
	char name[] = "nmem0", id[] = "8089";
	struct dimm module = {.name = name, .id = id};

	make_good_node();
	dimms = (struct dimms){&module, 1};
	look("lvm", shared);
	ck_assert_uint_eq(found.n_problems, 1);
	ck_assert_int_eq(level_of("dimms"), NODE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		module.problems = cases[i].problems;
		module.rose_by = cases[i].rose_by;
		look("lvm", shared);
		ck_assert_uint_eq(found.n_problems, 2);
		ck_assert_int_eq(level_of("dimm"), NODE_PROBLEM);
		ck_assert_ptr_nonnull(strstr(text_of("dimm"), "nmem0 (8089)"));
		ck_assert_ptr_nonnull(strstr(text_of("dimm"), cases[i].text));
	}
	dimms = (struct dimms){0};
	node_findings_done(&found);
}
END_TEST

/* It is a problem where there is no other memory for volumes. */
START_TEST(memory_that_is_not_used_is_named_with_the_command)
{
	char name[] = "region1 on ndbus0", what[] = "NVDIMMs whose label areas are blank",
	     state[] = "is not used";
	char command[] = "pmem-ns-init create -initLabels", fine[] = "is used";
	char *commands[] = {command, NULL};
	struct memory_advice list[] = {
		{.name = name, .what = what, .state = fine}, {.name = name,
								     .action = MEMORY_INIT_LABELS,
								     .what = what,
								     .state = state,
								     .commands = commands}};
	const struct memory_advices all = {list, 2};

	make_good_node();
	memory = &all;
	region.is_pmem = region.enabled = true;
	for (int usable = 0; usable < 2; usable++) {
		region.has_labels = usable;
		look("lvm", shared);
		ck_assert_int_eq(level_of("memory"), usable ? NODE_NOTE : NODE_PROBLEM);
		ck_assert_ptr_nonnull(strstr(text_of("memory"), command));
		ck_assert_uint_eq(found.n_problems, usable ? 1 : 2);
	}
	memory = NULL;
	region = (struct nd_region){0};
	node_findings_done(&found);
}
END_TEST

START_TEST(each_thing_that_is_not_there_is_a_problem)
{
	/* the path, what is looked at, what the text says to do */
	static const char *const cases[][3] = {
		{"/sys/bus/nd/drivers/nd_pmem", "nd_pmem", "modprobe nd_pmem"},
		{"/dev/pmem0", "dev-nodes", "mount the host's /dev"},
		{"/dev/mapper/control", "dev-mapper", "modprobe dm_mod"},
		{"/usr/sbin/mkfs.ext4", "mkfs.ext4", "install e2fsprogs"},
		{"/sbin/mkfs.xfs", "mkfs.xfs", "install xfsprogs"},
		{"/usr/sbin/tune2fs", "tune2fs", "install e2fsprogs"},
		{"/usr/sbin/xfs_db", "xfs_db", "install xfsprogs"},
		{"/usr/bin/lvm", "lvm", "install lvm2"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(free_charp) char *path = x_asprintf(SCRATCH "%s", cases[i][0]);

		make_good_node();
		ck_assert_int_eq(remove(path), 0);
		look("lvm", shared);
		ck_assert_msg(level_of(cases[i][1]) == NODE_PROBLEM, "%s", cases[i][0]);
		ck_assert_uint_eq(found.n_problems, 2);
		ck_assert_ptr_nonnull(strstr(text_of(cases[i][1]), cases[i][2]));
		ck_assert_ptr_nonnull(strstr(text_of("state-folder"), "set -statePath"));
	}
	node_findings_done(&found);
}
END_TEST

START_TEST(without_libnvdimm_and_with_a_read_only_sys_nothing_can_be_made)
{
	make("/sys/");
	make("/var/lib/driver/");
	ck_assert_int_eq(mount("sys", SCRATCH "/sys", "tmpfs", MS_RDONLY, NULL), 0);
	look("direct", shared);
	ck_assert_int_eq(level_of("libnvdimm"), NODE_PROBLEM);
	ck_assert_ptr_nonnull(strstr(text_of("libnvdimm"), "ipmctl create"));
	ck_assert_ptr_nonnull(strstr(text_of("libnvdimm"), "memmap=4G!4G"));
	ck_assert_int_eq(level_of("sys-writable"), NODE_PROBLEM);
	ck_assert_int_eq(level_of("kubelet-dir"), NODE_NOTE);
	node_findings_done(&found);
}
END_TEST

/* Checks that the problem of region0 is found and described by @text; "": that none is found. Repairs the
 * region afterwards. */
static void assert_region_is_named(const char *text)
{
	size_t n = 0;

	look("lvm", shared);
	for (size_t i = 0; i < found.n; i++) {
		if (!str_eq(found.list[i].name, "region"))
			continue;
		ck_assert_int_eq(found.list[i].level, NODE_PROBLEM);
		ck_assert_msg(strstr(found.list[i].text, text), "%s", found.list[i].text);
		n++;
	}
	ck_assert_uint_eq(n, *text ? 1 : 0);
	node_findings_done(&found);
	region.enabled = true;
	region.readonly = false;
	region.refused = NULL;
}

START_TEST(a_region_in_which_nothing_can_be_made_is_a_problem)
{
	FILE *ro;

	make_good_node();
	make("/sys/class/block/pmem0/ro");
	region.bus = (char[]){"ndbus0"};
	region.name = (char[]){"region0"};
	region.is_pmem = true;
	region.enabled = true;
	assert_region_is_named("");
	region.enabled = false;
	assert_region_is_named("region0 on ndbus0 is disabled");
	region.readonly = true;
	assert_region_is_named("region0 on ndbus0 is read-only");
	region.refused = "as asked";
	assert_region_is_named("no namespace is created in it: as asked");
	ro = fopen(SCRATCH "/sys/class/block/pmem0/ro", "we");
	ck_assert_ptr_nonnull(ro);
	fputs("1\n", ro);
	ck_assert_int_eq(fclose(ro), 0);
	assert_region_is_named("/dev/pmem0 in region0 is read-only");
}
END_TEST

START_TEST(cxl_region_that_is_missing_or_refused_is_a_problem)
{
	char text[] = "said by the comparison";
	struct cxl_finding finding = {.text = text};

	make_good_node();
	cxl_findings = (struct cxl_findings){.list = &finding, .n = 1};
	for (unsigned kind = CXL_AS_RECORDED; kind <= CXL_PROBLEM; kind++) {
		finding.kind = kind;
		look("lvm", shared);
		ck_assert_str_eq(text_of("cxl-region"), text);
		ck_assert_int_eq(
			level_of("cxl-region") == NODE_PROBLEM, kind == CXL_MISSING || kind == CXL_PROBLEM);
		node_findings_done(&found);
	}
	cxl_findings = (struct cxl_findings){0};
}
END_TEST

START_TEST(cxl_memory_that_cannot_be_read_is_a_problem_beside_the_others)
{
	make_good_node();
	look("lvm", shared);
	size_t n = found.n;
	cxl_problem = "CXL regions: open libcxl: Input/output error";
	look("lvm", shared);
	cxl_problem = NULL;
	ck_assert_uint_eq(found.n, n + 1);
	ck_assert_int_eq(level_of("cxl-region"), NODE_PROBLEM);
	ck_assert_str_eq(text_of("cxl-region"),
		"CXL memory cannot be looked at: CXL regions: open libcxl: Input/output error");
	node_findings_done(&found);
}
END_TEST

static size_t n_found(const char *name)
{
	size_t n = 0;

	look("lvm", shared);
	for (size_t i = 0; i < found.n; i++)
		n += str_eq(found.list[i].name, name);
	node_findings_done(&found);
	return n;
}

START_TEST(locks_of_lvm_that_others_can_hold_are_a_problem)
{
	static const char path[] = SCRATCH "/run/lock/lvm";

	make_good_node();
	make("/run/lock/lvm/");
	ck_assert_uint_eq(n_found("lvm-locks"), 0);
	ck_assert_int_eq(chmod(path, 01777), 0);
	ck_assert_uint_eq(n_found("lvm-locks"), 1);
	ck_assert_int_eq(chmod(path, 0700), 0);
	ck_assert_int_eq(chown(path, 1000, 1000), 0);
	ck_assert_uint_eq(n_found("lvm-locks"), 1);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert_int_eq(symlink("/tmp", path), 0);
	ck_assert_uint_eq(n_found("lvm-locks"), 1);
}
END_TEST

START_TEST(traps_of_the_hosts_lvm_are_noted)
{
	make_good_node();
	make("/etc/lvm/devices/system.devices");
	make("/etc/lvm/lvm.conf");
	make("/run/udev/control");
	look("lvm", shared);
	ck_assert_int_eq(level_of("lvm-devices-file"), NODE_NOTE);
	/* what needs no attention is not noted */
	for (size_t i = 0; i < found.n; i++)
		ck_assert(!str_eq(found.list[i].name, "lvm-conf") && !str_eq(found.list[i].name, "udev") &&
			  !str_eq(found.list[i].name, "nd_btt"));
	node_findings_done(&found);
	look("direct", shared);
	ck_assert_int_eq(level_of("nd_btt"), NODE_OK);
	node_findings_done(&found);
}
END_TEST

/* The exit status stays what it is: whether the host has to be configured depends on who uses the cluster. */
START_TEST(block_volumes_that_the_host_reads_are_noted_in_direct_mode)
{
	static char pattern[] = "r|^/dev/pmem|";
	static char *rejecting[] = {pattern, NULL};
	static const struct lvm_host scans = {0};
	static const struct lvm_host rejects = {.global_filter = rejecting};

	make_good_node();
	look("direct", shared);
	ck_assert_int_eq(level_of("host-lvm"), NODE_NOTE);
	ck_assert_ptr_nonnull(strstr(text_of("host-lvm"), "not visible"));
	host_lvm_problem = "lvm hangs";
	look("direct", shared);
	ck_assert_ptr_nonnull(strstr(text_of("host-lvm"), "lvm hangs"));
	host_lvm = &scans;
	look("direct", shared);
	ck_assert_int_eq(level_of("host-lvm"), NODE_NOTE);
	ck_assert_ptr_nonnull(strstr(text_of("host-lvm"), "/dev/pmem0"));
	ck_assert_ptr_nonnull(strstr(text_of("host-lvm"), "global_filter = [ \"r|^/dev/pmem|\" ]"));
	host_lvm = &rejects;
	look("direct", shared);
	ck_assert_int_eq(level_of("host-lvm"), NODE_OK);
	host_lvm = &scans;
	ck_assert_uint_eq(n_found("host-lvm"), 0);
}
END_TEST

START_TEST(a_driver_that_is_not_ready_is_a_problem)
{
	make_good_node();
	not_ready = "the driver is still starting; the last attempt failed: x";
	look("lvm", shared);
	not_ready = NULL;
	ck_assert_int_eq(level_of("driver"), NODE_PROBLEM);
	ck_assert_ptr_nonnull(strstr(text_of("driver"), "the last attempt failed: x"));
	node_findings_done(&found);
}
END_TEST

START_TEST(direct_volumes_need_the_folder_and_the_processes_of_the_host)
{
	make_good_node();
	/* the driver itself makes it there */
	volumes.n_direct = 2;
	look("lvm", shared);
	ck_assert_int_eq(level_of("direct-volumes"), NODE_OK);
	holder = 1;
	look("lvm", shared);
	ck_assert_int_eq(level_of("direct-volumes"), NODE_PROBLEM);
	ck_assert_ptr_nonnull(strstr(text_of("direct-volumes"), "of the 2 that exist"));
	ck_assert_ptr_nonnull(strstr(text_of("direct-volumes"), "/run/direct does not exist"));
	ck_assert_ptr_nonnull(strstr(text_of("direct-volumes"), "component kata"));
	/* no problem where no volume needs them */
	volumes.n_direct = 0;
	look("lvm", shared);
	ck_assert_int_eq(level_of("direct-volumes"), NODE_OK);
	ck_assert(str_starts(text_of("direct-volumes"), "this node offers no direct volumes: "));
	ck_assert_ptr_nonnull(strstr(text_of("direct-volumes"), "component kata"));
	holder = 42;
	make("/run/direct");
	look("lvm", shared);
	ck_assert_int_eq(level_of("direct-volumes"), NODE_NOTE);
	ck_assert_ptr_null(strstr(text_of("direct-volumes"), "component kata"));
	ck_assert_int_eq(unlink(SCRATCH "/run/direct"), 0);
	make("/run/direct/");
	look("lvm", shared);
	ck_assert_int_eq(level_of("direct-volumes"), NODE_OK);
	holder = 1;
	look("lvm", shared);
	ck_assert_int_eq(level_of("direct-volumes"), NODE_PROBLEM);
	ck_assert_ptr_nonnull(strstr(text_of("direct-volumes"), "hostPID"));
	holder = 42;
	volumes.n_direct = 0;
	node_findings_done(&found);
}
END_TEST

START_TEST(fake_devices_need_no_persistent_memory)
{
	make("/var/lib/driver/");
	look("fake", shared);
	for (size_t i = 0; i < found.n; i++)
		ck_assert_str_ne(found.list[i].name, "libnvdimm");
	node_findings_done(&found);
}
END_TEST

SCRATCH_MAIN("node_check", a_good_node_has_one_problem_here_that_scratch_files_do_not_last,
	memory_that_is_not_used_is_named_with_the_command, each_thing_that_is_not_there_is_a_problem,
	module_with_trouble_is_a_problem, a_region_in_which_nothing_can_be_made_is_a_problem,
	cxl_region_that_is_missing_or_refused_is_a_problem,
	cxl_memory_that_cannot_be_read_is_a_problem_beside_the_others,
	locks_of_lvm_that_others_can_hold_are_a_problem,
	without_libnvdimm_and_with_a_read_only_sys_nothing_can_be_made, traps_of_the_hosts_lvm_are_noted,
	block_volumes_that_the_host_reads_are_noted_in_direct_mode,
	direct_volumes_need_the_folder_and_the_processes_of_the_host, a_driver_that_is_not_ready_is_a_problem,
	fake_devices_need_no_persistent_memory)
