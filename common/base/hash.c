#include "base/hash.h"

#include <assert.h>
#include <mbedtls/md.h>

void sha224_hex(const void *p, size_t n, char out[static SHA224_HEX_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char digest[SHA224_HEX_LEN / 2];

	int rc = mbedtls_md(mbedtls_md_info_from_type(MBEDTLS_MD_SHA224), p, n, digest);
	assert(rc == 0);
	for (size_t i = 0; i < sizeof(digest); i++) {
		out[2 * i] = digits[digest[i] >> 4];
		out[2 * i + 1] = digits[digest[i] & 15];
	}
	out[SHA224_HEX_LEN] = 0;
}
