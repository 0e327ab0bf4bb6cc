/* SPDX-License-Identifier: Apache-2.0 */
/* PmemVolume and PmemNode objects as the API server has them, which administrators can edit. The first byte
 * chooses. The documents that are written from them must be JSON, and copies must give the same documents. */
#include "base/str.h"
#include "fuzz/fuzz.h"
#include "resources/pmem_node.h"
#include "resources/pmem_volume.h"

static void check_json(struct buf *b)
{
	fuzz_check_json(buf_span(b));
	buf_done(b);
}

static void take_volume(struct pmem_volume *v)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *copy = pmem_volume_dup(v);
	void (*const writers[])(const struct pmem_volume *, struct buf *) = {pmem_volume_write_new,
		pmem_volume_write_spec, pmem_volume_write_status, pmem_volume_write_release};

	assert(pmem_volume_status_equal(v, copy) && strv_eq(v->nodes, copy->nodes));
	for (size_t i = 0; i < sizeof(writers) / sizeof(*writers); i++) {
		struct buf b = BUF_INIT(16 << 20);

		writers[i](copy, &b);
		check_json(&b);
	}
	kube_object_free(&kube_kind_pmem_volumes, v);
}

static void take_node(struct pmem_node *n)
{
	CLEANUP(pmem_node_freep) struct pmem_node *copy = pmem_node_dup(n);
	struct buf spec = BUF_INIT(16 << 20);
	struct buf status = BUF_INIT(16 << 20);

	if (n->node && n->driver) {
		pmem_node_write_spec(n, &spec);
		check_json(&spec);
		pmem_node_write_status(n, &status);
		check_json(&status);
	}
	assert(copy->n_regions == n->n_regions);
	kube_object_free(&kube_kind_pmem_nodes, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	bool is_volume = fuzz_byte(&in) & 1;
	struct error *err = NULL;
	void *object =
		kube_object_decode(is_volume ? &kube_kind_pmem_volumes : &kube_kind_pmem_nodes, in, &err);

	if (!object)
		fuzz_error(err);
	else if (is_volume)
		take_volume(object);
	else
		take_node(object);
	return 0;
}
