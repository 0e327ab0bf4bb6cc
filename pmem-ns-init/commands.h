/*
 * commands.h - what pmem-ns-init does: create, plan, status. Only create changes anything.
 *
 * Threads: none. create blocks as nd_create() for each namespace; the others compute.
 */
#pragma once

#include "base/buf.h"
#include "pmem/dax.h"
#include "pmem/nd.h"

/**
 * cmd_create() - create pool namespaces in every region, up to a share of it.
 * @nd:           regions
 * @percent:      share of each region, 0..100
 * @ret_complete: false when a namespace could not be created, or a region of persistent memory not be used
 * @err:          see docs/ERRORS.md
 *
 * A region that fails is logged and does not stop the others. Repeating adds nothing. Return: 0, or -1 as
 * nd_list().
 */
int cmd_create(struct nd *nd, unsigned percent, bool *ret_complete, struct error **err) MUST_CHECK;

/**
 * cmd_plan() - write what cmd_create() would do, and why not more.
 * @json: as one JSON document instead of text
 * @out:  appended to
 *
 * Return: whether every region of persistent memory can be used.
 */
bool cmd_plan(const struct nd_inventory *inv, unsigned percent, bool json, struct buf *out);

/** cmd_status() - write a map of each region, as text or as one JSON document. @out: appended to. */
void cmd_status(const struct nd_inventory *inv, const struct dax_list *dax, bool json, struct buf *out);
