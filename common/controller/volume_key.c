/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/volume_key.h"

#include <string.h>

#include "volume/id.h"

struct volume_key volume_key_of_name(const char *name)
{
	struct volume_key key;

	pmem_volume_key(name, key.hex);
	return key;
}

struct volume_key volume_key_of_handle(const char *handle)
{
	struct volume_key key = {0};

	if (!volume_id_has_minted_form(handle))
		return volume_key_of_name(handle);
	memcpy(key.hex, strrchr(handle, '-') + 1, PMEM_VOLUME_KEY_LEN);
	return key;
}
