/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_compat.h"

#include <mbedtls/ctr_drbg.h>
#include <mbedtls/pk.h>
#include <mbedtls/platform.h>
#include <mbedtls/ssl.h>
#include <mbedtls/ssl_ciphersuites.h>
#include <mbedtls/version.h>
#include <mbedtls/x509_crt.h>
#include <sys/mman.h>
#include <unistd.h>

/* The bytes before the content of a record: counter, header, explicit nonce. */
#define HEAD_BYTES 64

/* RFC 9113 9.2.2 allows no other kind of suites; AES first, since servers and their clients have AES-NI. */
static const int suites[] = {
#ifdef MBEDTLS_SSL_PROTO_TLS1_3
	MBEDTLS_TLS1_3_AES_128_GCM_SHA256,
	MBEDTLS_TLS1_3_AES_256_GCM_SHA384,
	MBEDTLS_TLS1_3_CHACHA20_POLY1305_SHA256,
#endif
	MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	MBEDTLS_TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	MBEDTLS_TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	MBEDTLS_TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	MBEDTLS_TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	MBEDTLS_TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
	0,
};

#if MBEDTLS_VERSION_MAJOR >= 3

#include <psa/crypto.h>

static const uint16_t groups[] = {
	MBEDTLS_SSL_IANA_TLS_GROUP_X25519,
	MBEDTLS_SSL_IANA_TLS_GROUP_SECP256R1,
	MBEDTLS_SSL_IANA_TLS_GROUP_SECP384R1,
	MBEDTLS_SSL_IANA_TLS_GROUP_SECP521R1,
	MBEDTLS_SSL_IANA_TLS_GROUP_NONE,
};

/* Servers choose in this order. PKCS #1 comes before PSS: with TLS 1.2 mbedtls offers PSS, too, and 3.6.6
 * then refuses a server that chooses it. For TLS 1.3 PKCS #1 counts in certificates only. */
static const uint16_t signatures[] = {
	MBEDTLS_TLS1_3_SIG_ECDSA_SECP256R1_SHA256,
	MBEDTLS_TLS1_3_SIG_ECDSA_SECP384R1_SHA384,
	MBEDTLS_TLS1_3_SIG_ECDSA_SECP521R1_SHA512,
	MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA256,
	MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA384,
	MBEDTLS_TLS1_3_SIG_RSA_PKCS1_SHA512,
	MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA256,
	MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA384,
	MBEDTLS_TLS1_3_SIG_RSA_PSS_RSAE_SHA512,
	MBEDTLS_TLS1_3_SIG_NONE,
};

void tls_compat_init(void)
{
	/* A failure shows in the first handshake, with its reason. */
	(void)psa_crypto_init();
}

void tls_compat_protocol(struct mbedtls_ssl_config *conf)
{
	mbedtls_ssl_conf_min_tls_version(conf, MBEDTLS_SSL_VERSION_TLS1_2);
	mbedtls_ssl_conf_ciphersuites(conf, suites);
	mbedtls_ssl_conf_groups(conf, groups);
	mbedtls_ssl_conf_sig_algs(conf, signatures);
#ifdef MBEDTLS_SSL_PROTO_TLS1_3
	/* Nothing is resumed. */
	mbedtls_ssl_conf_tls13_key_exchange_modes(conf, MBEDTLS_SSL_TLS1_3_KEY_EXCHANGE_MODE_EPHEMERAL);
#endif
}

bool tls_compat_is_judged_late(const struct mbedtls_ssl_context *ssl)
{
	return mbedtls_ssl_get_version_number(ssl) == MBEDTLS_SSL_VERSION_TLS1_3;
}

int tls_compat_parse_key(
	struct mbedtls_pk_context *key, const uint8_t *pem, size_t n, struct mbedtls_ctr_drbg_context *rng)
{
	return mbedtls_pk_parse_key(key, pem, n, NULL, 0, mbedtls_ctr_drbg_random, rng);
}

int tls_compat_check_pair(struct mbedtls_pk_context *public, struct mbedtls_pk_context *key,
	struct mbedtls_ctr_drbg_context *rng)
{
	return mbedtls_pk_check_pair(public, key, mbedtls_ctr_drbg_random, rng);
}

static void drop_peer_certificates(struct mbedtls_ssl_context *ssl)
{
	(void)ssl;
}

#else

#define MBEDTLS_PRIVATE(member) member

/* 2.28 holds the keys of certificates, too, against this list. */
static const mbedtls_ecp_group_id groups[] = {
	MBEDTLS_ECP_DP_CURVE25519,
	MBEDTLS_ECP_DP_SECP256R1,
	MBEDTLS_ECP_DP_SECP384R1,
	MBEDTLS_ECP_DP_SECP521R1,
	MBEDTLS_ECP_DP_NONE,
};

static const int signatures[] = {
	MBEDTLS_MD_SHA256,
	MBEDTLS_MD_SHA384,
	MBEDTLS_MD_SHA512,
	MBEDTLS_MD_NONE,
};

void tls_compat_init(void)
{
}

void tls_compat_protocol(struct mbedtls_ssl_config *conf)
{
	mbedtls_ssl_conf_min_version(conf, MBEDTLS_SSL_MAJOR_VERSION_3, MBEDTLS_SSL_MINOR_VERSION_3);
	mbedtls_ssl_conf_ciphersuites(conf, suites);
	mbedtls_ssl_conf_curves(conf, groups);
	mbedtls_ssl_conf_sig_hashes(conf, signatures);
	mbedtls_ssl_conf_renegotiation(conf, MBEDTLS_SSL_RENEGOTIATION_DISABLED);
}

bool tls_compat_is_judged_late(const struct mbedtls_ssl_context *ssl)
{
	(void)ssl;
	return false;
}

int tls_compat_parse_key(
	struct mbedtls_pk_context *key, const uint8_t *pem, size_t n, struct mbedtls_ctr_drbg_context *rng)
{
	(void)rng;
	return mbedtls_pk_parse_key(key, pem, n, NULL, 0);
}

int tls_compat_check_pair(struct mbedtls_pk_context *public, struct mbedtls_pk_context *key,
	struct mbedtls_ctr_drbg_context *rng)
{
	(void)rng;
	return mbedtls_pk_check_pair(public, key);
}

/* Frees the certificates of the peer to save memory: only renegotiation, which is refused, would compare
 * them. */
static void drop_peer_certificates(struct mbedtls_ssl_context *ssl)
{
	mbedtls_x509_crt_free(ssl->session->peer_cert);
	mbedtls_free(ssl->session->peer_cert);
	ssl->session->peer_cert = NULL;
}

#endif

bool tls_compat_is_over(const struct mbedtls_ssl_context *ssl)
{
	return ssl->MBEDTLS_PRIVATE(state) >= MBEDTLS_SSL_HANDSHAKE_OVER;
}

bool tls_compat_has_hello(const struct mbedtls_ssl_context *ssl)
{
	return ssl->MBEDTLS_PRIVATE(state) == MBEDTLS_SSL_SERVER_HELLO;
}

unsigned tls_compat_alert(const struct mbedtls_ssl_context *ssl)
{
	return ssl->MBEDTLS_PRIVATE(in_msg)[1];
}

bool tls_compat_is_retry(int rv)
{
#ifdef MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET
	if (rv == MBEDTLS_ERR_SSL_RECEIVED_NEW_SESSION_TICKET)
		return true;
#endif
	return rv == MBEDTLS_ERR_SSL_WANT_READ;
}

#ifdef MBEDTLS_SSL_VARIABLE_BUFFER_LENGTH

/* mbedtls has replaced them by shorter ones already. */
static void shrink_buffers(struct mbedtls_ssl_context *ssl)
{
	(void)ssl;
}

#else

/* The counters of records are at the beginning, and the used part is never longer than the last record. */
static void drop_pages(unsigned char *buffer, size_t n)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)buffer + HEAD_BYTES + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)buffer + n) & ~(page - 1);

	/* Private anonymous memory reads as zeros afterwards. A failure costs memory only. */
	if (from < to)
		(void)madvise((void *)from, to - from, MADV_DONTNEED);
}

static void shrink_buffers(struct mbedtls_ssl_context *ssl)
{
	drop_pages(ssl->MBEDTLS_PRIVATE(in_buf), MBEDTLS_SSL_IN_CONTENT_LEN);
	drop_pages(ssl->MBEDTLS_PRIVATE(out_buf), MBEDTLS_SSL_OUT_CONTENT_LEN);
}

#endif

void tls_compat_shrink(struct mbedtls_ssl_context *ssl)
{
	drop_peer_certificates(ssl);
	shrink_buffers(ssl);
}
