/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim_stats.h - what Kata's shim answers about a file system. Pure. Source:
 * src/libs/protocols/protos/csi.proto, VolumeStatsResponse, which getGuestVolumeStats() of
 * src/runtime/virtcontainers/kata_agent.go writes as JSON.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"
#include "os/fs_usage.h"

/** shim_stats_parse() - read @text. Return: 0, or -1 with ERR_INTERNAL (malformed; no size; a number that CSI
 * has no room for). */
int shim_stats_parse(struct span text, struct fs_usage *ret, struct error **err) MUST_CHECK;
