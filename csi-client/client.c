/* SPDX-License-Identifier: Apache-2.0 */
#include "client.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/clock.h"
#include "os/process.h"
#include "print_message.h"

int client_ask(struct client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, ProtobufCMessage **ret, struct error **err)
{
	uint64_t start_ns = clock_ns();

	if (grpc_client_call_sync(c->grpc, path, request, reply_type, c->timeout_ms, ret, err) < 0)
		return -1;
	if (c->show_time)
		fprintf(stderr, "time_us %llu\n", (unsigned long long)((clock_ns() - start_ns) / 1000));
	return 0;
}

int client_print(const struct buf *out, struct error **err)
{
	if (buf_check(out, "reply", err) < 0)
		return -1;
	return process_print(buf_str(out), err);
}

int client_show(const struct client *c, const ProtobufCMessage *reply, struct error **err)
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(CLIENT_OUTPUT_MAX_BYTES);

	if (c->json)
		print_json(reply, &out);
	else
		print_text(reply, &out);
	return client_print(&out, err);
}

int client_call(struct client *c, const char *path, const ProtobufCMessage *request,
	const ProtobufCMessageDescriptor *reply_type, struct error **err)
{
	ProtobufCMessage *reply;

	if (client_ask(c, path, request, reply_type, &reply, err) < 0)
		return -1;
	int rc = client_show(c, reply, err);
	protobuf_c_message_free_unpacked(reply, NULL);
	return rc;
}
