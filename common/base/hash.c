/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"

#include <assert.h>
#include <mbedtls/md.h>

static void digest_hex(mbedtls_md_type_t type, const void *p, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const mbedtls_md_info_t *md = mbedtls_md_info_from_type(type);
	unsigned char digest[MBEDTLS_MD_MAX_SIZE];

	int rc = mbedtls_md(md, p, n, digest);
	assert(rc == 0);
	for (size_t i = 0; i < mbedtls_md_get_size(md); i++) {
		*out++ = digits[digest[i] >> 4];
		*out++ = digits[digest[i] & 15];
	}
	*out = '\0';
}

void sha224_hex(const void *p, size_t n, char out[static SHA224_HEX_LEN + 1])
{
	digest_hex(MBEDTLS_MD_SHA224, p, n, out);
}

void sha256_hex(const void *p, size_t n, char out[static SHA256_HEX_LEN + 1])
{
	digest_hex(MBEDTLS_MD_SHA256, p, n, out);
}
