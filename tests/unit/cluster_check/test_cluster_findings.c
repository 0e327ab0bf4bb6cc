/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_check/cluster_findings.h"

#include "base/mem.h"
#include "controller/volume_key.h"
#include "scene.h"
#include "unit/unit.h"

#define OF_PV     " PersistentVolume/pvc-uid-1 "
#define OF_RECORD " PmemVolume/@K "
#define READY     "\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}"

static struct scene s;

/* Compares the findings in @s with @expected, in which "@K" stands for the name of the record, and ends the
 * scene. */
static void finds(const char *expected)
{
	struct volume_key key = volume_key_of_name(SCENE_VOLUME);
	CLEANUP(free_charp) char *found = scene_compare(&s);
	CLEANUP(free_charp) char *name = x_asprintf("%s.pmem", key.hex);
	CLEANUP(buf_done) struct buf wanted = BUF_INIT(4096);

	for (const char *at = expected; *at; at++) {
		if (strncmp(at, "@K", 2) != 0)
			buf_addc(&wanted, *at);
		else
			buf_adds(&wanted, (at++, name));
	}
	ck_assert_str_eq(found, buf_str(&wanted));
	scene_close(&s);
}

/* The first finding says @text. */
static void says(const char *text)
{
	free(scene_compare(&s));
	ck_assert_uint_ge(s.findings.n, 1);
	ck_assert_msg(strstr(s.findings.list[0].text, text), "%s", s.findings.list[0].text);
}

/* @record is in place of the one that fits. */
static void record_finds(unsigned without, struct scene_record record, const char *expected)
{
	scene_open(&s, without | SCENE_RECORD);
	scene_add_record(&s, &record);
	finds(expected);
}

#define RECORD_FINDS(without, expected, ...)                                                                 \
	record_finds(without, (struct scene_record){__VA_ARGS__}, expected)

START_TEST(where_everything_fits_nothing_is_found)
{
	scene_open(&s, 0);
	finds("");
}
END_TEST

/* The name of a driver, or a namespace, may be wrong. */
START_TEST(where_nothing_is_of_the_driver_that_is_found)
{
	scene_open(&s, ~0u);
	says("no StorageClass has it as provisioner");
	finds("DriverWithoutStorageClass CSIDriver/pmem - -\n"
	      "DriverWithoutNode CSIDriver/pmem - -\n");
	scene_open(&s, ~0u);
	scene_add(&s, SCENE_CLASS, "{\"metadata\":{\"name\":\"fast\"},\"provisioner\":\"other\"}");
	finds("DriverWithoutStorageClass CSIDriver/pmem - -\n"
	      "DriverWithoutNode CSIDriver/pmem - -\n");
}
END_TEST

#define WITH_CAPACITY(bytes)                                                                                 \
	"{\"metadata\":{\"name\":\"n1.pmem\"},\"spec\":{\"node\":\"n1\"},\"status\":{\"conditions\":["       \
	"{\"type\":\"Ready\",\"status\":\"True\"}],\"regions\":[{\"name\":\"r\",\"largestVolume\":\"" bytes  \
	"\"}]}}"

#define LATE                                                                                                 \
	"{\"metadata\":{\"name\":\"late\"},\"provisioner\":\"pmem\",\"volumeBindingMode\":\"WaitForFirstConsumer\"}"

START_TEST(a_namespace_without_the_capacity_that_nodes_have_is_found)
{
	scene_open(&s, SCENE_CAPACITY | SCENE_PMEM_NODE);
	scene_add(&s, SCENE_PMEM_NODE, WITH_CAPACITY("1Gi"));
	finds("");
	scene_open(&s, SCENE_CAPACITY | SCENE_PMEM_NODE);
	scene_add(&s, SCENE_CLASS, LATE);
	scene_add(&s, SCENE_PMEM_NODE, WITH_CAPACITY("1Gi"));
	says("it has no CSIStorageCapacity of the driver");
	finds("NamespaceWithoutCapacity Namespace/pmem-csi - -\n");
	scene_open(&s, SCENE_CAPACITY | SCENE_PMEM_NODE);
	scene_add(&s, SCENE_CLASS, LATE);
	scene_add(&s, SCENE_PMEM_NODE, WITH_CAPACITY("0"));
	finds("");
	scene_open(&s, SCENE_PMEM_NODE);
	scene_add(&s, SCENE_CLASS, LATE);
	scene_add(&s, SCENE_PMEM_NODE, WITH_CAPACITY("1Gi"));
	finds("");
}
END_TEST

static void chosen_node_finds(const char *node, const char *csi_node, const char *expected)
{
	scene_open(&s, 0);
	scene_add(&s, SCENE_CHOSEN, node);
	if (csi_node)
		scene_add(&s, /* part= */ 0, csi_node);
	finds(expected);
}

START_TEST(a_node_that_is_chosen_and_has_no_driver_is_found)
{
	static const char m2[] = "{\"metadata\":{\"name\":\"m2\",\"labels\":{\"pmem/node\":\"n2\"}}}";

	chosen_node_finds(
		"{\"metadata\":{\"name\":\"m2\",\"labels\":{}}}", NULL, "NodeWithoutDriver Node/m2 - -\n");
	/* kubelet leaves the label of a driver that has gone */
	chosen_node_finds(
		m2, "{\"metadata\":{\"name\":\"m2\"},\"spec\":{}}", "NodeWithoutDriver Node/m2 n2 -\n");
	/* its CSINode has the driver: NodeWithoutPmemNode, of the Nodes with the driver's label */
	chosen_node_finds(
		m2, "{\"metadata\":{\"name\":\"m2\"},\"spec\":{\"drivers\":[{\"name\":\"pmem\"}]}}", "");
	chosen_node_finds("{\"metadata\":{\"name\":\"n1\",\"labels\":{\"pmem/node\":\"n1\"}}}", NULL, "");
}
END_TEST

START_TEST(a_volume_that_grows_is_no_finding)
{
	RECORD_FINDS(0, "", .spec = ",\"size\":\"3Gi\",\"attempts\":2", .status = ",\"size\":\"1Gi\"");
}
END_TEST

START_TEST(a_pv_without_a_record_is_found)
{
	scene_open(&s, SCENE_RECORD);
	says("no PmemVolume with its handle");
	finds("PersistentVolumeWithoutVolume" OF_PV "- ns/c\n");
	scene_open(&s, SCENE_PV);
	scene_add(&s, SCENE_PV,
		"{\"metadata\":{\"name\":\"q\"},\"spec\":{\"csi\":{\"driver\":\"pmem\",\"volumeHandle\":\"@H\"}}}");
	finds("");
}
END_TEST

START_TEST(a_snapshot_needs_no_pv)
{
	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, "VolumeWithoutPersistentVolume" OF_RECORD "n1 -\n", .spec = "");
	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, "", .spec = ",\"snapshot\":true");
}
END_TEST

START_TEST(a_pv_whose_record_has_the_handle_of_another_node_is_found)
{
	RECORD_FINDS(0,
		"PersistentVolumeWithoutVolume" OF_PV "n1 ns/c\nVolumeWithoutPersistentVolume" OF_RECORD
		"n1 ns/c\n",
		.handle = "@O");
}
END_TEST

START_TEST(a_phase_in_which_the_volume_cannot_be_used_is_found)
{
	RECORD_FINDS(0, "", .phase = "");
	RECORD_FINDS(0, "VolumeLost" OF_PV "n1 ns/c\n", .phase = "Lost");
	RECORD_FINDS(0, "VolumeDamaged" OF_PV "n1 ns/c\n", .phase = "Damaged");
	RECORD_FINDS(0, "VolumeMissing" OF_PV "n1 ns/c\n", .phase = "Missing");
	RECORD_FINDS(0, "VolumeUnreachable" OF_PV "n1 ns/c\n", .phase = "Unreachable");
	RECORD_FINDS(0, "VolumeNotReady" OF_PV "n1 ns/c\n", .phase = "Later");
	RECORD_FINDS(0, "VolumeNotReady" OF_PV "n1 ns/c\n", .phase = "Creating", .handle = "");
}
END_TEST

START_TEST(the_reason_of_a_phase_is_said)
{
	scene_open(&s, SCENE_RECORD);
	SCENE_RECORD_IS(&s, .phase = "Missing",
		.status =
			",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"NoCopy\"}]");
	says("has the phase Missing, reason NoCopy");
	scene_close(&s);
}
END_TEST

static void deletion_finds(const char *pv_metadata, const char *pv_phase, const char *expected)
{
	CLEANUP(free_charp)
	char *pv =
		x_asprintf("{\"metadata\":{\"name\":\"pvc-uid-1\"%s},\"spec\":{\"csi\":{\"driver\":\"pmem\","
			   "\"volumeHandle\":\"@H\"}},\"status\":{\"phase\":\"%s\"}}",
			pv_metadata, pv_phase);

	scene_open(&s, SCENE_PV | SCENE_RECORD);
	scene_add(&s, SCENE_PV, pv);
	SCENE_RECORD_IS(&s, .spec = ",\"deleting\":true", .phase = "Deleting");
	finds(expected);
}

START_TEST(a_deletion_is_found_only_while_the_pv_is_in_use)
{
	deletion_finds("", "Bound", "BoundVolumeIsBeingDeleted" OF_PV "n1 -\n");
	deletion_finds("", "Available", "BoundVolumeIsBeingDeleted" OF_PV "n1 -\n");
	deletion_finds("", "Released", "");
	deletion_finds("", "Failed", "");
	deletion_finds(",\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"", "Bound", "");
}
END_TEST

START_TEST(a_volume_without_a_pv_is_found_with_what_is_known_of_its_claim)
{
	scene_open(&s, SCENE_PV);
	says("while its claim exists");
	finds("VolumeWithoutPersistentVolume" OF_RECORD "n1 ns/c\n");
	scene_open(&s, SCENE_PV | SCENE_CLAIM);
	says("its claim does not exist");
	finds("VolumeWithoutPersistentVolume" OF_RECORD "n1 -\n");
	scene_open(&s, SCENE_PV | SCENE_RECORD);
	SCENE_RECORD_IS(&s, .volume_name = "", .status = ",\"claim\":\"ns/d\"");
	says("the volume name is not known");
	finds("VolumeWithoutPersistentVolume" OF_RECORD "n1 ns/d\n");
}
END_TEST

/* @since: when the condition Ready became what it is */
static void deletion_since(const char *since, const char *phase, const char *nodes, const char *expected)
{
	CLEANUP(free_charp)
	char *status = x_asprintf(
		",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Deleting\","
		"\"lastTransitionTime\":\"%s\"}]",
		since);

	scene_open(&s, SCENE_PV | SCENE_CLAIM | SCENE_RECORD);
	s.lists.scope.now_s = 1767323045; /* 2026-01-02T03:04:05Z */
	SCENE_RECORD_IS(&s, .spec = ",\"deleting\":true", .phase = phase, .nodes = nodes, .status = status);
	finds(expected);
}

START_TEST(a_snapshot_whose_deletion_nobody_repeats_is_deleted_by_hand)
{
	scene_open(&s, SCENE_PV | SCENE_CLAIM | SCENE_RECORD);
	s.lists.scope.now_s = 1767323045; /* 2026-01-02T03:04:05Z */
	SCENE_RECORD_IS(&s, .spec = ",\"deleting\":true,\"snapshot\":true", .phase = "Deleting",
		.status = ",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"Deleting\","
			  "\"lastTransitionTime\":\"2026-01-02T02:00:00Z\"}]");
	says("VolumeSnapshotContent has gone, no caller repeats the deletion: ");
	says("csi-client delete-snapshot pvc-");
	finds("DeletionStalled" OF_RECORD "n1 -\n");
}
END_TEST

START_TEST(a_deletion_that_takes_long_is_found)
{
	deletion_since("2026-01-02T02:49:04Z", "Deleting", NULL, "DeletionStalled" OF_RECORD "n1 -\n");
	deletion_since("2026-01-02T02:49:05Z", "Deleting", NULL, "");
	deletion_since("2026-01-02T02:49:04Z", "Erasing", NULL, "");
	deletion_since("2026-01-02T02:49:04Z", "Deleting", "[]", "");
}
END_TEST

START_TEST(a_volume_whose_name_is_not_that_of_a_claim_is_found)
{
	struct volume_key key = volume_key_of_name("by-hand");
	CLEANUP(free_charp) char *name = x_asprintf("%s.pmem", key.hex);
	CLEANUP(free_charp)
	char *expected = x_asprintf("VolumeWithoutPersistentVolume PmemVolume/%s n1 -\n", name);

	scene_open(&s, 0);
	SCENE_RECORD_IS(&s, .name = name, .volume_name = "by-hand", .handle = "old-form");
	says("\"by-hand\" is not that of a claim");
	finds(expected);
}
END_TEST

static void counts(unsigned without, struct scene_record record, size_t n_creating, size_t n_deleting)
{
	scene_open(&s, without | SCENE_PV | SCENE_RECORD);
	scene_add_record(&s, &record);
	free(scene_compare(&s));
	ck_assert_uint_eq(s.findings.n_creating, n_creating);
	ck_assert_uint_eq(s.findings.n_deleting, n_deleting);
	finds("");
}

#define COUNTS(without, n_creating, n_deleting, ...)                                                         \
	counts(without, (struct scene_record){__VA_ARGS__}, n_creating, n_deleting)

START_TEST(a_volume_on_its_way_is_counted_and_no_finding)
{
	COUNTS(0, 1, 0, .handle = "", .phase = "Creating");
	COUNTS(SCENE_CLAIM, 1, 0, .handle = "", .phase = "Creating");
	COUNTS(0, 1, 0, .handle = "", .phase = "Creating", .nodes = "[]", .copies = "[]");
	COUNTS(SCENE_CLAIM, 0, 1, .spec = ",\"deleting\":true", .phase = "Erasing");
	COUNTS(SCENE_CLAIM, 0, 1, .spec = ",\"deleting\":true", .phase = "Deleting", .nodes = "[]");
	scene_open(&s, 0);
	free(scene_compare(&s));
	ck_assert_uint_eq(s.findings.n_creating + s.findings.n_deleting, 0);
	scene_close(&s);
}
END_TEST

START_TEST(a_record_without_node_pv_and_claim_is_found)
{
	static const char finding[] = "RecordWithoutNode" OF_RECORD "- -\n";

	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, finding, .nodes = "[]", .copies = "[]");
	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, finding, .nodes = "[]", .copies = "[]", .handle = "");
	RECORD_FINDS(SCENE_CLAIM, "", .nodes = "[]", .copies = "[]");
	RECORD_FINDS(SCENE_PV, "VolumeWithoutPersistentVolume" OF_RECORD "- ns/c\n", .nodes = "[]",
		.copies = "[]");
}
END_TEST

START_TEST(a_copy_on_a_node_that_the_spec_does_not_name_is_found)
{
	static const char finding[] = "RecordLacksNode" OF_RECORD "n2 ns/c\n";

	RECORD_FINDS(0, finding, .copies = "[{\"node\":\"n2\",\"phase\":\"Ready\"}]");
	RECORD_FINDS(0, finding, .copies = "[{\"node\":\"n2\",\"phase\":\"Unreachable\"}]");
	RECORD_FINDS(0, finding, .copies = "[{\"node\":\"n2\"}]");
	RECORD_FINDS(0, "", .copies = "[{\"node\":\"n2\",\"phase\":\"Erasing\"}]");
	RECORD_FINDS(SCENE_PV, "", .copies = "[{\"node\":\"n2\",\"phase\":\"Ready\"}]",
		.spec = ",\"deleting\":true");
}
END_TEST

START_TEST(a_node_of_the_spec_that_the_cluster_does_not_have_is_found)
{
	RECORD_FINDS(0, "RecordOfUnknownNode" OF_RECORD "n9 ns/c\n", .nodes = "[\"n1\",\"n9\"]");
	scene_open(&s, SCENE_RECORD);
	SCENE_RECORD_IS(&s, .nodes = "[\"n1\",\"n2\"]");
	scene_add(&s, SCENE_NODE, "{\"metadata\":{\"name\":\"m2\",\"labels\":{\"pmem/node\":\"n2\"}}}");
	finds("");
	scene_open(&s, SCENE_RECORD);
	SCENE_RECORD_IS(&s, .nodes = "[\"n1\",\"n2\"]");
	scene_add(&s, SCENE_PMEM_NODE,
		"{\"metadata\":{\"name\":\"n2.pmem\"},\"spec\":{\"node\":\"n2\"}," READY "}");
	finds("PmemNodeWithoutNode PmemNode/n2.pmem n2 -\n");
}
END_TEST

START_TEST(what_a_lost_node_may_have_is_found_once)
{
	static const char lost[] = "[{\"node\":\"n9\",\"phase\":\"Lost\"}]";

	RECORD_FINDS(0, "VolumeLost" OF_PV "n9 ns/c\n", .nodes = "[\"n9\"]", .copies = lost, .phase = "Lost");
	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, "", .nodes = "[\"n9\"]", .copies = lost, .phase = "Lost",
		.spec = ",\"retained\":true");
}
END_TEST

START_TEST(a_volume_that_returned_after_it_was_deleted_is_found)
{
	static const char retained[] = ",\"retained\":true";

	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, "RetainedVolume" OF_RECORD "n1 -\n", .phase = "Retained",
		.spec = retained);
	/* It is used again. */
	RECORD_FINDS(0, "", .phase = "Retained", .spec = retained);
}
END_TEST

START_TEST(a_record_that_nothing_keeps_is_found)
{
	static const char finding[] = "RecordWithoutFinalizer" OF_RECORD "n1 ns/c\n";

	RECORD_FINDS(0, finding, .metadata = "");
	RECORD_FINDS(0, finding, .metadata = ",\"finalizers\":[\"of.others/x\"]");
	RECORD_FINDS(0, "", .metadata = ",\"finalizers\":[\"of.others/x\",\"pmem-csi.intel.com/copies\"]");
	RECORD_FINDS(0, "",
		.metadata =
			",\"finalizers\":[\"of.others/x\"],\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"");
}
END_TEST

START_TEST(an_object_that_does_not_have_the_name_of_its_volume_is_found)
{
	struct volume_key key = volume_key_of_name("old-form");
	CLEANUP(free_charp) char *name = x_asprintf("%s.pmem", key.hex);
	CLEANUP(free_charp)
	char *expected = x_asprintf("VolumeWithoutPersistentVolume PmemVolume/%s n1 -\n", name);

	RECORD_FINDS(0, "RecordNameMismatch" OF_RECORD "n1 -\n", .volume_name = "pvc-uid-2");
	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, "RecordNameMismatch" OF_RECORD "n1 -\n", .volume_name = "other",
		.handle = "", .phase = "Creating");
	RECORD_FINDS(SCENE_PV,
		"VolumeWithoutPersistentVolume PmemVolume/x.pmem n1 ns/c\nRecordNameMismatch PmemVolume/x.pmem n1 ns/c\n",
		.name = "x.pmem");
	RECORD_FINDS(SCENE_PV,
		"VolumeWithoutPersistentVolume" OF_RECORD "n1 -\nRecordNameMismatch" OF_RECORD "n1 -\n",
		.volume_name = "", .handle = "old-form");
	/* The name follows from a handle of another form, where no volume name is known. */
	RECORD_FINDS(SCENE_PV, expected, .name = name, .volume_name = "", .handle = "old-form");
	RECORD_FINDS(SCENE_PV, "VolumeWithoutPersistentVolume" OF_RECORD "n1 ns/c\n", .handle = "old-form");
	RECORD_FINDS(SCENE_PV | SCENE_CLAIM, "", .volume_name = "", .handle = "", .phase = "Creating");
}
END_TEST

START_TEST(a_pmem_node_without_a_node_is_found)
{
	scene_open(&s, SCENE_NODE);
	says("no Node has the label pmem/node=n1");
	finds("PmemNodeWithoutNode PmemNode/n1.pmem n1 -\n");
	scene_open(&s, 0);
	scene_add(&s, SCENE_PMEM_NODE, "{\"metadata\":{\"name\":\"x\"},\"spec\":{}," READY "}");
	finds("PmemNodeWithoutNode PmemNode/x - -\n");
}
END_TEST

START_TEST(a_pmem_node_that_is_not_ready_is_found)
{
	scene_open(&s, SCENE_PMEM_NODE);
	scene_add(&s, SCENE_PMEM_NODE,
		"{\"metadata\":{\"name\":\"n1.pmem\"},\"spec\":{\"node\":\"n1\"},\"status\":{\"conditions\":["
		"{\"type\":\"Ready\",\"status\":\"Unknown\",\"reason\":\"LeaseExpired\"}]}}");
	says("is Unknown, reason LeaseExpired");
	finds("PmemNodeNotReady PmemNode/n1.pmem n1 -\n");
	scene_open(&s, SCENE_PMEM_NODE);
	scene_add(&s, SCENE_PMEM_NODE, "{\"metadata\":{\"name\":\"n1.pmem\"},\"spec\":{\"node\":\"n1\"}}");
	finds("PmemNodeNotReady PmemNode/n1.pmem n1 -\n");
}
END_TEST

#define M2 "{\"metadata\":{\"name\":\"m2\",\"labels\":{\"pmem/node\":\"n2\"}}}"

static void second_node_finds(const char *csi_node, const char *expected)
{
	scene_open(&s, 0);
	scene_add(&s, SCENE_NODE, M2);
	if (csi_node)
		scene_add(&s, /* part= */ 0, csi_node);
	finds(expected);
}

START_TEST(a_node_whose_driver_has_no_pmem_node_is_found)
{
	second_node_finds(
		"{\"metadata\":{\"name\":\"m2\"},\"spec\":{\"drivers\":[{\"name\":\"other\"},{\"name\":\"pmem\"}]}}",
		"NodeWithoutPmemNode Node/m2 n2 -\n");
	second_node_finds(
		"{\"metadata\":{\"name\":\"m2\"},\"spec\":{\"drivers\":[{\"name\":\"other\"}]}}", "");
	second_node_finds("{\"metadata\":{\"name\":\"m2\"},\"spec\":{}}", "");
	second_node_finds(NULL, "");
}
END_TEST

static void capacity_finds(
	unsigned without, const char *class_name, const char *topology, const char *expected)
{
	CLEANUP(free_charp)
	char *json =
		x_asprintf("{\"metadata\":{\"name\":\"c\",\"namespace\":\"ns\"},\"storageClassName\":\"%s\","
			   "\"nodeTopology\":{\"matchLabels\":{%s}}}",
			class_name, topology);

	scene_open(&s, without | SCENE_CAPACITY);
	scene_add(&s, SCENE_CAPACITY, json);
	finds(expected);
}

START_TEST(a_capacity_object_of_no_class_or_node_is_found)
{
	static const char n1[] = "\"pmem/node\":\"n1\"";

	capacity_finds(0, "fast", n1, "");
	capacity_finds(0, "gone", n1, "CapacityWithoutStorageClass CSIStorageCapacity/ns/c n1 -\n");
	capacity_finds(SCENE_CLASS, "fast", n1,
		"DriverWithoutStorageClass CSIDriver/pmem - -\n"
		"CapacityWithoutStorageClass CSIStorageCapacity/ns/c n1 -\n");
	capacity_finds(
		0, "fast", "\"pmem/node\":\"n2\"", "CapacityWithoutPmemNode CSIStorageCapacity/ns/c n2 -\n");
	capacity_finds(0, "fast", "\"zone\":\"n1\"", "CapacityWithoutPmemNode CSIStorageCapacity/ns/c - -\n");
}
END_TEST

/* Findings of @s, whose lists are released. */
static struct cluster_findings take_findings(void)
{
	struct cluster_findings taken;

	free(scene_compare(&s));
	taken = s.findings;
	s.findings = (struct cluster_findings){0};
	scene_close(&s);
	return taken;
}

START_TEST(only_what_was_found_before_is_kept)
{
	CLEANUP(cluster_findings_done) struct cluster_findings none = {0};
	CLEANUP(cluster_findings_done) struct cluster_findings before = {0};
	CLEANUP(cluster_findings_done) struct cluster_findings now = {0};

	scene_open(&s, SCENE_RECORD);
	SCENE_RECORD_IS(&s, .metadata = "", .nodes = "[\"n1\",\"n8\"]");
	before = take_findings();
	scene_open(&s, SCENE_RECORD | SCENE_CLASS);
	SCENE_RECORD_IS(&s, .metadata = "", .nodes = "[\"n1\",\"n9\"]");
	now = take_findings();
	ck_assert_uint_eq(now.n, 4);
	cluster_findings_keep(&now, &before);
	ck_assert_uint_eq(now.n, 1);
	ck_assert_str_eq(cluster_reason_name(now.list[0].reason), "RecordWithoutFinalizer");
	cluster_findings_keep(&now, &now);
	ck_assert_uint_eq(now.n, 1);
	cluster_findings_keep(&now, &none);
	ck_assert_uint_eq(now.n, 0);
}
END_TEST

UNIT_MAIN("cluster_findings", where_everything_fits_nothing_is_found,
	where_nothing_is_of_the_driver_that_is_found,
	a_namespace_without_the_capacity_that_nodes_have_is_found,
	a_node_that_is_chosen_and_has_no_driver_is_found, a_volume_that_grows_is_no_finding,
	a_pv_without_a_record_is_found, a_snapshot_needs_no_pv,
	a_pv_whose_record_has_the_handle_of_another_node_is_found,
	a_phase_in_which_the_volume_cannot_be_used_is_found, the_reason_of_a_phase_is_said,
	a_deletion_is_found_only_while_the_pv_is_in_use, a_deletion_that_takes_long_is_found,
	a_snapshot_whose_deletion_nobody_repeats_is_deleted_by_hand,
	a_volume_without_a_pv_is_found_with_what_is_known_of_its_claim,
	a_volume_whose_name_is_not_that_of_a_claim_is_found, a_volume_on_its_way_is_counted_and_no_finding,
	a_record_without_node_pv_and_claim_is_found, a_copy_on_a_node_that_the_spec_does_not_name_is_found,
	a_node_of_the_spec_that_the_cluster_does_not_have_is_found, what_a_lost_node_may_have_is_found_once,
	a_volume_that_returned_after_it_was_deleted_is_found, a_record_that_nothing_keeps_is_found,
	an_object_that_does_not_have_the_name_of_its_volume_is_found, a_pmem_node_without_a_node_is_found,
	a_pmem_node_that_is_not_ready_is_found, a_node_whose_driver_has_no_pmem_node_is_found,
	a_capacity_object_of_no_class_or_node_is_found, only_what_was_found_before_is_kept)
