/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - what pmem-ns-init does: create, plan, status, convert. Only create and convert change
 * anything.
 *
 * Threads: none. create and convert block as nd_create() for each namespace, convert on LVM, too; the others
 * compute.
 */
#pragma once

#include "base/buf.h"
#include "pmem/lvm/lvm.h"
#include "pmem/nd/dax.h"
#include "pmem/nd/nd.h"

#define OUTPUT_MAX_BYTES (16U << 20)

/** inventory_read() - nd_list() with pool_vg_claim(), whose failure is logged only. Return: 0, or -1 as
 * nd_list(). @ret: nd_inventory_free(). */
int inventory_read(struct nd *nd, struct lvm *lvm, struct nd_inventory **ret, struct error **err) MUST_CHECK;

/**
 * cmd_create() - create pool namespaces in every region, up to a share of it.
 * @nd:           regions
 * @lvm:          asked only where a namespace has no name
 * @percent:      share of each region, 0..100
 * @ret_complete: false when a namespace could not be created, or a region of persistent memory not be used
 *
 * A region that fails is logged and does not stop the others. Repeating adds nothing. Return: 0, or -1 as
 * nd_list().
 */
int cmd_create(
	struct nd *nd, struct lvm *lvm, unsigned percent, bool *ret_complete, struct error **err) MUST_CHECK;

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

struct convert_options {
	bool force;         /* also namespaces with content */
	bool dry_run;       /* only show */
	bool json;          /* show as one JSON document */
	char *const *only;  /* names of namespaces: strv; NULL: all */
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
