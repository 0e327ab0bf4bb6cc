/* SPDX-License-Identifier: Apache-2.0 */
/* Free space of groups below which memory has lost its content. */
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/device/device_lvm_private.h"
#include "pmem/lvm/lvm_usable.h"

const struct lvm_vg *device_lvm_group(const struct device_lvm *m, const char *uuid)
{
	for (size_t i = 0; m->report && i < m->report->n_vgs; i++) {
		if (str_eq(m->report->vgs[i].uuid, uuid))
			return &m->report->vgs[i];
	}
	return NULL;
}

/* A list that cannot be read is reported with the health of volumes. */
static struct bad_ranges read_list(const struct lvm_pv *pv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct bad_ranges bad = {0};

	if (!pv->missing && bad_ranges_read(pv->path, &bad, &err) < 0)
		log_debug("it is not known which of its blocks are bad, ignoring", F_STR("device", pv->path),
			F_ERR(err));
	return bad;
}

static void tell_change(const struct device_lvm *m, const struct lvm_vg *vg)
{
	const struct lvm_vg *before = device_lvm_group(m, vg->uuid);

	if (vg->bad_bytes == (before ? before->bad_bytes : 0))
		return;
	if (vg->bad_bytes == 0)
		log_info("free space of a volume group has no media errors any more",
			F_STR("group", vg->name));
	else
		log_warn("free space of a volume group is not used because of media errors",
			F_STR("group", vg->name), F_U64("bytes", vg->bad_bytes),
			F_U64("usable_bytes", vg->free_bytes));
}

void device_lvm_limit_space(const struct device_lvm *m, struct lvm_report *report)
{
	struct bad_ranges *bad = x_calloc(report->n_pvs, sizeof(*bad));

	for (size_t i = 0; i < report->n_pvs; i++)
		bad[i] = read_list(&report->pvs[i]);
	for (size_t i = 0; i < report->n_vgs; i++) {
		lvm_usable_find(report, bad, &report->vgs[i]);
		tell_change(m, &report->vgs[i]);
	}
	for (size_t i = 0; i < report->n_pvs; i++)
		bad_ranges_done(&bad[i]);
	free(bad);
}

bool device_lvm_is_space_kept(const struct device_lvm *m, const char *pool)
{
	const struct lvm_vg *vg = device_lvm_group(m, pool);
	bool kept = vg && !vg->is_limited;

	for (size_t i = 0; kept && i < m->report->n_pvs; i++) {
		if (!str_eq(m->report->pvs[i].vg_uuid, pool))
			continue;
		CLEANUP(bad_ranges_done) struct bad_ranges bad = read_list(&m->report->pvs[i]);
		kept = !bad_ranges_has_any(&bad);
	}
	return kept;
}

int device_lvm_name_bad_space(const struct device_lvm *m, const char *pool, struct error **err)
{
	const struct lvm_vg *vg = device_lvm_group(m, pool);

	if (!vg || vg->bad_bytes == 0)
		return -1;
	return err_wrap(err,
		"%ju bytes of free space of volume group %s are not used because of media errors",
		(uintmax_t)vg->bad_bytes, vg->name);
}
