/* SPDX-License-Identifier: Apache-2.0 */
/*
 * init_chain.h - runs pmem-ns-init and pmem-vgm from the driver, for manifests without init containers.
 */
#pragma once

#include "base/error.h"

/**
 * init_chain_run() - run pmem-ns-init with @percent and then pmem-vgm with @state_path, both found beside
 * this program. Idempotent. Blocks until both ended. Return: 0, or -1 with ERR_PRECONDITION (program
 * missing), ERR_INTERNAL (it failed; the end of its log).
 */
int init_chain_run(unsigned percent, const char *state_path, struct error **err) MUST_CHECK;

/**
 * init_chain_convert() - run `pmem-ns-init -force convert` with @state_path, found beside this program; its
 * output goes to stdout and stderr. May be repeated. Blocks until it ended. Return: 0, or -1 with
 * ERR_PRECONDITION (program missing), ERR_INTERNAL (a namespace was refused or failed, or there is none).
 */
int init_chain_convert(const char *logging_format, const char *state_path, struct error **err) MUST_CHECK;
