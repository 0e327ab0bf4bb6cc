/* SPDX-License-Identifier: Apache-2.0 */
/*
 * confine.h - for targets whose code makes, removes and mounts files as root: nothing of the host is within
 * their reach.
 */
#pragma once

/* an empty file system of this process alone, gone with it */
#define CONFINED_DIR "/dev/shm"

/**
 * confine() - from now on this process, in a mount namespace of its own, writes nowhere but in CONFINED_DIR
 * and its working folder, and has no capability, so that it cannot mount either.
 *
 * Ends the process with status 77, and says so, where that cannot be had.
 */
void confine(void);
