/* SPDX-License-Identifier: Apache-2.0 */
/* What the webhook for pods asks about claims and classes. */
#include "base/mem.h"
#include "base/str.h"
#include "cluster/class_room.h"
#include "cluster/sched/world_private.h"

static enum sched_claim find_claim(
	void *user, const char *namespace, const char *name, const char **ret_class)
{
	CLEANUP(free_charp) char *key = x_asprintf("%s/%s", namespace, name);
	const struct sched_world *w = user;
	const struct kube_claim *claim = informer_get(w->claims, key);

	if (!claim)
		return SCHED_CLAIM_UNKNOWN;
	*ret_class = claim->storage_class;
	return str_empty(claim->volume_name) ? SCHED_CLAIM_UNBOUND : SCHED_CLAIM_BOUND;
}

static bool is_ours(const struct sched_world *w, const struct kube_class *class)
{
	return class_is_ours(class, w->driver_name) && class->waits_for_consumer;
}

struct default_search {
	const struct sched_world *world;
	bool found;
};

static void visit_class(void *user, const void *object)
{
	const struct kube_class *class = object;
	struct default_search *s = user;

	s->found |= class->is_default && is_ours(s->world, class);
}

static enum sched_class judge_class(void *user, const char *name)
{
	const struct sched_world *w = user;
	struct default_search search = {.world = w};
	const struct kube_class *class;

	if (!name) {
		informer_each(w->classes, visit_class, &search);
		return search.found ? SCHED_CLASS_OURS : SCHED_CLASS_OTHER;
	}
	class = informer_get(w->classes, name);
	if (!class)
		return SCHED_CLASS_UNKNOWN;
	return is_ours(w, class) ? SCHED_CLASS_OURS : SCHED_CLASS_OTHER;
}

struct sched_webhook_world sched_world_webhook(struct sched_world *w)
{
	return (struct sched_webhook_world){.claim = find_claim, .class = judge_class, .user = w};
}
