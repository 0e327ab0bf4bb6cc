/* SPDX-License-Identifier: Apache-2.0 */
/* Command lines: one argument per line. */
#include "os/args.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

struct values {
	bool verbose;
	uint32_t count;
	unsigned percent;
	const char *name;
	char **dirs;
	uint64_t size_bytes;
	uint64_t wait_ms;
};

static bool is_argument(char *const *argv, const char *text)
{
	return !text || strv_contains(argv, text) || text[-1] == '=';
}

static void check(int argc, char **argv)
{
	struct values v = {0};
	const struct opt opts[] = {
		{"verbose", OPT_BOOL, &v.verbose, NULL, "say more"},
		{"count", OPT_U32, &v.count, "N", "how many"},
		{"percent", OPT_PERCENT, &v.percent, "PERCENT", "how much"},
		{"name", OPT_STR, &v.name, "NAME", "name"},
		{"dir", OPT_STRS, &v.dirs, "DIR", "where"},
		{"size", OPT_SIZE, &v.size_bytes, "SIZE", "how large"},
		{"wait", OPT_DURATION, &v.wait_ms, "TIME", "how long"},
		{"old", OPT_IGNORED, NULL, NULL, "no effect"},
		{"older", OPT_IGNORED, NULL, "VALUE", "no effect"},
		{0},
	};
	CLEANUP(args_done) struct args args = {0};
	struct error *err = NULL;

	if (args_parse(opts, argc, argv, &args, &err) < 0) {
		fuzz_error(err);
	} else {
		assert(v.percent <= 100);
		assert(is_argument(argv, v.name));
		for (size_t i = 0; args.rest && args.rest[i]; i++)
			assert(strv_contains(argv, args.rest[i]));
		assert(strv_len(args.rest) + strv_len(args.ignored) < (size_t)argc);
	}
	strv_free(v.dirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(strv_freep) char **argv = NULL;
	struct span in = {data, size};
	char *argument;

	strv_add(&argv, "program");
	while ((argument = fuzz_line(&in))) {
		strv_add(&argv, argument);
		free(argument);
	}
	check((int)strv_len(argv), argv);
	return 0;
}
