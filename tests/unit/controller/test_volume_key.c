/* SPDX-License-Identifier: Apache-2.0 */
#include "controller/volume_key.h"
#include "unit/unit.h"
#include "volume/id.h"

#define NAME "pvc-6ef2b1f4-7b53-4ab1-9d6e-0e9a5f0a3b21"

START_TEST(a_name_and_all_ids_made_of_it_have_one_key)
{
	struct volume_key key = volume_key_of_name(NAME);
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint(NAME, "node-1", id);
	ck_assert_str_eq(volume_key_of_handle(id).hex, key.hex);
	volume_id_mint(NAME, NULL, id);
	ck_assert_str_eq(volume_key_of_handle(id).hex, key.hex);
	volume_id_mint_go(NAME, id);
	ck_assert_str_eq(volume_key_of_handle(id).hex, key.hex);
	ck_assert_str_ne(volume_key_of_handle("csi-abc").hex, key.hex);
}
END_TEST

UNIT_MAIN("controller/volume_key", a_name_and_all_ids_made_of_it_have_one_key)
