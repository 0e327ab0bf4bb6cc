/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held.h - what a process holds that outlives a call: descriptors, mounts, loop devices, temporary files,
 * children.
 */
#pragma once

/**
 * held_now() - one line for each thing that is held.
 * @folder: where to look for temporary files (*.tmp), and for files under loop devices; NULL: nowhere
 * Return: caller frees.
 */
char *held_now(const char *folder);

/** held_own() - as held_now(), without what another call can clear away: loop devices and temporary files.
 * Return: caller frees. */
char *held_own(void);

/** held_detach() - detach loop devices over files whose path contains @name: they outlive a failed test. */
void held_detach(const char *name);
