/* SPDX-License-Identifier: Apache-2.0 */
/*
 * damaged_record.h - whether a state file that cannot be read shows of what kind its volume is. Pure.
 * Threads: none.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"

/**
 * damaged_record_is_no_copy() - whether the sound beginning of @text, which state_format() has written, shows
 * that the volume is no copy of another one: it reaches beyond the member that names the source.
 */
bool damaged_record_is_no_copy(struct span text);
