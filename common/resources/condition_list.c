/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/condition_list.h"

#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/object.h"

const struct kube_field pmem_condition_fields[] = {
	KUBE_FIELD("type", KUBE_TEXT, struct pmem_condition, type),
	KUBE_FIELD("status", KUBE_TEXT, struct pmem_condition, status),
	KUBE_FIELD("reason", KUBE_TEXT, struct pmem_condition, reason),
	KUBE_FIELD("message", KUBE_TEXT, struct pmem_condition, message),
	KUBE_FIELD("lastTransitionTime", KUBE_TEXT, struct pmem_condition, since),
	KUBE_FIELDS_END,
};

const struct pmem_condition *pmem_condition_find(const struct pmem_conditions *c, const char *type)
{
	for (size_t i = 0; i < c->n; i++) {
		if (str_eq(c->list[i].type, type))
			return &c->list[i];
	}
	return NULL;
}

void pmem_condition_add(
	struct pmem_conditions *c, const char *type, const struct pmem_verdict *verdict, const char *since)
{
	c->list = x_realloc(c->list, c->n + 1, sizeof(*c->list));
	c->list[c->n++] = (struct pmem_condition){.type = x_strdup(type),
		.status = x_strdup(verdict->status),
		.reason = x_strdup(verdict->reason),
		.message = x_strdup(verdict->message),
		.since = x_strdup(since)};
}

void pmem_condition_set(struct pmem_conditions *c, const struct pmem_conditions *before, const char *type,
	const struct pmem_verdict *verdict)
{
	const struct pmem_condition *old = before ? pmem_condition_find(before, type) : NULL;
	bool stays = old && old->since && str_eq(old->status, verdict->status);
	char now[KUBE_SECONDS_LEN + 1];

	kube_time_format((int64_t)time(NULL), now);
	pmem_condition_add(c, type, verdict, stays ? old->since : now);
}

void pmem_conditions_copy(struct pmem_conditions *to, const struct pmem_conditions *from)
{
	for (size_t i = 0; i < from->n; i++) {
		const struct pmem_condition *c = &from->list[i];
		const struct pmem_verdict verdict = {c->status, c->reason, c->message};

		pmem_condition_add(to, c->type, &verdict, c->since);
	}
}

void pmem_conditions_done(struct pmem_conditions *c)
{
	for (size_t i = 0; i < c->n; i++)
		kube_fields_done(pmem_condition_fields, &c->list[i]);
	free(TAKE_PTR(c->list));
	c->n = 0;
}

/* Return: whether @b has each condition of @a. */
static bool contains(const struct pmem_conditions *b, const struct pmem_conditions *a)
{
	for (size_t i = 0; i < a->n; i++) {
		const struct pmem_condition *x = pmem_condition_find(a, a->list[i].type);
		const struct pmem_condition *y = pmem_condition_find(b, a->list[i].type);

		if (!x || !y || !str_eq(x->status, y->status) || !str_eq(x->reason, y->reason) ||
			!str_eq(x->message, y->message))
			return false;
	}
	return true;
}

bool pmem_conditions_equal(const struct pmem_conditions *a, const struct pmem_conditions *b)
{
	return a->n == b->n && contains(a, b) && contains(b, a);
}

static void add_condition(struct json_writer *w, const struct pmem_condition *c)
{
	json_object(w);
	json_key_str(w, "type", c->type);
	json_key_str(w, "status", c->status);
	json_key_str(w, "reason", c->reason);
	json_key_str(w, "message", c->message);
	json_key_str(w, "lastTransitionTime", c->since);
	json_object_end(w);
}

void pmem_conditions_write(struct json_writer *w, const struct pmem_conditions *c)
{
	json_key(w, "conditions");
	json_array(w);
	for (size_t i = 0; i < c->n; i++)
		add_condition(w, &c->list[i]);
	json_array_end(w);
}
