/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_library.h - opens libndctl, whose messages go to the log at level debug. Private to the real nd.h.
 *
 * A context remembers all devices that it has seen, so each operation opens one of its own. Threads: a
 * context belongs to one. Blocks: sysfs.
 */
#pragma once

#include <ndctl/libndctl.h>

#include "base/error.h"

/** nd_library_open() - Return: 0, or -1 with ERR_INTERNAL. @ret: nd_library_close() */
int nd_library_open(struct ndctl_ctx **ret, struct error **err) MUST_CHECK;

/** nd_library_close() - release; NULL is not allowed. */
void nd_library_close(struct ndctl_ctx *ctx);
DEFINE_CLEANUP(struct ndctl_ctx *, nd_library_close);
