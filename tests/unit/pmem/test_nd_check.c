/* What is checked before the kernel is told anything, over a folder in the place of /sys. */
#include "pmem/nd_private.h"

#include <sys/stat.h>

#include "base/mem.h"
#include "unit/os/scratch.h"

static void have_sys(const char *region)
{
	CLEANUP(free_charp) char *parents = x_strdup(region);

	ck_assert_int_eq(mount("sys", "/sys", "tmpfs", 0, NULL), 0);
	for (char *p = parents + strlen("/sys/"); (p = strchr(p, '/')); p++) {
		*p = '\0';
		ck_assert_int_eq(mkdir(parents, 0755), 0);
		*p = '/';
	}
	ck_assert_int_eq(mkdir(region, 0755), 0);
}

START_TEST(read_only_sys_is_unavailable_and_named)
{
	CLEANUP(error_freep) struct error *err = NULL;

	have_sys(ND_SYSFS_DEVICES "/region0");
	ASSERT_OK(nd_check_writable("region0", &err));
	ck_assert_int_eq(mount(NULL, "/sys", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	/* Kubernetes tries again here, where the pod may be mended, instead of giving up. */
	ASSERT_FAILS(nd_check_writable("region0", &err), ERR_UNAVAILABLE, "/sys is mounted read-only");
}
END_TEST

SCRATCH_MAIN("pmem/nd_check", read_only_sys_is_unavailable_and_named)
