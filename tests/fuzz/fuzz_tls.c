/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS, in two ways that the first byte chooses (bit 0).
 *
 * Clear: the input is the bytes of an unknown peer during the handshake with a server or, with bit 1, with a
 * client, once as a whole and once byte by byte. The handshake must never be complete, and must fail in the
 * same way both times. Set: after a handshake between two ends of ours, records on their way are changed. The
 * data that are read must be the beginning of the data that were written, and the end of the stream must be
 * reported only if the peer has sent it (close_notify).
 */
#include "net/tls/tls.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "fuzz/fuzz.h"

#define OPEN   1
#define CLIENT 2

#define WIRE_MAX_BYTES (1u << 20)
#define ROOM_MAX_BYTES 20000
#define STEPS_MAX      32

static struct tls_context *server_context;
static struct tls_context *client_context;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const char *const clients[] = {"pmem-node-controller", NULL};
	const struct tls_config server = {.role = TLS_SERVER,
		.ca_file = TLS_FILES "/ca.pem",
		.cert_file = TLS_FILES "/server.pem",
		.key_file = TLS_FILES "/server-key.pem",
		.alpn = "h2",
		.peer_names = clients};
	const struct tls_config client = {.role = TLS_CLIENT,
		.ca_file = TLS_FILES "/ca.pem",
		.cert_file = TLS_FILES "/client.pem",
		.key_file = TLS_FILES "/client-key.pem",
		.alpn = "h2"};
	struct error *err = NULL;

	(void)argc;
	(void)argv;
	int rv = tls_context_new(&server, &server_context, &err);
	assert(rv == 0);
	rv = tls_context_new(&client, &client_context, &err);
	assert(rv == 0);
	return 0;
}

struct end {
	struct tls *tls;
	struct buf in; /* what the peer has sent */
	bool done;
	struct error *error;
};

/* Return: false after a failure */
static bool shake(struct end *e, struct buf *out)
{
	if (tls_handshake(e->tls, &e->in, out, &e->done, &e->error) == 0)
		return true;
	assert(e->error->code == ERR_UNAUTHENTICATED);
	return false;
}

static void end_done(struct end *e)
{
	tls_free(e->tls);
	buf_done(&e->in);
	error_free(e->error);
}

/* Return: why it failed, or NULL when the stranger has to say more; caller frees */
static char *try_handshake(struct span in, bool is_client, size_t piece_bytes)
{
	CLEANUP(end_done) struct end e = {.in = BUF_INIT(WIRE_MAX_BYTES)};
	CLEANUP(buf_done) struct buf out = BUF_INIT(WIRE_MAX_BYTES);

	e.tls = is_client ? tls_new(client_context, "pmem-registry") : tls_new(server_context, NULL);
	bool usable = shake(&e, &out);
	while (usable && in.n > 0) {
		struct span piece = fuzz_bytes(&in, piece_bytes);

		buf_add(&e.in, piece.p, piece.n);
		usable = shake(&e, &out);
		assert(!usable || !e.done);
	}
	tls_close(e.tls, &out);
	assert(!out.overflowed);
	return e.error ? x_strdup(e.error->msg) : NULL;
}

static void check_handshake(struct span in, bool is_client)
{
	CLEANUP(free_charp) char *whole = try_handshake(in, is_client, SIZE_MAX);
	CLEANUP(free_charp) char *singly = try_handshake(in, is_client, 1);

	assert(str_eq(whole, singly));
}

struct channel {
	struct end client;
	struct end server;
	struct buf written;
	size_t read;
	bool closed; /* the client said so */
};

static void channel_open(struct channel *c)
{
	*c = (struct channel){
		.client = {.tls = tls_new(client_context, "pmem-registry"), .in = BUF_INIT(WIRE_MAX_BYTES)},
		.server = {.tls = tls_new(server_context, NULL), .in = BUF_INIT(WIRE_MAX_BYTES)},
		.written = BUF_INIT(WIRE_MAX_BYTES),
	};
	while (!c->client.done || !c->server.done) {
		if (!c->client.done && !shake(&c->client, &c->server.in))
			abort();
		if (!c->server.done && !shake(&c->server, &c->client.in))
			abort();
	}
	assert(tls_peer_names(c->server.tls)[0]);
}

static void channel_done(struct channel *c)
{
	end_done(&c->client);
	end_done(&c->server);
	buf_done(&c->written);
}

static void write_some(struct channel *c, size_t n)
{
	static uint8_t text[ROOM_MAX_BYTES];
	struct error *err = NULL;

	for (size_t i = 0; i < n; i++)
		text[i] = (uint8_t)(c->written.len + i);
	if (c->closed || c->written.len + n > WIRE_MAX_BYTES / 4 || c->server.in.len > WIRE_MAX_BYTES / 2)
		return;
	int rv = tls_write(c->client.tls, (struct span){text, n}, &c->server.in, &err);
	assert(rv == 0);
	buf_add(&c->written, text, n);
}

/* Return: false when the connection is over */
static bool read_all(struct channel *c, size_t room)
{
	static uint8_t text[ROOM_MAX_BYTES];
	struct span in = buf_span(&c->server.in);
	struct error *err = NULL;
	bool closed = false;
	size_t n = 0;

	do {
		if (tls_read(c->server.tls, &in, text, room, &n, &closed, &err) < 0) {
			fuzz_error(err);
			return false;
		}
		assert(n <= room && n <= c->written.len - c->read);
		assert(n == 0 || memcmp(text, c->written.data + c->read, n) == 0);
		c->read += n;
	} while (n > 0);
	assert(in.n == 0);
	assert(!closed || c->closed);
	buf_reset(&c->server.in);
	return !closed;
}

static void change(struct buf *wire, size_t at, uint8_t by)
{
	if (wire->len > 0)
		wire->data[at % wire->len] ^= by;
}

static void cut(struct buf *wire, size_t n)
{
	wire->len -= n < wire->len ? n : wire->len;
}

/* Appends a copy of the records on their way, as a replay does. */
static void repeat(struct buf *wire)
{
	CLEANUP(buf_done) struct buf copy = BUF_INIT(WIRE_MAX_BYTES);

	if (wire->len == 0 || wire->len > WIRE_MAX_BYTES / 4)
		return;
	buf_add(&copy, wire->data, wire->len);
	buf_add(wire, copy.data, copy.len);
}

/* A step is a byte and a number of two bytes. Return: false when the connection is over */
static bool run_step(struct channel *c, struct span *in)
{
	uint8_t choice = fuzz_byte(in);
	size_t n = (size_t)fuzz_byte(in) << 8;
	struct buf *wire = &c->server.in;

	n |= fuzz_byte(in);
	switch (choice % 7) {
	case 0:
		write_some(c, n % ROOM_MAX_BYTES);
		break;
	case 1:
		return read_all(c, n % ROOM_MAX_BYTES + 1);
	case 2:
		change(wire, n, fuzz_byte(in));
		break;
	case 3: {
		struct span bytes = fuzz_bytes(in, n % 64);

		if (bytes.n > 0)
			buf_add(wire, bytes.p, bytes.n);
		break;
	}
	case 4:
		tls_close(c->client.tls, wire);
		c->closed = true;
		break;
	case 5:
		repeat(wire);
		break;
	case 6:
		cut(wire, n);
		break;
	}
	return true;
}

static void check_records(struct span in)
{
	struct channel c;
	bool open = true;

	channel_open(&c);
	for (unsigned i = 0; i < STEPS_MAX && in.n > 0 && open; i++)
		open = run_step(&c, &in);
	if (open)
		(void)read_all(&c, ROOM_MAX_BYTES);
	channel_done(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = {data, size};
	uint8_t choice = fuzz_byte(&in);

	if (choice & OPEN)
		check_records(in);
	else
		check_handshake(in, choice & CLIENT);
	return 0;
}
