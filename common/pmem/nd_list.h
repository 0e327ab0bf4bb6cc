/*
 * nd_list.h - reading what libndctl and sysfs show; private to the real nd.h (nd_list.c, nd_real.c).
 *
 * Whether a device is bound and what its block device is called is read from sysfs: libndctl's own getters
 * wait for udev's queue at each call, up to 5 s (ndctl_bus_wait_probe()). Threads: the caller holds the locks
 * of nd.h.
 */
#pragma once

#include "pmem/nd.h"

#define ND_SYSFS_DEVICES "/sys/bus/nd/devices"

struct ndctl_ctx;

/** nd_context_new() - a fresh libndctl context that logs as debug events. Return: 0, or -1 with ERR_INTERNAL.
 * @ret: nd_context_free(). */
int nd_context_new(struct ndctl_ctx **ret, struct error **err) MUST_CHECK;
void nd_context_free(struct ndctl_ctx *ctx);
DEFINE_CLEANUP(struct ndctl_ctx *, nd_context_free);

/** nd_list_read() - everything there is, from a fresh context. Return: 0, or -1 with ERR_INTERNAL.
 * @ret: nd_inventory_free(). */
int nd_list_read(struct nd_inventory **ret, struct error **err) MUST_CHECK;

/** nd_seed_align() - the alignment that nd_create() gives a namespace of @region ("region0"): PFN_ALIGN_BYTES
 * if it is offered, else what the kernel has set; 0 when that is unknown. */
uint64_t nd_seed_align(const char *region);
