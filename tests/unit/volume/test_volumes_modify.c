/* SPDX-License-Identifier: Apache-2.0 */
/* ControllerModifyVolume: what changes in the record, what stays, and what the new values are good for. */
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "unit/volume/content.h"
#include "unit/volume/mounts.h"
#include "volume/params.h"

#define SIZE   MIB(64)
#define N_DATA MIB(20)

static struct error *err;
static struct volume_info *volume;
static const struct strmap no_parameters;

static int modify(const char *handle, const char *key, const char *value)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	const struct modify_request q = {.handle = handle, .parameters = &parameters};

	strmap_set(&parameters, key, value);
	return volumes_modify(fx.v, &q, &err);
}

static void change(const char *key, const char *value)
{
	ASSERT_OK(modify(volume->id, key, value));
}

static void make_with(const char *key, const char *value)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request("pvc-1", SIZE);

	strmap_set(&parameters, key, value);
	q.parameters = &parameters;
	ASSERT_OK(volumes_create(fx.v, &q, &volume, &err));
}

static void make(void)
{
	volume = fixture_create("pvc-1", SIZE);
}

static struct volume_record *read_record(const char *id)
{
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	struct volume_record *r = NULL;

	ASSERT_OK(state_parse(span_of(text), &r, &err));
	return r;
}

static ino_t record_inode(void)
{
	CLEANUP(free_charp) char *file = x_asprintf("state/%s.json", volume->id);
	CLEANUP(free_charp) char *path = fixture_path(file);
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	return st.st_ino;
}

static void assert_parameter(const char *key, const char *value)
{
	CLEANUP(volume_record_freep) struct volume_record *r = read_record(volume->id);
	const char *has = strmap_get(&r->parameters, key);

	ck_assert_msg(str_eq(has, value), "%s is %s", key, has ? has : "not there");
}

START_TEST(values_are_recorded_durably_and_others_stay)
{
	CLEANUP(strmap_done) struct strmap all = {0};
	struct modify_request q = {.parameters = &all};

	make();
	q.handle = volume->id;
	strmap_set(&all, "usage", "FileIO");
	strmap_set(&all, "eraseafter", "0");
	strmap_set(&all, "eraseBandwidth", "100Mi");
	strmap_set(&all, "copyBandwidth", "1G");
	strmap_set(&all, "csi.storage.k8s.io/pvc/name", "claim");
	ASSERT_OK(volumes_modify(fx.v, &q, &err));
	change("copyBandwidth", "2Mi");
	for (unsigned restarted = 0; restarted < 2; restarted++) {
		CLEANUP(volume_record_freep) struct volume_record *r = read_record(volume->id);

		ck_assert_str_eq(strmap_get(&r->parameters, "usage"), "FileIO");
		ck_assert_str_eq(strmap_get(&r->parameters, "eraseafter"), "false");
		ck_assert_uint_eq(r->parameters.n, 4);
		ck_assert_uint_eq(r->erase_bytes_per_s, MIB(100));
		ck_assert_uint_eq(r->copy_bytes_per_s, MIB(2));
		ck_assert_uint_eq(strv_len(r->modified), 4);
		/* it was never mounted */
		ck_assert_ptr_null(r->staged_usage);
		ck_assert_str_eq(strmap_get(&r->parameters, "name"), "pvc-1");
		fixture_restart();
	}
	change("eraseBandwidth", "0");
	change("eraseafter", "true");
	CLEANUP(volume_record_freep) struct volume_record *r = read_record(volume->id);
	ck_assert_uint_eq(r->erase_bytes_per_s, 0);
	ck_assert_str_eq(strmap_get(&r->parameters, "eraseafter"), "true");
	ck_assert_str_eq(strmap_get(&r->parameters, "usage"), "FileIO");
}
END_TEST

START_TEST(what_is_so_already_is_not_written_again)
{
	make();
	ino_t before = record_inode();
	change("usage", "AppDirect");
	change("eraseafter", "T");
	change("copyBandwidth", "0");
	ASSERT_OK(volumes_modify(
		fx.v, &(struct modify_request){.handle = volume->id, .parameters = &no_parameters}, &err));
	ck_assert_uint_eq(record_inode(), before);
	change("eraseafter", "F");
	ck_assert_uint_ne(record_inode(), before);
}
END_TEST

START_TEST(other_keys_and_bad_values_are_refused_by_name)
{
	static const struct {
		const char *key;
		const char *value;
		const char *text;
	} cases[] = {{"foo", "bar", "unknown parameter \"foo\" (\"bar\")"}, {"", "", "unknown parameter"},
		{"name", "x", "unknown parameter \"name\""}, {"usage", "Both", "\"usage\": \"Both\""},
		{"persistencyModel", "cache", "\"persistencyModel\" cannot be changed (to \"cache\")"},
		{"cacheSize", "2", "\"cacheSize\" cannot be changed"},
		{"kataContainers", "true", "\"kataContainers\" cannot be changed"},
		{"maxPause", "5s", "\"maxPause\" cannot be changed"},
		{"eraseafter", "maybe", "\"eraseafter\""}, {"eraseBandwidth", "fast", "\"eraseBandwidth\""},
		{"copyBandwidth", "-1", "\"copyBandwidth\""},
		{"copyBandwidth", "1000000", "\"copyBandwidth\": \"1000000\" is neither 0 nor at least 1Mi"}};

	make();
	ino_t before = record_inode();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		ASSERT_FAILS(modify(volume->id, cases[i].key, cases[i].value), ERR_INVALID_ARGUMENT,
			cases[i].text);
	ck_assert_uint_eq(record_inode(), before);
}
END_TEST

/* One bad value, and nothing is changed. */
START_TEST(all_values_change_or_none)
{
	CLEANUP(strmap_done) struct strmap both = {0};
	struct modify_request q = {.parameters = &both};

	make_with("persistencyModel", "cache");
	q.handle = volume->id;
	strmap_set(&both, "eraseafter", "false");
	strmap_set(&both, "usage", "FileIO");
	ASSERT_FAILS(volumes_modify(fx.v, &q, &err), ERR_INVALID_ARGUMENT,
		"cannot be changed to \"FileIO\": a cache volume keeps its usage");
	assert_parameter("eraseafter", NULL);
	fixture_restart();
	assert_parameter("eraseafter", NULL);
	change("eraseafter", "false");
	assert_parameter("eraseafter", "false");
}
END_TEST

static void rewrite_parameters(const char *key, const char *value)
{
	CLEANUP(volume_record_freep) struct volume_record *r = read_record(volume->id);
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
	CLEANUP(free_charp) char *file = x_asprintf("%s.json", volume->id);

	strmap_set(&r->parameters, key, value);
	ASSERT_OK(state_format(r, &text, &err));
	fixture_write(file, buf_str(&text));
	fixture_restart();
}

START_TEST(usage_that_is_fixed_is_refused_with_the_reason)
{
	static const struct {
		const char *key;
		const char *value;
		const char *text;
	} cases[] = {{"persistencyModel", "ephemeral", "an inline volume keeps its usage"},
		{"kataContainers", "true", "for Kata Containers"},
		{"deviceMode", "direct", "a clone can have the other usage"}};

	make();
	rewrite_parameters(cases[_i].key, cases[_i].value);
	ASSERT_FAILS(modify(volume->id, "usage", "FileIO"), ERR_INVALID_ARGUMENT, cases[_i].text);
	change("usage", "AppDirect");
	change("copyBandwidth", "1Mi");
	assert_parameter("usage", NULL);
}
END_TEST

START_TEST(only_volumes_are_modified)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = NULL;

	make();
	const struct snapshot_request of = {
		.name = "snap", .source = volume->id, .parameters = &no_parameters};
	ASSERT_OK(volumes_create_snapshot(fx.v, &of, &snap, &err));
	ASSERT_FAILS(modify("absent", "eraseafter", "false"), ERR_NOT_FOUND, "absent");
	ASSERT_FAILS(modify(snap->id, "eraseafter", "false"), ERR_NOT_FOUND, snap->id);
	ASSERT_OK(volumes_delete(fx.v, volume->id, &err));
	ASSERT_FAILS(modify(volume->id, "eraseafter", "false"), ERR_NOT_FOUND, volume->id);
}
END_TEST

static void modify_meanwhile(void)
{
	CLEANUP(error_freep) struct error *busy = NULL;
	CLEANUP(strmap_done) struct strmap parameters = {0};
	const struct modify_request q = {.handle = volume->id, .parameters = &parameters};

	strmap_set(&parameters, "eraseafter", "false");
	ck_assert_int_eq(volumes_modify(fx.v, &q, &busy), -1);
	ck_assert_int_eq(busy->code, ERR_ABORTED);
}

START_TEST(another_operation_on_it_comes_first)
{
	struct expand_request q = {.required_bytes = 2 * SIZE};
	struct expand_result result;

	make();
	q.handle = volume->id;
	fx.faults.in_grow = modify_meanwhile;
	ASSERT_OK(volumes_expand(fx.v, &q, &result, &err));
	assert_parameter("eraseafter", NULL);
}
END_TEST

static int create_again(const char *key, const char *value)
{
	CLEANUP(volume_info_freep) struct volume_info *again = NULL;
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request("pvc-1", SIZE);

	strmap_set(&parameters, key, value);
	q.parameters = &parameters;
	if (volumes_create(fx.v, &q, &again, &err) < 0)
		return -1;
	ck_assert_str_eq(again->id, volume->id);
	return 0;
}

START_TEST(late_retry_of_the_creation_finds_the_volume)
{
	make_with("copyBandwidth", "3Mi");
	ASSERT_OK(create_again("copyBandwidth", "3Mi"));
	ASSERT_FAILS(create_again("copyBandwidth", "4Mi"), ERR_EXISTS, "other parameters");
	ASSERT_FAILS(create_again("eraseBandwidth", "4Mi"), ERR_EXISTS, "other parameters");
	change("copyBandwidth", "5Mi");
	change("usage", "FileIO");
	for (unsigned restarted = 0; restarted < 2; restarted++) {
		ASSERT_OK(create_again("copyBandwidth", "3Mi"));
		ASSERT_OK(create_again("usage", "AppDirect"));
		/* what was not changed is compared as before */
		ASSERT_FAILS(create_again("eraseafter", "false"), ERR_EXISTS, "other parameters");
		ASSERT_FAILS(create_again("eraseBandwidth", "4Mi"), ERR_EXISTS, "other parameters");
		ASSERT_FAILS(create_again("persistencyModel", "cache"), ERR_EXISTS, "other parameters");
		fixture_restart();
	}
	CLEANUP(volume_record_freep) struct volume_record *r = read_record(volume->id);
	ck_assert_uint_eq(r->copy_bytes_per_s, MIB(5));
}
END_TEST

START_TEST(snapshot_takes_over_what_is_so_now)
{
	CLEANUP(snapshot_info_freep) struct snapshot_info *snap = NULL;

	make();
	change("eraseafter", "false");
	change("eraseBandwidth", "3Mi");
	change("copyBandwidth", "4Mi");
	const struct snapshot_request of = {
		.name = "snap", .source = volume->id, .parameters = &no_parameters};
	ASSERT_OK(volumes_create_snapshot(fx.v, &of, &snap, &err));
	CLEANUP(free_charp) char *file = x_asprintf("%s.snapshot", snap->id);
	CLEANUP(free_charp) char *text = fixture_read(file);
	CLEANUP(volume_record_freep) struct volume_record *r = NULL;
	ASSERT_OK(state_parse(span_of(text), &r, &err));
	ck_assert_str_eq(strmap_get(&r->parameters, "eraseafter"), "false");
	ck_assert_uint_eq(r->erase_bytes_per_s, MIB(3));
	ck_assert_uint_eq(r->copy_bytes_per_s, MIB(4));
	ck_assert_uint_eq(strv_len(r->modified), 0);
}
END_TEST

static void set_up_mounts(void)
{
	mounts_set_up(SIZE);
	volume = mt.volume;
}

static int stage(const struct strmap *context)
{
	struct use_request q = mounts_stage_request("ext4");

	q.context = context;
	return volumes_stage(fx.v, &q, &err);
}

static int publish(const struct strmap *context)
{
	struct use_request q = mounts_publish_request(mt.target, ACCESS_SINGLE_WRITER);

	q.context = context;
	return volumes_publish(fx.v, &q, &err);
}

static void unstage(void)
{
	ASSERT_OK(volumes_unstage(fx.v, mt.volume->id, mt.staging, &err));
}

/* On devices without DAX, by a manager that demands it for AppDirect. The context is that of a PV, which is
 * what CreateVolume has returned. */
START_TEST(new_usage_counts_from_the_next_staging_on)
{
	CLEANUP(strmap_done) struct strmap context = {0};

	strmap_set(&context, "usage", "AppDirect");
	fx.ops.mode = "lvm";
	ASSERT_FAILS(stage(&context), ERR_PRECONDITION, "does not support DAX");
	change("usage", "FileIO");
	ASSERT_OK(stage(&context));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_ptr_null(r->staged_usage);
	change("usage", "AppDirect");
	/* it is mounted as before: staged again, and published */
	for (unsigned restarted = 0; restarted < 2; restarted++) {
		ASSERT_OK(stage(&context));
		ASSERT_OK(publish(&context));
		ASSERT_OK(volumes_unpublish(fx.v, mt.volume->id, mt.target, &err));
		fixture_restart();
		fx.ops.mode = "lvm";
	}
	unstage();
	CLEANUP(volume_record_freep) struct volume_record *after = mounts_record();
	ck_assert_ptr_null(after->staged_usage);
	ASSERT_FAILS(stage(&context), ERR_PRECONDITION, "does not support DAX");
}
END_TEST

/* As after a boot: what is recorded as staged is not mounted any more. */
START_TEST(usage_of_a_mount_that_has_gone_is_not_that_of_the_next)
{
	fx.ops.mode = "lvm";
	change("usage", "FileIO");
	ASSERT_OK(stage(&no_parameters));
	change("usage", "AppDirect");
	ck_assert_int_eq(umount(mt.staging), 0);
	ASSERT_FAILS(stage(&no_parameters), ERR_PRECONDITION, "does not support DAX");
	change("usage", "FileIO");
	ASSERT_OK(stage(&no_parameters));
	CLEANUP(volume_record_freep) struct volume_record *r = mounts_record();
	ck_assert_ptr_null(r->staged_usage);
}
END_TEST

static void fill_source(void)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/data", mt.staging);
	CLEANUP(file_closep) FILE *f = fopen(path, "we");
	static char block[1 << 20];

	for (uint64_t at = 0; at < N_DATA; at += sizeof(block))
		ck_assert_uint_eq(fwrite(block, 1, sizeof(block), f), sizeof(block));
	ck_assert_int_eq(fflush(f), 0);
	ck_assert_int_eq(fsync(fileno(f)), 0);
}

static int copy(const char *name, const char *max_pause)
{
	CLEANUP(volume_info_freep) struct volume_info *made = NULL;
	CLEANUP(strmap_done) struct strmap parameters = {0};
	struct volume_request q = fixture_request(name, SIZE);

	strmap_set(&parameters, "maxPause", max_pause);
	q.parameters = &parameters;
	q.source = mt.volume->id;
	return volumes_create(fx.v, &q, &made, &err);
}

/* The speed of a volume with a limit of its own is known without a measurement, and is not that of others. */
START_TEST(copy_bandwidth_limits_copies_of_this_volume)
{
	ASSERT_OK(stage(&no_parameters));
	fill_source();
	change("copyBandwidth", "2Mi");
	ASSERT_FAILS(copy("copy", "5s"), ERR_PRECONDITION, "nothing was stopped");
	struct volumes_overview o;
	volumes_overview(fx.v, &o);
	ck_assert_uint_eq(o.copied_bytes, 0);
	change("copyBandwidth", "40Mi");
	uint64_t begun_ns = clock_ns();
	ASSERT_OK(copy("copy", "60s"));
	/* 20 MiB and more */
	ck_assert_uint_ge(clock_ns() - begun_ns, NS_PER_S / 2);
	/* a speed at which a copy of others would take more than a second */
	change("copyBandwidth", "16Mi");
	ASSERT_OK(copy("slow", "60s"));
	change("copyBandwidth", "0");
	ASSERT_OK(copy("fast", "1s"));
}
END_TEST

START_TEST(of_both_limits_the_smaller_one_counts)
{
	fx.copy_bytes_per_s = MIB(2);
	fixture_restart();
	ASSERT_OK(stage(&no_parameters));
	fill_source();
	change("copyBandwidth", "1Gi");
	ASSERT_FAILS(copy("copy", "1s"), ERR_PRECONDITION, "nothing was stopped");
}
END_TEST

static struct volumes_overview overview(void)
{
	struct volumes_overview o;

	volumes_overview(fx.v, &o);
	return o;
}

/* At 1 MiB in a second, in pieces of 128 KiB, erasing 64 MiB takes a minute. */
START_TEST(erase_bandwidth_limits_the_erasure_of_this_volume)
{
	fx.in_background = true;
	fixture_restart();
	change("eraseBandwidth", "1Mi");
	CLEANUP(volume_info_freep) struct volume_info *other = fixture_create("other", SIZE);
	ASSERT_OK(volumes_delete(fx.v, mt.volume->id, &err));
	ASSERT_OK(volumes_delete(fx.v, other->id, &err));
	uint64_t begun_ns = clock_ns();
	while (overview().n_erasing > 1 && clock_ns() - begun_ns < 30 * NS_PER_S)
		usleep(1000);
	ck_assert_uint_eq(overview().n_erasing, 1);
	ck_assert_uint_ge(overview().erased_bytes, SIZE);
	ck_assert_uint_lt(overview().erased_bytes, SIZE + SIZE / 2);
	volumes_stop(fx.v);
}
END_TEST

int main(void)
{
	const TTest *const in_memory[] = {values_are_recorded_durably_and_others_stay,
		what_is_so_already_is_not_written_again, other_keys_and_bad_values_are_refused_by_name,
		all_values_change_or_none, only_volumes_are_modified, another_operation_on_it_comes_first,
		late_retry_of_the_creation_finds_the_volume, snapshot_takes_over_what_is_so_now};
	const TTest *const mounted[] = {new_usage_counts_from_the_next_staging_on,
		usage_of_a_mount_that_has_gone_is_not_that_of_the_next,
		copy_bandwidth_limits_copies_of_this_volume, of_both_limits_the_smaller_one_counts,
		erase_bandwidth_limits_the_erasure_of_this_volume};
	TCase *tcase = fixture_case("volume/volumes_modify", fixture_memory);

	if (!tcase)
		return SKIP_STATUS;
	for (size_t i = 0; i < ARRAY_SIZE(in_memory); i++)
		tcase_add_test(tcase, in_memory[i]);
	tcase_add_loop_test(tcase, usage_that_is_fixed_is_refused_with_the_reason, 0, 3);
	tcase = fixture_more_cases("volume/volumes_modify, mounts", set_up_mounts);
	for (size_t i = 0; i < ARRAY_SIZE(mounted); i++)
		tcase_add_test(tcase, mounted[i]);
	return fixture_finish();
}
