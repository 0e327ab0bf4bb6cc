/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_names.h - the names in a certificate: the dNSName and iPAddress entries of its subjectAltName.
 *
 * Compared exactly: no wildcards, ASCII letters of any case in a dNSName, addresses by their bytes. A name
 * with bytes that no host name has, such as NUL, is ignored, and so is the common name (RFC 6125 6.4.4).
 * Threads: safe. Nothing blocks.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/span.h"

struct mbedtls_x509_crt;

/** tls_name_is_address() - whether @name is an IPv4 or IPv6 address, which is compared with iPAddress
 * entries. */
bool tls_name_is_address(const char *name);

/** tls_names_match() - whether @cert has the name @name. */
bool tls_names_match(const struct mbedtls_x509_crt *cert, const char *name);

/** tls_names_list() - the dNSNames of @cert. Return: never NULL, NULL-terminated; strv_free(). */
char **tls_names_list(const struct mbedtls_x509_crt *cert);

/** tls_names_describe() - append the names of @cert for an error: at most eight, dNSNames and addresses; or
 * "no name". */
void tls_names_describe(const struct mbedtls_x509_crt *cert, struct buf *out);
