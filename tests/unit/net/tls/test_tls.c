/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"
#include "tls_pair.h"

#define MAX_TEXT   (16u << 20)
#define LONG_BYTES (1u << 20)

static const char *const node_controllers[] = {"pmem-node-controller", NULL};

static const struct certs_choice node = {.ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"};
static const struct certs_choice registry = {
	.ca = "own", .leaf = "own/pmem-registry", .alpn = "h2", .peers = node_controllers};

static void make_pair(struct tls_pair *p)
{
	tls_pair_make(p, &node, &registry, "pmem-registry");
}

static void open_pair(struct tls_pair *p)
{
	make_pair(p);
	tls_pair_open(p);
}

static void check_received(struct tls_end *end, size_t room, struct span expected)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT(MAX_TEXT);

	ck_assert(!tls_end_receive(end, room, &got));
	ck_assert_uint_eq(got.len, expected.n);
	ck_assert_mem_eq(got.data, expected.p, expected.n);
}

START_TEST(both_ends_know_each_other_by_name)
{
	CLEANUP(tls_pair_done) struct tls_pair p;
	const char *const *names;

	open_pair(&p);
	names = tls_peer_names(p.server.tls);
	ck_assert_str_eq(names[0], "pmem-node-controller");
	ck_assert_ptr_null(names[1]);
	names = tls_peer_names(p.client.tls);
	ck_assert_str_eq(names[0], "pmem-registry");
	ck_assert_ptr_null(names[1]);
}
END_TEST

START_TEST(text_goes_both_ways)
{
	CLEANUP(tls_pair_done) struct tls_pair p;

	open_pair(&p);
	tls_end_send(&p.client, &p.server, span_of("hello"));
	check_received(&p.server, 100, span_of("hello"));
	tls_end_send(&p.server, &p.client, span_of("good day"));
	check_received(&p.client, 100, span_of("good day"));
}
END_TEST

START_TEST(a_server_without_authority_asks_for_no_certificate)
{
	CLEANUP(tls_pair_done) struct tls_pair p;

	tls_pair_make(&p, &(struct certs_choice){.ca = "own", .alpn = "http/1.1"},
		&(struct certs_choice){.leaf = "own/pmem-registry", .alpn = "http/1.1"}, "pmem-registry");
	tls_pair_open(&p);
	ck_assert_ptr_null(tls_peer_names(p.server.tls)[0]);
}
END_TEST

START_TEST(any_client_of_the_authority_will_do_where_no_name_is_asked_for)
{
	CLEANUP(tls_pair_done) struct tls_pair p;

	tls_pair_make(&p, &(struct certs_choice){.ca = "own", .leaf = "own/nameless"},
		&(struct certs_choice){.ca = "own", .leaf = "own/pmem-registry"}, "pmem-registry");
	tls_pair_open(&p);
	ck_assert_ptr_null(tls_peer_names(p.server.tls)[0]);
}
END_TEST

static bool contains(const struct buf *b, const char *text)
{
	return b->len > 0 && memmem(b->data, b->len, text, strlen(text));
}

START_TEST(a_client_says_which_name_it_expects)
{
	CLEANUP(tls_pair_done) struct tls_pair p;

	make_pair(&p);
	tls_end_step(&p.client, &p.server);
	ck_assert(contains(&p.server.in, "pmem-registry"));
}
END_TEST

/* RFC 6066 3: addresses are not permitted there. */
START_TEST(a_server_is_known_by_its_address_which_is_not_said)
{
	static const char *const addresses[] = {"127.0.0.1", "::1"};

	for (size_t i = 0; i < ARRAY_SIZE(addresses); i++) {
		CLEANUP(tls_pair_done) struct tls_pair p;
		tls_pair_make(&p, &node,
			&(struct certs_choice){.ca = "own", .leaf = "own/address", .alpn = "h2"},
			addresses[i]);
		tls_end_step(&p.client, &p.server);
		ck_assert(!contains(&p.server.in, addresses[i]));
		tls_pair_open(&p);
	}
}
END_TEST

START_TEST(rsa_certificates_are_accepted)
{
	CLEANUP(tls_pair_done) struct tls_pair p;

	tls_pair_make(&p, &(struct certs_choice){.ca = "own", .leaf = "own/rsa"},
		&(struct certs_choice){.ca = "own", .leaf = "own/rsa"}, "pmem-registry");
	tls_pair_open(&p);
}
END_TEST

/* Moves the first byte that waits in @from to @to. */
static bool move_byte(struct buf *from, struct buf *to)
{
	if (from->len == 0)
		return false;
	buf_addc(to, (char)from->data[0]);
	buf_consume(from, 1);
	return true;
}

START_TEST(a_handshake_may_arrive_byte_by_byte)
{
	CLEANUP(tls_pair_done) struct tls_pair p;
	struct tls_end wire_client = {.in = BUF_INIT(MAX_TEXT)};
	struct tls_end wire_server = {.in = BUF_INIT(MAX_TEXT)};
	bool moved = true;

	make_pair(&p);
	tls_end_step(&p.client, &wire_server);
	while (moved) {
		moved = move_byte(&wire_server.in, &p.server.in);
		tls_end_step(&p.server, &wire_client);
		moved = move_byte(&wire_client.in, &p.client.in) || moved;
		tls_end_step(&p.client, &wire_server);
	}
	ck_assert(p.client.complete && p.server.complete);
	buf_done(&wire_client.in);
	buf_done(&wire_server.in);
}
END_TEST

START_TEST(what_follows_the_handshake_is_left_for_reading)
{
	CLEANUP(tls_pair_done) struct tls_pair p;

	make_pair(&p);
	while (!p.client.complete) {
		tls_end_step(&p.client, &p.server);
		if (!p.server.complete)
			tls_end_step(&p.server, &p.client);
	}
	tls_end_send(&p.server, &p.client, span_of("at once"));
	tls_end_send(&p.client, &p.server, span_of("me too"));
	check_received(&p.client, 100, span_of("at once"));
	check_received(&p.server, 100, span_of("me too"));
}
END_TEST

static struct buf long_text(size_t n)
{
	struct buf text = BUF_INIT(MAX_TEXT);
	uint8_t *to = buf_reserve(&text, n);

	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(i * 2654435761u >> 13);
	buf_commit(&text, n);
	return text;
}

START_TEST(text_of_any_length_is_cut_into_records_and_joined)
{
	static const size_t lengths[] = {0, 1, 16383, 16384, 16385, 40000, LONG_BYTES};
	static const size_t rooms[] = {7, 4096, 16384, 100000};
	CLEANUP(tls_pair_done) struct tls_pair p;

	open_pair(&p);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		CLEANUP(buf_done) struct buf text = long_text(lengths[i]);
		for (size_t j = 0; j < ARRAY_SIZE(rooms); j++) {
			tls_end_send(&p.client, &p.server, buf_span(&text));
			check_received(&p.server, rooms[j], buf_span(&text));
		}
	}
}
END_TEST

START_TEST(records_may_arrive_byte_by_byte)
{
	CLEANUP(buf_done) struct buf text = long_text(20000);
	CLEANUP(buf_done) struct buf got = BUF_INIT(MAX_TEXT);
	CLEANUP(tls_pair_done) struct tls_pair p;
	struct buf wire;

	open_pair(&p);
	tls_end_send(&p.server, &p.client, buf_span(&text));
	wire = p.client.in;
	p.client.in = BUF_INIT(MAX_TEXT);
	while (move_byte(&wire, &p.client.in))
		ck_assert(!tls_end_receive(&p.client, 1000, &got));
	ck_assert_uint_eq(got.len, text.len);
	ck_assert_mem_eq(got.data, text.data, text.len);
	buf_done(&wire);
}
END_TEST

START_TEST(a_close_is_reported_once_and_what_follows_is_ignored)
{
	CLEANUP(buf_done) struct buf got = BUF_INIT(MAX_TEXT);
	CLEANUP(tls_pair_done) struct tls_pair p;
	size_t len;

	open_pair(&p);
	tls_end_send(&p.client, &p.server, span_of("last words"));
	tls_close(p.client.tls, &p.server.in);
	len = p.server.in.len;
	tls_close(p.client.tls, &p.server.in);
	ck_assert_uint_eq(p.server.in.len, len);
	ck_assert(tls_end_receive(&p.server, 100, &got));
	ck_assert_str_eq(buf_str(&got), "last words");
	buf_adds(&p.server.in, "anything");
	ck_assert(tls_end_receive(&p.server, 100, &got));
	ck_assert_str_eq(buf_str(&got), "last words");
	tls_end_send(&p.server, &p.client, span_of("still there"));
	check_received(&p.client, 100, span_of("still there"));
}
END_TEST

START_TEST(output_over_the_limit_of_its_buffer_ends_the_connection)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf text = long_text(40000);
	CLEANUP(buf_done) struct buf out = BUF_INIT(20000);
	CLEANUP(tls_pair_done) struct tls_pair p;

	open_pair(&p);
	ASSERT_FAILS(tls_write(p.client.tls, buf_span(&text), &out, &err), ERR_UNAVAILABLE, "20000 bytes");
	ASSERT_FAILS(tls_write(p.client.tls, span_of("x"), &out, &err), ERR_UNAVAILABLE, "has failed");
}
END_TEST

START_TEST(nothing_is_loaded_for_a_peer_that_is_silent)
{
	CLEANUP(tls_pair_done) struct tls_pair p;

	make_pair(&p);
	buf_add(&p.server.in, "\x16\x03\x01\x02", 4);
	tls_end_step(&p.server, &p.client);
	ck_assert(!p.server.complete && !p.server.error);
	ck_assert_uint_eq(p.server.in.len, 4);
	ck_assert_uint_eq(p.client.in.len, 0);
}
END_TEST

START_TEST(a_name_that_no_certificate_can_bear_is_refused)
{
	CLEANUP(buf_done) struct buf name = BUF_INIT(1000);
	CLEANUP(tls_pair_done) struct tls_pair p;

	while (name.len < 300)
		buf_addc(&name, 'a');
	tls_pair_make(&p, &node, &registry, buf_str(&name));
	tls_end_step(&p.client, &p.server);
	ck_assert_ptr_nonnull(p.client.error);
	ck_assert_ptr_nonnull(strstr(p.client.error->msg, "cannot begin one with \"aaaa"));
	ck_assert_uint_eq(p.server.in.len, 0);
}
END_TEST

CERTS_MAIN("tls", a_name_that_no_certificate_can_bear_is_refused, both_ends_know_each_other_by_name,
	text_goes_both_ways, a_server_without_authority_asks_for_no_certificate,
	any_client_of_the_authority_will_do_where_no_name_is_asked_for, a_client_says_which_name_it_expects,
	a_server_is_known_by_its_address_which_is_not_said, rsa_certificates_are_accepted,
	a_handshake_may_arrive_byte_by_byte, what_follows_the_handshake_is_left_for_reading,
	text_of_any_length_is_cut_into_records_and_joined, records_may_arrive_byte_by_byte,
	a_close_is_reported_once_and_what_follows_is_ignored,
	output_over_the_limit_of_its_buffer_ends_the_connection, nothing_is_loaded_for_a_peer_that_is_silent)
