/* SPDX-License-Identifier: Apache-2.0 */
/* The driver on a host without persistent memory: one region with one pool namespace, of which LVM, or what
 * stands in for it, has a volume group. */
#include "unit/pmem/nd/nd_fake.h"

#define REGION_BYTES (1ULL << 30)
#define POOL_BYTES   (512ULL << 20)

int __wrap_nd_open_real(struct nd **ret, struct error **err);

int __wrap_nd_open_real(struct nd **ret, struct error **err)
{
	const struct nd_fake_region region = {.size_bytes = REGION_BYTES, .label_slots = 16};

	(void)err;
	*ret = nd_open_fake(&region, 1);
	nd_fake_add(*ret, 0, POOL_NAMESPACE_NAME, ND_FSDAX, 0, POOL_BYTES);
	return 0;
}
