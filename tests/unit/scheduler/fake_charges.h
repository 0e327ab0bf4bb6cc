/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_charges.h - in place of scheduler/charges.h: says what it was told, one line per call: "NAME on
 * NODE SIZEMi", "NAME nowhere", "drop UID", "unscheduled UID as of VERSION", "saw UID".
 */
#pragma once

#include "base/buf.h"
#include "scheduler/charges.h"

extern struct buf fake_charges_told;

/** fake_charges() - of which nothing is ever looked at. */
struct sched_charges *fake_charges(void);
