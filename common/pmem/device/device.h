/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - device managers: where a volume's block device comes from. `lvm`, `direct` and `fake` behind one
 * vtable; tests/contract/ runs one suite on each.
 *
 * A device's name is the volume ID. Its identity is a random UUID that the caller chose and recorded before
 * (LVM: a tag; namespaces: their UUID), so that a partly created device is distinguished from a foreign one
 * of the same name. Each manager has its own lock, which is held only during commands, never while data is
 * written. Threads: safe. Blocks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "pmem/capacity.h"
#include "pmem/health/media_errors.h"
#include "pmem/namespace_layout.h"

struct device {
	char *id;
	char *pool;          /* uuid of its pool */
	char *identity;      /* "" when it has none (made by the Go driver) */
	char *path;          /* block device, present when active */
	uint64_t size_bytes; /* size of its block device; when inactive, the size that it will have */
	bool active;
	bool raw; /* a namespace in raw mode, because it is partly created or destroyed or its info block is
		     damaged: its data cannot be accessed at the expected offset */
};

#define DEVICE_NO_SLOT "label slot"           /* namespaces are named there */
#define DEVICE_NO_TEXT "room in the metadata" /* of a volume group */
/* of a volume group, see vgchange(8), --logicalvolume */
#define DEVICE_NO_VOLUME "volume in the limit max_lv"

#define DEVICE_PARTS_MISSING "is incomplete: some of its devices are missing"
#define DEVICE_EXPORTED      "is exported, so LVM does not use it; import it with vgimport(8)"
#define DEVICE_OTHER_MACHINE                                                                                 \
	"has the LVM system ID of another machine, so LVM does not use it; pmem-vgm plan says more"

#define DEVICE_FIXED_SIZE                                                                                    \
	"in device mode direct it is a namespace, whose size is fixed when it is created, because the page " \
	"map of its memory or its BTT is laid out for that size: create a larger volume and copy the data"

struct device_pool {
	char *uuid; /* never changes: the UUID of the volume group, or the identity of the region */
	char *name;
	struct capacity capacity;
	char *region; /* identity of the region that it is part of, the same after every boot; NULL: not known
		       */
	uint64_t region_bytes; /* size of that region; 0: not known */
	/* Devices take a multiple of the unit from the pool; the other members matter for namespaces only. */
	struct layout_rules rules;
	/* The largest free extents, largest first. A device has to fit into one of them: a namespace takes
	 * layout_raw_bytes(), other devices take a multiple of the unit. None: one extent of
	 * max_volume_bytes. */
	uint64_t free_extent_bytes[LAYOUT_EXTENTS_MAX];
	size_t n_free_extents;
	bool complete; /* false: parts are missing, so a device that is not listed may still exist; or it may
			* not be touched */
	const char *obstacle; /* why it is not complete, where that is known: DEVICE_PARTS_MISSING,
			       * DEVICE_EXPORTED or NULL */
	/* The resource that is used up, so that free space cannot be used: DEVICE_NO_SLOT, DEVICE_NO_TEXT,
	 * DEVICE_NO_VOLUME or NULL.
	 */
	const char *used_up;
	uint64_t max_devices;  /* how many devices can be described; 0: no limit is known */
	uint64_t more_devices; /* how many more of them can be described */
	const char *limit;     /* the resource that is used up then: DEVICE_NO_TEXT or DEVICE_NO_VOLUME */
	bool closed; /* its devices are served, but no new ones are made: of the other device mode */
	const char *fixed_size; /* why its devices cannot grow, and what to do instead; NULL: they can */
};

struct device_list {
	struct device *devices; /* sorted by id */
	size_t n_devices;
	struct device_pool *pools;
	size_t n_pools;
};

struct device_spec {
	const char *id;
	const char *pool;     /* uuid */
	const char *identity; /* UUID text */
	uint64_t size_bytes;  /* as granted by device_fit() */
	bool sector; /* for FileIO: sectors are written atomically, if the device mode supports that */
};

/* How a device is to grow. */
struct device_growth {
	const struct device *device; /* as listed: its ID, pool and identity count */
	uint64_t size_bytes;         /* the new size, as granted by device_fit_growth() */
	/* Zeroes all of the block device at @path, which becomes the new end of the device afterwards. The
	 * manager's lock is not held meanwhile. NULL: the new end may have any content. Managers whose new
	 * space is zero anyway do not call it. */
	int (*zero)(void *user, const char *path, uint64_t size_bytes, struct error **err);
	void *user;
};

/* The command that a device manager is waiting for, which a helper program or the kernel executes. */
struct device_activity {
	char command[96]; /* the command that is running: "lvm lvcreate", "create namespace in region0"; "":
			     none */
	uint64_t since_ns;
	uint64_t restarts; /* how often a helper process ended unexpectedly */
};

struct device_ops {
	const char *mode; /* "lvm", "direct", "fake": recorded as deviceMode in the volume's state */
	bool fixed_size;  /* no device can grow: all pools have a reason in device_pool.fixed_size */
	int (*list)(void *self, struct device_list **ret, struct error **err);
	struct device_list *(*latest_pools)(void *self); /* NULL: they are computed after a change, since a
							  * listing costs a command */
	int (*confirm)(void *self, const struct device *device, struct error **err); /* NULL: nothing to do */
	int (*create)(void *self, const struct device_spec *spec, struct device **ret, struct error **err);
	int (*grow)(void *self, const struct device_growth *growth, struct device **ret, struct error **err);
	int (*remove_leftovers)(void *self, bool *ret_changed, struct error **err); /* NULL: there are none */
	int (*destroy)(void *self, const struct device *device, int exclusive_fd, struct error **err);
	int (*activate)(void *self, const struct device_list *list, struct error **err);
	uint64_t (*fit)(const struct device_pool *pool, bool sector, uint64_t requested_bytes);
	/* @ret: zeroed, one for each device of @list; after a failure those are unknown that it affects.
	 * NULL: what the device's own list of bad blocks has */
	int (*media_errors)(
		void *self, const struct device_list *list, struct media_errors *ret, struct error **err);
	void (*tick)(void *self);
	void (*back_up)(void *self); /* NULL: nothing to do */
	void (*activity)(
		void *self, struct device_activity *ret); /* never waits; NULL: the manager never waits */
	void (*close)(void *self);
};

struct device_manager {
	const struct device_ops *ops;
	void *self;
	const char *why_no_path; /* why devices have no block devices, and what to do; NULL: they have them */
};

/** device_open_lvm() - logical volumes in the volume groups on pool namespaces. @nd and @lvm are taken over.
 * @saved_folder: where copies of the groups' metadata are brought up to date with each listing
 * (pool_backup.h), or NULL. Return: never NULL; device_close(). */
struct nd;
struct lvm;
struct device_manager *device_open_lvm(struct nd *nd, struct lvm *lvm, const char *saved_folder);

/**
 * device_open_direct() - a namespace of its own for each volume, in regions with labels; fsdax, or with
 * device_spec.sector a BTT. @nd is taken over. While the kernel hangs in an operation, others are refused
 * after at most 20 s (ERR_UNAVAILABLE). Return: never NULL; device_close().
 *
 * Every namespace whose name could be a volume's counts as a device, except for pool namespaces. Its
 * identity, the UUID of the namespace, shows whether it belongs to a volume. Several devices may have the
 * same name.
 */
struct device_manager *device_open_direct(struct nd *nd);

/**
 * device_open_two_modes() - the devices of two managers: new ones are made by @primary; those of @secondary
 * are served and destroyed, and its pools are closed. Both are taken over. Return: never NULL;
 * device_close().
 *
 * When @secondary cannot be listed, its pools are left out, so that only its volumes are missing; that is
 * logged once. It is listed together with @primary, but not after a change in @primary.
 */
struct device_manager *device_open_two_modes(
	struct device_manager *primary, struct device_manager *secondary);

struct device_fake_config {
	const char
		*path; /* folder for backing files and the model; NULL: in memory, devices without a node */
	size_t n_regions;      /* pools */
	uint64_t region_bytes; /* 0: the size with which the folder was made; DEVICE_FAKE_REGION_BYTES for a
				  new one */
	uint64_t unit_bytes;
	bool read_only; /* the folder is neither locked nor changed: another process may have it */
};

#define DEVICE_FAKE_REGION_BYTES (16ULL << 30)

/**
 * device_open_fake() - regions with extents and alignment; volumes are sparse files on loop devices under
 * @path, where the model is durable and loops are found again after a crash. Return: 0, or -1 with
 * ERR_NOT_FOUND (parent of path missing), ERR_PRECONDITION (the folder holds a model of another shape,
 * something else, or is damaged), ERR_UNAVAILABLE (another process has it open), ERR_EXHAUSTED (disk full),
 * ERR_INTERNAL.
 */
int device_open_fake(
	const struct device_fake_config *config, struct device_manager **ret, struct error **err) MUST_CHECK;

void device_close(struct device_manager *m);
DEFINE_CLEANUP(struct device_manager *, device_close);

/** device_list_read() - all devices and pools, read again. Return: 0, or -1 with ERR_INTERNAL,
 * ERR_UNAVAILABLE; a failure says nothing about what exists. @ret: device_list_free(). */
int device_list_read(struct device_manager *m, struct device_list **ret, struct error **err) MUST_CHECK;

/** device_latest_pools() - the pools in which devices are made, without their devices, as the manager saw
 * them last; its own last change is included, and no command is run. Return: device_list_free(); NULL when
 * they are not known. Waits at most for a running command of @m that cannot hang. */
struct device_list *device_latest_pools(struct device_manager *m);

/** device_confirm() - check that the device with this identity still has the path of @device: the kernel
 * reuses the names of removed namespaces, and LVM shows volumes that are active on a copy of a group.
 * Return: 0, or -1 with ERR_UNAVAILABLE, ERR_INTERNAL. */
int device_confirm(struct device_manager *m, const struct device *device, struct error **err) MUST_CHECK;

/**
 * device_create() - create a device with @spec->identity; it is active, and its node exists. Its content is
 * undefined.
 *
 * Not idempotent. On failure nothing is left. Return: 0, or -1 with ERR_EXISTS (that id is in use in some
 * pool), ERR_EXHAUSTED (does not fit), ERR_NOT_FOUND (no such pool), ERR_INTERNAL, ERR_UNAVAILABLE,
 * ERR_DEADLINE.
 * @ret: device_free().
 */
int device_create(struct device_manager *m, const struct device_spec *spec, struct device **ret,
	struct error **err) MUST_CHECK;

/**
 * device_grow() - make a device larger, while it may be open and mounted, in its pool. Its content stays.
 * @ret: the device as it is now; device_free()
 *
 * A crash leaves it with the old or the new size. With growth->zero, the new bytes are zeroed before the
 * device has them. Idempotent: a device that is already that large is success, once what is left of an
 * earlier growth that was cut off is done. Return: 0, or -1 with ERR_INVALID_ARGUMENT (devices of that pool
 * have a fixed size), ERR_PRECONDITION (another identity), ERR_EXHAUSTED (does not fit), ERR_UNAVAILABLE (the
 * device is not seen, is not as it is listed, or lies on other memory, or its pool is incomplete; it may have
 * grown), ERR_DEADLINE, ERR_INTERNAL, or as growth->zero().
 */
int device_grow(struct device_manager *m, const struct device_growth *growth, struct device **ret,
	struct error **err) MUST_CHECK;

/**
 * device_remove_leftovers() - remove what a device_grow() that a crash ended has left in the pools, as of the
 * last listing.
 * @ret_changed: whether something was removed, so that the pools have more space than was listed
 *
 * Not for a process that only looks while a driver runs: it would take what that is using. Idempotent.
 * Return: 0, or -1 with ERR_PRECONDITION (in use), ERR_INTERNAL, ERR_UNAVAILABLE, ERR_DEADLINE.
 */
int device_remove_leftovers(struct device_manager *m, bool *ret_changed, struct error **err) MUST_CHECK;

/**
 * device_destroy() - remove the device with this id, pool and identity.
 * @exclusive_fd: the descriptor that has kept other programs from using it, or -1; taken over and closed
 *                directly
 * before the removal, under the manager's lock
 *
 * Idempotent: a missing one is success. Return: 0, or -1 with ERR_PRECONDITION (in use, or another identity),
 * or as device_create().
 */
int device_destroy(struct device_manager *m, const struct device *device, int exclusive_fd,
	struct error **err) MUST_CHECK;

/** device_activate() - activate all inactive devices in @list, so that their nodes appear (after a boot
 * without udev rules nothing else does). Return: 0, or -1 with ERR_INTERNAL. */
int device_activate(struct device_manager *m, const struct device_list *list, struct error **err) MUST_CHECK;

/**
 * device_media_errors() - find the parts of devices that cannot be read.
 * @list: devices as listed; those that are not active, and those that are gone meanwhile, have none
 * @ret:  array with one for each device of @list, in that order, also after a failure, which makes only those
 *        unknown that it affects; free()
 *
 * Waits neither for commands nor for devices. Return: 0, or -1 with the first failure, as bad_ranges_read()
 * and dm_list_segments().
 */
int device_media_errors(struct device_manager *m, const struct device_list *list, struct media_errors **ret,
	struct error **err) MUST_CHECK;

/** device_tick() - housekeeping, called each second from any thread; waits for nothing. */
void device_tick(struct device_manager *m);

/** device_back_up() - update the copies of its pools' metadata that @m keeps elsewhere, as of the last
 * listing. Blocks on programs and the disk; a failure is logged. */
void device_back_up(struct device_manager *m);

/** device_activity() - what @m waits for. Any thread; never waits for running commands. */
void device_activity(struct device_manager *m, struct device_activity *ret);

void device_free(struct device *d);
void device_list_free(struct device_list *l);
DEFINE_CLEANUP(struct device *, device_free);
DEFINE_CLEANUP(struct device_list *, device_list_free);

/** device_list_find() - the first device called @id, borrowed, or NULL. Names of namespaces need not be
 * unique: others may follow it. */
const struct device *device_list_find(const struct device_list *l, const char *id);

/**
 * device_fit() - the size that a device of at least @requested_bytes is granted in @pool: requests are
 * rounded up to the unit to which offers are rounded down, so that the largest volume that a pool reports can
 * be created to the byte.
 * @sector: as device_spec.sector
 * Return: the granted size; UINT64_MAX: it does not fit. Pure.
 */
uint64_t device_fit(const struct device_manager *m, const struct device_pool *pool, bool sector,
	uint64_t requested_bytes);

/** device_fit_growth() - the size that a device of @size_bytes gets in @pool when it is to grow to at least
 * @requested_bytes: what is added is rounded up to the unit. Return: the granted size; UINT64_MAX: that much
 * does not fit, or devices of @pool do not grow. Pure. */
uint64_t device_fit_growth(const struct device_pool *pool, uint64_t size_bytes, uint64_t requested_bytes);

/** device_fit_units() - an ops.fit() for pools in which a device takes just its size, in whole units. */
uint64_t device_fit_units(const struct device_pool *pool, bool sector, uint64_t requested_bytes);

/** device_list_confirm() - an ops.confirm() that searches @l, which was just read. Return: as
 * device_confirm(). */
int device_list_confirm(const struct device_list *l, const struct device *d, struct error **err) MUST_CHECK;

/** device_list_pool() - the pool with @uuid, borrowed, or NULL. */
const struct device_pool *device_list_pool(const struct device_list *l, const char *uuid);

/** device_list_join() - add copies of the devices of @other and of its pools, which are marked closed in @l.
 */
void device_list_join(struct device_list *l, const struct device_list *other);

/** device_list_note() - bring @l up to date after @d was created (@exists) or destroyed, without asking the
 * kernel: the pool's free bytes change by its size, the largest possible device is the free space rounded to
 * the unit, and one device fewer or more can be described. Nothing changes if @l already shows this. */
void device_list_note(struct device_list *l, const struct device *d, bool exists);

/** device_id_valid() - whether @id can be the name of a device: LVM accepts it, and it has at most 63 bytes,
 * which fit into a namespace's label. */
bool device_id_valid(const char *id);

/** device_dup() - a copy. Return: device_free(). */
struct device *device_dup(const struct device *d);
