/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params.h - volume parameters: which keys each origin may carry, their types and defaults.
 *
 * Unknown keys are refused by name (a misspelt eraseafter must not pass), except in a state file: 0.6 stored
 * some that later versions dropped. Keys that Kubernetes adds by itself are ignored. Source: the Go driver's
 * parameters, whose StorageClasses keep working. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strmap.h"
#include "pmem/usage.h"

/* Which VolumeSnapshot a snapshot is made for, as csi-snapshotter says it (pkg/utils/util.go). */
#define PARAMS_SNAPSHOT_NAME      "csi.storage.k8s.io/volumesnapshot/name"
#define PARAMS_SNAPSHOT_NAMESPACE "csi.storage.k8s.io/volumesnapshot/namespace"
#define PARAMS_GROUP_NAMESPACE    "csi.storage.k8s.io/volumegroupsnapshot/namespace"

/* Parameters that can be changed after the creation of a volume. */
#define PARAMS_USAGE           "usage"
#define PARAMS_ERASE_AFTER     "eraseafter"
#define PARAMS_ERASE_BANDWIDTH "eraseBandwidth"
#define PARAMS_COPY_BANDWIDTH  "copyBandwidth"

/* Whether a volume has copies on several nodes. */
#define PARAMS_MODEL       "persistencyModel"
#define PARAMS_MODEL_CACHE "cache"

/* With which it is used in guests of Kata Containers. */
#define PARAMS_KATA "kataContainers"

/* With which its device is given to such a guest, and not mounted on the host. It is recorded outside of the
 * parameters, of which the Go driver accepts only those that it knows. */
#define PARAMS_DIRECT "directVolume"

/* "fsync": its programs call fsync, so that memory will do on which the kernel refuses MAP_SYNC. It is
 * recorded outside of the parameters, too. */
#define PARAMS_DURABILITY "durability"

enum params_origin {
	PARAMS_CREATE,   /* StorageClass parameters of CreateVolume, plus the provisioner's extra metadata */
	PARAMS_CONTEXT,  /* volume_context of stage and publish: what CreateVolume returned, plus Kubernetes'
			    own keys */
	PARAMS_STATE,    /* a state file */
	PARAMS_SNAPSHOT, /* parameters of a VolumeSnapshotClass, plus csi-snapshotter's extra metadata */
	PARAMS_INLINE,   /* volumeAttributes of an inline ephemeral volume, which come as volume_context */
	PARAMS_MODIFY,   /* of a VolumeAttributesClass, plus external-resizer's extra metadata */
};

struct volume_params {
	bool erase_after;      /* default true */
	bool kata_containers;  /* default false */
	bool direct_volume;    /* PARAMS_CREATE, PARAMS_CONTEXT; default false */
	bool names_durability; /* PARAMS_CREATE, PARAMS_INLINE: the parameter is given */
	bool fsync_suffices;   /* PARAMS_CREATE, PARAMS_INLINE: durability=fsync; default false */
	bool is_cache;         /* persistencyModel=cache */
	bool is_inline;        /* persistencyModel=ephemeral: lives as long as its pod */
	uint32_t cache_size;   /* with is_cache */
	enum volume_usage usage;
	uint64_t erase_bytes_per_s; /* PARAMS_CREATE, PARAMS_MODIFY; 0: no limit of its own */
	uint64_t copy_bytes_per_s;  /* likewise */
	uint64_t size_bytes;        /* PARAMS_INLINE */
	uint64_t max_pause_ms; /* PARAMS_CREATE, PARAMS_SNAPSHOT: how long the writers of the source of a copy
				* may stand still
				*/
	char *name;            /* NULL where the origin has none */
	char *device_mode;     /* PARAMS_STATE: "lvm", "direct", "fake" */
};

/**
 * params_parse() - check and read @map.
 * @ret: params_done()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names key and value.
 */
int params_parse(enum params_origin origin, const struct strmap *map, struct volume_params *ret,
	struct error **err) MUST_CHECK;

/** params_say_inline() - whether @context, of NodePublishVolume, says that the volume is an inline volume.
 * @ret_said: false: @context does not say whether it is one, as before Kubernetes 1.16. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT.
 */
int params_say_inline(
	const struct strmap *context, bool *ret_said, bool *ret_inline, struct error **err) MUST_CHECK;

/* Properties of volumes that not every node supports: an image for Kata Containers in the volume, and volumes
 * whose device is given to guests. */
#define PARAMS_NEED_KATA   1U
#define PARAMS_NEED_DIRECT 2U
/* The parameter durability, which drivers of earlier releases refuse as unknown. */
#define PARAMS_NEED_DURABILITY 4U

/* Memory on which the kernel does not refuse MAP_SYNC. */
#define PARAMS_NEED_SYNC 8U

/** params_needs_of() - what a volume with the parameters @p needs. */
unsigned params_needs_of(const struct volume_params *p);

/** params_needs() - what volumes with these values of PARAMS_KATA, PARAMS_DIRECT and PARAMS_DURABILITY need,
 * but for PARAMS_NEED_SYNC (durability_needs_sync()); NULL: not given. Values that are no booleans count as
 * false. */
unsigned params_needs(const char *kata, const char *direct, const char *durability);

/** params_look_inline() - guess, for a @context that does not say it, whether the volume is an inline volume:
 * the context has a size, and no keys that a provisioner adds. */
bool params_look_inline(const struct strmap *context);

/** params_done() - release what @p owns; safe on a zeroed one. */
void params_done(struct volume_params *p);

/** params_to_state() - add to @out those parameters of CreateVolume that are recorded, which are the ones
 * that have a meaning: the Go driver, which may have to read the state file, accepts no others. */
void params_to_state(const struct strmap *create_parameters, struct strmap *out);

/** params_to_context() - add to @out the volume_context that CreateVolume returns: the recorded parameters
 * that are allowed there, also by the Go driver. */
void params_to_context(const struct strmap *state_parameters, struct strmap *out);
