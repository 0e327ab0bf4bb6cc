/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole gRPC server, without sockets and threads.
 *
 * The first byte: bit 0 a unix socket, bit 1 bytes come singly, bit 2 the rest is bytes of the client as they
 * are. Without bit 2 it is frames in short form (frames.h), and between them bytes that say what else
 * happens. At the end the server drains, and must hold nothing any more.
 */
#include "csi.pb-c.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "fuzz/frames.h"
#include "fuzz/fuzz.h"
#include "fuzz/server_fake.h"
#include "net/grpc/grpc_conn.h"

#define UNIX   1
#define SINGLY 2
#define RAW    4

/* instead of the type of a frame */
enum happening {
	WORK_DONE = 0xf0,
	CLIENT_GONE = 0xf1,
	DRAIN = 0xf2,
};

#define WIRE_MAX_BYTES (4u << 20)
#define MANY_BYTES     1000000

typedef Csi__V1__GetPluginInfoResponse Message;

static int echo(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Message *q = request;
	Message *r = reply;

	(void)self;
	(void)call;
	(void)err;
	r->name = q->name;
	r->vendor_version = q->vendor_version;
	r->n_manifest = q->n_manifest;
	r->manifest = q->manifest;
	return 0;
}

static int fail(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Message *q = request;
	uint64_t code = 0;

	(void)self;
	(void)call;
	(void)reply;
	if (parse_u64(q->name, &code, err) < 0)
		return -1;
	return err_set(err, code > 0 && code <= ERR_UNAUTHENTICATED ? (enum err_code)code : ERR_UNKNOWN, "%s",
		q->vendor_version);
}

/* as many bytes as are asked for, which may be more than a peer takes at once */
static int grow(void *self, struct grpc_call *call, const void *request, void *reply, struct error **err)
{
	const Message *q = request;
	Message *r = reply;
	uint64_t n;

	(void)self;
	if (parse_u64(q->name, &n, err) < 0)
		return -1;
	n %= MANY_BYTES;
	r->name = arena_alloc(call->arena, n + 1);
	memset(r->name, 'x', n);
	return 0;
}

#define METHOD(path_, kind_, handle_)                                                                        \
	{.path = path_,                                                                                      \
		.kind = kind_,                                                                               \
		.request = &csi__v1__get_plugin_info_response__descriptor,                                   \
		.reply = &csi__v1__get_plugin_info_response__descriptor,                                     \
		.handle = handle_}

static const struct grpc_method methods[] = {
	METHOD("/s/Echo", GRPC_INLINE, echo),
	METHOD("/s/Work", GRPC_WORKER, echo),
	METHOD("/s/Fail", GRPC_INLINE, fail),
	METHOD("/s/FailLater", GRPC_WORKER, fail),
	METHOD("/s/Grow", GRPC_WORKER, grow),
	{0},
};

struct fixture {
	struct loop *loop;
	struct workers workers;
	struct grpc_server *server;
	struct accepted *conn;
	bool is_unix;
	bool singly;
	bool drained;
};

static void on_drained(void *user)
{
	struct fixture *f = user;

	f->drained = true;
}

/* Checks the counters of the connection against its streams. */
static void check_counts(const struct fixture *f)
{
	const struct grpc_conn *c = (const struct grpc_conn *)f->conn;
	size_t request_bytes = 0;
	unsigned calls = 0;

	if (!fake_is_open(f->conn))
		return;
	for (const struct grpc_stream *st = c->streams; st; st = st->next) {
		request_bytes += st->body.message.cap;
		calls++;
	}
	assert(c->request_bytes == request_bytes);
	assert(c->sending_bytes == c->out_bytes + h2_buffered(c->h2));
	assert(c->calls == calls);
	assert(f->server->live_calls >= calls);
}

static void do_work(struct fixture *f)
{
	fake_workers_do(&f->workers);
	/* nothing is left to wait for, so it only runs what was posted */
	loop_run(f->loop);
	check_counts(f);
}

static void connect(struct fixture *f)
{
	CLEANUP(buf_done) struct buf preface = BUF_INIT(WIRE_MAX_BYTES);

	f->conn = fake_connect(f->is_unix);
	frames_preface(&preface);
	fake_receive(f->conn, buf_span(&preface));
}

static void receive(struct fixture *f, struct span bytes)
{
	if (!f->singly && fake_is_open(f->conn))
		fake_receive(f->conn, bytes);
	while (f->singly && bytes.n > 0 && fake_is_open(f->conn))
		fake_receive(f->conn, fuzz_bytes(&bytes, 1));
	check_counts(f);
}

static void client_gone(struct fixture *f)
{
	if (fake_is_open(f->conn))
		fake_close(f->conn);
	connect(f);
}

static void run_frames(struct fixture *f, struct span in)
{
	CLEANUP(buf_done) struct buf wire = BUF_INIT(WIRE_MAX_BYTES);

	connect(f);
	while (in.n > 0) {
		switch (in.p[0]) {
		case WORK_DONE:
			do_work(f);
			break;
		case CLIENT_GONE:
			client_gone(f);
			break;
		case DRAIN:
			return;
		default:
			frames_next(&in, &wire);
			receive(f, buf_span(&wire));
			buf_reset(&wire);
			continue;
		}
		fuzz_byte(&in);
	}
}

/* A peer that does not read keeps its connection: it goes when all is answered. */
static void drain(struct fixture *f)
{
	grpc_server_drain(f->server, on_drained, f);
	do_work(f);
	if (fake_is_open(f->conn))
		fake_close(f->conn);
	do_work(f);
	assert(f->drained);
	assert(f->server->running == 0 && f->server->big_running == 0);
	assert(f->server->live_calls == 0 && f->server->buffered_bytes == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct grpc_service services[] = {{.methods = methods}, {0}};
	struct span in = {data, size};
	uint8_t choice = fuzz_byte(&in);
	struct fixture f = {.is_unix = choice & UNIX, .singly = choice & SINGLY};
	struct error *err = NULL;

	int rv = loop_new(&f.loop, &err);
	assert(rv == 0);
	const struct grpc_server_config config = {
		.loop = f.loop, .workers = &f.workers, .services = services};
	f.server = grpc_server_new(&config);
	if (choice & RAW) {
		f.conn = fake_connect(f.is_unix);
		receive(&f, in);
	} else {
		run_frames(&f, in);
	}
	drain(&f);
	grpc_server_free(f.server);
	loop_free(f.loop);
	return 0;
}
