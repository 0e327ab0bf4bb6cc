/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of device managers on LVM, over the volume groups of the lab machine. With the argument
 * "exec": with a process per command instead of LVM's shell. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "contract/device_contract.h"
#include "os/spawn.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/nd.h"
#include "unit/unit.h"

#define SKIPPED    77
#define TIMEOUT_MS 60000

static struct device_manager *open_manager(struct lvm *lvm)
{
	struct nd *nd = NULL;
	struct error *err = NULL;

	ASSERT_OK(nd_open_real(&nd, &err));
	return device_open_lvm(nd, lvm, /* saved_folder= */ NULL);
}

static struct device_manager *open_shell(void)
{
	return open_manager(lvm_open_shell(/* idle_ms= */ 1));
}

static struct device_manager *open_exec(void)
{
	return open_manager(lvm_open_exec());
}

/* Deactivates a device with lvchange and the machine's own configuration, as another program may. */
static void deactivate(const struct device *d)
{
	CLEANUP(free_charp) char *config = x_asprintf("LVM_SYSTEM_DIR=%s", getenv("LVM_SYSTEM_DIR"));
	const char *const argv[] = {"lvchange", "-an", d->path, NULL};
	const char *const env[] = {config, NULL};
	struct error *err = NULL;
	int status = -1;

	ASSERT_OK(spawn_run(argv, env, NULL, NULL, TIMEOUT_MS, &status, &err));
	ck_assert_int_eq(status, 0);
}

int main(int argc, char **argv)
{
	bool exec = argc > 1 && str_eq(argv[1], "exec");
	const struct device_contract contract = {
		.name = exec ? "device_lvm_exec" : "device_lvm",
		.open = exec ? open_exec : open_shell,
		.deactivate = deactivate,
		.has_nodes = true,
		.is_plain = true,
		.sees_opens = true,
		.is_durable = true,
	};

	if (!getenv("PMEM_LAB_MACHINE")) {
		fputs("skipped: destroys logical volumes, and PMEM_LAB_MACHINE is not set\n", stderr);
		return SKIPPED;
	}
	signal(SIGPIPE, SIG_IGN);
	return device_contract_run(&contract);
}
