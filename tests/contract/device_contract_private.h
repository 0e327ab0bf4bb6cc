/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_contract_private.h - what the files of the contract share. All of it asserts, and is for checks
 * only.
 */
#pragma once

#include <check.h>

#include "contract/device_contract.h"

/* A check knows only its own process, so what the suite runs on is known to all of it. */
extern const struct device_contract *target;
extern struct device_manager *manager;

/* The pools as they were before the check. */
extern struct device_pool *pools;
extern size_t n_pools;

/** open_empty(), close_empty() - the fixture: a manager over empty pools. */
void open_empty(void);
void close_empty(void);

/** reopen() - as after a restart. */
void reopen(void);

/** list() - devices and pools now. Return: device_list_free(). */
struct device_list *list(void);

/** pool_now() - the pool with @uuid as it is now, without its strings. */
struct device_pool pool_now(const char *uuid);

/** try_create_of() - device_create() with an identity of its own. */
int try_create_of(const char *id, const char *pool, uint64_t size_bytes, bool sector, struct device **ret,
	struct error **err);

/** try_create() - the same without sectors. */
int try_create(
	const char *id, const char *pool, uint64_t size_bytes, struct device **ret, struct error **err);

/** create() - must succeed. Return: device_free(). */
struct device *create(const char *id, const char *pool, uint64_t size_bytes);

/** destroy() - must succeed. */
void destroy(const struct device *d);

void assert_create_fails(const char *id, const char *pool, uint64_t size_bytes, enum err_code code);
void assert_destroy_refused(const struct device *d);

/** assert_listed() - what is listed is exactly the devices in @expected, active. */
void assert_listed(struct device *const *expected, size_t n);

/** fitting() - what a device of @size_bytes gets in the first pool while that is empty. */
uint64_t fitting(uint64_t size_bytes);

/** taken_by() - what @d, alone in its pool, has taken from it. */
uint64_t taken_by(const struct device *d);

/** device_contract_add_nodes(), device_contract_add_durable(), device_contract_add_growth(),
 * device_contract_add_health() - add those checks. */
void device_contract_add_nodes(TCase *tcase);
void device_contract_add_durable(TCase *tcase);
void device_contract_add_growth(TCase *tcase);
void device_contract_add_health(TCase *tcase);
