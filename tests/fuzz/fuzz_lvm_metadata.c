/* SPDX-License-Identifier: Apache-2.0 */
/* The text in which LVM describes a volume group, from a copy or a damaged metadata area. */
#include "fuzz/fuzz.h"
#include "pmem/lvm/lvm_metadata_text.h"

#include <stdlib.h>

#include "base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(lvm_text_done) struct lvm_text t = {0};
	struct error *err = NULL;

	if (lvm_text_parse((struct span){data, size}, &t, &err) < 0) {
		fuzz_error(err);
		assert(!t.group && !t.pvs && !t.volumes);
		return 0;
	}
	assert(t.group && !str_empty(t.group_uuid) && t.seqno > 0);
	for (size_t i = 0; i < t.n_pvs; i++) {
		assert(!str_empty(t.pvs[i].uuid) && t.pvs[i].data_offset_bytes <= t.pvs[i].data_end_bytes);
		assert(lvm_text_pv(&t, t.pvs[i].uuid));
	}
	return 0;
}
