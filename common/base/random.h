/*
 * random.h - identities from the kernel's generator. Threads: safe. Blocks only until it is seeded.
 */
#pragma once

#define UUID_TEXT_LEN 36

/** uuid_generate_text() - random (version 4, RFC 9562) UUID in lower-case text, NUL-terminated, into @out. */
void uuid_generate_text(char out[static UUID_TEXT_LEN + 1]);
