/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/claim.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"

#define KEY(name) "csi.storage.k8s.io/" name

/* The place of the value of a key, and of the one with which it makes a pair. */
static const struct field {
	const char *key;
	enum claim_part part;
	size_t place;
	size_t other;
	size_t max_bytes;
} fields[] = {
	{KEY("pvc/namespace"), CLAIM_PVC, offsetof(struct volume_claim, namespace),
		offsetof(struct volume_claim, name), NAME_NAMESPACE_MAX},
	{KEY("pvc/name"), CLAIM_PVC, offsetof(struct volume_claim, name),
		offsetof(struct volume_claim, namespace), NAME_OBJECT_MAX},
	{KEY("pv/name"), CLAIM_PVC, offsetof(struct volume_claim, pv), offsetof(struct volume_claim, pv),
		NAME_OBJECT_MAX},
	{KEY("pod.namespace"), CLAIM_POD, offsetof(struct volume_claim, pod_namespace),
		offsetof(struct volume_claim, pod), NAME_NAMESPACE_MAX},
	{KEY("pod.name"), CLAIM_POD, offsetof(struct volume_claim, pod),
		offsetof(struct volume_claim, pod_namespace), NAME_OBJECT_MAX},
};

static char **place(struct volume_claim *c, size_t offset)
{
	return (char **)(void *)((uint8_t *)c + offset);
}

static char *value(const struct volume_claim *c, size_t offset)
{
	return *(char *const *)(const void *)((const uint8_t *)c + offset);
}

static void drop(struct volume_claim *c, size_t offset)
{
	free(*place(c, offset));
	*place(c, offset) = NULL;
}

void claim_check(struct volume_claim *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct field *f = &fields[i];
		const char *text = value(c, f->place);

		if (text && name_is_object(text, f->max_bytes) && value(c, f->other))
			continue;
		drop(c, f->place);
		drop(c, f->other);
	}
}

void claim_read(const struct strmap *said, enum claim_part part, struct volume_claim *ret)
{
	struct volume_claim c = {0};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (fields[i].part == part)
			*place(&c, fields[i].place) = x_strdup(strmap_get(said, fields[i].key));
	}
	claim_check(&c);
	*ret = c;
}

/* A pair comes whole: while its first half is taken over the second is still missing. */
bool claim_add(struct volume_claim *c, const struct volume_claim *more)
{
	struct volume_claim had = *c;
	bool added = false;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		const struct field *f = &fields[i];

		if (value(&had, f->place) || !value(more, f->place))
			continue;
		*place(c, f->place) = x_strdup(value(more, f->place));
		added = true;
	}
	return added;
}

void claim_copy(const struct volume_claim *c, struct volume_claim *ret)
{
	*ret = (struct volume_claim){0};
	(void)claim_add(ret, c);
}

char *claim_text(const struct volume_claim *c)
{
	return c->name ? x_asprintf("%s/%s", c->namespace, c->name) : NULL;
}

char *claim_pod(const struct volume_claim *c)
{
	return c->pod ? x_asprintf("%s/%s", c->pod_namespace, c->pod) : NULL;
}

bool claim_text_valid(const char *text)
{
	const char *slash = strchr(text, '/');
	CLEANUP(free_charp) char *namespace = slash ? x_strndup(text, (size_t)(slash - text)) : NULL;

	return slash && name_is_object(namespace, NAME_NAMESPACE_MAX) &&
	       name_is_object(slash + 1, NAME_OBJECT_MAX);
}

void claim_write_json(const struct volume_claim *c, struct json_writer *w)
{
	if (c->name) {
		json_key_str(w, "claimNamespace", c->namespace);
		json_key_str(w, "claimName", c->name);
	}
	if (c->pv)
		json_key_str(w, "pvName", c->pv);
	if (c->pod) {
		json_key_str(w, "podNamespace", c->pod_namespace);
		json_key_str(w, "podName", c->pod);
	}
}

void claim_done(struct volume_claim *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		drop(c, fields[i].place);
}
