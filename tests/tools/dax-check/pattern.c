/* SPDX-License-Identifier: Apache-2.0 */
#include "pattern.h"

#include <string.h>

/* One step of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014). */
static uint64_t word_at(uint32_t seed, uint64_t offset)
{
	uint64_t z = ((uint64_t)seed << 32) + offset / sizeof(z) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void pattern_fill(uint32_t seed, uint64_t offset, void *out, size_t n)
{
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t word = word_at(seed, offset + i);

		memcpy((char *)out + i, &word, sizeof(word));
	}
}

int pattern_check(uint32_t seed, uint64_t offset, const void *in, size_t n, struct error **err)
{
	for (size_t i = 0; i < n; i += sizeof(uint64_t)) {
		uint64_t wanted = word_at(seed, offset + i);
		uint64_t found;

		memcpy(&found, (const char *)in + i, sizeof(found));
		if (found != wanted)
			return err_set(err, ERR_INTERNAL, "offset %llu holds %016llx, not %016llx",
				(unsigned long long)(offset + i), (unsigned long long)found,
				(unsigned long long)wanted);
	}
	return 0;
}
