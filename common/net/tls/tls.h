/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS without I/O over mbedtls: mutual authentication, exact peer names, certificates that follow
 * their files.
 *
 * Rules: TLS 1.2 or later, ECDHE with AEAD only, curves X25519, P-256, P-384 and P-521 in this order, no
 * session resumption, no renegotiation. A peer has the names of its certificate's subjectAltName, dNSName or
 * iPAddress, compared exactly: no wildcards, and the common name counts for nothing. With an ALPN protocol
 * configured, a peer that does not agree to it is refused.
 *
 * A context belongs to one role and one set of files; its certificates are loaded again when a handshake
 * begins and the files have changed (looked at once per second at most, which follows the symlink swap of
 * Kubernetes' volumes), while connections keep what they began with. Files that cannot be loaded leave the
 * old ones in force and say so in the log, once per change.
 *
 * Threads: a context is safe to share; one struct tls belongs to one thread at a time. Nothing waits but for
 * files, in tls_context_new() and tls_handshake(). Sources: RFC 5246, 6125, 7301; mbedtls/ssl.h.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

enum tls_role { TLS_SERVER, TLS_CLIENT };

struct tls_config {
	enum tls_role role;
	const char *ca_file;   /* the authority that signs the peers; NULL (server only): no certificate is
				  asked for */
	const char *cert_file; /* own chain; NULL (client only) with key_file: shows none */
	const char *key_file;
	const char *alpn; /* "h2", or "http/1.1", which need not be offered; NULL: none. Borrowed for ever */
	const char *const *peer_names; /* server: one of these must be the client's; NULL-terminated; NULL:
					* any name of the CA */
	bool strict_keys;              /* a key file that others may read is an error instead of a warning */
};

enum tls_expiry_kind {
	TLS_EXPIRY_CHAIN,       /* of no use when one of them has expired */
	TLS_EXPIRY_AUTHORITIES, /* of use until the last one has */
};

struct tls_validity {
	int64_t begins_s; /* since 1970 */
	int64_t expires_s;
};

/** tls_expiry() - when the certificates in a file expire. @ret: of the certificate that decides. Blocks on
 * the file. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the file. */
int tls_expiry(
	const char *file, enum tls_expiry_kind kind, struct tls_validity *ret, struct error **err) MUST_CHECK;

struct tls_context;

/**
 * tls_context_new() - load certificates.
 * @config: strings are copied, alpn excepted
 *
 * Blocks on files. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the file (missing, malformed, key
 * does not fit certificate, readable by others with strict_keys). @ret: tls_context_unref().
 */
int tls_context_new(const struct tls_config *config, struct tls_context **ret, struct error **err) MUST_CHECK;

/** tls_context_ref() - one more owner. Return: @c. */
struct tls_context *tls_context_ref(struct tls_context *c);

/** tls_context_unref() - one owner less; connections keep what they need. NULL is allowed. */
void tls_context_unref(struct tls_context *c);
DEFINE_CLEANUP(struct tls_context *, tls_context_unref);

struct tls;

/**
 * tls_new() - one connection.
 * @c:         referenced
 * @peer_name: client: what the server's certificate must bear, dNSName or iPAddress; sent as SNI unless it is
 * an address. NULL for servers
 *
 * Return: never NULL; tls_free(). Cheap: certificates are looked at by the first tls_handshake().
 */
struct tls *tls_new(struct tls_context *c, const char *peer_name);

/** tls_free() - destroy @t; NULL is allowed. */
void tls_free(struct tls *t);
DEFINE_CLEANUP(struct tls *, tls_free);

/**
 * tls_handshake() - continue the handshake.
 * @in:       bytes of the peer; what the handshake took is removed. May be empty
 * @out:      what is to be sent is appended, an alert after a failure included
 * @ret_done: whether the handshake is complete, the peer's name and ALPN checked
 *
 * Costs milliseconds of signatures: not for the loop thread. Return: 0, or -1 with ERR_UNAUTHENTICATED whose
 * text tells what is wrong (no TLS at all, certificate missing, expired, not yet valid, of another CA, of
 * another name, no common cipher or protocol); the connection is then of no use once @out is sent.
 */
int tls_handshake(
	struct tls *t, struct buf *in, struct buf *out, bool *ret_done, struct error **err) MUST_CHECK;

/**
 * tls_read() - decrypt.
 * @in:    bytes of the peer; moved behind what was taken, which is all of them when 0 bytes come out
 * @out:   @room bytes
 * @ret_n: bytes written to @out; call again until it is 0
 * @ret_closed: the peer said that it sends nothing more (close_notify)
 *
 * What it has to answer, such as the alert after a failure, is sent by the next tls_write() or tls_close().
 * Return: 0, or -1 with ERR_UNAVAILABLE when the connection is beyond use.
 */
int tls_read(struct tls *t, struct span *in, uint8_t *out, size_t room, size_t *ret_n, bool *ret_closed,
	struct error **err) MUST_CHECK;

/** tls_write() - encrypt all of @plain and append it to @out. Return: 0, or -1 with ERR_UNAVAILABLE. */
int tls_write(struct tls *t, struct span plain, struct buf *out, struct error **err) MUST_CHECK;

/** tls_close() - append the close_notify to @out, or after a failure the alert that says so. Idempotent.
 */
void tls_close(struct tls *t, struct buf *out);

/** tls_peer_names() - after the handshake: the dNSNames of the peer's certificate, NULL-terminated, borrowed
 * from @t. Empty when it showed none. */
const char *const *tls_peer_names(const struct tls *t);
