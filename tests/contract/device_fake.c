/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of device managers on the fake one, in memory and in a folder. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
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

/* Ends the program after a failure. Unlike the assertions of libcheck, this works also outside of a test. */
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

/* Returns the offset at which the device begins in the memory of the first region. That is also the offset in
 * the list of bad blocks. */
static uint64_t start_of(const struct device *d)
{
	static const char key[] = "\"offset\":";
	CLEANUP(free_charp) char *file = x_asprintf("%s/%s.device", folder, d->id);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4096);
	struct error *err = NULL;
	uint64_t start;

	ASSERT_OK(file_read(AT_FDCWD, file, &text, &err));
	const char *at = strstr(buf_str(&text), key);
	ck_assert_ptr_nonnull(at);
	at += sizeof(key) - 1;
	CLEANUP(free_charp) char *number = x_strndup(at, strspn(at, "0123456789"));
	ASSERT_OK(parse_u64(number, &start, &err));
	return start;
}

static void damage(const struct device *d, uint64_t offset_bytes, uint64_t length_bytes)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s/badblocks", folder);
	FILE *list = fopen(file, "ae");

	ck_assert_ptr_nonnull(list);
	fprintf(list, "%ju %ju\n", (uintmax_t)(start_of(d) + offset_bytes) / 512,
		(uintmax_t)length_bytes / 512);
	ck_assert_int_eq(fclose(list), 0);
}

static void repair(const struct device *d)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s/badblocks", folder);

	(void)d;
	ck_assert_int_eq(unlink(file), 0);
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
		.damage = damage,
		.repair = repair,
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
