/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage.h - the parameter "usage" of a StorageClass. FileIO is an ordinary block device with sectors that are
 * written atomically (a sector namespace), AppDirect is memory that can be mapped (fsdax). Threads: safe;
 * nothing blocks.
 */
#pragma once

#include <stdbool.h>

enum volume_usage { USAGE_APP_DIRECT, USAGE_FILE_IO };

/** volume_usage_name() - @usage as it is written in parameters. Return: static string. */
const char *volume_usage_name(enum volume_usage usage);

/** volume_usage_parse() - parse the name of a usage; @text may be NULL. Return: whether it is one; @ret is
 * set only then. */
bool volume_usage_parse(const char *text, enum volume_usage *ret);

/** volume_usage_is_file_io() - whether @text names FileIO. For callers that estimate sizes: the parameters
 * were not checked there, and any other text counts as AppDirect until CreateVolume refuses it.
 */
bool volume_usage_is_file_io(const char *text);
