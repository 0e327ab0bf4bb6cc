/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_reservations.h - in place of scheduler/reservations.h: records its calls, one line per call: "NAME on
 * NODE SIZEMi", followed by "until" where it has an end, "NAME made on NODE REPORT", "NAME ends", "NAME
 * nowhere", "drop UID", "unscheduled UID as of VERSION", "saw UID".
 */
#pragma once

#include "base/buf.h"
#include "scheduler/reservations.h"

extern struct buf fake_reservations_told;

/* The end that was given last. */
extern uint64_t fake_reservations_until_ns;

/** fake_reservations() - of which nothing is ever looked at. */
struct reservations *fake_reservations(void);
