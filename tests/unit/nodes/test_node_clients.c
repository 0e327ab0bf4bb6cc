/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to nodes over real connections with mutual TLS. */
#include "csi.pb-c.h"

#include "base/mem.h"
#include "net/grpc/grpc_server.h"
#include "nodes/node_clients.h"
#include "unit/net/tls/certs.h"
#include "unit/nodes/reports.h"

#define PROBE    "/csi.v1.Identity/Probe"
#define INFO     "/csi.v1.Identity/GetPluginInfo"
#define ROUND_MS 2
#define MAX_HELD 16
#define FAR_MS   60000

/* A driver of a node. */
struct driver {
	struct grpc_service services[2];
	struct grpc_server *server;
	struct tls_context *tls;
	char endpoint[64];
	unsigned calls;
	enum err_code refuse; /* 0: it does not */
	bool hold;            /* calls are not answered until driver_release() */
	struct grpc_call *held[MAX_HELD];
	unsigned n_held;
	bool drained;
};

struct result {
	unsigned ended;
	bool replied;
	enum err_code code;
	char *msg;
	struct node *again; /* to be called from the callback */
	struct result *of_again;
};

static struct loop *loop;
static struct workers *workers;
static struct handshakes *handshakes;
static struct tls_context *controller;
static struct node_clients *clients;

static void open_all(uint64_t idle_ms)
{
	CLEANUP(error_freep) struct error *err = NULL;

	certs_make("own", (const char *const[]){"node-a", NULL});
	ASSERT_OK(loop_new(&loop, &err));
	workers = workers_new(1);
	handshakes = handshakes_new(loop);
	controller = certs_context(&(struct certs_choice){
		.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-registry", .alpn = "h2"});
	clients = node_clients_new(&(struct node_clients_config){
		.loop = loop, .tls = controller, .handshakes = handshakes, .idle_ms = idle_ms});
}

static void close_all(void)
{
	node_clients_free(TAKE_PTR(clients));
	handshakes_free(handshakes);
	tls_context_unref(controller);
	workers_free(workers);
	loop_free(loop);
}

struct until {
	bool (*done)(const void *user);
	const void *user;
};

static void on_round(void *user)
{
	const struct until *u = user;

	if (u->done(u->user))
		loop_stop(loop);
}

static void until(bool (*done)(const void *user), const void *user)
{
	struct until u = {done, user};
	struct loop_timer *tick = loop_timer_new(loop, on_round, &u);

	loop_timer_set(tick, 0, ROUND_MS);
	loop_run(loop);
	loop_timer_close(tick);
}

static void answer(const struct driver *d, struct grpc_call *call)
{
	struct error *e = NULL;

	if (d->refuse && err_set(&e, d->refuse, "the node's own word") == 0)
		return;
	grpc_call_finish(call, e);
}

static void on_call(void *self, struct grpc_call *call, const void *request, void *reply)
{
	struct driver *d = self;

	(void)request;
	(void)reply;
	d->calls++;
	if (!d->hold) {
		answer(d, call);
		return;
	}
	ck_assert_uint_lt(d->n_held, MAX_HELD);
	d->held[d->n_held++] = call;
}

static void on_info(void *self, struct grpc_call *call, const void *request, void *reply)
{
	static char odd[] = "x";
	Csi__V1__GetPluginInfoResponse *m = reply;

	m->name = odd;
	on_call(self, call, request, reply);
}

static const struct grpc_method methods[] = {
	{.path = PROBE,
		.kind = GRPC_ASYNC,
		.request = &csi__v1__probe_request__descriptor,
		.reply = &csi__v1__probe_response__descriptor,
		.start = on_call},
	{.path = INFO,
		.kind = GRPC_ASYNC,
		.request = &csi__v1__get_plugin_info_request__descriptor,
		.reply = &csi__v1__get_plugin_info_response__descriptor,
		.start = on_info},
	{0},
};

/* With the certificate @leaf. */
static void driver_open_for(struct driver *d, const char *leaf, const char *node)
{
	static const char *const peers[] = {"pmem-registry", NULL};
	CLEANUP(error_freep) struct error *err = NULL;

	*d = (struct driver){.services[0] = {.methods = methods, .self = d}};
	d->tls = certs_context(&(struct certs_choice){
		.role = TLS_SERVER, .ca = "own", .leaf = leaf, .alpn = "h2", .peers = peers});
	d->server = grpc_server_new(&(struct grpc_server_config){.recipient = node,
		.loop = loop,
		.workers = workers,
		.services = d->services,
		.allow_plain_tcp = true,
		.handshakes = handshakes});
	ASSERT_OK(grpc_server_listen(d->server, "tcp://127.0.0.1:0", d->tls, &err));
	snprintf(d->endpoint, sizeof(d->endpoint), "tcp://127.0.0.1:%u", grpc_server_port(d->server));
}

/* As drivers of earlier releases, which do not look at the recipient of a call. */
static void driver_open(struct driver *d, const char *leaf)
{
	driver_open_for(d, leaf, /* node= */ NULL);
}

static void driver_release(struct driver *d)
{
	d->hold = false;
	while (d->n_held > 0)
		answer(d, d->held[--d->n_held]);
}

static void on_drained(void *user)
{
	struct driver *d = user;

	d->drained = true;
}

static bool is_drained(const void *user)
{
	const struct driver *d = user;

	return d->drained;
}

static void driver_close(struct driver *d)
{
	driver_release(d);
	grpc_server_drain(d->server, on_drained, d);
	until(is_drained, d);
	grpc_server_free(d->server);
	tls_context_unref(d->tls);
}

static unsigned connections(const struct driver *d)
{
	struct grpc_server_count count;

	grpc_server_count(d->server, &count);
	return count.connections;
}

static bool is_alone(const void *user)
{
	return connections(user) == 0;
}

static bool is_called(const void *user)
{
	const struct driver *d = user;

	return d->n_held > 0;
}

static struct node *node_at(const char *id, const char *endpoint, bool bound)
{
	struct node *n = x_calloc(1, sizeof(*n));
	struct node_report *r = report_new(id);

	n->report = *r;
	free(r);
	free(n->report.endpoint);
	n->report.endpoint = x_strdup(endpoint);
	n->report.bound = bound;
	return n;
}

static void node_free(struct node *n)
{
	struct node_report *r = x_malloc(sizeof(*r));

	*r = n->report;
	node_report_free(r);
	free(n);
}

static void begin(const struct node *n, const char *path, uint64_t timeout_ms, struct result *r);

static void on_result(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct result *r = user;

	r->ended++;
	r->replied = reply != NULL;
	r->code = error ? error->code : 0;
	r->msg = error ? x_strdup(error->msg) : NULL;
	if (r->again)
		begin(r->again, PROBE, FAR_MS, r->of_again);
}

/* Begins a call of @path, always with a ProbeRequest. The caller may free @n when this returns. */
static void begin(const struct node *n, const char *path, uint64_t timeout_ms, struct result *r)
{
	static const Csi__V1__ProbeRequest request = CSI__V1__PROBE_REQUEST__INIT;
	const struct node_caller caller = node_clients_caller(clients);

	caller.call(caller.self, n, path, &request.base, &csi__v1__probe_response__descriptor, timeout_ms,
		on_result, r);
	ck_assert_uint_eq(r->ended, 0);
}

static bool has_ended(const void *user)
{
	const struct result *r = user;

	return r->ended > 0;
}

/* @code 0: success; otherwise @text is in the message. */
static void check(struct result *r, enum err_code code, const char *text)
{
	until(has_ended, r);
	ck_assert_uint_eq(r->ended, 1);
	ck_assert_msg(r->code == code, "%s: %s", r->code ? err_code_name(r->code) : "success", r->msg);
	ck_assert(r->replied == (code == 0));
	if (code)
		ck_assert_msg(strstr(r->msg, text) != NULL, "\"%s\" lacks \"%s\"", r->msg, text);
	free(r->msg);
	*r = (struct result){0};
}

static void call(const char *endpoint, bool bound, const char *path, enum err_code code, const char *text)
{
	struct node *n = node_at("a", endpoint, bound);
	struct result r = {0};

	begin(n, path, FAR_MS, &r);
	node_free(n);
	check(&r, code, text);
}

START_TEST(a_node_proves_the_name_that_it_registered_with)
{
	struct driver own, shared;

	open_all(0);
	driver_open(&own, "own/node-a");
	driver_open(&shared, "own/pmem-node-controller");
	call(own.endpoint, true, PROBE, 0, "");
	call(shared.endpoint, false, PROBE, 0, "");
	call(own.endpoint, false, PROBE, ERR_UNAVAILABLE, "pmem-node-controller");
	call(shared.endpoint, true, PROBE, ERR_UNAVAILABLE, "node-a");
	ck_assert_uint_eq(own.calls, 1);
	ck_assert_uint_eq(shared.calls, 1);
	driver_close(&own);
	driver_close(&shared);
	close_all();
}
END_TEST

START_TEST(calls_share_a_connection_until_the_endpoint_changes)
{
	struct driver old, new;

	open_all(0);
	driver_open(&old, "own/node-a");
	driver_open(&new, "own/node-a");
	call(old.endpoint, true, PROBE, 0, "");
	call(old.endpoint, true, PROBE, 0, "");
	ck_assert_uint_eq(old.calls, 2);
	ck_assert_uint_eq(connections(&old), 1);
	call(new.endpoint, true, PROBE, 0, "");
	ck_assert_uint_eq(old.calls, 2);
	ck_assert_uint_eq(new.calls, 1);
	until(is_alone, &old);
	driver_close(&old);
	driver_close(&new);
	close_all();
}
END_TEST

/* An address may be another node's by now, or never have been that of the node that registered with it. */
START_TEST(a_call_reaches_the_node_that_it_is_for)
{
	struct driver right, wrong;

	open_all(0);
	driver_open_for(&right, "own/pmem-node-controller", "a");
	driver_open_for(&wrong, "own/pmem-node-controller", "b");
	call(right.endpoint, false, PROBE, 0, "");
	call(wrong.endpoint, false, PROBE, ERR_UNAVAILABLE, "this is node b, and the call is for node a");
	ck_assert_uint_eq(right.calls, 1);
	ck_assert_uint_eq(wrong.calls, 0);
	driver_close(&right);
	driver_close(&wrong);
	close_all();
}
END_TEST

static bool is_full(const void *user)
{
	const struct driver *d = user;

	return d->n_held == MAX_HELD;
}

START_TEST(a_node_that_hangs_keeps_sixteen_calls)
{
	struct driver d;
	struct node *n;
	struct result held[MAX_HELD] = {0}, more = {0};

	open_all(0);
	driver_open(&d, "own/node-a");
	d.hold = true;
	n = node_at("a", d.endpoint, true);
	for (size_t i = 0; i < MAX_HELD; i++)
		begin(n, PROBE, FAR_MS, &held[i]);
	until(is_full, &d);
	begin(n, PROBE, FAR_MS, &more);
	check(&more, ERR_UNAVAILABLE, "16 calls to the node have not ended yet");
	driver_release(&d);
	for (size_t i = 0; i < MAX_HELD; i++)
		check(&held[i], 0, "");
	begin(n, PROBE, FAR_MS, &more);
	check(&more, 0, "");
	node_free(n);
	driver_close(&d);
	close_all();
}
END_TEST

START_TEST(a_call_to_the_old_endpoint_ends_by_itself)
{
	struct node *n;
	struct driver old, new;
	struct result r = {0};

	open_all(0);
	driver_open(&old, "own/node-a");
	driver_open(&new, "own/node-a");
	n = node_at("a", old.endpoint, true);
	old.hold = true;
	begin(n, PROBE, FAR_MS, &r);
	node_free(n);
	until(is_called, &old);
	call(new.endpoint, true, PROBE, 0, "");
	ck_assert_uint_eq(connections(&old), 1);
	driver_release(&old);
	check(&r, 0, "");
	until(is_alone, &old);
	driver_close(&old);
	driver_close(&new);
	close_all();
}
END_TEST

START_TEST(a_connection_that_idles_is_closed_and_opened_again)
{
	struct driver d;

	open_all(20);
	driver_open(&d, "own/node-a");
	for (unsigned i = 0; i < 2; i++) {
		call(d.endpoint, true, PROBE, 0, "");
		until(is_alone, &d);
	}
	ck_assert_uint_eq(d.calls, 2);
	driver_close(&d);
	close_all();
}
END_TEST

START_TEST(a_call_that_lasts_is_not_idle)
{
	struct driver d, other;
	struct result r = {0};
	struct result of_other = {0};
	struct node *a, *b;

	open_all(1);
	driver_open(&d, "own/node-a");
	driver_open(&other, "own/pmem-node-controller");
	a = node_at("a", d.endpoint, true);
	b = node_at("b", other.endpoint, false);
	d.hold = true;
	begin(a, PROBE, FAR_MS, &r);
	until(is_called, &d);
	/* that takes longer than the idle time */
	begin(b, PROBE, FAR_MS, &of_other);
	check(&of_other, 0, "");
	until(is_alone, &other);
	ck_assert_uint_eq(connections(&d), 1);
	driver_release(&d);
	check(&r, 0, "");
	node_free(a);
	node_free(b);
	driver_close(&d);
	driver_close(&other);
	close_all();
}
END_TEST

START_TEST(only_what_the_node_has_sent_keeps_its_code)
{
	static const enum err_code codes[] = {
		ERR_EXHAUSTED, ERR_NOT_FOUND, ERR_ABORTED, ERR_INTERNAL, ERR_PRECONDITION};
	struct driver d;

	open_all(0);
	driver_open(&d, "own/node-a");
	for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
		d.refuse = codes[i];
		call(d.endpoint, true, PROBE, codes[i], "the node's own word");
	}
	call(d.endpoint, true, "/csi.v1.Controller/ListVolumes", ERR_UNIMPLEMENTED, "");
	d.refuse = 0;
	/* an invalid reply says nothing about volumes */
	call(d.endpoint, true, INFO, ERR_UNAVAILABLE, "INTERNAL");
	driver_close(&d);
	close_all();
}
END_TEST

START_TEST(a_node_that_is_not_there_is_unavailable)
{
	CLEANUP(free_charp) char *gone = NULL;
	struct driver d;

	open_all(0);
	driver_open(&d, "own/node-a");
	gone = x_strdup(d.endpoint);
	driver_close(&d);
	call(gone, true, PROBE, ERR_UNAVAILABLE, gone);
	call("tcp://", true, PROBE, ERR_INVALID_ARGUMENT, "tcp://");
	close_all();
}
END_TEST

START_TEST(a_deadline_ends_the_call_only)
{
	struct driver d;
	struct result r = {0};
	struct node *n;

	open_all(0);
	driver_open(&d, "own/node-a");
	call(d.endpoint, true, PROBE, 0, "");
	d.hold = true;
	n = node_at("a", d.endpoint, true);
	begin(n, PROBE, 1, &r);
	node_free(n);
	check(&r, ERR_DEADLINE, "");
	driver_release(&d);
	call(d.endpoint, true, PROBE, 0, "");
	ck_assert_uint_eq(connections(&d), 1);
	driver_close(&d);
	close_all();
}
END_TEST

START_TEST(the_end_cancels_calls_and_those_made_because_of_it)
{
	struct driver d;
	struct result second = {0};
	struct result first = {.of_again = &second};

	open_all(0);
	driver_open(&d, "own/node-a");
	d.hold = true;
	first.again = node_at("a", d.endpoint, true);
	begin(first.again, PROBE, FAR_MS, &first);
	until(is_called, &d);
	node_clients_free(clients);
	clients = NULL;
	ck_assert_uint_eq(first.ended, 1);
	node_free(first.again);
	check(&first, ERR_CANCELLED, "");
	check(&second, ERR_CANCELLED, "shutting down");
	driver_close(&d);
	close_all();
}
END_TEST

CERTS_MAIN("nodes/node_clients", a_node_proves_the_name_that_it_registered_with,
	a_call_reaches_the_node_that_it_is_for, a_node_that_hangs_keeps_sixteen_calls,
	calls_share_a_connection_until_the_endpoint_changes, a_call_to_the_old_endpoint_ends_by_itself,
	a_connection_that_idles_is_closed_and_opened_again, a_call_that_lasts_is_not_idle,
	only_what_the_node_has_sent_keeps_its_code, a_node_that_is_not_there_is_unavailable,
	a_deadline_ends_the_call_only, the_end_cancels_calls_and_those_made_because_of_it)
