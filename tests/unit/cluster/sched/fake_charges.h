/*
 * fake_charges.h - in place of cluster/sched/charges.h: says what it was told, one line per call: "NAME on
 * NODE SIZEMi", "NAME nowhere", "drop UID", "unscheduled UID as of VERSION", "saw UID"; also of nodes.h:
 * "NAME goes with its pod", "NAME is gone".
 */
#pragma once

#include "base/buf.h"
#include "cluster/sched/charges.h"

extern struct buf fake_charges_told;
