#include "net/log_quota.h"

#include "base/clock.h"

bool log_quota_take(struct log_quota *q, unsigned max, uint64_t now_ns, uint64_t *ret_missed)
{
	*ret_missed = 0;
	if (now_ns - q->since_ns >= NS_PER_S) {
		if (q->n > max)
			*ret_missed = q->n - max;
		q->since_ns = now_ns;
		q->n = 0;
	}
	return ++q->n <= max;
}
