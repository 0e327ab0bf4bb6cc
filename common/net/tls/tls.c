/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls.h"

#include <assert.h>
#include <limits.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls_compat.h"
#include "net/tls/tls_context.h"
#include "net/tls/tls_error.h"
#include "net/tls/tls_names.h"

/* Alerts that are caused by reading wait here for the next write; a peer that causes more of them is
 * attacking. */
#define MAX_PENDING_BYTES 4096
#define MAX_WHY_BYTES     2048

/* Size of an alert that is not encrypted. */
#define ALERT_BYTES (TLS_RECORD_HEADER_BYTES + 2)

enum tls_state {
	TLS_NEW,     /* nothing of the peer was looked at, no certificates either */
	TLS_SHAKING, /* mbedtls is at work */
	TLS_OPEN,
	TLS_FAILED,
};

struct tls {
	struct tls_context *context;
	char *peer_name;
	enum tls_state state;
	bool speaks_tls; /* the first bytes of the peer are those of TLS */
	bool has_read;   /* a record that came after the handshake was decrypted */
	bool peer_closed;
	bool said_close;
	struct tls_creds *creds; /* from TLS_SHAKING on */
	mbedtls_ssl_context ssl;
	struct span in;       /* not taken yet, during a call */
	const uint8_t *begin; /* of what came with the call of tls_handshake() */
	struct buf *out;      /* where output goes, during a call; else to pending */
	struct buf pending;
	struct buf why;    /* what is wrong with the peer's certificates */
	bool replied;      /* something was sent */
	bool alerted;      /* an alert was sent */
	unsigned alert;    /* its number, if it was in the clear */
	char **peer_names; /* of the certificate that was shown */
};

struct tls *tls_new(struct tls_context *c, const char *peer_name)
{
	struct tls *t = x_calloc(1, sizeof(*t));

	assert((tls_context_role(c) == TLS_CLIENT) == !str_empty(peer_name));
	t->context = tls_context_ref(c);
	t->peer_name = x_strdup(peer_name);
	t->pending = BUF_INIT(MAX_PENDING_BYTES);
	t->why = BUF_INIT(MAX_WHY_BYTES);
	mbedtls_ssl_init(&t->ssl);
	return t;
}

void tls_free(struct tls *t)
{
	if (!t)
		return;
	mbedtls_ssl_free(&t->ssl);
	tls_creds_unref(t->creds);
	tls_context_unref(t->context);
	strv_free(t->peer_names);
	buf_done(&t->pending);
	buf_done(&t->why);
	free(t->peer_name);
	free(t);
}

static int on_receive(void *user, unsigned char *to, size_t room)
{
	struct tls *t = user;
	size_t n = room < t->in.n ? room : t->in.n;

	if (n == 0)
		return MBEDTLS_ERR_SSL_WANT_READ;
	if (n > INT_MAX)
		n = INT_MAX;
	memcpy(to, t->in.p, n);
	t->in.p += n;
	t->in.n -= n;
	return (int)n;
}

/* RFC 5246 6.2.1, 7.2: the alert that was sent is more precise about what mbedtls found than its error is. */
static void note_alert(struct tls *t, const unsigned char *record, size_t n)
{
	t->replied = true;
	if (record[0] != MBEDTLS_SSL_MSG_ALERT)
		return;
	t->alerted = true;
	if (n == ALERT_BYTES)
		t->alert = record[n - 1];
}

static int on_send(void *user, const unsigned char *record, size_t n)
{
	struct tls *t = user;
	struct buf *out = t->out ? t->out : &t->pending;

	if (n > INT_MAX)
		return MBEDTLS_ERR_SSL_INTERNAL_ERROR;
	note_alert(t, record, n);
	buf_add(out, record, n);
	return out->overflowed ? MBEDTLS_ERR_SSL_ALLOC_FAILED : (int)n;
}

static bool bears_expected(const struct tls *t, const mbedtls_x509_crt *cert)
{
	char *const *names = tls_context_peer_names(t->context);

	if (t->peer_name)
		return tls_names_match(cert, t->peer_name);
	for (char *const *name = names; name && *name; name++) {
		if (tls_names_match(cert, *name))
			return true;
	}
	return !names;
}

/* The name that is missed, or "A or B". */
static char *expected_text(const struct tls *t)
{
	struct buf text = BUF_INIT(MAX_WHY_BYTES);

	if (t->peer_name)
		return x_strdup(t->peer_name);
	for (char *const *name = tls_context_peer_names(t->context); *name; name++) {
		buf_adds(&text, text.len > 0 ? " or " : "");
		buf_adds(&text, *name);
	}
	return (char *)text.data;
}

/* mbedtls calls this for each certificate of the peer's chain, its own (depth 0) last. The name is checked
 * here, so that the peer gets an alert before it can use the connection. */
static int on_certificate(void *user, mbedtls_x509_crt *cert, int depth, uint32_t *flags)
{
	struct tls *t = user;

	if (depth == 0) {
		strv_free(t->peer_names);
		t->peer_names = tls_names_list(cert);
		if (!bears_expected(t, cert))
			*flags |= MBEDTLS_X509_BADCERT_CN_MISMATCH;
	}
	if (*flags) {
		CLEANUP(free_charp) char *expected = NULL;
		if (*flags & MBEDTLS_X509_BADCERT_CN_MISMATCH)
			expected = expected_text(t);
		tls_error_certificate(cert, depth, *flags, expected, &t->why);
	}
	return 0;
}

/* mbedtls' own check of the name is looser than ours, but sends it to the server. With 3.x a missing name
 * has to be set explicitly. */
static int begin(struct tls *t)
{
	const char *sni = t->peer_name && !tls_name_is_address(t->peer_name) ? t->peer_name : NULL;
	int rv;

	t->creds = tls_context_creds(t->context, clock_ns());
	t->state = TLS_SHAKING;
	rv = mbedtls_ssl_setup(&t->ssl, tls_creds_conf(t->creds));
	if (rv == 0 && t->peer_name)
		rv = mbedtls_ssl_set_hostname(&t->ssl, sni);
	mbedtls_ssl_set_bio(&t->ssl, t, on_send, on_receive, NULL);
	mbedtls_ssl_set_verify(&t->ssl, on_certificate, t);
	return rv;
}

/* A client with mbedtls 3.6 sends its alert unencrypted although TLS 1.3 requires encryption by then, and a
 * server with mbedtls 3.6 treats it as invalid data. Return: number of the alert, or 0. */
static unsigned clear_alert(const struct tls *t)
{
	const uint8_t header[] = {MBEDTLS_SSL_MSG_ALERT, MBEDTLS_SSL_MAJOR_VERSION_3,
		MBEDTLS_SSL_MINOR_VERSION_3, 0, 2, MBEDTLS_SSL_ALERT_LEVEL_FATAL};
	const uint8_t *end = t->in.p;

	if ((size_t)(end - t->begin) < ALERT_BYTES || memcmp(end - ALERT_BYTES, header, sizeof(header)) != 0)
		return 0;
	return end[-1];
}

static void describe_failure(struct tls *t, int rv, struct buf *text)
{
	uint32_t flags = mbedtls_ssl_get_verify_result(&t->ssl);

	if (rv == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
		tls_error_alert(tls_compat_alert(&t->ssl), text);
	else if (rv == MBEDTLS_ERR_SSL_INVALID_MAC && clear_alert(t) != 0)
		tls_error_alert(clear_alert(t), text);
	else if (t->alert == MBEDTLS_SSL_ALERT_MSG_NO_APPLICATION_PROTOCOL)
		buf_addf(text, "the peer does not offer the application protocol %s (ALPN)",
			tls_context_alpn(t->context));
	else if (t->why.len > 0)
		buf_add(text, t->why.data, t->why.len);
	else if (rv != MBEDTLS_ERR_SSL_NO_CLIENT_CERTIFICATE && flags != UINT32_MAX && flags != 0)
		tls_error_flags(flags, text);
	else
		tls_error_code(rv, text);
}

/* mbedtls sends no alert for some errors. Before its first message it does not know yet which version to
 * write. */
static void tell_failure(struct tls *t, int rv)
{
	const uint8_t alert[ALERT_BYTES] = {MBEDTLS_SSL_MSG_ALERT, MBEDTLS_SSL_MAJOR_VERSION_3,
		MBEDTLS_SSL_MINOR_VERSION_3, 0, 2, MBEDTLS_SSL_ALERT_LEVEL_FATAL, tls_error_to_alert(rv)};

	if (t->alerted || rv == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
		return;
	if (!t->replied)
		buf_add(t->out, alert, sizeof(alert));
	else
		(void)mbedtls_ssl_send_alert_message(&t->ssl, alert[ALERT_BYTES - 2], alert[ALERT_BYTES - 1]);
}

static int fail_handshake(struct tls *t, int rv, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MAX_WHY_BYTES);

	t->state = TLS_FAILED;
	if (t->out->overflowed)
		return err_set(err, ERR_UNAUTHENTICATED, "TLS handshake: more than %zu bytes wait to be sent",
			t->out->max);
	tell_failure(t, rv);
	describe_failure(t, rv, &text);
	return err_set(err, ERR_UNAUTHENTICATED, "TLS handshake: %s", buf_str(&text));
}

/* A name that is too long for a certificate, or no memory. */
static int fail_begin(struct tls *t, int rv, struct error **err)
{
	t->state = TLS_FAILED;
	return err_set(err, ERR_UNAUTHENTICATED, "TLS handshake: cannot begin one with \"%s\" (-0x%04x)",
		t->peer_name ? t->peer_name : "", (unsigned)-rv);
}

/* mbedtls continues when a peer does not support ALPN; whether that is allowed is decided here. */
static int refuse_alpn(struct tls *t, struct error **err)
{
	(void)mbedtls_ssl_send_alert_message(
		&t->ssl, MBEDTLS_SSL_ALERT_LEVEL_FATAL, MBEDTLS_SSL_ALERT_MSG_NO_APPLICATION_PROTOCOL);
	t->state = TLS_FAILED;
	return err_set(err, ERR_UNAUTHENTICATED,
		"TLS handshake: the peer does not agree to the application protocol %s (ALPN)",
		tls_context_alpn(t->context));
}

/* A peer that offers only other protocols is refused by mbedtls; HTTP/1.1 is also spoken without ALPN. */
static bool lacks_alpn(const struct tls *t)
{
	const char *wanted = tls_context_alpn(t->context);

	return wanted && !str_eq(wanted, "http/1.1") &&
	       !str_eq(mbedtls_ssl_get_alpn_protocol(&t->ssl), wanted);
}

/* A server refuses as soon as it knows, before it has computed anything. */
static int step(struct tls *t, bool *ret_done, struct error **err)
{
	while (!tls_compat_is_over(&t->ssl)) {
		int rv = mbedtls_ssl_handshake_step(&t->ssl);
		if (tls_compat_is_retry(rv)) {
			*ret_done = false;
			return 0;
		}
		if (rv != 0)
			return fail_handshake(t, rv, err);
		if (tls_compat_has_hello(&t->ssl) && tls_context_role(t->context) == TLS_SERVER &&
			lacks_alpn(t))
			return refuse_alpn(t, err);
	}
	if (lacks_alpn(t))
		return refuse_alpn(t, err);
	tls_compat_shrink(&t->ssl);
	t->state = TLS_OPEN;
	*ret_done = true;
	return 0;
}

/* Input that is too short to be recognised as TLS is left for later. */
static int continue_handshake(struct tls *t, bool *ret_done, struct error **err)
{
	bool has_header = t->in.n >= TLS_RECORD_HEADER_BYTES;
	int rv;

	if (!t->speaks_tls && has_header) {
		if (tls_error_check_first(t->in, err) < 0) {
			t->state = TLS_FAILED;
			return err_wrap(err, "TLS handshake");
		}
		t->speaks_tls = true;
	}
	if (!t->speaks_tls && (t->state == TLS_SHAKING || tls_context_role(t->context) == TLS_SERVER)) {
		*ret_done = false;
		return 0;
	}
	if (t->state == TLS_NEW) {
		rv = begin(t);
		if (rv != 0)
			return fail_begin(t, rv, err);
	}
	return step(t, ret_done, err);
}

int tls_handshake(struct tls *t, struct buf *in, struct buf *out, bool *ret_done, struct error **err)
{
	size_t held = in->len;
	int rv;

	if (t->state == TLS_FAILED)
		return err_set(err, ERR_UNAUTHENTICATED, "TLS handshake: it has failed before");
	assert(t->state != TLS_OPEN);
	t->in = buf_span(in);
	t->begin = t->in.p;
	t->out = out;
	rv = continue_handshake(t, ret_done, err);
	buf_consume(in, held - t->in.n);
	t->in = (struct span){0};
	t->begin = NULL;
	t->out = NULL;
	return rv;
}

/* A server with mbedtls 3.6 that refuses the certificate of a client with TLS 1.3 encrypts its alert with the
 * keys of the handshake, which are over by then. */
static bool may_be_refusal(const struct tls *t, int rv)
{
	return rv == MBEDTLS_ERR_SSL_INVALID_MAC && !t->has_read &&
	       tls_context_role(t->context) == TLS_CLIENT && tls_compat_is_judged_late(&t->ssl);
}

static int fail(struct tls *t, int rv, struct error **err)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(MAX_WHY_BYTES);

	t->state = TLS_FAILED;
	if (rv == MBEDTLS_ERR_SSL_FATAL_ALERT_MESSAGE)
		tls_error_alert(tls_compat_alert(&t->ssl), &text);
	else
		tls_error_code(rv, &text);
	if (may_be_refusal(t, rv))
		buf_adds(&text, "; or the peer refuses our certificate, for the reason in its log");
	return err_set(err, ERR_UNAVAILABLE, "TLS: %s", buf_str(&text));
}

static int check_open(const struct tls *t, struct error **err)
{
	if (t->state != TLS_OPEN)
		return err_set(err, ERR_UNAVAILABLE, "TLS: the connection has failed");
	return 0;
}

/* mbedtls stops at warnings and at empty records although there is more to be read. */
static int read_some(struct tls *t, uint8_t *out, size_t room)
{
	int rv;

	do
		rv = mbedtls_ssl_read(&t->ssl, out, room);
	while ((rv == 0 || tls_compat_is_retry(rv)) && t->in.n > 0);
	return tls_compat_is_retry(rv) ? 0 : rv;
}

int tls_read(struct tls *t, struct span *in, uint8_t *out, size_t room, size_t *ret_n, bool *ret_closed,
	struct error **err)
{
	int rv = MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY;

	assert(room > 0);
	if (check_open(t, err) < 0)
		return -1;
	t->in = *in;
	if (!t->peer_closed)
		rv = read_some(t, out, room);
	*in = t->in;
	t->in = (struct span){0};
	t->has_read |= rv > 0;
	if (rv < 0 && rv != MBEDTLS_ERR_SSL_PEER_CLOSE_NOTIFY)
		return fail(t, rv, err);
	if (rv < 0) {
		/* RFC 5246 7.2.1: what comes after it is ignored. */
		t->peer_closed = true;
		*in = (struct span){in->p + in->n, 0};
	}
	*ret_n = rv < 0 ? 0 : (size_t)rv;
	*ret_closed = t->peer_closed;
	return 0;
}

static void take_pending(struct tls *t, struct buf *out)
{
	buf_add(out, t->pending.data, t->pending.len);
	buf_done(&t->pending);
}

static int encrypt_plain(struct tls *t, struct span plain, struct error **err)
{
	while (plain.n > 0) {
		int rv = mbedtls_ssl_write(&t->ssl, plain.p, plain.n);
		if (rv < 0)
			return fail(t, rv, err);
		plain.p += rv;
		plain.n -= (size_t)rv;
	}
	return 0;
}

int tls_write(struct tls *t, struct span plain, struct buf *out, struct error **err)
{
	int rv;

	if (check_open(t, err) < 0)
		return -1;
	take_pending(t, out);
	t->out = out;
	rv = encrypt_plain(t, plain, err);
	t->out = NULL;
	if (rv == 0 && out->overflowed)
		rv = fail(t, MBEDTLS_ERR_SSL_ALLOC_FAILED, err);
	if (rv < 0 && out->overflowed)
		return err_wrap(err, "more than %zu bytes wait to be sent", out->max);
	return rv;
}

void tls_close(struct tls *t, struct buf *out)
{
	take_pending(t, out);
	if (t->state != TLS_OPEN || t->said_close)
		return;
	t->out = out;
	/* It fails only when @out is full, and then the peer no longer waits for it. */
	(void)mbedtls_ssl_close_notify(&t->ssl);
	t->out = NULL;
	t->said_close = true;
}

const char *const *tls_peer_names(const struct tls *t)
{
	static const char *const none[] = {NULL};

	return t->peer_names ? (const char *const *)t->peer_names : none;
}
