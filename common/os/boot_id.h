/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boot_id.h - identifies a boot of the machine. Threads: safe. Blocks on procfs only.
 */
#pragma once

#include "base/error.h"

/** boot_id_read() - read the ID of this boot: the same in all containers of a node, and different after each
 * boot. @ret: a UUID in text, the caller frees. Return: 0, or -1 with ERR_INTERNAL or ERR_NOT_FOUND. Source:
 * Linux, drivers/char/random.c, proc_do_uuid(). */
int boot_id_read(char **ret, struct error **err) MUST_CHECK;
