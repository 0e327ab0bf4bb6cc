/*
 * init_chain.h - the two stages before the driver, run by the driver itself for manifests without init
 * containers.
 */
#pragma once

#include "base/error.h"

/**
 * init_chain_run() - run pmem-ns-init with @percent and then pmem-vgm, both found beside this program.
 * Idempotent. Blocks until both ended. Return: 0, or -1 with ERR_PRECONDITION (program missing), ERR_INTERNAL
 * (it failed; the end of its log).
 */
int init_chain_run(unsigned percent, struct error **err) MUST_CHECK;
