#include "init_chain.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "os/spawn.h"

#define STAGE_TIMEOUT_MS 300000

static int own_folder(char out[static PATH_MAX], struct error **err)
{
	ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);

	if (n < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "read /proc/self/exe");
	out[n] = '\0';
	*strrchr(out, '/') = '\0';
	return 0;
}

static int run_stage(const char *folder, const char *program, const char *flag, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", folder, program);
	const char *const argv[] = {path, flag, NULL};

	if (spawn_check(argv, /* out= */ NULL, STAGE_TIMEOUT_MS, err) < 0)
		return err_wrap(err, "stage %s", program);
	return 0;
}

int init_chain_run(unsigned percent, struct error **err)
{
	CLEANUP(free_charp) char *share = x_asprintf("-useforfsdax=%u", percent);
	char folder[PATH_MAX];

	if (own_folder(folder, err) < 0)
		return -1;
	if (run_stage(folder, "pmem-ns-init", share, err) < 0)
		return -1;
	return run_stage(folder, "pmem-vgm", /* flag= */ NULL, err);
}
