/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/nodes/fake_registry.h"

#include "base/mem.h"
#include "unit/unit.h"

#define ROUND_MS 2

struct registry_rig rig;

struct loop_lookup *__wrap_loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user);
void __wrap_loop_lookup_cancel(struct loop_lookup *u);

/* At most one at a time. */
static struct {
	struct loop_timer *timer;
	loop_lookup_fn fn;
	void *user;
} lookup;

static void on_lookup(void *user)
{
	CLEANUP(error_freep) struct error *err = NULL;

	(void)user;
	loop_timer_close(TAKE_PTR(lookup.timer));
	if (!rig.found[0])
		err_set(&err, ERR_UNAVAILABLE, "the name is not known");
	lookup.fn(lookup.user, err ? NULL : rig.found, err);
}

struct loop_lookup *__wrap_loop_look_up(
	struct loop *l, const char *host, uint16_t port, loop_lookup_fn fn, void *user)
{
	ck_assert_str_eq(host, "registry.example");
	ck_assert_uint_eq(port, 10000);
	ck_assert_ptr_null(lookup.timer);
	rig.lookups++;
	lookup.fn = fn;
	lookup.user = user;
	lookup.timer = loop_timer_new(l, on_lookup, NULL);
	loop_timer_set(lookup.timer, 0, 0);
	return (struct loop_lookup *)&lookup;
}

void __wrap_loop_lookup_cancel(struct loop_lookup *u)
{
	if (u)
		loop_timer_close(TAKE_PTR(lookup.timer));
}

void rig_open(void)
{
	struct error *err = NULL;

	ck_assert_int_eq(loop_new(&rig.loop, &err), 0);
	rig.workers = workers_new(1);
}

void rig_close(void)
{
	workers_free(rig.workers);
	loop_free(rig.loop);
	rig = (struct registry_rig){0};
}

struct until {
	bool (*done)(void *user);
	void *user;
};

static void on_round(void *user)
{
	struct until *u = user;

	if (u->done(u->user))
		loop_stop(rig.loop);
}

void rig_until(bool (*done)(void *user), void *user)
{
	struct until u = {done, user};
	struct loop_timer *tick = loop_timer_new(rig.loop, on_round, &u);

	loop_timer_set(tick, 0, ROUND_MS);
	loop_run(rig.loop);
	loop_timer_close(tick);
}

struct number {
	const unsigned *is;
	unsigned wanted;
};

static bool is_number(void *user)
{
	struct number *n = user;

	return *n->is >= n->wanted;
}

void rig_until_number(const unsigned *n, unsigned wanted)
{
	rig_until(is_number, &(struct number){n, wanted});
}

static bool is_set(void *user)
{
	const bool *const *flag = user;

	return **flag;
}

void rig_until_set(const bool *flag)
{
	rig_until(is_set, &flag);
}

static bool is_zero(void *user)
{
	unsigned *left = user;

	return (*left)-- == 0;
}

void rig_rounds(void)
{
	unsigned rounds = 200;

	rig_until(is_zero, &rounds);
}

static void answer(struct registry_side *s, struct grpc_call *call)
{
	struct error *e = NULL;

	if (s->refuse && err_set(&e, s->refuse, "refused as the test wants it") == 0)
		return;
	grpc_call_finish(call, e);
}

static void hold(struct registry_side *s, struct grpc_call *call)
{
	ck_assert_uint_lt(s->n_held, MAX_HELD);
	s->held[s->n_held++] = call;
}

static void on_register(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct registry_side *s = self;
	size_t n = protobuf_c_message_get_packed_size(request);
	CLEANUP(free_charp) char *bytes = x_malloc(n + 1);

	(void)reply;
	protobuf_c_message_pack(request, (uint8_t *)bytes);
	registry_forget(s);
	s->last = registry__v0__register_controller_request__unpack(NULL, n, (const uint8_t *)bytes);
	s->registered++;
	if (s->hold)
		hold(s, call);
	else
		answer(s, call);
}

static void on_unregister(void *self, struct grpc_call *call, const void *request, void *reply)
{
	const Registry__V0__UnregisterControllerRequest *q = request;
	struct registry_side *s = self;

	(void)reply;
	ck_assert_ptr_nonnull(s->last);
	ck_assert_str_eq(q->node_id, "node-1");
	ck_assert_str_eq(q->endpoint, s->last->endpoint);
	ck_assert_str_ne(q->instance, "");
	ck_assert_str_eq(q->instance, s->last->instance);
	s->unregistered++;
	if (s->hold)
		hold(s, call);
	else
		grpc_call_finish(call, NULL);
}

static void answer_pod(const struct registry_side *s, struct grpc_call *call)
{
	struct error *e = NULL;

	if (s->refuse_pods && err_set(&e, s->refuse_pods, "no pods as the test wants it") == 0)
		return;
	grpc_call_finish(call, e);
}

static void on_describe(void *self, struct grpc_call *call, const void *request, void *reply)
{
	const Registry__V0__DescribePodRequest *q = request;
	Registry__V0__DescribePodReply *m = reply;
	struct registry_side *s = self;

	ck_assert_ptr_nonnull(s->last);
	ck_assert_str_eq(q->node_id, s->last->node_id);
	ck_assert_str_eq(q->endpoint, s->last->endpoint);
	ck_assert_str_eq(q->instance, s->last->instance);
	free(s->asked_pod);
	s->asked_pod = x_asprintf("%s/%s/%s", q->namespace_, q->name, q->uid);
	s->asked++;
	m->runtime_class = arena_strdup(call->arena, s->runtime_class ? s->runtime_class : "");
	m->has_fs_group = s->fs_group > 0;
	m->fs_group = s->fs_group;
	m->fs_group_change_policy = arena_strdup(call->arena, s->fs_group_policy ? s->fs_group_policy : "");
	if (!s->hold_pods) {
		answer_pod(s, call);
		return;
	}
	ck_assert_uint_lt(s->n_held_pods, MAX_HELD);
	s->held_pods[s->n_held_pods++] = call;
}

static const struct grpc_method methods[] = {
	{.path = "/registry.v0.Registry/RegisterController",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__register_controller_request__descriptor,
		.reply = &registry__v0__register_controller_reply__descriptor,
		.start = on_register},
	{.path = "/registry.v0.Registry/UnregisterController",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__unregister_controller_request__descriptor,
		.reply = &registry__v0__unregister_controller_reply__descriptor,
		.start = on_unregister},
	{.path = "/registry.v0.Registry/DescribePod",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__describe_pod_request__descriptor,
		.reply = &registry__v0__describe_pod_reply__descriptor,
		.start = on_describe},
	{0},
};

static const struct grpc_method old_methods[] = {
	{.path = "/registry.v0.Registry/RegisterController",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__register_controller_request__descriptor,
		.reply = &registry__v0__register_controller_reply__descriptor,
		.start = on_register},
	{.path = "/registry.v0.Registry/UnregisterController",
		.kind = GRPC_ASYNC,
		.request = &registry__v0__unregister_controller_request__descriptor,
		.reply = &registry__v0__unregister_controller_reply__descriptor,
		.start = on_unregister},
	{0},
};

void registry_serve(struct registry_side *s, struct tls_context *tls, struct handshakes *handshakes)
{
	struct error *err = NULL;

	s->services[0] = (struct grpc_service){.methods = s->is_old ? old_methods : methods, .self = s};
	s->server = grpc_server_new(&(struct grpc_server_config){.loop = rig.loop,
		.workers = rig.workers,
		.services = s->services,
		.allow_plain_tcp = true,
		.handshakes = handshakes});
	ASSERT_OK(grpc_server_listen(s->server, *s->endpoint ? s->endpoint : "tcp://127.0.0.1:0", tls, &err));
	snprintf(s->endpoint, sizeof(s->endpoint), "tcp://127.0.0.1:%u", grpc_server_port(s->server));
}

void registry_forget(struct registry_side *s)
{
	free(TAKE_PTR(s->asked_pod));
	if (s->last)
		registry__v0__register_controller_request__free_unpacked(TAKE_PTR(s->last), NULL);
}

static void on_drained(void *user)
{
	struct registry_side *s = user;

	s->drained = true;
}

void registry_end(struct registry_side *s)
{
	if (!s->server)
		return;
	registry_release(s);
	registry_release_pods(s);
	s->drained = false;
	grpc_server_drain(s->server, on_drained, s);
	rig_until_set(&s->drained);
	grpc_server_free(TAKE_PTR(s->server));
}

void registry_release(struct registry_side *s)
{
	s->hold = false;
	while (s->n_held > 0)
		answer(s, s->held[--s->n_held]);
}

void registry_release_pods(struct registry_side *s)
{
	s->hold_pods = false;
	while (s->n_held_pods > 0)
		answer_pod(s, s->held_pods[--s->n_held_pods]);
}
