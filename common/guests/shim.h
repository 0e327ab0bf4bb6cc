/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shim.h - asks the shims of Kata Containers, the programs that run a sandbox each, about the devices that
 * their guests have been given. Source: src/runtime/pkg/containerd-shim-v2/shim_management.go and
 * src/runtime/cmd/kata-runtime/kata-volume.go of Kata Containers (August 2026). Threads: safe. Blocks for
 * timeout_ms at most.
 */
#pragma once

#include "base/error.h"
#include "volume/volumes.h"

/* Where the sockets are: <folder>/<sandbox>/shim-monitor.sock. */
struct shim_sockets {
	const char
		*folders[2]; /* in the order in which they are looked at: of the Go runtime, of runtime-rs */
	int timeout_ms;      /* for one question, from connecting to the last byte of the answer */
};

/* The sockets of the Kata runtimes on the host. */
#define SHIM_SOCKETS ((struct shim_sockets){.folders = {"/run/vc/sbs", "/run/kata"}, .timeout_ms = 5000})

/** shim_guests() - the operations that volumes need. @s: borrowed, for as long as they are used. */
struct volume_guests shim_guests(struct shim_sockets *s);
