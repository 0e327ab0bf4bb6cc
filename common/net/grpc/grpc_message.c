/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_message.h"

#include <inttypes.h>
#include <string.h>

#include "net/http2/h2.h"

void grpc_assembler_init(struct grpc_assembler *a)
{
	*a = (struct grpc_assembler){.message = BUF_INIT(LIMIT_MESSAGE_BYTES)};
}

void grpc_assembler_done(struct grpc_assembler *a)
{
	buf_done(&a->message);
}

static int read_prefix(struct grpc_assembler *a, struct error **err)
{
	uint32_t length = (uint32_t)a->prefix[1] << 24 | (uint32_t)a->prefix[2] << 16 |
			  (uint32_t)a->prefix[3] << 8 | a->prefix[4];

	if (a->prefix[0] == 1)
		return err_set(err, ERR_UNIMPLEMENTED, "compressed gRPC messages are not supported");
	if (a->prefix[0] != 0)
		return err_set(err, ERR_INTERNAL, "invalid gRPC message flags 0x%02x", a->prefix[0]);
	if (length > LIMIT_MESSAGE_BYTES)
		return err_set(err, ERR_EXHAUSTED, "gRPC message of %" PRIu32 " bytes is larger than %u",
			length, LIMIT_MESSAGE_BYTES);
	a->have_prefix = true;
	a->expected = length;
	return 0;
}

/* Moves up to @want bytes from the front of @bytes. */
static struct span take(struct span *bytes, size_t want)
{
	struct span taken = {bytes->p, bytes->n < want ? bytes->n : want};

	bytes->p += taken.n;
	bytes->n -= taken.n;
	return taken;
}

int grpc_assembler_feed(struct grpc_assembler *a, struct span bytes, struct error **err)
{
	if (bytes.n == 0)
		return 0;
	if (!a->have_prefix) {
		struct span part = take(&bytes, sizeof(a->prefix) - a->prefix_len);

		memcpy(a->prefix + a->prefix_len, part.p, part.n);
		a->prefix_len += part.n;
		if (a->prefix_len < sizeof(a->prefix))
			return 0;
		if (read_prefix(a, err) < 0)
			return -1;
	}
	if (!a->complete) {
		struct span part = take(&bytes, a->expected - a->message.len);

		buf_add(&a->message, part.p, part.n);
		a->complete = a->message.len == a->expected;
	}
	if (bytes.n > 0)
		return err_set(err, ERR_INTERNAL, "more than one message in a unary gRPC call");
	return 0;
}

void grpc_prefix(uint32_t length, uint8_t out[static 5])
{
	out[0] = 0;
	out[1] = (uint8_t)(length >> 24);
	out[2] = (uint8_t)(length >> 16);
	out[3] = (uint8_t)(length >> 8);
	out[4] = (uint8_t)length;
}
