/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/inject/sweep.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/inject/held.h"

/* "Not now": none of them makes kubelet or the provisioner give up a volume. */
#define RETRYABLE                                                                                            \
	(1U << ERR_INTERNAL | 1U << ERR_UNAVAILABLE | 1U << ERR_EXHAUSTED | 1U << ERR_DEADLINE |             \
		1U << ERR_ABORTED)

#define BRIEF_STEP 5

struct tally {
	unsigned points;
	unsigned failed;
	unsigned went_on;
};

static char *copy(const char *text)
{
	return text ? x_strdup(text) : NULL;
}

static bool names_cause(const struct error *err, const struct inject_result *r)
{
	switch (r->kind) {
	case INJECT_SYSTEM:
		return err->os_errno == r->how || strstr(err->msg, strerror(r->how));
	case INJECT_BUFFER:
		return strstr(err->msg, "bytes") || strstr(err->msg, "too l");
	case INJECT_OP:
		break;
	}
	return strstr(err->msg, r->hit);
}

static char *judge_error(
	const struct sweep *s, enum inject_mode mode, const struct inject_result *r, const struct error *err)
{
	if (!err)
		return x_strdup("failed without an error");
	if (str_empty(err->msg) || strchr(err->msg, '\n'))
		return x_asprintf("message \"%s\" is not one line", err->msg);
	if (!((RETRYABLE | s->codes) >> err->code & 1))
		return x_asprintf("code %s: %s", err_code_name(err->code), err->msg);
	if (mode == INJECT_LASTING)
		return NULL;
	if (inject_must_go_on(r->how))
		return x_asprintf("did not go on: %s", err->msg);
	if (!names_cause(err, r))
		return x_asprintf("cause not named: %s", err->msg);
	return NULL;
}

/* Return: the first line of @now that is not in @before, caller frees; NULL: there is none. */
static char *find_more(const char *before, const char *now)
{
	while (*now) {
		size_t n = strcspn(now, "\n") + 1;
		CLEANUP(free_charp) char *line = x_strndup(now, n);

		if (!strstr(before, line))
			return TAKE_PTR(line);
		now += n;
	}
	return NULL;
}

static char *judge_held(const char *when, const char *before, const char *now)
{
	CLEANUP(free_charp) char *more = find_more(before, now);

	return more ? x_asprintf("%s, too much: %s", when, more) : NULL;
}

/* Return: what is wrong, or NULL. Resources that the failed call has left behind are found here; whether it
 * may have removed some is decided by the sweep's own function wrong_after_failure(). */
static char *judge_failure(const struct sweep *s, enum inject_mode mode, const struct inject_result *r,
	const char *before, const struct error *err)
{
	bool lasting = mode == INJECT_LASTING;
	CLEANUP(free_charp) char *now = lasting ? held_own() : held_now(s->folder);
	char *wrong = judge_error(s, mode, r, err);

	if (!wrong && !s->keeps)
		wrong = judge_held("held after the failure", before, now);
	if (!wrong && !lasting && s->wrong_after_failure)
		wrong = copy(s->wrong_after_failure());
	return wrong;
}

static char *try_again(const struct sweep *s)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (s->call(&err) == 0)
		return NULL;
	return x_asprintf("again: %s", err ? err->msg : "failed without an error");
}

/* Makes the call once with @plan. Return: what is wrong, or NULL. */
static char *try(
	const struct sweep *s, const struct inject_plan *plan, struct inject_result *ret, bool *ret_failed)
{
	bool lasting = plan->mode == INJECT_LASTING;
	CLEANUP(error_freep) struct error *err = NULL;
	char *wrong = NULL;

	CLEANUP(free_charp) char *start = held_now(s->folder);
	if (s->prepare)
		s->prepare();
	CLEANUP(free_charp) char *before = lasting ? held_own() : held_now(s->folder);

	inject_arm(plan);
	int rc = s->call(&err);
	*ret = inject_disarm();
	*ret_failed = rc < 0;
	if (rc < 0 && !ret->hit)
		return x_asprintf("fails by itself: %s", err ? err->msg : "without an error");
	if (rc == 0 && err)
		return x_asprintf("success with an error: %s", err->msg);
	if (rc < 0)
		wrong = judge_failure(s, plan->mode, ret, before, err);
	if (!wrong && rc < 0)
		wrong = try_again(s);
	if (!wrong && s->wrong_at_end)
		wrong = copy(s->wrong_at_end());
	if (wrong)
		return wrong;
	if (s->undo)
		s->undo();

	CLEANUP(free_charp) char *end = held_now(s->folder);
	wrong = judge_held("held at the end", start, end);
	return wrong ? wrong : judge_held("held at the start, but not at the end", end, start);
}

static char *describe(const struct sweep *s, const struct inject_plan *plan, const struct inject_result *r,
	const char *wrong)
{
	const char *how = r->kind != INJECT_SYSTEM ? "refused"
			  : r->how == INJECT_SHORT ? "short"
						   : strerror(r->how);

	if (!r->hit)
		return x_asprintf("%s: %s", s->name, wrong);
	return x_asprintf("%s: call %u (%s: %s%s): %s", s->name, plan->n, r->hit, how,
		plan->mode == INJECT_LASTING ? ", lasting" : "", wrong);
}

/* Tries the n-th call in each of its ways to fail. */
static char *try_point(const struct sweep *s, struct inject_plan plan, bool *ret_hit, struct tally *t)
{
	struct inject_result r = {0};
	unsigned way = s->brief ? plan.n : 0;
	unsigned ways = 1;

	for (unsigned i = 0; i < ways; i++) {
		bool failed = false;

		plan.way = way + i;
		CLEANUP(free_charp) char *wrong = try(s, &plan, &r, &failed);
		if (wrong)
			return describe(s, &plan, &r, wrong);
		*ret_hit = r.hit != NULL;
		if (!r.hit)
			return NULL;
		ways = s->brief ? 1 : r.ways;
		t->failed += failed;
		t->went_on += !failed;
	}
	t->points++;
	return NULL;
}

static char *try_all(const struct sweep *s, enum inject_mode mode, struct tally *t)
{
	struct inject_plan plan = {.mode = mode, .kinds = s->kinds ? s->kinds : INJECT_ALL};
	unsigned step = s->brief && mode == INJECT_LASTING ? BRIEF_STEP : 1;
	bool hit = true;
	char *wrong = NULL;

	for (plan.n = 1; !wrong && hit; plan.n += step)
		wrong = try_point(s, plan, &hit, t);
	return wrong;
}

char *sweep_find(const struct sweep *s)
{
	struct inject_plan count = {.mode = INJECT_NEVER, .kinds = s->kinds ? s->kinds : INJECT_ALL};
	struct inject_result all = {0};
	struct tally once = {0};
	struct tally lasting = {0};
	bool failed;
	CLEANUP(free_charp) char *at_all = try(s, &count, &all, &failed);

	if (at_all)
		return describe(s, &count, &all, at_all);
	if (all.points < s->min_points)
		return x_asprintf("%s: %u calls, expected at least %u", s->name, all.points, s->min_points);
	char *wrong = try_all(s, INJECT_ONCE, &once);
	if (!wrong && !s->once)
		wrong = try_all(s, INJECT_LASTING, &lasting);
	if (!wrong)
		printf("injected %s: %u calls; once: %u failures, %u went on; lasting: %u failures, %u went "
		       "on\n",
			s->name, once.points, once.failed, once.went_on, lasting.failed, lasting.went_on);
	return wrong;
}

void sweep_run(const struct sweep *s)
{
	CLEANUP(free_charp) char *wrong = sweep_find(s);

	ck_assert_msg(!wrong, "%s", wrong);
}
