/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"

/* What etcd takes in one request bounds what an object's labels and annotations can be. */
#define MAX_PAIRS_BYTES (4u << 20)
#define NAME_MAX_LEN    253

/* The pair behind the one with @key, the first for NULL. */
static const char *next_pair(const struct kube_pairs *p, const char *key, const char **ret_value)
{
	const char *at = p->block;

	if (!at)
		return NULL;
	if (key) {
		at = key + strlen(key) + 1;
		at += strlen(at) + 1;
	}
	if (!*at)
		return NULL;
	*ret_value = at + strlen(at) + 1;
	return at;
}

const char *kube_pairs_get(const struct kube_pairs *p, const char *key)
{
	const char *value;

	for (const char *k = next_pair(p, NULL, &value); k; k = next_pair(p, k, &value)) {
		if (str_eq(k, key))
			return value;
	}
	return NULL;
}

/* An empty key, which the API does not allow, would end the block. */
static int add_pair(void *user, const char *key, struct json_reader *r, struct error **err)
{
	CLEANUP(free_charp) char *copy = x_strdup(key);
	CLEANUP(free_charp) char *value = NULL;
	struct buf *block = user;

	if (kube_read_text(r, &value, err) < 0)
		return -1;
	if (*copy && value) {
		buf_add(block, copy, strlen(copy) + 1);
		buf_add(block, value, strlen(value) + 1);
	}
	return 0;
}

int kube_pairs_read(struct json_reader *r, struct kube_pairs *p, struct error **err)
{
	CLEANUP(buf_done) struct buf block = BUF_INIT(MAX_PAIRS_BYTES);

	if (kube_read_object(r, add_pair, &block, err) < 0 || buf_check(&block, "labels", err) < 0)
		return -1;
	free(p->block);
	p->block = NULL;
	if (block.len > 0) {
		p->block = x_malloc(block.len + 1);
		memcpy(p->block, block.data, block.len);
		p->block[block.len] = '\0';
	}
	return 0;
}

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

static int read_reference_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct owner_reference *o = user;

	if (str_eq(key, "uid"))
		return kube_read_text(r, &o->uid, err);
	if (str_eq(key, "controller"))
		return kube_read_flag(r, &o->controls, err);
	return json_skip_value(r, err);
}

static int read_reference(void *user, struct json_reader *r, struct error **err)
{
	struct owner_reference o = {0};
	struct kube_meta *m = user;
	int rv = kube_read_members(r, read_reference_member, &o, err);

	if (rv == 0 && o.controls) {
		free(m->owner_uid);
		m->owner_uid = TAKE_PTR(o.uid);
	}
	free(o.uid);
	return rv;
}

struct meta_reading {
	struct kube_meta *meta;
	unsigned keep;
};

static int read_meta_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	const struct meta_reading *reading = user;
	struct kube_meta *m = reading->meta;

	if (str_eq(key, "namespace"))
		return kube_read_text(r, &m->namespace, err);
	if (str_eq(key, "name"))
		return kube_read_text(r, &m->name, err);
	if (str_eq(key, "uid"))
		return kube_read_text(r, &m->uid, err);
	if (str_eq(key, "resourceVersion"))
		return kube_read_text(r, &m->resource_version, err);
	if (str_eq(key, "labels") && reading->keep & KUBE_KEEP_LABELS)
		return kube_pairs_read(r, &m->labels, err);
	if (str_eq(key, "annotations") && reading->keep & KUBE_KEEP_ANNOTATIONS)
		return kube_pairs_read(r, &m->annotations, err);
	if (str_eq(key, "ownerReferences") && reading->keep & KUBE_KEEP_OWNER)
		return kube_read_array(r, read_reference, m, err);
	if (str_eq(key, "deletionTimestamp")) {
		CLEANUP(free_charp) char *when = NULL;

		if (kube_read_text(r, &when, err) < 0)
			return -1;
		m->deleting = when != NULL;
		return 0;
	}
	return json_skip_value(r, err);
}

int kube_meta_read(struct json_reader *r, struct kube_meta *m, unsigned keep, struct error **err)
{
	struct meta_reading reading = {m, keep};

	return kube_read_object(r, read_meta_member, &reading, err);
}

void kube_meta_done(struct kube_meta *m)
{
	free(m->namespace);
	free(m->name);
	free(m->uid);
	free(m->resource_version);
	free(m->labels.block);
	free(m->annotations.block);
	free(m->owner_uid);
	*m = (struct kube_meta){0};
}

char *kube_meta_key(const struct kube_meta *m)
{
	if (str_empty(m->namespace))
		return x_strdup(m->name);
	return x_asprintf("%s/%s", m->namespace, m->name);
}

struct object_reading {
	struct kube_meta *meta;
	unsigned keep;
	kube_member_fn *member;
	void *object;
};

static int read_object_member(void *user, const char *key, struct json_reader *r, struct error **err)
{
	const struct object_reading *reading = user;

	if (str_eq(key, "metadata"))
		return kube_meta_read(r, reading->meta, reading->keep, err);
	if (reading->member)
		return reading->member(reading->object, key, r, err);
	return json_skip_value(r, err);
}

int kube_object_read(struct json_reader *r, struct kube_meta *m, unsigned keep, kube_member_fn *member,
	void *object, struct error **err)
{
	struct object_reading reading = {m, keep, member, object};
	struct json_event ev;

	if (json_expect(r, JSON_OBJECT, &ev, err) < 0 ||
		kube_read_members(r, read_object_member, &reading, err) < 0)
		return -1;
	if (str_empty(m->name))
		return err_set(err, ERR_INVALID_ARGUMENT, "an object without a name");
	return 0;
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

	return n > 0 && n <= NAME_MAX_LEN && name[n] == '\0' && !strchr("-.", name[0]) && !strstr(name, "..");
}
