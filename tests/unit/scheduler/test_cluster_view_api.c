/* SPDX-License-Identifier: Apache-2.0 */
/* A large cluster on a scripted API server: the requests to it, the results of watches, and the memory taken.
 */
#include <malloc.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "scheduler/cluster_view.h"
#include "unit/kube/fake_api.h"
#include "unit/scheduler/fake_reservations.h"

#define DRIVER "pmem-csi.intel.com"
#define PAGE   200
#define MANY   20000

/* Limit for the memory of 20,000 claims, their volumes and their pods. */
#define MOST_BYTES (23u << 20)

static struct fake_api api;
static struct sched_nodes *nodes;
static struct cluster_view *cluster;
static struct fake_request claim_watch; /* its strings are not valid */
static unsigned n_claims;

#define META "\"uid\":\"0e9ff4b2-5c3a-4f0e-8c0b-%012u\",\"resourceVersion\":\"%u\""

static const char claim_form[] =
	"{\"metadata\":{" META ",\"namespace\":\"default\",\"name\":\"data-database-%u\",\"annotations\":{"
	"\"volume.kubernetes.io/selected-node\":\"node-1\","
	"\"volume.kubernetes.io/storage-provisioner\":\"" DRIVER "\"}},\"spec\":{\"storageClassName\":"
	"\"pmem-csi-sc-ext4\",\"volumeName\":\"pvc-0e9ff4b2-5c3a-4f0e-8c0b-%012u\",\"resources\":{"
	"\"requests\":{\"storage\":\"1Gi\"}}},\"status\":{\"phase\":\"Bound\"}}";
static const char volume_form[] =
	"{\"metadata\":{" META ",\"annotations\":{\"pv.kubernetes.io/provisioned-by\":\"" DRIVER
	"\"},\"name\":\"pvc-0e9ff4b2-5c3a-4f0e-8c0b-%012u\"},\"spec\":{\"csi\":{\"driver\":\"" DRIVER
	"\",\"volumeHandle\":\"pv-1a2b3c4d5e6f7a8b9c0d1a2b3c4d5e6f7a8b9c0d1a2b3c4.0a1b2c3d\"},"
	"\"nodeAffinity\":{\"required\":{\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"" DRIVER
	"/node\",\"operator\":\"In\",\"values\":[\"node-1\"]}]}]}}},\"status\":{\"phase\":\"Bound\"}}";
static const char pod_form[] =
	"{\"metadata\":{" META ",\"namespace\":\"default\",\"name\":\"database-%u\"},\"spec\":{\"nodeName\":"
	"\"node-%u\",\"volumes\":[{\"name\":\"data\","
	"\"persistentVolumeClaim\":{\"claimName\":\"data-database\"}}]},\"status\":{\"phase\":\"Running\"}}";

static unsigned first_of(const char *path)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const char *at = strstr(path, "continue=");
	uint64_t n = 0;

	if (at)
		ASSERT_OK(parse_u64(at + strlen("continue="), &n, &err));
	return (unsigned)n;
}

static void add_item(struct buf *page, const char *path, unsigned i)
{
	if (strstr(path, "/persistentvolumeclaims"))
		buf_addf(page, claim_form, i, 1000000 + i, i, i);
	else if (strstr(path, "/persistentvolumes"))
		buf_addf(page, volume_form, i, 1000000 + i, i);
	else
		buf_addf(page, pod_form, i, 1000000 + i, i, i);
}

static void serve(struct fake_api *a, const struct fake_request *r)
{
	CLEANUP(buf_done) struct buf page = BUF_INIT(4u << 20);
	unsigned first = first_of(r->path);
	bool few = strstr(r->path, "storageclasses") || strstr(r->path, "csidrivers") ||
		   strstr(r->path, "pmem-csi.intel.com");
	unsigned n = few ? 0 : n_claims;

	(void)a;
	if (strstr(r->path, "watch=true")) {
		if (strstr(r->path, "persistentvolumeclaims"))
			claim_watch = *r;
		fake_begin(r);
		return;
	}
	buf_adds(&page, "{\"metadata\":{\"resourceVersion\":\"5\"");
	if (first + PAGE < n)
		buf_addf(&page, ",\"continue\":\"%u\"", first + PAGE);
	buf_adds(&page, "},\"items\":[");
	for (unsigned i = first; i < first + PAGE && i < n; i++) {
		buf_adds(&page, i > first ? "," : "");
		add_item(&page, r->path, i);
	}
	if (strstr(r->path, "storageclasses"))
		buf_adds(&page, "{\"metadata\":{\"name\":\"pmem-csi-sc-ext4\"},\"provisioner\":\"" DRIVER
				"\",\"volumeBindingMode\":\"WaitForFirstConsumer\"}");
	buf_adds(&page, "]}");
	fake_answer(r, "200", buf_str(&page));
}

static bool is_synced(void *user)
{
	(void)user;
	return cluster_view_is_synced(cluster);
}

static void begin(unsigned n)
{
	n_claims = n;
	fake_api_open(&api, serve, (struct kube_client_config){0});
	nodes = sched_nodes_new();
	cluster = cluster_view_new(api.client, DRIVER, nodes, fake_reservations());
}

static void end(void)
{
	cluster_view_free(cluster);
	sched_nodes_free(nodes);
	fake_api_close(&api);
	buf_done(&fake_reservations_told);
}

static bool is_watched(void *user)
{
	(void)user;
	return claim_watch.side != NULL;
}

static bool is_told(void *user)
{
	return strstr(buf_str(&fake_reservations_told), user) != NULL;
}

START_TEST(watches_are_narrow_and_tell_what_was_decided)
{
	char wanted[] = "pvc-u on node-7 1024Mi\n";

	begin(1);
	fake_until(&api, is_synced, NULL);
	fake_until(&api, is_watched, NULL);
	ck_assert_ptr_nonnull(strstr(buf_str(&api.log),
		"GET "
		"/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed&limit"));
	ck_assert_ptr_nonnull(strstr(buf_str(&api.log),
		"GET /apis/storage.k8s.io/v1/csidrivers?fieldSelector=metadata.name%3D" DRIVER "&limit"));
	ck_assert_str_eq(buf_str(&fake_reservations_told), "pvc-0e9ff4b2-5c3a-4f0e-8c0b-000000000000 ends\n");
	fake_say(&claim_watch, "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"namespace\":\"ns\",\"name\":"
			       "\"c\",\"uid\":\"u\","
			       "\"resourceVersion\":\"9\",\"annotations\":{\"volume.kubernetes.io/"
			       "selected-node\":\"node-7\"}},"
			       "\"spec\":{\"storageClassName\":\"pmem-csi-sc-ext4\",\"resources\":{"
			       "\"requests\":{\"storage\":"
			       "\"1Gi\"}}}}}\n");
	h2_peer_flush((struct h2_peer_conn *)claim_watch.side);
	fake_until(&api, is_told, wanted);
	end();
}
END_TEST

static size_t held(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

START_TEST(twenty_thousand_claims_cost_what_is_kept_of_them)
{
	CLEANUP(pod_needs_done) struct pod_needs needs = {0};
	CLEANUP(free_charp) char *uid = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	size_t before = held();
	size_t bytes;

	begin(MANY);
	fake_until(&api, is_synced, NULL);
	buf_done(&fake_reservations_told);
	fake_reservations_told = BUF_INIT(1u << 20);
	bytes = held() - before;
	printf("%u claims, volumes and pods: %zu KiB\n", MANY, bytes >> 10);
	ck_assert_msg(bytes <= MOST_BYTES, "%zu bytes", bytes);
	ASSERT_OK(cluster_view_pod_needs(cluster,
		span_of("{\"metadata\":{\"name\":\"p\",\"namespace\":\"default\",\"uid\":\"u\"},\"spec\":{"
			"\"volumes\":[{\"name\":\"v\",\"persistentVolumeClaim\":{\"claimName\":"
			"\"data-database-19999\"}}]}}"),
		&needs, &uid, &err));
	ck_assert_uint_eq(needs.n_homes, 1);
	end();
}
END_TEST

TMPDIR_MAIN("scheduler/cluster_view_api", watches_are_narrow_and_tell_what_was_decided,
	twenty_thousand_claims_cost_what_is_kept_of_them)
