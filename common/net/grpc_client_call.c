#include "net/grpc_client_call.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "net/loop.h"

struct grpc_client_call *grpc_client_call_new(const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, grpc_reply_fn fn, void *user)
{
	struct grpc_client_call *call = x_calloc(1, sizeof(*call));

	call->path = x_strdup(path);
	call->arena = arena_new(LIMIT_ARENA_BYTES);
	call->status_text = BUF_INIT(LIMIT_HEADER_BYTES);
	call->deadline_ns = timeout_ms ? clock_ns() + timeout_ms * NS_PER_MS : DEADLINE_NONE;
	call->reply_type = reply_type;
	call->fn = fn;
	call->user = user;
	grpc_assembler_init(&call->body);
	if (grpc_message_pack(request, call->arena, &call->packed, &call->error) < 0)
		call->ended = true;
	return call;
}

void grpc_client_call_free(struct grpc_client_call *call)
{
	loop_timer_close(call->timer);
	grpc_assembler_done(&call->body);
	buf_done(&call->status_text);
	arena_free(call->arena);
	error_free(call->error);
	free(call->path);
	free(call);
}

int grpc_client_call_request(
	struct grpc_client_call *call, struct h2 *h, const char *authority, struct error **err)
{
	struct h2_header headers[10] = {
		H2_HEADER(":method", "POST"),
		H2_HEADER(":scheme", "http"),
		H2_HEADER(":path", call->path),
		H2_HEADER(":authority", authority),
		H2_HEADER("te", "trailers"),
		H2_HEADER("content-type", "application/grpc"),
		H2_HEADER("user-agent", "pmem-csi/" PMEM_VERSION),
		H2_HEADER("grpc-accept-encoding", "identity"),
	};
	size_t n = 8;
	char timeout[12];

	if (call->deadline_ns != DEADLINE_NONE) {
		uint64_t now = clock_ns();

		grpc_timeout_format(call->deadline_ns > now ? call->deadline_ns - now : 0, timeout);
		headers[n++] = H2_HEADER("grpc-timeout", timeout);
	}
	if (h2_request(h, headers, n, false, &call->stream, err) < 0)
		return -1;
	h2_write(h, call->stream, call->packed);
	h2_finish(h, call->stream, NULL, 0);
	return 0;
}

static unsigned number_or(struct span s, unsigned otherwise)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *text = x_strndup((const char *)s.p, s.n);
	uint32_t n;

	return parse_u32(text, &n, &err) < 0 ? otherwise : n;
}

void grpc_client_call_headers(struct grpc_client_call *call, const struct h2_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct h2_header *h = &headers[i];

		if (span_eq(h->name, ":status")) {
			call->http = number_or(h->value, 0);
		} else if (span_eq(h->name, "grpc-status")) {
			call->has_status = true;
			call->status = number_or(h->value, ERR_UNKNOWN);
		} else if (span_eq(h->name, "grpc-message")) {
			buf_reset(&call->status_text);
			grpc_percent_decode(h->value, &call->status_text);
		}
	}
}

int grpc_client_call_feed(struct grpc_client_call *call, struct span data)
{
	if (grpc_assembler_feed(&call->body, data, &call->error) < 0) {
		call->ended = true;
		return -1;
	}
	return 0;
}

/* Numbers that are no status, and DATA_LOSS, for which we have no code, are UNKNOWN. */
static enum err_code code_of_status(unsigned status)
{
	if (status < ERR_CANCELLED || status > ERR_UNAUTHENTICATED || status == 15)
		return ERR_UNKNOWN;
	return (enum err_code)status;
}

static int unpack(struct grpc_client_call *call)
{
	struct span bytes = buf_span(&call->body.message);

	if (grpc_message_unpack(call->reply_type, bytes, call->arena, &call->reply, &call->error) < 0) {
		/* it was not our argument that is wrong */
		if (call->error->code == ERR_INVALID_ARGUMENT)
			call->error->code = ERR_INTERNAL;
		return err_wrap(&call->error, "reply to %s", call->path);
	}
	/* The same bytes, which were within the limits. */
	if (call->ret_copy)
		*call->ret_copy = protobuf_c_message_unpack(call->reply_type, NULL, bytes.n, bytes.p);
	return 0;
}

void grpc_client_call_close(struct grpc_client_call *call, uint32_t h2_code)
{
	if (call->ended)
		return;
	if (call->has_status && call->status != 0) {
		grpc_client_call_fail(call, code_of_status(call->status), "%s", buf_str(&call->status_text));
	} else if (call->has_status && call->body.complete) {
		if (unpack(call) < 0)
			call->reply = NULL;
		call->ended = true;
	} else if (call->has_status) {
		grpc_client_call_fail(call, ERR_INTERNAL, "%s: reply without a message", call->path);
	} else if (h2_code != H2_NO_ERROR) {
		grpc_client_call_fail(call, grpc_code_of_reset(h2_code),
			"%s: the server ended the stream with %u", call->path, h2_code);
	} else {
		grpc_client_call_fail(call, grpc_code_of_http(call->http),
			"%s: HTTP status %u without grpc-status", call->path, call->http);
	}
}

void grpc_client_call_fail(struct grpc_client_call *call, enum err_code code, const char *fmt, ...)
{
	CLEANUP(free_charp) char *msg = NULL;
	va_list ap;

	if (call->ended)
		return;
	va_start(ap, fmt);
	msg = x_vasprintf(fmt, ap);
	va_end(ap);
	err_set(&call->error, code, "%s", msg);
	call->ended = true;
}
