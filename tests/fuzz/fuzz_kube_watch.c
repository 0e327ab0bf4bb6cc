/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds replies of an API server, which are watches and pages of lists, to the informer, for several kinds of
 * objects. The first byte chooses: the kind, page or watch, and how the rest is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "kube/informer_copy.h"
#include "kube/objects/objects.h"

static const struct kube_kind *const kinds[] = {&kube_kind_nodes, &kube_kind_csi_nodes, &kube_kind_volumes,
	&kube_kind_claims, &kube_kind_classes, &kube_kind_capacities};

static void changed(void *user, const char *key, const void *old, const void *new)
{
	(void)user;
	assert(*key);
	assert(old || new);
}

static void end_page(struct informer_copy *c)
{
	struct error *err = NULL;

	if (informer_copy_end_page(c, &err) < 0)
		fuzz_error(err);
	else
		assert(c->next_page || c->version);
}

static void take(struct informer_copy *c, struct span in, bool is_watch, size_t piece_bytes)
{
	bool more = true;

	while (more && in.n > 0) {
		size_t n = in.n < piece_bytes ? in.n : piece_bytes;
		struct span piece = {in.p, n};

		more = is_watch ? informer_copy_take_watch(c, piece) : informer_copy_take_page(c, piece);
		assert(more == !c->fault);
		in.p += n;
		in.n -= n;
	}
	if (more && !is_watch)
		end_page(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct informer_events events = {.changed = changed};
	struct informer_copy c;

	if (size == 0)
		return 0;
	informer_copy_init(&c, kinds[data[0] % ARRAY_SIZE(kinds)], &events, /* user= */ NULL);
	take(&c, (struct span){data + 1, size - 1}, data[0] & 0x40, data[0] & 0x20 ? 7 : size);
	if (c.fault)
		fuzz_error(TAKE_PTR(c.fault));
	informer_copy_done(&c);
	return 0;
}
