/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_pair.h - a TLS client and a TLS server that talk through two buffers.
 */
#pragma once

#include "certs.h"
#include "net/tls/tls.h"

struct tls_end {
	struct tls *tls;
	struct buf in;       /* on its way to this end */
	bool complete;       /* through with the handshake */
	struct error *error; /* why it failed */
};

struct tls_pair {
	struct tls_end client;
	struct tls_end server;
};

/** tls_pair_init() - the client expects @peer_name. tls_pair_done(). The contexts are referenced. */
void tls_pair_init(
	struct tls_pair *p, struct tls_context *client, struct tls_context *server, const char *peer_name);

/** tls_pair_done() - release @p. */
void tls_pair_done(struct tls_pair *p);

/** tls_pair_make() - tls_pair_init() with contexts of their own. */
void tls_pair_make(struct tls_pair *p, const struct certs_choice *client, const struct certs_choice *server,
	const char *peer_name);

/** tls_pair_shake() - shake hands until both are through, or nothing moves any more. */
void tls_pair_shake(struct tls_pair *p);

/** tls_pair_open() - tls_pair_shake() that must succeed. */
void tls_pair_open(struct tls_pair *p);

/** tls_end_step() - one tls_handshake() of @end on what has arrived, unless it is through or has failed; its
 * output goes to @other. */
void tls_end_step(struct tls_end *end, struct tls_end *other);

/** tls_end_send() - encrypt @text at @from on its way to @to. */
void tls_end_send(struct tls_end *from, struct tls_end *to, struct span text);

/** tls_end_receive() - decrypt all that has arrived at @end, by pieces of at most @room bytes, and append it
 * to
 * @out. Return: whether the other end has said that it sends nothing more. */
bool tls_end_receive(struct tls_end *end, size_t room, struct buf *out);
