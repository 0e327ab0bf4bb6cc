/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/cxl/cxl_label_area.h"

#include <endian.h>
#include <string.h>

#define SIGNATURE "NAMESPACE_INDEX" /* with its NUL */
#define SIZE_AT   32
#define SLOTS_AT  56
#define FREE_AT   72

static bool has_only(struct span s, uint8_t byte)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != byte)
			return false;
	return true;
}

static bool is_index(struct span index)
{
	return index.n >= FREE_AT && memcmp(index.p, SIGNATURE, sizeof(SIGNATURE)) == 0;
}

static bool all_slots_are_free(struct span index)
{
	uint32_t slots;

	memcpy(&slots, index.p + SLOTS_AT, sizeof(slots));
	slots = le32toh(slots);
	if (slots == 0 || slots > (index.n - FREE_AT) * 8)
		return false;
	for (size_t i = 0; i < slots; i++)
		if (!(index.p[FREE_AT + i / 8] >> i % 8 & 1))
			return false;
	return true;
}

bool cxl_label_area_is_empty(struct span area)
{
	uint64_t size;

	if (has_only(area, 0) || has_only(area, 0xff))
		return true;
	if (!is_index(area))
		return false;
	memcpy(&size, area.p + SIZE_AT, sizeof(size));
	size = le64toh(size);
	if (size < FREE_AT || size > area.n / 2)
		return false;

	/* The second one is written with the first label at the latest. */
	struct span first = {area.p, size};
	struct span second = {area.p + size, size};
	return all_slots_are_free(first) &&
	       (is_index(second) ? all_slots_are_free(second) : has_only(second, 0));
}
