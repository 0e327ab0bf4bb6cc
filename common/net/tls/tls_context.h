/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_context.h - the certificates of a tls_context, as tls.c uses them.
 *
 * The certificates and the configuration of a handshake are in an object that is never changed (struct
 * tls_creds), so that connections keep the certificates that they began with. Threads: safe. Waits for files
 * as tls.h says.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "net/tls/tls.h"

struct mbedtls_ssl_config;
struct tls_creds;

/* Files are checked for changes at most this often. */
#define TLS_LOOK_NS 1000000000ULL

/** tls_context_creds() - the certificates in use at @now_ns of clock_ns(); the files are checked first when
 * that is due. Return: never NULL; tls_creds_unref(). */
struct tls_creds *tls_context_creds(struct tls_context *c, uint64_t now_ns);

/** tls_creds_unref() - one owner less; NULL is allowed. */
void tls_creds_unref(struct tls_creds *creds);
DEFINE_CLEANUP(struct tls_creds *, tls_creds_unref);

/** tls_creds_conf() - for mbedtls_ssl_setup(). Borrowed. */
const struct mbedtls_ssl_config *tls_creds_conf(const struct tls_creds *creds);

/** tls_context_role() - client or server. */
enum tls_role tls_context_role(const struct tls_context *c);

/** tls_context_alpn() - the protocol that must be agreed on, or NULL. */
const char *tls_context_alpn(const struct tls_context *c);

/** tls_context_peer_names() - server: names of which the client's certificate must have one, NULL-terminated,
 * or NULL. */
char *const *tls_context_peer_names(const struct tls_context *c);
