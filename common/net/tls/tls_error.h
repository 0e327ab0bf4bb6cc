/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_error.h - describes for administrators why a handshake or a connection failed.
 *
 * Threads: safe. Nothing blocks. Sources: RFC 5246 7.2.2, RFC 8446 6.2 (alerts).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/span.h"

struct mbedtls_x509_crt;

/** tls_error_code() - append the meaning of an error @rv of mbedtls to @out. */
void tls_error_code(int rv, struct buf *out);

/** tls_error_to_alert() - number of the alert that reports the error @rv of mbedtls to the peer. */
unsigned char tls_error_to_alert(int rv);

/** tls_error_alert() - append the meaning of alert @number, which the peer sent, to @out. */
void tls_error_alert(unsigned number, struct buf *out);

/**
 * tls_error_certificate() - append what is wrong with a certificate of the peer to @out.
 * @depth:    0: its own; else of an authority above it
 * @flags:    MBEDTLS_X509_BADCERT_*, not 0
 * @expected: the name that it should have, for MBEDTLS_X509_BADCERT_CN_MISMATCH
 */
void tls_error_certificate(const struct mbedtls_x509_crt *cert, int depth, uint32_t flags,
	const char *expected, struct buf *out);

/** tls_error_flags() - append what @flags (MBEDTLS_X509_BADCERT_*) mean, when no certificate is available to
 * name. */
void tls_error_flags(uint32_t flags, struct buf *out);

/**
 * tls_error_check_first() - whether the peer speaks TLS at all.
 * @first: at least TLS_RECORD_HEADER_BYTES of what it sent first
 *
 * Return: 0, or -1 with ERR_UNAUTHENTICATED, which says what the peer speaks instead, if that is recognised.
 */
int tls_error_check_first(struct span first, struct error **err) MUST_CHECK;

#define TLS_RECORD_HEADER_BYTES 5
