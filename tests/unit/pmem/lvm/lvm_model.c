/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/pmem/lvm/lvm_model.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/inject/ops.h"

char *lvm_model_node(const struct lvm_model *m, const struct lvm_model_lv *lv)
{
	return x_asprintf("/dev/%s/%s", m->group, lv->name);
}

static uint64_t free_bytes(const struct lvm_model *m)
{
	uint64_t n = LVM_MODEL_EXTENTS * LVM_MODEL_EXTENT_BYTES;

	for (size_t i = 0; i < m->n_lvs; i++)
		n -= m->lvs[i].size_bytes;
	return n;
}

static void show_group(const struct lvm_model *m, struct buf *to)
{
	buf_addf(to,
		"\"vg_name\":\"%s\",\"vg_uuid\":\"uuid-%s\",\"vg_size\":\"%ju\",\"vg_free\":\"%ju\","
		"\"vg_extent_size\":\"%ju\",\"vg_missing_pv_count\":\"0\"",
		m->group, m->group, (uintmax_t)(LVM_MODEL_EXTENTS * LVM_MODEL_EXTENT_BYTES),
		(uintmax_t)free_bytes(m), (uintmax_t)LVM_MODEL_EXTENT_BYTES);
}

static void show_lv(const struct lvm_model *m, const struct lvm_model_lv *lv, struct buf *to)
{
	CLEANUP(free_charp) char *node = lvm_model_node(m, lv);

	buf_adds(to, ",{");
	show_group(m, to);
	buf_addf(to,
		",\"lv_name\":\"%s\",\"lv_path\":\"%s\",\"lv_tags\":\"%s\",\"lv_size\":\"%ju\","
		"\"lv_active\":\"%s\"}",
		lv->name, node, lv->tag, (uintmax_t)lv->size_bytes, lv->active ? "active" : "");
}

static void run_pvs(const struct lvm_model *m, struct buf *to)
{
	buf_adds(to, "{\"report\":[{\"pv\":[");
	if (*m->group) {
		buf_addf(to, "{\"pv_name\":\"%s\",\"pv_uuid\":\"PV\",\"pv_size\":\"1\",", m->pv);
		show_group(m, to);
		buf_adds(to, "}");
	} else if (m->prepared) {
		buf_addf(to, "{\"pv_name\":\"%s\",\"pv_uuid\":\"PV\",\"pv_size\":\"1\"}", m->pv);
	}
	for (size_t i = 0; i < m->n_lvs; i++)
		show_lv(m, &m->lvs[i], to);
	buf_adds(to, "]}]}");
}

static void run_vgs(const struct lvm_model *m, const char *select, struct buf *to)
{
	CLEANUP(free_charp) char *own = x_asprintf("vg_name=%s", m->group);

	buf_adds(to, "{\"report\":[{\"vg\":[");
	if (*m->group && str_eq(own, select))
		buf_addf(to, "{\"vg_name\":\"%s\",\"vg_uuid\":\"uuid-%s\"}", m->group, m->group);
	buf_adds(to, "]}]}");
}

static void make_node(const struct lvm_model *m, struct lvm_model_lv *lv)
{
	CLEANUP(free_charp) char *node = lvm_model_node(m, lv);

	lv->active = true;
	unlink(node);
	ck_assert_int_eq(mknod(node, S_IFBLK | 0600, m->disk), 0);
}

/* -y -Zn -Wn --addtag TAG -n NAME -L SIZEb GROUP */
static void run_lvcreate(struct lvm_model *m, const char *const argv[])
{
	struct lvm_model_lv *lv = &m->lvs[m->n_lvs++];

	ck_assert_uint_le(m->n_lvs, LVM_MODEL_MAX);
	*lv = (struct lvm_model_lv){.size_bytes = 2 * LVM_MODEL_EXTENT_BYTES};
	snprintf(lv->tag, sizeof(lv->tag), "%s", argv[6]);
	snprintf(lv->name, sizeof(lv->name), "%s", argv[8]);
	make_node(m, lv);
}

/* -y -S SELECTION GROUP */
static void run_lvremove(struct lvm_model *m, const char *const argv[])
{
	for (size_t i = 0; i < m->n_lvs; i++) {
		struct lvm_model_lv *lv = &m->lvs[i];
		CLEANUP(free_charp)
		char *select =
			x_asprintf("lv_name=%s&&vg_uuid=uuid-%s&&lv_tags={%s}", lv->name, m->group, lv->tag);
		CLEANUP(free_charp) char *node = lvm_model_node(m, lv);

		if (!str_eq(select, argv[4]))
			continue;
		unlink(node);
		*lv = m->lvs[--m->n_lvs];
		return;
	}
}

static void run_command(struct lvm_model *m, const char *const argv[], struct buf *report)
{
	if (str_eq(argv[0], "pvs")) {
		run_pvs(m, report);
	} else if (str_eq(argv[0], "vgs")) {
		run_vgs(m, argv[6], report);
	} else if (str_eq(argv[0], "lvcreate")) {
		run_lvcreate(m, argv);
	} else if (str_eq(argv[0], "lvremove")) {
		run_lvremove(m, argv);
	} else if (str_eq(argv[0], "vgchange") || str_eq(argv[0], "vgmknodes")) {
		for (size_t i = 0; i < m->n_lvs; i++)
			make_node(m, &m->lvs[i]);
	} else if (str_eq(argv[0], "pvcreate")) {
		m->prepared = true;
	} else if (str_eq(argv[0], "vgcreate")) {
		/* --nohints -y GROUP PATH */
		snprintf(m->group, sizeof(m->group), "%s", argv[3]);
	} else {
		ck_abort_msg("unexpected command: %s", argv[0]);
	}
}

static const char *name_of(const char *command)
{
	static const char *const names[] = {"lvm pvs", "lvm vgs", "lvm lvcreate", "lvm lvremove",
		"lvm vgchange", "lvm vgmknodes", "lvm vgcreate", "lvm pvcreate"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(names[i] + strlen("lvm "), command))
			return names[i];
	return "lvm";
}

static int run(void *self, const char *const argv[], const char *config, struct buf *report, int timeout_ms,
	struct error **err)
{
	const char *name = name_of(argv[0]);
	enum ops_way way = ops_way(name);

	(void)config;
	(void)timeout_ms;
	if (way == OPS_BEFORE)
		return ops_fail(name, err);
	run_command(self, argv, report);
	return way == OPS_AFTER ? ops_fail(name, err) : 0;
}

static void close_model(void *self)
{
	(void)self;
}

static const struct lvm_ops model_ops = {.run = run, .close = close_model};

struct lvm *lvm_open_model(struct lvm_model *model)
{
	return lvm_open_with(&model_ops, model);
}
