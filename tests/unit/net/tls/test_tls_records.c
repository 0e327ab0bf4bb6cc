/* SPDX-License-Identifier: Apache-2.0 */
#include "tls_pair.h"

#define TEXT      "pay 100 to alice"
#define MAX_BYTES 100000

static const struct certs_choice node = {.ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"};
static const struct certs_choice registry = {.ca = "own", .leaf = "own/pmem-registry", .alpn = "h2"};

static struct tls_context *client_context;
static struct tls_context *server_context;

static struct tls_context *context(struct certs_choice choice, enum tls_role role)
{
	choice.role = role;
	return certs_context(&choice);
}

/* An open pair with TEXT on its way to the server. */
static void make_pair(struct tls_pair *p)
{
	if (!client_context) {
		client_context = context(node, TLS_CLIENT);
		server_context = context(registry, TLS_SERVER);
	}
	tls_pair_init(p, client_context, server_context, "pmem-registry");
	tls_pair_open(p);
	tls_end_send(&p->client, &p->server, span_of(TEXT));
}

static void forget_contexts(void)
{
	tls_context_unref(client_context);
	tls_context_unref(server_context);
}

/* One tls_read() of what has arrived at @end. Return: bytes that came out, or -1. */
static ssize_t read_once(struct tls_end *end, struct error **err)
{
	struct span in = buf_span(&end->in);
	uint8_t text[100];
	bool closed;
	size_t n;

	if (tls_read(end->tls, &in, text, sizeof(text), &n, &closed, err) < 0)
		return -1;
	buf_consume(&end->in, (size_t)(in.p - end->in.data));
	return (ssize_t)n;
}

/* The server has refused what it read, and stays so; the client gets an alert. */
static void check_refused(struct tls_pair *p, ssize_t n, struct error **server_err)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ck_assert_int_eq(n, -1);
	ck_assert_int_eq((*server_err)->code, ERR_UNAVAILABLE);
	ASSERT_FAILS(
		tls_write(p->server.tls, span_of("x"), &p->client.in, &err), ERR_UNAVAILABLE, "has failed");
	ck_assert_int_eq(read_once(&p->server, &err), -1);
	error_clear(&err);
	tls_close(p->server.tls, &p->client.in);
	ck_assert_int_eq(read_once(&p->client, &err), -1);
	ck_assert_msg(strstr(err->msg, "the peer refuses"), "%s", err->msg);
}

START_TEST(a_record_that_was_altered_anywhere_is_refused)
{
	size_t len = 1;

	for (size_t i = 0; i < len; i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(tls_pair_done) struct tls_pair p;
		make_pair(&p);
		len = p.server.in.len;
		p.server.in.data[i] ^= 1;
		ssize_t n = read_once(&p.server, &err);
		/* the length, made longer */
		if (n == 0 && (i == 3 || i == 4))
			continue;
		ck_assert_msg(n == -1, "byte %zu of %zu", i, len);
	}
	ck_assert_uint_gt(len, strlen(TEXT));
	forget_contexts();
}
END_TEST

START_TEST(the_peer_hears_that_a_record_was_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(tls_pair_done) struct tls_pair p;
	ssize_t n;

	make_pair(&p);
	p.server.in.data[p.server.in.len - 1] ^= 1;
	n = read_once(&p.server, &err);
	check_refused(&p, n, &err);
	forget_contexts();
}
END_TEST

START_TEST(a_record_is_taken_once)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf copy = BUF_INIT(MAX_BYTES);
	CLEANUP(tls_pair_done) struct tls_pair p;
	ssize_t n;

	make_pair(&p);
	buf_add(&copy, p.server.in.data, p.server.in.len);
	ck_assert_int_eq(read_once(&p.server, &err), (ssize_t)strlen(TEXT));
	buf_add(&p.server.in, copy.data, copy.len);
	n = read_once(&p.server, &err);
	check_refused(&p, n, &err);
	forget_contexts();
}
END_TEST

START_TEST(records_in_another_order_are_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(tls_pair_done) struct tls_pair p;
	ssize_t n;

	make_pair(&p);
	buf_reset(&p.server.in);
	tls_end_send(&p.client, &p.server, span_of(TEXT));
	n = read_once(&p.server, &err);
	check_refused(&p, n, &err);
	forget_contexts();
}
END_TEST

START_TEST(what_is_no_record_is_refused)
{
	static const char *const garbage[] = {"\x17\x03\x03\xff\xff", "GET / HTTP/1.1\r\n\r\n",
		"\x17\x03\x03\x50\x01", "\x99\x03\x03\x01\x01", "\x17\x02\x03\x01\x01",
		"\x15\x03\x03\x01\x01\x01", "\x14\x03\x03\x01\x01\x01"};

	for (size_t i = 0; i < ARRAY_SIZE(garbage); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(tls_pair_done) struct tls_pair p;
		make_pair(&p);
		buf_reset(&p.server.in);
		buf_adds(&p.server.in, garbage[i]);
		for (unsigned j = 0; j < 300; j++)
			buf_addc(&p.server.in, (char)j);
		ck_assert_msg(read_once(&p.server, &err) == -1, "garbage %zu", i);
		ck_assert_int_eq(err->code, ERR_UNAVAILABLE);
	}
	forget_contexts();
}
END_TEST

START_TEST(a_record_that_is_cut_short_waits)
{
	CLEANUP(buf_done) struct buf record = BUF_INIT(MAX_BYTES);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(tls_pair_done) struct tls_pair p;

	make_pair(&p);
	buf_add(&record, p.server.in.data, p.server.in.len);
	p.server.in.len--;
	ck_assert_int_eq(read_once(&p.server, &err), 0);
	ck_assert_uint_eq(p.server.in.len, 0);
	ck_assert_int_eq(read_once(&p.server, &err), 0);
	buf_add(&p.server.in, record.data + record.len - 1, 1);
	ck_assert_int_eq(read_once(&p.server, &err), (ssize_t)strlen(TEXT));
	forget_contexts();
}
END_TEST

CERTS_MAIN("tls_records", a_record_that_was_altered_anywhere_is_refused,
	the_peer_hears_that_a_record_was_refused, a_record_is_taken_once,
	records_in_another_order_are_refused, what_is_no_record_is_refused, a_record_that_is_cut_short_waits)
