/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2/h2_headers.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_FIELDS 16
#define FIRST_BYTES  480

void h2_fields_done(struct h2_fields *f)
{
	free(f->items);
	*f = (struct h2_fields){0};
}

static struct span keep(struct h2_fields *f, struct span s)
{
	uint8_t *place = f->bytes + f->used;

	if (s.n > 0)
		memcpy(place, s.p, s.n);
	f->used += s.n;
	return (struct span){place, s.n};
}

static void push(struct h2_fields *f, struct span name, struct span value)
{
	struct h2_header *item = &f->items[f->n++];

	item->name = keep(f, name);
	item->value = keep(f, value);
}

/* Room for one more field of @bytes bytes. */
static void grow(struct h2_fields *f, size_t bytes)
{
	struct h2_fields g = {.max_n = f->max_n ? 2 * f->max_n : FIRST_FIELDS,
		.max_bytes = f->max_bytes ? 2 * f->max_bytes : FIRST_BYTES,
		.list_bytes = f->list_bytes};

	if (g.max_bytes < f->used + bytes)
		g.max_bytes = f->used + bytes;
	g.items = x_malloc(g.max_n * sizeof(*g.items) + g.max_bytes);
	g.bytes = (uint8_t *)(g.items + g.max_n);
	for (size_t i = 0; i < f->n; i++)
		push(&g, f->items[i].name, f->items[i].value);
	free(f->items);
	*f = g;
}

void h2_fields_add(struct h2_fields *f, struct span name, struct span value)
{
	size_t room = LIMIT_HEADER_BYTES - f->list_bytes;

	if (f->too_big || room < H2_FIELD_OVERHEAD || name.n > room - H2_FIELD_OVERHEAD ||
		value.n > room - H2_FIELD_OVERHEAD - name.n) {
		f->too_big = true;
		return;
	}
	f->list_bytes += name.n + value.n + H2_FIELD_OVERHEAD;
	if (f->n == f->max_n || name.n + value.n > f->max_bytes - f->used)
		grow(f, name.n + value.n);
	push(f, name, value);
}

/* RFC 9110 section 5.6.2 (token) without upper case, RFC 9113 section 8.2.1 */
static bool is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c != 0 && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_name(struct span name)
{
	for (size_t i = 0; i < name.n; i++) {
		if (!is_name_byte(name.p[i]))
			return false;
	}
	return name.n > 0;
}

static bool is_value(struct span value)
{
	for (size_t i = 0; i < value.n; i++) {
		if (value.p[i] == '\0' || value.p[i] == '\r' || value.p[i] == '\n')
			return false;
	}
	return true;
}

/* RFC 9113 section 8.2.2 */
static bool is_connection_header(const struct h2_header *h)
{
	static const char *const names[] = {
		"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (span_eq(h->name, names[i]))
			return true;
	}
	return span_eq(h->name, "te") && !span_eq(h->value, "trailers");
}

static bool is_pseudo(const struct h2_header *h)
{
	return h->name.n > 0 && h->name.p[0] == ':';
}

static const char *regular_fault(const struct h2_header *h)
{
	if (is_pseudo(h))
		return "pseudo header in the wrong place";
	if (!is_name(h->name))
		return "invalid header name";
	if (is_connection_header(h))
		return "connection header";
	return NULL;
}

struct pseudo_count {
	unsigned method, scheme, path, authority;
};

static const char *pseudo_fault(const struct h2_header *h, struct pseudo_count *seen)
{
	unsigned *count;

	if (span_eq(h->name, ":method"))
		count = &seen->method;
	else if (span_eq(h->name, ":scheme"))
		count = &seen->scheme;
	else if (span_eq(h->name, ":path"))
		count = &seen->path;
	else if (span_eq(h->name, ":authority"))
		count = &seen->authority;
	else
		return "unknown pseudo header";
	if (++*count > 1)
		return "pseudo header twice";
	if (count == &seen->path && (h->value.n == 0 || h->value.p[0] != '/'))
		return ":path does not begin with /";
	return NULL;
}

const char *h2_fields_request_fault(const struct h2_fields *f)
{
	struct pseudo_count seen = {0};
	bool in_pseudo = true;

	for (size_t i = 0; i < f->n; i++) {
		const struct h2_header *h = &f->items[i];
		const char *fault;

		in_pseudo = in_pseudo && is_pseudo(h);
		fault = in_pseudo ? pseudo_fault(h, &seen) : regular_fault(h);
		if (fault)
			return fault;
		if (!is_value(h->value))
			return "invalid header value";
	}
	if (!seen.method || !seen.scheme || !seen.path)
		return ":method, :scheme or :path is missing";
	return NULL;
}

const char *h2_fields_trailer_fault(const struct h2_fields *f)
{
	for (size_t i = 0; i < f->n; i++) {
		const char *fault = regular_fault(&f->items[i]);

		if (fault)
			return fault;
		if (!is_value(f->items[i].value))
			return "invalid header value";
	}
	return NULL;
}
