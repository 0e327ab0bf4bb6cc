/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_client.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/parse.h"
#include "net/grpc/grpc_message.h"
#include "net/grpc/grpc_protobuf.h"
#include "net/grpc/grpc_service.h"
#include "net/grpc/grpc_status.h"
#include "net/grpc/grpc_timeout.h"

struct grpc_client {
	struct loop *loop;
	struct h2_channel *channel;
	const char *scheme;
	char *authorization; /* NULL: none */
	char *recipient;     /* NULL: none */
	size_t refs;         /* of its calls, and of its owner: those that free() ends may make new ones */
};

/* The part of one reply that was received so far. */
struct reply {
	unsigned http;
	unsigned status; /* grpc-status; valid with has_status */
	bool has_status;
	struct buf status_text;
	struct grpc_assembler body;
	struct error *error; /* what is wrong with the body */
};

struct grpc_client_call {
	struct grpc_client *client;
	struct h2_request *request;
	struct loop_timer *timer;
	uint64_t deadline_ns;
	char *path;
	struct reply reply;
	const ProtobufCMessageDescriptor *reply_type;
	ProtobufCMessage **ret_copy; /* NULL, or where a copy of the reply goes that outlives the call */
	grpc_reply_fn fn;
	void *user;
};

static void reply_init(struct reply *r)
{
	*r = (struct reply){.status_text = BUF_INIT(LIMIT_HEADER_BYTES)};
	grpc_assembler_init(&r->body);
}

static void reply_done(struct reply *r)
{
	grpc_assembler_done(&r->body);
	buf_done(&r->status_text);
	error_free(r->error);
}

static void reply_headers(struct reply *r, const struct h2_header *headers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct h2_header *h = &headers[i];

		if (span_eq(h->name, ":status")) {
			r->http = parse_u32_or(h->value, 0);
		} else if (span_eq(h->name, "grpc-status")) {
			r->has_status = true;
			r->status = parse_u32_or(h->value, ERR_UNKNOWN);
		} else if (span_eq(h->name, "grpc-message")) {
			buf_reset(&r->status_text);
			grpc_percent_decode(h->value, &r->status_text);
		}
	}
}

static bool reply_feed(struct reply *r, struct span data)
{
	return !r->error && grpc_assembler_feed(&r->body, data, &r->error) == 0;
}

/* Numbers that are not a status, and DATA_LOSS, for which we have no code, become UNKNOWN. */
static enum err_code code_of_status(unsigned status)
{
	if (status < ERR_CANCELLED || status > ERR_UNAUTHENTICATED || status == 15)
		return ERR_UNKNOWN;
	return (enum err_code)status;
}

static int reply_finish(struct reply *r, const char *path, const struct error *cause, struct error **err)
{
	if (r->error)
		return err_set(err, r->error->code, "%s: %s", path, r->error->msg);
	if (r->has_status && r->status != 0 && *buf_str(&r->status_text))
		return err_set(err, code_of_status(r->status), "%s", buf_str(&r->status_text));
	if (r->has_status && r->status != 0)
		return err_set(
			err, code_of_status(r->status), "%s: status %u without a message", path, r->status);
	if (cause)
		return err_set(err, cause->code, "%s: %s", path, cause->msg);
	if (!r->has_status)
		return err_set(err, grpc_code_of_http(r->http), "%s: HTTP status %u without grpc-status",
			path, r->http);
	if (!r->body.complete)
		return err_set(err, ERR_INTERNAL, "%s: reply without a message", path);
	return 0;
}

void grpc_client_authorize(struct grpc_client *c, const char *value)
{
	char *old = c->authorization;

	c->authorization = value ? x_strdup(value) : NULL;
	if (old)
		explicit_bzero(old, strlen(old));
	free(old);
}

void grpc_client_set_recipient(struct grpc_client *c, const char *node_id)
{
	free(c->recipient);
	c->recipient = x_strdup(node_id);
}

static void client_unref(struct grpc_client *c)
{
	if (--c->refs > 0)
		return;
	grpc_client_authorize(c, NULL);
	free(c->recipient);
	free(c);
}

static void call_free(struct grpc_client_call *call)
{
	loop_timer_close(call->timer);
	reply_done(&call->reply);
	client_unref(call->client);
	free(call->path);
	free(call);
}

static void on_headers(void *user, const struct h2_header *headers, size_t n, bool is_trailer)
{
	struct grpc_client_call *call = user;

	(void)is_trailer;
	reply_headers(&call->reply, headers, n);
}

static bool on_data(void *user, struct span data)
{
	struct grpc_client_call *call = user;

	return reply_feed(&call->reply, data);
}

static int unpack(const struct grpc_client_call *call, struct arena *arena, ProtobufCMessage **ret_reply,
	struct error **err)
{
	struct span bytes = buf_span(&call->reply.body.message);

	if (grpc_protobuf_unpack(call->reply_type, bytes, arena, ret_reply, err) < 0)
		return err_wrap(err, "reply to %s", call->path);
	/* The same bytes, which were within the limits. */
	if (call->ret_copy)
		*call->ret_copy = protobuf_c_message_unpack(call->reply_type, NULL, bytes.n, bytes.p);
	return 0;
}

static void on_end(void *user, const struct error *cause)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	CLEANUP(error_freep) struct error *late = NULL;
	struct grpc_client_call *call = user;
	ProtobufCMessage *reply = NULL;

	/* A reset after the deadline counts as DEADLINE_EXCEEDED, as in grpc-go: servers that know the
	 * deadline reset the stream, maybe before the timer here fires. */
	if (cause && cause->code == ERR_CANCELLED && clock_ns() >= call->deadline_ns) {
		err_set(&late, ERR_DEADLINE, "%s", cause->msg);
		cause = late;
	}
	if (reply_finish(&call->reply, call->path, cause, &err) == 0 && unpack(call, arena, &reply, &err) < 0)
		reply = NULL;
	call->fn(call->user, reply, err);
	call_free(call);
}

static const struct h2_request_events events = {on_headers, on_data, on_end};

bool grpc_client_call_refused(const struct grpc_client_call *call)
{
	const struct reply *r = &call->reply;

	return !r->error && r->has_status && r->status != 0;
}

static void on_timeout(void *user)
{
	struct grpc_client_call *call = user;

	h2_request_cancel(call->request, ERR_DEADLINE, "no answer within the time limit");
}

int grpc_client_new(const struct h2_channel_config *config, struct grpc_client **ret, struct error **err)
{
	struct h2_channel *channel;
	struct grpc_client *c;

	if (h2_channel_new(config, &channel, err) < 0)
		return -1;
	c = x_calloc(1, sizeof(*c));
	c->loop = config->loop;
	c->channel = channel;
	c->scheme = config->tls ? "https" : "http";
	c->refs = 1;
	*ret = c;
	return 0;
}

void grpc_client_free(struct grpc_client *c)
{
	if (!c)
		return;
	h2_channel_free(c->channel);
	client_unref(c);
}

static struct h2_request *send_request(struct grpc_client_call *call, struct span packed, uint64_t timeout_ms)
{
	struct h2_header headers[12] = {
		H2_HEADER(":method", "POST"),
		H2_HEADER(":scheme", call->client->scheme),
		H2_HEADER(":path", call->path),
		H2_HEADER(":authority", h2_channel_authority(call->client->channel)),
		H2_HEADER("te", "trailers"),
		H2_HEADER("content-type", "application/grpc"),
		H2_HEADER("user-agent", "pmem-csi/" PMEM_VERSION),
		H2_HEADER("grpc-accept-encoding", "identity"),
	};
	size_t n = 8;
	char timeout[12];

	if (timeout_ms > 0) {
		grpc_timeout_format(timeout_ms * NS_PER_MS, timeout);
		headers[n++] = H2_HEADER("grpc-timeout", timeout);
	}
	if (call->client->authorization)
		headers[n++] = H2_HEADER("authorization", call->client->authorization);
	if (call->client->recipient)
		headers[n++] = H2_HEADER(GRPC_RECIPIENT_HEADER, call->client->recipient);
	return h2_channel_request(call->client->channel, headers, n, packed, &events, call);
}

struct grpc_client_call *grpc_client_call(struct grpc_client *c, const char *path,
	const ProtobufCMessage *request, const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms,
	grpc_reply_fn fn, void *user)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(0);
	CLEANUP(error_freep) struct error *err = NULL;
	struct grpc_client_call *call = x_calloc(1, sizeof(*call));
	struct span packed = {0};

	c->refs++;
	call->client = c;
	call->path = x_strdup(path);
	call->reply_type = reply_type;
	call->fn = fn;
	call->user = user;
	call->deadline_ns = timeout_ms > 0 ? clock_ns() + timeout_ms * NS_PER_MS : DEADLINE_NONE;
	reply_init(&call->reply);
	if (timeout_ms > 0) {
		call->timer = loop_timer_new(c->loop, on_timeout, call);
		loop_timer_set(call->timer, timeout_ms, 0);
	}
	/* A request that cannot be packed is cancelled before it is sent. So its callback runs later, from
	 * the loop, as that of every call. */
	int rv = grpc_protobuf_pack(request, arena, &packed, &err);
	call->request = send_request(call, packed, timeout_ms);
	if (rv < 0)
		h2_request_cancel(call->request, err->code, err->msg);
	return call;
}

void grpc_client_cancel(struct grpc_client_call *call)
{
	h2_request_cancel(call->request, ERR_CANCELLED, "the call was cancelled");
}

struct sync {
	struct loop *loop;
	bool done;
	struct error *error;
};

static void on_sync_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct sync *sync = user;

	(void)reply;
	sync->done = true;
	if (error)
		err_set(&sync->error, error->code, "%s", error->msg);
	loop_stop(sync->loop);
}

int grpc_client_call_sync(struct grpc_client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, uint64_t timeout_ms, ProtobufCMessage **ret_reply,
	struct error **err)
{
	struct sync sync = {.loop = c->loop};
	ProtobufCMessage *copy = NULL;
	struct grpc_client_call *call =
		grpc_client_call(c, path, request, reply_type, timeout_ms, on_sync_reply, &sync);

	call->ret_copy = &copy;
	while (!sync.done)
		loop_run(c->loop);
	if (sync.error) {
		*err = sync.error;
		return -1;
	}
	*ret_reply = copy;
	return 0;
}
