/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "unit/unit.h"

/* examples of FIPS 180, as published in the NIST Cryptographic Standards and Guidelines */
START_TEST(digests_of_the_standard_examples)
{
	static const struct {
		const char *text;
		const char *hex;
	} examples[] = {
		{"", "d14a028c2a3a2bc9476102bb288234c415a2b01f828ea62ac5b3e42f"},
		{"abc", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
			"75388b16512776cc5dba5da1fd890150b0c6455cb4f58b1952522525"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(examples); i++) {
		char hex[SHA224_HEX_LEN + 1];

		sha224_hex(examples[i].text, strlen(examples[i].text), hex);
		ck_assert_str_eq(hex, examples[i].hex);
	}
}
END_TEST

START_TEST(sha256_of_a_standard_example)
{
	char hex[SHA256_HEX_LEN + 1];

	sha256_hex("abc", 3, hex);
	ck_assert_str_eq(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
END_TEST

UNIT_MAIN("base/hash", digests_of_the_standard_examples, sha256_of_a_standard_example)
