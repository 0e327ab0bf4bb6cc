/* SPDX-License-Identifier: Apache-2.0 */
/* What pages and watches say. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/informer_private.h"
#include "kube/read.h"

static const struct kube_meta *meta_of(const void *object)
{
	return object;
}

static void tell_changed(const struct informer *i, const char *key, const void *old, const void *new)
{
	if (i->events->changed)
		i->events->changed(i->user, key, old, new);
}

static void leave_out(struct informer *i, const char *key, void *object)
{
	struct kube_stored *e = kube_store_get(&i->store, key);
	void *old = e ? kube_store_remove(&i->store, e) : NULL;

	if (old) {
		tell_changed(i, key, old, object);
		i->kind->free(old);
	}
	i->kind->free(object);
}

static void put(struct informer *i, void *object)
{
	CLEANUP(free_charp) char *key = kube_meta_key(object);
	const struct kube_stored *e;
	void *old;

	if (i->kind->keeps && !i->kind->keeps(i->kind->keeps_user, object)) {
		leave_out(i, key, object);
		return;
	}
	e = kube_store_put(&i->store, key, object, &old);

	if (!old || !str_eq(meta_of(old)->resource_version, meta_of(object)->resource_version))
		tell_changed(i, e->key, old, object);
	if (old)
		i->kind->free(old);
}

static void drop(struct informer *i, struct kube_stored *e)
{
	CLEANUP(free_charp) char *key = x_strdup(e->key);
	void *old = kube_store_remove(&i->store, e);

	tell_changed(i, key, old, NULL);
	i->kind->free(old);
}

static bool take_item(void *user, struct span item)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(item);
	struct informer *i = user;
	void *object = i->kind->decode(r, &i->fault);

	if (!object)
		return false;
	put(i, object);
	return true;
}

bool informer_take_page(void *user, struct span data)
{
	struct informer *i = user;

	if (kube_items_feed(&i->items, data, take_item, i))
		return true;
	if (!i->fault)
		err_set(&i->fault, ERR_INVALID_ARGUMENT, "a page with something of more than %u bytes",
			KUBE_MAX_OBJECT_BYTES);
	return false;
}

struct list_meta {
	char *version;
	char *next_page;
};

static int read_list_meta(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct list_meta *m = user;

	if (str_eq(key, "resourceVersion"))
		return kube_read_text(r, &m->version, err);
	if (str_eq(key, "continue"))
		return kube_read_text(r, &m->next_page, err);
	return json_skip_value(r, err);
}

static int read_envelope(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "metadata"))
		return kube_read_object(r, read_list_meta, user, err);
	return json_skip_value(r, err);
}

static void drop_unseen(struct informer *i)
{
	struct kube_stored *next;

	for (struct kube_stored *e = i->store.first; e; e = next) {
		next = e->next;
		if (!e->seen)
			drop(i, e);
	}
}

static void end_list(struct informer *i)
{
	i->version = TAKE_PTR(i->list_version);
	drop_unseen(i);
	if (!i->is_synced) {
		i->is_synced = true;
		if (i->events->synced)
			i->events->synced(i->user);
	}
}

/* All pages are of one state of the server, whose version the first one tells. */
int informer_end_page(struct informer *i, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(buf_span(&i->items.envelope));
	struct list_meta m = {0};
	struct json_event end;
	int rv = 0;

	if (json_expect(r, JSON_OBJECT, &end, err) < 0 || kube_read_members(r, read_envelope, &m, err) < 0 ||
		json_expect(r, JSON_END, &end, err) < 0)
		rv = -1;
	else if (str_empty(m.version))
		rv = err_set(err, ERR_INVALID_ARGUMENT, "a list without a resourceVersion");
	free(i->next_page);
	i->next_page = NULL;
	if (rv == 0 && !i->list_version)
		i->list_version = TAKE_PTR(m.version);
	if (rv == 0 && !str_empty(m.next_page))
		i->next_page = TAKE_PTR(m.next_page);
	else if (rv == 0)
		end_list(i);
	free(m.version);
	free(m.next_page);
	return rv;
}

enum watch_type { WATCH_OTHER, WATCH_PUT, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

static int read_type(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "type"))
		return kube_read_text(r, user, err);
	return json_skip_value(r, err);
}

static int type_of(struct span line, enum watch_type *ret, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(line);
	CLEANUP(free_charp) char *type = NULL;
	struct json_event ev;

	if (json_expect(r, JSON_OBJECT, &ev, err) < 0)
		return -1;
	/* It comes first, so that the object is read once. */
	while (!type) {
		if (json_next(r, &ev, err) < 0)
			return -1;
		if (ev.type != JSON_KEY)
			return err_set(err, ERR_INVALID_ARGUMENT, "an event without a type");
		if (read_type(&type, ev.text, r, err) < 0)
			return -1;
	}
	*ret = WATCH_OTHER;
	if (str_eq(type, "ADDED") || str_eq(type, "MODIFIED"))
		*ret = WATCH_PUT;
	else if (str_eq(type, "DELETED"))
		*ret = WATCH_DELETED;
	else if (str_eq(type, "BOOKMARK"))
		*ret = WATCH_BOOKMARK;
	else if (str_eq(type, "ERROR"))
		*ret = WATCH_ERROR;
	return 0;
}

struct watch_event {
	struct informer *informer;
	enum watch_type type;
	void *object;          /* of those that change something */
	struct kube_meta mark; /* of a bookmark, which need not have a name */
	char *code;            /* of an error */
	char *message;
};

static int read_bookmark(void *user, const char *key, struct json_reader *r, struct error **err)
{
	if (str_eq(key, "metadata"))
		return kube_meta_read(r, user, KUBE_KEEP_NONE, err);
	return json_skip_value(r, err);
}

static int read_status(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct watch_event *w = user;

	if (str_eq(key, "code"))
		return kube_read_text(r, &w->code, err);
	if (str_eq(key, "message"))
		return kube_read_text(r, &w->message, err);
	return json_skip_value(r, err);
}

static int read_watched(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct watch_event *w = user;
	const struct kube_kind *kind = w->informer->kind;

	if (!str_eq(key, "object"))
		return json_skip_value(r, err);
	switch (w->type) {
	case WATCH_PUT:
	case WATCH_DELETED:
		if (w->object)
			return err_set(err, ERR_INVALID_ARGUMENT, "an event with two objects");
		w->object = kind->decode(r, err);
		return w->object ? 0 : -1;
	case WATCH_BOOKMARK:
		return kube_read_object(r, read_bookmark, &w->mark, err);
	case WATCH_ERROR:
		return kube_read_object(r, read_status, w, err);
	case WATCH_OTHER:
		break;
	}
	return json_skip_value(r, err);
}

static int read_event(struct span line, struct watch_event *w, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(line);
	struct json_event ev;

	if (json_expect(r, JSON_OBJECT, &ev, err) < 0 || kube_read_members(r, read_watched, w, err) < 0)
		return -1;
	return json_expect(r, JSON_END, &ev, err);
}

static void see_version(struct informer *i, const struct kube_meta *m)
{
	if (str_empty(m->resource_version))
		return;
	free(i->version);
	i->version = x_strdup(m->resource_version);
}

static int take_deleted(struct informer *i, const void *object)
{
	CLEANUP(free_charp) char *key = kube_meta_key(object);
	struct kube_stored *e = kube_store_get(&i->store, key);

	see_version(i, object);
	if (e)
		drop(i, e);
	return 0;
}

static int apply(struct informer *i, struct watch_event *w, struct error **err)
{
	switch (w->type) {
	case WATCH_PUT:
		if (!w->object)
			return err_set(err, ERR_INVALID_ARGUMENT, "an event without an object");
		see_version(i, w->object);
		put(i, TAKE_PTR(w->object));
		return 0;
	case WATCH_DELETED:
		if (!w->object)
			return err_set(err, ERR_INVALID_ARGUMENT, "an event without an object");
		return take_deleted(i, w->object);
	case WATCH_BOOKMARK:
		see_version(i, &w->mark);
		return 0;
	case WATCH_ERROR:
		return err_set(err, str_eq(w->code, "410") ? ERR_RANGE : ERR_UNAVAILABLE, "%s",
			w->message ? w->message : "an error without a message");
	case WATCH_OTHER:
		break;
	}
	return 0;
}

/* What cannot be read could have been any change: only a list tells what is true then. */
static bool take_line(void *user, struct span line)
{
	struct informer *i = user;
	struct watch_event w = {.informer = i};
	int rv = type_of(line, &w.type, &i->fault);

	if (rv == 0)
		rv = read_event(line, &w, &i->fault);
	if (rv == 0)
		rv = apply(i, &w, &i->fault);
	i->is_unsure = rv < 0 && w.type != WATCH_ERROR;
	i->got_line = i->got_line || rv == 0;
	if (w.object)
		i->kind->free(w.object);
	kube_meta_done(&w.mark);
	free(w.code);
	free(w.message);
	return rv == 0;
}

bool informer_take_watch(void *user, struct span data)
{
	struct informer *i = user;

	if (kube_lines_feed(&i->lines, data, take_line, i))
		return true;
	if (!i->fault) {
		i->is_unsure = true;
		err_set(&i->fault, ERR_INVALID_ARGUMENT, "an event of more than %u bytes",
			KUBE_MAX_OBJECT_BYTES);
	}
	return false;
}
