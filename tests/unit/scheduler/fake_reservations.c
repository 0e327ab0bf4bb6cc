/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/scheduler/fake_reservations.h"

#include "base/mem.h"

struct buf fake_reservations_told = BUF_INIT(1u << 20);
uint64_t fake_reservations_until_ns;

struct reservations *fake_reservations(void)
{
	static char nothing;

	return (struct reservations *)&nothing;
}

void reservations_place(struct reservations *c, const char *name, const char *node_id,
	const struct sched_item *item, uint64_t until_ns)
{
	(void)c;
	buf_addf(&fake_reservations_told, "%s on %s %lluMi%s%s\n", name, node_id,
		(unsigned long long)(item->size_bytes >> 20), item->sector ? " sector" : "",
		until_ns == RESERVATION_FOR_EVER ? "" : " until");
	fake_reservations_until_ns = until_ns;
}

void reservations_made(struct reservations *c, const char *name, const char *node_id, uint64_t report)
{
	(void)c;
	buf_addf(&fake_reservations_told, "%s made on %s %llu\n", name, node_id, (unsigned long long)report);
}

void reservations_end_at(struct reservations *c, const char *name, uint64_t end_ns)
{
	(void)c;
	buf_addf(&fake_reservations_told, "%s ends\n", name);
	fake_reservations_until_ns = end_ns;
}

void reservations_expire(struct reservations *c, uint64_t now_ns, reservations_keep_fn keep, void *user)
{
	(void)c;
	(void)now_ns;
	(void)keep;
	(void)user;
}

void reservations_withdraw(struct reservations *c, const char *name)
{
	(void)c;
	buf_addf(&fake_reservations_told, "%s nowhere\n", name);
}

void reservations_drop_pod(struct reservations *c, const char *pod_uid)
{
	(void)c;
	buf_addf(&fake_reservations_told, "drop %s\n", pod_uid);
}

void reservations_unscheduled(
	struct reservations *c, const char *pod_uid, uint64_t version, const char *since, bool again)
{
	(void)c;
	buf_addf(&fake_reservations_told, "unscheduled %s", pod_uid);
	if (version)
		buf_addf(&fake_reservations_told, " as of %llu", (unsigned long long)version);
	if (since)
		buf_addf(&fake_reservations_told, " since %s", since);
	if (again)
		buf_adds(&fake_reservations_told, " again");
	buf_addc(&fake_reservations_told, '\n');
}

void reservations_seen(struct reservations *c, const char *pod_uid, uint64_t now_ns)
{
	(void)c;
	(void)now_ns;
	buf_addf(&fake_reservations_told, "saw %s\n", pod_uid);
}
