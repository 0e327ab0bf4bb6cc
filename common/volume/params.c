/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/params.h"

#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/suggest.h"
#include "pmem/durability.h"

#define KUBERNETES_PREFIX    "csi.storage.k8s.io/"
#define EPHEMERAL            KUBERNETES_PREFIX "ephemeral"
#define PROVISIONER_IDENTITY "storage.kubernetes.io/csiProvisionerIdentity"

/* external-provisioner --extra-create-metadata, which removes all other keys with the prefix itself, and
 * external-resizer --extra-modify-metadata */
static const char *const create_metadata[] = {
	KUBERNETES_PREFIX "pvc/name", KUBERNETES_PREFIX "pvc/namespace", KUBERNETES_PREFIX "pv/name", NULL};

/* csi-snapshotter --extra-create-metadata; it removes all other keys with the prefix itself */
static const char *const snapshot_metadata[] = {PARAMS_SNAPSHOT_NAME, PARAMS_SNAPSHOT_NAMESPACE,
	KUBERNETES_PREFIX "volumesnapshotcontent/name", KUBERNETES_PREFIX "volumegroupsnapshot/name",
	PARAMS_GROUP_NAMESPACE, KUBERNETES_PREFIX "volumegroupsnapshotcontent/name", NULL};

#define KEYS_MAX_BYTES 1024
#define QUOTED_MAX     200 /* of a key that nothing is known about */

/* of maxPause */
#define PAUSE_DEFAULT_MS 10000
#define PAUSE_LEAST_MS   1000
#define PAUSE_MOST_MS    600000

/* Lowest limit for the bandwidth of erasing and copying: erasing occupies one of a few threads, and a copy
 * stops the writers of its source. */
#define BANDWIDTH_LEAST (1ULL << 20)

enum {
	AT_CREATE = 1 << PARAMS_CREATE,
	AT_CONTEXT = 1 << PARAMS_CONTEXT,
	AT_STATE = 1 << PARAMS_STATE,
	AT_SNAPSHOT = 1 << PARAMS_SNAPSHOT,
	AT_INLINE = 1 << PARAMS_INLINE,
	AT_MODIFY = 1 << PARAMS_MODIFY
};
#define AT_ALL (AT_CREATE | AT_CONTEXT | AT_STATE | AT_INLINE)

/* @words: all of them, as @expected says it */
static int refuse_word(const char *value, const char *expected, const char *const *words, struct error **err)
{
	struct suggestion s = suggest_begin(value, strlen(value));

	for (; *words; words++)
		suggest_consider(&s, *words);
	if (s.name)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "\"%s\" is %s: did you mean %s?", value, expected, s.name);
	return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is %s", value, expected);
}

static int parse_erase_after(const char *value, struct volume_params *p, struct error **err)
{
	return parse_bool(value, &p->erase_after, err);
}

static int parse_kata(const char *value, struct volume_params *p, struct error **err)
{
	return parse_bool(value, &p->kata_containers, err);
}

static int parse_direct(const char *value, struct volume_params *p, struct error **err)
{
	return parse_bool(value, &p->direct_volume, err);
}

static int parse_durability(const char *value, struct volume_params *p, struct error **err)
{
	const char *const words[] = {
		durability_name(DURABILITY_SYNCHRONOUS), durability_name(DURABILITY_FSYNC), NULL};
	enum durability durability = durability_parse(value);

	if (durability == DURABILITY_UNKNOWN)
		return refuse_word(value, "neither synchronous nor fsync", words, err);
	p->names_durability = true;
	p->fsync_suffices = durability == DURABILITY_FSYNC;
	return 0;
}

static int parse_model(const char *value, struct volume_params *p, struct error **err)
{
	static const char *const models[] = {"normal", PARAMS_MODEL_CACHE, NULL};

	if (str_eq(value, PARAMS_MODEL_CACHE)) {
		p->is_cache = true;
		return 0;
	}
	/* in the state of inline volumes */
	if (str_eq(value, "ephemeral")) {
		p->is_inline = true;
		return 0;
	}
	/* "none" is what 0.5 called it */
	if (str_eq(value, "normal") || str_eq(value, "none"))
		return 0;
	return refuse_word(value, "neither normal nor cache", models, err);
}

static int parse_cache_size(const char *value, struct volume_params *p, struct error **err)
{
	return parse_u32(value, &p->cache_size, err);
}

static int parse_usage(const char *value, struct volume_params *p, struct error **err)
{
	static const char *const usages[] = {"AppDirect", "FileIO", NULL};

	if (str_empty(value))
		p->usage = USAGE_APP_DIRECT;
	else if (!volume_usage_parse(value, &p->usage))
		return refuse_word(value, "neither AppDirect nor FileIO", usages, err);
	return 0;
}

static int parse_name(const char *value, struct volume_params *p, struct error **err)
{
	(void)err;
	free(p->name);
	p->name = x_strdup(value);
	return 0;
}

static int parse_device_mode(const char *value, struct volume_params *p, struct error **err)
{
	if (!str_eq(value, "lvm") && !str_eq(value, "direct") && !str_eq(value, "fake"))
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a device mode", value);
	free(p->device_mode);
	p->device_mode = x_strdup(value);
	return 0;
}

static int parse_size(const char *value, struct volume_params *p, struct error **err)
{
	return parse_quantity(value, &p->size_bytes, err);
}

static int parse_max_pause(const char *value, struct volume_params *p, struct error **err)
{
	if (parse_duration_ms(value, &p->max_pause_ms, err) < 0)
		return -1;
	if (p->max_pause_ms < PAUSE_LEAST_MS || p->max_pause_ms > PAUSE_MOST_MS)
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not between %ds and %ds", value,
			PAUSE_LEAST_MS / 1000, PAUSE_MOST_MS / 1000);
	return 0;
}

static int parse_bandwidth(const char *value, uint64_t *ret, struct error **err)
{
	if (parse_quantity(value, ret, err) < 0)
		return -1;
	if (*ret > 0 && *ret < BANDWIDTH_LEAST)
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is neither 0 nor at least 1Mi", value);
	return 0;
}

static int parse_erase_bandwidth(const char *value, struct volume_params *p, struct error **err)
{
	return parse_bandwidth(value, &p->erase_bytes_per_s, err);
}

static int parse_copy_bandwidth(const char *value, struct volume_params *p, struct error **err)
{
	return parse_bandwidth(value, &p->copy_bytes_per_s, err);
}

static const struct {
	const char *key;
	unsigned origins;
	int (*parse)(const char *value, struct volume_params *p, struct error **err);
} known[] = {
	{PARAMS_ERASE_AFTER, AT_ALL | AT_MODIFY, parse_erase_after},
	{PARAMS_KATA, AT_ALL, parse_kata},
	{PARAMS_DIRECT, AT_CREATE | AT_CONTEXT, parse_direct},
	{PARAMS_DURABILITY, AT_CREATE | AT_INLINE, parse_durability},
	{PARAMS_MODEL, AT_ALL & ~AT_INLINE, parse_model},
	{"cacheSize", AT_ALL & ~AT_INLINE, parse_cache_size},
	{PARAMS_USAGE, AT_ALL | AT_MODIFY, parse_usage},
	{PARAMS_ERASE_BANDWIDTH, AT_CREATE | AT_MODIFY, parse_erase_bandwidth},
	{PARAMS_COPY_BANDWIDTH, AT_CREATE | AT_MODIFY, parse_copy_bandwidth},
	{"name", AT_CONTEXT | AT_STATE, parse_name},
	{"deviceMode", AT_STATE, parse_device_mode},
	{"size", AT_STATE | AT_INLINE, parse_size},
	{"maxPause", AT_CREATE | AT_SNAPSHOT, parse_max_pause},
};

#define CHANGEABLE                                                                                           \
	"what can be changed is " PARAMS_USAGE ", " PARAMS_ERASE_AFTER ", " PARAMS_ERASE_BANDWIDTH           \
	" and " PARAMS_COPY_BANDWIDTH

static bool is_one_of(const char *key, const char *const *keys)
{
	for (; *keys; keys++) {
		if (str_eq(key, *keys))
			return true;
	}
	return false;
}

/* Said by Kubernetes, not by an administrator; means nothing here. */
static bool is_ignored(enum params_origin origin, const char *key)
{
	switch (origin) {
	case PARAMS_CREATE:
	case PARAMS_MODIFY:
		return is_one_of(key, create_metadata);
	case PARAMS_SNAPSHOT:
		return is_one_of(key, snapshot_metadata);
	case PARAMS_CONTEXT:
		return str_starts(key, KUBERNETES_PREFIX) || str_eq(key, PROVISIONER_IDENTITY);
	case PARAMS_INLINE:
		return str_starts(key, KUBERNETES_PREFIX);
	case PARAMS_STATE:
		return true;
	}
	return false;
}

static int refuse_to_change(const struct strmap_entry *entry, struct error **err)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (str_eq(entry->key, known[i].key) && (known[i].origins & AT_CREATE))
			return err_set(err, ERR_INVALID_ARGUMENT,
				"parameter \"%s\" cannot be changed (to \"%s\"); " CHANGEABLE, entry->key,
				entry->value);
	}
	return err_set(err, ERR_INVALID_ARGUMENT, "unknown parameter \"%s\" (\"%s\"); " CHANGEABLE,
		entry->key, entry->value);
}

static int refuse_unknown(enum params_origin origin, const char *key, struct error **err)
{
	CLEANUP(buf_done) struct buf all = BUF_INIT(KEYS_MAX_BYTES);
	struct suggestion s = suggest_begin(key, strlen(key));

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!(known[i].origins & (1u << origin)))
			continue;
		suggest_consider(&s, known[i].key);
		buf_addf(&all, "%s%s", all.len > 0 ? ", " : "", known[i].key);
	}
	if (s.name)
		return err_set(err, ERR_INVALID_ARGUMENT, "unknown parameter \"%.*s\": did you mean %s?",
			QUOTED_MAX, key, s.name);
	return err_set(err, ERR_INVALID_ARGUMENT, "unknown parameter \"%.*s\"; the known ones are %s",
		QUOTED_MAX, key, buf_str(&all));
}

static int parse_entry(enum params_origin origin, const struct strmap_entry *entry, struct volume_params *p,
	struct error **err)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		if (!str_eq(entry->key, known[i].key) || !(known[i].origins & (1u << origin)))
			continue;
		if (known[i].parse(entry->value, p, err) < 0)
			return err_wrap(err, "parameter \"%s\"", entry->key);
		return 0;
	}
	if (is_ignored(origin, entry->key))
		return 0;
	if (origin == PARAMS_MODIFY)
		return refuse_to_change(entry, err);
	return refuse_unknown(origin, entry->key, err);
}

static int check_together(enum params_origin origin, const struct strmap *map, const struct volume_params *p,
	struct error **err)
{
	if (strmap_get(map, "cacheSize") && !p->is_cache)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "parameter \"cacheSize\" requires persistencyModel=cache");
	if (p->kata_containers && p->usage == USAGE_FILE_IO)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"parameters kataContainers=true and usage=FileIO exclude each other");
	if (p->direct_volume && (p->kata_containers || p->is_cache))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"parameters " PARAMS_DIRECT "=true and %s exclude each other",
			p->is_cache ? "persistencyModel=cache" : PARAMS_KATA "=true");
	if (origin == PARAMS_INLINE && !strmap_get(map, "size"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"parameter \"size\" is missing: an inline volume requires it");
	if (origin == PARAMS_CREATE && str_eq(strmap_get(map, PARAMS_MODEL), "ephemeral"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"parameter \"persistencyModel\": \"ephemeral\" is neither normal nor cache");
	return 0;
}

int params_parse(
	enum params_origin origin, const struct strmap *map, struct volume_params *ret, struct error **err)
{
	struct volume_params p = {
		.erase_after = true, .is_inline = origin == PARAMS_INLINE, .max_pause_ms = PAUSE_DEFAULT_MS};

	for (size_t i = 0; i < map->n; i++) {
		if (parse_entry(origin, &map->entries[i], &p, err) < 0)
			goto failed;
	}
	if (check_together(origin, map, &p, err) < 0)
		goto failed;
	*ret = p;
	return 0;
failed:
	params_done(&p);
	return -1;
}

int params_say_inline(const struct strmap *context, bool *ret_said, bool *ret_inline, struct error **err)
{
	const char *value = strmap_get(context, EPHEMERAL);

	*ret_said = value != NULL;
	*ret_inline = false;
	if (value && parse_bool(value, ret_inline, err) < 0)
		return err_wrap(err, "parameter \"" EPHEMERAL "\"");
	return 0;
}

static bool says_true(const char *value)
{
	CLEANUP(error_freep) struct error *none = NULL;
	bool says = false;

	return value && parse_bool(value, &says, &none) == 0 && says;
}

unsigned params_needs_of(const struct volume_params *p)
{
	return (p->kata_containers ? PARAMS_NEED_KATA : 0) | (p->direct_volume ? PARAMS_NEED_DIRECT : 0) |
	       (p->names_durability ? PARAMS_NEED_DURABILITY : 0) |
	       (p->usage == USAGE_APP_DIRECT && !p->fsync_suffices ? PARAMS_NEED_SYNC : 0);
}

unsigned params_needs(const char *kata, const char *direct, const char *durability)
{
	return (says_true(kata) ? PARAMS_NEED_KATA : 0) | (says_true(direct) ? PARAMS_NEED_DIRECT : 0) |
	       (durability ? PARAMS_NEED_DURABILITY : 0);
}

bool params_look_inline(const struct strmap *context)
{
	return strmap_get(context, "size") && !strmap_get(context, PROVISIONER_IDENTITY);
}

void params_done(struct volume_params *p)
{
	free(p->name);
	free(p->device_mode);
	*p = (struct volume_params){0};
}

static void copy_known(unsigned origin, const struct strmap *from, struct strmap *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const char *value = strmap_get(from, known[i].key);
		if (value && (known[i].origins & origin))
			strmap_set(out, known[i].key, value);
	}
}

void params_to_state(const struct strmap *create_parameters, struct strmap *out)
{
	copy_known(AT_STATE, create_parameters, out);
}

void params_to_context(const struct strmap *state_parameters, struct strmap *out)
{
	copy_known(AT_CONTEXT, state_parameters, out);
}
