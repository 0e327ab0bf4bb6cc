/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tls/tls_names.h"

#include <arpa/inet.h>
#include <mbedtls/x509_crt.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/str.h"

/* RFC 5280 4.2.1.6: number of the choice in GeneralName. */
enum san_type { SAN_DNS = 2, SAN_IP = 7 };

#define MAX_ADDRESS_BYTES 16
#define MAX_HOST_BYTES    255 /* RFC 1035 2.3.4 */
#define MAX_DESCRIBED     8

struct address {
	uint8_t bytes[MAX_ADDRESS_BYTES];
	size_t n; /* 0: none */
};

static struct address address_parse(const char *text)
{
	struct address a = {.n = 0};

	if (inet_pton(AF_INET, text, a.bytes) == 1)
		a.n = sizeof(struct in_addr);
	else if (inet_pton(AF_INET6, text, a.bytes) == 1)
		a.n = sizeof(struct in6_addr);
	return a;
}

bool tls_name_is_address(const char *name)
{
	return address_parse(name).n > 0;
}

/* The list's head is part of the certificate, and empty when there is no subjectAltName. */
static const mbedtls_x509_sequence *first_name(const mbedtls_x509_crt *cert)
{
	return cert->subject_alt_names.buf.p ? &cert->subject_alt_names : NULL;
}

static unsigned type_of(const mbedtls_x509_sequence *entry)
{
	return (unsigned)entry->buf.tag & MBEDTLS_ASN1_TAG_VALUE_MASK;
}

static bool is_host_char(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
	       c == '.' || c == '_' || c == '*';
}

static bool is_host_name(const mbedtls_x509_buf *name)
{
	if (name->len == 0 || name->len > MAX_HOST_BYTES)
		return false;
	for (size_t i = 0; i < name->len; i++) {
		if (!is_host_char(name->p[i]))
			return false;
	}
	return true;
}

static bool entry_matches(const mbedtls_x509_sequence *entry, const char *name, const struct address *address)
{
	const mbedtls_x509_buf *value = &entry->buf;

	if (address->n > 0)
		return type_of(entry) == SAN_IP && value->len == address->n &&
		       memcmp(value->p, address->bytes, address->n) == 0;
	return type_of(entry) == SAN_DNS && is_host_name(value) && value->len == strlen(name) &&
	       strncasecmp((const char *)value->p, name, value->len) == 0;
}

bool tls_names_match(const struct mbedtls_x509_crt *cert, const char *name)
{
	const struct address address = address_parse(name);

	for (const mbedtls_x509_sequence *entry = first_name(cert); entry; entry = entry->next) {
		if (entry_matches(entry, name, &address))
			return true;
	}
	return false;
}

char **tls_names_list(const struct mbedtls_x509_crt *cert)
{
	char **names = NULL;

	for (const mbedtls_x509_sequence *entry = first_name(cert); entry; entry = entry->next) {
		if (type_of(entry) != SAN_DNS || !is_host_name(&entry->buf))
			continue;
		CLEANUP(free_charp) char *name = x_strndup((const char *)entry->buf.p, entry->buf.len);
		strv_add(&names, name);
	}
	return names ? names : x_calloc(1, sizeof(char *));
}

static void describe_entry(const mbedtls_x509_sequence *entry, struct buf *out)
{
	const mbedtls_x509_buf *value = &entry->buf;
	char text[INET6_ADDRSTRLEN];

	if (type_of(entry) == SAN_DNS && is_host_name(value))
		buf_add(out, value->p, value->len);
	else if (type_of(entry) == SAN_DNS)
		buf_adds(out, "a malformed name");
	else if (type_of(entry) == SAN_IP && value->len == sizeof(struct in_addr))
		buf_adds(out, inet_ntop(AF_INET, value->p, text, sizeof(text)));
	else if (type_of(entry) == SAN_IP && value->len == sizeof(struct in6_addr))
		buf_adds(out, inet_ntop(AF_INET6, value->p, text, sizeof(text)));
	else
		buf_adds(out, "a name of another kind");
}

void tls_names_describe(const struct mbedtls_x509_crt *cert, struct buf *out)
{
	const mbedtls_x509_sequence *entry = first_name(cert);

	if (!entry) {
		buf_adds(out, "no name");
		return;
	}
	for (unsigned n = 0; entry; entry = entry->next, n++) {
		if (n > 0)
			buf_adds(out, ", ");
		if (n == MAX_DESCRIBED) {
			buf_adds(out, "...");
			break;
		}
		describe_entry(entry, out);
	}
}
