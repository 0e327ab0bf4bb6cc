/* SPDX-License-Identifier: Apache-2.0 */
/*
 * claim_lookup.h - what the cluster says of a volume by its name: the claim_lookup of leftovers.h, read live
 * from the API.
 *
 * The PV is read by its name. Where there is none, or it is another volume, PVs of other names are looked for
 * that have the handle, and PVCs with the uid. The API finds neither by those, so all of them are listed,
 * PVCs metadata only, once for all lookups that wait. Threads: the loop's; nothing blocks.
 */
#pragma once

#include "duties/leftovers.h"
#include "kube/client.h"

struct claim_reader;

/** claim_reader_new() - @driver_name: borrowed. Return: never NULL; claim_reader_free(). */
struct claim_reader *claim_reader_new(struct kube_client *client, const char *driver_name);

/** claim_reader_free() - lookups that run end with ERR_CANCELLED before this returns. Before
 * kube_client_free(). NULL is allowed. */
void claim_reader_free(struct claim_reader *c);
DEFINE_CLEANUP(struct claim_reader *, claim_reader_free);

/** claim_reader_lookup() - valid as long as @c. */
struct claim_lookup claim_reader_lookup(struct claim_reader *c);
