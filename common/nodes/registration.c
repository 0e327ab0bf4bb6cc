/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/registration.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "nodes/registration_peer.h"

/* Between two reports of changes. */
#define CHANGE_PAUSE_MS 250

#define NS_PER_US 1000

struct registration {
	struct registration_config config; /* its strings are those below */
	char *node_id;
	char *endpoint;
	char *token_file;
	char instance[UUID_TEXT_LEN + 1]; /* names this run to the controllers */
	struct report_number number;
	struct addr addr; /* its host may be a name */
	struct peer *peers;
	struct loop_lookup *lookup; /* NULL: none runs */
	struct backoff backoff;     /* of look-ups */
	struct wait_log waiting;    /* for the name */
	struct loop_timer *look_again;
	struct loop_timer *heartbeat;
	struct loop_timer *change;
	struct loop_timer *end; /* calls done */
	uint64_t changed_ns;    /* when a change was last looked at */
	bool change_planned;
	bool stopping;
	size_t n_leaving;
	loop_fn done;
	void *done_user;
};

static void look_up(void *user);

static void peer_left(void *user)
{
	struct registration *r = user;

	if (--r->n_leaving == 0)
		loop_timer_set(r->end, 0, /* repeat_ms= */ 0);
}

static struct peer *find_peer(const struct registration *r, const char *address)
{
	for (struct peer *p = r->peers; p; p = p->next) {
		if (str_eq(p->address, address))
			return p;
	}
	return NULL;
}

static void add_peer(struct registration *r, const char *address)
{
	const struct registration_peer_config config = {.registration = &r->config,
		.instance = r->instance,
		.number = &r->number,
		.unreachable = look_up,
		.left = peer_left,
		.user = r};
	struct peer *p = peer_new(&config, address);

	p->found = true;
	p->next = r->peers;
	r->peers = p;
	peer_say(p);
}

static void drop_vanished(struct registration *r)
{
	struct peer **at = &r->peers;

	while (*at) {
		struct peer *p = *at;

		if (p->found) {
			at = &p->next;
			continue;
		}
		*at = p->next;
		log_info("the controller's name no longer resolves to an address",
			F_STR("address", p->address));
		peer_free(p);
	}
}

static void use_addresses(struct registration *r, char *const *addresses)
{
	for (struct peer *p = r->peers; p; p = p->next)
		p->found = false;
	for (size_t i = 0; addresses[i]; i++) {
		struct peer *p = find_peer(r, addresses[i]);

		if (p)
			p->found = true;
		else
			add_peer(r, addresses[i]);
	}
	drop_vanished(r);
}

static void on_addresses(void *user, char *const *addresses, const struct error *error)
{
	struct registration *r = user;
	uint64_t now_ns = clock_ns();

	r->lookup = NULL;
	if (!error) {
		wait_log_over(&r->waiting);
		backoff_reset(&r->backoff);
		use_addresses(r, addresses);
		return;
	}
	/* the addresses that were known may still be right */
	if (wait_log_due(&r->waiting, error->msg, now_ns))
		log_warn("waiting for the address of the controller", F_STR("endpoint", r->endpoint),
			F_U64("waited_s", (now_ns - r->waiting.since_ns) / NS_PER_S), F_ERR(error));
	backoff_fail(&r->backoff, now_ns);
	loop_timer_set(r->look_again, (r->backoff.until_ns - now_ns) / NS_PER_MS + 1, /* repeat_ms= */ 0);
}

static void look_up(void *user)
{
	struct registration *r = user;

	if (r->lookup || r->stopping)
		return;
	loop_timer_stop(r->look_again);
	r->lookup = loop_look_up(r->config.loop, r->addr.host, r->addr.port, on_addresses, r);
}

static void plan_heartbeat(struct registration *r)
{
	uint64_t ms = r->config.heartbeat_ms;

	loop_timer_set(r->heartbeat, ms - ms / 5 + random_u64() % (2 * (ms / 5) + 1), /* repeat_ms= */ 0);
}

static void on_heartbeat(void *user)
{
	struct registration *r = user;

	look_up(r);
	for (struct peer *p = r->peers; p; p = p->next)
		peer_say(p);
	plan_heartbeat(r);
}

static void on_change(void *user)
{
	struct registration *r = user;

	r->change_planned = false;
	r->changed_ns = clock_ns();
	for (struct peer *p = r->peers; p; p = p->next)
		peer_touch(p);
}

static void on_end(void *user)
{
	struct registration *r = user;
	loop_fn done = r->done;

	r->done = NULL;
	if (done)
		done(r->done_user);
}

/* No run makes so many reports that the next one would not begin with a larger number. */
static uint64_t first_report(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return ((uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec) / NS_PER_US;
}

int registration_new(const struct registration_config *config, struct registration **ret, struct error **err)
{
	struct addr addr;
	struct registration *r;

	if (addr_parse_name(config->endpoint, &addr, err) < 0)
		return -1;
	r = x_calloc(1, sizeof(*r));
	r->addr = addr;
	r->node_id = x_strdup(config->node_id);
	r->endpoint = x_strdup(config->endpoint);
	uuid_generate_text(r->instance);
	r->config = *config;
	r->config.node_id = r->node_id;
	r->config.endpoint = r->endpoint;
	r->token_file = x_strdup(config->token_file);
	r->config.token_file = r->token_file;
	if (config->tls)
		tls_context_ref(config->tls);
	if (r->config.heartbeat_ms == 0)
		r->config.heartbeat_ms = REGISTRATION_HEARTBEAT_MS;
	r->number.number = first_report();
	backoff_init(&r->backoff, /* first_ms= */ 0);
	r->look_again = loop_timer_new(config->loop, look_up, r);
	r->heartbeat = loop_timer_new(config->loop, on_heartbeat, r);
	r->change = loop_timer_new(config->loop, on_change, r);
	r->end = loop_timer_new(config->loop, on_end, r);
	look_up(r);
	plan_heartbeat(r);
	*ret = r;
	return 0;
}

void registration_free(struct registration *r)
{
	struct peer *p;

	if (!r)
		return;
	r->stopping = true;
	loop_lookup_cancel(r->lookup);
	while ((p = r->peers)) {
		r->peers = p->next;
		peer_free(p);
	}
	loop_timer_close(r->look_again);
	loop_timer_close(r->heartbeat);
	loop_timer_close(r->change);
	loop_timer_close(r->end);
	tls_context_unref(r->config.tls);
	wait_log_over(&r->waiting);
	addr_done(&r->addr);
	free(r->node_id);
	free(r->endpoint);
	free(r->token_file);
	free(r);
}

void registration_touch(struct registration *r)
{
	uint64_t since_ms = (clock_ns() - r->changed_ns) / NS_PER_MS;

	if (r->change_planned || r->stopping)
		return;
	r->change_planned = true;
	loop_timer_set(
		r->change, since_ms < CHANGE_PAUSE_MS ? CHANGE_PAUSE_MS - since_ms : 0, /* repeat_ms= */ 0);
}

void registration_stop(struct registration *r, loop_fn done, void *user)
{
	r->stopping = true;
	r->done = done;
	r->done_user = user;
	loop_lookup_cancel(TAKE_PTR(r->lookup));
	loop_timer_stop(r->look_again);
	loop_timer_stop(r->heartbeat);
	loop_timer_stop(r->change);
	for (struct peer *p = r->peers; p; p = p->next)
		r->n_leaving += peer_leave(p);
	loop_timer_set(r->end, r->n_leaving > 0 ? REGISTRATION_STOP_MS : 0, /* repeat_ms= */ 0);
}

/* A question about one pod; one of its calls runs always. */
struct pod_question {
	struct registration *registration;
	char **addresses; /* strv: of all controllers that there were */
	size_t next;      /* of them */
	char *namespace;
	char *name;
	char *uid;
	uint64_t deadline_ns;
	char *reasons; /* why controllers have not answered; NULL: none was asked */
	registration_pod_fn fn;
	void *user;
};

static void pod_question_end(
	struct pod_question *q, const Registry__V0__DescribePodReply *reply, const struct error *error)
{
	q->fn(q->user, reply, error);
	strv_free(q->addresses);
	free(q->namespace);
	free(q->name);
	free(q->uid);
	free(q->reasons);
	free(q);
}

static void add_reason(struct pod_question *q, const struct error *e)
{
	CLEANUP(free_charp) char *before = TAKE_PTR(q->reasons);
	const char *address = q->addresses[q->next - 1];
	const char *text = e->code == ERR_UNIMPLEMENTED
				   ? "it is of an earlier release and cannot say; update the controller"
				   : e->msg;

	q->reasons = x_asprintf(
		"%s%scontroller at %s: %s", before ? before : "", before ? "; " : "", address, text);
}

static void ask_next(struct pod_question *q);

static void on_pod(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct pod_question *q = user;

	if (!error || error->code == ERR_NOT_FOUND) {
		pod_question_end(q, (const Registry__V0__DescribePodReply *)reply, error);
		return;
	}
	add_reason(q, error);
	ask_next(q);
}

/* Return: whether the controller at the next address was asked. */
static bool ask_one(struct pod_question *q, uint64_t left_ms)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct registration_pod pod = {.namespace = q->namespace, .name = q->name, .uid = q->uid};
	struct peer *p = find_peer(q->registration, q->addresses[q->next++]);

	if (!p || !peer_is_registered(p))
		return false;
	if (peer_ask_pod(p, &pod, left_ms < REGISTRATION_POD_MS ? left_ms : REGISTRATION_POD_MS, on_pod, q,
		    &err) == 0)
		return true;
	add_reason(q, err);
	return false;
}

static void ask_next(struct pod_question *q)
{
	CLEANUP(error_freep) struct error *err = NULL;

	while (q->addresses && q->addresses[q->next] && !q->registration->stopping) {
		uint64_t now_ns = clock_ns();
		uint64_t left_ms = q->deadline_ns > now_ns ? (q->deadline_ns - now_ns) / NS_PER_MS : 0;

		if (left_ms == 0)
			break;
		if (ask_one(q, left_ms))
			return;
	}
	(void)err_set(&err, ERR_UNAVAILABLE, "%s",
		q->reasons ? q->reasons : "this node is registered with no controller");
	pod_question_end(q, /* reply= */ NULL, err);
}

void registration_ask_pod(struct registration *r, const struct registration_pod *pod, uint64_t deadline_ns,
	registration_pod_fn fn, void *user)
{
	struct pod_question *q = x_calloc(1, sizeof(*q));

	q->registration = r;
	for (const struct peer *p = r->peers; p; p = p->next)
		strv_add(&q->addresses, p->address);
	q->namespace = x_strdup(pod->namespace);
	q->name = x_strdup(pod->name);
	q->uid = x_strdup(pod->uid);
	q->deadline_ns = deadline_ns;
	q->fn = fn;
	q->user = user;
	ask_next(q);
}

size_t registration_peers(const struct registration *r, struct registration_peer **ret)
{
	uint64_t lease_ns = REGISTRATION_LEASE_HEARTBEATS * r->config.heartbeat_ms * NS_PER_MS;
	uint64_t now_ns = clock_ns();
	struct registration_peer *list;
	size_t n = 0;

	for (const struct peer *p = r->peers; p; p = p->next)
		n++;
	list = x_calloc(n, sizeof(*list));
	n = 0;
	for (const struct peer *p = r->peers; p; p = p->next)
		list[n++] = (struct registration_peer){
			.address = p->address,
			.registered = p->accepted[0] != '\0' && now_ns - p->answered_ns < lease_ns,
			.answered_ns = p->answered_ns,
			.last_error = p->failure ? p->failure->msg : NULL,
		};
	*ret = list;
	return n;
}
