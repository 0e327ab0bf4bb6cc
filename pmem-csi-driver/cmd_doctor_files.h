/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_doctor_files.h - `pmem-csi-driver doctor -files`. Threads: none. Blocks on the file systems of volumes.
 */
#pragma once

#include "commands.h"
#include "os/blocks/fs_owners.h"

/** doctor_show_files() - print which files the media errors of volumes belong to. @bound: as
 * lost_files_find(). Return: exit status; COMMAND_BLIND with @err as command_look(). */
int doctor_show_files(
	const struct command *c, const struct fs_owners_bound *bound, struct error **err) MUST_CHECK;
