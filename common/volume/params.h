/* SPDX-License-Identifier: Apache-2.0 */
/*
 * params.h - volume parameters: which keys each origin may carry, their types and defaults.
 *
 * Unknown keys are refused by name (a misspelt eraseafter must not pass), except in a state file: 0.6 stored
 * some that later versions dropped. What Kubernetes adds by itself is ignored. Source: the Go driver's
 * parameters, whose StorageClasses keep working. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strmap.h"
#include "pmem/usage.h"

enum params_origin {
	PARAMS_CREATE,  /* StorageClass parameters of CreateVolume, plus the provisioner's extra metadata */
	PARAMS_CONTEXT, /* volume_context of stage and publish: what CreateVolume answered, plus Kubernetes'
			   own keys */
	PARAMS_STATE,   /* a state file */
	PARAMS_INLINE,  /* volumeAttributes of an inline ephemeral volume, which come as volume_context */
};

struct volume_params {
	bool erase_after;     /* default true */
	bool kata_containers; /* default false */
	bool is_cache;        /* persistencyModel=cache */
	bool is_inline;       /* persistencyModel=ephemeral: lives as long as its pod */
	uint32_t cache_size;  /* with is_cache */
	enum volume_usage usage;
	uint64_t size_bytes; /* PARAMS_INLINE */
	char *name;          /* NULL where the origin has none */
	char *device_mode;   /* PARAMS_STATE: "lvm", "direct", "fake" */
};

/**
 * params_parse() - check and read @map.
 * @ret: params_done()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names key and value.
 */
int params_parse(enum params_origin origin, const struct strmap *map, struct volume_params *ret,
	struct error **err) MUST_CHECK;

/** params_say_inline() - whether @context, of NodePublishVolume, says itself that it is of an inline volume.
 * @ret_said: false: it says nothing, as before Kubernetes 1.16. Return: 0, or -1 with ERR_INVALID_ARGUMENT.
 */
int params_say_inline(
	const struct strmap *context, bool *ret_said, bool *ret_inline, struct error **err) MUST_CHECK;

/** params_look_inline() - whether @context, which says nothing about it, looks like that of an inline volume:
 * no provisioner has seen it, and it has a size. */
bool params_look_inline(const struct strmap *context);

/** params_done() - release what @p owns; safe on a zeroed one. */
void params_done(struct volume_params *p);

/** params_to_state() - add to @out what is recorded of the parameters of CreateVolume: those that mean
 * something. The Go driver, which may have to read it again, knows no others there. */
void params_to_state(const struct strmap *create_parameters, struct strmap *out);

/** params_to_context() - add to @out what CreateVolume answers as volume_context: those of the state's keys
 * that are allowed there, in the Go driver too. */
void params_to_context(const struct strmap *state_parameters, struct strmap *out);
