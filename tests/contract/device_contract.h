/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_contract.h - what device.h promises, as one suite of checks that runs on every device manager.
 *
 * A test program describes its manager and calls device_contract_run(). Each check runs in a process of its
 * own (check's default) and begins with empty pools. A check that the manager cannot take part in, by its
 * description, is not run.
 */
#pragma once

#include <stdbool.h>

#include "pmem/device/device.h"

struct device_contract {
	const char *name; /* of the suite */
	/* Opens the manager, over the same pools each time. Every device that it lists is destroyed: the
	 * pools belong to the test. Never NULL. */
	struct device_manager *(*open)(void);
	/* Takes the node of @d away as a boot does, behind the manager's back. NULL: devices are always
	 * active. */
	void (*deactivate)(const struct device *d);
	/* Makes part of @d unreadable, behind the manager's back, and all of it readable again. NULL: the
	 * memory cannot be damaged. */
	void (*damage)(const struct device *d, uint64_t offset_bytes, uint64_t length_bytes);
	void (*repair)(const struct device *d);
	bool has_nodes;  /* devices have a block device that can be opened */
	bool is_plain;   /* devices take their own size from the pool, in whole units */
	bool sees_opens; /* a device that any process has open is in use, not only one that is open
			    exclusively */
	bool is_durable; /* devices are still there when the manager is opened again */
	bool fixed_size; /* devices cannot grow */
};

/** device_contract_run() - run the suite on @target. Return: exit status of the test program. */
int device_contract_run(const struct device_contract *target);
