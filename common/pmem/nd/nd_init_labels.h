/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_init_labels.h - initialises the blank label areas below a region, so that the kernel divides it into
 * namespaces with names. Private to the real nd.h, whose locks the caller holds.
 *
 * The region is disabled meanwhile. A note in /run/pmem-csi, which like that state ends with the boot, tells
 * the next process to bring back what a killed one has disabled. Blocks: libndctl, which waits for udev.
 * Source: __action_init() of ndctl's ndctl/dimm.c; docs/decisions/084.
 */
#pragma once

#include "pmem/nd/nd.h"

/** nd_init_labels_run() - nd_init_labels() for the kernel. */
int nd_init_labels_run(const struct nd_region *r, const struct nd_look *look, struct error **err) MUST_CHECK;

/** nd_init_labels_settle() - nd_settle_labels() for the kernel. */
int nd_init_labels_settle(bool *ret_changed, struct error **err) MUST_CHECK;
