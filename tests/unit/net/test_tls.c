#include "base/str.h"
#include "tls_pair.h"

#define MAX_TEXT (16u << 20)

static const char *const node_controllers[] = {"pmem-node-controller", NULL};

static const struct certs_choice node = {.ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"};
static const struct certs_choice registry = {
	.ca = "own", .leaf = "own/pmem-registry", .alpn = "h2", .peers = node_controllers};

/* A pair that has shaken hands, released when the test ends. */
static struct tls_pair open_pair(void)
{
	struct tls_pair p;

	tls_pair_make(&p, &node, &registry, "pmem-registry");
	tls_pair_open(&p);
	return p;
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
	CLEANUP(tls_pair_done) struct tls_pair p = open_pair();
	const char *const *names = tls_peer_names(p.server.tls);

	ck_assert_str_eq(names[0], "pmem-node-controller");
	ck_assert_ptr_null(names[1]);
	names = tls_peer_names(p.client.tls);
	ck_assert_str_eq(names[0], "pmem-registry");
	ck_assert_ptr_null(names[1]);
}
END_TEST

START_TEST(text_goes_both_ways)
{
	CLEANUP(tls_pair_done) struct tls_pair p = open_pair();

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

CERTS_MAIN("tls", both_ends_know_each_other_by_name, text_goes_both_ways,
	a_server_without_authority_asks_for_no_certificate)
