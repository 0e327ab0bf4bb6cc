/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_chain.h - runs pmem-ns-init and pmem-vgm from the driver, for manifests without init containers.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct init_chain {
	unsigned percent; /* of each region */
	bool init_labels;
	const char *unlabelled;  /* of pmem-ns-init's flag of that name; NULL: its default */
	const char *cxl_regions; /* of pmem-ns-init's flag of that name */
	const char *state_path;
};

/**
 * init_chain_run() - run pmem-ns-init and then pmem-vgm, both found beside this program. Idempotent. Blocks
 * until both ended. Return: 0, or -1 with ERR_PRECONDITION (program missing), ERR_INTERNAL (it failed; the
 * end of its log).
 */
int init_chain_run(const struct init_chain *c, struct error **err) MUST_CHECK;

/**
 * init_chain_convert() - run `pmem-ns-init -force convert` with @state_path, found beside this program; its
 * output goes to stdout and stderr. May be repeated. Blocks until it ended. Return: 0, or -1 with
 * ERR_PRECONDITION (program missing), ERR_INTERNAL (a namespace was refused or failed, or there is none).
 */
int init_chain_convert(const char *logging_format, const char *state_path, struct error **err) MUST_CHECK;
