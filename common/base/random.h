/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.h - numbers and identities from the kernel's generator. Threads: safe. Blocks only until it is
 * seeded.
 */
#pragma once

#include <stdint.h>

#define UUID_TEXT_LEN 36

/** uuid_generate_text() - random (version 4, RFC 9562) UUID in lower-case text, NUL-terminated, into @out. */
void uuid_generate_text(char out[static UUID_TEXT_LEN + 1]);

/** random_u64() - a number, all 64 bits of it random. */
uint64_t random_u64(void);
