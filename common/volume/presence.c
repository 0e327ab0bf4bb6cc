/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/presence.h"

#include "base/str.h"

/* The Go driver recorded no identity, so that only a name in the recorded pool shows whose a device is. */
static bool may_be_own(const struct volume_record *r, const struct device *d)
{
	if (r->identity)
		return str_eq(d->identity, r->identity);
	return !r->pool || str_eq(d->pool, r->pool);
}

/* Whether @d, which has the name but not the identity of the volume's device, may be that device
 * nevertheless. If the volume is being erased and @d has another identity, it is not: the UUID of a namespace
 * and our LVM tag never change by themselves. A device without identity may have lost it. */
static bool may_stand_for_own(const struct volume_record *r, const struct device *d)
{
	if (!str_eq(d->pool, r->pool))
		return false;
	return r->phase != PHASE_ERASING || !r->identity || str_empty(d->identity);
}

enum presence presence_of(
	const struct device_list *l, const struct volume_record *r, const struct device **ret_device)
{
	const struct device *own = NULL, *other = NULL;
	const struct device_pool *pool = r->pool ? device_list_pool(l, r->pool) : NULL;
	size_t n_own = 0;

	*ret_device = NULL;
	for (const struct device *d = device_list_find(l, r->id);
		d && d < l->devices + l->n_devices && str_eq(d->id, r->id); d++) {
		if (may_be_own(r, d)) {
			own = d;
			n_own++;
		} else if (may_stand_for_own(r, d)) {
			other = d;
		}
	}
	if (n_own == 1) {
		*ret_device = own;
		return DEVICE_PRESENT;
	}
	if (n_own > 1 || !pool || !pool->complete)
		return DEVICE_MISSING;
	*ret_device = other;
	return other ? DEVICE_FOREIGN : DEVICE_GONE;
}
