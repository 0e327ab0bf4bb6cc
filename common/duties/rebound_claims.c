/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/rebound_claims.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/key_index.h"

struct rebound_claims {
	struct key_index *by_volume; /* name of the PersistentVolume */
	rebound_claims_changed_fn changed;
	void *user;
};

struct rebound_claims *rebound_claims_new(rebound_claims_changed_fn changed, void *user)
{
	struct rebound_claims *r = x_calloc(1, sizeof(*r));

	r->by_volume = key_index_new();
	r->changed = changed;
	r->user = user;
	return r;
}

void rebound_claims_free(struct rebound_claims *r)
{
	if (!r)
		return;
	key_index_free(r->by_volume);
	free(r);
}

static bool is_rebound(const struct kube_claim *claim)
{
	CLEANUP(free_charp) char *own = kube_claim_volume_name(claim);

	return str_eq(claim->phase, "Bound") && !str_empty(claim->volume_name) &&
	       !str_eq(claim->volume_name, own);
}

void rebound_claims_note(struct rebound_claims *r, const char *key, const struct kube_claim *claim)
{
	bool rebound = claim && is_rebound(claim);

	key_index_set(r->by_volume, key, rebound ? claim->volume_name : NULL);
	if (rebound)
		r->changed(r->user, claim->volume_name);
}

void rebound_claims_show(const struct rebound_claims *r, struct pmem_volume *v)
{
	const char *key = r && v->volume_name ? key_index_get(r->by_volume, v->volume_name) : NULL;

	if (!key || str_eq(v->claim, key))
		return;
	free(v->claim);
	v->claim = x_strdup(key);
}
