/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "net/h2_link.h"

static struct span keep(struct arena *a, struct span s)
{
	uint8_t *copy = arena_alloc(a, s.n);

	if (s.n > 0)
		memcpy(copy, s.p, s.n);
	return (struct span){copy, s.n};
}

struct h2_request *h2_request_new(struct h2_channel *c, const struct h2_header *headers, size_t n,
	struct span body, const struct h2_request_events *events, void *user)
{
	struct h2_request *r = x_calloc(1, sizeof(*r));

	r->channel = c;
	r->payload = arena_new(0);
	r->headers = arena_alloc(r->payload, n * sizeof(*headers));
	r->n = n;
	for (size_t i = 0; i < n; i++) {
		r->headers[i].name = keep(r->payload, headers[i].name);
		r->headers[i].value = keep(r->payload, headers[i].value);
	}
	r->body = keep(r->payload, body);
	r->events = events;
	r->user = user;
	return r;
}

void h2_request_free(struct h2_request *r)
{
	arena_free(r->payload);
	error_free(r->error);
	free(r);
}

void h2_request_unlist(struct h2_request *r)
{
	struct h2_request **link;

	if (!r->list)
		return;
	link = &r->list->first;
	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	r->next = NULL;
	r->list = NULL;
}

static void insert(struct h2_request *r, struct h2_requests *list, struct h2_request **link)
{
	r->next = *link;
	*link = r;
	r->list = list;
}

void h2_request_append(struct h2_request *r, struct h2_requests *list)
{
	struct h2_request **link = &list->first;

	h2_request_unlist(r);
	while (*link)
		link = &(*link)->next;
	insert(r, list, link);
}

void h2_request_prepend(struct h2_request *r, struct h2_requests *list)
{
	h2_request_unlist(r);
	insert(r, list, &list->first);
}

void h2_request_fail(struct h2_request *r, enum err_code code, const char *fmt, ...)
{
	CLEANUP(free_charp) char *msg = NULL;
	va_list ap;

	if (r->error)
		return;
	va_start(ap, fmt);
	msg = x_vasprintf(fmt, ap);
	va_end(ap);
	err_set(&r->error, code, "%s", msg);
}
