/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_bundle.h"

#include <mbedtls/x509_crt.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls_compat.h"
#include "net/tls/tls_error.h"
#include "net/tls/tls_files.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END   "-----END CERTIFICATE-----"

#define LINE_CHARS 64 /* RFC 7468 section 2 */

static void add_certificate(char ***v, const mbedtls_x509_crt *crt)
{
	CLEANUP(buf_done) struct buf code = BUF_INIT(2 * LIMIT_PEM_BYTES);
	CLEANUP(buf_done) struct buf text = BUF_INIT(4 * LIMIT_PEM_BYTES);

	base64_encode((struct span){crt->raw.p, crt->raw.len}, &code);
	buf_adds(&text, BEGIN "\n");
	for (size_t at = 0; at < code.len; at += LINE_CHARS) {
		size_t left = code.len - at;

		buf_add(&text, code.data + at, left < LINE_CHARS ? left : LINE_CHARS);
		buf_addc(&text, '\n');
	}
	buf_adds(&text, END "\n");
	if (!strv_contains(*v, buf_str(&text)))
		strv_add(v, buf_str(&text));
}

static int fail_library(int rv, struct error **err)
{
	CLEANUP(buf_done) struct buf why = BUF_INIT(256);

	tls_error_code(rv, &why);
	return err_set(err, ERR_INVALID_ARGUMENT, "malformed certificate: %s", buf_str(&why));
}

/* mbedtls skips one that has no end. */
static int check_complete(const char *text, const mbedtls_x509_crt *chain, struct error **err)
{
	size_t begun = 0, read = 0;

	for (const char *p = text; (p = strstr(p, BEGIN)); p += strlen(BEGIN))
		begun++;
	for (; chain; chain = chain->next)
		read++;
	if (begun == read)
		return 0;
	return err_set(
		err, ERR_INVALID_ARGUMENT, "malformed: of %zu certificates %zu can be read", begun, read);
}

/* @chain: initialised; mbedtls_x509_crt_free() in any case. */
static int parse_chain(struct span pem, mbedtls_x509_crt *chain, struct error **err)
{
	CLEANUP(free_charp) char *text = x_strndup(pem.n > 0 ? (const char *)pem.p : "", pem.n);

	/* mbedtls would parse a text without BEGIN as DER, and would ignore everything behind a NUL. */
	if (strlen(text) != pem.n || !strstr(text, BEGIN))
		return err_set(err, ERR_INVALID_ARGUMENT, "no certificates in PEM form");
	tls_compat_init();
	int rv = mbedtls_x509_crt_parse(chain, (const uint8_t *)text, pem.n + 1);
	if (rv < 0)
		return fail_library(rv, err);
	if (rv > 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "%d of the certificates are malformed", rv);
	return check_complete(text, chain, err);
}

int tls_bundle_parse(struct span pem, char ***ret, struct error **err)
{
	mbedtls_x509_crt chain;

	*ret = NULL;
	mbedtls_x509_crt_init(&chain);
	int rc = parse_chain(pem, &chain, err);
	for (const mbedtls_x509_crt *crt = &chain; rc == 0 && crt; crt = crt->next)
		add_certificate(ret, crt);
	mbedtls_x509_crt_free(&chain);
	return rc;
}

int tls_bundle_read(const char *file, char ***ret, struct error **err)
{
	CLEANUP(tls_secret_done) struct buf pem = TLS_FILE_BUF;

	if (tls_file_read(file, &pem, err) < 0)
		return -1;
	/* RFC 7468 sections 10 and 11, and the older forms with the name of an algorithm before it */
	if (strstr(buf_str(&pem), "PRIVATE KEY-----"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"%s: contains a private key; a file of authorities may only contain certificates",
			file);
	if (tls_bundle_parse(buf_span(&pem), ret, err) < 0)
		return err_wrap(err, "%s", file);
	return 0;
}

/* @trusted, @chain: as parse_chain() wants them. */
static int check_chain(struct span authorities, const char *file, mbedtls_x509_crt *trusted,
	mbedtls_x509_crt *chain, struct error **err)
{
	CLEANUP(buf_done) struct buf pem = TLS_FILE_BUF;
	uint32_t flags = 0;

	if (parse_chain(authorities, trusted, err) < 0 || tls_file_read(file, &pem, err) < 0)
		return -1;
	if (parse_chain(buf_span(&pem), chain, err) < 0)
		return err_wrap(err, "%s", file);
	if (mbedtls_x509_crt_verify(chain, trusted, /* ca_crl= */ NULL, /* cn= */ NULL, &flags,
		    /* f_vrfy= */ NULL,
		    /* p_vrfy= */ NULL) != 0 &&
		(flags & MBEDTLS_X509_BADCERT_NOT_TRUSTED))
		return err_set(err, ERR_PRECONDITION,
			"%s: its certificate is signed by none of the authorities", file);
	return 0;
}

int tls_bundle_check_signed(char *const *authorities, const char *file, struct error **err)
{
	CLEANUP(buf_done) struct buf pem = TLS_FILE_BUF;
	mbedtls_x509_crt trusted;
	mbedtls_x509_crt chain;

	for (; authorities && *authorities; authorities++)
		buf_adds(&pem, *authorities);
	mbedtls_x509_crt_init(&trusted);
	mbedtls_x509_crt_init(&chain);
	int rc = check_chain(buf_span(&pem), file, &trusted, &chain, err);
	mbedtls_x509_crt_free(&trusted);
	mbedtls_x509_crt_free(&chain);
	return rc;
}
