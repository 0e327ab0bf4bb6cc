/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/prime_claims.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

/* Of populators, and of CDI's clones. */
static const char *const prefixes[] = {"prime-", "tmp-pvc-"};

const char *prime_claim_target(const struct kube_claim *claim)
{
	const char *name = claim->meta.name;

	for (size_t i = 0; name && i < ARRAY_SIZE(prefixes); i++) {
		size_t n = strlen(prefixes[i]);

		if (str_starts(name, prefixes[i]) && name[n])
			return name + n;
	}
	return NULL;
}

static bool fills(const struct kube_claim *prime, const struct kube_claim *target)
{
	bool owned = str_eq(prime->meta.owner_uid, target->meta.uid) &&
		     str_eq(prime->meta.namespace, target->meta.namespace);

	return str_eq(prime->storage_class, target->storage_class) &&
	       (owned || (!str_empty(target->selected_node) &&
				 str_eq(prime->selected_node, target->selected_node)));
}

const struct kube_claim *prime_claim_find(
	const struct informer *claims, const struct key_index *by_target, const struct kube_claim *target)
{
	const struct key_entry *e = key_index_first(by_target, target->meta.uid);

	for (; e; e = key_index_next(e)) {
		const struct kube_claim *prime = informer_get(claims, e->key);

		if (prime && fills(prime, target))
			return prime;
	}
	return NULL;
}
