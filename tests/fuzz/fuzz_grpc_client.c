/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds bytes of a server to a gRPC client. Each of its calls must end exactly once.
 *
 * The first byte: bit 0 the server greets by itself, bit 1 bytes come singly, bit 2 an ended call is followed
 * by another, bit 3 the end of the first call ends the client. The rest is frames in short form (frames.h),
 * and between them bytes that say what else happens.
 */
#include "csi.pb-c.h"

#include <stdlib.h>

#include "fuzz/client_fake.h"
#include "fuzz/frames.h"
#include "fuzz/fuzz.h"
#include "net/grpc/grpc_client.h"

#define GREETS  1
#define SINGLY  2
#define FOLLOWS 4
#define ENDS    8

/* instead of the type of a frame */
enum happening {
	CALL = 0xf0,
	CANCEL = 0xf1,
	LOST = 0xf2,
	END = 0xf3,
};

#define CALLS_MAX      32
#define WIRE_MAX_BYTES (4u << 20)

struct fixture {
	struct loop *loop;
	struct loop_timer *stop;
	struct grpc_client *client;
	uint8_t choice;
	unsigned made;
	unsigned ended;
	struct grpc_client_call *last; /* NULL when it has ended */
	unsigned greeted;              /* fake_conn_made() of the connection that was */
};

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error);

static void call(struct fixture *f)
{
	Csi__V1__GetPluginInfoResponse q;
	char name[] = "name";

	if (!f->client || f->made == CALLS_MAX)
		return;
	csi__v1__get_plugin_info_response__init(&q);
	q.name = name;
	f->made++;
	f->last = grpc_client_call(f->client, "/s/Echo", &q.base,
		&csi__v1__get_plugin_info_response__descriptor, 0, on_reply, f);
}

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct fixture *f = user;

	assert(!reply == (error != NULL));
	if (reply)
		assert(reply->descriptor == &csi__v1__get_plugin_info_response__descriptor);
	if (error)
		fuzz_check_error(error);
	f->ended++;
	assert(f->ended <= f->made);
	f->last = NULL;
	if (f->choice & FOLLOWS)
		call(f);
	if (f->choice & ENDS)
		grpc_client_free(TAKE_PTR(f->client));
}

static void on_stop(void *user)
{
	struct fixture *f = user;

	loop_stop(f->loop);
}

/* Runs the callbacks that are due now. */
static void run_loop(struct fixture *f)
{
	loop_timer_set(f->stop, 0, 0);
	loop_run(f->loop);
}

static void receive(struct fixture *f, struct span bytes)
{
	if (!(f->choice & SINGLY) && fake_conn_exists())
		fake_conn_receive(bytes);
	while ((f->choice & SINGLY) && bytes.n > 0 && fake_conn_exists())
		fake_conn_receive(fuzz_bytes(&bytes, 1));
}

static void greet(struct fixture *f)
{
	CLEANUP(buf_done) struct buf wire = BUF_INIT(WIRE_MAX_BYTES);

	frames_settings(&wire);
	if ((f->choice & GREETS) && f->greeted != fake_conn_made()) {
		f->greeted = fake_conn_made();
		receive(f, buf_span(&wire));
	}
}

/* Return: false when nothing more happens */
static bool run_step(struct fixture *f, struct span *in)
{
	CLEANUP(buf_done) struct buf wire = BUF_INIT(WIRE_MAX_BYTES);

	switch (in->p[0]) {
	case CALL:
		call(f);
		break;
	case CANCEL:
		if (f->last)
			grpc_client_cancel(f->last);
		break;
	case LOST:
		if (fake_conn_exists())
			fake_conn_lose();
		break;
	case END:
		return false;
	default:
		frames_next(in, &wire);
		receive(f, buf_span(&wire));
		return true;
	}
	fuzz_byte(in);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	struct fixture f = {.choice = fuzz_byte(&in)};
	unsigned conns_before = fake_conn_made();
	struct error *err = NULL;

	int rv = loop_new(&f.loop, &err);
	assert(rv == 0);
	f.stop = loop_timer_new(f.loop, on_stop, &f);
	const struct h2_channel_config config = {
		.loop = f.loop, .endpoint = "tcp://127.0.0.1:1", .reconnect_backoff_ms = 1};
	rv = grpc_client_new(&config, &f.client, &err);
	assert(rv == 0);
	call(&f);
	do {
		run_loop(&f);
		greet(&f);
	} while (in.n > 0 && run_step(&f, &in));
	f.choice = 0;
	grpc_client_free(TAKE_PTR(f.client));
	assert(f.ended == f.made && !fake_conn_exists());
	/* a call is sent twice at most, and ends where no connection can be opened for it */
	assert(fake_conn_made() - conns_before <= 3 * f.made);
	loop_timer_close(f.stop);
	loop_free(f.loop);
	return 0;
}
