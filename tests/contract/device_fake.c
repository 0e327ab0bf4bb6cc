/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of device managers on the fake one, in memory and in a folder. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "contract/device_contract.h"
#include "os/file.h"
#include "os/loopdev.h"
#include "unit/unit.h"

#define N_REGIONS    2
#define REGION_BYTES (64ULL << 20)
#define UNIT_BYTES   (2ULL << 20)

static char base[] = "/tmp/pmem-contract-XXXXXX";
static char folder[sizeof(base) + sizeof("/fake")];

/* Also for what runs outside of a check, where check's assertions do not work. */
static void must(int rc, const struct error *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "device_fake: %s\n", err->msg);
	abort();
}

static struct device_manager *open_fake(const char *path)
{
	const struct device_fake_config config = {
		.path = path, .n_regions = N_REGIONS, .region_bytes = REGION_BYTES, .unit_bytes = UNIT_BYTES};
	struct device_manager *m = NULL;
	struct error *err = NULL;

	must(device_open_fake(&config, &m, &err), err);
	return m;
}

static struct device_manager *open_memory(void)
{
	return open_fake(NULL);
}

static struct device_manager *open_folder(void)
{
	return open_fake(folder);
}

static void deactivate(const struct device *d)
{
	CLEANUP(free_charp) char *image = x_asprintf("%s/%s.image", folder, d->id);
	CLEANUP(fd_closep) int fd = open(image, O_RDWR | O_CLOEXEC);
	struct error *err = NULL;

	ck_assert_int_ge(fd, 0);
	ASSERT_OK(loop_detach(fd, &err));
}

static int run_in_memory(void)
{
	const struct device_contract contract = {
		.name = "device_fake_in_memory", .open = open_memory, .is_plain = true};

	return device_contract_run(&contract);
}

/* A check that failed may have left devices; loop devices would outlive us. */
static void remove_folder(void)
{
	CLEANUP(device_closep) struct device_manager *m = open_folder();
	CLEANUP(device_list_freep) struct device_list *l = NULL;
	CLEANUP(fd_closep) int dir_fd = -1;
	CLEANUP(strv_freep) char **names = NULL;
	struct error *err = NULL;

	must(device_list_read(m, &l, &err), err);
	for (size_t i = 0; i < l->n_devices; i++)
		must(device_destroy(m, &l->devices[i], /* exclusive_fd= */ -1, &err), err);
	must(dir_open(folder, /* create= */ false, 0, &dir_fd, &err), err);
	must(dir_list(dir_fd, &names, &err), err);
	for (size_t i = 0; names[i]; i++)
		unlinkat(dir_fd, names[i], 0);
	rmdir(folder);
	rmdir(base);
}

static int run_in_folder(void)
{
	const struct device_contract contract = {.name = "device_fake_in_folder",
		.open = open_folder,
		.deactivate = deactivate,
		.has_nodes = true,
		.is_plain = true,
		.sees_opens = true,
		.is_durable = true};

	if (geteuid() != 0 || access("/dev/loop-control", R_OK | W_OK) < 0) {
		fprintf(stderr, "SKIP device_fake_in_folder: needs root and loop devices\n");
		return EXIT_SUCCESS;
	}
	if (!mkdtemp(base))
		return EXIT_FAILURE;
	snprintf(folder, sizeof(folder), "%s/fake", base);
	int status = device_contract_run(&contract);
	remove_folder();
	return status;
}

int main(void)
{
	int in_memory = run_in_memory();
	int in_folder = run_in_folder();

	return in_memory == EXIT_SUCCESS ? in_folder : in_memory;
}
