/* SPDX-License-Identifier: Apache-2.0 */
/*
 * devices.h - opens the device manager that the command line names, for the driver and for its commands.
 */
#pragma once

#include "options.h"

struct device_manager;

enum devices_purpose {
	DEVICES_SERVE,  /* for a long time */
	DEVICES_CHANGE, /* a few changes: no helper process is started */
	DEVICES_LOOK,   /* as DEVICES_CHANGE, but nothing is changed: a driver may be running */
};

/**
 * devices_open() - open the device manager that @o names.
 * @ret: device_close()
 *
 * Return: 0, or -1 as nd_open_real() and device_open_fake().
 */
int devices_open(const struct options *o, enum devices_purpose purpose, struct device_manager **ret,
	struct error **err) MUST_CHECK;
