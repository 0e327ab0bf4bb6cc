/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

#define NAME_MAX_LEN 253

const char *kube_meta_label(const struct kube_meta *m, const char *key)
{
	return kube_pairs_get(&m->labels, key);
}

const char *kube_meta_annotation(const struct kube_meta *m, const char *key)
{
	return kube_pairs_get(&m->annotations, key);
}

struct owner_reference {
	char *uid;
	bool controls;
};

static const struct kube_field owner_fields[] = {
	KUBE_FIELD("uid", KUBE_TEXT, struct owner_reference, uid),
	KUBE_FIELD("controller", KUBE_FLAG, struct owner_reference, controls),
	KUBE_FIELDS_END,
};

static bool take_owner(void *object, void *item)
{
	struct owner_reference *o = item;
	struct kube_meta *m = object;

	if (o->controls) {
		free(m->owner_uid);
		m->owner_uid = TAKE_PTR(o->uid);
	}
	return false;
}

/* clang-format off */
#define NAMES                                                                          \
	KUBE_FIELD("namespace", KUBE_TEXT, struct kube_meta, namespace),               \
	KUBE_FIELD("name", KUBE_TEXT, struct kube_meta, name),                         \
	KUBE_FIELD("uid", KUBE_TEXT, struct kube_meta, uid),                           \
	KUBE_FIELD("resourceVersion", KUBE_TEXT, struct kube_meta, resource_version),  \
	KUBE_FIELD("deletionTimestamp", KUBE_NOT_NULL, struct kube_meta, deleting)
#define LABELS      KUBE_FIELD("labels", KUBE_PAIRS, struct kube_meta, labels)
#define FINALIZERS  KUBE_FIELD("finalizers", KUBE_TEXTS, struct kube_meta, finalizers)
#define ANNOTATIONS KUBE_FIELD("annotations", KUBE_PAIRS, struct kube_meta, annotations)
/* clang-format on */

const struct kube_field kube_meta_names[] = {NAMES, KUBE_FIELDS_END};
const struct kube_field kube_meta_labels[] = {
	NAMES,
	LABELS,
	KUBE_FIELDS_END,
};
const struct kube_field kube_meta_annotations[] = {NAMES, ANNOTATIONS, KUBE_FIELDS_END};
const struct kube_field kube_meta_annotations_and_owner[] = {
	NAMES,
	ANNOTATIONS,
	{.name = "ownerReferences",
		.type = KUBE_ARRAY,
		.fields = owner_fields,
		.item_size = sizeof(struct owner_reference),
		.takes = take_owner},
	KUBE_FIELD("", KUBE_TEXT, struct kube_meta, owner_uid),
	KUBE_FIELDS_END,
};

const struct kube_field kube_meta_finalizers[] = {
	NAMES,
	FINALIZERS,
	KUBE_FIELDS_END,
};
const struct kube_field kube_meta_labels_finalizers_and_time[] = {
	NAMES,
	LABELS,
	FINALIZERS,
	KUBE_FIELD("creationTimestamp", KUBE_TEXT, struct kube_meta, created),
	KUBE_FIELDS_END,
};

void kube_meta_drop_labels(struct kube_meta *m)
{
	static const struct kube_field labels[] = {LABELS, KUBE_FIELDS_END};

	kube_fields_done(labels, m);
}

char *kube_meta_key(const struct kube_meta *m)
{
	if (str_empty(m->namespace))
		return x_strdup(m->name);
	return x_asprintf("%s/%s", m->namespace, m->name);
}

void *kube_object_read(const struct kube_kind *kind, struct json_reader *r, struct error **err)
{
	struct kube_meta *object = x_calloc(1, kind->size);

	if (kube_fields_read(r, kind->fields, object, err) < 0)
		goto fail;
	if (str_empty(object->name)) {
		err_set(err, ERR_INVALID_ARGUMENT, "the object has no name");
		goto fail;
	}
	if (kind->derive)
		kind->derive(object);
	if (kind->trim)
		kind->trim(object);
	return object;
fail:
	kube_object_free(kind, object);
	return NULL;
}

void *kube_object_decode(const struct kube_kind *kind, struct span json, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	void *object = kube_object_read(kind, r, err);
	struct json_event end;

	if (!object) {
		err_wrap(err, "%s", kind->what);
		return NULL;
	}
	if (json_expect(r, JSON_END, &end, err) == 0)
		return object;
	kube_object_free(kind, object);
	return NULL;
}

static const struct kube_field names_fields[] = {KUBE_META(names), KUBE_FIELDS_END};

bool kube_object_read_names(struct span json, const char *object, struct kube_meta *ret)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(json);
	CLEANUP(error_freep) struct error *malformed = NULL;
	const struct kube_field nested[] = {KUBE_OBJECT(object, names_fields), KUBE_FIELDS_END};
	struct json_event end;

	return (kube_fields_read(r, object ? nested : names_fields, ret, &malformed) == 0 &&
		       json_expect(r, JSON_END, &end, &malformed) == 0) ||
	       !str_empty(ret->name);
}

void kube_names_done(struct kube_meta *m)
{
	kube_fields_done(names_fields, m);
}

void *kube_object_pack(const struct kube_kind *kind, void *object)
{
	struct kube_meta *packed = kube_fields_pack(kind->fields, object, kind->size);

	packed->is_packed = true;
	kube_object_free(kind, object);
	return packed;
}

void kube_object_free(const struct kube_kind *kind, void *object)
{
	const struct kube_meta *meta = object;

	if (!object)
		return;
	if (!meta->is_packed)
		kube_fields_done(kind->fields, object);
	free(object);
}

void kube_time_format(int64_t seconds, char out[static KUBE_SECONDS_LEN + 1])
{
	time_t time = (time_t)seconds;
	struct tm tm;

	gmtime_r(&time, &tm);
	strftime(out, KUBE_SECONDS_LEN + 1, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

bool kube_time_valid(const char *text)
{
	static const char form[] = "dddd-dd-ddTdd:dd:ddZ";

	if (!text || strlen(text) != KUBE_SECONDS_LEN)
		return false;
	for (size_t i = 0; i < KUBE_SECONDS_LEN; i++) {
		if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
			return false;
	}
	return true;
}

void kube_now_format(char out[static KUBE_TIME_LEN + 1])
{
	struct timespec now;
	struct tm tm;
	char seconds[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &tm);
	strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(out, KUBE_TIME_LEN + 1, "%.19s.%06uZ", seconds, (unsigned)(now.tv_nsec / 1000));
}

bool kube_is_name(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.");

	return n > 0 && n <= NAME_MAX_LEN && name[n] == '\0' && !strchr("-.", name[0]) &&
	       !strchr("-.", name[n - 1]) && !strstr(name, "..") && !strstr(name, "-.") &&
	       !strstr(name, ".-");
}
