/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC's bits over HTTP/2: message prefix, timeout, percent encoding.
 *
 * The first byte chooses one of them. A body is fed in pieces as long as the second byte says.
 */
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_status.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz/fuzz.h"
#include "net/grpc/grpc_timeout.h"
#include "net/limits.h"

#define TEXT_MAX_BYTES (1u << 20)

/* Assembles the body @in from pieces of @piece_bytes. The size of the pieces must not change the result. */
static int assemble(struct span in, size_t piece_bytes, struct buf *out, bool *ret_complete)
{
	struct error *err = NULL;
	struct grpc_assembler a;
	int rv = 0;

	grpc_assembler_init(&a);
	while (in.n > 0 && rv == 0)
		rv = grpc_assembler_feed(&a, fuzz_bytes(&in, piece_bytes), &err);
	if (rv < 0)
		fuzz_error(err);
	*ret_complete = a.complete;
	if (a.complete && rv == 0)
		buf_add(out, a.message.data, a.message.len);
	assert(a.message.len <= LIMIT_MESSAGE_BYTES);
	grpc_assembler_done(&a);
	return rv;
}

static void check_body(struct span in)
{
	CLEANUP(buf_done) struct buf whole = BUF_INIT(TEXT_MAX_BYTES);
	CLEANUP(buf_done) struct buf split = BUF_INIT(TEXT_MAX_BYTES);
	bool complete[2];
	size_t piece_bytes = (size_t)fuzz_byte(&in) + 1;

	int rv = assemble(in, SIZE_MAX, &whole, &complete[0]);
	assert(assemble(in, piece_bytes, &split, &complete[1]) == rv);
	if (rv == 0) {
		assert(complete[0] == complete[1] && whole.len == split.len);
		assert(memcmp(buf_str(&whole), buf_str(&split), whole.len) == 0);
	}
}

/* Checks that a time that is formatted is parsed as the same time, rounded up to what eight digits can
 * express. */
static void check_timeout(struct span in)
{
	struct error *err = NULL;
	char text[12];
	uint64_t ns;
	uint64_t again;

	if (grpc_timeout_parse(in, &ns, &err) < 0) {
		fuzz_error(err);
		return;
	}
	assert(ns <= UINT64_MAX / 2);
	grpc_timeout_format(ns, text);
	int rv = grpc_timeout_parse(span_of(text), &again, &err);
	assert(rv == 0 && again >= ns);
}

static void check_percent(struct span in)
{
	CLEANUP(free_charp) char *text = fuzz_text(in);
	CLEANUP(buf_done) struct buf encoded = BUF_INIT(TEXT_MAX_BYTES);
	CLEANUP(buf_done) struct buf decoded = BUF_INIT(TEXT_MAX_BYTES);

	grpc_percent_encode(text, &encoded);
	for (size_t i = 0; i < encoded.len; i++)
		assert(encoded.data[i] >= 0x20 && encoded.data[i] <= 0x7e);
	grpc_percent_decode(buf_span(&encoded), &decoded);
	assert(str_eq(buf_str(&decoded), text));
	buf_reset(&decoded);
	grpc_percent_decode(in, &decoded);
	assert(decoded.len <= in.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const checks[])(struct span in) = {check_body, check_timeout, check_percent};
	struct span in = {data, size};

	checks[fuzz_byte(&in) % ARRAY_SIZE(checks)](in);
	return 0;
}
