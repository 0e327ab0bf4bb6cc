/* SPDX-License-Identifier: Apache-2.0 */
/* A channel over mutual TLS on TCP. */
#include "h2_ask.h"
#include "unit/net/tls/certs.h"

#include "base/mem.h"
#include "pacing/backoff.h"

#define SERVER_NAME "pmem-registry"

static struct rig r;

static void answer(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reply(side->h2, stream, buf_span(&side->body));
}

/* A server that takes pmem-node-controller only; the client shows @client, which may be NULL, and wants
 * @name. */
static void tls_open(const char *client, const char *name)
{
	static const char *const peers[] = {"pmem-node-controller", NULL};
	struct h2_channel_config config = {
		.endpoint = "tcp://127.0.0.1:0",
		.tls_name = name,
		.reconnect_backoff_ms = BACKOFF_MAX_MS,
		.open_ms = 5000,
	};

	config.tls = certs_context(
		&(struct certs_choice){.role = TLS_CLIENT, .ca = "own", .leaf = client, .alpn = "h2"});
	rig_open(&r, config, answer);
	tls_context_unref(config.tls);
	r.peer.tls = certs_context(&(struct certs_choice){
		.role = TLS_SERVER, .ca = "own", .leaf = "own/" SERVER_NAME, .alpn = "h2", .peers = peers});
}

static void tls_close_all(void)
{
	tls_context_unref(TAKE_PTR(r.peer.tls));
	rig_close(&r);
}

START_TEST(both_ends_prove_who_they_are)
{
	struct ask a = {0};

	tls_open("own/pmem-node-controller", SERVER_NAME);
	ask(&r, "/path", "body", &a);
	ask_until_noted(&a, "headers :status=200\ndata body\ntrailers grpc-status=0\n");
	ask_ends(&a, 0, "");
	ck_assert_str_eq(h2_peer_log(&r.peer, 1),
		"headers 1 :method=POST :scheme=https :path=/path :authority=" SERVER_NAME
		"\nend 1\nclose 1 0\n");
	ask_answered(&r);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	tls_close_all();
}
END_TEST

START_TEST(an_address_can_be_the_name)
{
	tls_open("own/pmem-node-controller", "::1");
	tls_context_unref(r.peer.tls);
	r.peer.tls = certs_context(
		&(struct certs_choice){.role = TLS_SERVER, .ca = "own", .leaf = "own/address", .alpn = "h2"});
	ck_assert_str_eq(h2_channel_authority(r.channel), "[::1]");
	ask_answered(&r);
	tls_close_all();
}
END_TEST

START_TEST(large_bodies_pass_both_ways)
{
	const size_t n = 1000000;
	CLEANUP(free_charp) char *body = x_malloc(n + 1);
	struct ask a = {0};

	memset(body, 'x', n);
	body[n] = 0;
	tls_open("own/pmem-node-controller", SERVER_NAME);
	ask(&r, "/", body, &a);
	ask_until_noted(&a, "trailers grpc-status=0\n");
	ck_assert_uint_gt(a.log.len, n);
	ask_ends(&a, 0, "");
	tls_close_all();
}
END_TEST

START_TEST(a_server_of_another_name_is_not_talked_to)
{
	tls_open("own/pmem-node-controller", "pmem-evil");
	ask_fails(&r, ERR_UNAVAILABLE, "pmem-evil");
	ask_fails(&r, ERR_UNAVAILABLE, "pmem-evil");
	h2_peer_rounds(&r.peer);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	ck_assert_str_eq(h2_peer_log(&r.peer, 1), "");
	tls_close_all();
}
END_TEST

START_TEST(a_client_of_another_name_is_not_listened_to)
{
	tls_open("own/pmem-evil", SERVER_NAME);
	ask_fails(&r, ERR_UNAVAILABLE, r.peer.endpoint);
	ck_assert_uint_eq(r.peer.n_conns, 1);
	ck_assert_str_eq(h2_peer_log(&r.peer, 1), "");
	tls_close_all();
}
END_TEST

START_TEST(a_client_without_a_certificate_is_not_listened_to)
{
	tls_open(NULL, SERVER_NAME);
	ask_fails(&r, ERR_UNAVAILABLE, r.peer.endpoint);
	ck_assert_str_eq(h2_peer_log(&r.peer, 1), "");
	tls_close_all();
}
END_TEST

START_TEST(a_server_without_tls_is_not_talked_to)
{
	tls_open("own/pmem-node-controller", SERVER_NAME);
	tls_context_unref(TAKE_PTR(r.peer.tls));
	ask_fails(&r, ERR_UNAVAILABLE, "TLS");
	ck_assert_str_eq(h2_peer_log(&r.peer, 1), "");
	tls_close_all();
}
END_TEST

START_TEST(free_does_not_wait_for_a_handshake)
{
	struct ask a = {0};

	tls_open("own/pmem-node-controller", SERVER_NAME);
	ask(&r, "/", "", &a);
	h2_peer_until_logged(&r.peer, 1, "");
	h2_channel_free(TAKE_PTR(r.channel));
	ask_ended(&a, ERR_CANCELLED, "closed");
	tls_close_all();
}
END_TEST

CERTS_MAIN("net/h2_channel_tls", both_ends_prove_who_they_are, an_address_can_be_the_name,
	large_bodies_pass_both_ways, a_server_of_another_name_is_not_talked_to,
	a_client_of_another_name_is_not_listened_to, a_client_without_a_certificate_is_not_listened_to,
	a_server_without_tls_is_not_talked_to, free_does_not_wait_for_a_handshake)
