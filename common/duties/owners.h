/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owners.h - which nodes may own volumes: Nodes that bear the label `<driver>/node`, which kubelet sets when
 * the driver registers and leaves when it goes; or a list that somebody gave, where there is no API.
 *
 * Threads: the loop's; nothing blocks.
 */
#pragma once

#include "controller/possible_owners.h"
#include "kube/informer.h"

struct owners;

/** owners_watch() - begin to watch Nodes. Return: never NULL; owners_free(), before kube_client_free(). */
struct owners *owners_watch(struct kube_client *client, const char *driver_name);

/** owners_expect() - the nodes @ids (strv, copied), which then all exist for ever; others may exist as well.
 * Without any the list is never ready: nobody knows who may own what. Return: never NULL; owners_free(). */
struct owners *owners_expect(char *const *ids);

/** owners_free() - NULL is allowed. */
void owners_free(struct owners *o);
DEFINE_CLEANUP(struct owners *, owners_free);

/** owners_possible() - valid as long as @o. */
struct possible_owners owners_possible(struct owners *o);
