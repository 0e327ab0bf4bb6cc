/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http1/http1_rules.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/parse.h"

#define MAX_LENGTH_DIGITS 18 /* fit 64 bits */
#define MAX_CHUNK_DIGITS  15

/* tchar of RFC 9110 section 5.6.2, besides letters and digits */
static const char token_marks[] = "!#$%&'*+-.^_`|~";

/* RFC 9110 section 9, RFC 5789. CONNECT is refused by itself. */
static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"};

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
static struct http1_refusal split_target(
	struct span method, struct span target, struct http1_request_line *ret)
{
	for (size_t i = 0; i < target.n; i++) {
		if (target.p[i] <= ' ' || target.p[i] >= 0x7f || target.p[i] == '#')
			return HTTP1_BAD("malformed request target");
	}
	if (span_eq(method, "CONNECT"))
		return (struct http1_refusal){501, "this is no proxy"};
	*ret = (struct http1_request_line){.path = target};
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

static struct http1_refusal find_method(struct span method, const char **ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		if (span_eq(method, methods[i])) {
			*ret = methods[i];
			return HTTP1_FINE;
		}
	}
	return (struct http1_refusal){501, "unknown method"};
}

struct http1_refusal http1_check_request_line(
	struct span line, struct http1_head *head, struct http1_request_line *ret)
{
	struct http1_refusal refusal;
	struct span method;
	struct span target;
	struct span version;
	struct span rest;

	if (!cut(line, ' ', &method, &rest) || !cut(rest, ' ', &target, &version) || !is_token(method))
		return HTTP1_BAD("malformed request line");
	refusal = check_version(version, head);
	if (refusal.status == 0)
		refusal = split_target(method, target, ret);
	return refusal.status ? refusal : find_method(method, &ret->method);
}

struct http1_refusal http1_check_status_line(struct span line, struct http1_head *head, unsigned *ret)
{
	struct span version;
	struct span status;
	struct span reason;

	if (!cut(line, ' ', &version, &status))
		return HTTP1_BAD("malformed status line");
	(void)cut(status, ' ', &status, &reason);
	*ret = parse_u32_or(status, 0);
	if (status.n != 3 || *ret < 100)
		return HTTP1_BAD("malformed status line");
	return check_version(version, head);
}

/* Return: whether @value is a number of at most MAX_LENGTH_DIGITS digits. */
static bool parse_length(struct span value, uint64_t *ret)
{
	*ret = 0;
	for (size_t i = 0; i < value.n && i < MAX_LENGTH_DIGITS; i++) {
		if (!is_digit(value.p[i]))
			return false;
		*ret = *ret * 10 + (uint64_t)(value.p[i] - '0');
	}
	return value.n > 0 && value.n <= MAX_LENGTH_DIGITS;
}

/* RFC 9110 section 7.6.1: a list of words. */
static void note_connection(struct span value, struct http1_head *head)
{
	struct span word;

	for (bool more = true; more;) {
		more = cut(value, ',', &word, &value);
		if (!more)
			word = value;
		head->says_close |= is_word(trimmed(word), "close");
		head->says_keep_alive |= is_word(trimmed(word), "keep-alive");
	}
}

static struct http1_refusal check_known_field(struct span name, struct span value, struct http1_head *head)
{
	if (is_word(name, "host")) {
		head->n_host++;
		if (!holds_only(value, host_marks))
			return HTTP1_BAD("malformed Host");
	} else if (is_word(name, "content-length")) {
		head->n_content_length++;
		if (!parse_length(value, &head->content_length))
			return HTTP1_BAD("malformed Content-Length");
	} else if (is_word(name, "transfer-encoding")) {
		head->n_transfer_encoding++;
		if (!is_word(value, "chunked"))
			return (struct http1_refusal){
				501, "only the transfer coding \"chunked\" is understood"};
	} else if (is_word(name, "connection")) {
		note_connection(value, head);
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

struct http1_refusal http1_check_host(const struct http1_head *head)
{
	if (head->n_host > 1 || (head->n_host == 0 && !head->is_1_0))
		return HTTP1_BAD("exactly one Host is required");
	return HTTP1_FINE;
}

struct http1_refusal http1_check_framing(const struct http1_head *head)
{
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

/* Return: the value of a hexadecimal digit, or -1. */
static int hex_value(uint8_t c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

struct http1_refusal http1_check_chunk_size(struct span line, uint64_t *ret)
{
	size_t digits = 0;
	uint64_t n = 0;

	for (; digits < line.n && digits < MAX_CHUNK_DIGITS && hex_value(line.p[digits]) >= 0; digits++)
		n = n * 16 + (uint64_t)hex_value(line.p[digits]);
	if (digits == 0 || (digits < line.n && line.p[digits] != ';'))
		return HTTP1_BAD("malformed chunk size");
	*ret = n;
	return HTTP1_FINE;
}
