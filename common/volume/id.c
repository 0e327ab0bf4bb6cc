/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/id.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

#define NAME_PREFIX_MAX 6
#define NODE_HASH_LEN   8

/* lvm2 lib/misc/lvm-string.c: an LV name must not begin with one of the first and not contain one of the
 * second. */
static const char *const lvm_reserved_prefixes[] = {"pvmove", "snapshot"};
static const char *const lvm_reserved_strings[] = {"_cdata", "_cmeta", "_corig", "_cpool", "_cvol", "_imeta",
	"_iorig", "_mimage", "_mlog", "_pmspare", "_rimage", "_rmeta", "_tdata", "_tmeta", "_vdata",
	"_vorigin", "_wcorig"};

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

const char *volume_noun(bool snapshot)
{
	return snapshot ? "snapshot" : "volume";
}

int volume_name_check(const char *name, struct error **err)
{
	size_t n = strlen(name);

	if (n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume name is missing");
	if (n > VOLUME_NAME_MAX)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "volume name is longer than %d bytes", VOLUME_NAME_MAX);
	if (!str_is_utf8(name, n))
		return err_set(err, ERR_INVALID_ARGUMENT, "volume name is not UTF-8");
	for (const char *c = name; *c; c++) {
		if (str_is_control(c) && !strchr("\t\n\r", *c))
			return err_set(err, ERR_INVALID_ARGUMENT, "volume name contains a control character");
	}
	return 0;
}

/* A hash, since both together may be longer than a name. */
void volume_group_member_name(const char *group, const char *source, char out[static VOLUME_NAME_MAX + 1])
{
	CLEANUP(free_charp) char *both = x_asprintf("%s\n%s", group, source);
	char hex[SHA224_HEX_LEN + 1];

	sha224_hex(both, strlen(both), hex);
	snprintf(out, VOLUME_NAME_MAX + 1, "groupsnapshot-%s", hex);
}

static bool lvm_reserves(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(lvm_reserved_prefixes); i++) {
		if (str_starts(id, lvm_reserved_prefixes[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lvm_reserved_strings); i++) {
		if (strstr(id, lvm_reserved_strings[i]))
			return true;
	}
	return false;
}

/* Readable start of an ID: what is harmless of the name's first bytes, or "vol". */
static void name_prefix(const char *name, char out[static NAME_PREFIX_MAX + 1])
{
	size_t n = 0;

	for (size_t i = 0; i < NAME_PREFIX_MAX && name[i]; i++) {
		if (is_alnum(name[i]) || name[i] == '-' || name[i] == '_')
			out[n++] = name[i];
	}
	out[n] = '\0';
	if (n == 0 || !is_alnum(out[0]) || lvm_reserves(out))
		snprintf(out, NAME_PREFIX_MAX + 1, "vol");
}

void volume_id_mint_all(const char *name, struct volume_ids *ret)
{
	char prefix[NAME_PREFIX_MAX + 1];
	char hex[SHA224_HEX_LEN + 1];

	name_prefix(name, prefix);
	sha224_hex(name, strlen(name), hex);
	snprintf(ret->cache, sizeof(ret->cache), "%s-%s", prefix, hex);
	snprintf(ret->go, sizeof(ret->go), "%.*s-%s", NAME_PREFIX_MAX, name, hex);
	ret->n_shared = strlen(ret->cache) - NODE_HASH_LEN - 1;
}

bool volume_ids_have(const struct volume_ids *ids, const char *id, const char *node_hash)
{
	if (str_eq(id, ids->cache) || str_eq(id, ids->go))
		return true;
	return strncmp(id, ids->cache, ids->n_shared) == 0 && id[ids->n_shared] == '.' &&
	       str_eq(id + ids->n_shared + 1, node_hash);
}

void volume_id_mint(const char *name, const char *node_id, char out[static VOLUME_ID_MAX + 1])
{
	char node_hex[SHA224_HEX_LEN + 1];
	struct volume_ids ids;

	volume_id_mint_all(name, &ids);
	if (!node_id) {
		memcpy(out, ids.cache, sizeof(ids.cache));
		return;
	}
	sha224_hex(node_id, strlen(node_id), node_hex);
	snprintf(out, VOLUME_ID_MAX + 1, "%.*s.%.*s", (int)ids.n_shared, ids.cache, NODE_HASH_LEN, node_hex);
}

/* A line feed keeps it apart from the IDs of names of volumes that begin alike. */
void volume_group_id(const char *name, const char *node_id, char out[static VOLUME_ID_MAX + 1])
{
	CLEANUP(free_charp) char *text = x_asprintf("group\n%s", name);

	volume_id_mint(text, node_id, out);
}

void volume_id_mint_go(const char *name, char out[static VOLUME_ID_MAX + 1])
{
	struct volume_ids ids;

	volume_id_mint_all(name, &ids);
	memcpy(out, ids.go, sizeof(ids.go));
}

static size_t count_hex(const char *s)
{
	return strspn(s, "0123456789abcdef");
}

bool volume_id_has_minted_form(const char *id)
{
	const char *hash = strrchr(id, '-');
	size_t n = hash ? count_hex(hash + 1) : 0;

	if (hash == id || hash > id + NAME_PREFIX_MAX)
		return false;
	if (n == SHA224_HEX_LEN)
		return hash[1 + n] == '\0';
	if (n != SHA224_HEX_LEN - NODE_HASH_LEN - 1)
		return false;
	const char *node = hash + 1 + n;
	return *node == '.' && count_hex(node + 1) == NODE_HASH_LEN && node[1 + NODE_HASH_LEN] == '\0';
}

/* Return: the hash of the node in @id, or NULL. The Go driver keeps dots of the name in front of the hash. */
static const char *node_hash_of(const char *id)
{
	const char *dot = volume_id_has_minted_form(id) ? strchr(strrchr(id, '-'), '.') : NULL;

	return dot ? dot + 1 : NULL;
}

bool volume_id_has_node(const char *id)
{
	return node_hash_of(id) != NULL;
}

bool volume_id_fits_node(const char *id, const char *node_hash)
{
	const char *hash = node_hash_of(id);

	return !hash || str_eq(hash, node_hash);
}

bool volume_id_names_node(const char *id, const char *node_id)
{
	const char *hash = node_hash_of(id);
	char digest[SHA224_HEX_LEN + 1];

	if (!hash)
		return false;
	sha224_hex(node_id, strlen(node_id), digest);
	return strncmp(digest, hash, NODE_HASH_LEN) == 0;
}

bool volume_handle_valid(const char *handle)
{
	size_t n = strlen(handle);

	if (n == 0 || n > VOLUME_HANDLE_MAX || !is_alnum(handle[0]))
		return false;
	for (size_t i = 1; i < n; i++) {
		if (!is_alnum(handle[i]) && !strchr("+_.-", handle[i]))
			return false;
	}
	return true;
}

bool volume_id_valid(const char *id)
{
	return volume_handle_valid(id) && strlen(id) <= VOLUME_ID_MAX;
}

bool volume_id_names_other_node(const char *id, const char *node_id)
{
	return volume_id_has_node(id) && !volume_id_names_node(id, node_id);
}
