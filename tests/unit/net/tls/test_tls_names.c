/* SPDX-License-Identifier: Apache-2.0 */
#include <mbedtls/x509_crt.h>

#include "base/str.h"
#include "certs.h"
#include "net/tls/tls_names.h"

/* A certificate with @sans, in openssl's notation. Return: whether mbedtls can read it. */
static bool try_cert(mbedtls_x509_crt *cert, const char *sans)
{
	CLEANUP(buf_done) struct buf leaf = BUF_INIT(4096);
	CLEANUP(free_charp) char *path = certs_path("own/named.pem");

	buf_addf(&leaf, "named=%s", sans);
	certs_make("own", (const char *const[]){buf_str(&leaf), NULL});
	mbedtls_x509_crt_init(cert);
	return mbedtls_x509_crt_parse_file(cert, path) == 0;
}

static void make_cert(mbedtls_x509_crt *cert, const char *sans)
{
	ck_assert(try_cert(cert, sans));
}

START_TEST(a_name_is_one_of_those_in_the_certificate)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;

	make_cert(&cert, "DNS:pmem-registry,DNS:Node-1.example.ORG");
	ck_assert(tls_names_match(&cert, "pmem-registry"));
	ck_assert(tls_names_match(&cert, "node-1.EXAMPLE.org"));
	ck_assert(!tls_names_match(&cert, "pmem-registry."));
	ck_assert(!tls_names_match(&cert, "pmem-registr"));
	ck_assert(!tls_names_match(&cert, "pmem-registry2"));
	ck_assert(!tls_names_match(&cert, "example.org"));
	ck_assert(!tls_names_match(&cert, ""));
	/* the common name */
	ck_assert(!tls_names_match(&cert, "named"));
}
END_TEST

START_TEST(a_certificate_without_names_matches_nothing)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf text = BUF_INIT(100);

	make_cert(&cert, "");
	ck_assert(!tls_names_match(&cert, "named"));
	ck_assert(!tls_names_match(&cert, ""));
	CLEANUP(strv_freep) char **names = tls_names_list(&cert);
	ck_assert_uint_eq(strv_len(names), 0);
	tls_names_describe(&cert, &text);
	ck_assert_str_eq(buf_str(&text), "no name");
}
END_TEST

START_TEST(a_wildcard_stands_for_nothing)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;

	make_cert(&cert, "DNS:*.example.org,DNS:*");
	ck_assert(!tls_names_match(&cert, "node.example.org"));
	ck_assert(!tls_names_match(&cert, "pmem-registry"));
	CLEANUP(strv_freep) char **names = tls_names_list(&cert);
	ck_assert_uint_eq(strv_len(names), 2);
}
END_TEST

START_TEST(an_address_matches_by_its_bytes_and_only_as_address)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;

	make_cert(&cert, "IP:127.0.0.1,IP:fd00::1,DNS:10.0.0.1");
	ck_assert(tls_names_match(&cert, "127.0.0.1"));
	ck_assert(tls_names_match(&cert, "fd00::1"));
	ck_assert(tls_names_match(&cert, "fd00:0:0:0:0:0:0:1"));
	ck_assert(!tls_names_match(&cert, "127.0.0.2"));
	ck_assert(!tls_names_match(&cert, "fd00::2"));
	ck_assert(!tls_names_match(&cert, "::ffff:127.0.0.1"));
	/* a name that looks like one is none */
	ck_assert(!tls_names_match(&cert, "10.0.0.1"));
	CLEANUP(strv_freep) char **names = tls_names_list(&cert);
	ck_assert_uint_eq(strv_len(names), 1);
	ck_assert_str_eq(names[0], "10.0.0.1");
}
END_TEST

START_TEST(the_bytes_of_an_address_are_no_name)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;

	/* iPAddress 61 62 63 64, the bytes of "abcd" */
	make_cert(&cert, "IP:97.98.99.100");
	ck_assert(!tls_names_match(&cert, "abcd"));
	ck_assert(tls_names_match(&cert, "97.98.99.100"));
}
END_TEST

/* "pmem-registry" NUL ".evil.org": strcmp() takes it for "pmem-registry" (CVE-2009-2408 in others). */
START_TEST(a_name_with_a_nul_is_none)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf text = BUF_INIT(100);

	make_cert(&cert, "DER:3019"
			 "8217"
			 "706d656d2d726567697374727900"
			 "2e6576696c2e6f7267");
	ck_assert(!tls_names_match(&cert, "pmem-registry"));
	CLEANUP(strv_freep) char **names = tls_names_list(&cert);
	ck_assert_uint_eq(strv_len(names), 0);
	tls_names_describe(&cert, &text);
	ck_assert_str_eq(buf_str(&text), "a malformed name");
}
END_TEST

START_TEST(names_with_bytes_of_no_host_name_and_empty_ones_are_none)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;

	/* an empty one, "a b", "a", 0xff, "c" */
	make_cert(&cert, "DER:300d"
			 "8200"
			 "8203612062"
			 "820161"
			 "8201ff");
	CLEANUP(strv_freep) char **names = tls_names_list(&cert);
	ck_assert_uint_eq(strv_len(names), 1);
	ck_assert_str_eq(names[0], "a");
	ck_assert(tls_names_match(&cert, "a"));
	ck_assert(!tls_names_match(&cert, ""));
	ck_assert(!tls_names_match(&cert, "a b"));
	ck_assert(!tls_names_match(&cert, "\xff"));
}
END_TEST

START_TEST(an_address_of_odd_length_matches_nothing)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf text = BUF_INIT(100);

	/* network 127.0.0.0/8 as in name constraints, and two bytes */
	if (!try_cert(&cert, "DER:300e87087f000001ffffff0087027f00"))
		return; /* mbedtls 3.x refuses it itself */
	ck_assert(!tls_names_match(&cert, "127.0.0.1"));
	tls_names_describe(&cert, &text);
	ck_assert_str_eq(buf_str(&text), "a name of another kind, a name of another kind");
}
END_TEST

START_TEST(names_of_other_kinds_are_no_host_names)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;

	make_cert(&cert, "URI:pmem-registry,email:pmem-registry@x,RID:1.2.3");
	ck_assert(!tls_names_match(&cert, "pmem-registry"));
	ck_assert(!tls_names_match(&cert, "pmem-registry@x"));
}
END_TEST

START_TEST(only_some_of_many_names_are_told)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf sans = BUF_INIT(4096);
	CLEANUP(buf_done) struct buf text = BUF_INIT(1000);

	for (unsigned i = 0; i < 100; i++)
		buf_addf(&sans, "%sDNS:n%u", i > 0 ? "," : "", i);
	make_cert(&cert, buf_str(&sans));
	ck_assert(tls_names_match(&cert, "n99"));
	tls_names_describe(&cert, &text);
	ck_assert_str_eq(buf_str(&text), "n0, n1, n2, n3, n4, n5, n6, n7, ...");
}
END_TEST

START_TEST(addresses_are_told_from_names)
{
	ck_assert(tls_name_is_address("127.0.0.1"));
	ck_assert(tls_name_is_address("::1"));
	ck_assert(!tls_name_is_address("127.0.0"));
	ck_assert(!tls_name_is_address("[::1]"));
	ck_assert(!tls_name_is_address("pmem-registry"));
	ck_assert(!tls_name_is_address(""));
}
END_TEST

CERTS_MAIN("tls_names", a_name_is_one_of_those_in_the_certificate,
	a_certificate_without_names_matches_nothing, a_wildcard_stands_for_nothing,
	an_address_matches_by_its_bytes_and_only_as_address, the_bytes_of_an_address_are_no_name,
	a_name_with_a_nul_is_none, names_with_bytes_of_no_host_name_and_empty_ones_are_none,
	an_address_of_odd_length_matches_nothing, names_of_other_kinds_are_no_host_names,
	only_some_of_many_names_are_told, addresses_are_told_from_names)
