/*
 * hash.h - digests, over mbedtls' md module. Threads: safe.
 */
#pragma once

#include <stddef.h>

#define SHA224_HEX_LEN 56

/** sha224_hex() - lower-case hex of SHA-224 over @n bytes at @p, NUL-terminated, into @out. */
void sha224_hex(const void *p, size_t n, char out[static SHA224_HEX_LEN + 1]);
