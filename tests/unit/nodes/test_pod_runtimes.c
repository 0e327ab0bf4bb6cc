/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod runs in a guest, as a node finds it out from the controllers. */
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "nodes/pod_runtimes.h"
#include "unit/nodes/fake_registry.h"
#include "unit/unit.h"
#include "volume/claim.h"

#define UID "11111111-2222-3333-4444-555555555555"

static struct registry_side one, two;
static struct registration *registration;
static struct pod_runtimes *runtimes;
static struct error *err;

/* A question that a thread asks. */
static struct {
	struct strmap context;
	atomic_bool done;
	int rc;
	bool guest;
	bool about_group; /* what is asked for is the fsGroup */
	char *group;
	char *policy;
	struct error *error;
	uint64_t took_ns;
} question;

static void fill(void *user, Registry__V0__RegisterControllerRequest *q, struct arena *arena)
{
	(void)user;
	q->endpoint = arena_strdup(arena, "tcp://node.example:10001");
}

static bool is_registered(void *user)
{
	struct registration_peer *peers;
	size_t n = registration_peers(registration, &peers);
	CLEANUP(free_charp) char *list = (char *)peers;
	size_t registered = 0;

	(void)list;
	for (size_t i = 0; i < n; i++)
		registered += peers[i].registered;
	return registered >= *(const size_t *)user;
}

/* With the controllers that were begun before. */
static void begin(size_t n)
{
	const struct registration_config config = {.loop = rig.loop,
		.endpoint = "tcp://registry.example:10000",
		.node_id = "node-1",
		.heartbeat_ms = 24ULL * 3600 * 1000,
		.fill = fill};

	rig.found[0] = one.endpoint;
	if (n > 1)
		rig.found[1] = two.endpoint;
	ASSERT_OK(registration_new(&config, &registration, &err));
	runtimes = pod_runtimes_new(POD_RUNTIMES_KATA);
	pod_runtimes_open(runtimes, rig.loop, registration);
	rig_until(is_registered, &n);
}

static void begin_with_one(void)
{
	rig_open();
	registry_serve(&one, NULL, NULL);
	begin(1);
}

static void forget(void)
{
	strmap_done(&question.context);
	error_clear(&question.error);
	free(TAKE_PTR(question.group));
	free(TAKE_PTR(question.policy));
}

static void close_all(void)
{
	pod_runtimes_close(runtimes);
	registration_free(TAKE_PTR(registration));
	registry_end(&one);
	registry_end(&two);
	registry_forget(&one);
	registry_forget(&two);
	rig_close();
	pod_runtimes_free(TAKE_PTR(runtimes));
	forget();
}

static void work(void *user)
{
	const struct volume_pods *pods = pod_runtimes_volume_pods(runtimes);
	uint64_t begun_ns = clock_ns();

	(void)user;
	if (question.about_group)
		question.rc = pods->fs_group(
			pods->user, &question.context, &question.group, &question.policy, &question.error);
	else
		question.rc =
			pods->runs_in_guest(pods->user, &question.context, &question.guest, &question.error);
	question.took_ns = clock_ns() - begun_ns;
	question.done = true;
}

static void ignore(void *user)
{
	(void)user;
}

static bool is_done(void *user)
{
	(void)user;
	return question.done;
}

static void ask_about(const char *pod, const char *uid)
{
	forget();
	question.done = false;
	question.guest = false;
	strmap_set(&question.context, "csi.storage.k8s.io/pod.namespace", "ns");
	if (pod)
		strmap_set(&question.context, "csi.storage.k8s.io/pod.name", pod);
	if (uid)
		strmap_set(&question.context, CLAIM_POD_UID, uid);
	ck_assert(workers_run(rig.workers, work, ignore, NULL));
}

static void ask(void)
{
	ask_about("db", UID);
	rig_until(is_done, NULL);
}

static void assert_unknown(const char *text)
{
	ck_assert_int_eq(question.rc, -1);
	ck_assert_ptr_nonnull(question.error);
	ck_assert_int_eq(question.error->code, ERR_UNAVAILABLE);
	ck_assert_msg(strstr(question.error->msg, text) != NULL, "%s", question.error->msg);
}

static void assert_guest(bool guest)
{
	ck_assert_msg(question.rc == 0, "%s", question.error ? question.error->msg : "no error");
	ck_assert(question.guest == guest);
}

START_TEST(the_runtime_class_decides)
{
	static const struct {
		const char *class;
		bool guest;
	} cases[] = {
		{NULL, false}, {"kata", true}, {"kata-qemu", true}, {"katamaran", false}, {"gvisor", false}};

	begin_with_one();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		one.runtime_class = cases[i].class;
		ask();
		assert_guest(cases[i].guest);
	}
	ck_assert_str_eq(one.asked_pod, "ns/db/" UID);
	close_all();
}
END_TEST

START_TEST(the_group_of_a_pod_is_known)
{
	begin_with_one();
	question.about_group = true;
	ask();
	ck_assert_int_eq(question.rc, 0);
	ck_assert_ptr_null(question.group);
	ck_assert_ptr_null(question.policy);
	one.fs_group = 2000;
	one.fs_group_policy = "OnRootMismatch";
	ask();
	ck_assert_int_eq(question.rc, 0);
	ck_assert_str_eq(question.group, "2000");
	ck_assert_str_eq(question.policy, "OnRootMismatch");
	ask_about("db", NULL);
	rig_until(is_done, NULL);
	assert_unknown("podInfoOnMount");
	close_all();
}
END_TEST

START_TEST(a_pod_that_is_not_named_is_not_asked_about)
{
	begin_with_one();
	ask_about(NULL, UID);
	rig_until(is_done, NULL);
	assert_unknown("podInfoOnMount");
	ask_about("db", NULL);
	rig_until(is_done, NULL);
	assert_unknown("podInfoOnMount");
	ck_assert_uint_eq(one.asked, 0);
	close_all();
}
END_TEST

START_TEST(an_older_controller_cannot_say)
{
	one.is_old = true;
	begin_with_one();
	ask();
	assert_unknown("update the controller");
	close_all();
}
END_TEST

START_TEST(the_next_controller_is_asked_when_one_cannot_say)
{
	static const enum err_code codes[] = {
		ERR_UNAVAILABLE, ERR_PERMISSION, ERR_UNAUTHENTICATED, ERR_INTERNAL};

	rig_open();
	registry_serve(&one, NULL, NULL);
	registry_serve(&two, NULL, NULL);
	begin(2);
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		one.refuse_pods = codes[i];
		two.refuse_pods = 0;
		two.runtime_class = "kata";
		ask();
		assert_guest(true);
		one.refuse_pods = 0;
		one.runtime_class = "kata";
		two.refuse_pods = codes[i];
		ask();
		assert_guest(true);
	}
	one.refuse_pods = two.refuse_pods = ERR_UNAVAILABLE;
	ask();
	assert_unknown("no pods as the test wants it; controller at tcp://127.0.0.1");
	close_all();
}
END_TEST

START_TEST(a_pod_that_does_not_exist_is_asked_about_once)
{
	rig_open();
	registry_serve(&one, NULL, NULL);
	registry_serve(&two, NULL, NULL);
	begin(2);
	one.refuse_pods = two.refuse_pods = ERR_NOT_FOUND;
	ask();
	assert_unknown("pod ns/db");
	ck_assert_uint_eq(one.asked + two.asked, 1);
	close_all();
}
END_TEST

START_TEST(a_controller_that_hangs_is_not_waited_for_when_there_is_another)
{
	rig_open();
	registry_serve(&one, NULL, NULL);
	registry_serve(&two, NULL, NULL);
	begin(2);
	one.hold_pods = true;
	one.runtime_class = two.runtime_class = "kata";
	ask();
	assert_guest(true);
	one.hold_pods = false;
	registry_release_pods(&one);
	two.hold_pods = true;
	ask();
	assert_guest(true);
	close_all();
}
END_TEST

START_TEST(without_a_controller_there_is_no_answer)
{
	begin_with_one();
	registry_end(&one);
	rig_rounds();
	ask();
	assert_unknown("registered with no controller");
	close_all();
}
END_TEST

START_TEST(a_connection_that_is_lost_ends_the_question)
{
	begin_with_one();
	one.hold_pods = true;
	ask_about("db", UID);
	rig_until_number(&one.asked, 1);
	pod_runtimes_close(runtimes);
	registration_free(TAKE_PTR(registration));
	rig_until(is_done, NULL);
	assert_unknown("controller at");
	/* and no other begins */
	ask();
	assert_unknown("starting or ending");
	close_all();
}
END_TEST

START_TEST(a_loop_that_hangs_is_not_waited_for)
{
	begin_with_one();
	one.runtime_class = "kata";
	ask_about("db", UID);
	while (!question.done)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	assert_unknown("within 5 s");
	ck_assert_uint_ge(question.took_ns, POD_RUNTIMES_WAIT_MS * NS_PER_MS);
	/* what the loop finds out later harms nothing, also if it ends before */
	rig_rounds();
	ask_about("db", UID);
	while (!question.done)
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	close_all();
}
END_TEST

START_TEST(names_of_runtime_classes_are_checked)
{
	static const char *const good[] = {"kata", "kata,kata-*", "*", "a.b-*,c", "kata.*"};
	static const char *const bad[] = {"", ",kata", "kata,,x", "ka*ta", "kata qemu", "-*"};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		ASSERT_OK(pod_runtimes_check_names(good[i], &err));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_FAILS(pod_runtimes_check_names(bad[i], &err), ERR_INVALID_ARGUMENT, "RuntimeClass");
}
END_TEST

UNIT_MAIN("nodes/pod_runtimes", the_runtime_class_decides, the_group_of_a_pod_is_known,
	a_pod_that_is_not_named_is_not_asked_about, an_older_controller_cannot_say,
	the_next_controller_is_asked_when_one_cannot_say, a_pod_that_does_not_exist_is_asked_about_once,
	a_controller_that_hangs_is_not_waited_for_when_there_is_another,
	without_a_controller_there_is_no_answer, a_connection_that_is_lost_ends_the_question,
	a_loop_that_hangs_is_not_waited_for, names_of_runtime_classes_are_checked)
