/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/unit.h"
#include "volume/id.h"

/* Hexadecimal parts by sha224sum(1). */
static const struct {
	const char *name;
	const char *node_id;
	const char *id;
} minted[] = {
	{"pvc-1234", "node-1", "pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee.3eafcf75"},
	{"pvc-1234", "node-2", "pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee.1cbfe243"},
	/* of a cache volume, on whatever node */
	{"pvc-1234", NULL, "pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee9d14aa3f6"},
	{"pvmove", NULL, "vol-7997e55d8343cbd544f77caf35e1efff7b434aa0fd2b1f84f2a82328"},
	{"0", "n", "0-dfd5f9139a820075df69d7895015360b76d0360f3d4b77a.73363bb5"},
	/* of the first 6 bytes only harmless ones are kept */
	{"a b/c.d", "node-1", "abc-ea44b3d0707ef262d0c3921562e24fe6f00f67838bc3467.3eafcf75"},
	{"a.._b", "n", "a_b-6b4ed84575dab571c0859e55718f359b358fc0bfeebcd50.73363bb5"},
	{"\xc3\x9cn\xc3\xaf", "n", "n-bc2e20bd06c8e27f809ab971ee3139fa2ef69cedaa062fa.73363bb5"},
	/* none is left, or the first is no letter or digit */
	{"\xc3\xa9/\xc3\xa9", "n", "vol-881a16de66f6b366a6803194e548e439fdb78542f70b408.73363bb5"},
	{"-x", "n", "vol-fb07f1e943a6338e93ef41d0a96ae4795043e0e6fa19e1d.73363bb5"},
	/* LVM reserves it */
	{"pvmove", "n", "vol-7997e55d8343cbd544f77caf35e1efff7b434aa0fd2b1f8.73363bb5"},
	{"pvmove_1", "node-1", "vol-ead6fb02198a284dc84ae7f958bb1294cfecc336fcc4181.3eafcf75"},
	{"x_mlogx", "n", "vol-f19f739b9dd760979e1b74506979958711517eb1e338770.73363bb5"},
	/* it would, were more than 6 bytes kept */
	{"a_tdata-x", "n", "a_tdat-b4604b3d7058e4c4269c6a53f037401868ee70605cfb964.73363bb5"},
	{"snapshots", "n", "snapsh-f4c7e90962e7573fff083007460e84187083003212f625a.73363bb5"},
};

START_TEST(minted_ids_are_prefix_name_hash_and_node_hash)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint(minted[_i].name, minted[_i].node_id, id);
	ck_assert_str_eq(id, minted[_i].id);
	ck_assert(volume_id_valid(id));
}
END_TEST

START_TEST(go_ids_keep_the_whole_hash_and_any_prefix)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint_go("pvc-1234", id);
	ck_assert_str_eq(id, "pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee9d14aa3f6");
	ck_assert_uint_eq(strlen(id), VOLUME_ID_MAX);
	ck_assert(volume_id_valid(id));
	volume_id_mint_go("x", id);
	ck_assert_str_eq(id, "x-54a2f7f92a5f975d8096af77a126edda7da60c5aa872ef1b871701ae");
}
END_TEST

START_TEST(a_name_has_its_ids_on_the_node_of_a_cache_volume_and_of_the_go_driver)
{
	static const char *const theirs[] = {
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee.3eafcf75",
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee9d14aa3f6",
	};
	static const char *const others[] = {
		"",
		"pvc-12",
		/* on another node, of another name, cut and continued */
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee.1cbfe243",
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ef.3eafcf75",
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ef9d14aa3f6",
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee",
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee.",
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee-3eafcf75",
		"pvc-12-8389432503d18aa3c57d1e1697f093ded8f00248ebbb9ee.3eafcf750",
	};
	struct volume_ids ids;

	volume_id_mint_all("pvc-1234", &ids);
	for (size_t i = 0; i < ARRAY_SIZE(theirs); i++)
		ck_assert_msg(volume_ids_have(&ids, theirs[i], "3eafcf75"), "%s", theirs[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		ck_assert_msg(!volume_ids_have(&ids, others[i], "3eafcf75"), "%s", others[i]);
	/* only the Go driver keeps what LVM reserves */
	volume_id_mint_all("pvmove", &ids);
	ck_assert(volume_ids_have(
		&ids, "pvmove-7997e55d8343cbd544f77caf35e1efff7b434aa0fd2b1f84f2a82328", "73363bb5"));
	ck_assert(volume_ids_have(
		&ids, "vol-7997e55d8343cbd544f77caf35e1efff7b434aa0fd2b1f8.73363bb5", "73363bb5"));
}
END_TEST

START_TEST(handles_have_a_safe_first_character_and_a_safe_rest)
{
	static const char *const valid[] = {"a", "0", "Z", "a+_.-", "pvc-1.2", "csi-0123456789abcdef"};
	static const char *const invalid[] = {"", "-a", ".a", "_a", "+a", "a/b", "a b", "a\n", "a\xc3\xa9",
		"..", "/", "a\x7f", "a:b", "a@b"};

	for (size_t i = 0; i < ARRAY_SIZE(valid); i++)
		ck_assert_msg(volume_handle_valid(valid[i]) && volume_id_valid(valid[i]), "%s", valid[i]);
	for (size_t i = 0; i < ARRAY_SIZE(invalid); i++)
		ck_assert_msg(
			!volume_handle_valid(invalid[i]) && !volume_id_valid(invalid[i]), "%s", invalid[i]);
}
END_TEST

START_TEST(handles_end_at_128_bytes_and_ids_at_63)
{
	char handle[VOLUME_HANDLE_MAX + 2];

	memset(handle, 'a', sizeof(handle));
	handle[VOLUME_HANDLE_MAX + 1] = '\0';
	ck_assert(!volume_handle_valid(handle));
	handle[VOLUME_HANDLE_MAX] = '\0';
	ck_assert(volume_handle_valid(handle));
	ck_assert(!volume_id_valid(handle));
	handle[VOLUME_ID_MAX + 1] = '\0';
	ck_assert(volume_handle_valid(handle));
	ck_assert(!volume_id_valid(handle));
	handle[VOLUME_ID_MAX] = '\0';
	ck_assert(volume_id_valid(handle));
}
END_TEST

START_TEST(names_are_utf8_without_banned_characters_up_to_128_bytes)
{
	struct error *err = NULL;
	char name[VOLUME_NAME_MAX + 2];

	ASSERT_OK(volume_name_check("pvc 1/\xc3\xa9", &err));
	ASSERT_FAILS(volume_name_check("", &err), ERR_INVALID_ARGUMENT, "missing");
	ASSERT_OK(volume_name_check("a\tb\nc\rd", &err));
	ASSERT_OK(volume_name_check("a\xc2\xa0\xc3\x85", &err));
	ASSERT_FAILS(volume_name_check("a\x0b", &err), ERR_INVALID_ARGUMENT, "control");
	ASSERT_FAILS(volume_name_check("a\x1f", &err), ERR_INVALID_ARGUMENT, "control");
	ASSERT_FAILS(volume_name_check("a\x7f", &err), ERR_INVALID_ARGUMENT, "control");
	ASSERT_FAILS(volume_name_check("a\xc2\x80", &err), ERR_INVALID_ARGUMENT, "control");
	ASSERT_FAILS(volume_name_check("a\xc2\x9f", &err), ERR_INVALID_ARGUMENT, "control");
	ASSERT_FAILS(volume_name_check("a\xc3", &err), ERR_INVALID_ARGUMENT, "UTF-8");
	memset(name, 'a', sizeof(name));
	name[VOLUME_NAME_MAX + 1] = '\0';
	ASSERT_FAILS(volume_name_check(name, &err), ERR_INVALID_ARGUMENT, "128");
	name[VOLUME_NAME_MAX] = '\0';
	ASSERT_OK(volume_name_check(name, &err));
}
END_TEST

START_TEST(minted_ids_are_told_from_other_names)
{
	static const char *const others[] = {"v", "theirs", "", "-", "pmem-csi",
		"vol-0123456789abcdef0123456789abcdef0123456789abcde",
		"vol-0123456789abcdef0123456789abcdef0123456789abcde.0123456",
		"vol-0123456789abcdef0123456789abcdef0123456789abcde.012345678",
		"vol-0123456789abcdef0123456789abcdef0123456789abcd.01234567",
		"-0123456789abcdef0123456789abcdef0123456789abcdef01234567",
		"-0123456789abcdef0123456789abcdef0123456789abcde.01234567",
		"volume7-0123456789abcdef0123456789abcdef0123456789abcdef01234567",
		"0f9a4c1e-5c1b-4c5e-8a57-3d1f6f0d9a11",
		"0123456789abcdef0123456789abcdef0123456789abcdef01234567"};
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint("pvc-1", "node", id);
	ck_assert(volume_id_has_minted_form(id));
	volume_id_mint("pvc-1", NULL, id);
	ck_assert(volume_id_has_minted_form(id));
	volume_id_mint_go("pvc-1", id);
	ck_assert(volume_id_has_minted_form(id));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		ck_assert_msg(!volume_id_has_minted_form(others[i]), "%s", others[i]);
}
END_TEST

/* An ID of the Go driver names no node, although a dot may be among its first six bytes. */
START_TEST(only_a_node_hash_names_a_node)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint("db.prod", "node", id);
	ck_assert(volume_id_names_node(id, "node"));
	ck_assert(!volume_id_names_other_node(id, "node"));
	ck_assert(volume_id_names_other_node(id, "other"));
	volume_id_mint("db.prod", NULL, id);
	ck_assert(!volume_id_names_node(id, "node"));
	ck_assert(!volume_id_names_other_node(id, "node"));
	volume_id_mint_go("db.prod", id);
	ck_assert_ptr_nonnull(strchr(id, '.'));
	ck_assert(!volume_id_has_node(id));
	ck_assert(!volume_id_names_node(id, "node"));
	ck_assert(!volume_id_names_other_node(id, "node"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("id");
	TCase *tcase = tcase_create("id");

	suite_add_tcase(suite, tcase);
	tcase_add_loop_test(tcase, minted_ids_are_prefix_name_hash_and_node_hash, 0, ARRAY_SIZE(minted));
	tcase_add_test(tcase, minted_ids_are_told_from_other_names);
	tcase_add_test(tcase, go_ids_keep_the_whole_hash_and_any_prefix);
	tcase_add_test(tcase, a_name_has_its_ids_on_the_node_of_a_cache_volume_and_of_the_go_driver);
	tcase_add_test(tcase, only_a_node_hash_names_a_node);
	tcase_add_test(tcase, handles_have_a_safe_first_character_and_a_safe_rest);
	tcase_add_test(tcase, handles_end_at_128_bytes_and_ids_at_63);
	tcase_add_test(tcase, names_are_utf8_without_banned_characters_up_to_128_bytes);
	return unit_runner_finish(srunner_create(suite));
}
