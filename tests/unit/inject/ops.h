/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ops.h - vtables whose n-th call fails: before it has done anything, or after all of it, as when a reply is
 * lost.
 *
 * One of each kind at a time. Threads: none.
 */
#pragma once

#include <stdbool.h>

#include "base/error.h"

struct device_manager;
struct nd;

/** ops_wrap_devices() - make the calls of @m such that can fail. */
void ops_wrap_devices(struct device_manager *m);

/** ops_wrap_nd() - make the calls of @nd such that can fail. */
void ops_wrap_nd(struct nd *nd);

enum ops_way { OPS_PASS, OPS_BEFORE, OPS_AFTER };

/** ops_way() - for other vtables: how the call @name is to fail. */
enum ops_way ops_way(const char *name);

/** ops_fail() - Return: -1 with ERR_INTERNAL that has @name. */
int ops_fail(const char *name, struct error **err);
