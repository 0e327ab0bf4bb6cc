/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/shutdown.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

struct shutdown {
	struct shutdown_config config;
	struct loop_stop_signals *signals;
	struct loop_timer *grace; /* runs from the beginning on */
	unsigned parts;           /* that have not ended */
	bool begun;
};

static void grace_is_over(void *user)
{
	const struct shutdown *s = user;

	s->config.overdue(s->config.user);
	/* A thread that is stuck cannot be ended, and the data that it uses cannot be freed: the process
	 * exits without cleanup. */
	_exit(EXIT_FAILURE);
}

static void signalled(void *user)
{
	shutdown_begin(user);
}

int shutdown_new(const struct shutdown_config *config, struct shutdown **ret, struct error **err)
{
	CLEANUP(shutdown_freep) struct shutdown *s = x_calloc(1, sizeof(*s));

	s->config = *config;
	if (loop_on_stop(config->loop, signalled, s, &s->signals, err) < 0)
		return -1;
	s->grace = loop_timer_new(config->loop, grace_is_over, s);
	*ret = TAKE_PTR(s);
	return 0;
}

void shutdown_free(struct shutdown *s)
{
	if (!s)
		return;
	loop_timer_close(s->grace);
	loop_stop_signals_close(s->signals);
	free(s);
}

void shutdown_begin(struct shutdown *s)
{
	if (s->begun)
		return;
	s->begun = true;
	loop_timer_set(s->grace, s->config.grace_ms, /* repeat_ms= */ 0);
	s->config.begin(s->config.user);
}

bool shutdown_has_begun(const struct shutdown *s)
{
	return s->begun;
}

void shutdown_expect(struct shutdown *s, unsigned parts)
{
	s->parts += parts;
}

void shutdown_part_ended(void *user)
{
	struct shutdown *s = user;

	assert(s->parts > 0);
	if (--s->parts == 0)
		loop_stop(s->config.loop);
}
