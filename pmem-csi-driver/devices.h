/*
 * devices.h - the device manager that the command line asks for: one place for the driver and its commands.
 */
#pragma once

#include "options.h"

struct device_manager;

/**
 * devices_open() - the device manager of @o.
 * @few_commands: for a program that ends soon: no helper process is started
 * @ret:          device_close()
 *
 * Return: 0, or -1 as nd_open_real() and device_open_fake().
 */
int devices_open(const struct options *o, bool few_commands, struct device_manager **ret,
	struct error **err) MUST_CHECK;
