/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls.h - TLS with mbedtls, without I/O: mutual authentication, exact peer names, and certificates that are
 * loaded again when their files change.
 *
 * Rules: TLS 1.2 or later, ECDHE with AEAD only, curves X25519, P-256, P-384 and P-521 in this order, no
 * session resumption, no renegotiation. A peer has the names of its certificate's subjectAltName, dNSName or
 * iPAddress, compared exactly: there are no wildcards, and the common name is ignored. With an ALPN protocol
 * configured, a peer that does not agree to it is refused.
 *
 * A context belongs to one role and one set of files. Its certificates are loaded again when a handshake
 * begins and the files have changed, which is checked at most once per second and also detects that
 * Kubernetes replaces the symlink in a volume. Existing connections keep the certificates with which they
 * began. If new files cannot be loaded, the old certificates stay in use, and the reason is logged once per
 * change.
 *
 * Threads: a context is safe to share; one struct tls belongs to one thread at a time. Only tls_context_new()
 * and tls_handshake() block, on files. Sources: RFC 5246, 6125, 7301; mbedtls/ssl.h.
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
	const char *ca_file;   /* the authority that signs the peers; NULL (server only): clients need no
				  certificate */
	const char *cert_file; /* our certificate chain; NULL (client only), together with key_file: no
				  certificate is sent */
	const char *key_file;
	const char *alpn; /* "h2", or "http/1.1", which need not be offered; NULL: none. Borrowed for ever */
	const char *const *peer_names; /* server: the client must have one of these names; NULL-terminated;
					  NULL: any name */
	bool strict_keys; /* a key file that other users may read is an error instead of a warning */
};

enum tls_expiry_kind {
	TLS_EXPIRY_CHAIN,       /* invalid as soon as one certificate has expired */
	TLS_EXPIRY_AUTHORITIES, /* valid until the last certificate has expired */
};

struct tls_validity {
	int64_t begins_s; /* since 1970 */
	int64_t expires_s;
};

/** tls_expiry() - find out when the certificates in a file expire. @ret: the validity of the certificate on
 * which that depends. Blocks on the file. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the file. */
int tls_expiry(
	const char *file, enum tls_expiry_kind kind, struct tls_validity *ret, struct error **err) MUST_CHECK;

struct tls_context;

/**
 * tls_context_new() - load certificates.
 * @config: strings are copied, except for alpn
 *
 * Blocks on files. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the file (missing, malformed, key
 * does not fit certificate, readable by others with strict_keys). @ret: tls_context_unref().
 */
int tls_context_new(const struct tls_config *config, struct tls_context **ret, struct error **err) MUST_CHECK;

/** tls_context_ref() - add a reference to @c. Return: @c. */
struct tls_context *tls_context_ref(struct tls_context *c);

/** tls_context_unref() - drop a reference to @c; existing connections keep theirs. NULL is allowed. */
void tls_context_unref(struct tls_context *c);
DEFINE_CLEANUP(struct tls_context *, tls_context_unref);

struct tls;

/**
 * tls_new() - make the TLS state of one connection.
 * @c:         referenced
 * @peer_name: client: the name that the server's certificate must have, as dNSName or iPAddress; sent as SNI
 * unless it is an address. NULL for servers
 *
 * Return: never NULL; tls_free(). Cheap: certificates are read by the first tls_handshake().
 */
struct tls *tls_new(struct tls_context *c, const char *peer_name);

/** tls_free() - destroy @t; NULL is allowed. */
void tls_free(struct tls *t);
DEFINE_CLEANUP(struct tls *, tls_free);

/**
 * tls_handshake() - continue the handshake.
 * @in:       bytes from the peer; those that the handshake has processed are removed. May be empty
 * @out:      bytes to be sent are appended, including an alert after a failure
 * @ret_done: whether the handshake is complete, the peer's name and ALPN checked
 *
 * Computing signatures takes milliseconds, so this must not be called on the loop thread. Return: 0, or -1
 * with ERR_UNAUTHENTICATED, whose text says what is wrong (no TLS at all, certificate missing, expired, not
 * yet valid, of another CA, of another name, no common cipher or protocol); the connection cannot be used
 * after @out is sent.
 */
int tls_handshake(
	struct tls *t, struct buf *in, struct buf *out, bool *ret_done, struct error **err) MUST_CHECK;

/**
 * tls_read() - decrypt bytes from the peer.
 * @in:    bytes from the peer; moved past those that were processed, which is everything when 0 bytes are
 * decrypted
 * @out:   @room bytes
 * @ret_n: bytes written to @out; call again until it is 0
 * @ret_closed: whether the peer has ended its side (close_notify)
 *
 * If something has to be sent, such as the alert after a failure, it is sent by the next tls_write() or
 * tls_close(). Return: 0, or -1 with ERR_UNAVAILABLE when the connection cannot be used any more.
 */
int tls_read(struct tls *t, struct span *in, uint8_t *out, size_t room, size_t *ret_n, bool *ret_closed,
	struct error **err) MUST_CHECK;

/** tls_write() - encrypt all of @plain and append it to @out. Return: 0, or -1 with ERR_UNAVAILABLE. */
int tls_write(struct tls *t, struct span plain, struct buf *out, struct error **err) MUST_CHECK;

/** tls_close() - append close_notify to @out, or the alert for a failure. Idempotent.
 */
void tls_close(struct tls *t, struct buf *out);

/** tls_peer_names() - get, after the handshake, the dNSNames of the peer's certificate, NULL-terminated,
 * borrowed from @t. Empty when the peer sent no certificate. */
const char *const *tls_peer_names(const struct tls *t);
