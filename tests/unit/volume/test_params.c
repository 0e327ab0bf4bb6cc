/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "unit/unit.h"
#include "volume/params.h"

static struct strmap map;
static struct volume_params params;
static struct error *err;

static void forget(void)
{
	strmap_done(&map);
	params_done(&params);
}

static int parse(enum params_origin origin, const char *key, const char *value)
{
	forget();
	strmap_set(&map, key, value);
	return params_parse(origin, &map, &params, &err);
}

static int parse_both(const char *key, const char *value, const char *key2, const char *value2)
{
	forget();
	strmap_set(&map, key, value);
	strmap_set(&map, key2, value2);
	return params_parse(PARAMS_CREATE, &map, &params, &err);
}

START_TEST(defaults_hold_where_nothing_is_said)
{
	ASSERT_OK(params_parse(PARAMS_CREATE, &map, &params, &err));
	ck_assert(params.erase_after);
	ck_assert(!params.kata_containers && !params.is_cache);
	ck_assert_int_eq(params.usage, USAGE_APP_DIRECT);
	ck_assert_ptr_null(params.name);
	ck_assert_ptr_null(params.device_mode);
}
END_TEST

START_TEST(booleans_are_spelt_as_go_spells_them)
{
	static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
	static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};

	for (size_t i = 0; i < ARRAY_SIZE(no); i++) {
		ASSERT_OK(parse(PARAMS_CREATE, "eraseafter", no[i]));
		ck_assert(!params.erase_after);
		ASSERT_OK(parse(PARAMS_CREATE, "kataContainers", yes[i]));
		ck_assert(params.kata_containers);
	}
	ASSERT_FAILS(parse(PARAMS_CREATE, "eraseafter", "no"), ERR_INVALID_ARGUMENT, "\"eraseafter\"");
	ASSERT_FAILS(parse(PARAMS_CREATE, "kataContainers", ""), ERR_INVALID_ARGUMENT, "\"kataContainers\"");
	forget();
}
END_TEST

START_TEST(durability_takes_known_words_only)
{
	ASSERT_OK(parse(PARAMS_CREATE, "durability", "fsync"));
	ck_assert(params.fsync_suffices);
	ASSERT_OK(parse(PARAMS_CREATE, "durability", "synchronous"));
	ck_assert(!params.fsync_suffices);
	ASSERT_FAILS(parse(PARAMS_CREATE, "durability", "unknown"), ERR_INVALID_ARGUMENT,
		"\"unknown\" is neither synchronous nor fsync");
	ASSERT_FAILS(parse(PARAMS_CONTEXT, "durability", "fsync"), ERR_INVALID_ARGUMENT, "unknown parameter");
	ASSERT_FAILS(parse(PARAMS_MODIFY, "durability", "fsync"), ERR_INVALID_ARGUMENT, "cannot be changed");
	forget();
}
END_TEST

START_TEST(persistency_model_and_usage_take_known_words_only)
{
	ASSERT_OK(parse(PARAMS_CREATE, "persistencyModel", "normal"));
	ASSERT_OK(parse(PARAMS_CREATE, "persistencyModel", "none"));
	ck_assert(!params.is_cache);
	ASSERT_OK(parse_both("persistencyModel", "cache", "cacheSize", "3"));
	ck_assert(params.is_cache);
	ck_assert_uint_eq(params.cache_size, 3);
	ASSERT_FAILS(
		parse(PARAMS_CREATE, "persistencyModel", "ephemeral"), ERR_INVALID_ARGUMENT, "ephemeral");
	ASSERT_OK(parse(PARAMS_STATE, "persistencyModel", "ephemeral"));
	ASSERT_FAILS(parse(PARAMS_CREATE, "persistencyModel", "Cache"), ERR_INVALID_ARGUMENT, "Cache");

	ASSERT_OK(parse(PARAMS_CREATE, "usage", "FileIO"));
	ck_assert_int_eq(params.usage, USAGE_FILE_IO);
	ASSERT_OK(parse(PARAMS_CREATE, "usage", "AppDirect"));
	ASSERT_OK(parse(PARAMS_CREATE, "usage", ""));
	ck_assert_int_eq(params.usage, USAGE_APP_DIRECT);
	ASSERT_FAILS(parse(PARAMS_CREATE, "usage", "fileio"), ERR_INVALID_ARGUMENT, "fileio");
	forget();
}
END_TEST

START_TEST(parameters_that_need_or_exclude_each_other_are_checked)
{
	ASSERT_FAILS(parse(PARAMS_CREATE, "cacheSize", "3"), ERR_INVALID_ARGUMENT, "cacheSize");
	ASSERT_FAILS(parse_both("persistencyModel", "normal", "cacheSize", "3"), ERR_INVALID_ARGUMENT,
		"cacheSize");
	ASSERT_FAILS(parse_both("persistencyModel", "cache", "cacheSize", "-1"), ERR_INVALID_ARGUMENT, "-1");
	ASSERT_FAILS(parse_both("kataContainers", "true", "usage", "FileIO"), ERR_INVALID_ARGUMENT, "FileIO");
	ASSERT_OK(parse_both("kataContainers", "true", "usage", "AppDirect"));
	ASSERT_FAILS(parse_both("kataContainers", "true", "directVolume", "true"), ERR_INVALID_ARGUMENT,
		"kataContainers=true");
	ASSERT_FAILS(parse_both("persistencyModel", "cache", "directVolume", "true"), ERR_INVALID_ARGUMENT,
		"persistencyModel=cache");
	ASSERT_OK(parse_both("directVolume", "true", "usage", "FileIO"));
	ck_assert(params.direct_volume);
	forget();
}
END_TEST

START_TEST(unknown_keys_are_refused_by_name_where_somebody_may_have_misspelt_them)
{
	static const char *const keys[] = {"eraseAfter", "foo", "", "nsmode", "_id"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		ASSERT_FAILS(parse(PARAMS_CREATE, keys[i], "1"), ERR_INVALID_ARGUMENT, "unknown parameter");
		ASSERT_FAILS(parse(PARAMS_CONTEXT, keys[i], "1"), ERR_INVALID_ARGUMENT, "unknown parameter");
		ASSERT_OK(parse(PARAMS_STATE, keys[i], "1"));
	}
	forget();
}
END_TEST

START_TEST(what_is_probably_meant_is_suggested)
{
	ASSERT_FAILS(parse(PARAMS_CREATE, "eraseAfter", "1"), ERR_INVALID_ARGUMENT,
		"unknown parameter \"eraseAfter\": did you mean eraseafter?");
	ASSERT_FAILS(parse(PARAMS_CREATE, "persistencymode", "cache"), ERR_INVALID_ARGUMENT,
		"did you mean persistencyModel?");
	/* only the keys of that origin are suggested and listed */
	ASSERT_FAILS(parse(PARAMS_INLINE, "maxPause", "1s"), ERR_INVALID_ARGUMENT,
		"unknown parameter \"maxPause\"; the known ones are eraseafter, kataContainers, durability, usage, size");
	ASSERT_FAILS(
		parse(PARAMS_CREATE, "foo", "1"), ERR_INVALID_ARGUMENT, "; the known ones are eraseafter, ");
	ASSERT_FAILS(parse(PARAMS_CREATE, "usage", "fileio"), ERR_INVALID_ARGUMENT,
		"\"fileio\" is neither AppDirect nor FileIO: did you mean FileIO?");
	ASSERT_FAILS(parse(PARAMS_CREATE, "usage", "Both"), ERR_INVALID_ARGUMENT,
		"\"Both\" is neither AppDirect nor FileIO");
	ASSERT_FAILS(parse(PARAMS_CREATE, "persistencyModel", "chace"), ERR_INVALID_ARGUMENT,
		"is neither normal nor cache: did you mean cache?");
	forget();
}
END_TEST

START_TEST(each_origin_has_its_own_keys)
{
	static const struct {
		const char *key;
		const char *value;
		bool at_create;
		bool at_context;
		bool at_state;
	} keys[] = {
		{"eraseafter", "false", true, true, true},
		{"kataContainers", "true", true, true, true},
		{"directVolume", "true", true, true, true},
		{"persistencyModel", "normal", true, true, true},
		{"usage", "FileIO", true, true, true},
		{"name", "pvc-1", false, true, true},
		{"deviceMode", "lvm", false, false, true},
		{"size", "1Gi", false, false, true},
		{"csi.storage.k8s.io/pvc/name", "x", true, true, true},
		{"csi.storage.k8s.io/pvc/namespace", "x", true, true, true},
		{"csi.storage.k8s.io/pv/name", "x", true, true, true},
		{"csi.storage.k8s.io/pvc/nam", "x", false, true, true},
		{"csi.storage.k8s.io/fstype", "x", false, true, true},
		{"csi.storage.k8s.io/pod.name", "x", false, true, true},
		{"csi.storage.k8s.io/ephemeral", "false", false, true, true},
		{"storage.kubernetes.io/csiProvisionerIdentity", "x", false, true, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
		const bool allowed[] = {[PARAMS_CREATE] = keys[i].at_create,
			[PARAMS_CONTEXT] = keys[i].at_context,
			[PARAMS_STATE] = keys[i].at_state};
		for (size_t origin = 0; origin < ARRAY_SIZE(allowed); origin++) {
			int rc = parse((enum params_origin)origin, keys[i].key, keys[i].value);
			ck_assert_msg((rc == 0) == allowed[origin], "%s at %zu", keys[i].key, origin);
			error_clear(&err);
		}
	}
	forget();
}
END_TEST

START_TEST(inline_volumes_have_a_size_and_keys_of_their_own)
{
	ASSERT_FAILS(
		parse(PARAMS_INLINE, "eraseafter", "false"), ERR_INVALID_ARGUMENT, "\"size\" is missing");
	ASSERT_OK(parse(PARAMS_INLINE, "size", "1.5Gi"));
	ck_assert(params.is_inline);
	ck_assert_uint_eq(params.size_bytes, 3ULL << 29);
	ASSERT_FAILS(parse(PARAMS_INLINE, "size", "1.5GB"), ERR_INVALID_ARGUMENT, "1.5GB");
	ASSERT_FAILS(parse(PARAMS_INLINE, "size", "-1"), ERR_INVALID_ARGUMENT, "size");
	static const char *const foreign[] = {"persistencyModel", "cacheSize", "name", "deviceMode",
		"storage.kubernetes.io/csiProvisionerIdentity", "Size"};
	for (size_t i = 0; i < ARRAY_SIZE(foreign); i++)
		ASSERT_FAILS(parse(PARAMS_INLINE, foreign[i], "1"), ERR_INVALID_ARGUMENT, foreign[i]);
	static const char *const allowed[][2] = {{"eraseafter", "false"}, {"kataContainers", "true"},
		{"usage", "FileIO"}, {"csi.storage.k8s.io/pod.uid", "x"}};
	for (size_t i = 0; i < ARRAY_SIZE(allowed); i++) {
		forget();
		strmap_set(&map, "size", "1Gi");
		strmap_set(&map, allowed[i][0], allowed[i][1]);
		ASSERT_OK(params_parse(PARAMS_INLINE, &map, &params, &err));
	}
	forget();
}
END_TEST

START_TEST(context_says_whether_a_volume_is_inline_or_looks_so)
{
	bool said;
	bool is_inline;

	forget();
	ASSERT_OK(params_say_inline(&map, &said, &is_inline, &err));
	ck_assert(!said && !is_inline);
	ck_assert(!params_look_inline(&map));
	strmap_set(&map, "size", "1Gi");
	ck_assert(params_look_inline(&map));
	strmap_set(&map, "storage.kubernetes.io/csiProvisionerIdentity", "x");
	ck_assert(!params_look_inline(&map));
	strmap_set(&map, "csi.storage.k8s.io/ephemeral", "true");
	ASSERT_OK(params_say_inline(&map, &said, &is_inline, &err));
	ck_assert(said && is_inline);
	strmap_set(&map, "csi.storage.k8s.io/ephemeral", "false");
	ASSERT_OK(params_say_inline(&map, &said, &is_inline, &err));
	ck_assert(said && !is_inline);
	strmap_set(&map, "csi.storage.k8s.io/ephemeral", "maybe");
	ASSERT_FAILS(params_say_inline(&map, &said, &is_inline, &err), ERR_INVALID_ARGUMENT, "maybe");
	forget();
}
END_TEST

START_TEST(state_keys_are_read)
{
	strmap_set(&map, "name", "pvc-1");
	strmap_set(&map, "deviceMode", "direct");
	strmap_set(&map, "size", "1073741824");
	ASSERT_OK(params_parse(PARAMS_STATE, &map, &params, &err));
	ck_assert_str_eq(params.name, "pvc-1");
	ck_assert_str_eq(params.device_mode, "direct");
	ASSERT_FAILS(parse(PARAMS_STATE, "deviceMode", "floppy"), ERR_INVALID_ARGUMENT, "floppy");
	ASSERT_FAILS(parse(PARAMS_STATE, "size", "big"), ERR_INVALID_ARGUMENT, "size");
	forget();
}
END_TEST

START_TEST(context_holds_what_stage_will_accept_here_and_in_the_go_driver)
{
	CLEANUP(strmap_done) struct strmap context = {0};

	strmap_set(&map, "name", "pvc-1");
	strmap_set(&map, "eraseafter", "false");
	strmap_set(&map, "deviceMode", "lvm");
	strmap_set(&map, "size", "1");
	strmap_set(&map, "nsmode", "fsdax");
	params_to_context(&map, &context);
	ck_assert_uint_eq(context.n, 2);
	ck_assert_str_eq(strmap_get(&context, "name"), "pvc-1");
	ck_assert_str_eq(strmap_get(&context, "eraseafter"), "false");
	ASSERT_OK(params_parse(PARAMS_CONTEXT, &context, &params, &err));
	forget();
}
END_TEST

START_TEST(what_kubernetes_adds_at_creation_is_not_recorded)
{
	CLEANUP(strmap_done) struct strmap state = {0};

	strmap_set(&map, "eraseafter", "false");
	strmap_set(&map, "csi.storage.k8s.io/pv/name", "pvc-1");
	params_to_state(&map, &state);
	ck_assert_uint_eq(state.n, 1);
	ck_assert_str_eq(strmap_get(&state, "eraseafter"), "false");
	forget();
}
END_TEST

START_TEST(bandwidths_are_quantities_at_creation_and_later)
{
	static const enum params_origin origins[] = {PARAMS_CREATE, PARAMS_MODIFY};

	for (size_t i = 0; i < ARRAY_SIZE(origins); i++) {
		ASSERT_OK(parse(origins[i], "eraseBandwidth", "1Mi"));
		ck_assert_uint_eq(params.erase_bytes_per_s, 1 << 20);
		ck_assert_uint_eq(params.copy_bytes_per_s, 0);
		ASSERT_OK(parse(origins[i], "copyBandwidth", "2G"));
		ck_assert_uint_eq(params.copy_bytes_per_s, 2000000000);
		ASSERT_OK(parse(origins[i], "copyBandwidth", "0"));
		ASSERT_FAILS(parse(origins[i], "eraseBandwidth", "1023Ki"), ERR_INVALID_ARGUMENT, "1023Ki");
		ASSERT_FAILS(parse(origins[i], "copyBandwidth", "x"), ERR_INVALID_ARGUMENT, "copyBandwidth");
	}
	ASSERT_FAILS(parse(PARAMS_CONTEXT, "copyBandwidth", "1Mi"), ERR_INVALID_ARGUMENT, "copyBandwidth");
	ASSERT_FAILS(parse(PARAMS_INLINE, "copyBandwidth", "1Mi"), ERR_INVALID_ARGUMENT, "copyBandwidth");
	ASSERT_OK(parse(PARAMS_CREATE, "copyBandwidth", "1Mi"));
	/* the Go driver refuses it in a state file */
	CLEANUP(strmap_done) struct strmap state = {0};
	params_to_state(&map, &state);
	ck_assert_uint_eq(state.n, 0);
	forget();
}
END_TEST

START_TEST(what_cannot_be_changed_is_refused_by_name_and_value)
{
	ASSERT_OK(parse(PARAMS_MODIFY, "usage", "FileIO"));
	ck_assert_int_eq(params.usage, USAGE_FILE_IO);
	ASSERT_OK(parse(PARAMS_MODIFY, "eraseafter", "f"));
	ck_assert(!params.erase_after);
	/* external-resizer --extra-modify-metadata */
	ASSERT_OK(parse(PARAMS_MODIFY, "csi.storage.k8s.io/pv/name", "x"));
	ASSERT_FAILS(parse(PARAMS_MODIFY, "csi.storage.k8s.io/fstype", "xfs"), ERR_INVALID_ARGUMENT,
		"unknown parameter \"csi.storage.k8s.io/fstype\" (\"xfs\")");
	ASSERT_FAILS(parse(PARAMS_MODIFY, "maxPause", "1s"), ERR_INVALID_ARGUMENT,
		"\"maxPause\" cannot be changed (to \"1s\"); what can be changed is usage, eraseafter, ");
	forget();
}
END_TEST

UNIT_MAIN("params", bandwidths_are_quantities_at_creation_and_later,
	what_cannot_be_changed_is_refused_by_name_and_value, defaults_hold_where_nothing_is_said,
	booleans_are_spelt_as_go_spells_them, persistency_model_and_usage_take_known_words_only,
	durability_takes_known_words_only, parameters_that_need_or_exclude_each_other_are_checked,
	unknown_keys_are_refused_by_name_where_somebody_may_have_misspelt_them,
	what_is_probably_meant_is_suggested, each_origin_has_its_own_keys,
	what_kubernetes_adds_at_creation_is_not_recorded, state_keys_are_read,
	inline_volumes_have_a_size_and_keys_of_their_own, context_says_whether_a_volume_is_inline_or_looks_so,
	context_holds_what_stage_will_accept_here_and_in_the_go_driver)
