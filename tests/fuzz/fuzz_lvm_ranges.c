/* SPDX-License-Identifier: Apache-2.0 */
/* Where LVM's report says that volumes lie. */
#include "fuzz/fuzz.h"
#include "pmem/lvm/lvm.h"

#include <string.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(strv_freep) char **ranges = NULL;
	struct error *err = NULL;

	if (lvm_ranges_parse((struct span){data, size}, &ranges, &err) < 0) {
		fuzz_error(err);
		assert(!ranges);
	}
	for (size_t i = 0; i < strv_len(ranges); i++)
		assert(!str_empty(ranges[i]) && !strchr(ranges[i], ' '));
	return 0;
}
