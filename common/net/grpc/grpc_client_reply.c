/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_client_reply.h"

#include <stdlib.h>

#include "base/parse.h"

void grpc_client_reply_init(struct grpc_client_reply *r)
{
	*r = (struct grpc_client_reply){.status_text = BUF_INIT(LIMIT_HEADER_BYTES)};
	grpc_assembler_init(&r->body);
}

void grpc_client_reply_done(struct grpc_client_reply *r)
{
	grpc_assembler_done(&r->body);
	buf_done(&r->status_text);
	error_free(r->error);
}

void grpc_client_reply_headers(struct grpc_client_reply *r, const struct h2_header *headers, size_t n)
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

bool grpc_client_reply_feed(struct grpc_client_reply *r, struct span data)
{
	return !r->error && grpc_assembler_feed(&r->body, data, &r->error) == 0;
}

/* Numbers that are no status, and DATA_LOSS, for which we have no code, are UNKNOWN. */
static enum err_code code_of_status(unsigned status)
{
	if (status < ERR_CANCELLED || status > ERR_UNAUTHENTICATED || status == 15)
		return ERR_UNKNOWN;
	return (enum err_code)status;
}

int grpc_client_reply_finish(
	struct grpc_client_reply *r, const char *path, const struct error *cause, struct error **err)
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
