/* SPDX-License-Identifier: Apache-2.0 */
/* Who has to go: by the time that a peer takes, or to make room. */
#include "base/clock.h"
#include "base/log.h"
#include "net/acceptor_private.h"
#include "net/limits.h"

/* Longer than any limit on waiting. */
#define FAR_NS (3600 * NS_PER_S)

/* What keeps @c from staying, or NULL. */
static const char *overdue(const struct accepted *c, uint64_t now_ns)
{
	const struct acceptor *a = c->acceptor;
	uint64_t age_ms = (now_ns - c->since_ns) / NS_PER_MS;
	uint64_t stalled_ns = conn_stalled_since_ns(c->conn);

	if (!c->open && age_ms > LIMIT_HANDSHAKE_MS)
		return "TLS handshake takes too long";
	if (c->open && accepted_is_new(c) && age_ms > LIMIT_FIRST_REQUEST_MS)
		return "no valid request within the time limit";
	if (a->draining && (now_ns - a->draining_since_ns) / NS_PER_MS >= LIMIT_DRAIN_MS &&
		!a->config.server->is_running(c))
		return "peer does not let the server end";
	if (stalled_ns && (now_ns - stalled_ns) / NS_PER_MS > LIMIT_STALLED_MS)
		return "peer does not read its replies";
	return NULL;
}

static void end_expired(struct accepted *c)
{
	c->acceptor->config.server->drain(c);
	if (conn_flush(c->conn))
		log_debug("connection closed in spite of what it has to send");
	accepted_close(c);
}

void acceptor_sweep(void *user)
{
	struct acceptor *a = user;
	uint64_t now_ns = clock_ns();
	struct accepted *next;

	for (struct accepted *c = a->first; c; c = next) {
		const char *reason = overdue(c, now_ns);

		next = c->next;
		if (reason) {
			acceptor_log(a, c->conn, reason, NULL);
			accepted_close(c);
		} else if (a->config.server->has_expired(c, now_ns)) {
			end_expired(c);
		}
	}
}

/* The oldest known connection that would expire if nothing happened on it from now on, or NULL. Whose last
 * request was just now may be sending the next one, which he could not repeat elsewhere. */
static struct accepted *find_idle(const struct acceptor *a, uint64_t now_ns)
{
	for (struct accepted *c = a->first; c; c = c->next) {
		if (!accepted_is_new(c) && now_ns - c->asked_ns >= LIMIT_REUSE_MS * NS_PER_MS &&
			a->config.server->has_expired(c, now_ns + FAR_NS))
			return c;
	}
	return NULL;
}

/* Who is dropped while we compute for him, or in a crowd that gets on one by one, comes again. */
static uint64_t grace_ms(const struct accepted *c, uint64_t now_ns)
{
	bool gets_on = now_ns - c->acceptor->got_on_ns < LIMIT_NEWCOMER_MS * NS_PER_MS;

	if (c->acceptor->config.is_brief || !conn_has_heard(c->conn))
		return LIMIT_SILENT_MS;
	return gets_on || conn_is_computing(c->conn) ? LIMIT_CROWD_MS : LIMIT_NEWCOMER_MS;
}

static bool is_over(uint64_t since_ns, uint64_t limit_ms, uint64_t now_ns)
{
	return since_ns && now_ns - since_ns >= limit_ms * NS_PER_MS;
}

/* Since when the peer does not read its replies, or has further requests before it had the replies to the
 * last ones; 0: neither, or not for long enough. */
static uint64_t greedy_since_ns(const struct accepted *c, uint64_t now_ns)
{
	const struct acceptor_server *server = c->acceptor->config.server;
	uint64_t behind_ns = conn_behind_since_ns(c->conn);
	uint64_t queued_ns = server->queued_since_ns ? server->queued_since_ns(c) : 0;

	if (is_over(behind_ns, LIMIT_BEHIND_MS, now_ns))
		return behind_ns;
	return is_over(queued_ns, LIMIT_QUEUED_MS, now_ns) ? queued_ns : 0;
}

/* Whoever does so for longest. */
static struct accepted *find_greedy(const struct acceptor *a, uint64_t now_ns)
{
	uint64_t oldest_ns = now_ns + 1;
	struct accepted *found = NULL;

	for (struct accepted *c = a->first; c; c = c->next) {
		uint64_t since_ns = greedy_since_ns(c, now_ns);

		if (since_ns == 0 || since_ns >= oldest_ns)
			continue;
		oldest_ns = since_ns;
		found = c;
	}
	return found;
}

struct accepted *acceptor_find_evictable(const struct acceptor *a)
{
	uint64_t now_ns = clock_ns();
	struct accepted *greedy;

	for (struct accepted *c = a->first; c; c = c->next) {
		if (accepted_is_new(c) && (now_ns - c->since_ns) / NS_PER_MS >= grace_ms(c, now_ns))
			return c;
	}
	if (a->n < a->config.max_connections)
		return NULL;
	greedy = find_greedy(a, now_ns);
	return greedy ? greedy : find_idle(a, now_ns);
}

void accepted_evict(struct accepted *c)
{
	const char *why = "too many connections: an idle one is dropped";

	if (accepted_is_new(c))
		why = "too many peers without a request: the oldest is dropped";
	else if (greedy_since_ns(c, clock_ns()))
		why = "too many connections: one that asks for more than it reads is dropped";
	acceptor_log(c->acceptor, c->conn, why, NULL);
	accepted_close(c);
}
