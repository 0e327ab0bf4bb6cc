/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_compat.h - what differs between mbedtls 2.28 and 3.x, and what needs the library's internals.
 *
 * The interface has no types of mbedtls, so that users need none of its headers. Threads: safe on different
 * objects. Nothing blocks. Source: mbedtls/docs/3.0-migration-guide.md.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mbedtls_ctr_drbg_context;
struct mbedtls_pk_context;
struct mbedtls_ssl_config;
struct mbedtls_ssl_context;

/** tls_compat_init() - set the library up, once per process. Idempotent, any thread. */
void tls_compat_init(void);

/** tls_compat_protocol() - set versions, cipher suites, groups and signature hashes as tls.h says. */
void tls_compat_protocol(struct mbedtls_ssl_config *conf);

/** tls_compat_parse_key() - mbedtls_pk_parse_key() of @pem; @n counts its NUL. Return: 0, or an error of
 * mbedtls. */
int tls_compat_parse_key(
	struct mbedtls_pk_context *key, const uint8_t *pem, size_t n, struct mbedtls_ctr_drbg_context *rng);

/** tls_compat_check_pair() - whether @key is that of @public. Return: 0, or an error of mbedtls. */
int tls_compat_check_pair(struct mbedtls_pk_context *public, struct mbedtls_pk_context *key,
	struct mbedtls_ctr_drbg_context *rng);

/** tls_compat_has_hello() - server: the client's hello was accepted, and nothing is sent yet. */
bool tls_compat_has_hello(const struct mbedtls_ssl_context *ssl);

/** tls_compat_is_over() - the handshake is complete. */
bool tls_compat_is_over(const struct mbedtls_ssl_context *ssl);

/** tls_compat_is_judged_late() - client: the protocol is TLS 1.3, in which the handshake is complete before
 * the server has judged our certificate. */
bool tls_compat_is_judged_late(const struct mbedtls_ssl_context *ssl);

/** tls_compat_alert() - number of the alert that was received last, after
 * MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE.
 */
unsigned tls_compat_alert(const struct mbedtls_ssl_context *ssl);

/** tls_compat_is_retry() - whether @rv of mbedtls_ssl_read() only says that nothing was decrypted this time.
 */
bool tls_compat_is_retry(int rv);

/**
 * tls_compat_shrink() - give back memory that only the handshake needed.
 *
 * Both buffers of @ssl are made for the longest records, 16 KiB each, and mostly hold short ones: their pages
 * go back to the system until they are needed. 2.28 also keeps the peer's certificates.
 */
void tls_compat_shrink(struct mbedtls_ssl_context *ssl);
