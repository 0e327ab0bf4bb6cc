/* SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

/* Up to 256 bytes come whole once the generator is seeded, see getrandom(2). */
static void fill(void *out, size_t n_bytes)
{
	ssize_t n;

	do
		n = getrandom(out, n_bytes, 0);
	while (n < 0 && errno == EINTR);
	assert(n == (ssize_t)n_bytes);
}

void uuid_generate_text(char out[static UUID_TEXT_LEN + 1])
{
	uint8_t b[16];

	fill(b, sizeof(b));
	/* version 4 and variant 10, RFC 9562 section 5.4 */
	b[6] = (uint8_t)((b[6] & 0x0f) | 0x40);
	b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
	snprintf(out, UUID_TEXT_LEN + 1,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
		b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

uint64_t random_u64(void)
{
	uint64_t n;

	fill(&n, sizeof(n));
	return n;
}
