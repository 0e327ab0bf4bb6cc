/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash.h - digests, over mbedtls' md module. Threads: safe.
 */
#pragma once

#include <stddef.h>

#define SHA224_HEX_LEN 56
#define SHA256_HEX_LEN 64

/** sha224_hex() - lower-case hex of SHA-224 over @n bytes at @p, NUL-terminated, into @out. */
void sha224_hex(const void *p, size_t n, char out[static SHA224_HEX_LEN + 1]);

/** sha256_hex() - the same with SHA-256. */
void sha256_hex(const void *p, size_t n, char out[static SHA256_HEX_LEN + 1]);
