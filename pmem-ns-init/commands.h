/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - what pmem-ns-init does: create, plan, status, advise, convert. Only create and
 * convert change anything.
 *
 * Threads: none. create and convert block as nd_create() for each namespace, convert on LVM, too; the others
 * compute.
 */
#pragma once

#include "base/buf.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/dax.h"
#include "pmem/nd/nd.h"
#include "pmem/pool/memory_advice.h"

#define OUTPUT_MAX_BYTES (16U << 20)

/** inventory_read() - nd_list() with pool_vg_claim(), whose failure is logged only. Return: 0, or -1 as
 * nd_list(). @ret: nd_inventory_free(). */
int inventory_read(struct nd *nd, struct lvm *lvm, struct nd_inventory **ret, struct error **err) MUST_CHECK;

struct create_options {
	unsigned percent;        /* share of each region, 0..100 */
	bool init_labels;        /* where label areas are blank and nothing is on the memory */
	bool convert_unlabelled; /* what cannot have labels, as a whole, as `convert` without force */
	const char *state_path;  /* gets records of groups that are made of what is converted */
	const char *folder;      /* of pool_backup.h, in @state_path */
};

/**
 * cmd_create() - create pool namespaces in every region, up to a share of it.
 * @nd:           regions
 * @lvm:          asked only where a namespace has no name
 * @ret_complete: false when a namespace could not be created, or a region of persistent memory not be used
 *
 * Before, what an earlier run has left unfinished is settled, and memory is prepared as @o asks. A region
 * that fails or is skipped is logged with what makes it usable (memory_advice.h), and does not stop the
 * others. Repeating adds nothing. Return: 0, or -1 as nd_list(), nd_settle_labels(), memory_advise() and
 * cmd_convert().
 */
int cmd_create(struct nd *nd, struct lvm *lvm, const struct create_options *o, bool *ret_complete,
	struct error **err) MUST_CHECK;

/**
 * cmd_plan() - write what cmd_create() would do, and why it would not do more.
 * @json: as one JSON document instead of text
 * @out:  appended to
 *
 * Return: whether every region of persistent memory can be used.
 */
bool cmd_plan(const struct nd_inventory *inv, unsigned percent, bool json, struct buf *out);

/** cmd_status() - write a map of each region, as text or as one JSON document. @out: appended to. */
void cmd_status(const struct nd_inventory *inv, const struct dax_list *dax, bool json, struct buf *out);

/** cmd_advise() - write what each piece of memory is, whether it is used, and the commands that change that,
 * as text or as one JSON document. @inv: as for memory_advise(). @out: appended to. Return: 0, or -1 as
 * memory_advise(). */
int cmd_advise(struct nd *nd, const char *folder, const struct nd_inventory *inv,
	const struct memory_devices *devices, bool json, struct buf *out, struct error **err) MUST_CHECK;

struct convert_options {
	bool force;        /* also namespaces with content */
	bool dry_run;      /* only show */
	bool json;         /* show as one JSON document */
	char *const *only; /* names of namespaces: strv; NULL: all */
	const char *state_path;
	const char *folder; /* of pool_backup.h, in @state_path */
};

/**
 * cmd_convert() - show on stdout what will be done with each namespace that could be converted, then do it:
 * see pool_convert.h.
 * @ret_complete: false when a namespace was refused or failed, or when there is neither a namespace to
 * convert nor one of ours
 *
 * A namespace that fails does not stop the others. May be repeated, also after it was killed. Return: 0, or
 * -1 as nd_list() and pool_convert_plan().
 */
int cmd_convert(struct nd *nd, struct lvm *lvm, const struct convert_options *o, bool *ret_complete,
	struct error **err) MUST_CHECK;
