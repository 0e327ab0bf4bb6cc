/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kmsg.h - reads the kernel's recent log messages about a device. A mount(2) that fails returns only EINVAL;
 * the reason is in the kernel's log.
 *
 * Threads: safe. Never waits.
 */
#pragma once

#include <sys/types.h>

/** kmsg_mark() - remember where the kernel's log ends now. Return: for kmsg_since(), which the caller closes;
 * -1 where the log may not be read. */
int kmsg_mark(void);

/**
 * kmsg_since() - what the kernel has said since then of a device.
 * @mark_fd: from kmsg_mark(); -1: nothing is known
 * @dev:     number of the block device
 *
 * Where it names no device, as ext4 does about options, what a file system has said counts, which may be of
 * another mount at that time. Source: Documentation/ABI/testing/dev-kmsg. Return: a few messages, joined by
 * "; "; caller frees; NULL: none.
 */
char *kmsg_since(int mark_fd, dev_t dev);
