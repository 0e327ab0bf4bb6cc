/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/look_budget.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/str.h"

void look_budget_done(struct look_budget *b)
{
	for (size_t i = 0; i < LOOK_BUDGET_PARTIES; i++)
		free(TAKE_PTR(b->parties[i].name));
}

/* Return: the party of that name, or else the one that is to be forgotten. */
static struct look_party *find_party(struct look_budget *b, const char *name)
{
	struct look_party *oldest = b->parties;

	for (size_t i = 0; i < LOOK_BUDGET_PARTIES; i++) {
		struct look_party *p = &b->parties[i];

		if (str_eq(p->name, name))
			return p;
		if (p->asked_ns < oldest->asked_ns)
			oldest = p;
	}
	return oldest;
}

bool look_budget_take(struct look_budget *b, const char *party, uint64_t now_ns)
{
	struct look_party *p = find_party(b, party);

	if (!str_eq(p->name, party)) {
		free(p->name);
		p->name = x_strdup(party);
		bucket_init(&p->bucket, b->per_second, b->burst);
	}
	p->asked_ns = now_ns;
	return bucket_take(&p->bucket, now_ns) == 0;
}

void look_budget_give_back(struct look_budget *b, const char *party)
{
	struct look_party *p = find_party(b, party);

	if (str_eq(p->name, party))
		bucket_give_back(&p->bucket);
}
