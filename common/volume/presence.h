/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presence.h - whether the device of a recorded volume is there, from one listing. Pure.
 */
#pragma once

#include "pmem/device/device.h"
#include "volume/state.h"

enum presence {
	DEVICE_PRESENT,
	DEVICE_MISSING, /* its pool is absent or incomplete, or not recorded; or several may be it */
	DEVICE_GONE,    /* its complete pool lacks it */
	DEVICE_FOREIGN, /* its complete pool has one of its name that bears another identity; while erasing,
			   none */
};

/**
 * presence_of() - look for the device of @r in @l.
 * @ret_device: if present it, if foreign the other one, borrowed; else NULL
 */
enum presence presence_of(
	const struct device_list *l, const struct volume_record *r, const struct device **ret_device);

/** presence_may_be_stranger() - whether @d of @l, of which no state file tells, is counted as a device of
 * ours without one. Other software's namespaces lie in the same regions: there only what has a name of ours
 * is likely to be ours. @mode: of the device manager */
bool presence_may_be_stranger(const struct device_list *l, const char *mode, const struct device *d);
