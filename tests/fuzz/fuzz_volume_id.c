/* SPDX-License-Identifier: Apache-2.0 */
/* Volume names, handles and IDs: first line the node, then a name or a handle. */
#include "volume/id.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz/fuzz.h"

/* Checks that the ID of any volume name can be the name of a device and of a file. */
static void check_mint(const char *name, const char *node_id)
{
	char id[VOLUME_ID_MAX + 1];
	char go_id[VOLUME_ID_MAX + 1];

	volume_id_mint(name, node_id, id);
	assert(volume_id_valid(id) && !strchr(id, '/') && id[0] != '.' && id[0] != '-');
	volume_id_mint_go(name, go_id);
	assert(!str_eq(id, go_id));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	CLEANUP(free_charp) char *node_id = fuzz_line(&in);
	CLEANUP(free_charp) char *text = fuzz_text(in);
	struct error *err = NULL;

	if (!node_id)
		return 0;
	if (volume_name_check(text, &err) < 0)
		fuzz_error(err);
	else
		assert(*text && strlen(text) <= VOLUME_NAME_MAX && str_is_utf8(text, strlen(text)));
	check_mint(text, node_id);
	if (volume_id_valid(text))
		assert(volume_handle_valid(text) && strlen(text) <= VOLUME_ID_MAX && !strchr(text, '/'));
	return 0;
}
