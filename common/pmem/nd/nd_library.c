/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/nd/nd_library.h"

#include "base/log.h"
#include "base/mem.h"

__attribute__((format(printf, 6, 0))) static void log_library(struct ndctl_ctx *ctx, int priority,
	const char *file, int line, const char *function, const char *format, va_list ap)
{
	(void)ctx;
	(void)priority;
	(void)file;
	(void)line;
	if (!log_enabled(LOG_DEBUG))
		return;
	CLEANUP(free_charp) char *text = x_vasprintf(format, ap);
	log_debug("libndctl", F_STR("function", function), F_STR("message", text));
}

int nd_library_open(struct ndctl_ctx **ret, struct error **err)
{
	struct ndctl_ctx *ctx = NULL;
	int rc = ndctl_new(&ctx);

	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "open libndctl");
	ndctl_set_log_fn(ctx, log_library);
	*ret = ctx;
	return 0;
}

void nd_library_close(struct ndctl_ctx *ctx)
{
	ndctl_unref(ctx);
}
