/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/node_terms.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"

#define SELECTOR_MAX (64 << 10) /* a flag is shorter */

static int read_label(void *user, const char *key, struct json_reader *r, struct error **err)
{
	struct node_term *ret = user;
	struct json_event e;

	if (json_next(r, &e, err) < 0)
		return -1;
	if (e.type == JSON_STRING)
		strmap_set(&ret->labels, key, e.text);
	else if (e.type == JSON_NULL)
		strv_add(&ret->without, key);
	else
		return err_set(
			err, ERR_INVALID_ARGUMENT, "the label \"%s\" is neither a string nor null", key);
	return 0;
}

/* The object has begun. */
static int read_term(struct json_reader *r, struct node_terms *ret, struct error **err)
{
	ret->terms = x_realloc(ret->terms, ret->n + 1, sizeof(*ret->terms));
	ret->terms[ret->n] = (struct node_term){0};
	return json_read_members(r, read_label, &ret->terms[ret->n++], err);
}

static int read_list(struct json_reader *r, struct node_terms *ret, struct error **err)
{
	struct json_event e;

	for (;;) {
		if (json_next(r, &e, err) < 0)
			return -1;
		if (e.type == JSON_ARRAY_END)
			return 0;
		if (e.type != JSON_OBJECT)
			return err_set(
				err, ERR_INVALID_ARGUMENT, "the list has an element that is no object");
		if (read_term(r, ret, err) < 0)
			return -1;
	}
}

static int read_terms(struct json_reader *r, struct node_terms *ret, struct error **err)
{
	struct json_event e;

	if (json_next(r, &e, err) < 0)
		return -1;
	if (e.type == JSON_OBJECT)
		return read_term(r, ret, err);
	if (e.type == JSON_ARRAY)
		return read_list(r, ret, err);
	return err_set(err, ERR_INVALID_ARGUMENT, "neither an object of labels nor a list of objects");
}

int node_terms_parse(const char *json, struct node_terms *ret, struct error **err)
{
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(span_of(json));
	CLEANUP(node_terms_done) struct node_terms t = {0};
	struct json_event e;

	if (read_terms(r, &t, err) < 0 || json_expect(r, JSON_END, &e, err) < 0)
		return -1;
	*ret = t;
	t = (struct node_terms){0};
	return 0;
}

static bool term_matches(const struct node_term *term, const struct kube_meta *meta)
{
	for (size_t i = 0; i < term->labels.n; i++)
		if (!str_eq(kube_meta_label(meta, term->labels.entries[i].key),
			    term->labels.entries[i].value))
			return false;
	for (char **key = term->without; key && *key; key++)
		if (kube_meta_label(meta, *key))
			return false;
	return term->labels.n > 0 || term->without;
}

bool node_terms_match(const struct node_terms *t, const struct kube_meta *meta)
{
	for (size_t i = 0; i < t->n; i++)
		if (term_matches(&t->terms[i], meta))
			return true;
	return false;
}

char *node_term_selector(const struct node_term *term)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(SELECTOR_MAX);

	for (size_t i = 0; i < term->labels.n; i++)
		buf_addf(&out, "%s%s=%s", out.len > 0 ? "," : "", term->labels.entries[i].key,
			term->labels.entries[i].value);
	for (char **key = term->without; key && *key; key++)
		buf_addf(&out, "%s!%s", out.len > 0 ? "," : "", *key);
	return x_strdup(buf_str(&out));
}

void node_terms_done(struct node_terms *t)
{
	for (size_t i = 0; i < t->n; i++) {
		strmap_done(&t->terms[i].labels);
		strv_free(t->terms[i].without);
	}
	free(t->terms);
	*t = (struct node_terms){0};
}
