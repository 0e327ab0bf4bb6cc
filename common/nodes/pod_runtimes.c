/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/pod_runtimes.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "base/thread.h"
#include "volume/claim.h"

_Static_assert(2 * REGISTRATION_POD_MS <= POD_RUNTIMES_WAIT_MS,
	"one controller that hangs leaves no time for another");

/* The facts about a pod that a controller has answered. */
struct pod_facts {
	char *runtime_class;
	char *fs_group;               /* decimal; NULL: none */
	char *fs_group_change_policy; /* NULL: none */
};

static void pod_facts_done(struct pod_facts *f)
{
	free(f->runtime_class);
	free(f->fs_group);
	free(f->fs_group_change_policy);
}

/* Between a thread, which waits for it, and the loop. Freed by the one that is done with it last. */
struct runtime_question {
	LIST_ENTRY(runtime_question) all;
	struct pod_runtimes *runtimes;
	struct volume_claim pod;
	char *uid;
	uint64_t deadline_ns;
	pthread_cond_t changed;
	bool answered;  /* by the loop */
	bool abandoned; /* by the thread */
	struct error *error;
	struct pod_facts facts;
};

struct pod_runtimes {
	struct volume_pods interface;
	char **kata_names;                 /* strv */
	struct registration *registration; /* the loop's */
	pthread_mutex_t mutex;             /* guards what follows */
	struct loop *loop;                 /* NULL: not open */
	LIST_HEAD(, runtime_question) questions;
};

/* --- names of RuntimeClasses */

static char **split_names(const char *names)
{
	char **list = NULL;

	for (const char *end; *names; names = *end ? end + 1 : end) {
		end = names + strcspn(names, ",");
		CLEANUP(free_charp) char *name = x_strndup(names, (size_t)(end - names));

		strv_add(&list, name);
	}
	return list;
}

static bool is_pattern(const char *name)
{
	size_t len = strlen(name);
	CLEANUP(free_charp) char *whole = NULL;

	if (len == 0 || name[len - 1] != '*')
		return name_is_object(name, NAME_OBJECT_MAX);
	/* whatever follows, the name may go on after a dash or dot */
	whole = x_asprintf("%.*sx", (int)(len - 1), name);
	return name_is_object(whole, NAME_OBJECT_MAX);
}

int pod_runtimes_check_names(const char *names, struct error **err)
{
	CLEANUP(strv_freep) char **list = split_names(names);
	char **name = list;

	for (; name && *name; name++) {
		if (!is_pattern(*name))
			return err_set(err, ERR_INVALID_ARGUMENT,
				"\"%s\" is neither the name of a RuntimeClass nor the beginning of one with \"*\"",
				*name);
	}
	return name != list ? 0 : err_set(err, ERR_INVALID_ARGUMENT, "no name of a RuntimeClass is given");
}

static bool matches(const char *pattern, const char *name)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] == '*')
		return strncmp(pattern, name, len - 1) == 0;
	return str_eq(pattern, name);
}

static bool is_kata(const struct pod_runtimes *r, const char *runtime_class)
{
	for (size_t i = 0; i < strv_len(r->kata_names); i++) {
		if (!str_empty(runtime_class) && matches(r->kata_names[i], runtime_class))
			return true;
	}
	return false;
}

/* --- questions */

/* It is in no list any more. */
static void question_free(struct runtime_question *q)
{
	claim_done(&q->pod);
	free(q->uid);
	error_free(q->error);
	pod_facts_done(&q->facts);
	pthread_cond_destroy(&q->changed);
	free(q);
}

static struct pod_facts read_facts(const Registry__V0__DescribePodReply *reply)
{
	const char *policy = reply->fs_group_change_policy;

	return (struct pod_facts){.runtime_class = x_strdup(reply->runtime_class),
		.fs_group = reply->has_fs_group ? x_asprintf("%" PRIu32, reply->fs_group) : NULL,
		.fs_group_change_policy = str_empty(policy) ? NULL : x_strdup(policy)};
}

static void on_answer(void *user, const Registry__V0__DescribePodReply *reply, const struct error *error)
{
	struct runtime_question *q = user;
	struct pod_runtimes *r = q->runtimes;

	pthread_mutex_lock(&r->mutex);
	q->answered = true;
	if (error)
		(void)err_set(&q->error, error->code, "%s", error->msg);
	else
		q->facts = read_facts(reply);
	pthread_cond_signal(&q->changed);
	bool is_last = q->abandoned;
	if (is_last)
		LIST_REMOVE(q, all);
	pthread_mutex_unlock(&r->mutex);
	if (is_last)
		question_free(q);
}

static void ask(void *user)
{
	struct runtime_question *q = user;
	struct pod_runtimes *r = q->runtimes;
	const struct registration_pod pod = {
		.namespace = q->pod.pod_namespace, .name = q->pod.pod, .uid = q->uid};
	CLEANUP(error_freep) struct error *closed = NULL;

	pthread_mutex_lock(&r->mutex);
	if (!r->loop)
		(void)err_set(&closed, ERR_UNAVAILABLE, "the driver is ending");
	pthread_mutex_unlock(&r->mutex);
	/* the registration is gone */
	if (closed) {
		on_answer(q, NULL, closed);
		return;
	}
	registration_ask_pod(q->runtimes->registration, &pod, q->deadline_ns, on_answer, q);
}

/* Takes @q. */
static int await(struct runtime_question *q, struct pod_facts *ret, struct error **err)
{
	struct pod_runtimes *r = q->runtimes;
	bool in_time = true;

	pthread_mutex_lock(&r->mutex);
	if (!r->loop) {
		pthread_mutex_unlock(&r->mutex);
		question_free(q);
		return err_set(err, ERR_UNAVAILABLE, "the driver is starting or ending");
	}
	LIST_INSERT_HEAD(&r->questions, q, all);
	loop_post(r->loop, ask, q);
	while (!q->answered && in_time)
		in_time = thread_wait_until(&q->changed, &r->mutex, q->deadline_ns);
	q->abandoned = !q->answered;
	if (q->answered)
		LIST_REMOVE(q, all);
	bool is_last = q->answered;
	pthread_mutex_unlock(&r->mutex);
	if (!is_last)
		return err_set(err, ERR_UNAVAILABLE, "no controller has answered within %d s",
			POD_RUNTIMES_WAIT_MS / 1000);
	*err = TAKE_PTR(q->error);
	*ret = q->facts;
	q->facts = (struct pod_facts){0};
	question_free(q);
	return *err ? err_recode(err, ERR_UNAVAILABLE) : 0;
}

static int find_facts(struct pod_runtimes *r, struct volume_claim *pod, const char *uid,
	struct pod_facts *ret, struct error **err)
{
	struct runtime_question *q = x_calloc(1, sizeof(*q));

	q->runtimes = r;
	q->pod = *pod;
	*pod = (struct volume_claim){0};
	q->uid = x_strdup(uid);
	q->deadline_ns = clock_ns() + POD_RUNTIMES_WAIT_MS * NS_PER_MS;
	thread_cond_init(&q->changed);
	return await(q, ret, err);
}

static int describe(
	struct pod_runtimes *r, const struct strmap *context, struct pod_facts *ret, struct error **err)
{
	CLEANUP(claim_done) struct volume_claim pod = {0};
	CLEANUP(free_charp) char *name = NULL;
	const char *uid = strmap_get(context, CLAIM_POD_UID);

	claim_read(context, CLAIM_POD, &pod);
	name = claim_pod(&pod);
	if (!name || str_empty(uid))
		return err_set(err, ERR_UNAVAILABLE,
			"NodePublishVolume does not say which pod the volume is for, which may run in a guest: "
			"the CSIDriver object has to have podInfoOnMount: true");
	if (find_facts(r, &pod, uid, ret, err) < 0)
		return err_wrap(err, "it is not known which runtime runs pod %s", name);
	return 0;
}

static int runs_in_guest(void *user, const struct strmap *context, bool *ret, struct error **err)
{
	CLEANUP(pod_facts_done) struct pod_facts facts = {0};

	if (describe(user, context, &facts, err) < 0)
		return -1;
	*ret = is_kata(user, facts.runtime_class);
	return 0;
}

static int fs_group(
	void *user, const struct strmap *context, char **ret_group, char **ret_policy, struct error **err)
{
	CLEANUP(pod_facts_done) struct pod_facts facts = {0};

	if (describe(user, context, &facts, err) < 0)
		return -1;
	*ret_group = TAKE_PTR(facts.fs_group);
	*ret_policy = TAKE_PTR(facts.fs_group_change_policy);
	return 0;
}

/* --- the whole */

struct pod_runtimes *pod_runtimes_new(const char *kata_names)
{
	struct pod_runtimes *r = x_calloc(1, sizeof(*r));

	r->interface = (struct volume_pods){.runs_in_guest = runs_in_guest, .fs_group = fs_group, .user = r};
	r->kata_names = split_names(kata_names);
	pthread_mutex_init(&r->mutex, NULL);
	LIST_INIT(&r->questions);
	return r;
}

void pod_runtimes_free(struct pod_runtimes *r)
{
	struct runtime_question *next;

	if (!r)
		return;
	/* those that the loop has not come to before it ended */
	for (struct runtime_question *q = LIST_FIRST(&r->questions); q; q = next) {
		next = LIST_NEXT(q, all);
		question_free(q);
	}
	pthread_mutex_destroy(&r->mutex);
	strv_free(r->kata_names);
	free(r);
}

void pod_runtimes_open(struct pod_runtimes *r, struct loop *loop, struct registration *registration)
{
	r->registration = registration;
	pthread_mutex_lock(&r->mutex);
	r->loop = loop;
	pthread_mutex_unlock(&r->mutex);
}

void pod_runtimes_close(struct pod_runtimes *r)
{
	pthread_mutex_lock(&r->mutex);
	r->loop = NULL;
	pthread_mutex_unlock(&r->mutex);
}

const struct volume_pods *pod_runtimes_volume_pods(const struct pod_runtimes *r)
{
	return &r->interface;
}
