/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/reply_splitter.h"

#include <string.h>

void kube_watch_splitter_done(struct kube_watch_splitter *l)
{
	buf_done(&l->line);
}

static struct span beginning_if_cut(struct span piece, bool is_cut)
{
	if ((is_cut || piece.n > KUBE_MAX_OBJECT_BYTES) && piece.n > KUBE_NAMES_BYTES)
		piece.n = KUBE_NAMES_BYTES;
	return piece;
}

static bool give_line(struct kube_watch_splitter *l, struct span rest, kube_piece_fn *fn, void *user)
{
	bool more = true;

	if (l->line.len == 0)
		return rest.n == 0 || fn(user, beginning_if_cut(rest, false));
	buf_add(&l->line, rest.p, rest.n);
	more = fn(user, beginning_if_cut(buf_span(&l->line), l->line.overflowed));
	/* The memory of one large object is not kept. */
	buf_done(&l->line);
	return more;
}

bool kube_watch_splitter_feed(struct kube_watch_splitter *l, struct span data, kube_piece_fn *fn, void *user)
{
	while (data.n > 0) {
		const uint8_t *end = memchr(data.p, '\n', data.n);
		size_t n = end ? (size_t)(end - data.p) : data.n;

		if (!end) {
			buf_add(&l->line, data.p, n);
			return true;
		}
		if (!give_line(l, (struct span){data.p, n}, fn, user))
			return false;
		data.p += n + 1;
		data.n -= n + 1;
	}
	return true;
}

void kube_list_splitter_done(struct kube_list_splitter *i)
{
	buf_done(&i->envelope);
	buf_done(&i->item);
	buf_done(&i->key);
}

static void see_string(struct kube_list_splitter *i, char c)
{
	if (i->escaped)
		i->escaped = false;
	else if (c == '\\')
		i->escaped = true;
	else if (c == '"')
		i->in_string = false;
	if (i->in_string && i->depth == 1)
		buf_addc(&i->key, c);
}

static void see_open(struct kube_list_splitter *i, char c)
{
	if (i->depth == 1 && i->is_items && c == '[')
		i->in_items = true;
	else if (i->depth == 2 && i->in_items && c == '{')
		i->in_item = true;
	i->is_items = false;
	i->depth++;
}

/* Return: whether an item is complete with @c. */
static bool see(struct kube_list_splitter *i, char c)
{
	if (i->in_string) {
		see_string(i, c);
		return false;
	}
	if (c == '"') {
		i->in_string = true;
		buf_reset(&i->key);
	} else if (c == ':' && i->depth == 1) {
		i->is_items = !i->key.overflowed && span_eq(buf_span(&i->key), "items");
	} else if (c == '{' || c == '[') {
		see_open(i, c);
	} else if ((c == '}' || c == ']') && i->depth > 0) {
		i->depth--;
		if (i->depth == 1)
			i->in_items = false;
		return i->depth == 2 && i->in_item;
	}
	return false;
}

/* Whether @c is a separator between the items of a list. */
static bool is_between(const struct kube_list_splitter *i, char c)
{
	return i->in_items && i->depth == 2 && !i->in_string && (c == ',' || c == ' ' || c == '\n');
}

bool kube_list_splitter_feed(struct kube_list_splitter *i, struct span data, kube_piece_fn *fn, void *user)
{
	for (size_t at = 0; at < data.n; at++) {
		char c = (char)data.p[at];
		bool complete = see(i, c);

		if (i->in_item)
			buf_addc(&i->item, c);
		else if (!is_between(i, c))
			buf_addc(&i->envelope, c);
		if (i->envelope.overflowed)
			return false;
		if (!complete)
			continue;
		i->in_item = false;
		if (!fn(user, beginning_if_cut(buf_span(&i->item), i->item.overflowed)))
			return false;
		buf_reset(&i->item);
	}
	return true;
}
