/* SPDX-License-Identifier: Apache-2.0 */
/* Creating a namespace, and failures during that, over a folder in the place of /sys. */
#include "base/mem.h"
#include "pmem/nd/nd_private.h"
#include "unit/os/scratch.h"
#include "unit/pmem/nd/nd_sys.h"

#define IDLE ND_SYS_REGION "/namespace0.1"
#define PFN  ND_SYS_REGION "/pfn0.1"
#define BTT  ND_SYS_REGION "/btt0.1"
#define SIZE "134217728"
/* A 0 written over SIZE. */
#define SIZE_TAKEN_BACK "034217728"

static struct nd_spec spec(enum nd_mode mode)
{
	return (struct nd_spec){.bus = "ndbus0",
		.region = "region0",
		.label = ND_SYS_NAME,
		.uuid = ND_SYS_UUID,
		.raw_bytes = MIB(128),
		.mode = mode};
}

/* An idle namespace, and what can be put before it. As files do not change each other, the namespace is held
 * by @holder before that has claimed it. */
static void have_idle(const char *holder)
{
	nd_sys_enter();
	nd_sys_namespace("namespace0.1", "0", "");
	nd_sys_files(IDLE, "uuid", "", "alt_name", "", "sector_size", "", "holder", holder, NULL);
	nd_sys_files(PFN, "uuid", "", "mode", "none", "align", "4096", "namespace", "", NULL);
	nd_sys_device(ND_SYS_REGION, "btt0.1");
	nd_sys_files(BTT, "uuid", "", "sector_size", "512", "namespace", "", NULL);
	nd_sys_files(ND_SYS_REGION, "namespace_seed", "namespace0.1", "btt_seed", "btt0.1", NULL);
}

struct failure {
	enum nd_mode mode;
	const char *holder;
	const char *missing; /* where the claim fails */
	bool claimed;        /* before that */
};

static const struct failure failures[] = {
	{ND_FSDAX, "pfn0.1", PFN "/uuid", false},
	{ND_FSDAX, "pfn0.1", PFN "/mode", false},
	{ND_FSDAX, "pfn0.1", PFN "/align", false},
	{ND_FSDAX, "pfn0.1", PFN "/namespace", false},
	{ND_FSDAX, "pfn0.1", ND_SYS_DRIVER "/bind", true},
	{ND_SECTOR, "btt0.1", BTT "/uuid", false},
	{ND_SECTOR, "btt0.1", BTT "/sector_size", false},
	{ND_SECTOR, "btt0.1", BTT "/namespace", false},
	{ND_SECTOR, "btt0.1", ND_SYS_DRIVER "/bind", true},
};

START_TEST(label_is_given_back_when_the_claim_fails)
{
	const struct failure *f = &failures[_i];
	CLEANUP(free_charp) char *holder = x_asprintf(ND_SYS_REGION "/%s", f->holder);
	struct nd_spec s = spec(f->mode);
	struct error *err = NULL;

	have_idle(f->holder);
	ck_assert_int_eq(unlink(f->missing), 0);
	ASSERT_FAILS(nd_make(&s, &err), ERR_INTERNAL, f->missing + strlen(f->claimed ? "" : ND_SYS_REGION));
	ck_assert(nd_sys_begins(IDLE, "uuid", ND_SYS_UUID));
	ck_assert(nd_sys_begins(IDLE, "size", SIZE_TAKEN_BACK));
	ck_assert(nd_sys_begins(IDLE, "holder_class", "\n"));
	if (f->claimed)
		ck_assert(nd_sys_begins(holder, "namespace", "\namespace0.1"));
}
END_TEST

/* The kernel writes the label when the size is set, so the size is set last. */
START_TEST(label_that_cannot_be_set_gets_no_size)
{
	static const char *const needed[] = {"alt_name", "sector_size", "holder_class"};
	CLEANUP(free_charp) char *path = x_asprintf(IDLE "/%s", needed[_i]);
	struct nd_spec s = spec(ND_FSDAX);
	struct error *err = NULL;

	have_idle("");
	ck_assert_int_eq(unlink(path), 0);
	ASSERT_FAILS(nd_make(&s, &err), ERR_INTERNAL, needed[_i]);
	ck_assert(nd_sys_begins(IDLE, "size", "0\n"));
	ck_assert(nd_sys_begins(PFN, "namespace", "\n"));
}
END_TEST

START_TEST(label_is_given_back_when_there_is_nothing_to_claim_with)
{
	static const enum nd_mode modes[] = {ND_FSDAX, ND_SECTOR};
	struct nd_spec s = spec(modes[_i]);
	struct error *err = NULL;

	have_idle("");
	nd_sys_files(ND_SYS_REGION, "pfn_seed", "", "btt_seed", "", NULL);
	ASSERT_FAILS(nd_make(&s, &err), ERR_UNAVAILABLE, "the kernel offers no");
	ck_assert(nd_sys_begins(IDLE, "size", SIZE_TAKEN_BACK));
}
END_TEST

struct refusal {
	const char *attribute; /* of the region */
	const char *content;
	enum err_code code;
	const char *text;
};

static const struct refusal refusals[] = {
	{"nstype", "4", ERR_PRECONDITION, "no labels"},
	{"read_only", "1", ERR_PRECONDITION, "read-only"},
	{"mapping0", "nmem1,0,2147483648,0", ERR_EXHAUSTED, "label slots"},
	{"max_available_extent", "67108864", ERR_EXHAUSTED, "largest free extent has 67108864"},
	{"align", "1073741824", ERR_INVALID_ARGUMENT, "not a multiple of 1073741824"},
};

static void assert_refused(const struct nd_spec *s, enum err_code code, const char *text)
{
	struct error *err = NULL;

	ASSERT_FAILS(nd_make(s, &err), code, text);
	ck_assert(nd_sys_begins(IDLE, "uuid", "\n"));
	ck_assert(nd_sys_begins(IDLE, "size", "0\n"));
}

START_TEST(region_that_does_not_fit_is_refused)
{
	const struct refusal *r = &refusals[_i];
	struct nd_spec s = spec(ND_FSDAX);

	have_idle("");
	nd_sys_device(ND_SYS_BUS, "nmem1");
	nd_sys_file(ND_SYS_BUS "/nmem1", "available_slots", "0");
	nd_sys_file(ND_SYS_REGION, r->attribute, r->content);
	assert_refused(&s, r->code, r->text);
}
END_TEST

START_TEST(region_that_is_not_there_is_refused)
{
	struct nd_spec s = spec(ND_FSDAX);

	have_idle("");
	s.region = "region1";
	assert_refused(&s, ERR_NOT_FOUND, "region1");
	s = spec(ND_FSDAX);
	s.bus = "ndbus1";
	assert_refused(&s, ERR_NOT_FOUND, "ndbus1");
	s = spec(ND_FSDAX);
	ck_assert_int_eq(unlink(ND_SYS_REGION "/driver"), 0);
	assert_refused(&s, ERR_PRECONDITION, "disabled");
}
END_TEST

START_TEST(sector_mode_without_space_for_its_table_is_refused)
{
	struct nd_spec s = spec(ND_SECTOR);

	have_idle("");
	s.raw_bytes = 0;
	assert_refused(&s, ERR_INVALID_ARGUMENT, "too few for sector mode");
}
END_TEST

START_TEST(label_is_given_back_when_the_kernel_has_no_space)
{
	struct nd_spec s = spec(ND_FSDAX);
	struct error *err = NULL;

	have_idle("");
	nd_sys_link(PFN, "align", "/dev/full");
	ASSERT_FAILS(nd_make(&s, &err), ERR_EXHAUSTED, "/pfn0.1/align");
	ck_assert(nd_sys_begins(IDLE, "size", SIZE_TAKEN_BACK));
}
END_TEST

/* Its UUID becomes that of the page map, which the claim sets. */
START_TEST(namespace_that_became_anothers_is_left_alone)
{
	struct nd_spec s = spec(ND_FSDAX);
	struct error *err = NULL;

	have_idle("pfn0.0");
	nd_sys_device(ND_SYS_REGION, "pfn0.0");
	nd_sys_file(ND_SYS_REGION "/pfn0.0", "namespace", "namespace0.1");
	nd_sys_link(IDLE, "uuid", PFN "/uuid");
	ck_assert_int_eq(unlink(PFN "/namespace"), 0);
	ASSERT_FAILS(nd_make(&s, &err), ERR_INTERNAL, "/pfn0.1/namespace");
	ck_assert(!nd_sys_begins(IDLE, "uuid", "\n"));
	ck_assert(!nd_sys_begins(IDLE, "uuid", ND_SYS_UUID));
	ck_assert(nd_sys_begins(IDLE, "size", SIZE));
	ck_assert(nd_sys_begins(IDLE, "holder_class", "pfn"));
	ck_assert(nd_sys_begins(ND_SYS_REGION "/pfn0.0", "namespace", "namespace0.1\n"));
}
END_TEST

/* A namespace that another program has created and not enabled yet must not keep force_raw set after a
 * creation that failed. */
START_TEST(seed_with_a_size_does_not_stay_raw)
{
	struct nd_spec s = spec(ND_FSDAX);
	struct error *err = NULL;

	have_idle("");
	nd_sys_files(IDLE, "size", SIZE, "uuid", ND_SYS_UUID, "force_raw", "-", NULL);
	ck_assert_int_eq(unlink(ND_SYS_DRIVER "/bind"), 0);
	ASSERT_FAILS(nd_make(&s, &err), ERR_INTERNAL, "abandoned namespace");
	ck_assert(nd_sys_begins(IDLE, "force_raw", "0"));
	ck_assert(nd_sys_begins(IDLE, "size", SIZE));
	ck_assert(nd_sys_begins(IDLE, "alt_name", "\n"));
	ck_assert_int_eq(unlink(IDLE "/force_raw"), 0);
	ASSERT_FAILS(nd_make(&s, &err), ERR_INTERNAL, "abandoned namespace");
}
END_TEST

START_TEST(uuid_that_cannot_be_taken_away_stays)
{
	struct nd_spec s = spec(ND_FSDAX);
	struct error *err = NULL;

	have_idle("");
	s.uuid = "6f1d2c3b-0000-4000-8000-00000000000a";
	nd_sys_file(IDLE, "uuid", ND_SYS_UUID);
	ck_assert_int_eq(mount(IDLE "/size", IDLE "/size", NULL, MS_BIND, NULL), 0);
	ck_assert_int_eq(mount(NULL, IDLE "/size", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
	ASSERT_FAILS(nd_make(&s, &err), ERR_INTERNAL, "abandoned namespace");
	ck_assert(nd_sys_begins(IDLE, "uuid", ND_SYS_UUID));
	ck_assert(nd_sys_begins(IDLE, "alt_name", "\n"));
}
END_TEST

START_TEST(page_map_that_does_not_start_claims_nothing)
{
	struct error *err = NULL;

	have_idle("pfn0.1");
	ck_assert_int_eq(unlink(ND_SYS_DRIVER "/bind"), 0);
	ASSERT_FAILS(nd_claim_fsdax("namespace0.1", &err), ERR_INTERNAL, "pfn0.1");
	ck_assert(nd_sys_begins(PFN, "namespace", "\namespace0.1"));
	ASSERT_FAILS(nd_claim_fsdax("namespace0.9", &err), ERR_NOT_FOUND, "namespace0.9");
}
END_TEST

START_TEST(namespace_is_made_of_the_idle_one)
{
	struct nd_spec s = spec(ND_FSDAX);
	struct error *err = NULL;

	have_idle("");
	ASSERT_OK(nd_make(&s, &err));
	ck_assert(nd_sys_begins(IDLE, "uuid", ND_SYS_UUID));
	ck_assert(nd_sys_begins(IDLE, "alt_name", ND_SYS_NAME));
	ck_assert(nd_sys_begins(IDLE, "size", SIZE));
	ck_assert(nd_sys_begins(IDLE, "holder_class", "pfn"));
	ck_assert(nd_sys_begins(PFN, "namespace", "namespace0.1"));
	ck_assert(nd_sys_begins(ND_SYS_DRIVER, "bind", "pfn0.1"));
}
END_TEST

START_TEST(namespace_in_use_is_not_taken_for_an_idle_one)
{
	struct nd_spec s = spec(ND_FSDAX);
	struct error *err = NULL;

	have_idle("");
	nd_sys_bind(IDLE);
	ASSERT_FAILS(nd_make(&s, &err), ERR_UNAVAILABLE, "no idle namespace");
	ck_assert(nd_sys_begins(IDLE, "uuid", "\n"));
	ck_assert(nd_sys_begins(IDLE, "size", "0\n"));
}
END_TEST

int main(void)
{
	const char *why = scratch_unavailable();
	Suite *suite = suite_create("pmem/nd/nd_make");
	TCase *tc = tcase_create("sysfs");

	if (why) {
		fprintf(stderr, "SKIP pmem/nd/nd_make: %s\n", why);
		return SCRATCH_SKIP_STATUS;
	}
	suite_add_tcase(suite, tc);
	tcase_add_checked_fixture(tc, scratch_enter, NULL);
	tcase_add_loop_test(tc, label_is_given_back_when_the_claim_fails, 0, ARRAY_SIZE(failures));
	tcase_add_loop_test(tc, label_that_cannot_be_set_gets_no_size, 0, 3);
	tcase_add_loop_test(tc, label_is_given_back_when_there_is_nothing_to_claim_with, 0, 2);
	tcase_add_test(tc, label_is_given_back_when_the_kernel_has_no_space);
	tcase_add_loop_test(tc, region_that_does_not_fit_is_refused, 0, ARRAY_SIZE(refusals));
	tcase_add_test(tc, region_that_is_not_there_is_refused);
	tcase_add_test(tc, sector_mode_without_space_for_its_table_is_refused);
	tcase_add_test(tc, namespace_that_became_anothers_is_left_alone);
	tcase_add_test(tc, seed_with_a_size_does_not_stay_raw);
	tcase_add_test(tc, uuid_that_cannot_be_taken_away_stays);
	tcase_add_test(tc, page_map_that_does_not_start_claims_nothing);
	tcase_add_test(tc, namespace_is_made_of_the_idle_one);
	tcase_add_test(tc, namespace_in_use_is_not_taken_for_an_idle_one);
	return unit_runner_finish(srunner_create(suite));
}
