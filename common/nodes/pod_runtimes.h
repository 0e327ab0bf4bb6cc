/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pod_runtimes.h - says on a node whether a pod runs in a guest of Kata Containers, by the RuntimeClass that
 * the controllers read for it, which is compared with names; and which fsGroup it has.
 *
 * Nothing is kept: a pod is published to once. Threads: pod_runtimes_volume_pods() is for threads other than
 * the loop's, which they wait for; all else is the loop's.
 */
#pragma once

#include "base/cleanup.h"
#include "base/error.h"
#include "net/core/loop.h"
#include "nodes/registration.h"
#include "volume/volumes.h"

/* How long a call waits for the controllers, all together. */
#define POD_RUNTIMES_WAIT_MS 5000

#define POD_RUNTIMES_KATA "kata,kata-*"

/** pod_runtimes_check_names() - check @names as pod_runtimes_new() takes them. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int pod_runtimes_check_names(const char *names, struct error **err) MUST_CHECK;

struct pod_runtimes;

/** pod_runtimes_new() - @kata_names: names of RuntimeClasses for Kata Containers, separated by commas; one
 * that ends with "*" stands for all that begin like it. Return: never NULL; pod_runtimes_free(). */
struct pod_runtimes *pod_runtimes_new(const char *kata_names);

/** pod_runtimes_free() - when neither a call nor the registration is left. NULL is allowed. */
void pod_runtimes_free(struct pod_runtimes *r);
DEFINE_CLEANUP(struct pod_runtimes *, pod_runtimes_free);

/** pod_runtimes_open() - ask over @registration, from @loop; both are borrowed until pod_runtimes_close().
 * Until then and afterwards nothing is known of pods. */
void pod_runtimes_open(struct pod_runtimes *r, struct loop *loop, struct registration *registration);

/** pod_runtimes_close() - before the registration is freed. Idempotent. */
void pod_runtimes_close(struct pod_runtimes *r);

/** pod_runtimes_volume_pods() - the interface for volumes_config.pods; valid as long as @r. Its functions
 * block for POD_RUNTIMES_WAIT_MS at most. A pod without RuntimeClass runs in no guest. */
const struct volume_pods *pod_runtimes_volume_pods(const struct pod_runtimes *r);
