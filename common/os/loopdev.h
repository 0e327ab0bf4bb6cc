/*
 * loopdev.h - loop devices over files (fake volumes, Kata image files). Source: linux/loop.h.
 *
 * A loop is found again by the device and inode of its backing file, so nothing needs to be remembered across a
 * crash. Threads: safe. Blocks briefly.
 */
#pragma once

#include <stddef.h>

#include "base/error.h"

/** loop_attach() - a loop device over @file_fd (whole file). Idempotent: an attached one is given back.
 * @ret_path: "/dev/loopN", caller frees. Return: 0, or -1 with ERR_UNAVAILABLE (no free loop), ERR_INTERNAL. */
int loop_attach(int file_fd, char **ret_path, struct error **err) MUST_CHECK;

/** loop_find() - the loop device over @file_fd. @ret_path: NULL when there is none. */
int loop_find(int file_fd, char **ret_path, struct error **err) MUST_CHECK;

/** loop_detach() - detach the loop over @file_fd; none is success. Return: 0, or -1 with ERR_PRECONDITION (in use). */
int loop_detach(int file_fd, struct error **err) MUST_CHECK;
