/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lvm_config.h - the configuration under which our LVM commands run, instead of the host's.
 *
 * LVM_SYSTEM_DIR names a folder that contains only our lvm.conf. That costs nothing per command, while
 * --config makes the shell reload its configuration twice (lvm_run_command() in LVM's tools/lvmcmdline.c),
 * and the host's settings (volume_list, lvmlockd, udev) stay out. Threads: safe. Nothing blocks.
 */
#pragma once

#define LVM_CONFIG_MAX_BYTES (1U << 20)

/** lvm_config_text() - configuration that admits exactly @paths to LVM; a path with a character that is
 * special in a filter is left out; our devices have none.
 * @backup_dir: as lvm_set_backup_dir()
 *
 * Return: caller frees; NULL when there are too many: a truncated filter would not exclude other devices. */
char *lvm_config_text(char *const *paths, const char *backup_dir);

/** lvm_config_text_open() - the same, but it admits every device; only for commands that read. Return: caller
 * frees. */
char *lvm_config_text_open(void);
