/* SPDX-License-Identifier: Apache-2.0 */
#include "base/durable_step.h"

#ifdef PMEM_STEPS
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

#define POINTS_MAX 512

/* The step at which the process is to stop or to be killed. */
struct place {
	char *point;  /* NULL: any */
	uint64_t hit; /* of the point, or of all if there is none; 0: nowhere */
};

struct count {
	const char *point;
	uint64_t hits;
};

/* This state is process-wide: the durable steps of all threads are counted together. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct place stop_at, kill_at;
static int trace_fd = -1;
static struct count counts[POINTS_MAX];
static uint64_t number;

/* A test that asks for something else than it gets is worthless. */
static void give_up(const char *variable)
{
	fprintf(stderr, "%s: not understood\n", variable);
	abort();
}

static void read_place(const char *variable, bool may_be_number, struct place *ret)
{
	const char *text = getenv(variable);
	struct error *err = NULL;

	if (!text)
		return;
	if (may_be_number && text[0] >= '0' && text[0] <= '9') {
		if (parse_u64(text, &ret->hit, &err) < 0)
			give_up(variable);
		return;
	}
	const char *colon = strchr(text, ':');
	ret->point = colon ? x_strndup(text, (size_t)(colon - text)) : x_strdup(text);
	ret->hit = 1;
	if (colon && parse_u64(colon + 1, &ret->hit, &err) < 0)
		give_up(variable);
}

static void read_environment(void)
{
	const char *path = getenv("PMEM_STEP_TRACE");

	read_place("PMEM_STOP_AT", /* may_be_number= */ false, &stop_at);
	read_place("PMEM_KILL_AT", /* may_be_number= */ true, &kill_at);
	if (path)
		trace_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (path && trace_fd < 0)
		give_up("PMEM_STEP_TRACE");
}

static uint64_t count_hit(const char *point)
{
	size_t i = 0;

	while (i < POINTS_MAX && counts[i].point && !str_eq(counts[i].point, point))
		i++;
	if (i == POINTS_MAX)
		give_up(point);
	counts[i].point = point;
	return ++counts[i].hits;
}

static bool is_at(const struct place *p, const char *point, uint64_t hit)
{
	return p->point ? str_eq(p->point, point) && hit == p->hit : number == p->hit;
}

static void reached_locked(const char *point)
{
	uint64_t hit = count_hit(point);

	number++;
	if (trace_fd >= 0 && dprintf(trace_fd, "%ju %s %ju\n", (uintmax_t)number, point, (uintmax_t)hit) < 0)
		give_up("PMEM_STEP_TRACE");
	if (is_at(&kill_at, point, hit))
		raise(SIGKILL);
	if (is_at(&stop_at, point, hit))
		raise(SIGSTOP);
}

void step_reached(const char *point)
{
	int os_errno = errno;

	pthread_once(&once, read_environment);
	pthread_mutex_lock(&mutex);
	reached_locked(point);
	pthread_mutex_unlock(&mutex);
	errno = os_errno;
}
#endif
