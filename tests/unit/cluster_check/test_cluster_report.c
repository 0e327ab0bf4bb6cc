/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_check/cluster_report.h"

#include "scene.h"
#include "unit/unit.h"

static struct scene s;

static void compare(unsigned without)
{
	scene_open(&s, without);
	free(scene_compare(&s));
}

START_TEST(a_cluster_that_fits_is_one_line)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);

	compare(0);
	cluster_report_text(&s.lists, &s.findings, &out);
	ck_assert_str_eq(buf_str(&out),
		"1 PersistentVolumes, 1 PmemVolumes, 1 PmemNodes, 1 CSIStorageCapacities: consistent\n");
	scene_close(&s);
}
END_TEST

START_TEST(findings_are_a_table_and_each_reason_has_one_remedy)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);

	scene_open(&s, SCENE_PV | SCENE_RECORD | SCENE_NODE);
	scene_add(&s, SCENE_PV,
		"{\"metadata\":{\"name\":\"p\"},\"spec\":{\"csi\":{\"driver\":\"pmem\",\"volumeHandle\":\"g\"},"
		"\"claimRef\":{\"namespace\":\"ns\",\"name\":\"c\"}}}");
	scene_add(&s, SCENE_PV,
		"{\"metadata\":{\"name\":\"pvc-uid-1\"},\"spec\":{\"csi\":{\"driver\":\"pmem\","
		"\"volumeHandle\":\"h\"}}}");
	free(scene_compare(&s));
	cluster_report_text(&s.lists, &s.findings, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out),
		"REASON                         OBJECT                      HANDLE  NODE  CLAIM  WHAT\n"
		"PersistentVolumeWithoutVolume  PersistentVolume/p          g       -     ns/c   there is no "
		"PmemVolume with its handle\n"
		"PersistentVolumeWithoutVolume  PersistentVolume/pvc-uid-1  h       -     -      there is no "
		"PmemVolume with its handle\n"
		"PmemNodeWithoutNode            PmemNode/n1.pmem            -       n1    -      no Node has the "
		"label pmem/node=n1, which kubelet sets when the driver registers\n"
		"\n"
		"PersistentVolumeWithoutVolume: if "));
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\nPmemNodeWithoutNode: if "));
	ck_assert_ptr_null(strstr(strstr(buf_str(&out), "\nPersistentVolumeWithoutVolume: ") + 1,
		"\nPersistentVolumeWithoutVolume: "));
	ck_assert_ptr_nonnull(strstr(buf_str(&out),
		"\n\n2 PersistentVolumes, 0 PmemVolumes, 1 PmemNodes, 1 CSIStorageCapacities: 3 findings\n"));
	scene_close(&s);
}
END_TEST

START_TEST(volumes_on_their_way_are_in_the_line)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);

	scene_open(&s, SCENE_PV | SCENE_RECORD);
	SCENE_RECORD_IS(&s, .handle = "", .phase = "Creating");
	SCENE_RECORD_IS(&s, .spec = ",\"deleting\":true");
	free(scene_compare(&s));
	cluster_report_text(&s.lists, &s.findings, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), ": consistent, 1 being created, 1 being deleted\n"));
	scene_close(&s);
}
END_TEST

START_TEST(json_has_numbers_and_findings)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(4096);

	compare(0);
	cluster_report_json(&s.lists, &s.findings, &out);
	ck_assert_str_eq(buf_str(&out),
		"{\"schemaVersion\":1,\"driver\":\"pmem\",\"consistent\":true,\"persistentVolumes\":1,"
		"\"pmemVolumes\":1,\"creating\":0,\"deleting\":0,\"pmemNodes\":1,\"capacities\":1,\"findings\":[]}\n");
	scene_close(&s);
	buf_reset(&out);
	compare(SCENE_RECORD | SCENE_CLASS);
	cluster_report_json(&s.lists, &s.findings, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\"consistent\":false,"));
	ck_assert_ptr_nonnull(strstr(buf_str(&out),
		"\"findings\":[{\"reason\":\"DriverWithoutStorageClass\",\"kind\":\"CSIDriver\",\"name\":\"pmem\","));
	ck_assert_ptr_nonnull(strstr(buf_str(&out),
		"{\"reason\":\"PersistentVolumeWithoutVolume\",\"kind\":\"PersistentVolume\","
		"\"name\":\"pvc-uid-1\",\"volumeHandle\":\"pvc-"));
	ck_assert_ptr_nonnull(strstr(buf_str(&out),
		"\"claim\":\"ns/c\",\"text\":\"there is no PmemVolume with its handle\",\"remedy\":\"if "));
	ck_assert_ptr_nonnull(strstr(buf_str(&out),
		"{\"reason\":\"CapacityWithoutStorageClass\",\"kind\":\"CSIStorageCapacity\",\"name\":"
		"\"pmem-csi/csisc-1\",\"node\":\"n1\",\"text\":\"its StorageClass fast does not exist\","));
	scene_close(&s);
}
END_TEST

UNIT_MAIN("cluster_report", a_cluster_that_fits_is_one_line,
	findings_are_a_table_and_each_reason_has_one_remedy, volumes_on_their_way_are_in_the_line,
	json_has_numbers_and_findings)
