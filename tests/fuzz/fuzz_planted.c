/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A parser with a defect: the length that the input names is not compared with what is there. It shows that
 * scripts/fuzz finds such (scripts/fuzz --prove), and is no part of the tests otherwise.
 */
#include <string.h>

#include "fuzz/fuzz.h"

static unsigned sum_name(struct span in)
{
	unsigned sum = 0;

	for (size_t i = 0; i < in.p[4]; i++)
		sum += in.p[5 + i];
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 5 && memcmp(data, "PMEM", 4) == 0)
		assert(sum_name((struct span){data, size}) <= UINT8_MAX * UINT8_MAX);
	return 0;
}
