/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_pair.h"

#include "base/mem.h"

#define MAX_BYTES (64u << 20)

void tls_pair_init(
	struct tls_pair *p, struct tls_context *client, struct tls_context *server, const char *peer_name)
{
	*p = (struct tls_pair){
		.client = {.tls = tls_new(client, peer_name), .in = BUF_INIT(MAX_BYTES)},
		.server = {.tls = tls_new(server, NULL), .in = BUF_INIT(MAX_BYTES)},
	};
}

static void end_done(struct tls_end *end)
{
	tls_free(end->tls);
	buf_done(&end->in);
	error_free(end->error);
}

void tls_pair_done(struct tls_pair *p)
{
	end_done(&p->client);
	end_done(&p->server);
}

void tls_pair_make(struct tls_pair *p, const struct certs_choice *client, const struct certs_choice *server,
	const char *peer_name)
{
	struct certs_choice client_choice = *client;
	struct certs_choice server_choice = *server;

	client_choice.role = TLS_CLIENT;
	server_choice.role = TLS_SERVER;

	CLEANUP(tls_context_unrefp) struct tls_context *client_context = certs_context(&client_choice);
	CLEANUP(tls_context_unrefp) struct tls_context *server_context = certs_context(&server_choice);
	tls_pair_init(p, client_context, server_context, peer_name);
}

void tls_end_step(struct tls_end *end, struct tls_end *other)
{
	if (end->complete || end->error)
		return;
	if (tls_handshake(end->tls, &end->in, &other->in, &end->complete, &end->error) < 0)
		ck_assert_ptr_nonnull(end->error);
}

void tls_pair_shake(struct tls_pair *p)
{
	size_t before;

	do {
		before = p->client.in.len + p->server.in.len;
		tls_end_step(&p->client, &p->server);
		tls_end_step(&p->server, &p->client);
	} while (p->client.in.len + p->server.in.len != before);
}

void tls_pair_open(struct tls_pair *p)
{
	tls_pair_shake(p);
	ck_assert_msg(p->client.complete, "client: %s", p->client.error ? p->client.error->msg : "waits");
	ck_assert_msg(p->server.complete, "server: %s", p->server.error ? p->server.error->msg : "waits");
}

void tls_end_send(struct tls_end *from, struct tls_end *to, struct span text)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(tls_write(from->tls, text, &to->in, &err));
}

bool tls_end_receive(struct tls_end *end, size_t room, struct buf *out)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct span in = buf_span(&end->in);
	uint8_t *to = x_malloc(room);
	bool closed = false;
	size_t n;

	do {
		ASSERT_OK(tls_read(end->tls, &in, to, room, &n, &closed, &err));
		buf_add(out, to, n);
	} while (n > 0);
	ck_assert_uint_eq(in.n, 0);
	buf_reset(&end->in);
	free(to);
	return closed;
}
