/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a large cluster takes: only the kept fields, and none of the pages in which they arrived.
 */
#include <malloc.h>

#include "base/mem.h"
#include "base/parse.h"
#include "kube/objects/objects.h"
#include "watch_rig.h"

#define PAGE 200
/* Objects of the field have that much more, of which nothing is kept. */
#define BALLAST_BYTES 2000

static struct watch_rig w;
static const char *form; /* of one object; its number is put in thrice */
static unsigned n_objects;

static unsigned first_of(const char *path)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const char *at = strstr(path, "continue=");
	uint64_t n = 0;

	if (at)
		ASSERT_OK(parse_u64(at + strlen("continue="), &n, &err));
	return (unsigned)n;
}

static void serve(struct fake_api *a, const struct fake_request *r)
{
	static char ballast[BALLAST_BYTES + 1];
	CLEANUP(buf_done) struct buf page = BUF_INIT(4u << 20);
	unsigned first = first_of(r->path);

	(void)a;
	if (strstr(r->path, "watch=true")) {
		fake_begin(r);
		return;
	}
	memset(ballast, 'x', BALLAST_BYTES);
	buf_addf(&page, "{\"metadata\":{\"resourceVersion\":\"5\"");
	if (first + PAGE < n_objects)
		buf_addf(&page, ",\"continue\":\"%u\"", first + PAGE);
	buf_adds(&page, "},\"items\":[");
	for (unsigned i = first; i < first + PAGE; i++) {
		buf_adds(&page, i > first ? "," : "");
		buf_addf(&page,
			"{\"metadata\":{\"name\":\"some-object-of-one-user-%u\",\"uid\":"
			"\"0e9ff4b2-5c3a-4f0e-8c0b-%012u\",\"resourceVersion\":\"%u\",\"managedFields\":[\"%"
			"s\"],",
			i, i, 1000000 + i, ballast);
		buf_adds(&page, form);
	}
	buf_adds(&page, "]}");
	fake_answer(r, "200", buf_str(&page));
}

static size_t held(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static bool is_synced(void *user)
{
	const struct informer *i = user;

	return informer_is_synced(i);
}

static void count(void *user, const void *object)
{
	size_t *n = user;

	(void)object;
	(*n)++;
}

static void costs_at_most(const struct kube_kind *kind, unsigned n, const char *text, size_t most_bytes)
{
	static const struct informer_events none = {0};
	size_t n_held = 0;
	size_t before;
	size_t each;

	form = text;
	n_objects = n;
	fake_api_open(&w.api, serve, (struct kube_client_config){0});
	before = held();
	w.informer = informer_new(w.api.client, kind, &none, NULL);
	fake_until(&w.api, is_synced, w.informer);
	informer_each(w.informer, count, &n_held);
	ck_assert_uint_eq(n_held, n);
	each = (held() - before) / n;
	printf("%s: %u objects, %zu bytes each\n", kind->what, n, each);
	ck_assert_msg(each <= most_bytes, "%zu bytes each", each);
	watch_rig_close(&w);
}

START_TEST(claims_cost_what_is_kept_of_them)
{
	costs_at_most(&kube_kind_claims, 20000,
		"\"namespace\":\"one-user\",\"annotations\":{\"volume.kubernetes.io/"
		"selected-node\":\"node-1\","
		"\"volume.kubernetes.io/storage-provisioner\":\"pmem-csi.intel.com\"}},"
		"\"spec\":{\"storageClassName\":\"pmem-csi-sc-ext4\",\"volumeName\":"
		"\"pvc-0e9ff4b2-5c3a-4f0e-8c0b-000000000000\",\"resources\":{\"requests\":{\"storage\":"
		"\"1Gi\"}}},"
		"\"status\":{\"phase\":\"Bound\"}}",
		600);
}
END_TEST

START_TEST(nodes_cost_what_is_kept_of_them)
{
	costs_at_most(&kube_kind_nodes, 5000,
		"\"labels\":{\"kubernetes.io/hostname\":\"node-1\",\"kubernetes.io/arch\":\"amd64\","
		"\"kubernetes.io/os\":\"linux\",\"beta.kubernetes.io/arch\":\"amd64\",\"beta.kubernetes.io/"
		"os\":\"linux\","
		"\"pmem-csi.intel.com/node\":\"node-1\",\"topology.kubernetes.io/zone\":\"zone-1\","
		"\"topology.kubernetes.io/region\":\"region-1\",\"storage\":\"pmem\"}}}",
		700);
}
END_TEST

TMPDIR_MAIN("kube/memory", claims_cost_what_is_kept_of_them, nodes_cost_what_is_kept_of_them)
