/* SPDX-License-Identifier: Apache-2.0 */
/*
 * condition_list.h - the conditions in the status of our custom resources. Threads: one owner at a time.
 * Source: Kubernetes API conventions, "Typical status properties".
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json.h"
#include "kube/fields.h"

struct pmem_condition {
	char *type;
	char *status; /* "True", "False" or "Unknown" */
	char *reason;
	char *message;
	char *since; /* lastTransitionTime, RFC 3339 */
};

struct pmem_conditions {
	struct pmem_condition *list;
	size_t n;
};

/* The value of a condition; the strings are borrowed. */
struct pmem_verdict {
	const char *status;
	const char *reason;
	const char *message;
};

/* The fields of one condition, for the table of an object's status: PMEM_CONDITIONS(struct, member). */
extern const struct kube_field pmem_condition_fields[];

#define PMEM_CONDITIONS(struct_, member)                                                                     \
	KUBE_FIELD("conditions", KUBE_ARRAY, struct_, member.list, .extent = offsetof(struct_, member.n),    \
		.fields = pmem_condition_fields, .item_size = sizeof(struct pmem_condition))

/** pmem_condition_find() - find the first condition of @type, borrowed. An API server refuses several of one
 * type (x-kubernetes-list-map-keys of the definitions). Return: NULL: there is none. */
const struct pmem_condition *pmem_condition_find(const struct pmem_conditions *c, const char *type);

/** pmem_condition_add() - append a condition; all strings are copied. @since: RFC 3339 */
void pmem_condition_add(
	struct pmem_conditions *c, const char *type, const struct pmem_verdict *verdict, const char *since);

/** pmem_condition_set() - append the condition @type with @verdict. The time of its last transition is that
 * in
 * @before as long as the status is the same there, and now otherwise. @before: NULL: nothing is known */
void pmem_condition_set(struct pmem_conditions *c, const struct pmem_conditions *before, const char *type,
	const struct pmem_verdict *verdict);

/** pmem_conditions_copy() - append copies of all conditions of @from to @to. */
void pmem_conditions_copy(struct pmem_conditions *to, const struct pmem_conditions *from);

/** pmem_conditions_done() - release all conditions of @c, which has none then. */
void pmem_conditions_done(struct pmem_conditions *c);

/** pmem_conditions_equal() - whether both say the same, as pmem_condition_find() finds it; the times
 * follow from the rest and do not count. */
bool pmem_conditions_equal(const struct pmem_conditions *a, const struct pmem_conditions *b);

/** pmem_conditions_write() - add the member "conditions" to the object that is open in @w. */
void pmem_conditions_write(struct json_writer *w, const struct pmem_conditions *c);
