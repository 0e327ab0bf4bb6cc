/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of the needs of pods, and of the volumes on their way that the watches show. */
#include "scheduler/cluster_view.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/scheduler/fake_reservations.h"
#include "unit/scheduler/pmem_nodes.h"
#include "unit/unit.h"

#define DRIVER "pmem"
#define GIB    (1ULL << 30)

static struct loop *loop;
static struct kube_client *client;
static struct sched_nodes *nodes;
static struct cluster_view *cluster;
static struct pod_needs needs;
static char *uid;
static struct error *err;

static struct informer *of(const char *what)
{
	struct informer *i = fake_kube_informer(client, what);

	ck_assert_ptr_nonnull(i);
	return i;
}

/* Takes @json. */
static void put(const char *what, char *json)
{
	fake_informer_put(of(what), json);
	free(json);
}

static void put_class(const char *name, const char *provisioner, const char *parameters)
{
	put("storageclasses", kube_json_class(name, provisioner, parameters));
}

static void put_claim(const char *name, const char *class_name, const char *node, const char *volume)
{
	put("persistentvolumeclaims", kube_json_claim(name, class_name, node, volume));
}

/* @volumes: JSON objects; @status: of the condition PodScheduled; @message: of it */
static char *pod_in(
	const char *phase, const char *node, const char *volumes, const char *status, const char *message)
{
	return x_asprintf(
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"pod-uid\"},\"spec\":{%s%s%s"
		"\"volumes\":[%s]},\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"PodScheduled\","
		"\"status\":\"%s\",\"message\":\"%s\"}]}}",
		node ? "\"nodeName\":\"" : "", node ? node : "", node ? "\"," : "", volumes, phase, status,
		message);
}

static char *pod(const char *node, const char *volumes, const char *status, const char *message)
{
	return pod_in("Pending", node, volumes, status, message);
}

#define CLAIM(name)  "{\"name\":\"v-" name "\",\"persistentVolumeClaim\":{\"claimName\":\"" name "\"}}"
#define EPHEMERAL(n) "{\"name\":\"" n "\",\"ephemeral\":{\"volumeClaimTemplate\":{}}}"
#define INLINE(size, more)                                                                                   \
	"{\"name\":\"i\",\"csi\":{\"driver\":\"" DRIVER "\",\"volumeAttributes\":{" size "}" more "}}"

/* kubelet's makeVolumeHandle("pod-uid", "i") */
#define HANDLE "csi-3abac5408396cb017634680c82915473d72bd1f288779c32ab460ba7607b0beb"

static void sync_all(void)
{
	static const char *const kinds[] = {"persistentvolumeclaims", "persistentvolumes", "storageclasses",
		"csidrivers", "pods", "pmemnodes", "pmemvolumes"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		ck_assert(!cluster_view_is_synced(cluster));
		fake_informer_sync(of(kinds[i]));
	}
	ck_assert(cluster_view_is_synced(cluster));
}

static void set_up(void)
{
	ASSERT_OK(loop_new(&loop, &err));
	client = fake_kube_new(loop);
	nodes = sched_nodes_new();
	cluster = cluster_view_new(client, DRIVER, nodes, fake_reservations());
	put_class("late", DRIVER, "{}");
	put_class("xfs", DRIVER, "{\"csi.storage.k8s.io/fstype\":\"xfs\",\"usage\":\"FileIO\"}");
	put_class("theirs", "other", "{}");
	put("storageclasses", x_strdup("{\"metadata\":{\"name\":\"now\"},\"provisioner\":\"" DRIVER "\","
				       "\"volumeBindingMode\":\"Immediate\"}"));
}

static void forget_needs(void)
{
	pod_needs_done(&needs);
	free(TAKE_PTR(uid));
	error_clear(&err);
}

static void tear_down(void)
{
	forget_needs();
	cluster_view_free(cluster);
	sched_nodes_free(nodes);
	kube_client_free(client);
	loop_free(loop);
	buf_done(&fake_reservations_told);
}

static int look(const char *volumes)
{
	CLEANUP(free_charp) char *json = pod(NULL, volumes, "False", "");

	forget_needs();
	return cluster_view_pod_needs(cluster, span_of(json), &needs, &uid, &err);
}

static void refused(const char *volumes, enum err_code code, const char *text)
{
	ck_assert_int_eq(look(volumes), -1);
	ck_assert_msg(err->code == code && strstr(err->msg, text), "%s", err->msg);
}

static void needs_one(const char *volumes, const char *name, uint64_t size_bytes, bool sector)
{
	ASSERT_OK(look(volumes));
	ck_assert_uint_eq(needs.n, 1);
	ck_assert_str_eq(needs.v[0].name, name);
	ck_assert(needs.v[0].size_bytes == size_bytes && needs.v[0].sector == sector);
}

static void reported(const char *text)
{
	ck_assert_str_eq(buf_str(&fake_reservations_told), text);
	buf_done(&fake_reservations_told);
	fake_reservations_told = BUF_INIT(1u << 20);
}

START_TEST(nothing_is_said_before_all_is_known)
{
	refused("", ERR_UNAVAILABLE, "still being read");
	sync_all();
	ASSERT_OK(look(""));
	ck_assert_str_eq(uid, "pod-uid");
	ck_assert_uint_eq(needs.n + needs.n_homes, 0);
}
END_TEST

START_TEST(claims_that_bind_late_are_needed_each_once)
{
	put_claim("a", "late", NULL, NULL);
	sync_all();
	needs_one(CLAIM("a") "," CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_str_eq(needs.v[0].what, "claim ns/a");
}
END_TEST

START_TEST(other_claims_are_not_needed)
{
	put_claim("a", "theirs", NULL, NULL);
	put_claim("b", "now", NULL, NULL);
	put_claim("c", "", NULL, NULL);
	sync_all();
	ASSERT_OK(look(CLAIM("a") "," CLAIM("b") "," CLAIM("c")));
	ck_assert_uint_eq(needs.n + needs.n_homes, 0);
}
END_TEST

START_TEST(a_size_is_at_least_what_its_file_system_needs)
{
	put("persistentvolumeclaims",
		x_strdup(
			"{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"uid-a\"},\"spec\":{"
			"\"storageClassName\":\"xfs\",\"resources\":{\"requests\":{\"storage\":\"1Mi\"}}}}"));
	put("persistentvolumeclaims",
		x_strdup("{\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\",\"uid\":\"uid-b\"},\"spec\":{"
			 "\"storageClassName\":\"late\"}}"));
	sync_all();
	needs_one(CLAIM("a"), "pvc-uid-a", 300ULL << 20, true);
	needs_one(CLAIM("b"), "pvc-uid-b", SCHED_DEFAULT_BYTES, false);
}
END_TEST

START_TEST(what_is_not_there_yet_is_waited_for)
{
	put_claim("a", "new", NULL, NULL);
	put("persistentvolumeclaims",
		x_strdup("{\"spec\":{\"storageClassName\":\"late\",\"volumeName\":\"pvc-u\"},"
			 "\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{"
			 "\"volume.kubernetes.io/storage-provisioner\":\"" DRIVER "\"}}}"));
	put_claim("by-hand", "late", "n1", "theirs");
	sync_all();
	refused(CLAIM("x"), ERR_UNAVAILABLE, "claim ns/x");
	refused(CLAIM("a"), ERR_UNAVAILABLE, "storage class new");
	refused(CLAIM("b"), ERR_UNAVAILABLE, "volume pvc-u");
	ASSERT_OK(look(CLAIM("by-hand")));
	refused(EPHEMERAL("e"), ERR_UNAVAILABLE, "claim ns/p-e");
}
END_TEST

START_TEST(a_claim_of_the_pod_must_be_its_own)
{
	put_claim("p-e", "late", NULL, NULL);
	sync_all();
	refused(EPHEMERAL("e"), ERR_PRECONDITION, "not made for this pod");
	put("persistentvolumeclaims", x_strdup("{\"metadata\":{\"name\":\"p-e\",\"namespace\":\"ns\",\"uid\":"
					       "\"u\",\"ownerReferences\":[{"
					       "\"uid\":\"pod-uid\",\"controller\":true}]},\"spec\":{"
					       "\"storageClassName\":\"late\"}}"));
	needs_one(EPHEMERAL("e"), "pvc-u", SCHED_DEFAULT_BYTES, false);
}
END_TEST

START_TEST(a_bound_claim_keeps_the_pod_to_the_nodes_of_its_volume)
{
	put_claim("a", "late", "n1", "pv-a");
	put_claim("b", "theirs", NULL, "pv-b");
	put("persistentvolumes", kube_json_volume("pv-a", DRIVER, "h", "n1"));
	put("persistentvolumes", kube_json_volume("pv-b", "other", "h", "n2"));
	sync_all();
	ASSERT_OK(look(CLAIM("a") "," CLAIM("b")));
	ck_assert_uint_eq(needs.n, 0);
	ck_assert_uint_eq(needs.n_homes, 1);
	ck_assert_uint_eq(strv_len(needs.homes[0].nodes), 1);
	ck_assert_str_eq(needs.homes[0].nodes[0], "n1");
}
END_TEST

/* Its value is a label of the Node, which may differ from the Node's name; kube-scheduler compares it. */
START_TEST(a_volume_made_by_hand_with_a_key_of_others_keeps_the_pod_nowhere)
{
	char *json = kube_json_volume("pv-a", DRIVER, "h", "host-1.example");

	put_claim("a", "late", "n1", "pv-a");
	memcpy(strstr(json, "pmem/node"), "host/name", strlen("host/name"));
	put("persistentvolumes", json);
	sync_all();
	ASSERT_OK(look(CLAIM("a")));
	ck_assert_uint_eq(needs.n + needs.n_homes, 0);
}
END_TEST

START_TEST(inline_volumes_are_needed_where_the_driver_has_them)
{
	sync_all();
	needs_one(INLINE("\"size\":\"2Gi\",\"usage\":\"FileIO\"", ""), HANDLE, 2 * GIB, true);
	ck_assert_str_eq(needs.v[0].what, "inline volume \"i\"");
	needs_one(INLINE("\"size\":\"1Mi\"", ",\"fsType\":\"xfs\""), HANDLE, 300ULL << 20, false);
	needs_one(INLINE("\"size\":\"0\"", ""), HANDLE, SCHED_DEFAULT_BYTES, false);
	refused(INLINE("", ""), ERR_INVALID_ARGUMENT, "has no \"size\"");
	refused(INLINE("\"size\":\"x\"", ""), ERR_INVALID_ARGUMENT, "inline volume \"i\"");
	put("csidrivers", x_strdup("{\"metadata\":{\"name\":\"" DRIVER
				   "\"},\"spec\":{\"volumeLifecycleModes\":[\"Persistent\"]}}"));
	ASSERT_OK(look(INLINE("\"size\":\"2Gi\"", "")));
	ck_assert_uint_eq(needs.n, 0);
}
END_TEST

START_TEST(a_pod_has_so_many_new_volumes_and_no_more)
{
	CLEANUP(buf_done) struct buf volumes = BUF_INIT(1u << 20);
	static const char one[] = "%s{\"name\":\"i%d\",\"csi\":{\"driver\":\"" DRIVER
				  "\",\"volumeAttributes\":{\"size\":\"1Gi\"}}}";

	sync_all();
	for (int i = 0; i < POD_NEEDS_MAX; i++)
		buf_addf(&volumes, one, i > 0 ? "," : "", i);
	ASSERT_OK(look(buf_str(&volumes)));
	ck_assert_uint_eq(needs.n, POD_NEEDS_MAX);
	buf_addf(&volumes, one, ",", 0);
	ASSERT_OK(look(buf_str(&volumes)));
	buf_addf(&volumes, one, ",", POD_NEEDS_MAX);
	refused(buf_str(&volumes), ERR_INVALID_ARGUMENT, "more than 128");
}
END_TEST

START_TEST(pods_that_make_no_sense_are_refused)
{
	static const char *const texts[] = {"", "[]", "{\"metadata\":{\"name\":\"p\"}}",
		"{\"metadata\":{\"name\":\"p\",\"uid\":\"u\"}}",
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}"};

	sync_all();
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		forget_needs();
		ck_assert_int_eq(cluster_view_pod_needs(cluster, span_of(texts[i]), &needs, &uid, &err), -1);
		ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
	}
}
END_TEST

START_TEST(what_was_decided_before_the_beginning_counts)
{
	put_claim("a", "late", "n1", NULL);
	put_claim("b", "late", "n1", "pvc-uid-b");
	put_claim("c", "theirs", "n1", NULL);
	put_claim("d", "late", NULL, NULL);
	put("pods", pod("n2", INLINE("\"size\":\"2Gi\"", ""), "True", ""));
	reported("");
	sync_all();
	reported("pvc-uid-a on n1 4096Mi\npvc-uid-b ends\n" HANDLE " on n2 2048Mi until\n");
}
END_TEST

START_TEST(an_inline_volume_of_a_pod_that_has_been_running_is_in_the_reports)
{
	put("pods", pod_in("Running", "n2", INLINE("\"size\":\"2Gi\"", ""), "True", ""));
	sync_all();
	reported(HANDLE " ends\n");
	put("pods", pod_in("Running", "n2", INLINE("\"size\":\"2Gi\"", ""), "True", "again"));
	reported(HANDLE " ends\n");
}
END_TEST

START_TEST(a_claim_counts_from_its_selected_node_on_until_that_is_taken_back)
{
	sync_all();
	put_claim("a", "late", NULL, NULL);
	reported("");
	put_claim("a", "late", "n1", NULL);
	reported("pvc-uid-a on n1 4096Mi\n");
	put_claim("a", "late", NULL, NULL);
	reported("pvc-uid-a nowhere\n");
	put_claim("a", "late", "n2", NULL);
	reported("pvc-uid-a on n2 4096Mi\n");
	fake_informer_remove(of("persistentvolumeclaims"), "ns/a");
	reported("pvc-uid-a nowhere\n");
}
END_TEST

START_TEST(a_bound_claim_counts_a_minute_longer)
{
	uint64_t before_ns = clock_ns();

	sync_all();
	put_claim("a", "late", "n1", NULL);
	put_claim("a", "late", "n1", "pvc-uid-a");
	put_claim("a", "late", "n1", "pvc-uid-a");
	reported("pvc-uid-a on n1 4096Mi\npvc-uid-a on n1 4096Mi until\npvc-uid-a ends\npvc-uid-a ends\n");
	ck_assert_uint_ge(fake_reservations_until_ns, before_ns + RESERVATION_NS);
	ck_assert_uint_le(fake_reservations_until_ns, clock_ns() + RESERVATION_NS);
}
END_TEST

/* Takes what pmem_volume_json() returns. */
static void put_record(const char *name, const char *node, const char *phase, uint64_t report)
{
	put("pmemvolumes", pmem_volume_json(name, node, phase, report));
}

/* A record whose volume is in @phase, and whose copy is "Ready". */
static void put_made(const char *name, const char *node, const char *phase)
{
	CLEANUP(free_charp) char *json = pmem_volume_json(name, node, "Ready", 7);

	put("pmemvolumes", x_asprintf("%.*s,\"phase\":\"%s\"}}", (int)strlen(json) - 2, json, phase));
}

START_TEST(a_record_says_which_report_shows_the_volume)
{
	sync_all();
	put_record("pvc-uid-a", "n1", "Creating", 0);
	reported("");
	put_record("pvc-uid-a", "n1", "Ready", 7);
	reported("pvc-uid-a made on n1 7\n");
	put_record("pvc-uid-a", "n1", "Erasing", 7);
	reported("");
	put_record("pvc-uid-a", "n1", "Missing", 7);
	reported("pvc-uid-a made on n1 7\n");
	put_claim("a", "late", "n1", NULL);
	reported("pvc-uid-a on n1 4096Mi\npvc-uid-a made on n1 7\n");
	put("pmemvolumes", x_strdup("{\"metadata\":{\"name\":\"damaged\"},\"status\":{\"nodes\":[{\"node\":"
				    "\"n1\",\"phase\":\"Ready\",\"report\":7}]}}"));
	reported("");
}
END_TEST

START_TEST(a_volume_is_not_needed_on_nodes_that_have_it)
{
	put_claim("a", "late", NULL, NULL);
	put_record("pvc-uid-a", "n1", "Creating", 0);
	sync_all();
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(strv_len(needs.v[0].nodes), 1);
	ck_assert_str_eq(needs.v[0].nodes[0], "n1");
	put_record("pvc-uid-a", "n1", "Erasing", 7);
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_ptr_null(needs.v[0].nodes);
}
END_TEST

/* The record was made from a report and the claim waits again, as after etcd was restored. */
START_TEST(a_volume_that_was_made_keeps_the_pod_to_its_node)
{
	put_claim("a", "late", NULL, NULL);
	put_made("pvc-uid-a", "n1", "Creating");
	put_class("caches", DRIVER, "{\"persistencyModel\":\"cache\"}");
	sync_all();
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 0);
	put_made("pvc-uid-a", "n1", "Damaged");
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 1);
	ck_assert_str_eq(needs.homes[0].nodes[0], "n1");
	ck_assert_str_eq(needs.homes[0].why, "claim ns/a has a volume already, which is only on node n1");
	put_made("pvc-uid-a", "n1", "Lost");
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 0);
	put_made("pvc-uid-a", "n1", "Ready");
	put_claim("a", "caches", NULL, NULL);
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 0);
}
END_TEST

static void put_clone(const char *name, const char *source)
{
	put("persistentvolumeclaims", kube_json_clone(name, "late", source));
}

/* The pod needs the volume of claim "a", which can be made on @node alone, or anywhere: NULL. */
static void needs_clone(const char *volumes, const char *node)
{
	needs_one(volumes, "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, node ? 1 : 0);
	if (!node)
		return;
	ck_assert_uint_eq(strv_len(needs.homes[0].nodes), 1);
	ck_assert_str_eq(needs.homes[0].nodes[0], node);
	ck_assert_msg(strstr(needs.homes[0].why,
			      "claim ns/a is to be a clone of claim ns/src, which is only on node"),
		"%s", needs.homes[0].why);
}

START_TEST(a_clone_keeps_the_pod_to_the_nodes_of_its_source)
{
	put_claim("src", "late", "n2", "pvc-uid-src");
	put("persistentvolumes", kube_json_volume("pvc-uid-src", DRIVER, "h", "n2"));
	put_clone("a", "src");
	sync_all();
	needs_clone(CLAIM("a"), "n2");
	put_claim("a", "late", NULL, NULL);
	needs_clone(CLAIM("a"), NULL);
}
END_TEST

START_TEST(a_source_whose_node_is_not_known_is_waited_for)
{
	put_clone("a", "src");
	sync_all();
	refused(CLAIM("a"), ERR_UNAVAILABLE, "claim ns/src, the source of claim ns/a, is not known yet");
	put_claim("src", "late", NULL, NULL);
	refused(CLAIM("a"), ERR_UNAVAILABLE, "claim ns/src, the source of claim ns/a, is not bound yet");
	put("persistentvolumeclaims",
		x_strdup("{\"spec\":{\"storageClassName\":\"late\",\"volumeName\":\"pvc-u\"},"
			 "\"metadata\":{\"name\":\"src\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{"
			 "\"volume.kubernetes.io/storage-provisioner\":\"" DRIVER "\"}}}"));
	refused(CLAIM("a"), ERR_UNAVAILABLE, "volume pvc-u of claim ns/src is not known yet");
	put("persistentvolumes", kube_json_volume("pvc-u", DRIVER, "h", "n1"));
	needs_clone(CLAIM("a"), "n1");
}
END_TEST

/* Both are made on the node that the pod gets. */
START_TEST(a_pod_may_need_a_clone_and_its_source)
{
	put_claim("src", "late", NULL, NULL);
	put_clone("a", "src");
	sync_all();
	for (size_t i = 0; i < 2; i++) {
		ASSERT_OK(look(i == 0 ? CLAIM("a") "," CLAIM("src") : CLAIM("src") "," CLAIM("a")));
		ck_assert_uint_eq(needs.n, 2);
		ck_assert_uint_eq(needs.n_homes, 0);
	}
}
END_TEST

START_TEST(a_clone_that_was_made_stays_where_it_is)
{
	put_clone("a", "src");
	put_record("pvc-uid-a", "n1", "Creating", 0);
	sync_all();
	needs_clone(CLAIM("a"), "n1");
}
END_TEST

static void put_snapshot_record(const char *node, const char *snapshot, const char *phase)
{
	put("pmemvolumes", x_asprintf("{\"metadata\":{\"name\":\"s-%s.pmem\"},\"spec\":{\"driver\":\"pmem\","
				      "\"snapshot\":true,\"volumeSnapshot\":\"%s\"},\"status\":{\"nodes\":[{"
				      "\"node\":\"%s\",\"phase\":\"%s\",\"size\":\"4Gi\"}]}}",
				   node, snapshot, node, phase));
}

START_TEST(a_claim_from_a_snapshot_keeps_the_pod_to_its_node)
{
	put("persistentvolumeclaims",
		x_strdup(
			"{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"uid-a\"},\"spec\":{"
			"\"storageClassName\":\"late\",\"resources\":{\"requests\":{\"storage\":\"4Gi\"}},"
			"\"dataSource\":{\"apiGroup\":\"snapshot.storage.k8s.io\",\"kind\":\"VolumeSnapshot\","
			"\"name\":\"snap\"}}}"));
	put_snapshot_record("n1", "other/snap", "Ready");
	put_snapshot_record("n3", "ns/old", "Ready");
	sync_all();
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 0);
	put_snapshot_record("n2", "ns/snap", "Ready");
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 1);
	ck_assert_uint_eq(strv_len(needs.homes[0].nodes), 1);
	ck_assert_str_eq(needs.homes[0].nodes[0], "n2");
	ck_assert_msg(
		strstr(needs.homes[0].why, "restored from VolumeSnapshot ns/snap, which is only on node n2"),
		"%s", needs.homes[0].why);
	/* of an earlier VolumeSnapshot of that name */
	put_snapshot_record("n3", "ns/snap", "Ready");
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 0);
}
END_TEST

/* external-provisioner refuses it. */
/* @owner: UID; @volume: NULL: it is not bound */
static void put_second(
	const char *prefix, const char *namespace, const char *owner, const char *node, const char *volume)
{
	put("persistentvolumeclaims",
		x_asprintf(
			"{\"metadata\":{\"name\":\"%suid-a\",\"namespace\":\"%s\",\"uid\":\"uid-p\","
			"\"ownerReferences\":[{\"uid\":\"%s\",\"controller\":true,\"kind\":"
			"\"PersistentVolumeClaim\"}],\"resourceVersion\":\"%s\",\"annotations\":{"
			"\"volume.kubernetes.io/selected-node\":\"%s\"}},\"spec\":{\"storageClassName\":"
			"\"late\",\"volumeName\":\"%s\",\"resources\":{\"requests\":{\"storage\":\"4Gi\"}}}}",
			prefix, namespace, owner, volume ? volume : "6", node, volume ? volume : ""));
}

static void put_prime(const char *namespace, const char *owner, const char *node, const char *volume)
{
	put_second("prime-", namespace, owner, node, volume);
}

START_TEST(a_claim_that_is_filled_takes_the_volume_of_its_prime_claim)
{
	sync_all();
	put_claim("a", "late", "n1", NULL);
	reported("pvc-uid-a on n1 4096Mi\n");
	put_prime("ns", "uid-a", "n1", NULL);
	reported("pvc-uid-p on n1 4096Mi\npvc-uid-a nowhere\n");
	needs_one(CLAIM("a"), "pvc-uid-p", 4 * GIB, false);
	put("persistentvolumes", kube_json_volume("pvc-uid-p", DRIVER, "pvc-uid-p", "n1"));
	put_prime("ns", "uid-a", "n1", "pvc-uid-p");
	ASSERT_OK(look(CLAIM("a")));
	ck_assert_uint_eq(needs.n, 0);
	ck_assert_uint_eq(needs.n_homes, 1);
	ck_assert_str_eq(needs.homes[0].nodes[0], "n1");
	reported("pvc-uid-p on n1 4096Mi until\npvc-uid-p ends\npvc-uid-a nowhere\n");
	put_claim("a", "late", "n1", "pvc-uid-p");
	fake_informer_remove(of("persistentvolumeclaims"), "ns/prime-uid-a");
	reported("pvc-uid-a nowhere\npvc-uid-p nowhere\n");
}
END_TEST

START_TEST(a_populator_that_gives_up_leaves_the_claim_as_it_was)
{
	put_claim("a", "late", "n1", NULL);
	put_prime("ns", "uid-a", "n1", NULL);
	sync_all();
	ck_assert_ptr_null(strstr(buf_str(&fake_reservations_told), "pvc-uid-a on"));
	buf_done(&fake_reservations_told);
	fake_reservations_told = BUF_INIT(1u << 20);
	fake_informer_remove(of("persistentvolumeclaims"), "ns/prime-uid-a");
	reported("pvc-uid-p nowhere\npvc-uid-a on n1 4096Mi\n");
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
}
END_TEST

/* A user who may make claims in a namespace decides all that these claims say. */
START_TEST(a_claim_of_another_namespace_keeps_no_pod_from_its_node)
{
	sync_all();
	put_claim("a", "late", "n1", NULL);
	put("persistentvolumes", kube_json_volume("pvc-uid-p", DRIVER, "pvc-uid-p", "n2"));
	put_prime("other", "uid-a", "n1", "pvc-uid-p");
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_uint_eq(needs.n_homes, 0);
	put_second("tmp-pvc-", "other", "", "n1", NULL);
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	ck_assert_ptr_null(strstr(buf_str(&fake_reservations_told), "pvc-uid-a nowhere"));
}
END_TEST

START_TEST(a_claim_that_only_has_the_name_of_a_prime_claim_fills_none)
{
	sync_all();
	put_claim("a", "late", "n1", NULL);
	put_prime("ns", "", "n2", NULL);
	needs_one(CLAIM("a"), "pvc-uid-a", 4 * GIB, false);
	put_second("tmp-pvc-", "ns", "", "n1", NULL);
	needs_one(CLAIM("a"), "pvc-uid-p", 4 * GIB, false);
}
END_TEST

/* An import of virtual machines has hundreds of them, among tens of thousands of claims. */
START_TEST(a_prime_claim_that_changes_leads_to_its_target_only)
{
	size_t visits;

	sync_all();
	put_claim("a", "late", "n1", NULL);
	visits = fake_informer_visits(of("persistentvolumeclaims"));
	put_prime("ns", "uid-a", "n1", NULL);
	put_prime("ns", "uid-a", "n1", "pvc-uid-p");
	fake_informer_remove(of("persistentvolumeclaims"), "ns/prime-uid-a");
	put_second("tmp-pvc-", "ns", "", "n1", NULL);
	ck_assert_uint_eq(fake_informer_visits(of("persistentvolumeclaims")), visits);
}
END_TEST

START_TEST(a_source_of_another_driver_decides_nothing)
{
	put_claim("src", "theirs", NULL, "pv-src");
	put("persistentvolumes", kube_json_volume("pv-src", "other", "h", "n2"));
	put_clone("a", "src");
	sync_all();
	needs_clone(CLAIM("a"), NULL);
}
END_TEST

static const struct sched_node *get(const char *name)
{
	return sched_nodes_get(nodes, span_of(name));
}

START_TEST(nodes_are_those_of_the_driver_that_have_objects)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = pmem_node_new("n1");

	ck_assert_str_eq(
		fake_informer_kind(of("pmemnodes"))->label_selector, "pmem-csi.intel.com/driver=pmem");
	ck_assert_str_eq(
		fake_informer_kind(of("pmemvolumes"))->label_selector, "pmem-csi.intel.com/driver=pmem");
	put("pmemnodes", pmem_node_json(n));
	put("pmemnodes", x_strdup("{\"metadata\":{\"name\":\"damaged\"}}"));
	ck_assert_uint_eq(get("n1")->n_pools, 1);
	pmem_node_set_region(n, 1, 2);
	put("pmemnodes", pmem_node_json(n));
	ck_assert_uint_eq(get("n1")->n_pools, 2);
	fake_informer_remove(of("pmemnodes"), "n1.pmem");
	fake_informer_remove(of("pmemnodes"), "damaged");
	ck_assert_ptr_null(get("n1"));
}
END_TEST

START_TEST(another_claim_of_the_same_name_is_another)
{
	sync_all();
	put_claim("a", "late", "n1", NULL);
	reported("pvc-uid-a on n1 4096Mi\n");
	put("persistentvolumeclaims",
		x_strdup("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\"},\"spec\":{"
			 "\"storageClassName\":\"late\",\"volumeName\":\"v\"}}"));
	reported("pvc-uid-a nowhere\npvc-u nowhere\n");
}
END_TEST

START_TEST(the_webhook_alone_watches_claims_and_classes)
{
	const char *class = NULL;

	cluster_view_free(cluster);
	cluster = cluster_view_new(client, DRIVER, NULL, NULL);
	ck_assert_ptr_null(fake_kube_informer(client, "pods"));
	ck_assert_ptr_null(fake_kube_informer(client, "persistentvolumes"));
	ck_assert_ptr_null(fake_kube_informer(client, "csidrivers"));
	ck_assert_ptr_null(fake_kube_informer(client, "pmemnodes"));
	ck_assert_ptr_null(fake_kube_informer(client, "pmemvolumes"));
	fake_informer_sync(of("persistentvolumeclaims"));
	ck_assert(!cluster_view_is_synced(cluster));
	fake_informer_sync(of("storageclasses"));
	ck_assert(cluster_view_is_synced(cluster));
	put_claim("a", "late", "n1", NULL);
	struct webhook_cluster asked = cluster_view_webhook(cluster);

	ck_assert_int_eq(asked.claim(asked.user, "ns", "a", &class), WEBHOOK_CLAIM_UNBOUND);
	ck_assert_str_eq(class, "late");
	put_claim("a", "late", "n1", "pv-a");
	ck_assert_int_eq(asked.claim(asked.user, "ns", "a", &class), WEBHOOK_CLAIM_BOUND);
	cluster_view_tick(cluster, clock_ns() + 2 * RESERVATION_NS);
	reported("");
}
END_TEST

static void is_silent(uint64_t now_ns, const char *kind)
{
	const char *found = NULL;
	uint64_t for_ns = 0;

	ck_assert_int_eq(cluster_view_is_silent(cluster, now_ns, &found, &for_ns), kind != NULL);
	if (kind)
		ck_assert_str_eq(found, kind);
}

START_TEST(an_api_that_does_not_answer_is_noticed)
{
	uint64_t now_ns = 10 * SCHED_SILENT_NS;

	sync_all();
	is_silent(now_ns, NULL);
	fake_informer_fail(of("pods"), now_ns - SCHED_SILENT_NS);
	fake_informer_fail(of("storageclasses"), now_ns);
	is_silent(now_ns, NULL);
	is_silent(now_ns + 1, "pods");
	fake_informer_fail(of("pods"), 0);
	is_silent(now_ns + SCHED_SILENT_NS, NULL);
	is_silent(now_ns + SCHED_SILENT_NS + 1, "storageclasses");
}
END_TEST

START_TEST(a_class_that_comes_later_makes_claims_count)
{
	put_claim("a", "new", "n1", NULL);
	sync_all();
	reported("");
	put_class("new", DRIVER, "{}");
	reported("pvc-uid-a on n1 4096Mi\n");
	put_class("new", DRIVER, "{}");
	reported("");
}
END_TEST

START_TEST(the_node_of_a_pod_decides_for_all_its_volumes)
{
	const char *volumes = INLINE("\"size\":\"2Gi\"", "") "," CLAIM("a") "," CLAIM("b") "," CLAIM("x");

	put_claim("a", "late", NULL, NULL);
	put_claim("b", "late", "n1", "pvc-uid-b");
	sync_all();
	put("pods", pod(NULL, volumes, "True", ""));
	reported("pvc-uid-b ends\n");
	put("pods", pod("n1", volumes, "True", ""));
	reported("pvc-uid-a on n1 4096Mi until\n" HANDLE " on n1 2048Mi until\n");
	put("pods", pod("n1", volumes, "True", ""));
	reported("");
	cluster_view_tick(cluster, clock_ns() + RESERVATION_NS);
	reported("");
	put("pods", pod_in("Running", "n1", volumes, "True", ""));
	reported(HANDLE " ends\n");
	ck_assert_uint_le(fake_reservations_until_ns, clock_ns() + RESERVATION_NS / 2);
	fake_informer_remove(of("pods"), "ns/p");
	reported(HANDLE " nowhere\ndrop pod-uid\n");
}
END_TEST

START_TEST(a_pod_without_inline_volumes_is_forgotten_when_it_has_a_node)
{
	put_claim("a", "late", NULL, NULL);
	sync_all();
	put("pods", pod(NULL, CLAIM("a"), "True", ""));
	ck_assert_ptr_nonnull(informer_get(of("pods"), "ns/p"));
	put("pods", pod("n1", CLAIM("a"), "True", ""));
	reported("pvc-uid-a on n1 4096Mi until\n");
	ck_assert_ptr_null(informer_get(of("pods"), "ns/p"));
}
END_TEST

START_TEST(a_pod_that_was_not_scheduled_counts_no_more)
{
	sync_all();
	put("pods", pod(NULL, CLAIM("a"), "True", ""));
	reported("");
	put("pods", pod(NULL, CLAIM("a"), "False", "no room"));
	reported("unscheduled pod-uid\n");
	put("pods", pod(NULL, CLAIM("a"), "False", "no room"));
	reported("");
	put("pods", x_strdup("{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"pod-uid\","
			     "\"resourceVersion\":\"77\"},\"spec\":{\"volumes\":[" CLAIM(
				     "a") "]},\"status\":"
					  "{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
					  "\"message\":\"no room either\"}]}}"));
	reported("unscheduled pod-uid as of 77 again\n");
	fake_informer_remove(of("pods"), "ns/p");
	reported("drop pod-uid\n");
}
END_TEST

START_TEST(pods_that_are_still_there_are_seen_now_and_then)
{
	sync_all();
	put("pods", pod(NULL, CLAIM("a"), "True", ""));
	cluster_view_tick(cluster, RESERVATION_NS);
	reported("saw pod-uid\n");
	cluster_view_tick(cluster, RESERVATION_NS + RESERVATION_NS / 3 - 1);
	reported("");
	cluster_view_tick(cluster, RESERVATION_NS + RESERVATION_NS / 3);
	reported("saw pod-uid\n");
	fake_informer_remove(of("pods"), "ns/p");
	reported("drop pod-uid\n");
	cluster_view_tick(cluster, 2 * RESERVATION_NS);
	reported("");
}
END_TEST

START_TEST(the_webhook_learns_of_claims_and_classes)
{
	struct webhook_cluster w = cluster_view_webhook(cluster);
	const char *class = "";

	put_claim("a", "late", NULL, NULL);
	put("persistentvolumeclaims", x_strdup("{\"metadata\":{\"name\":\"b\",\"namespace\":\"ns\"}}"));
	ck_assert_int_eq(w.claim(w.user, "ns", "a", &class), WEBHOOK_CLAIM_UNBOUND);
	ck_assert_str_eq(class, "late");
	ck_assert_int_eq(w.claim(w.user, "ns", "b", &class), WEBHOOK_CLAIM_UNBOUND);
	ck_assert_ptr_null(class);
	ck_assert_int_eq(w.claim(w.user, "other", "a", &class), WEBHOOK_CLAIM_UNKNOWN);
	ck_assert_int_eq(w.class(w.user, "late"), WEBHOOK_CLASS_OURS);
	ck_assert_int_eq(w.class(w.user, "now"), WEBHOOK_CLASS_OTHER);
	ck_assert_int_eq(w.class(w.user, "theirs"), WEBHOOK_CLASS_OTHER);
	ck_assert_int_eq(w.class(w.user, "new"), WEBHOOK_CLASS_UNKNOWN);
	ck_assert_int_eq(w.class(w.user, NULL), WEBHOOK_CLASS_OTHER);
}
END_TEST

static void put_default(const char *name, const char *annotation, const char *provisioner)
{
	put("storageclasses",
		x_asprintf(
			"{\"metadata\":{\"name\":\"%s\",\"annotations\":{\"%s\":\"true\"}},\"provisioner\":"
			"\"%s\",\"volumeBindingMode\":\"WaitForFirstConsumer\"}",
			name, annotation, provisioner));
}

START_TEST(the_webhook_learns_of_the_default_class)
{
	struct webhook_cluster w = cluster_view_webhook(cluster);

	put_default("d1", "storageclass.kubernetes.io/is-default-class", "other");
	ck_assert_int_eq(w.class(w.user, NULL), WEBHOOK_CLASS_OTHER);
	put_default("d2", "storageclass.beta.kubernetes.io/is-default-class", DRIVER);
	ck_assert_int_eq(w.class(w.user, NULL), WEBHOOK_CLASS_OURS);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {nothing_is_said_before_all_is_known,
		claims_that_bind_late_are_needed_each_once, other_claims_are_not_needed,
		a_size_is_at_least_what_its_file_system_needs, what_is_not_there_yet_is_waited_for,
		a_claim_of_the_pod_must_be_its_own, a_bound_claim_keeps_the_pod_to_the_nodes_of_its_volume,
		a_volume_made_by_hand_with_a_key_of_others_keeps_the_pod_nowhere,
		inline_volumes_are_needed_where_the_driver_has_them,
		a_pod_has_so_many_new_volumes_and_no_more, pods_that_make_no_sense_are_refused,
		what_was_decided_before_the_beginning_counts,
		a_claim_counts_from_its_selected_node_on_until_that_is_taken_back,
		an_inline_volume_of_a_pod_that_has_been_running_is_in_the_reports,
		a_record_says_which_report_shows_the_volume, a_volume_is_not_needed_on_nodes_that_have_it,
		a_volume_that_was_made_keeps_the_pod_to_its_node,
		nodes_are_those_of_the_driver_that_have_objects, a_bound_claim_counts_a_minute_longer,
		another_claim_of_the_same_name_is_another, a_class_that_comes_later_makes_claims_count,
		the_webhook_alone_watches_claims_and_classes, an_api_that_does_not_answer_is_noticed,
		the_node_of_a_pod_decides_for_all_its_volumes,
		a_pod_without_inline_volumes_is_forgotten_when_it_has_a_node,
		a_pod_that_was_not_scheduled_counts_no_more, pods_that_are_still_there_are_seen_now_and_then,
		the_webhook_learns_of_claims_and_classes, the_webhook_learns_of_the_default_class,
		a_clone_keeps_the_pod_to_the_nodes_of_its_source,
		a_source_whose_node_is_not_known_is_waited_for, a_pod_may_need_a_clone_and_its_source,
		a_clone_that_was_made_stays_where_it_is, a_claim_from_a_snapshot_keeps_the_pod_to_its_node,
		a_source_of_another_driver_decides_nothing,
		a_claim_that_is_filled_takes_the_volume_of_its_prime_claim,
		a_populator_that_gives_up_leaves_the_claim_as_it_was,
		a_claim_that_only_has_the_name_of_a_prime_claim_fills_none,
		a_claim_of_another_namespace_keeps_no_pod_from_its_node,
		a_prime_claim_that_changes_leads_to_its_target_only};
	Suite *suite = suite_create("sched cluster_view");
	TCase *tcase = tcase_create("sched cluster_view");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
