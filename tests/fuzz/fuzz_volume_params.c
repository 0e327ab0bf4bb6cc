/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volume parameters: lines of "key=value", read as each origin would.
 *
 * Parameters that CreateVolume accepts must be readable for ever: in the state file, and in the volume
 * context that comes back with every later request.
 */
#include "volume/params.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz/fuzz.h"

static void read_pairs(struct span in, struct strmap *map)
{
	char *line;

	while ((line = fuzz_line(&in))) {
		char *value = strchr(line, '=');

		if (value)
			*value++ = '\0';
		strmap_set(map, line, value ? value : "");
		free(line);
	}
}

static bool parse(enum params_origin origin, const struct strmap *map)
{
	struct error *err = NULL;
	struct volume_params p;

	if (params_parse(origin, map, &p, &err) < 0) {
		fuzz_error(err);
		return false;
	}
	params_done(&p);
	return true;
}

static void check_created(const struct strmap *given)
{
	CLEANUP(strmap_done) struct strmap state = {0};
	CLEANUP(strmap_done) struct strmap context = {0};

	strmap_copy(&state, given);
	strmap_set(&state, "name", "volume");
	strmap_set(&state, "deviceMode", "fake");
	assert(parse(PARAMS_STATE, &state));
	params_to_context(&state, &context);
	assert(strmap_get(&context, "name"));
	assert(parse(PARAMS_CONTEXT, &context));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(strmap_done) struct strmap map = {0};
	struct span in = {data, size};

	read_pairs(in, &map);
	if (parse(PARAMS_CREATE, &map))
		check_created(&map);
	parse(PARAMS_CONTEXT, &map);
	parse(PARAMS_STATE, &map);
	return 0;
}
