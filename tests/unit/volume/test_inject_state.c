/* SPDX-License-Identifier: Apache-2.0 */
/* The state store, with the n-th call below it failing. */
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/inject/sweep.h"
#include "volume/state.h"

#define FOLDER      "/tmp/state"
#define SKIP_STATUS 77

static struct state_store *store;
static struct state_content content;
static struct volume_record *record;

static int open_store(struct error **err)
{
	return state_open(FOLDER, &store, err);
}

static void set_up(void)
{
	ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
	ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
	ck_assert_int_eq(mount("none", "/tmp", "tmpfs", 0, NULL), 0);
}

static void set_up_store(void)
{
	struct error *err = NULL;

	set_up();
	ASSERT_OK(open_store(&err));
}

static void close_store(void)
{
	state_close(TAKE_PTR(store));
	volume_record_free(TAKE_PTR(record));
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
	r->size_bytes = 4096;
	r->identity = x_strdup("identity");
	r->pool = x_strdup("pool");
	r->fs_type = x_strdup("ext4");
	r->ever_staged = true;
	r->staging_path = x_strdup("/staging");
	strv_add(&r->targets, "/target");
	strmap_set(&r->parameters, "name", "pvc-1");
	r->unknown_json = x_strdup("\"theirs\":[1,{\"x\":\"y\"}]");
	return r;
}

static void must_put(struct volume_record *r)
{
	struct error *err = NULL;

	ASSERT_OK(state_put(store, r, &err));
	volume_record_free(r);
}

static void make_record(void)
{
	record = new_record("vol", PHASE_CREATING);
}

static void put_record(void)
{
	make_record();
	must_put(volume_record_dup(record));
}

static void forget_record(void)
{
	volume_record_free(TAKE_PTR(record));
	unlink(FOLDER "/vol.creating");
	unlink(FOLDER "/vol.json");
}

static struct volume_record *load(size_t *ret_n)
{
	CLEANUP(state_content_done) struct state_content c = {0};
	struct error *err = NULL;

	ASSERT_OK(state_load(store, &c, &err));
	ck_assert_uint_eq(c.n_problems, 0);
	*ret_n = c.n_records;
	return c.n_records == 1 ? volume_record_dup(c.records[0]) : NULL;
}

static const char *not_loaded(enum volume_phase phase)
{
	size_t n;
	CLEANUP(volume_record_freep) struct volume_record *r = load(&n);

	RIGHT_IF(r && r->phase == phase && str_eq(r->id, "vol"));
	RIGHT_IF(str_eq(r->staging_path, "/staging") && strv_contains(r->targets, "/target"));
	RIGHT_IF(str_eq(strmap_get(&r->parameters, "name"), "pvc-1"));
	RIGHT_IF(str_eq(r->unknown_json, "\"theirs\":[1,{\"x\":\"y\"}]"));
	return NULL;
}

static const char *folder_wrong(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct state_store *second = NULL;
	struct stat st;

	RIGHT_IF(stat(FOLDER, &st) == 0 && (st.st_mode & 07777) == 0750);
	RIGHT_IF(state_open(FOLDER, &second, &err) < 0 && err->code == ERR_UNAVAILABLE);
	return NULL;
}

static void remove_folder(void)
{
	close_store();
	unlink(FOLDER "/.lock");
	ck_assert_int_eq(rmdir(FOLDER), 0);
}

START_TEST(the_folder_is_opened_and_locked_or_not)
{
	const struct sweep s = {.name = "state_open",
		.folder = "/tmp",
		.min_points = 8,
		.call = open_store,
		.wrong_at_end = folder_wrong,
		.undo = remove_folder};

	sweep_run(&s);
}
END_TEST

static int put(struct error **err)
{
	return state_put(store, record, err);
}

static const char *not_creating(void)
{
	return not_loaded(PHASE_CREATING);
}

/* The old content or the new: either can be read. */
static const char *unreadable(void)
{
	size_t n;

	volume_record_free(load(&n));
	RIGHT_IF(n <= 1);
	return NULL;
}

START_TEST(a_record_is_written_whole_or_not_at_all)
{
	const struct sweep s = {.name = "state_put",
		.folder = "/tmp",
		.min_points = 60,
		.prepare = make_record,
		.call = put,
		.wrong_after_failure = unreadable,
		.wrong_at_end = not_creating,
		.undo = forget_record};

	sweep_run(&s);
}
END_TEST

static int advance(struct error **err)
{
	return state_advance(store, record, PHASE_READY, err);
}

static const char *not_ready(void)
{
	RIGHT_IF(record->phase == PHASE_READY);
	RIGHT_IF(!exists("vol.creating"));
	return not_loaded(PHASE_READY);
}

/* After a failure the record in memory, which the caller goes on using, has the same phase as the file in the
 * folder. */
static const char *not_as_before(void)
{
	RIGHT_IF(record->phase == PHASE_CREATING);
	RIGHT_IF(exists("vol.creating") && !exists("vol.json"));
	return NULL;
}

START_TEST(a_record_advances_or_stays)
{
	const struct sweep s = {.name = "state_advance",
		.folder = "/tmp",
		.min_points = 2,
		.prepare = put_record,
		.call = advance,
		.wrong_after_failure = not_as_before,
		.wrong_at_end = not_ready,
		.undo = forget_record};

	sweep_run(&s);
}
END_TEST

/* A rename that fails has not touched what is there already under the new name. */
START_TEST(a_record_that_does_not_advance_costs_no_other_file)
{
	const struct inject_plan first = {INJECT_ONCE, INJECT_SYSTEM, 1, 0};
	struct error *err = NULL;

	must_put(new_record("vol", PHASE_READY));
	put_record();
	inject_arm(&first);
	ck_assert_int_lt(advance(&err), 0);
	ck_assert_str_eq(inject_disarm().hit, "renameat");
	error_free(err);
	ck_assert(exists("vol.creating"));
	ck_assert(exists("vol.json"));
}
END_TEST

/* Neither finished nor undone: the caller, which got a failure, gives the volume up. */
START_TEST(a_record_that_advanced_unseen_is_forgotten_whole)
{
	const struct inject_plan flush = {INJECT_LASTING, INJECT_SYSTEM, 2, 0};
	struct error *err = NULL;

	put_record();
	inject_arm(&flush);
	ck_assert_int_lt(advance(&err), 0);
	ck_assert_str_eq(inject_disarm().hit, "fsync");
	error_clear(&err);
	ck_assert(exists("vol.json"));
	ASSERT_OK(state_remove(store, record, &err));
	ck_assert(!exists("vol.json") && !exists("vol.creating"));
}
END_TEST

static int forget(struct error **err)
{
	return state_remove(store, record, err);
}

static const char *not_forgotten(void)
{
	RIGHT_IF(!exists("vol.creating"));
	return NULL;
}

START_TEST(a_record_is_forgotten_in_the_end)
{
	const struct sweep s = {.name = "state_remove",
		.folder = "/tmp",
		.min_points = 2,
		.prepare = put_record,
		.call = forget,
		.wrong_at_end = not_forgotten,
		.undo = forget_record};

	sweep_run(&s);
}
END_TEST

static int load_all(struct error **err)
{
	return state_load(store, &content, err);
}

/* A file that cannot be read is reported. */
static const char *something_hidden(void)
{
	size_t n_ids = 0;

	for (size_t i = 0; i < content.n_problems; i++)
		n_ids += str_eq(content.problems[i].id, "vol") || str_eq(content.problems[i].id, "other");
	RIGHT_IF(content.n_records + n_ids == 2);
	return NULL;
}

static void forget_content(void)
{
	state_content_done(&content);
}

START_TEST(nothing_is_hidden_by_what_cannot_be_read)
{
	const struct sweep s = {.name = "state_load",
		.folder = "/tmp",
		.min_points = 30,
		.call = load_all,
		.wrong_at_end = something_hidden,
		.undo = forget_content};

	must_put(new_record("vol", PHASE_READY));
	must_put(new_record("other", PHASE_ERASING));
	sweep_run(&s);
}
END_TEST

static const struct inject_plan *plan_for(unsigned n)
{
	static struct inject_plan plan = {.mode = INJECT_ONCE, .kinds = INJECT_SYSTEM | INJECT_BUFFER};

	plan.n = n;
	return &plan;
}

/* EMFILE, ENOMEM: it is the process that has too little, and nothing is known of the file. */
START_TEST(a_file_that_we_lack_the_means_to_read_is_not_called_damaged)
{
	struct inject_result r = {.hit = ""};

	must_put(new_record("vol", PHASE_READY));
	for (unsigned n = 1; r.hit; n++) {
		struct error *err = NULL;

		inject_arm(plan_for(n));
		int rc = load_all(&err);
		r = inject_disarm();
		if (r.hit && (r.how == EMFILE || r.how == ENOMEM))
			ck_assert_msg(rc < 0, "%s: %s", r.hit, content.problems[0].reason);
		error_free(err);
		forget_content();
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("inject_state");
	TCase *folder = tcase_create("folder");
	TCase *files = tcase_create("files");

	if (geteuid() != 0) {
		fprintf(stderr, "SKIP inject_state: needs root\n");
		return SKIP_STATUS;
	}
	tcase_add_checked_fixture(folder, set_up, NULL);
	tcase_set_timeout(folder, 60);
	tcase_add_test(folder, the_folder_is_opened_and_locked_or_not);
	tcase_add_checked_fixture(files, set_up_store, close_store);
	tcase_set_timeout(files, 60);
	tcase_add_test(files, a_record_is_written_whole_or_not_at_all);
	tcase_add_test(files, a_record_advances_or_stays);
	tcase_add_test(files, a_record_that_does_not_advance_costs_no_other_file);
	tcase_add_test(files, a_record_that_advanced_unseen_is_forgotten_whole);
	tcase_add_test(files, a_record_is_forgotten_in_the_end);
	tcase_add_test(files, nothing_is_hidden_by_what_cannot_be_read);
	tcase_add_test(files, a_file_that_we_lack_the_means_to_read_is_not_called_damaged);
	suite_add_tcase(suite, folder);
	suite_add_tcase(suite, files);
	return unit_runner_finish(srunner_create(suite));
}
