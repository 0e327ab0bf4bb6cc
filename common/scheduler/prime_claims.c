/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/prime_claims.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "kube/key_index.h"

/* Of populators, and of CDI's clones. */
static const char *const prefixes[] = {"prime-", "tmp-pvc-"};

struct prime_claims {
	struct key_index *by_target; /* UID */
};

struct prime_claims *prime_claims_new(void)
{
	struct prime_claims *p = x_calloc(1, sizeof(*p));

	p->by_target = key_index_new();
	return p;
}

void prime_claims_free(struct prime_claims *p)
{
	if (!p)
		return;
	key_index_free(p->by_target);
	free(p);
}

const char *prime_claims_target(const struct kube_claim *claim)
{
	const char *name = claim->meta.name;

	for (size_t i = 0; name && i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (str_starts(name, prefixes[i]) && name[n])
			return name + n;
	}
	return NULL;
}

void prime_claims_note(struct prime_claims *p, const char *key, const struct kube_claim *claim)
{
	key_index_set(p->by_target, key, claim ? prime_claims_target(claim) : NULL);
}

static bool fills(const struct kube_claim *prime, const struct kube_claim *target)
{
	bool owned = str_eq(prime->meta.owner_uid, target->meta.uid) &&
		     str_eq(prime->meta.namespace, target->meta.namespace);

	return str_eq(prime->storage_class, target->storage_class) &&
	       (owned || (!str_empty(target->selected_node) &&
				 str_eq(prime->selected_node, target->selected_node)));
}

const struct kube_claim *prime_claims_of(
	const struct prime_claims *p, const struct informer *claims, const struct kube_claim *target)
{
	const struct key_entry *e = key_index_first(p->by_target, target->meta.uid);

	for (; e; e = key_index_next(e)) {
		const struct kube_claim *prime = informer_get(claims, e->key);

		if (prime && fills(prime, target))
			return prime;
	}
	return NULL;
}
