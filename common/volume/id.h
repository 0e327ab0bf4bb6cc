/* SPDX-License-Identifier: Apache-2.0 */
/*
 * id.h - names, handles and IDs of volumes.
 *
 * A *handle* is the text in volume_id; an *ID* is a handle that also serves as device name and state file
 * name. New IDs are `<prefix>-<47 hex of sha224(name)>.<8 hex of sha224(node id)>`; the Go driver's
 * `<prefix>-<56 hex>` stay valid. Threads: safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define VOLUME_ID_MAX     63
#define VOLUME_HANDLE_MAX 128
#define VOLUME_NAME_MAX   128
#define VOLUME_GROUP_MAX  64 /* volumes in a group snapshot */

/** volume_noun() - "volume" or "snapshot", for texts. */
const char *volume_noun(bool snapshot);

/** volume_name_check() - check that @name is valid according to CSI: 1..128 bytes of UTF-8 without control
 * characters other than tab, line feed and carriage return. Source: CreateVolumeRequest.name in csi.proto.
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int volume_name_check(const char *name, struct error **err) MUST_CHECK;

/** volume_group_id() - compute the ID of the group snapshot @name on node @node_id, which no volume or
 * snapshot has. */
void volume_group_id(const char *name, const char *node_id, char out[static VOLUME_ID_MAX + 1]);

/** volume_group_member_name() - compute the name of the snapshot that the group snapshot @group has of the
 * volume @source. */
void volume_group_member_name(const char *group, const char *source, char out[static VOLUME_NAME_MAX + 1]);

/** volume_id_mint() - compute the ID for @name on node @node_id. One name gives one ID per node. @node_id:
 * NULL: of a cache volume, which has one ID on all its nodes */
void volume_id_mint(const char *name, const char *node_id, char out[static VOLUME_ID_MAX + 1]);

/** volume_id_mint_go() - compute the ID that the Go driver (0.7 and later) gave to @name. */
void volume_id_mint_go(const char *name, char out[static VOLUME_ID_MAX + 1]);

/* The IDs of one name, computed once, for comparing many IDs with it. */
struct volume_ids {
	char cache[VOLUME_ID_MAX + 1]; /* volume_id_mint() without a node */
	char go[VOLUME_ID_MAX + 1];    /* volume_id_mint_go() */
	size_t n_shared;               /* bytes of @cache with which the IDs on all nodes begin */
};

/** volume_id_mint_all() - compute all IDs that @name can have. Hashes @name once. */
void volume_id_mint_all(const char *name, struct volume_ids *ret);

/** volume_ids_have() - whether @id is one of @ids: of a volume on the node with @node_hash, of a cache
 * volume, or of the Go driver. @node_hash: the first eight hex digits of the SHA-224 of the node's ID. Hashes
 * nothing. */
bool volume_ids_have(const struct volume_ids *ids, const char *id, const char *node_hash);

/** volume_id_has_node() - whether @id says which node the volume is on: one of a cache volume or of the Go
 * driver does not. */
bool volume_id_has_node(const char *id);

/** volume_id_names_node() - whether @id, in any form, says that the volume is on @node_id. */
bool volume_id_names_node(const char *id, const char *node_id);

/** volume_id_names_other_node() - whether @id says that the volume is on a node other than @node_id. */
bool volume_id_names_other_node(const char *id, const char *node_id);

/** volume_id_fits_node() - whether @id, in any form, may be that of a volume on the node with @node_hash, as
 * of volume_ids_have(): it names that node, or none. Hashes nothing. */
bool volume_id_fits_node(const char *id, const char *node_hash);

/** volume_id_has_minted_form() - whether @id has the form of the IDs of volume_id_mint() or of the Go driver
 * (0.7 and later): one to six bytes of the name, a hyphen, and digits of its hash. A device without a record
 * can only be a volume or a snapshot of ours if its name has that form: all others are foreign, whatever pool
 * they are in (decision 090). */
bool volume_id_has_minted_form(const char *id);

/** volume_handle_valid() - whether @handle matches `[A-Za-z0-9][A-Za-z0-9+_.-]{0,127}`. */
bool volume_handle_valid(const char *handle);

/** volume_id_valid() - whether @id is a valid handle of at most 63 bytes, which is safe as the name of a
 * logical volume, of a namespace and of a file. */
bool volume_id_valid(const char *id);
