/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/list_page.h"

#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define PAGE_OBJECTS 200

void kube_list_page_init(struct kube_list_page *p, const struct kube_kind *kind,
	void (*take)(void *user, void *object), void *user)
{
	*p = (struct kube_list_page){.kind = kind, .take = take, .user = user, .items = KUBE_LIST_SPLITTER};
}

void kube_list_page_reset(struct kube_list_page *p)
{
	kube_list_splitter_done(&p->items);
	p->items = KUBE_LIST_SPLITTER;
}

struct feed {
	struct kube_list_page *page;
	struct error *fault;
};

/* Return: whether the list goes on without @item. */
static bool skip_item(struct feed *f, struct span item)
{
	CLEANUP(kube_names_done) struct kube_meta names = {0};

	if (!f->page->skip || !kube_object_read_names(item, /* object= */ NULL, &names))
		return false;
	f->page->skip(f->page->user, &names, f->fault);
	error_clear(&f->fault);
	return true;
}

static void *read_item(struct feed *f, struct span item)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(item);

	if (!f->page->items.item.overflowed)
		return kube_object_read(f->page->kind, r, &f->fault);
	err_set(&f->fault, ERR_INVALID_ARGUMENT, "an object is larger than %u bytes", KUBE_MAX_OBJECT_BYTES);
	return NULL;
}

static bool take_item(void *user, struct span item)
{
	struct feed *f = user;
	void *object = read_item(f, item);

	if (!object)
		return skip_item(f, item);
	f->page->take(f->page->user, object);
	return true;
}

int kube_list_page_feed(struct kube_list_page *p, struct span data, struct error **err)
{
	struct feed f = {.page = p};

	if (kube_list_splitter_feed(&p->items, data, take_item, &f))
		return 0;
	if (!f.fault)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the list without its objects is larger than %u bytes", KUBE_MAX_ENVELOPE_BYTES);
	*err = f.fault;
	return -1;
}

struct list_meta {
	char *version;
	char *next_page;
};

static const struct kube_field list_meta_fields[] = {
	KUBE_FIELD("resourceVersion", KUBE_TEXT, struct list_meta, version),
	KUBE_FIELD("continue", KUBE_TEXT, struct list_meta, next_page),
	KUBE_FIELDS_END,
};

static const struct kube_field list_fields[] = {
	KUBE_OBJECT("metadata", list_meta_fields),
	KUBE_FIELDS_END,
};

int kube_list_page_end(
	const struct kube_list_page *p, char **ret_version, char **ret_next, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(buf_span(&p->items.envelope));
	struct list_meta m = {0};
	struct json_event end;
	int rv = 0;

	if (kube_fields_read(r, list_fields, &m, err) < 0 || json_expect(r, JSON_END, &end, err) < 0)
		rv = -1;
	else if (str_empty(m.version))
		rv = err_set(err, ERR_INVALID_ARGUMENT, "the list has no resourceVersion");
	if (rv == 0) {
		*ret_version = TAKE_PTR(m.version);
		*ret_next = str_empty(m.next_page) ? NULL : TAKE_PTR(m.next_page);
	}
	kube_fields_done(list_fields, &m);
	return rv;
}

/* RFC 3986 section 2.3; tokens and selectors hold "=" and "/". */
void kube_query_value(struct buf *path, const char *text)
{
	for (const char *p = text; *p; p++) {
		if ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
			strchr("-._~", *p))
			buf_addc(path, *p);
		else
			buf_addf(path, "%%%02X", (unsigned char)*p);
	}
}

static void add_selector(struct buf *path, const char *key, const char *selector)
{
	if (!selector)
		return;
	buf_addf(path, "%s=", key);
	kube_query_value(path, selector);
	buf_adds(path, "&");
}

void kube_query_begin(const struct kube_kind *kind, struct buf *path)
{
	buf_adds(path, kind->path);
	buf_adds(path, "?");
	add_selector(path, "labelSelector", kind->label_selector);
	add_selector(path, "fieldSelector", kind->field_selector);
}

void kube_list_page_path(const struct kube_kind *kind, const char *token, struct buf *path)
{
	kube_query_begin(kind, path);
	buf_addf(path, "limit=%u", PAGE_OBJECTS);
	if (token) {
		buf_adds(path, "&continue=");
		kube_query_value(path, token);
	}
}

const char *kube_list_page_accept(const struct kube_kind *kind)
{
	return kind->metadata_only ? "application/json;as=PartialObjectMetadataList;" KUBE_METADATA_ACCEPT
				   : NULL;
}
