/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_error.h"

#include <mbedtls/error.h>
#include <mbedtls/ssl.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <string.h>

#include "net/tls/tls_names.h"

#define DN_BYTES   256
#define TEXT_BYTES 512

struct meaning {
	int number;
	const char *text;
};

/* The texts of mbedtls_strerror() for these are of no use. A fragmented hello is legal, but 2.28 does not
 * reassemble it. */
static const struct meaning codes[] = {
#if MBEDTLS_VERSION_MAJOR < 3
	{MBEDTLS_ERR_SSL_NO_CIPHER_CHOSEN, "no cipher suite, curve or TLS version in common with the peer"},
	{MBEDTLS_ERR_SSL_NO_USABLE_CIPHERSUITE,
		"no cipher suite in common with the peer fits our certificate"},
	{MBEDTLS_ERR_SSL_BAD_HS_PROTOCOL_VERSION, "the peer does not speak TLS 1.2"},
	{MBEDTLS_ERR_SSL_BAD_HS_CLIENT_HELLO, "the peer's hello is malformed, or in several records"},
	{MBEDTLS_ERR_SSL_BAD_HS_SERVER_HELLO,
		"the peer's hello is malformed, or chooses what we did not offer"},
	{MBEDTLS_ERR_SSL_BAD_HS_FINISHED, "the handshake was altered on its way"},
#else
	{MBEDTLS_ERR_SSL_HANDSHAKE_FAILURE, "no cipher suite, curve or TLS version in common with the peer"},
	{MBEDTLS_ERR_SSL_BAD_PROTOCOL_VERSION, "the peer does not speak TLS 1.2 or later"},
	{MBEDTLS_ERR_SSL_DECODE_ERROR, "the peer sent a malformed message"},
#endif
	{MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE, "the peer shows no certificate"},
	{MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE, "the peer breaks the order of TLS messages"},
	{MBEDTLS_ERR_SSL_INVALID_RECORD, "the peer sent a malformed TLS record"},
	{MBEDTLS_ERR_SSL_BAD_INPUT_DATA, "the peer sent a malformed TLS record"},
	{MBEDTLS_ERR_SSL_INVALID_MAC, "a TLS record was altered on its way, or is not of this connection"},
};

static const struct meaning alerts[] = {
	{10, "unexpected message"},
	{20, "bad record"},
	{22, "record too long"},
	{40, "nothing in common (TLS version, cipher suite), or our certificate is missing"},
	{42, "our certificate is of no use to it, or bears another name than it expects"},
	{43, "our certificate is not for this use"},
	{44, "our certificate has been revoked"},
	{45, "our certificate has expired"},
	{46, "our certificate is not acceptable to it"},
	{47, "illegal parameter"},
	{48, "it does not know the authority of our certificate"},
	{49, "our certificate gives no access"},
	{50, "malformed message"},
	{51, "wrong signature or key"},
#if MBEDTLS_VERSION_MAJOR < 3
	{70, "it does not take TLS 1.2, which is all that this program speaks "
	     "(kube-apiserver takes it with --tls-min-version=VersionTLS12)"},
#else
	{70, "it takes neither TLS 1.2 nor TLS 1.3"},
#endif
	{71, "cipher suite too weak"},
	{80, "internal error"},
	{86, "inappropriate fallback"},
	{90, "cancelled"},
	{109, "missing extension"},
	{110, "unsupported extension"},
	{112, "it is not the server of that name"},
	{116, "our certificate is missing"},
	{120, "no application protocol (ALPN) in common"},
};

static const char *find(const struct meaning *table, size_t n, int number)
{
	for (size_t i = 0; i < n; i++) {
		if (table[i].number == number)
			return table[i].text;
	}
	return NULL;
}

void tls_error_code(int rv, struct buf *out)
{
	const char *known = find(codes, ARRAY_SIZE(codes), rv);
	char text[TEXT_BYTES];

	if (known) {
		buf_adds(out, known);
		return;
	}
	mbedtls_strerror(rv, text, sizeof(text));
	buf_addf(out, "%s (-0x%04x)", text, (unsigned)-rv);
}

unsigned char tls_error_to_alert(int rv)
{
	switch (rv) {
	case MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE:
		return MBEDTLS_SSL_ALERT_MSG_HANDSHAKE_FAILURE;
	case MBEDTLS_ERR_SSL_UNEXPECTED_MESSAGE:
		return MBEDTLS_SSL_ALERT_MSG_UNEXPECTED_MESSAGE;
	case MBEDTLS_ERR_SSL_INVALID_MAC:
		return MBEDTLS_SSL_ALERT_MSG_BAD_RECORD_MAC;
	case MBEDTLS_ERR_SSL_ALLOC_FAILED:
	case MBEDTLS_ERR_SSL_INTERNAL_ERROR:
		return MBEDTLS_SSL_ALERT_MSG_INTERNAL_ERROR;
	default:
		return MBEDTLS_SSL_ALERT_MSG_DECODE_ERROR;
	}
}

void tls_error_alert(unsigned number, struct buf *out)
{
	const char *known = find(alerts, ARRAY_SIZE(alerts), (int)number);

	buf_addf(out, "the peer refuses: %s (alert %u)", known ? known : "unknown reason", number);
}

static void add_time(const mbedtls_x509_time *t, struct buf *out)
{
	buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02dZ", t->year, t->mon, t->day, t->hour, t->min, t->sec);
}

/* Separates the next finding from those that were added before. */
static void begin_part(struct buf *out)
{
	if (out->len > 0)
		buf_adds(out, "; ");
}

/* mbedtls_x509_dn_gets() writes nothing, not even the terminating NUL, for a name without parts. */
static void add_name(const mbedtls_x509_name *name, struct buf *out)
{
	char text[DN_BYTES] = "";

	if (mbedtls_x509_dn_gets(text, sizeof(text), name) < 0)
		buf_adds(out, "?");
	else
		buf_adds(out, text[0] ? text : "an empty name");
}

static void begin_finding(const mbedtls_x509_crt *cert, int depth, struct buf *out)
{
	begin_part(out);
	buf_adds(
		out, depth == 0 ? "the peer's certificate (" : "an authority above the peer's certificate (");
	add_name(&cert->subject, out);
	buf_adds(out, ") ");
}

static void add_untrusted(const mbedtls_x509_crt *cert, int depth, struct buf *out)
{
	begin_finding(cert, depth, out);
	buf_adds(out, "is not signed by an authority that we trust, but by ");
	add_name(&cert->issuer, out);
}

void tls_error_flags(uint32_t flags, struct buf *out)
{
	char text[TEXT_BYTES] = "";
	char *line = text;

	if (mbedtls_x509_crt_verify_info(text, sizeof(text), "", flags) < 0)
		return;
	for (char *end = strchr(line, '\n'); end; line = end + 1, end = strchr(line, '\n')) {
		begin_part(out);
		buf_add(out, line, (size_t)(end - line));
	}
}

void tls_error_certificate(
	const struct mbedtls_x509_crt *cert, int depth, uint32_t flags, const char *expected, struct buf *out)
{
	const uint32_t described = MBEDTLS_X509_BADCERT_EXPIRED | MBEDTLS_X509_BADCERT_FUTURE |
				   MBEDTLS_X509_BADCERT_NOT_TRUSTED | MBEDTLS_X509_BADCERT_CN_MISMATCH;

	if (flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED)
		add_untrusted(cert, depth, out);
	if (flags & MBEDTLS_X509_BADCERT_EXPIRED) {
		begin_finding(cert, depth, out);
		buf_adds(out, "expired at ");
		add_time(&cert->valid_to, out);
	}
	if (flags & MBEDTLS_X509_BADCERT_FUTURE) {
		begin_finding(cert, depth, out);
		buf_adds(out, "is not valid before ");
		add_time(&cert->valid_from, out);
	}
	if (flags & MBEDTLS_X509_BADCERT_CN_MISMATCH) {
		begin_finding(cert, depth, out);
		buf_adds(out, "bears ");
		tls_names_describe(cert, out);
		buf_addf(out, ", but %s is expected", expected);
	}
	if (flags & ~described)
		tls_error_flags(flags & ~described, out);
}

static bool begins(struct span bytes, const char *text)
{
	size_t n = strlen(text) < bytes.n ? strlen(text) : bytes.n;

	return memcmp(bytes.p, text, n) == 0;
}

/* RFC 9113 3.4: the first frame of a server is SETTINGS, type 4, on stream 0. */
static bool is_h2_settings(struct span first)
{
	return first.p[0] == 0 && first.p[3] == 4 && first.p[4] <= 1;
}

int tls_error_check_first(struct span first, struct error **err)
{
	/* how much has come beyond them must not change what is said */
	first.n = TLS_RECORD_HEADER_BYTES;
	if ((first.p[0] == MBEDTLS_SSL_MSG_HANDSHAKE || first.p[0] == MBEDTLS_SSL_MSG_ALERT) &&
		first.p[1] == MBEDTLS_SSL_MAJOR_VERSION_3)
		return 0;
	if (begins(first, "PRI * HTTP/2.0\r\n") || is_h2_settings(first))
		return err_set(err, ERR_UNAUTHENTICATED, "the peer speaks HTTP/2 without TLS");
	if (begins(first, "HTTP/") || begins(first, "GET /") || begins(first, "POST /") ||
		begins(first, "HEAD /") || begins(first, "PUT /"))
		return err_set(err, ERR_UNAUTHENTICATED, "the peer speaks HTTP/1 without TLS");
	return err_set(err, ERR_UNAUTHENTICATED,
		"the peer does not speak TLS: it begins with bytes %02x %02x %02x %02x %02x", first.p[0],
		first.p[1], first.p[2], first.p[3], first.p[4]);
}
