/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/volume/injected.h"

#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/mem.h"
#include "unit/inject/held.h"
#include "unit/inject/ops.h"

#define TIMEOUT_S 1700

void injected_enter(void)
{
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	ck_assert_int_eq(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
}

void injected_set_up(void)
{
	injected_enter();
	fixture_folder();
	ops_wrap_devices(&fx.devices);
}

const char *injected_folder(void)
{
	static char path[64];
	CLEANUP(free_charp) char *base = fixture_path("");

	snprintf(path, sizeof(path), "%.*s", (int)strlen(base) - 1, base);
	return path;
}

int injected_run(const char *name, void (*setup)(void), const TTest *const *tests, size_t n)
{
	TCase *tcase = fixture_case(name, setup);

	if (!tcase)
		return SKIP_STATUS;
	tcase_set_timeout(tcase, TIMEOUT_S);
	for (size_t i = 0; i < n; i++)
		tcase_add_test(tcase, tests[i]);

	int status = fixture_finish();
	held_detach(strrchr(injected_folder(), '/'));
	return status;
}
