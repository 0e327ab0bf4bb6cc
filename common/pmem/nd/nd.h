/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd.h - regions and namespaces of persistent memory, behind a vtable for the kernel and for a fake of tests.
 *
 * The real one lists, makes and removes through sysfs (docs/decisions/015); converting and enabling go
 * through a fresh libndctl context each. All but nd_confirm() is under one process lock and one host-wide
 * flock (/run/pmem-csi/nd.lock), because parallel use has crashed kernels (ndctl issues 40, 91, 96). Nothing
 * returned here points into libndctl memory. Blocks: sysfs, 5 s for a block device's node, 30 s for modprobe,
 * 5 s for udev where libndctl waits for it, and without limit while the kernel hangs. Threads: safe, callers
 * are serialised: a call waits 20 s for another one, and not at all if that one has already taken longer
 * (ERR_UNAVAILABLE, which says what is running and for how long). Source: the sequence of ndctl's namespace
 * creation; Documentation/driver-api/nvdimm.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pmem/bounded_lock.h"
#include "pmem/namespace_layout.h"

#define POOL_NAMESPACE_NAME "pmem-csi" /* marks our pool namespaces, as in the Go driver */
#define ND_OFFSET_UNKNOWN   UINT64_MAX

enum nd_mode { ND_RAW, ND_FSDAX, ND_DEVDAX, ND_SECTOR };

struct nd_namespace {
	char *dev;  /* "namespace0.1" */
	char *name; /* name in the label; "" without one */
	char *uuid; /* of the namespace; "" without one */
	enum nd_mode mode;
	uint64_t raw_bytes;    /* the bytes that it takes from the region */
	uint64_t usable_bytes; /* size of its block device, 0 when inactive */
	uint64_t offset_bytes; /* in the region, or ND_OFFSET_UNKNOWN */
	char *block_path;      /* "/dev/pmem0", or NULL (inactive, devdax) */
	bool active;
	bool bare; /* active, and nothing on the medium describes it: raw, or legacy memory whose page map is
		    * in RAM, which the kernel calls fsdax */
	bool grouped; /* in a volume group of ours (pool_vg_claim()); nd_list() does not know */
};

struct nd_region {
	char *bus;  /* "ndbus0" */
	char *name; /* "region0" */
	/* The same after every boot, unlike the numbers; made of the interleave set's cookie if there is
	 * one.
	 */
	char *identity;
	const char
		*persistence_domain; /* where stores survive a power cut: "cpu_cache" or "memory_controller";
				      * "": the kernel does not say it. Static */
	uint64_t size_bytes;
	uint64_t available_bytes;
	uint64_t max_extent_bytes; /* largest contiguous free part */
	uint64_t align_bytes;      /* the region's own alignment; 0 when unknown */
	uint64_t pfn_align_bytes;  /* what nd_create() uses: 2 MiB if possible; 0 when unknown */
	uint64_t btt_start_bytes;  /* as layout_btt_usable(); the worse one when unknown */
	unsigned free_labels;      /* how many more namespaces the labels can record; UINT_MAX when unknown */
	unsigned ways;             /* interleave */
	int numa_node;             /* -1 unknown */
	bool is_pmem;
	bool enabled;
	bool readonly;
	bool has_labels;     /* can be divided into namespaces with names */
	const char *refused; /* static: why nothing is made in it, set by a guard; NULL: nothing is known */
	struct nd_namespace *namespaces; /* of size > 0, by offset; those of unknown offset last */
	size_t n_namespaces;
};

struct nd_inventory {
	struct nd_region *regions; /* in the order of bus and region number */
	size_t n_regions;
};

struct nd_spec {
	const char *bus;
	const char *region;
	const char *label;  /* name in the label: 1..63 bytes */
	const char *uuid;   /* text form; recorded by the caller beforehand */
	uint64_t raw_bytes; /* multiple of the region's unit */
	enum nd_mode mode; /* ND_FSDAX, its page map on the medium, or ND_SECTOR with sectors of 4096 bytes */
};

enum nd_memory_kind {
	ND_MEMORY_LABELLED, /* the kernel uses labels: it can be divided into namespaces with names */
	ND_MEMORY_BLANK, /* its modules have label areas in which no label is: new ones, and those of QEMU */
	ND_MEMORY_NO_LABELS, /* its modules have no label areas, as those of hypervisors */
	ND_MEMORY_LEGACY,    /* of the e820 table: memmap=, or what old firmware reserves; it may forget */
	ND_MEMORY_VIRTIO,    /* virtio-pmem of a virtual machine */
	ND_MEMORY_ODD,       /* none of these: nd_memory.problem says why */
	ND_MEMORY_VOLATILE,  /* not persistent */
};

struct nd_memory {
	enum nd_memory_kind kind;
	bool is_cxl;
	char **modules; /* "nmem0": strv, NULL: none */
	char *problem;  /* or NULL */
};

/* Decides whether a namespace may vanish or be overwritten. It is asked while the block device is held
 * exclusively, so that no program has begun to use the namespace when that happens. */
struct nd_look {
	/* Return: 0, or -1 with the reason why the namespace has to stay as it is. */
	int (*run)(const char *folder, const struct nd_region *r, const struct nd_namespace *ns,
		struct error **err);
	const char *folder;
	const struct nd_region *region;
};

struct nd_ops {
	int (*list)(void *self, struct nd_inventory **ret, struct error **err);
	int (*confirm)(void *self, const char *block_path, const char *uuid, struct error **err);
	int (*create)(void *self, const struct nd_spec *spec, struct nd_namespace **ret,
		struct nd_inventory **ret_after, struct error **err);
	int (*destroy)(void *self, const char *uuid, const char *name, struct nd_inventory **ret_after,
		struct error **err);
	int (*enable)(void *self, const char *uuid, const char *name, struct error **err);
	int (*enable_device)(void *self, const char *dev, struct error **err);
	int (*convert)(void *self, const struct nd_namespace *ns, const struct nd_look *look,
		struct nd_namespace **ret, struct error **err);
	int (*describe)(void *self, const char *region, struct nd_memory *ret, struct error **err);
	int (*init_labels)(
		void *self, const struct nd_region *r, const struct nd_look *look, struct error **err);
	int (*settle_labels)(void *self, bool *ret_changed, struct error **err);
	void (*close)(void *self);
};

/* Looks at a new listing, and sets nd_region.refused; @folder is that of nd_set_guard(). */
typedef void (*nd_guard_fn)(const char *folder, struct nd_inventory *inv);

struct nd {
	const struct nd_ops *ops;
	void *self;
	nd_guard_fn guard; /* NULL: none */
	char *guard_folder;
};

/** nd_open_real() - over the kernel of this host. Return: 0, or -1 with ERR_PRECONDITION (no /sys/bus/nd: the
 * libnvdimm module is not loaded). @ret: nd_close(). */
int nd_open_real(struct nd **ret, struct error **err) MUST_CHECK;

/** nd_set_guard() - let @guard look at each listing from now on. @folder: copied */
void nd_set_guard(struct nd *nd, nd_guard_fn guard, const char *folder);

/** nd_activity() - the operation that is running in this process. @ret_step: as bounded_lock_current_step().
 * Return: since when, as clock_ns(). Never waits. */
uint64_t nd_activity(char ret_step[static BOUNDED_LOCK_STEP_MAX]);

/** nd_close() - release; NULL is allowed. */
void nd_close(struct nd *nd);
DEFINE_CLEANUP(struct nd *, nd_close);

/** nd_list() - list all regions and namespaces, including foreign ones. Return: 0, or -1 with ERR_INTERNAL,
 * or ERR_UNAVAILABLE (another process held the host lock for a minute; not all could be read). @ret:
 * nd_inventory_free(). */
int nd_list(struct nd *nd, struct nd_inventory **ret, struct error **err) MUST_CHECK;

/** nd_confirm() - check that @block_path ("/dev/pmem0.1") is the block device of the namespace with @uuid:
 * the kernel reuses such names. Waits for no other operation. Return: 0, or -1 with ERR_UNAVAILABLE (it
 * belongs to another namespace, or is gone). */
int nd_confirm(struct nd *nd, const char *block_path, const char *uuid, struct error **err) MUST_CHECK;

/**
 * nd_create() - create and enable one namespace, verified by a new listing.
 * @ret:       what was read back; nd_namespace_free()
 * @ret_after: the listing in which it was found; nd_inventory_free()
 *
 * Not idempotent. Start and end of its block device are zeroed, so that no old signature shows. On failure
 * the seed is returned to the region; nothing is left enabled. A creation that a killed process left
 * unfinished does not prevent a new one. Return: 0, or -1 with ERR_EXHAUSTED (no extent is large enough, or
 * all label slots are in use), ERR_PRECONDITION (region disabled, read-only, without labels),
 * ERR_INVALID_ARGUMENT (misaligned; too small for its mode; another mode; name or uuid malformed),
 * ERR_NOT_FOUND (no such region), ERR_INTERNAL (the kernel refused; os_errno set), ERR_UNAVAILABLE (/sys
 * read-only; as nd_list()).
 */
int nd_create(struct nd *nd, const struct nd_spec *spec, struct nd_namespace **ret,
	struct nd_inventory **ret_after, struct error **err) MUST_CHECK;

/**
 * nd_destroy() - destroy the namespace that has both @uuid and @name; its info block is zeroed. That it is
 * gone is verified by a new listing.
 * @ret_after: that listing; nd_inventory_free()
 *
 * Idempotent: none is success. Return: 0, or -1 with ERR_PRECONDITION (in use, or the name differs),
 * ERR_INTERNAL, ERR_UNAVAILABLE (/sys read-only; as nd_list()).
 */
int nd_destroy(struct nd *nd, const char *uuid, const char *name, struct nd_inventory **ret_after,
	struct error **err) MUST_CHECK;

/**
 * nd_enable() - enable the namespace that has both @uuid and @name; the kernel gives it the mode of its info
 * block; without one it becomes a raw block device.
 *
 * Idempotent. Return: 0, or -1 with ERR_NOT_FOUND, ERR_PRECONDITION (the name differs), ERR_INTERNAL
 * (the kernel refused), ERR_UNAVAILABLE (/sys read-only; as nd_list()).
 */
int nd_enable(struct nd *nd, const char *uuid, const char *name, struct error **err) MUST_CHECK;

/**
 * nd_enable_device() - enable the inactive namespace @dev ("namespace0.0"), which may have neither name nor
 * UUID, in the mode that its medium describes; the claim of a killed conversion is released.
 *
 * Idempotent. Return: 0, or -1 with ERR_NOT_FOUND, ERR_INTERNAL, ERR_UNAVAILABLE (/sys read-only;
 * as nd_list()).
 */
int nd_enable_device(struct nd *nd, const char *dev, struct error **err) MUST_CHECK;

/**
 * nd_convert() - make a bare namespace an fsdax one with its page map on the medium, called
 * POOL_NAMESPACE_NAME if there is a label that stores the name; its content is lost.
 * @ns:   as listed; if it has changed since, nothing is done
 * @look: what it refuses is left as it is; NULL: nothing is refused
 * @ret:  what was read back; nd_namespace_free()
 *
 * Killed at any point, it leaves a namespace that is inactive (nd_enable_device()), bare, or done. Start and
 * end of the block device are then zero. A failure leaves it bare, without its content. Return: 0, or -1 with
 * ERR_PRECONDITION (in use, not bare, changed), ERR_NOT_FOUND, ERR_INTERNAL (the kernel refused),
 * ERR_UNAVAILABLE (/sys read-only; as nd_list()), or as @look.
 */
int nd_convert(struct nd *nd, const struct nd_namespace *ns, const struct nd_look *look,
	struct nd_namespace **ret, struct error **err) MUST_CHECK;

/** nd_describe() - decide what kind of memory the region @region ("region0") is made of. Reads the label
 * areas of its modules where the kernel uses no labels. Return: 0, or -1 with ERR_NOT_FOUND, ERR_INTERNAL,
 * ERR_UNAVAILABLE (as nd_list()). @ret: nd_memory_done(). */
int nd_describe(struct nd *nd, const char *region, struct nd_memory *ret, struct error **err) MUST_CHECK;

/** nd_memory_done() - release what @m owns; safe on a zeroed one. */
void nd_memory_done(struct nd_memory *m);

/**
 * nd_init_labels() - initialise the label areas of a region of ND_MEMORY_BLANK, whose raw namespace vanishes;
 * what is in the memory stays there.
 * @r:    as listed
 * @look: decides by what each raw namespace holds
 *
 * Nothing is done where a namespace of the region is not raw, is in use or is refused by @look, or a label
 * area is not blank: each is looked at again immediately before. On failure, and by nd_settle_labels() after
 * a kill, modules, region and namespaces are enabled again. Return: 0, or -1 with ERR_PRECONDITION (in use,
 * not blank, changed), ERR_INTERNAL (the kernel refused), ERR_UNAVAILABLE (/sys read-only; as nd_list()), or
 * as @look.
 */
int nd_init_labels(
	struct nd *nd, const struct nd_region *r, const struct nd_look *look, struct error **err) MUST_CHECK;

/** nd_look_at() - let @look, which may be NULL, decide about @ns. Return: 0, or -1 as it. */
int nd_look_at(const struct nd_look *look, const struct nd_namespace *ns, struct error **err) MUST_CHECK;

/** nd_settle_labels() - enable what a killed nd_init_labels() has disabled; it is not continued. Idempotent.
 * Return: 0, or -1 with ERR_INTERNAL, ERR_UNAVAILABLE (as nd_list()). @ret_changed: whether one was killed.
 */
int nd_settle_labels(struct nd *nd, bool *ret_changed, struct error **err) MUST_CHECK;

void nd_inventory_free(struct nd_inventory *inv);
void nd_namespace_free(struct nd_namespace *ns);

/** nd_region_free() - release a region that is not part of an inventory; NULL is allowed. */
void nd_region_free(struct nd_region *r);

/** nd_namespace_dup() - a copy. Return: nd_namespace_free(). */
struct nd_namespace *nd_namespace_dup(const struct nd_namespace *ns);
DEFINE_CLEANUP(struct nd_region *, nd_region_free);
DEFINE_CLEANUP(struct nd_inventory *, nd_inventory_free);
DEFINE_CLEANUP(struct nd_namespace *, nd_namespace_free);

/** nd_region_unit() - layout_alignment() of @r. */
uint64_t nd_region_unit(const struct nd_region *r);

/** nd_usable_bytes() - size of the block device that a namespace of @raw_bytes gives in @r in @mode; 0 when
 * it is too small. */
uint64_t nd_usable_bytes(const struct nd_region *r, enum nd_mode mode, uint64_t raw_bytes);

/** nd_region_sort() - bring the namespaces of @r, which an nd_ops.list() has collected, into the promised
 * order. */
void nd_region_sort(struct nd_region *r);

/** nd_has_offsets() - whether the positions of all namespaces of @r are known. */
bool nd_has_offsets(const struct nd_region *r);

/** nd_free_extent() - extent number @i of the n_namespaces + 1 extents before, between and after the
 * namespaces of @r, for which nd_has_offsets() must be true; it has 0 bytes if nothing is free there. */
struct extent nd_free_extent(const struct nd_region *r, size_t i);

/** nd_mode_name() - "raw", "fsdax", "devdax" or "sector". */
const char *nd_mode_name(enum nd_mode mode);

/** nd_is_own() - whether @ns is ours: named exactly POOL_NAMESPACE_NAME or, where it has no name, in a volume
 * group of ours. */
bool nd_is_own(const struct nd_namespace *ns);

/** nd_is_pool() - whether @ns is an active fsdax namespace of ours. */
bool nd_is_pool(const struct nd_namespace *ns);
