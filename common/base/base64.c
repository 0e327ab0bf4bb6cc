/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include <string.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const char url_alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

static void encode(const char *letters, struct span content, struct buf *out)
{
	for (size_t i = 0; i < content.n; i += 3) {
		size_t n = content.n - i < 3 ? content.n - i : 3;
		uint32_t bits = 0;

		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < n ? content.p[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			buf_addc(out, k <= n ? letters[bits >> (18 - 6 * k) & 63] : '=');
	}
}

void base64_encode(struct span content, struct buf *out)
{
	encode(alphabet, content, out);
}

void base64_encode_name(struct span content, struct buf *out)
{
	encode(url_alphabet, content, out);
}

/* Four characters, of which @n stand for something; the last bits of a shorter group must be 0, so that one
 * content has one text. Return: false when they are not. */
static bool add_group(uint32_t bits, unsigned n, struct buf *out)
{
	bits <<= 6 * (4 - n);
	if (n < 2 || (bits & ((1u << (8 * (4 - n))) - 1)) != 0)
		return false;
	for (unsigned i = 0; i + 1 < n; i++)
		buf_addc(out, (char)(bits >> (16 - 8 * i)));
	return true;
}

int base64_decode(const char *text, struct buf *out, struct error **err)
{
	uint32_t bits = 0;
	unsigned n = 0;
	unsigned padding = 0;

	for (const char *p = text; *p; p++) {
		const char *place = strchr(alphabet, *p);

		if (*p == '\n' || *p == '\r')
			continue;
		if (*p == '=' && n + padding < 4)
			padding++;
		else if (!place || padding > 0)
			return err_set(err, ERR_INVALID_ARGUMENT, "not base64");
		else
			bits = bits << 6 | (uint32_t)(place - alphabet), n++;
		if (n == 4) {
			add_group(bits, n, out);
			bits = n = 0;
		}
	}
	if (n + padding != 0 && (n + padding != 4 || !add_group(bits, n, out)))
		return err_set(err, ERR_INVALID_ARGUMENT, "not base64: it is incomplete");
	return buf_check(out, "base64", err);
}
