/* SPDX-License-Identifier: Apache-2.0 */
#include "pmem/lvm/lvm_growth.h"

#include <string.h>

#include "base/durable_step.h"
#include "base/mem.h"
#include "base/str.h"
#include "pmem/lvm/lvm_usable.h"

#define SPARE_TAG    "pmem-csi-spare"
#define SPARE_PREFIX "_spare-" /* no name of a device begins like that: device_id_valid() */
/* Words of the command that extends onto ranges, without these. */
#define EXTEND_WORDS 5
#define RANGES_MAX   (LVM_WORDS_MAX - EXTEND_WORDS)

void lvm_spare_done(struct lvm_spare *s)
{
	free(s->name);
	free(s->path);
	strv_free(s->ranges);
	*s = (struct lvm_spare){0};
}

bool lvm_is_spare(const struct lvm_lv *lv)
{
	return str_starts(lv->name, SPARE_PREFIX) && strv_contains(lv->tags, SPARE_TAG);
}

static int read_ranges(struct lvm *l, const struct lvm_vg *vg, struct lvm_spare *s, struct error **err)
{
	CLEANUP(buf_done) struct buf json = BUF_INIT(LVM_ANSWER_MAX_BYTES);
	CLEANUP(free_charp) char *select = x_asprintf("lv_name=%s&&vg_uuid=%s", s->name, vg->uuid);
	const char *const argv[] = {
		"lvs", "--segments", "-o", "lv_name,seg_pe_ranges", "-S", select, vg->name, NULL};

	if (STEP("lvm-ranges", lvm_run(l, argv, &json, err)) < 0)
		return -1;
	if (lvm_ranges_parse(buf_span(&json), &s->ranges, err) < 0) {
		err_recode(err, ERR_UNAVAILABLE);
		return err_wrap(err, "LVM's report");
	}
	if (!s->ranges)
		return err_set(err, ERR_INTERNAL, "LVM does not show where %s lies", s->path);
	if (strv_len(s->ranges) > RANGES_MAX)
		return err_set(err, ERR_EXHAUSTED,
			"the free space of volume group %s is in too many pieces: %zu of them would be needed, "
			"and %d are possible at a time",
			vg->name, strv_len(s->ranges), RANGES_MAX);
	return 0;
}

int lvm_spare_make(struct lvm *l, const struct lvm_vg *vg, const char *id, uint64_t size_bytes,
	struct lvm_spare *ret, struct error **err)
{
	CLEANUP(free_charp) char *size = x_asprintf("%jub", (uintmax_t)size_bytes);

	*ret = (struct lvm_spare){.name = x_asprintf(SPARE_PREFIX "%s", id), .size_bytes = size_bytes};
	ret->path = x_asprintf("/dev/%s/%s", vg->name, ret->name);
	/* as for a new volume: the caller zeroes it, and LVM does not wait for the node */
	const char *argv[LVM_WORDS_MAX + 1] = {
		"lvcreate", "-y", "-Zn", "-Wn", "--addtag", SPARE_TAG, "-n", ret->name, "-L", size, vg->name};
	if (lvm_usable_add(vg, argv, err) < 0)
		return -1;
	if (STEP("lvm-spare", lvm_run(l, argv, NULL, err)) < 0)
		return -1;
	return read_ranges(l, vg, ret, err);
}

int lvm_spare_remove(struct lvm *l, const struct lvm_vg *vg, const char *name, struct error **err)
{
	CLEANUP(free_charp)
	char *select = x_asprintf("lv_name=%s&&vg_uuid=%s&&lv_tags={%s}", name, vg->uuid, SPARE_TAG);
	const char *const argv[] = {"lvremove", "-y", "-S", select, vg->name, NULL};

	return STEP("lvm-spare-remove", lvm_run(l, argv, NULL, err));
}

int lvm_extend(
	struct lvm *l, const struct lvm_vg *vg, const char *name, uint64_t size_bytes, struct error **err)
{
	CLEANUP(free_charp) char *size = x_asprintf("%jub", (uintmax_t)size_bytes);
	CLEANUP(free_charp) char *lv = x_asprintf("%s/%s", vg->name, name);
	const char *argv[LVM_WORDS_MAX + 1] = {"lvextend", "-y", "-L", size, lv};

	if (lvm_usable_add(vg, argv, err) < 0)
		return -1;
	return STEP("lvm-extend", lvm_run(l, argv, NULL, err));
}

int lvm_extend_onto(struct lvm *l, const struct lvm_vg *vg, const char *name, const struct lvm_spare *spare,
	struct error **err)
{
	CLEANUP(free_charp)
	char *extents = x_asprintf("+%ju", (uintmax_t)(spare->size_bytes / vg->extent_bytes));
	CLEANUP(free_charp) char *lv = x_asprintf("%s/%s", vg->name, name);
	const char *argv[LVM_WORDS_MAX + 1] = {"lvextend", "-y", "-l", extents, lv};

	memcpy(&argv[EXTEND_WORDS], spare->ranges, strv_len(spare->ranges) * sizeof(*argv));
	return STEP("lvm-extend-onto", lvm_run(l, argv, NULL, err));
}

int lvm_refresh(struct lvm *l, const struct lvm_vg *vg, const char *name, struct error **err)
{
	CLEANUP(free_charp) char *lv = x_asprintf("%s/%s", vg->name, name);
	const char *const argv[] = {"lvchange", "--refresh", lv, NULL};

	return STEP("lvm-refresh", lvm_run(l, argv, NULL, err));
}
