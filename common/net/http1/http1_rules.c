/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1_rules.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#define MAX_LENGTH_DIGITS 18 /* fit 64 bits */
#define MAX_CHUNK_DIGITS  15

/* tchar of RFC 9110 section 5.6.2, besides letters and digits */
static const char token_marks[] = "!#$%&'*+-.^_`|~";

/* what RFC 3986 section 3.2 allows in an authority without userinfo, besides letters and digits */
static const char host_marks[] = "-._~!$&'()*+,;=%:[]";

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_alnum(uint8_t c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_hex(uint8_t c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool holds_only(struct span s, const char *marks)
{
	for (size_t i = 0; i < s.n; i++) {
		if (!is_alnum(s.p[i]) && (s.p[i] == '\0' || !strchr(marks, s.p[i])))
			return false;
	}
	return true;
}

static bool is_token(struct span s)
{
	return s.n > 0 && holds_only(s, token_marks);
}

static bool is_word(struct span s, const char *word)
{
	return s.n == strlen(word) && strncasecmp((const char *)s.p, word, s.n) == 0;
}

/* Cuts @s at the first @c. Return: whether there is one. */
static bool cut(struct span s, char c, struct span *ret_part, struct span *ret_rest)
{
	const uint8_t *at = s.n > 0 ? memchr(s.p, c, s.n) : NULL;

	if (!at)
		return false;
	*ret_part = (struct span){s.p, (size_t)(at - s.p)};
	*ret_rest = (struct span){at + 1, s.n - ret_part->n - 1};
	return true;
}

static struct span trimmed(struct span s)
{
	while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t')) {
		s.p++;
		s.n--;
	}
	while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
		s.n--;
	return s;
}

static struct http1_refusal check_byte(uint8_t before, uint8_t byte)
{
	if ((before == '\r') != (byte == '\n'))
		return HTTP1_BAD("a line must end with CR and LF");
	if ((byte < ' ' && byte != '\t' && byte != '\r' && byte != '\n') || byte == 0x7f)
		return HTTP1_BAD("control character");
	return HTTP1_FINE;
}

struct http1_refusal http1_check_bytes(uint8_t before, struct span bytes)
{
	for (size_t i = 0; i < bytes.n; i++) {
		struct http1_refusal refusal = check_byte(before, bytes.p[i]);

		if (refusal.status)
			return refusal;
		before = bytes.p[i];
	}
	return HTTP1_FINE;
}

static struct http1_refusal check_version(struct span version, struct http1_head *head)
{
	if (version.n != strlen("HTTP/1.1") || memcmp(version.p, "HTTP/", 5) != 0 ||
		!is_digit(version.p[5]) || version.p[6] != '.' || !is_digit(version.p[7]))
		return HTTP1_BAD("malformed request line");
	if (version.p[5] != '1')
		return (struct http1_refusal){505, "only HTTP/1.x is spoken here"};
	head->is_1_0 = version.p[7] == '0';
	return HTTP1_FINE;
}

static bool skip_prefix(struct span *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s->n < n || strncasecmp((const char *)s->p, prefix, n) != 0)
		return false;
	*s = (struct span){s->p + n, s->n - n};
	return true;
}

/* Leaves of a URL what follows its authority. */
static bool skip_origin(struct span *target)
{
	struct span authority;

	if (!skip_prefix(target, "http://") && !skip_prefix(target, "https://"))
		return false;
	authority = *target;
	while (target->n > 0 && target->p[0] != '/' && target->p[0] != '?')
		*target = (struct span){target->p + 1, target->n - 1};
	authority.n -= target->n;
	return authority.n > 0 && holds_only(authority, host_marks);
}

/* RFC 9112 section 3.2 */
static struct http1_refusal split_target(struct span method, struct span target, struct http1_target *ret)
{
	for (size_t i = 0; i < target.n; i++) {
		if (target.p[i] <= ' ' || target.p[i] >= 0x7f || target.p[i] == '#')
			return HTTP1_BAD("malformed request target");
	}
	if (span_eq(method, "CONNECT"))
		return (struct http1_refusal){501, "this is no proxy"};
	*ret = (struct http1_target){.path = target};
	if (span_eq(target, "*"))
		return span_eq(method, "OPTIONS") ? HTTP1_FINE : HTTP1_BAD("\"*\" is for OPTIONS only");
	if ((target.n == 0 || target.p[0] != '/') && !skip_origin(&target))
		return HTTP1_BAD("malformed request target");
	if (!cut(target, '?', &ret->path, &ret->query))
		ret->path = target;
	if (ret->path.n == 0)
		ret->path = span_of("/");
	return HTTP1_FINE;
}

struct http1_refusal http1_check_request_line(
	struct span line, struct http1_head *head, struct http1_target *ret_target)
{
	struct http1_refusal refusal;
	struct span method;
	struct span target;
	struct span version;
	struct span rest;

	if (!cut(line, ' ', &method, &rest) || !cut(rest, ' ', &target, &version) || !is_token(method))
		return HTTP1_BAD("malformed request line");
	refusal = check_version(version, head);
	return refusal.status ? refusal : split_target(method, target, ret_target);
}

static bool is_length(struct span value)
{
	for (size_t i = 0; i < value.n; i++) {
		if (!is_digit(value.p[i]))
			return false;
	}
	return value.n > 0 && value.n <= MAX_LENGTH_DIGITS;
}

static struct http1_refusal check_known_field(struct span name, struct span value, struct http1_head *head)
{
	if (is_word(name, "host")) {
		head->n_host++;
		if (!holds_only(value, host_marks))
			return HTTP1_BAD("malformed Host");
	} else if (is_word(name, "content-length")) {
		head->n_content_length++;
		if (!is_length(value))
			return HTTP1_BAD("malformed Content-Length");
	} else if (is_word(name, "transfer-encoding")) {
		head->n_transfer_encoding++;
		if (!is_word(value, "chunked"))
			return (struct http1_refusal){
				501, "only the transfer coding \"chunked\" is understood"};
	} else if (is_word(name, "expect") && !head->is_1_0) {
		head->expects_continue = is_word(value, "100-continue");
		if (!head->expects_continue)
			return (struct http1_refusal){417, "only 100-continue can be expected"};
	}
	return HTTP1_FINE;
}

struct http1_refusal http1_check_field(struct span line, struct http1_head *head)
{
	struct span name;
	struct span value;

	/* A folded line (obs-fold) begins with a space: its "name" is no token. */
	if (!cut(line, ':', &name, &value) || !is_token(name))
		return HTTP1_BAD("malformed header field");
	return check_known_field(name, trimmed(value), head);
}

struct http1_refusal http1_check_head(const struct http1_head *head)
{
	if (head->n_host > 1 || (head->n_host == 0 && !head->is_1_0))
		return HTTP1_BAD("exactly one Host is required");
	if (head->n_content_length + head->n_transfer_encoding > 1)
		return HTTP1_BAD("more than one Content-Length or Transfer-Encoding");
	if (head->n_transfer_encoding > 0 && head->is_1_0)
		return HTTP1_BAD("Transfer-Encoding in HTTP/1.0");
	return HTTP1_FINE;
}

struct http1_refusal http1_check_trailer(struct span line)
{
	struct http1_head head = {0};
	struct http1_refusal refusal = http1_check_field(line, &head);

	if (refusal.status == 0 && head.n_host + head.n_content_length + head.n_transfer_encoding > 0)
		return HTTP1_BAD("forbidden trailer field");
	return refusal;
}

struct http1_refusal http1_check_chunk_size(struct span line)
{
	size_t digits = 0;

	while (digits < line.n && is_hex(line.p[digits]))
		digits++;
	if (digits == 0 || digits > MAX_CHUNK_DIGITS || (digits < line.n && line.p[digits] != ';'))
		return HTTP1_BAD("malformed chunk size");
	return HTTP1_FINE;
}
