/* SPDX-License-Identifier: Apache-2.0 */
#include "csi.pb-c.h"

#include "base/mem.h"
#include "csi/field_limits.h"
#include "unit/unit.h"

static struct error *err;

static char *repeat(char c, size_t n)
{
	char *text = x_malloc(n + 1);

	memset(text, c, n);
	text[n] = '\0';
	return text;
}

START_TEST(a_string_may_have_128_bytes_and_no_more)
{
	Csi__V1__DeleteVolumeRequest q;
	csi__v1__delete_volume_request__init(&q);
	CLEANUP(free_charp) char *longest = repeat('a', 128);
	CLEANUP(free_charp) char *longer = repeat('a', 129);

	q.volume_id = longest;
	ASSERT_OK(csi_check_request(&q.base, &err));
	q.volume_id = longer;
	ASSERT_FAILS(csi_check_request(&q.base, &err), ERR_INVALID_ARGUMENT, "volume_id");
}
END_TEST

START_TEST(a_path_may_have_4096_bytes_and_no_more)
{
	Csi__V1__NodeUnpublishVolumeRequest q;
	csi__v1__node_unpublish_volume_request__init(&q);
	CLEANUP(free_charp) char *longest = repeat('/', 4096);
	CLEANUP(free_charp) char *longer = repeat('/', 4097);

	q.target_path = longest;
	ASSERT_OK(csi_check_request(&q.base, &err));
	q.target_path = longer;
	ASSERT_FAILS(csi_check_request(&q.base, &err), ERR_INVALID_ARGUMENT, "target_path");
}
END_TEST

START_TEST(a_map_is_limited_in_all_not_by_entry)
{
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__CreateVolumeRequest__ParametersEntry a;
	csi__v1__create_volume_request__parameters_entry__init(&a);
	Csi__V1__CreateVolumeRequest__ParametersEntry b;
	csi__v1__create_volume_request__parameters_entry__init(&b);
	Csi__V1__CreateVolumeRequest__ParametersEntry *list[] = {&a, &b};
	CLEANUP(free_charp) char *value = repeat('v', 2047);
	char key_a[] = "a";
	char key_b[] = "b";

	a.key = key_a;
	b.key = key_b;
	a.value = b.value = value;
	q.n_parameters = 2;
	q.parameters = list;
	ASSERT_OK(csi_check_request(&q.base, &err));
	char key_longer[] = "bb";
	b.key = key_longer;
	ASSERT_FAILS(csi_check_request(&q.base, &err), ERR_INVALID_ARGUMENT, "parameters");
}
END_TEST

START_TEST(nested_messages_are_checked_too)
{
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__VolumeCapability c;
	csi__v1__volume_capability__init(&c);
	Csi__V1__VolumeCapability__MountVolume m;
	csi__v1__volume_capability__mount_volume__init(&m);
	Csi__V1__VolumeCapability *list[] = {&c};
	CLEANUP(free_charp) char *longer = repeat('x', 129);

	m.fs_type = longer;
	c.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	c.mount = &m;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	ASSERT_FAILS(csi_check_request(&q.base, &err), ERR_INVALID_ARGUMENT, "fs_type");
}
END_TEST

START_TEST(topology_entries_three_levels_down_are_checked)
{
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__TopologyRequirement r;
	csi__v1__topology_requirement__init(&r);
	Csi__V1__Topology t;
	csi__v1__topology__init(&t);
	Csi__V1__Topology__SegmentsEntry e;
	csi__v1__topology__segments_entry__init(&e);
	Csi__V1__Topology *topologies[] = {&t};
	Csi__V1__Topology__SegmentsEntry *entries[] = {&e};
	CLEANUP(free_charp) char *longest = repeat('k', 4096);
	char value[] = "v";

	e.key = longest;
	t.n_segments = 1;
	t.segments = entries;
	r.n_preferred = 1;
	r.preferred = topologies;
	q.accessibility_requirements = &r;
	ASSERT_OK(csi_check_request(&q.base, &err));
	e.value = value;
	ASSERT_FAILS(csi_check_request(&q.base, &err), ERR_INVALID_ARGUMENT, "segments has more than 4096");
}
END_TEST

START_TEST(a_list_of_strings_is_limited_in_all)
{
	Csi__V1__VolumeCapability__MountVolume m;
	csi__v1__volume_capability__mount_volume__init(&m);
	CLEANUP(free_charp) char *flag = repeat('f', 2048);
	char *flags[] = {flag, flag, flag};

	m.n_mount_flags = 2;
	m.mount_flags = flags;
	ASSERT_OK(csi_check_request(&m.base, &err));
	m.n_mount_flags = 3;
	ASSERT_FAILS(csi_check_request(&m.base, &err), ERR_INVALID_ARGUMENT, "mount_flags");
}
END_TEST

START_TEST(a_required_string_is_named_when_it_is_missing)
{
	ASSERT_OK(csi_require("v", "volume_id", &err));
	ASSERT_FAILS(csi_require("", "volume_id", &err), ERR_INVALID_ARGUMENT, "volume_id is missing");
}
END_TEST

UNIT_MAIN("csi/field_limits", a_string_may_have_128_bytes_and_no_more, a_path_may_have_4096_bytes_and_no_more,
	a_map_is_limited_in_all_not_by_entry, nested_messages_are_checked_too,
	topology_entries_three_levels_down_are_checked, a_list_of_strings_is_limited_in_all,
	a_required_string_is_named_when_it_is_missing)
