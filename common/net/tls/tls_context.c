/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_context.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/entropy.h>
#include <mbedtls/error.h>
#include <mbedtls/pk.h>
#include <mbedtls/ssl.h>
#include <mbedtls/x509_crt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls_compat.h"
#include "net/tls/tls_files.h"

#define MIN_RSA_BITS 2048

struct tls_creds {
	atomic_uint refs;
	mbedtls_ssl_config conf;
	mbedtls_x509_crt ca;
	mbedtls_x509_crt cert;
	mbedtls_pk_context key;
	mbedtls_entropy_context entropy;
	mbedtls_ctr_drbg_context rng;
	const char *alpn[2]; /* borrowed by conf, which copies no list */
};

struct tls_context {
	atomic_uint refs;
	enum tls_role role;
	const char *alpn;
	char **peer_names;
	struct tls_files files;
	pthread_mutex_t lock; /* for all that follows */
	struct tls_creds *creds;
	struct tls_stamps stamps;        /* of the files that creds was loaded from */
	struct tls_stamps failed_stamps; /* of those that could not be loaded, as was reported */
	uint64_t looked_ns;
};

static struct tls_creds *creds_new(void)
{
	struct tls_creds *creds = x_calloc(1, sizeof(*creds));

	atomic_init(&creds->refs, 1);
	mbedtls_ssl_config_init(&creds->conf);
	mbedtls_x509_crt_init(&creds->ca);
	mbedtls_x509_crt_init(&creds->cert);
	mbedtls_pk_init(&creds->key);
	mbedtls_entropy_init(&creds->entropy);
	mbedtls_ctr_drbg_init(&creds->rng);
	return creds;
}

void tls_creds_unref(struct tls_creds *creds)
{
	if (!creds || atomic_fetch_sub(&creds->refs, 1) > 1)
		return;
	mbedtls_ssl_config_free(&creds->conf);
	mbedtls_x509_crt_free(&creds->ca);
	mbedtls_x509_crt_free(&creds->cert);
	mbedtls_pk_free(&creds->key);
	mbedtls_ctr_drbg_free(&creds->rng);
	mbedtls_entropy_free(&creds->entropy);
	free(creds);
}

static int fail_library(int rv, const char *file, const char *what, struct error **err)
{
	char text[256];

	mbedtls_strerror(rv, text, sizeof(text));
	return err_set(err, ERR_INVALID_ARGUMENT, "%s: %s: %s (-0x%04x)", file, what, text, (unsigned)-rv);
}

static int load_certificates(const char *file, mbedtls_x509_crt *ret, struct error **err)
{
	CLEANUP(buf_done) struct buf pem = TLS_FILE_BUF;
	int rv;

	if (tls_file_read(file, &pem, err) < 0)
		return -1;
	/* The NUL behind the content is passed, too, because mbedtls recognises PEM by it. */
	rv = mbedtls_x509_crt_parse(ret, pem.data, pem.len + 1);
	if (rv < 0)
		return fail_library(rv, file, "malformed certificate", err);
	if (rv > 0)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "%s: %d of its certificates are malformed", file, rv);
	return 0;
}

static int64_t seconds_of(const mbedtls_x509_time *t)
{
	struct tm tm = {.tm_year = t->year - 1900,
		.tm_mon = t->mon - 1,
		.tm_mday = t->day,
		.tm_hour = t->hour,
		.tm_min = t->min,
		.tm_sec = t->sec};

	return (int64_t)timegm(&tm);
}

int tls_expiry(const char *file, enum tls_expiry_kind kind, struct tls_validity *ret, struct error **err)
{
	mbedtls_x509_crt chain;
	struct tls_validity found = {0};

	tls_compat_init();
	mbedtls_x509_crt_init(&chain);
	int rc = load_certificates(file, &chain, err);
	for (const mbedtls_x509_crt *crt = &chain; rc == 0 && crt; crt = crt->next) {
		int64_t s = seconds_of(&crt->valid_to);

		if (crt == &chain || (kind == TLS_EXPIRY_CHAIN ? s < found.expires_s : s > found.expires_s))
			found = (struct tls_validity){
				.begins_s = seconds_of(&crt->valid_from), .expires_s = s};
	}
	mbedtls_x509_crt_free(&chain);
	if (rc == 0)
		*ret = found;
	return rc;
}

static bool is_curve(size_t bits)
{
	return bits == 256 || bits == 384 || bits == 521;
}

static int load_key(struct tls_creds *creds, const char *file, struct error **err)
{
	CLEANUP(tls_secret_done) struct buf pem = TLS_FILE_BUF;
	size_t bits;
	int rv;

	if (tls_file_read(file, &pem, err) < 0)
		return -1;
	rv = tls_compat_parse_key(&creds->key, pem.data, pem.len + 1, &creds->rng);
	if (rv != 0)
		return fail_library(rv, file, "malformed key", err);
	bits = mbedtls_pk_get_bitlen(&creds->key);
	if (mbedtls_pk_can_do(&creds->key, MBEDTLS_PK_RSA) ? bits < MIN_RSA_BITS : !is_curve(bits))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"%s: a key of %zu bits is not accepted, only P-256, "
			"P-384, P-521, and RSA with at least %d bits",
			file, bits, MIN_RSA_BITS);
	return 0;
}

static int load_own(struct tls_creds *creds, const struct tls_files *files, struct error **err)
{
	int rv;

	if (!files->cert)
		return 0;
	if (load_certificates(files->cert, &creds->cert, err) < 0)
		return -1;
	if (load_key(creds, files->key, err) < 0)
		return -1;
	if (tls_files_check_key_mode(files, err) < 0)
		return -1;
	rv = tls_compat_check_pair(&creds->cert.pk, &creds->key, &creds->rng);
	if (rv != 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s: not the key of %s", files->key, files->cert);
	rv = mbedtls_ssl_conf_own_cert(&creds->conf, &creds->cert, &creds->key);
	return rv == 0 ? 0 : fail_library(rv, files->cert, "certificate", err);
}

static int load_authorities(struct tls_creds *creds, const char *file, struct error **err)
{
	mbedtls_ssl_conf_authmode(&creds->conf, file ? MBEDTLS_SSL_VERIFY_REQUIRED : MBEDTLS_SSL_VERIFY_NONE);
	if (!file)
		return 0;
	if (load_certificates(file, &creds->ca, err) < 0)
		return -1;
	mbedtls_ssl_conf_ca_chain(&creds->conf, &creds->ca, NULL);
	return 0;
}

static int conf_init(struct tls_creds *creds, const struct tls_context *c, struct error **err)
{
	int endpoint = c->role == TLS_SERVER ? MBEDTLS_SSL_IS_SERVER : MBEDTLS_SSL_IS_CLIENT;
	int rv = mbedtls_ctr_drbg_seed(&creds->rng, mbedtls_entropy_func, &creds->entropy, NULL, 0);

	if (rv == 0)
		rv = mbedtls_ssl_config_defaults(
			&creds->conf, endpoint, MBEDTLS_SSL_TRANSPORT_STREAM, MBEDTLS_SSL_PRESET_DEFAULT);
	tls_compat_protocol(&creds->conf);
	mbedtls_ssl_conf_rng(&creds->conf, mbedtls_ctr_drbg_random, &creds->rng);
	if (c->role == TLS_CLIENT)
		mbedtls_ssl_conf_session_tickets(&creds->conf, MBEDTLS_SSL_SESSION_TICKETS_DISABLED);
	creds->alpn[0] = c->alpn;
	if (rv == 0 && c->alpn)
		rv = mbedtls_ssl_conf_alpn_protocols(&creds->conf, creds->alpn);
	return rv == 0 ? 0 : fail_library(rv, "TLS", "configuration", err);
}

static int creds_load(const struct tls_context *c, struct tls_creds **ret, struct error **err)
{
	CLEANUP(tls_creds_unrefp) struct tls_creds *creds = creds_new();

	if (conf_init(creds, c, err) < 0)
		return -1;
	if (load_authorities(creds, c->files.ca, err) < 0)
		return -1;
	if (load_own(creds, &c->files, err) < 0)
		return -1;
	*ret = TAKE_PTR(creds);
	return 0;
}

static int check_config(const struct tls_config *config, struct error **err)
{
	if (!config->cert_file != !config->key_file)
		return err_set(err, ERR_INVALID_ARGUMENT, "a certificate and its key must be given together");
	if (config->role == TLS_SERVER && !config->cert_file)
		return err_set(err, ERR_INVALID_ARGUMENT, "a TLS server needs a certificate");
	if (config->role == TLS_CLIENT && !config->ca_file)
		return err_set(err, ERR_INVALID_ARGUMENT, "a TLS client needs the CA of its servers");
	if (config->peer_names && (!config->ca_file || !config->peer_names[0]))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"checking names of clients needs a CA and at least one name");
	return 0;
}

int tls_context_new(const struct tls_config *config, struct tls_context **ret, struct error **err)
{
	CLEANUP(tls_context_unrefp) struct tls_context *c = NULL;

	if (check_config(config, err) < 0)
		return -1;
	tls_compat_init();
	c = x_calloc(1, sizeof(*c));
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->lock, NULL);
	c->role = config->role;
	c->alpn = config->alpn;
	for (const char *const *name = config->peer_names; name && *name; name++)
		strv_add(&c->peer_names, *name);
	tls_files_init(&c->files, config);
	tls_files_stamp(&c->files, &c->stamps);
	c->looked_ns = clock_ns();
	if (creds_load(c, &c->creds, err) < 0)
		return -1;
	*ret = TAKE_PTR(c);
	return 0;
}

struct tls_context *tls_context_ref(struct tls_context *c)
{
	atomic_fetch_add(&c->refs, 1);
	return c;
}

void tls_context_unref(struct tls_context *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
		return;
	tls_creds_unref(c->creds);
	tls_files_done(&c->files);
	strv_free(c->peer_names);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* Lock held. The stamps are taken before the files are read, so that a change during the reading is noticed
 * the next time. */
static void reload_if_changed(struct tls_context *c)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct tls_creds *creds = NULL;
	struct tls_stamps stamps;

	tls_files_stamp(&c->files, &stamps);
	if (tls_stamps_equal(&stamps, &c->stamps)) {
		c->failed_stamps = stamps;
		return;
	}
	if (creds_load(c, &creds, &err) < 0) {
		/* Tried again, because the reason may go away, but logged once. */
		if (tls_stamps_equal(&stamps, &c->failed_stamps))
			return;
		c->failed_stamps = stamps;
		log_warn("TLS files have changed and cannot be loaded; the old ones stay in use", F_ERR(err));
		return;
	}
	c->stamps = stamps;
	tls_creds_unref(c->creds);
	c->creds = creds;
	log_info("TLS files have changed and were loaded",
		F_STR("certificate", c->files.cert ? c->files.cert : "-"),
		F_STR("authority", c->files.ca ? c->files.ca : "-"));
}

struct tls_creds *tls_context_creds(struct tls_context *c, uint64_t now_ns)
{
	struct tls_creds *creds;

	pthread_mutex_lock(&c->lock);
	if (now_ns > c->looked_ns && now_ns - c->looked_ns >= TLS_LOOK_NS) {
		c->looked_ns = now_ns;
		reload_if_changed(c);
	}
	creds = c->creds;
	atomic_fetch_add(&creds->refs, 1);
	pthread_mutex_unlock(&c->lock);
	return creds;
}

const struct mbedtls_ssl_config *tls_creds_conf(const struct tls_creds *creds)
{
	return &creds->conf;
}

enum tls_role tls_context_role(const struct tls_context *c)
{
	return c->role;
}

const char *tls_context_alpn(const struct tls_context *c)
{
	return c->alpn;
}

char *const *tls_context_peer_names(const struct tls_context *c)
{
	return c->peer_names;
}
