/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/scheduler/fake_charges.h"

#include "base/mem.h"

struct buf fake_charges_told = BUF_INIT(1u << 20);

struct sched_charges *fake_charges(void)
{
	static char nothing;

	return (struct sched_charges *)&nothing;
}

void sched_charges_decided(
	struct sched_charges *c, const char *name, const char *node_id, uint64_t size_bytes, bool sector)
{
	(void)c;
	buf_addf(&fake_charges_told, "%s on %s %lluMi%s\n", name, node_id,
		(unsigned long long)(size_bytes >> 20), sector ? " sector" : "");
}

void sched_charges_undecided(struct sched_charges *c, const char *name)
{
	(void)c;
	buf_addf(&fake_charges_told, "%s nowhere\n", name);
}

void sched_charges_drop(struct sched_charges *c, const char *pod_uid)
{
	(void)c;
	buf_addf(&fake_charges_told, "drop %s\n", pod_uid);
}

void sched_charges_unscheduled(
	struct sched_charges *c, const char *pod_uid, uint64_t version, const char *since, bool again)
{
	(void)c;
	buf_addf(&fake_charges_told, "unscheduled %s", pod_uid);
	if (version)
		buf_addf(&fake_charges_told, " as of %llu", (unsigned long long)version);
	if (since)
		buf_addf(&fake_charges_told, " since %s", since);
	if (again)
		buf_adds(&fake_charges_told, " again");
	buf_addc(&fake_charges_told, '\n');
}

void sched_charges_seen(struct sched_charges *c, const char *pod_uid, uint64_t now_ns)
{
	(void)c;
	(void)now_ns;
	buf_addf(&fake_charges_told, "saw %s\n", pod_uid);
}
