/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_key.h - the key of a volume, which its name and all handles that are made of that name have in
 * common: the name of its PmemVolume begins with it, so a name or a handle leads to the record with one read.
 *
 * Pure. Threads: safe.
 */
#pragma once

#include "resources/pmem_volume.h"

struct volume_key {
	char hex[PMEM_VOLUME_KEY_LEN + 1];
};

/** volume_key_of_name() - of the volume that is or will be made for @name. */
struct volume_key volume_key_of_name(const char *name);

/** volume_key_of_handle() - of the volume with @handle; of a handle in another form one of its own. */
struct volume_key volume_key_of_handle(const char *handle);
