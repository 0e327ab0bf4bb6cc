/* SPDX-License-Identifier: Apache-2.0 */
/* Endpoints. Nothing is listened on or connected to. */
#include "net/core/addr.h"

#include <stdlib.h>
#include <sys/un.h>

#include "base/str.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(free_charp) char *text = fuzz_text((struct span){data, size});
	struct error *err = NULL;
	struct addr a = {0};

	if (addr_parse(text, &a, &err) < 0) {
		fuzz_error(err);
		return 0;
	}
	if (a.is_unix)
		assert(!str_empty(a.path) && strlen(a.path) < sizeof((struct sockaddr_un){0}.sun_path));
	else
		assert(a.host && !a.path);
	addr_done(&a);
	return 0;
}
