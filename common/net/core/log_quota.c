/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/log_quota.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

struct log_quota {
	struct log_quota_config config;
	struct loop_timer *timer; /* runs while lines are missing whose number was not logged yet */
	uint64_t since_ns;        /* of the current second */
	uint64_t n;               /* lines in it, shown or not */
};

/* The current second ends. */
static void end_second(struct log_quota *q)
{
	uint64_t missed = q->n > q->config.max ? q->n - q->config.max : 0;

	q->n = 0;
	loop_timer_stop(q->timer);
	if (missed == 0)
		return;
	if (q->config.server)
		log_warn(q->config.missed_msg, F_STR("server", q->config.server), F_U64("n", missed));
	else
		log_warn(q->config.missed_msg, F_U64("n", missed));
}

static void second_is_over(void *user)
{
	end_second(user);
}

struct log_quota *log_quota_new(const struct log_quota_config *config)
{
	struct log_quota *q = x_calloc(1, sizeof(*q));

	q->config = *config;
	q->timer = loop_timer_new(config->loop, second_is_over, q);
	loop_timer_detach(q->timer);
	return q;
}

void log_quota_free(struct log_quota *q)
{
	if (!q)
		return;
	end_second(q);
	loop_timer_close(q->timer);
	free(q);
}

bool log_quota_take(struct log_quota *q, uint64_t now_ns)
{
	if (now_ns - q->since_ns >= NS_PER_S) {
		end_second(q);
		q->since_ns = now_ns;
	}
	if (++q->n == q->config.max + 1)
		loop_timer_set(q->timer, NS_PER_S / NS_PER_MS, /* repeat_ms= */ 0);
	return q->n <= q->config.max;
}
