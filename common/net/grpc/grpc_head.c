/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_conn.h"
#include "net/grpc/grpc_timeout.h"

/* of what a peer sent, in messages */
#define MAX_QUOTED 128

static int quoted_len(struct span s)
{
	return (int)(s.n < MAX_QUOTED ? s.n : MAX_QUOTED);
}

/* "application/grpc", perhaps followed by "+proto" or parameters */
static bool is_grpc(struct span content_type)
{
	static const char base[] = "application/grpc";
	const size_t n = sizeof(base) - 1;

	if (content_type.n < n || memcmp(content_type.p, base, n) != 0)
		return false;
	return content_type.n == n || content_type.p[n] == '+' || content_type.p[n] == ';';
}

static void collect(const struct h2_header *headers, size_t n, struct grpc_head *ret)
{
	const struct {
		const char *name;
		struct span *value;
	} wanted[] = {
		{":method", &ret->method},
		{":path", &ret->path},
		{"content-type", &ret->content_type},
		{"te", &ret->te},
		{"grpc-timeout", &ret->timeout},
		{"grpc-encoding", &ret->encoding},
		{"authorization", &ret->authorization},
		{GRPC_RECIPIENT_HEADER, &ret->recipient},
	};

	for (size_t i = 0; i < n; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(wanted); k++) {
			if (span_eq(headers[i].name, wanted[k].name))
				*wanted[k].value = headers[i].value;
		}
	}
}

static bool find_target(const struct grpc_service *services, struct grpc_head *head)
{
	for (const struct grpc_service *s = services; s->methods; s++) {
		for (const struct grpc_method *m = s->methods; m->path; m++) {
			if (!span_eq(head->path, m->path))
				continue;
			head->target = m;
			head->service = s;
			return true;
		}
	}
	return false;
}

int grpc_head_read(const struct grpc_service *services, const struct h2_header *headers, size_t n,
	struct grpc_head *ret, unsigned *ret_http, struct error **err)
{
	*ret = (struct grpc_head){.timeout_ns = UINT64_MAX};
	collect(headers, n, ret);
	*ret_http = 415;
	if (!is_grpc(ret->content_type))
		return err_set(err, ERR_INVALID_ARGUMENT, "invalid gRPC request content-type \"%.*s\"",
			quoted_len(ret->content_type), (const char *)ret->content_type.p);
	*ret_http = 400;
	if (ret->timeout.p && grpc_timeout_parse(ret->timeout, &ret->timeout_ns, err) < 0) {
		err_recode(err, ERR_INTERNAL);
		return err_wrap(err, "malformed grpc-timeout");
	}
	*ret_http = 405;
	if (!span_eq(ret->method, "POST"))
		return err_set(err, ERR_INTERNAL, "method \"%.*s\" is not POST", quoted_len(ret->method),
			(const char *)ret->method.p);
	*ret_http = 200;
	if (!find_target(services, ret))
		return err_set(err, ERR_UNIMPLEMENTED, "unknown method %.*s", quoted_len(ret->path),
			(const char *)ret->path.p);
	return 0;
}
