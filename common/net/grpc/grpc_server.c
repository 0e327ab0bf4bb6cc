/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_server.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "net/grpc/grpc_conn.h"

static struct log_quota *new_quota(struct loop *loop, const char *missed_msg)
{
	const struct log_quota_config config = {
		.loop = loop, .max = LIMIT_LOGGED_CALLS, .missed_msg = missed_msg};

	return log_quota_new(&config);
}

struct grpc_server *grpc_server_new(const struct grpc_server_config *config)
{
	struct grpc_server *s = x_calloc(1, sizeof(*s));
	const struct acceptor_config acceptor = {
		.loop = config->loop,
		.handshakes = config->handshakes,
		.server = &grpc_conn_server,
		.user = s,
		.max_connections = config->max_connections ? config->max_connections : LIMIT_CONNECTIONS,
		.name = "gRPC",
	};

	s->config = *config;
	s->refused_log = new_quota(config->loop, "further gRPC calls were refused");
	s->failed_log = new_quota(config->loop, "further gRPC calls failed");
	s->acceptor = acceptor_new(&acceptor);
	return s;
}

void grpc_server_free(struct grpc_server *s)
{
	if (!s)
		return;
	assert(s->running == 0);
	acceptor_free(s->acceptor);
	log_quota_free(s->refused_log);
	log_quota_free(s->failed_log);
	free(s);
}

int grpc_server_listen(
	struct grpc_server *s, const char *endpoint, struct tls_context *tls, struct error **err)
{
	return acceptor_listen(s->acceptor, endpoint, tls, s->config.allow_plain_tcp, err);
}

uint16_t grpc_server_port(const struct grpc_server *s)
{
	return acceptor_port(s->acceptor);
}

void grpc_server_count(const struct grpc_server *s, struct grpc_server_count *ret)
{
	*ret = (struct grpc_server_count){
		.connections = acceptor_connections(s->acceptor), .calls = s->live_calls};
}

void grpc_server_sign(const struct grpc_server *s, struct error **err)
{
	if (s->config.name)
		err_wrap(err, "%s", s->config.name);
}

void grpc_server_check(struct grpc_server *s)
{
	if (!s->no_conns || s->drained || s->running > 0)
		return;
	/* Posted: the callback may free the server, which callers of this still use. */
	s->drained = true;
	loop_post(s->config.loop, s->on_drained, s->on_drained_user);
}

static void on_empty(void *user)
{
	struct grpc_server *s = user;

	s->no_conns = true;
	grpc_server_check(s);
}

void grpc_server_drain(struct grpc_server *s, loop_fn on_drained, void *user)
{
	s->on_drained = on_drained;
	s->on_drained_user = user;
	acceptor_drain(s->acceptor, on_empty, s);
}
