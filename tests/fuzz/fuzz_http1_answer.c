/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of a container runtime to an HTTP/1.1 request of the driver.
 *
 * The pieces in which it comes may not change what is understood: each input runs as a whole, and in pieces
 * as long as the first byte says; the connection ends behind it.
 */
#include "net/http1/http1_answer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuzz/fuzz.h"

#define BODY_MAX_BYTES 1000

/* Return: whether it was complete. */
static bool receive(struct http1_answer *a, struct span in, size_t piece_bytes)
{
	CLEANUP(error_freep) struct error *err = NULL;

	while (in.n > 0) {
		if (http1_answer_receive(a, fuzz_bytes(&in, piece_bytes), &err) < 0) {
			assert(!http1_answer_is_complete(a));
			fuzz_check_error(err);
			return false;
		}
	}
	int rc = http1_answer_receive(a, (struct span){0}, &err);
	assert((rc == 0) == http1_answer_is_complete(a) && (rc < 0) == (err != NULL));
	return rc == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(http1_answer_freep) struct http1_answer *whole = http1_answer_new(BODY_MAX_BYTES);
	CLEANUP(http1_answer_freep) struct http1_answer *pieces = http1_answer_new(BODY_MAX_BYTES);
	struct span in = {data, size};
	size_t piece_bytes = (size_t)fuzz_byte(&in) + 1;

	bool is_complete = receive(whole, in, SIZE_MAX);
	bool same = receive(pieces, in, piece_bytes) == is_complete;
	assert(same);
	if (!is_complete)
		return 0;
	struct span body = http1_answer_body(whole);
	struct span other = http1_answer_body(pieces);
	assert(http1_answer_status(whole) >= 200 &&
		http1_answer_status(whole) == http1_answer_status(pieces));
	assert(body.n == other.n && body.n <= BODY_MAX_BYTES);
	assert(body.n == 0 || memcmp(body.p, other.p, body.n) == 0);
	return 0;
}
