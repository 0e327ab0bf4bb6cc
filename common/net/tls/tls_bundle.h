/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls_bundle.h - extracts the certificates from PEM text.
 *
 * Each one is encoded again from its DER form, so that no private key or comment beside it is copied, and
 * equal certificates have equal text. Threads: safe. Source: RFC 7468.
 */
#pragma once

#include "base/error.h"
#include "base/span.h"

/** tls_bundle_parse() - the certificates in @pem; whatever stands between them is skipped. Return: 0, or -1
 * with ERR_INVALID_ARGUMENT (none, one is malformed, a NUL). @ret: strv of PEM texts, each once; strv_free().
 */
int tls_bundle_parse(struct span pem, char ***ret, struct error **err) MUST_CHECK;

/** tls_bundle_read() - the same for a file of authorities, which must not hold a private key. Blocks on the
 * file. Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the file, as of tls_file_read() as well. */
int tls_bundle_read(const char *file, char ***ret, struct error **err) MUST_CHECK;

/** tls_bundle_check_signed() - check that one of @authorities, strv of PEM texts, has signed the first
 * certificate of @file, directly or through the intermediate ones after it; dates and names are not checked.
 * Blocks on the file. Return: 0, or -1 with ERR_PRECONDITION (none of them has), or ERR_INVALID_ARGUMENT as
 * of tls_bundle_read(); both name the file. */
int tls_bundle_check_signed(char *const *authorities, const char *file, struct error **err) MUST_CHECK;
