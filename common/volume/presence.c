#include "volume/presence.h"

#include "base/str.h"

enum presence presence_of(
	const struct device_list *l, const struct volume_record *r, const struct device **ret_device)
{
	const struct device *d = device_list_find_own(l, r->id, r->identity);
	const struct device_pool *pool = r->pool ? device_list_pool(l, r->pool) : NULL;

	*ret_device = NULL;
	/* one that bears another identity than the recorded one is somebody else's */
	if (d && (!r->identity || str_eq(d->identity, r->identity))) {
		*ret_device = d;
		return DEVICE_PRESENT;
	}
	if (!pool || !pool->complete)
		return DEVICE_MISSING;
	if (!d || !str_eq(d->pool, r->pool))
		return DEVICE_GONE;
	*ret_device = d;
	return DEVICE_FOREIGN;
}
