/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of which devices the LVM of the host scans. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "pmem/lvm/lvm_host.h"
#include "unit/unit.h"

static bool scans(const char *settings, const char *path)
{
	struct lvm_host h = {0};

	lvm_host_parse(span_of(settings), &h);
	bool found = lvm_host_scans(&h, path);
	lvm_host_done(&h);
	return found;
}

START_TEST(the_first_pattern_that_matches_decides)
{
	static const struct {
		const char *settings;
		bool scans;
	} cases[] = {
		{"", true},
		{"global_filter=[\"a|.*|\"]\nfilter=[\"a|.*|\"]\nuse_devicesfile=0\n", true},
		{"global_filter=\"r|^/dev/pmem|\"\nfilter=\"a|.*|\"\n", false},
		{"global_filter=[\"r|^/dev/pmem|\",\"a|.*|\"]\n", false},
		{"global_filter=[\"a|.*|\",\"r|^/dev/pmem|\"]\n", true},
		{"\tfilter=[\"a|^/dev/sd|\",\"r/.*/\"]", false},
		{"filter=[\"r|^/dev/sd|\"]", true},
		{"filter=[\"r|^/dev/pmem1$|\"]", true},
		{"filter=[\"a|^/dev/pmem0$|\",\"r|^/dev/pmem|\"]", true},
		{"filter=[\"r|(|\",\"\",\"r\",\"r||\"]", false},
		{"filter=[\"r|^/dev/pmem", true},
		{"use_devicesfile=1\n", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ck_assert_msg(
			scans(cases[i].settings, "/dev/pmem0") == cases[i].scans, "%s", cases[i].settings);
}
END_TEST

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

/* Below a root of its own. */
START_TEST(lvm_is_asked_under_the_configuration_of_the_host)
{
	char root[] = "/tmp/lvm-host-XXXXXX";
	struct error *err = NULL;
	struct lvm_host h;

	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(chdir(root), 0);
	ASSERT_OK(lvm_host_read(root, &h, &err));
	ck_assert(h.is_absent && !lvm_host_scans(&h, "/dev/pmem0"));
	lvm_host_done(&h);
	if (access("/usr/sbin/lvm", X_OK) < 0) {
		fprintf(stderr, "SKIP lvm_host: needs lvm\n");
		return;
	}
	ck_assert_int_eq(mkdir("usr", 0700) | mkdir("usr/sbin", 0700) | mkdir("etc", 0700) |
				 mkdir("etc/lvm", 0700) | mkdir("etc/lvm/devices", 0700),
		0);
	write_file("usr/sbin/lvm", "");
	ASSERT_FAILS(lvm_host_read(root, &h, &err), ERR_PRECONDITION, "etc/lvm/lvm.conf does not exist");
	write_file("etc/lvm/lvm.conf", "devices {\n\tglobal_filter = [ \"r|^/dev/pmem|\" ]\n}\n");
	ASSERT_OK(lvm_host_read(root, &h, &err));
	ck_assert(!lvm_host_scans(&h, "/dev/pmem0") && lvm_host_scans(&h, "/dev/sda"));
	lvm_host_done(&h);
	write_file("etc/lvm/lvm.conf", "devices {\n\tuse_devicesfile = 1\n}\n");
	ASSERT_OK(lvm_host_read(root, &h, &err));
	ck_assert(lvm_host_scans(&h, "/dev/pmem0"));
	lvm_host_done(&h);
	write_file("etc/lvm/devices/system.devices", "");
	ASSERT_OK(lvm_host_read(root, &h, &err));
	ck_assert(!lvm_host_scans(&h, "/dev/pmem0"));
	lvm_host_done(&h);
}
END_TEST

UNIT_MAIN("pmem/lvm_host", the_first_pattern_that_matches_decides,
	lvm_is_asked_under_the_configuration_of_the_host)
