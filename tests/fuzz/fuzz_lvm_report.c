/* SPDX-License-Identifier: Apache-2.0 */
/* Parses answers of LVM: the report, and the log of its shell. */
#include "fuzz/fuzz.h"
#include "pmem/lvm/lvm.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

/* Sorted, each once; every text is there. */
static void check_report(const struct lvm_report *r)
{
	for (size_t i = 0; i < r->n_pvs; i++)
		assert(!str_empty(r->pvs[i].path) && r->pvs[i].vg_name && r->pvs[i].vg_uuid);
	for (size_t i = 0; i < r->n_vgs; i++) {
		assert(!str_empty(r->vgs[i].name) && r->vgs[i].uuid);
		assert(i == 0 || strcmp(r->vgs[i - 1].uuid, r->vgs[i].uuid) < 0);
	}
	for (size_t i = 0; i < r->n_lvs; i++) {
		assert(!str_empty(r->lvs[i].name) && r->lvs[i].vg_uuid && r->lvs[i].path);
		assert(i == 0 || strcmp(r->lvs[i - 1].name, r->lvs[i].name) <= 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(lvm_report_freep) struct lvm_report *r = x_calloc(1, sizeof(*r));
	struct span json = {data, size};
	struct error *err = NULL;

	if (lvm_report_parse(json, r, &err) < 0)
		fuzz_error(TAKE_PTR(err));
	check_report(r);
	if (lvm_answer_check(json, &err) < 0)
		fuzz_error(err);
	return 0;
}
