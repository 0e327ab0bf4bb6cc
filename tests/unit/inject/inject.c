/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/inject/inject.h"

#include <errno.h>
#include <stddef.h>

static struct inject_plan plan;
static struct inject_result result;
static bool armed;

void inject_arm(const struct inject_plan *p)
{
	plan = *p;
	result = (struct inject_result){0};
	armed = true;
}

struct inject_result inject_disarm(void)
{
	armed = false;
	return result;
}

bool inject_has_failed(void)
{
	return armed && plan.mode == INJECT_LASTING && result.hit;
}

bool inject_must_go_on(int how)
{
	return how == EINTR || how == INJECT_SHORT;
}

static bool is_due(void)
{
	if (plan.mode == INJECT_NEVER)
		return false;
	return result.points == plan.n || (plan.mode == INJECT_LASTING && result.points > plan.n);
}

int inject_way(enum inject_kind kind, const char *name, const int *ways)
{
	unsigned n = 0;

	if (!armed || !(plan.kinds & kind))
		return 0;
	result.points++;
	if (!is_due())
		return 0;
	while (ways[n])
		n++;

	int how = ways[plan.way % n];
	bool first = result.points == plan.n;
	if (first) {
		result.hit = name;
		result.kind = kind;
		result.how = how;
		result.ways = n;
	}
	return !first && inject_must_go_on(how) ? 0 : how;
}
