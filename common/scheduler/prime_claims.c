/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler/prime_claims.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/str.h"

/* Prefixes of the names of prime claims: those of populators, and those of CDI's clones. */
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
	bool is_owned = str_eq(prime->meta.owner_uid, target->meta.uid);
	bool is_on_its_node =
		!str_empty(target->selected_node) && str_eq(prime->selected_node, target->selected_node);

	return str_eq(prime->storage_class, target->storage_class) && (is_owned || is_on_its_node);
}

const struct kube_claim *prime_claim_find(const struct informer *claims, const struct kube_claim *target)
{
	if (str_empty(target->meta.uid) || str_empty(target->meta.namespace))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		CLEANUP(free_charp)
		char *key = x_asprintf("%s/%s%s", target->meta.namespace, prefixes[i], target->meta.uid);
		const struct kube_claim *prime = informer_get(claims, key);

		if (prime && fills(prime, target))
			return prime;
	}
	return NULL;
}
