/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/informer_copy.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "kube/json_members.h"

/* Lines about objects that are skipped: on the long run, and at once. */
#define SKIP_LINES_PER_S 1
#define SKIP_LINES       10

void informer_copy_done(struct informer_copy *c)
{
	kube_store_done(&c->store);
	informer_copy_end_request(c);
	informer_copy_forget_versions(c);
	error_free(c->fault);
}

void informer_copy_begin_request(struct informer_copy *c)
{
	error_clear(&c->fault);
	c->is_unsure = false;
	c->got_line = false;
}

void informer_copy_end_request(struct informer_copy *c)
{
	kube_list_page_reset(&c->page);
	kube_watch_splitter_done(&c->lines);
}

void informer_copy_begin_list(struct informer_copy *c)
{
	for (struct kube_stored *e = c->store.first; e; e = e->next)
		e->seen = false;
}

void informer_copy_forget_versions(struct informer_copy *c)
{
	free(TAKE_PTR(c->version));
	free(TAKE_PTR(c->list_version));
	free(TAKE_PTR(c->next_page));
}

static const struct kube_meta *meta_of(const void *object)
{
	return object;
}

static void report_change(const struct informer_copy *c, const char *key, const void *old, const void *new)
{
	if (c->events->changed)
		c->events->changed(c->user, key, old, new);
}

static void leave_out(struct informer_copy *c, const char *key, void *object)
{
	struct kube_stored *e = kube_store_get(&c->store, key);
	void *old = e ? kube_store_remove(&c->store, e) : NULL;

	if (old) {
		report_change(c, key, old, object);
		kube_object_free(c->kind, old);
	}
	kube_object_free(c->kind, object);
}

static void put(struct informer_copy *c, void *object)
{
	CLEANUP(free_charp) char *key = kube_meta_key(object);
	void *old;

	if (c->kind->keeps && !c->kind->keeps(c->kind->keeps_user, object)) {
		leave_out(c, key, object);
		return;
	}
	object = kube_object_pack(c->kind, object);
	old = kube_store_put(&c->store, key, object);
	if (!old || !str_eq(meta_of(old)->resource_version, meta_of(object)->resource_version))
		report_change(c, key, old, object);
	if (old)
		kube_object_free(c->kind, old);
}

static void drop(struct informer_copy *c, struct kube_stored *e)
{
	CLEANUP(free_charp) char *key = x_strdup(e->link.name);
	void *old = kube_store_remove(&c->store, e);

	report_change(c, key, old, NULL);
	kube_object_free(c->kind, old);
}

static void take_object(void *user, void *object)
{
	put(user, object);
}

/* One object must not hide all others. The last readable version of the object stays in the copy, since
 * nothing says that the object is deleted, unless the unreadable one is another object of that name. */
static void skip_object(void *user, const struct kube_meta *names, const struct error *why)
{
	CLEANUP(free_charp) char *key = str_empty(names->name) ? NULL : kube_meta_key(names);
	struct informer_copy *c = user;
	struct kube_stored *e = key ? kube_store_get(&c->store, key) : NULL;

	c->n_skipped++;
	if (bucket_take(&c->skip_lines, clock_ns()) == 0)
		log_warn("an object of the Kubernetes API cannot be read and is skipped",
			F_STR("kind", c->kind->what), F_STR("object", key ? key : "(without a name)"),
			F_U64("skipped", c->n_skipped), F_ERR(why));
	if (e && !str_empty(names->uid) && !str_eq(meta_of(e->object)->uid, names->uid))
		drop(c, e);
	else if (e)
		e->seen = true;
}

void informer_copy_init(struct informer_copy *c, const struct kube_kind *kind,
	const struct informer_events *events, void *user)
{
	*c = (struct informer_copy){
		.kind = kind, .events = events, .user = user, .lines = KUBE_WATCH_SPLITTER};
	bucket_init(&c->skip_lines, SKIP_LINES_PER_S, SKIP_LINES);
	kube_list_page_init(&c->page, kind, take_object, c);
	c->page.skip = skip_object;
	kube_store_init(&c->store, kind);
}

bool informer_copy_take_page(struct informer_copy *c, struct span data)
{
	return kube_list_page_feed(&c->page, data, &c->fault) == 0;
}

static void drop_unseen(struct informer_copy *c)
{
	struct kube_stored *next;

	for (struct kube_stored *e = c->store.first; e; e = next) {
		next = e->next;
		if (!e->seen)
			drop(c, e);
	}
}

static void end_list(struct informer_copy *c)
{
	c->version = TAKE_PTR(c->list_version);
	drop_unseen(c);
	if (!c->is_synced) {
		c->is_synced = true;
		if (c->events->synced)
			c->events->synced(c->user);
	}
}

int informer_copy_end_page(struct informer_copy *c, struct error **err)
{
	char *version;

	free(TAKE_PTR(c->next_page));
	if (kube_list_page_end(&c->page, &version, &c->next_page, err) < 0)
		return -1;
	if (c->list_version)
		free(version);
	else
		c->list_version = version;
	if (!c->next_page)
		end_list(c);
	return 0;
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
			return err_set(err, ERR_INVALID_ARGUMENT, "the event has no type");
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

/* The object of a watch event that is not of the watched kind: a bookmark, which need not have a name, or an
 * error. */
struct notice {
	struct kube_meta meta;
	char *code; /* of an error */
	char *message;
};

static const struct kube_field notice_fields[] = {
	KUBE_META(names),
	KUBE_FIELD("code", KUBE_TEXT, struct notice, code),
	KUBE_FIELD("message", KUBE_TEXT, struct notice, message),
	KUBE_FIELDS_END,
};

struct watch_event {
	struct informer_copy *copy;
	enum watch_type type;
	void *object; /* of those that change something */
	struct notice notice;
};

static int read_watched(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct watch_event *w = user;
	const struct kube_kind *kind = w->copy->kind;

	if (!str_eq(key, "object"))
		return json_skip_value(r, err);
	switch (w->type) {
	case WATCH_PUT:
	case WATCH_DELETED:
		if (w->object)
			return err_set(err, ERR_INVALID_ARGUMENT, "the event has two objects");
		w->object = kube_object_read(kind, r, err);
		return w->object ? 0 : -1;
	case WATCH_BOOKMARK:
	case WATCH_ERROR:
		return kube_fields_read(r, notice_fields, &w->notice, err);
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

static void see_version(struct informer_copy *c, const struct kube_meta *m)
{
	if (str_empty(m->resource_version))
		return;
	free(c->version);
	c->version = x_strdup(m->resource_version);
}

static int take_deleted(struct informer_copy *c, const void *object)
{
	CLEANUP(free_charp) char *key = kube_meta_key(object);
	struct kube_stored *e = kube_store_get(&c->store, key);

	see_version(c, object);
	if (e)
		drop(c, e);
	return 0;
}

static int apply(struct informer_copy *c, struct watch_event *w, struct error **err)
{
	switch (w->type) {
	case WATCH_PUT:
		if (!w->object)
			return err_set(err, ERR_INVALID_ARGUMENT, "the event has no object");
		see_version(c, w->object);
		put(c, TAKE_PTR(w->object));
		return 0;
	case WATCH_DELETED:
		if (!w->object)
			return err_set(err, ERR_INVALID_ARGUMENT, "the event has no object");
		return take_deleted(c, w->object);
	case WATCH_BOOKMARK:
		see_version(c, &w->notice.meta);
		return 0;
	case WATCH_ERROR:
		return err_set(err, str_eq(w->notice.code, "410") ? ERR_RANGE : ERR_UNAVAILABLE, "%s",
			w->notice.message ? w->notice.message : "the server sent an error without a message");
	case WATCH_OTHER:
		break;
	}
	return 0;
}

/* Return: whether the watch goes on without the object in @line, which is not read because of @why. */
static bool skip_watched(
	struct informer_copy *c, const struct watch_event *w, struct span line, const struct error *why)
{
	CLEANUP(kube_names_done) struct kube_meta names = {0};

	if ((w->type != WATCH_PUT && w->type != WATCH_DELETED) || w->object ||
		!kube_object_read_names(line, "object", &names))
		return false;
	if (str_empty(names.name) && w->type == WATCH_DELETED)
		return false;
	see_version(c, &names);
	if (w->type == WATCH_PUT)
		skip_object(c, &names, why);
	else
		take_deleted(c, &names);
	return true;
}

static int read_event_of(struct informer_copy *c, struct span line, struct watch_event *w, struct error **err)
{
	CLEANUP(error_freep) struct error *why = NULL;
	int rv = c->lines.line.overflowed
			 ? err_set(&why, ERR_INVALID_ARGUMENT, "the event is larger than %u bytes",
				   KUBE_MAX_OBJECT_BYTES)
			 : read_event(line, w, &why);

	if (rv == 0)
		return apply(c, w, err);
	if (skip_watched(c, w, line, why))
		return 0;
	*err = TAKE_PTR(why);
	return -1;
}

/* An event that cannot be read may be any change of any object: afterwards the copy is not reliable until the
 * objects are listed again. */
static bool take_line(void *user, struct span line)
{
	struct informer_copy *c = user;
	struct watch_event w = {.copy = c};
	int rv = type_of(line, &w.type, &c->fault);

	if (rv == 0)
		rv = read_event_of(c, line, &w, &c->fault);
	c->is_unsure = rv < 0 && w.type != WATCH_ERROR;
	c->got_line = c->got_line || rv == 0;
	kube_object_free(c->kind, w.object);
	kube_fields_done(notice_fields, &w.notice);
	return rv == 0;
}

bool informer_copy_take_watch(struct informer_copy *c, struct span data)
{
	return kube_watch_splitter_feed(&c->lines, data, take_line, c);
}
