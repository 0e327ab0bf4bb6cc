/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_check.h - whether the API server serves our custom resources: until their definitions have been
 * applied, every request for them fails with 404.
 *
 * Asks for the list of resources of PMEM_API_VERSION, which every authenticated user may read, until they are
 * all there. Failures are logged once. Threads: the loop's; nothing blocks. Source: Kubernetes API concepts,
 * "Discovery API".
 */
#pragma once

#include <stdint.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "kube/client.h"

struct api_check;

/** api_check_new() - begin to ask. @client: borrowed. Return: never NULL; api_check_free(), before
 * kube_client_free(). */
struct api_check *api_check_new(struct kube_client *client);

/** api_check_free() - NULL is allowed. */
void api_check_free(struct api_check *c);
DEFINE_CLEANUP(struct api_check *, api_check_free);

/** api_check_tick() - ask again if necessary; to be called each second. @now_ns: of clock_ns() */
void api_check_tick(struct api_check *c, uint64_t now_ns);

/** api_check_require() - whether the API server served the resources at the last check. Never waits.
 * Return: 0, or -1 with ERR_UNAVAILABLE, the reason and what to do. */
int api_check_require(const struct api_check *c, struct error **err) MUST_CHECK;
