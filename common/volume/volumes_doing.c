/* SPDX-License-Identifier: Apache-2.0 */
/* What operations are at, for callers that do not get an answer in time. Reads memory only. */
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "volume/id.h"
#include "volume/volumes_private.h"

/* By the name's ID in both forms (id.h). */
static char *doing_new(struct volumes *v, const char *name)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint(name, v->node_id, id);
	char *text = volume_lock_doing(v->locks, id);
	if (text)
		return text;
	volume_id_mint(name, NULL, id);
	return volume_lock_doing(v->locks, id);
}

static char *doing_with(struct volumes *v, const char *handle)
{
	CLEANUP(volume_record_freep) struct volume_record *r = volumes_record(v, handle);

	if (!r)
		r = volumes_record_by_name(v, handle);
	return r ? volume_lock_doing(v->locks, r->id) : doing_new(v, handle);
}

char *volumes_doing(struct volumes *v, const char *handle)
{
	CLEANUP(free_charp) char *text = handle ? doing_with(v, handle) : volume_lock_doing(v->locks, NULL);
	struct device_activity a;

	device_activity(v->devices, &a);
	if (!a.command[0])
		return TAKE_PTR(text);
	return x_asprintf("%s%s%s for %llu s", text ? text : "", text ? "; " : "", a.command,
		(unsigned long long)((clock_ns() - a.since_ns) / NS_PER_S));
}

void volumes_say(struct volumes *v, const char *id, const char *what)
{
	volume_lock_say(v->locks, id, what);
}
