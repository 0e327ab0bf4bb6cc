/* SPDX-License-Identifier: Apache-2.0 */
#include "grpc_fixture.h"

#include <csi.pb-c.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "net/grpc/grpc_message.h"

static void on_call_ended(void *user, const char *method_path, unsigned status, uint64_t duration_ns)
{
	struct fixture *f = user;

	ck_assert_uint_gt(duration_ns, 0);
	buf_addf(&f->ended, "%s %u\n", method_path, status);
}

void fixture_serve(struct fixture *f)
{
	CLEANUP(error_freep) struct error *err = NULL;
	const struct grpc_server_config config = {
		.loop = f->loop,
		.workers = f->workers,
		.services = f->services,
		.allow_plain_tcp = str_starts(f->endpoint, "tcp://"),
		.observer = {on_call_ended, f},
	};

	f->drained = false;
	f->server = grpc_server_new(&config);
	ASSERT_OK(grpc_server_listen(f->server, f->endpoint, NULL, &err));
}

/* @endpoint: owned from now on; NULL: a unix socket */
static void open_at(struct fixture *f, unsigned workers, char *endpoint)
{
	CLEANUP(error_freep) struct error *err = NULL;

	*f = (struct fixture){.ended = BUF_INIT(SIZE_MAX)};
	f->path = x_asprintf("%s/s", tmpdir);
	f->endpoint = endpoint ? endpoint : x_asprintf("unix://%s", f->path);
	echo_init(&f->echo);
	f->services[0] = (struct grpc_service){.methods = echo_methods, .self = &f->echo};
	ASSERT_OK(loop_new(&f->loop, &err));
	f->workers = workers_new(workers);
	fixture_serve(f);
}

void fixture_open(struct fixture *f, unsigned workers)
{
	open_at(f, workers, NULL);
}

void fixture_open_tcp(struct fixture *f, unsigned workers)
{
	open_at(f, workers, x_strdup("tcp://127.0.0.1:0"));
	free(f->endpoint);
	f->endpoint = x_asprintf("tcp://127.0.0.1:%u", grpc_server_port(f->server));
}

static void on_drained(void *user)
{
	struct fixture *f = user;

	f->drained = true;
}

static bool is_drained(void *user)
{
	struct fixture *f = user;

	return f->drained;
}

void fixture_drain(struct fixture *f)
{
	grpc_server_drain(f->server, on_drained, f);
}

void fixture_free_server(struct fixture *f)
{
	fixture_until(f, is_drained, f);
	grpc_server_free(TAKE_PTR(f->server));
}

void fixture_close(struct fixture *f)
{
	if (f->server) {
		fixture_drain(f);
		fixture_free_server(f);
	}
	workers_free(f->workers);
	loop_free(f->loop);
	free(f->endpoint);
	free(f->path);
	buf_done(&f->ended);
}

static void on_tick(void *user)
{
	loop_stop(user);
}

void fixture_until(struct fixture *f, bool (*done)(void *user), void *user)
{
	struct loop_timer *tick = loop_timer_new(f->loop, on_tick, f->loop);

	loop_timer_set(tick, 1, 1);
	while (!done(user))
		loop_run(f->loop);
	loop_timer_close(tick);
}

static bool is_zero(void *user)
{
	unsigned *left = user;

	return (*left)-- == 0;
}

void fixture_rounds(struct fixture *f)
{
	unsigned rounds = 20;

	fixture_until(f, is_zero, &rounds);
}

struct count {
	const atomic_uint *is;
	unsigned wanted;
};

static bool is_count(void *user)
{
	struct count *c = user;

	return atomic_load(c->is) == c->wanted;
}

void fixture_until_waiting(struct fixture *f, unsigned n)
{
	fixture_until(f, is_count, &(struct count){&f->echo.waiting, n});
}

void fixture_until_worked(struct fixture *f, unsigned n)
{
	fixture_until(f, is_count, &(struct count){&f->echo.worked, n});
}

struct ending {
	const struct fixture *fixture;
	const char *text;
};

static bool is_noted(void *user)
{
	const struct ending *e = user;

	return strstr(buf_str(&e->fixture->ended), e->text) != NULL;
}

void fixture_until_ended(struct fixture *f, const char *text)
{
	fixture_until(f, is_noted, &(struct ending){f, text});
}

static int receive(void *self, struct span bytes, struct error **err)
{
	struct raw *r = self;

	return h2_recv(r->side.h2, bytes, err);
}

static int send_some(void *self, struct buf *out, struct error **err)
{
	struct raw *r = self;

	return h2_send(r->side.h2, out, err);
}

static bool is_done(const void *self)
{
	const struct raw *r = self;

	return h2_is_done(r->side.h2);
}

static void on_round(void *user, bool over)
{
	struct raw *r = user;

	if (over)
		raw_close(r);
}

void raw_open(struct raw *r, struct fixture *f)
{
	static const struct conn_protocol protocol = {
		.receive = receive, .send = send_some, .is_done = is_done};
	CLEANUP(error_freep) struct error *err = NULL;
	const struct conn_config config = {
		.loop = f->loop,
		.connecting = true,
		.protocol = &protocol,
		.self = r,
		.on_round = on_round,
		.user = r,
	};
	struct addr a;

	*r = (struct raw){.fixture = f};
	h2_side_init(&r->side);
	ASSERT_OK(addr_parse(f->endpoint, &a, &err));
	ASSERT_OK(addr_connect(&a, &r->fd, &err));
	addr_done(&a);
	r->side.h2 = h2_client_new(&h2_events_of_sides, &r->side);
	ASSERT_OK(conn_new(&config, r->fd, &r->conn, &err));
}

void raw_close(struct raw *r)
{
	if (r->over)
		return;
	r->over = true;
	conn_free(TAKE_PTR(r->conn));
	h2_free(TAKE_PTR(r->side.h2));
}

void raw_done(struct raw *r)
{
	raw_close(r);
	h2_side_done(&r->side);
}

static void flush(struct raw *r)
{
	if (!conn_flush(r->conn))
		raw_close(r);
}

int32_t raw_request(struct raw *r, struct raw_head head)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct h2_header headers[8] = {
		H2_HEADER(":method", head.method ? head.method : "POST"),
		H2_HEADER(":scheme", "http"),
		H2_HEADER(":path", head.path ? head.path : "/pmem.test.Echo/Echo"),
		H2_HEADER(":authority", "localhost"),
		H2_HEADER("content-type", head.content_type ? head.content_type : "application/grpc"),
	};
	int32_t stream;
	size_t n = 5;

	if (head.te)
		headers[n++] = H2_HEADER("te", head.te);
	if (head.timeout)
		headers[n++] = H2_HEADER("grpc-timeout", head.timeout);
	if (head.encoding)
		headers[n++] = H2_HEADER("grpc-encoding", head.encoding);
	ASSERT_OK(h2_request(r->side.h2, headers, n, false, &stream, &err));
	flush(r);
	return stream;
}

void raw_write(struct raw *r, int32_t stream, const void *bytes, size_t n)
{
	h2_write(r->side.h2, stream, (struct span){bytes, n});
	flush(r);
}

void raw_message(struct raw *r, int32_t stream, const void *bytes, size_t n)
{
	uint8_t prefix[5];

	grpc_prefix((uint32_t)n, prefix);
	raw_write(r, stream, prefix, sizeof(prefix));
	raw_write(r, stream, bytes, n);
}

void raw_finish(struct raw *r, int32_t stream)
{
	h2_finish(r->side.h2, stream, NULL, 0);
	flush(r);
}

void raw_reset(struct raw *r, int32_t stream)
{
	h2_reset(r->side.h2, stream, H2_CANCEL);
	flush(r);
}

int32_t raw_begin(struct raw *r, struct raw_head head)
{
	static const uint8_t message[] = {0x0a, 1, 'a'};
	int32_t stream = raw_request(r, head);

	raw_message(r, stream, message, sizeof(message));
	raw_finish(r, stream);
	return stream;
}

struct wanted {
	struct raw *raw;
	const char *text;
};

static bool is_logged(void *user)
{
	struct wanted *w = user;

	ck_assert_msg(!w->raw->over || strstr(buf_str(&w->raw->side.log), w->text),
		"closed without \"%s\": %s", w->text, buf_str(&w->raw->side.log));
	return strstr(buf_str(&w->raw->side.log), w->text);
}

void raw_until(struct raw *r, const char *text)
{
	fixture_until(r->fixture, is_logged, &(struct wanted){r, text});
}

static bool is_over(void *user)
{
	struct raw *r = user;

	return r->over;
}

void raw_until_over(struct raw *r)
{
	fixture_until(r->fixture, is_over, r);
}

const char *raw_finished(struct raw *r, int32_t stream)
{
	char close_line[24];

	snprintf(close_line, sizeof(close_line), "close %d ", stream);
	raw_until(r, close_line);
	return buf_str(&r->side.log);
}

const char *raw_call(struct raw *r, struct raw_head head, const void *message, size_t n)
{
	int32_t stream;

	buf_reset(&r->side.log);
	buf_reset(&r->side.body);
	stream = raw_request(r, head);
	raw_message(r, stream, message, n);
	raw_finish(r, stream);
	return raw_finished(r, stream);
}

const char *raw_call_info(struct raw *r, const char *path, const char *name, const char *vendor_version)
{
	CLEANUP(free_charp) char *own_name = x_strdup(name);
	CLEANUP(free_charp) char *own_version = x_strdup(vendor_version);
	Csi__V1__GetPluginInfoResponse info;
	CLEANUP(buf_done) struct buf packed = BUF_INIT(LIMIT_MESSAGE_BYTES);
	size_t n;

	csi__v1__get_plugin_info_response__init(&info);
	info.name = own_name;
	info.vendor_version = own_version;
	n = csi__v1__get_plugin_info_response__get_packed_size(&info);
	buf_commit(&packed, csi__v1__get_plugin_info_response__pack(&info, buf_reserve(&packed, n)));
	return raw_call(r, (struct raw_head){.path = path}, packed.data, packed.len);
}
