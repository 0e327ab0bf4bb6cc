/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nd_contract.h - what nd.h promises, checked on any nd with an empty region: the fake, and the kernel in the
 * lab.
 */
#pragma once

#include "pmem/nd/nd.h"

/** nd_contract_create() - a namespace is as asked for, is listed, and is gone again after destroying. */
void nd_contract_create(struct nd *nd);

/** nd_contract_sizes() - in both modes, block devices of several namespaces are as large as nd_usable_bytes()
 * says. */
void nd_contract_sizes(struct nd *nd);

/** nd_contract_sector() - a namespace in sector mode. */
void nd_contract_sector(struct nd *nd);

/** nd_contract_refusals() - malformed, misaligned, too large and unknown are refused with the promised codes,
 * and nothing is left of them. */
void nd_contract_refusals(struct nd *nd);

/** nd_contract_foreign() - a UUID under another name is not destroyed. */
void nd_contract_foreign(struct nd *nd);

/** nd_contract_extents() - the largest extent that is reported can be created, in a fragmented region too. */
void nd_contract_extents(struct nd *nd);
