/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_bundle.h"

#include <fcntl.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "certs.h"
#include "net/limits.h"
#include "os/file.h"

static void add_file(struct buf *out, const char *name)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *path = certs_path(name);

	ASSERT_OK(file_read(AT_FDCWD, path, out, &err));
}

/* OpenSSL writes PEM in the same form. */
START_TEST(certificates_come_out_as_they_went_in)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(LIMIT_PEM_BYTES);
	CLEANUP(buf_done) struct buf joined = BUF_INIT(LIMIT_PEM_BYTES);
	CLEANUP(strv_freep) char **found = NULL;

	add_file(&pem, "own/ca.pem");
	add_file(&pem, "other/ca.pem");
	ASSERT_OK(tls_bundle_parse(buf_span(&pem), &found, &err));
	ck_assert_uint_eq(strv_len(found), 2);
	buf_adds(&joined, found[0]);
	buf_adds(&joined, found[1]);
	ck_assert_str_eq(buf_str(&joined), buf_str(&pem));
}
END_TEST

START_TEST(one_that_comes_twice_counts_once_and_what_stands_between_is_left_out)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(LIMIT_PEM_BYTES);
	CLEANUP(strv_freep) char **found = NULL;

	buf_adds(&pem, "CN = a remark\n");
	add_file(&pem, "own/ca.pem");
	add_file(&pem, "own/ca-key.pem");
	add_file(&pem, "own/ca.pem");
	ASSERT_OK(tls_bundle_parse(buf_span(&pem), &found, &err));
	ck_assert_uint_eq(strv_len(found), 1);
	ck_assert(str_starts(found[0], "-----BEGIN CERTIFICATE-----\n"));
	ck_assert_ptr_null(strstr(found[0], "KEY"));
}
END_TEST

START_TEST(what_is_no_certificate_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(LIMIT_PEM_BYTES);
	char **found = NULL;

	ASSERT_FAILS(
		tls_bundle_parse((struct span){0}, &found, &err), ERR_INVALID_ARGUMENT, "no certificates");
	ASSERT_FAILS(tls_bundle_parse(span_of("x"), &found, &err), ERR_INVALID_ARGUMENT, "no certificates");
	ASSERT_FAILS(
		tls_bundle_parse(span_of("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
			&found, &err),
		ERR_INVALID_ARGUMENT, "malformed");
	add_file(&pem, "own/ca.pem");
	add_file(&pem, "other/ca.pem");
	ASSERT_FAILS(tls_bundle_parse((struct span){pem.data, pem.len - 100}, &found, &err),
		ERR_INVALID_ARGUMENT, "malformed");
	pem.data[pem.len / 2] = '\0';
	ASSERT_FAILS(tls_bundle_parse(buf_span(&pem), &found, &err), ERR_INVALID_ARGUMENT, "no certificates");
}
END_TEST

START_TEST(a_file_with_a_private_key_is_refused_by_name)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *key = certs_path("own/ca-key.pem");
	CLEANUP(free_charp) char *missing = certs_path("missing");
	CLEANUP(free_charp) char *good = certs_path("own/ca.pem");
	CLEANUP(strv_freep) char **found = NULL;

	ASSERT_FAILS(tls_bundle_read(key, &found, &err), ERR_INVALID_ARGUMENT,
		"ca-key.pem: contains a private key");
	ASSERT_FAILS(tls_bundle_read(missing, &found, &err), ERR_INVALID_ARGUMENT, "missing");
	ASSERT_OK(tls_bundle_read(good, &found, &err));
	ck_assert_uint_eq(strv_len(found), 1);
}
END_TEST

static void assert_signed(const char *authority, const char *cert, const char *text)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *ca = certs_path(authority);
	CLEANUP(free_charp) char *path = certs_path(cert);
	CLEANUP(strv_freep) char **found = NULL;

	ASSERT_OK(tls_bundle_read(ca, &found, &err));
	if (text)
		ASSERT_FAILS(tls_bundle_check_signed(found, path, &err), ERR_PRECONDITION, text);
	else
		ASSERT_OK(tls_bundle_check_signed(found, path, &err));
}

/* An authority may be its own server's certificate; dates are for the clients to look at. */
START_TEST(a_certificate_is_signed_by_its_authority_alone)
{
	assert_signed("own/ca.pem", "own/pmem-registry.pem", NULL);
	assert_signed("own/ca.pem", "own/ca.pem", NULL);
	assert_signed("own/ca.pem", "own/expired.pem", NULL);
	assert_signed("own/ca.pem", "own/future.pem", NULL);
	assert_signed("other/ca.pem", "own/pmem-registry.pem",
		"own/pmem-registry.pem: its certificate is signed by none of the authorities");
	assert_signed("own/pmem-registry.pem", "own/ca.pem", "own/ca.pem");
}
END_TEST

START_TEST(a_certificate_that_cannot_be_read_is_named)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *ca = certs_path("own/ca.pem");
	CLEANUP(free_charp) char *missing = certs_path("missing");
	CLEANUP(free_charp) char *key = certs_path("own/ca-key.pem");
	CLEANUP(strv_freep) char **found = NULL;

	ASSERT_OK(tls_bundle_read(ca, &found, &err));
	ASSERT_FAILS(tls_bundle_check_signed(found, missing, &err), ERR_INVALID_ARGUMENT, "missing");
	ASSERT_FAILS(tls_bundle_check_signed(found, key, &err), ERR_INVALID_ARGUMENT,
		"own/ca-key.pem: no certificates");
	ASSERT_FAILS(tls_bundle_check_signed(NULL, ca, &err), ERR_INVALID_ARGUMENT, "no certificates");
}
END_TEST

CERTS_MAIN("tls bundle", certificates_come_out_as_they_went_in,
	one_that_comes_twice_counts_once_and_what_stands_between_is_left_out,
	what_is_no_certificate_is_refused, a_file_with_a_private_key_is_refused_by_name,
	a_certificate_is_signed_by_its_authority_alone, a_certificate_that_cannot_be_read_is_named)
