/* SPDX-License-Identifier: Apache-2.0 */
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>

#include "certs.h"
#include "net/tls/tls_error.h"

static void read_cert(mbedtls_x509_crt *cert, const char *name)
{
	CLEANUP(free_charp) char *path = certs_path(name);

	mbedtls_x509_crt_init(cert);
	ck_assert_int_eq(mbedtls_x509_crt_parse_file(cert, path), 0);
}

START_TEST(an_authority_is_distinguished_from_the_peer)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf text = BUF_INIT(1000);

	read_cert(&cert, "own/expired.pem");
	tls_error_certificate(&cert, 1, MBEDTLS_X509_BADCERT_EXPIRED, NULL, &text);
	ck_assert_str_eq(buf_str(&text),
		"an authority above the peer's certificate (CN=expired) expired at 2021-02-03T04:05:06Z");
}
END_TEST

START_TEST(rare_findings_are_described_in_the_words_of_mbedtls)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf text = BUF_INIT(1000);

	read_cert(&cert, "own/pmem-evil.pem");
	tls_error_certificate(&cert, 0,
		MBEDTLS_X509_BADCERT_CN_MISMATCH | MBEDTLS_X509_BADCERT_EXT_KEY_USAGE |
			MBEDTLS_X509_BADCERT_BAD_MD,
		"pmem-registry", &text);
	ck_assert_str_eq(buf_str(&text),
		"the peer's certificate (CN=pmem-evil) bears pmem-evil, but pmem-registry is expected; "
		"Usage does not match the extendedKeyUsage extension; "
		"The certificate is signed with an unacceptable hash.");
}
END_TEST

START_TEST(a_long_subject_is_left_out)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf text = BUF_INIT(1000);
	mbedtls_x509_name parts[20];

	read_cert(&cert, "own/pmem-evil.pem");
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		parts[i] = cert.subject;
		parts[i].next = i + 1 < ARRAY_SIZE(parts) ? &parts[i + 1] : NULL;
	}
	mbedtls_x509_name subject = cert.subject;
	cert.subject.next = parts;
	tls_error_certificate(&cert, 0, MBEDTLS_X509_BADCERT_EXPIRED, NULL, &text);
	ck_assert_msg(strstr(buf_str(&text), "the peer's certificate (?) expired at"), "%s", buf_str(&text));
	cert.subject = subject;
}
END_TEST

/* Bytes that a text must not show if it is left unwritten on the stack. */
static void __attribute__((noinline)) fill_stack(void)
{
	volatile char bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 'x';
}

START_TEST(an_empty_name_is_described_as_such)
{
	CLEANUP(mbedtls_x509_crt_free) mbedtls_x509_crt cert;
	CLEANUP(buf_done) struct buf text = BUF_INIT(10000);

	read_cert(&cert, "own/pmem-evil.pem");
	mbedtls_x509_name subject = cert.subject;
	mbedtls_x509_name issuer = cert.issuer;
	cert.subject = (mbedtls_x509_name){.next = NULL};
	cert.issuer = (mbedtls_x509_name){.next = NULL};
	fill_stack();
	tls_error_certificate(&cert, 0, MBEDTLS_X509_BADCERT_NOT_TRUSTED, NULL, &text);
	cert.subject = subject;
	cert.issuer = issuer;
	ck_assert_str_eq(buf_str(&text),
		"the peer's certificate (an empty name) is not signed by an authority that we trust, "
		"but by an empty name");
}
END_TEST

START_TEST(unknown_alerts_and_errors_keep_their_numbers)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1000);

	tls_error_alert(99, &text);
	ck_assert_str_eq(buf_str(&text), "the peer refuses: unknown reason (alert 99)");
	buf_reset(&text);
	tls_error_code(MBEDTLS_ERR_SSL_INTERNAL_ERROR, &text);
	ck_assert_msg(strstr(buf_str(&text), "(-0x6c00)"), "%s", buf_str(&text));
}
END_TEST

START_TEST(errors_of_our_own_are_told_as_such)
{
	ck_assert_uint_eq(
		tls_error_to_alert(MBEDTLS_ERR_SSL_ALLOC_FAILED), MBEDTLS_SSL_ALERT_MSG_INTERNAL_ERROR);
	ck_assert_uint_eq(
		tls_error_to_alert(MBEDTLS_ERR_SSL_INVALID_MAC), MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC);
	ck_assert_uint_eq(tls_error_to_alert(MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE),
		MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE);
	ck_assert_uint_eq(
		tls_error_to_alert(MBEDTLS_ERR_SSL_INVALID_RECORD), MBEDTLS_SSL_ALERT_MSG_DECODE_ERROR);
}
END_TEST

CERTS_MAIN("tls_error", an_authority_is_distinguished_from_the_peer,
	rare_findings_are_described_in_the_words_of_mbedtls, a_long_subject_is_left_out,
	an_empty_name_is_described_as_such, unknown_alerts_and_errors_keep_their_numbers,
	errors_of_our_own_are_told_as_such)
