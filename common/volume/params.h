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

enum params_origin {
	PARAMS_CREATE,  /* StorageClass parameters of CreateVolume, plus the provisioner's extra metadata */
	PARAMS_CONTEXT, /* volume_context of stage and publish: what CreateVolume answered, plus Kubernetes'
			   own keys */
	PARAMS_STATE,   /* a state file */
};

enum volume_usage { USAGE_APP_DIRECT, USAGE_FILE_IO };

struct volume_params {
	bool erase_after;     /* default true */
	bool kata_containers; /* default false */
	bool is_cache;        /* persistencyModel=cache */
	uint32_t cache_size;  /* with is_cache */
	enum volume_usage usage;
	char *name;        /* NULL where the origin has none */
	char *device_mode; /* PARAMS_STATE: "lvm", "direct", "fake" */
};

/**
 * params_parse() - check and read @map.
 * @ret: params_done()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names key and value.
 */
int params_parse(enum params_origin origin, const struct strmap *map, struct volume_params *ret,
	struct error **err) MUST_CHECK;

/** params_done() - release what @p owns; safe on a zeroed one. */
void params_done(struct volume_params *p);

/** params_to_state() - add to @out what is recorded of the parameters of CreateVolume: those that mean
 * something. The Go driver, which may have to read it again, knows no others there. */
void params_to_state(const struct strmap *create_parameters, struct strmap *out);

/** params_to_context() - add to @out what CreateVolume answers as volume_context: those of the state's keys
 * that are allowed there, in the Go driver too. */
void params_to_context(const struct strmap *state_parameters, struct strmap *out);
