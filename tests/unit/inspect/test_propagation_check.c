/* SPDX-License-Identifier: Apache-2.0 */
/* Which of kubelet's folders are complained of, with folders that are made for the test and mount tables as
 * text. */
#include "inspect/propagation_check.h"

#include <stdio.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "os/mount_table.h"
#include "unit/os/scratch.h"

#define KUBELET SCRATCH "/var/lib/kubelet"

static struct node_findings found;

static void make_folders(const char *const *paths, size_t n)
{
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(mkdir(paths[i], 0755), 0);
}

static void make_kubelet_dir(void)
{
	static const char *const paths[] = {SCRATCH "/var", SCRATCH "/var/lib", KUBELET};

	make_folders(paths, ARRAY_SIZE(paths));
}

static void make_folders_of_pod(void)
{
	static const char *const paths[] = {KUBELET "/pods", KUBELET "/plugins",
		KUBELET "/plugins/kubernetes.io", KUBELET "/plugins/kubernetes.io/csi"};

	make_kubelet_dir();
	make_folders(paths, ARRAY_SIZE(paths));
}

/* Return: what is found about the only folder. */
static const struct node_finding *look(char *const *kubelet_dirs, const char *mountinfo)
{
	CLEANUP(mount_table_freep) struct mount_table *mounts = NULL;
	struct error *err = NULL;

	ASSERT_OK(mount_table_parse(mountinfo, &mounts, &err));
	const struct propagation_check_config config = {
		.root = SCRATCH, .kubelet_dirs = kubelet_dirs, .mounts = mounts};
	node_findings_done(&found);
	propagation_check(&config, &found);
	ck_assert_uint_eq(found.n, 1);
	ck_assert_str_eq(found.list[0].name, "kubelet-dir");
	ck_assert_uint_eq(found.n_problems, found.list[0].level == NODE_PROBLEM);
	return &found.list[0];
}

static const char shared[] = "1 0 0:1 / / rw shared:1 - ext4 /dev/x rw\n";
static const char private[] = "1 0 0:1 / / rw shared:1 - ext4 /dev/x rw\n"
			      "2 1 0:2 / " KUBELET " rw - ext4 /dev/y rw\n";

START_TEST(mounts_that_do_not_spread_are_a_problem)
{
	const struct node_finding *finding;

	make_kubelet_dir();
	ck_assert_int_eq(look(NULL, shared)->level, NODE_OK);
	finding = look(NULL, private);
	ck_assert_int_eq(finding->level, NODE_PROBLEM);
	ck_assert_ptr_nonnull(
		strstr(finding->text, "/var/lib/kubelet: mounts created there are not propagated"));
	ck_assert_ptr_nonnull(strstr(finding->text, KUBELET " is not shared"));
	node_findings_done(&found);
}
END_TEST

#define MOUNTS_OF_POD(spreading)                                                                             \
	"1 0 0:1 / / rw - overlay overlay rw\n"                                                              \
	"2 1 0:2 / " KUBELET "/pods rw shared:1 - ext4 /dev/y rw\n"                                          \
	"3 1 0:2 / " KUBELET "/plugins/kubernetes.io/csi rw " spreading " - ext4 /dev/y rw\n"

START_TEST(in_a_pod_the_folders_that_are_mounted_into_it_count)
{
	make_folders_of_pod();
	ck_assert_int_eq(look(NULL, MOUNTS_OF_POD("shared:1"))->level, NODE_OK);
	ck_assert_int_eq(look(NULL, MOUNTS_OF_POD("master:1"))->level, NODE_PROBLEM);
	node_findings_done(&found);
}
END_TEST

START_TEST(a_folder_that_does_not_exist_is_noted)
{
	char *const dirs[] = {(char[]){"/nowhere"}, NULL};
	const struct node_finding *finding = look(dirs, shared);

	ck_assert_int_eq(finding->level, NODE_NOTE);
	ck_assert_ptr_nonnull(strstr(finding->text, "/nowhere does not exist"));
	node_findings_done(&found);
}
END_TEST

#define STATE "/var/lib/pmem"

static enum node_level state_level(const char *mountinfo)
{
	CLEANUP(mount_table_freep) struct mount_table *mounts = NULL;
	struct error *err = NULL;
	enum node_level level;

	ASSERT_OK(mount_table_parse(mountinfo, &mounts, &err));
	const struct propagation_check_config config = {
		.root = SCRATCH, .state_path = STATE, .mounts = mounts};
	node_findings_done(&found);
	propagation_check(&config, &found);
	ck_assert_uint_eq(found.n, 2);
	ck_assert_str_eq(found.list[1].name, "state-mounts");
	level = found.list[1].level;
	ck_assert(level != NODE_NOTE || strstr(found.list[1].text, "no volumes for Kata Containers"));
	node_findings_done(&found);
	return level;
}

START_TEST(a_state_folder_whose_mounts_do_not_spread_is_noted)
{
	static const char *const paths[] = {SCRATCH STATE};

	make_kubelet_dir();
	make_folders(paths, ARRAY_SIZE(paths));
	ck_assert_int_eq(state_level(shared), NODE_OK);
	ck_assert_int_eq(state_level("1 0 0:1 / / rw shared:1 - ext4 /dev/x rw\n"
				     "2 1 0:2 / " SCRATCH STATE " rw - ext4 /dev/y rw\n"),
		NODE_NOTE);
}
END_TEST

SCRATCH_MAIN("propagation_check", a_state_folder_whose_mounts_do_not_spread_is_noted,
	mounts_that_do_not_spread_are_a_problem, in_a_pod_the_folders_that_are_mounted_into_it_count,
	a_folder_that_does_not_exist_is_noted)
