/* SPDX-License-Identifier: Apache-2.0 */
#include "init_chain.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/spawn.h"

#define STAGE_TIMEOUT_MS 300000
#define MAX_FLAGS        5
#define OUTPUT_MAX_BYTES (1U << 20)

static int own_folder(char out[static PATH_MAX], struct error **err)
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

	if (n < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "read /proc/self/exe");
	out[n] = '\0';
	*strrchr(out, '/') = '\0';
	return 0;
}

/* @flags: those that are NULL are left out */
static int run_stage(
	const char *folder, const char *program, const char *const flags[MAX_FLAGS], struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, program);
	const char *argv[MAX_FLAGS + 2] = {path};
	size_t n = 1;

	for (size_t i = 0; i < MAX_FLAGS; i++)
		if (flags[i])
			argv[n++] = flags[i];
	if (spawn_check(argv, /* out= */ NULL, STAGE_TIMEOUT_MS, err) < 0)
		return err_wrap(err, "stage %s", program);
	return 0;
}

/* Runs the conversion as a process, and copies its output to our own output, so that it is in the log of the
 * pod. */
static int run_conversion(const char *path, const char *format, const char *state_path, struct error **err)
{
	CLEANUP(free_charp) char *state = x_asprintf("-statePath=%s", state_path);
	const char *const argv[] = {path, "-logging-format", format, state, "-force", "convert", NULL};
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);
	CLEANUP(buf_done) struct buf diag = BUF_INIT(OUTPUT_MAX_BYTES);
	int status = 0;

	if (spawn_run(argv, /* env= */ NULL, &out, &diag, STAGE_TIMEOUT_MS, &status, err) < 0)
		return err_wrap(err, "conversion");
	fputs(buf_str(&out), stdout);
	fflush(stdout);
	fputs(buf_str(&diag), stderr);
	if (status != 0)
		return err_set(err, ERR_INTERNAL,
			"conversion: pmem-ns-init ended with status %d; its log says why", status);
	return 0;
}

int init_chain_convert(const char *logging_format, const char *state_path, struct error **err)
{
	CLEANUP(free_charp) char *path = NULL;
	char folder[PATH_MAX];

	if (own_folder(folder, err) < 0)
		return -1;
	path = x_asprintf("%s/pmem-ns-init", folder);
	return run_conversion(path, logging_format, state_path, err);
}

int init_chain_run(const struct init_chain *c, struct error **err)
{
	CLEANUP(free_charp) char *share = x_asprintf("-useforfsdax=%u", c->percent);
	CLEANUP(free_charp) char *state = x_asprintf("-statePath=%s", c->state_path);
	CLEANUP(free_charp)
	char *unlabelled = c->unlabelled ? x_asprintf("-unlabelled=%s", c->unlabelled) : NULL;
	CLEANUP(free_charp) char *rule = x_asprintf("-cxlRegions=%s", c->cxl_regions);
	const char *const ns_init[MAX_FLAGS] = {
		share, state, rule, c->init_labels ? "-initLabels" : NULL, unlabelled};
	const char *const vgm[MAX_FLAGS] = {state};
	char folder[PATH_MAX];

	if (own_folder(folder, err) < 0)
		return -1;
	if (run_stage(folder, "pmem-ns-init", ns_init, err) < 0)
		return -1;
	return run_stage(folder, "pmem-vgm", vgm, err);
}
