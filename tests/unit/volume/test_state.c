/* SPDX-License-Identifier: Apache-2.0 */
/* State files: their names, their content, and how damaged ones are handled. */
#include "volume/state.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/mem.h"
#include "base/str.h"
#include "os/file.h"
#include "unit/os/scratch.h"
#include "unit/strmap_equal.h"

#define FOLDER SCRATCH "/state"

static struct state_store *store;
static struct state_content content;

static void open_store(void)
{
	struct error *err = NULL;

	ASSERT_OK(state_open(FOLDER, &store, &err));
}

static void load(void)
{
	struct error *err = NULL;

	state_content_done(&content);
	ASSERT_OK(state_load(store, &content, &err));
}

static void close_store(void)
{
	state_content_done(&content);
	state_close(store);
}

static void write_file(const char *name, const char *text)
{
	CLEANUP(free_charp) char *path = x_asprintf(FOLDER "/%s", name);
	CLEANUP(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
}

static char *read_text(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf(FOLDER "/%s", name);
	CLEANUP(buf_done) struct buf text = BUF_INIT(65536);
	struct error *err = NULL;

	ASSERT_OK(file_read(AT_FDCWD, path, &text, &err));
	return x_strdup(buf_str(&text));
}

static bool exists(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf(FOLDER "/%s", name);

	return access(path, F_OK) == 0;
}

static struct volume_record *new_record(const char *id, enum volume_phase phase)
{
	struct volume_record *r = x_calloc(1, sizeof(*r));

	r->id = x_strdup(id);
	r->phase = phase;
	return r;
}

static void put(const char *id, enum volume_phase phase)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record(id, phase);
	struct error *err = NULL;

	ASSERT_OK(state_put(store, r, &err));
}

START_TEST(for_whom_a_volume_is_is_loaded)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record("v1", PHASE_READY);
	struct error *err = NULL;

	open_store();
	r->claim = (struct volume_claim){.namespace = x_strdup("default"),
		.name = x_strdup("data"),
		.pv = x_strdup("pvc-1"),
		.pod_namespace = x_strdup("pods"),
		.pod = x_strdup("web-0")};
	ASSERT_OK(state_put(store, r, &err));
	load();
	CLEANUP(free_charp) char *claim = claim_text(&content.records[0]->claim);
	CLEANUP(free_charp) char *pod = claim_pod(&content.records[0]->claim);
	ck_assert_str_eq(claim, "default/data");
	ck_assert_str_eq(pod, "pods/web-0");
	ck_assert_str_eq(content.records[0]->claim.pv, "pvc-1");
	close_store();
}
END_TEST

START_TEST(for_whom_a_volume_is_damages_no_record)
{
	static const char *const members[] = {
		"claimNamespace", "claimName", "pvName", "podNamespace", "podName"};
	static const char *const values[] = {"5", "null", "true", "{\"a\":[{}]}", "[1,\"x\"]"};
	struct error *err = NULL;

	open_store();
	for (size_t i = 0; i < ARRAY_SIZE(members) * ARRAY_SIZE(values); i++) {
		const char *member = members[i / ARRAY_SIZE(values)];
		CLEANUP(free_charp)
		char *text = x_asprintf(
			"{\"id\":\"v1\",\"claimNamespace\":\"default\",\"claimName\":\"data\","
			"\"podNamespace\":\"pods\",\"podName\":\"web-0\",\"pvName\":\"pvc-1\",\"%s\":%s,"
			"\"size\":7,\"parameters\":{}}",
			member, values[i % ARRAY_SIZE(values)]);

		write_file("v1.json", text);
		load();
		ck_assert_msg(content.n_records == 1 && content.n_problems == 0, "%s", text);
		const struct volume_claim *c = &content.records[0]->claim;
		ck_assert_int_eq(!c->name, str_starts(member, "claim"));
		ck_assert_int_eq(!c->pod, str_starts(member, "pod"));
		ck_assert_int_eq(!c->pv, str_eq(member, "pvName"));
		ck_assert_uint_eq(content.records[0]->size_bytes, 7);
		ck_assert_ptr_null(content.records[0]->unknown_json);
		ASSERT_OK(state_put(store, content.records[0], &err));
		CLEANUP(free_charp) char *back = read_text("v1.json");
		ck_assert_ptr_null(strstr(back, member));
	}
	close_store();
}
END_TEST

START_TEST(everything_that_is_put_is_loaded)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record("v1", PHASE_READY);
	struct error *err = NULL;

	open_store();
	r->size_bytes = 1ULL << 62;
	r->resizing_bytes = (1ULL << 62) + 1;
	strmap_set(&r->parameters, "name", "pvc \"1\"\n");
	strmap_set(&r->parameters, "eraseafter", "false");
	r->identity = x_strdup("identity");
	r->pool = x_strdup("pool");
	r->fs_type = x_strdup("xfs");
	r->adopted = true;
	r->block_clean = true;
	r->erased_bytes = 1ULL << 40;
	r->written_end_bytes = 3ULL << 40;
	r->erased_raw = true;
	r->formatting = true;
	r->fs_uuid = x_strdup("uuid");
	strv_add(&r->staged_flags, "discard");
	r->ever_staged = true;
	r->made_by_controller = true;
	r->staging_path = x_strdup("/a/b");
	r->staged_block = true;
	strv_add(&r->targets, "/t/1");
	strv_add(&r->targets, "/t/2");
	ASSERT_OK(state_put(store, r, &err));
	load();
	ck_assert_uint_eq(content.n_records, 1);
	ck_assert_uint_eq(content.n_problems, 0);

	const struct volume_record *back = content.records[0];
	ck_assert_str_eq(back->id, "v1");
	ck_assert_int_eq(back->phase, PHASE_READY);
	ck_assert_uint_eq(back->size_bytes, 1ULL << 62);
	ck_assert_uint_eq(back->resizing_bytes, (1ULL << 62) + 1);
	ck_assert(strmap_equal(&back->parameters, &r->parameters));
	ck_assert_str_eq(back->identity, "identity");
	ck_assert_str_eq(back->pool, "pool");
	ck_assert_str_eq(back->fs_type, "xfs");
	ck_assert(back->adopted);
	ck_assert(back->block_clean);
	ck_assert_uint_eq(back->erased_bytes, 1ULL << 40);
	ck_assert_uint_eq(back->written_end_bytes, 3ULL << 40);
	ck_assert(back->erased_raw);
	ck_assert(back->formatting && back->ever_staged);
	ck_assert_str_eq(back->fs_uuid, "uuid");
	ck_assert_uint_eq(strv_len(back->staged_flags), 1);
	ck_assert_str_eq(back->staged_flags[0], "discard");
	ck_assert(back->made_by_controller);
	ck_assert_str_eq(back->staging_path, "/a/b");
	ck_assert(back->staged_block);
	ck_assert_uint_eq(strv_len(back->targets), 2);
	ck_assert_str_eq(back->targets[0], "/t/1");
	ck_assert_str_eq(back->targets[1], "/t/2");
	ck_assert_ptr_null(back->unknown_json);
	close_store();
}
END_TEST

START_TEST(what_was_modified_is_loaded)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record("v1", PHASE_READY);
	struct error *err = NULL;

	open_store();
	r->staged_usage = x_strdup("FileIO");
	r->erase_bytes_per_s = 1ULL << 50;
	r->copy_bytes_per_s = 1ULL << 51;
	strv_add(&r->modified, "usage");
	strv_add(&r->modified, "copyBandwidth");
	ASSERT_OK(state_put(store, r, &err));
	load();
	const struct volume_record *back = content.records[0];
	ck_assert_str_eq(back->staged_usage, "FileIO");
	ck_assert_uint_eq(back->erase_bytes_per_s, 1ULL << 50);
	ck_assert_uint_eq(back->copy_bytes_per_s, 1ULL << 51);
	ck_assert(strv_eq(back->modified, r->modified));
	ck_assert_ptr_null(back->unknown_json);
	close_store();
}
END_TEST

START_TEST(what_was_not_said_is_not_written)
{
	CLEANUP(free_charp) char *text = NULL;

	open_store();
	put("v1", PHASE_READY);
	text = read_text("v1.json");
	ck_assert_str_eq(text, "{\"id\":\"v1\",\"size\":0,\"parameters\":{}}\n");
	load();
	ck_assert_ptr_null(content.records[0]->identity);
	ck_assert_ptr_null(content.records[0]->pool);
	ck_assert_ptr_null(content.records[0]->targets);
	ck_assert(!content.records[0]->formatting && !content.records[0]->ever_staged);
	ck_assert(!content.records[0]->made_by_controller);
	close_store();
}
END_TEST

START_TEST(phase_is_the_suffix_and_each_step_a_rename)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record("v1", PHASE_CREATING);
	struct error *err = NULL;

	open_store();
	ASSERT_OK(state_put(store, r, &err));
	ck_assert(exists("v1.creating"));
	ASSERT_OK(state_advance(store, r, PHASE_READY, &err));
	ck_assert_int_eq(r->phase, PHASE_READY);
	ck_assert(!exists("v1.creating") && exists("v1.json"));
	ASSERT_OK(state_advance(store, r, PHASE_ERASING, &err));
	ck_assert(!exists("v1.json") && exists("v1.erasing"));
	load();
	ck_assert_int_eq(content.records[0]->phase, PHASE_ERASING);
	ASSERT_OK(state_remove(store, r, &err));
	ck_assert(!exists("v1.erasing"));
	ASSERT_OK(state_remove(store, r, &err));
	ASSERT_FAILS(state_advance(store, r, PHASE_READY, &err), ERR_NOT_FOUND, "v1");
	ck_assert_int_eq(r->phase, PHASE_ERASING);
	close_store();
}
END_TEST

START_TEST(folder_is_made_with_the_go_drivers_modes)
{
	struct stat st;

	umask(0);
	open_store();
	put("v1", PHASE_READY);
	ck_assert_int_eq(stat(FOLDER, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0750);
	ck_assert_int_eq(stat(FOLDER "/v1.json", &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	close_store();
}
END_TEST

START_TEST(folder_without_parent_is_not_made)
{
	struct error *err = NULL;

	ASSERT_FAILS(state_open(SCRATCH "/none/state", &store, &err), ERR_NOT_FOUND, "/none/state");
}
END_TEST

START_TEST(folder_has_one_driver_at_a_time)
{
	struct state_store *second = NULL;
	struct error *err = NULL;

	open_store();
	ASSERT_FAILS(state_open(FOLDER, &second, &err), ERR_UNAVAILABLE, FOLDER);
	close_store();
	open_store();
	close_store();
}
END_TEST

START_TEST(file_of_the_go_driver_is_understood)
{
	open_store();
	write_file("pvc-1.json",
		"{\"id\":\"pvc-1\",\"size\":1073741824,\"parameters\":{\"deviceMode\":\"lvm\",\"eraseafter\":"
		"\"true\",\"name\":\"pvc-1234\",\"size\":\"1073741824\"}}\n");
	write_file("pvc-2.json", "{\"id\":\"pvc-2\",\"size\":5,\"parameters\":null}\n");
	load();
	ck_assert_uint_eq(content.n_problems, 0);
	ck_assert_uint_eq(content.n_records, 2);
	ck_assert_uint_eq(content.records[0]->size_bytes, 1ULL << 30);
	ck_assert_str_eq(strmap_get(&content.records[0]->parameters, "name"), "pvc-1234");
	ck_assert_ptr_null(content.records[0]->identity);
	ck_assert_ptr_null(content.records[0]->pool);
	ck_assert_uint_eq(content.records[1]->parameters.n, 0);
	close_store();
}
END_TEST

START_TEST(unknown_members_are_kept)
{
	static const char *const members = "\"futureKey\":{\"a\":[1,2.5e3,null,true,\"x\\n\"]},\"other\":-1";
	CLEANUP(free_charp)
	char *text = x_asprintf("{\"id\":\"v1\",%s,\"size\":7,\"parameters\":{}}", members);
	struct error *err = NULL;

	open_store();
	write_file("v1.json", text);
	for (int i = 0; i < 2; i++) {
		load();
		ck_assert_str_eq(content.records[0]->unknown_json, members);
		ASSERT_OK(state_put(store, content.records[0], &err));
	}
	CLEANUP(free_charp) char *back = read_text("v1.json");
	ck_assert_ptr_nonnull(strstr(back, members));
	close_store();
}
END_TEST

START_TEST(damaged_files_hide_no_other_and_are_left_alone)
{
	static const char *const damaged[] = {
		"",
		"\n",
		"{",
		"[]",
		"null",
		"{\"size\":1,\"parameters\":{}}",
		"{\"id\":\"\",\"size\":1,\"parameters\":{}}",
		"{\"id\":\"other\",\"size\":1,\"parameters\":{}}",
		"{\"id\":\"bad\",\"size\":-1,\"parameters\":{}}",
		"{\"id\":\"bad\",\"size\":\"1\",\"parameters\":{}}",
		"{\"id\":\"bad\",\"size\":1,\"parameters\":{\"a\":1}}",
		"{\"id\":\"bad\",\"size\":1,\"parameters\":[]}",
		"{\"id\":\"bad\",\"size\":1,\"parameters\":{}}}",
		"{\"id\":\"bad\",\"size\":1,\"parameters\":{}",
		"{\"id\":\"bad\",\"size\":1,\"targets\":\"/a\"}",
		"{\"id\":\"bad\",\"size\":1,\"stagedEver\":1}",
		"{\"id\":\"bad\",\"size\":1,\"madeByController\":\"true\"}",
	};

	open_store();
	put("a", PHASE_READY);
	put("z", PHASE_READY);
	for (size_t i = 0; i < ARRAY_SIZE(damaged); i++) {
		write_file("bad.json", damaged[i]);
		load();
		ck_assert_msg(content.n_records == 2 && content.n_problems == 1, "%s", damaged[i]);
		ck_assert_str_eq(content.records[0]->id, "a");
		ck_assert_str_eq(content.records[1]->id, "z");
		ck_assert_str_eq(content.problems[0].file, "bad.json");
		ck_assert_str_eq(content.problems[0].id, "bad");
		ck_assert_uint_gt(strlen(content.problems[0].reason), 0);
		CLEANUP(free_charp) char *text = read_text("bad.json");
		ck_assert_str_eq(text, damaged[i]);
	}
	close_store();
}
END_TEST

START_TEST(files_that_are_too_large_or_named_badly_are_problems)
{
	CLEANUP(free_charp) char *large = x_asprintf("{\"id\":\"large\",\"x\":\"%70000s\"}", "");

	open_store();
	write_file("large.json", large);
	write_file("-x.json", "{\"id\":\"-x\",\"size\":1,\"parameters\":{}}");
	load();
	ck_assert_uint_eq(content.n_records, 0);
	ck_assert_uint_eq(content.n_problems, 2);
	ck_assert_str_eq(content.problems[0].file, "-x.json");
	ck_assert_str_eq(content.problems[1].file, "large.json");
	close_store();
}
END_TEST

START_TEST(of_two_files_of_one_volume_the_ready_one_wins)
{
	open_store();
	put("v1", PHASE_READY);
	put("v1", PHASE_CREATING);
	put("v2", PHASE_ERASING);
	put("v2", PHASE_READY);
	load();
	ck_assert_uint_eq(content.n_records, 2);
	ck_assert_int_eq(content.records[0]->phase, PHASE_READY);
	ck_assert_int_eq(content.records[1]->phase, PHASE_READY);
	ck_assert_uint_eq(content.n_problems, 2);
	ck_assert_str_eq(content.problems[0].file, "v1.creating");
	ck_assert_str_eq(content.problems[1].file, "v2.erasing");
	ck_assert_ptr_null(content.problems[0].id);
	ck_assert(exists("v1.creating") && exists("v2.erasing"));
	close_store();
}
END_TEST

START_TEST(what_is_no_volume_file_is_left_alone_but_own_temporaries)
{
	open_store();
	ck_assert_int_eq(mkdir(FOLDER "/mount", 0755), 0);
	write_file("README", "x");
	write_file(".json", "x");
	write_file("v1.json.tmp", "{\"id\":\"v1\"");
	write_file(".v1.json.tmp", "{\"id\":\"v1\"");
	load();
	ck_assert_uint_eq(content.n_records, 0);
	ck_assert_uint_eq(content.n_problems, 0);
	ck_assert(exists("mount") && exists("README") && exists(".json") && exists("v1.json.tmp") &&
		  exists(".lock"));
	ck_assert(!exists(".v1.json.tmp"));
	close_store();
}
END_TEST

START_TEST(who_only_looks_needs_no_lock_and_removes_nothing)
{
	struct state_store *looker = NULL;
	struct error *err = NULL;
	pid_t holder = 0;

	ASSERT_FAILS(state_open_read(FOLDER, &looker, &err), ERR_NOT_FOUND, FOLDER);
	open_store();
	put("v1", PHASE_READY);
	put("v1", PHASE_CREATING);
	write_file("v1.json.tmp", "{");
	write_file(".v1.json.tmp", "{");
	ASSERT_OK(state_open_read(FOLDER, &looker, &err));
	ASSERT_OK(state_load(looker, &content, &err));
	ck_assert_uint_eq(content.n_records, 1);
	ck_assert_uint_eq(content.n_problems, 3);
	ck_assert_int_eq(content.problems[0].kind, STATE_TEMPORARY);
	ck_assert_str_eq(content.problems[0].file, ".v1.json.tmp");
	ck_assert_int_eq(content.problems[1].kind, STATE_TWIN);
	ck_assert_int_eq(content.problems[1].record->phase, PHASE_CREATING);
	ck_assert_int_eq(content.problems[2].kind, STATE_TEMPORARY);
	ck_assert_str_eq(content.problems[2].file, "v1.json.tmp");
	ck_assert(exists(".v1.json.tmp"));
	ASSERT_OK(state_holder(looker, &holder, &err));
	ck_assert_int_eq(holder, getpid());
	close_store();
	ASSERT_OK(state_holder(looker, &holder, &err));
	ck_assert_int_eq(holder, 0);
	state_close(looker);
}
END_TEST

START_TEST(what_is_set_aside_replaces_nothing)
{
	CLEANUP(free_charp) char *first = NULL;
	CLEANUP(free_charp) char *second = NULL;
	struct error *err = NULL;

	open_store();
	write_file("v1.json", "one");
	ASSERT_OK(state_set_aside(store, "v1.json", &first, &err));
	write_file("v1.json", "two");
	ASSERT_OK(state_set_aside(store, "v1.json", &second, &err));
	ck_assert_str_eq(first, "v1.json.damaged");
	ck_assert_str_eq(second, "v1.json.damaged.2");
	CLEANUP(free_charp) char *one = read_text(first);
	CLEANUP(free_charp) char *two = read_text(second);
	ck_assert_str_eq(one, "one");
	ck_assert_str_eq(two, "two");
	load();
	ck_assert_uint_eq(content.n_records + content.n_problems, 0);
	ASSERT_OK(state_remove_file(store, "v1.json.damaged", &err));
	ASSERT_OK(state_remove_file(store, "v1.json.damaged", &err));
	close_store();
}
END_TEST

START_TEST(full_disk_keeps_the_old_file)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record("v1", PHASE_READY);
	struct error *err = NULL;

	open_store();
	put("v1", PHASE_READY);
	ck_assert_int_eq(mount("scratch", SCRATCH, NULL, MS_REMOUNT, "size=4k"), 0);
	r->size_bytes = 1;
	ASSERT_FAILS(state_put(store, r, &err), ERR_UNAVAILABLE, "v1");
	load();
	ck_assert_uint_eq(content.n_records, 1);
	ck_assert_uint_eq(content.records[0]->size_bytes, 0);
	close_store();
}
END_TEST

/* A tmpfs without a limit says of itself that it has no blocks, none of them free. */
START_TEST(disk_whose_size_is_not_known_is_not_full)
{
	struct error *err = NULL;
	struct statvfs fs;

	open_store();
	put("v1", PHASE_READY);
	ck_assert_int_eq(mount("scratch", SCRATCH, NULL, MS_REMOUNT, "size=4k"), 0);
	ASSERT_FAILS(state_check_space(store, &err), ERR_EXHAUSTED, "is full");
	ck_assert_int_eq(mount("scratch", SCRATCH, NULL, MS_REMOUNT, "size=0"), 0);
	ck_assert_int_eq(statvfs(SCRATCH, &fs), 0);
	ck_assert_uint_eq(fs.f_blocks, 0);
	ASSERT_OK(state_check_space(store, &err));
	close_store();
}
END_TEST

START_TEST(record_that_is_too_large_to_be_read_again_is_not_written)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record("v1", PHASE_READY);
	CLEANUP(free_charp) char *large = x_asprintf("%70000s", "");
	struct error *err = NULL;

	open_store();
	put("v1", PHASE_READY);
	strmap_set(&r->parameters, "name", large);
	ASSERT_FAILS(state_put(store, r, &err), ERR_EXHAUSTED, "v1");
	load();
	ck_assert_uint_eq(content.records[0]->parameters.n, 0);
	close_store();
}
END_TEST

START_TEST(copies_are_deep)
{
	CLEANUP(volume_record_freep) struct volume_record *r = new_record("v1", PHASE_ERASING);
	CLEANUP(volume_record_freep) struct volume_record *copy = NULL;

	strmap_set(&r->parameters, "name", "n");
	strv_add(&r->targets, "/t");
	strv_add(&r->modified, "usage");
	r->staged_usage = x_strdup("FileIO");
	copy = volume_record_dup(r);
	strmap_set(&r->parameters, "name", "changed");
	strv_add(&r->targets, "/u");
	strv_add(&r->modified, "eraseafter");
	r->staged_usage[0] = '-';
	ck_assert_str_eq(copy->staged_usage, "FileIO");
	ck_assert_uint_eq(strv_len(copy->modified), 1);
	ck_assert_str_eq(copy->id, "v1");
	ck_assert_int_eq(copy->phase, PHASE_ERASING);
	ck_assert_str_eq(strmap_get(&copy->parameters, "name"), "n");
	ck_assert_uint_eq(strv_len(copy->targets), 1);
	ck_assert_ptr_null(copy->pool);
}
END_TEST

SCRATCH_MAIN("state", everything_that_is_put_is_loaded, what_was_modified_is_loaded,
	for_whom_a_volume_is_is_loaded, for_whom_a_volume_is_damages_no_record,
	what_was_not_said_is_not_written, phase_is_the_suffix_and_each_step_a_rename,
	folder_is_made_with_the_go_drivers_modes, folder_without_parent_is_not_made,
	folder_has_one_driver_at_a_time, file_of_the_go_driver_is_understood, unknown_members_are_kept,
	damaged_files_hide_no_other_and_are_left_alone, files_that_are_too_large_or_named_badly_are_problems,
	of_two_files_of_one_volume_the_ready_one_wins,
	what_is_no_volume_file_is_left_alone_but_own_temporaries,
	who_only_looks_needs_no_lock_and_removes_nothing, what_is_set_aside_replaces_nothing,
	full_disk_keeps_the_old_file, disk_whose_size_is_not_known_is_not_full,
	record_that_is_too_large_to_be_read_again_is_not_written, copies_are_deep)
