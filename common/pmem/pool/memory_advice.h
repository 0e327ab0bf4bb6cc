/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_advice.h - decides what a piece of persistent memory is, whether it is used, and what makes it
 * usable. pmem-ns-init does what is advised, or shows it; the driver's log and doctor show it.
 *
 * Nothing is changed. Threads: safe. Blocks as nd_describe(), and on the devices of raw namespaces. Decision:
 * docs/decisions/084.
 */
#pragma once

#include "pmem/cxl/cxl.h"
#include "pmem/nd/nd.h"
#include "pmem/nd/nd_dimms.h"
#include "pmem/pool/hidden_memory.h"

enum memory_action {
	MEMORY_NOTHING,     /* it is used, or will be, or cannot be */
	MEMORY_INIT_LABELS, /* `create -initLabels` initialises its labels */
	MEMORY_CONVERT,     /* `create -unlabelled=convert` converts it as a whole */
	MEMORY_BY_HAND,     /* only an administrator can decide; commands say how */
};

struct memory_advice {
	const struct nd_region *region; /* borrowed; NULL: memory that is part of no region */
	char *name;                     /* "region0 on ndbus0", "nmem0" or "mem0" */
	enum nd_memory_kind kind;       /* of a region */
	enum memory_action action;
	char *what;        /* what it is: "NVDIMMs whose label areas are blank (nmem0)" */
	char *state;       /* whether it is used: "is not used: namespace0.0 holds ext4" */
	char **commands;   /* that change this, to be run in this order: strv or NULL */
	char *condition;   /* what is to be considered before, or NULL: "the content of /dev/pmem0 is lost" */
	char **namespaces; /* that would be converted: strv or NULL */
};

struct memory_advices {
	struct memory_advice *list;
	size_t n;
};

/* Devices that memory is made of, on which is advised if they are part of no region. NULL: not on such
 * devices. */
struct memory_devices {
	const struct hidden_memories *hidden;
	const struct dimms *modules; /* all of them, of which those of CXL are left to @cxl */
	const struct cxl_topology *cxl;
};

/**
 * memory_advise() - advise on each region of @inv, and on devices that are part of none.
 * @nd:     that has listed @inv
 * @folder: of pool_backup.h; NULL: there are no records
 * @inv:    after pool_vg_claim(); outlives the advice; NULL: there are no regions, and @nd may be NULL
 * @devices: NULL: only regions are advised on
 * @ret:    memory_advices_done()
 *
 * Return: 0, or -1 as nd_describe().
 */
int memory_advise(struct nd *nd, const char *folder, const struct nd_inventory *inv,
	const struct memory_devices *devices, struct memory_advices *ret, struct error **err) MUST_CHECK;

/** memory_look() - for struct nd_look: refuse a raw namespace that holds or held something, by what @r and
 * records in @folder say and by what is on its device, which the caller has opened exclusively. Return: 0, or
 * -1 with ERR_PRECONDITION. */
int memory_look(const char *folder, const struct nd_region *r, const struct nd_namespace *ns,
	struct error **err) MUST_CHECK;

/** memory_advices_done() - release what @a owns; safe on a zeroed one. */
void memory_advices_done(struct memory_advices *a);

/** memory_advice_line() - one line: what it is, whether it is used, and the commands. Return: caller frees.
 */
char *memory_advice_line(const struct memory_advice *a);

/** memory_kind_name() - "labelled", "blank-labels", "no-label-area", "legacy", "virtio-pmem", "odd-labels" or
 * "volatile". */
const char *memory_kind_name(enum nd_memory_kind kind);

/** memory_action_name() - "none", "init-labels", "convert" or "by-hand". */
const char *memory_action_name(enum memory_action action);
