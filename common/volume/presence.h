/* SPDX-License-Identifier: Apache-2.0 */
/*
 * presence.h - determines from one listing of devices whether the device of a recorded volume exists. Pure.
 */
#pragma once

#include "pmem/device/device.h"
#include "volume/state.h"

enum presence {
	DEVICE_PRESENT,
	DEVICE_MISSING, /* its pool is absent, incomplete or not recorded, or several devices could be it */
	DEVICE_GONE,    /* its pool is complete and does not have it */
	DEVICE_FOREIGN, /* its complete pool has a device of its name with another identity; while erasing,
			   none */
};

/**
 * presence_of() - look for the device of @r in @l.
 * @ret_device: the device if it is present, the other device if foreign, borrowed; otherwise NULL
 */
enum presence presence_of(
	const struct device_list *l, const struct volume_record *r, const struct device **ret_device);
