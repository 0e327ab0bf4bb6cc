/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API server says in watches and pages, for each kind of object that is decoded. The first byte
 * chooses: the kind, page or watch, and how the rest is cut.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "kube/informer_private.h"
#include "kube/objects/objects.h"

static const struct kube_kind *const kinds[] = {&kube_kind_nodes, &kube_kind_csi_nodes, &kube_kind_volumes,
	&kube_kind_claims, &kube_kind_classes, &kube_kind_capacities};

static void changed(void *user, const char *key, const void *old, const void *new)
{
	(void)user;
	assert(*key);
	assert(old || new);
}

static void end_page(struct informer *i)
{
	struct error *err = NULL;

	if (informer_end_page(i, &err) < 0)
		fuzz_error(err);
	else
		assert(i->next_page || i->version);
}

static void take(struct informer *i, struct span in, bool is_watch, size_t piece_bytes)
{
	bool more = true;

	while (more && in.n > 0) {
		size_t n = in.n < piece_bytes ? in.n : piece_bytes;
		struct span piece = {in.p, n};

		more = is_watch ? informer_take_watch(i, piece) : informer_take_page(i, piece);
		assert(more == !i->fault);
		in.p += n;
		in.n -= n;
	}
	if (more && !is_watch)
		end_page(i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct informer_events events = {.changed = changed};
	struct informer i = {.events = &events, .items = KUBE_ITEMS, .lines = KUBE_LINES};
	const struct kube_kind *kind;

	if (size == 0)
		return 0;
	kind = kinds[data[0] % ARRAY_SIZE(kinds)];
	i.kind = kind;
	kube_store_init(&i.store, kind);
	take(&i, (struct span){data + 1, size - 1}, data[0] & 0x40, data[0] & 0x20 ? 7 : size);
	kube_store_done(&i.store);
	kube_items_done(&i.items);
	kube_lines_done(&i.lines);
	free(i.version);
	free(i.list_version);
	free(i.next_page);
	if (i.fault)
		fuzz_error(i.fault);
	return 0;
}
