/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cxl.h - CXL memory devices, the windows of addresses that root decoders give them, and the regions that put
 * devices together, behind a vtable for the kernel and for a fake of tests.
 *
 * The kernel forgets regions of persistent memory at a boot. Its labels belong to a region only if the same
 * devices are at the same positions: the interleave set cookie is made of their serial numbers in order
 * (drivers/cxl/pmem.c, cxl_pmem_region_probe()). Names such as "mem0" change between boots. Threads: one at a
 * time. Blocks on sysfs. Sources: Documentation/ABI/testing/sysfs-bus-cxl; create_region() of ndctl's
 * cxl/region.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/random.h"

#define CXL_WAYS_MAX   16 /* CXL 3.0, 8.2.4.19: the largest interleave */
#define CXL_NAME_BYTES 32

/* Addresses that the firmware gives to host bridges: a root decoder. It is known by these properties. */
struct cxl_window {
	uint64_t start_bytes;
	uint64_t size_bytes;
	uint64_t granularity_bytes;
	unsigned ways;
	uint64_t bridges[CXL_WAYS_MAX]; /* their _UID, by position */
};

/* The part that one device has of a region. */
struct cxl_place {
	uint64_t serial;
	uint64_t start_bytes; /* on the device */
};

/* A region as it is recorded, and as it is made again. */
struct cxl_layout {
	char uuid[UUID_TEXT_LEN + 1];
	uint64_t size_bytes;
	uint64_t granularity_bytes;
	unsigned ways;
	struct cxl_place places[CXL_WAYS_MAX]; /* by position */
	struct cxl_window window;
};

/* A region that exists. */
struct cxl_set {
	char name[CXL_NAME_BYTES]; /* "region0" of the CXL bus, not of the nd bus */
	bool committed;            /* its decoders are programmed */
	bool enabled;
	struct cxl_layout layout; /* a position without a device has serial 0 */
};

struct cxl_device {
	char name[CXL_NAME_BYTES]; /* "mem0" */
	uint64_t serial;
	uint64_t volatile_bytes; /* the persistent part begins after them */
	uint64_t pmem_bytes;
	bool used;         /* a part of it is allocated */
	unsigned n_roots;  /* root decoders for persistent memory that lead to it; 0 also if it is disabled */
	size_t root;       /* the last of them */
	unsigned position; /* of its host bridge in that one */
};

struct cxl_root {
	char name[CXL_NAME_BYTES]; /* "decoder0.0" */
	uint64_t free_bytes;       /* largest free part */
	struct cxl_window window;
};

struct cxl_topology {
	struct cxl_device *devices; /* with persistent memory */
	size_t n_devices;
	char **unreadable;      /* names of memory devices that libcxl cannot read: strv or NULL */
	struct cxl_root *roots; /* that take persistent memory */
	size_t n_roots;
	struct cxl_set *sets; /* regions of persistent memory */
	size_t n_sets;
};

struct cxl_ops {
	int (*read)(void *self, struct cxl_topology *ret, struct error **err);
	int (*make)(void *self, const struct cxl_layout *l, struct error **err);
	int (*labels)(void *self, const char *device, bool *ret_empty, struct error **err);
};

struct cxl {
	const struct cxl_ops *ops;
	void *self;
};

/** cxl_real() - the devices of this host, through libcxl. Return: static, or NULL where the kernel has no CXL
 * bus. */
const struct cxl *cxl_real(void);

/** cxl_read() - list devices, root decoders and regions. Return: 0, or -1 with ERR_INTERNAL. @ret:
 * cxl_topology_done(). */
int cxl_read(const struct cxl *cxl, struct cxl_topology *ret, struct error **err) MUST_CHECK;

/**
 * cxl_make() - make the region @l from the devices with its serial numbers, in its order, and wait up to 10 s
 * until the nd bus shows it. A region with its UUID that was not completed is removed first.
 *
 * On failure the region is taken apart again, unless it is complete and the nd bus does not show it. Not
 * idempotent. Return: 0, or -1 with ERR_NOT_FOUND (a device or the root decoder is missing), ERR_PRECONDITION
 * (the free space of a device begins elsewhere), ERR_INTERNAL (the kernel refused), ERR_UNAVAILABLE (the nd
 * bus does not show it).
 */
int cxl_make(const struct cxl *cxl, const struct cxl_layout *l, struct error **err) MUST_CHECK;

/** cxl_labels_are_empty() - whether the label area of @device ("mem0") is blank, or initialised without any
 * label (label_area_judge()). Return: 0, or -1 with ERR_INTERNAL (it cannot be read). */
int cxl_labels_are_empty(
	const struct cxl *cxl, const char *device, bool *ret_empty, struct error **err) MUST_CHECK;

/** cxl_unreadable_why() - what may be missing of the unreadable device @name. Return: caller frees. */
char *cxl_unreadable_why(const char *name);

/** cxl_topology_done() - release what @t owns; safe on a zeroed one. */
void cxl_topology_done(struct cxl_topology *t);

/** cxl_window_eq() - whether @a and @b have the same properties. */
bool cxl_window_eq(const struct cxl_window *a, const struct cxl_window *b);
