/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"

/* how much of an offending text is quoted: a peer may send megabytes */
#define QUOTE "\"%.64s\""

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool push_digit(uint64_t *v, char c)
{
	return !__builtin_mul_overflow(*v, 10, v) && !__builtin_add_overflow(*v, (uint64_t)(c - '0'), v);
}

int parse_u64(const char *text, uint64_t *ret, struct error **err)
{
	uint64_t v = 0;

	if (!*text)
		return err_set(err, ERR_INVALID_ARGUMENT, "\"\" is not a number");
	for (const char *p = text; *p; p++) {
		if (!is_digit(*p))
			return err_set(err, ERR_INVALID_ARGUMENT, QUOTE " is not a number", text);
		if (!push_digit(&v, *p))
			return err_set(
				err, ERR_INVALID_ARGUMENT, QUOTE " is more than %" PRIu64, text, UINT64_MAX);
	}
	*ret = v;
	return 0;
}

/* Return: 16 when @c is not one. */
static unsigned hex_value(char c)
{
	if (is_digit(c))
		return (unsigned)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

static int parse_hex(const char *text, const char *digits, uint64_t *ret, struct error **err)
{
	uint64_t v = 0;

	if (!*digits)
		return err_set(err, ERR_INVALID_ARGUMENT, QUOTE " is not a number", text);
	for (const char *p = digits; *p; p++) {
		if (hex_value(*p) == 16 || v >> 60)
			return err_set(err, ERR_INVALID_ARGUMENT, QUOTE " is not a number of 64 bits", text);
		v = v << 4 | hex_value(*p);
	}
	*ret = v;
	return 0;
}

int parse_number(const char *text, uint64_t *ret, struct error **err)
{
	return str_starts(text, "0x") ? parse_hex(text, text + 2, ret, err) : parse_u64(text, ret, err);
}

static int parse_up_to(const char *text, uint64_t max, uint64_t *ret, struct error **err)
{
	uint64_t v;

	if (parse_u64(text, &v, err) < 0)
		return -1;
	if (v > max)
		return err_set(err, ERR_INVALID_ARGUMENT, QUOTE " is more than %" PRIu64, text, max);
	*ret = v;
	return 0;
}

int parse_u32(const char *text, uint32_t *ret, struct error **err)
{
	uint64_t v;

	if (parse_up_to(text, UINT32_MAX, &v, err) < 0)
		return -1;
	*ret = (uint32_t)v;
	return 0;
}

int parse_percent(const char *text, unsigned *ret, struct error **err)
{
	uint64_t v;

	if (parse_up_to(text, 100, &v, err) < 0)
		return err_wrap(err, "percentage");
	*ret = (unsigned)v;
	return 0;
}

uint32_t parse_u32_or(struct span text, uint32_t otherwise)
{
	uint64_t v = 0;

	for (size_t i = 0; i < text.n; i++) {
		if (!is_digit((char)text.p[i]) || !push_digit(&v, (char)text.p[i]) || v > UINT32_MAX)
			return otherwise;
	}
	return text.n > 0 ? (uint32_t)v : otherwise;
}

int parse_bool(const char *text, bool *ret, struct error **err)
{
	static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
	static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};

	for (size_t i = 0; i < ARRAY_SIZE(yes); i++) {
		if (str_eq(text, yes[i]) || str_eq(text, no[i])) {
			*ret = str_eq(text, yes[i]);
			return 0;
		}
	}
	return err_set(err, ERR_INVALID_ARGUMENT, QUOTE " is neither true nor false", text);
}

/* An unsigned decimal number inside a text: the digits before and after its point. */
struct decimal {
	const char *whole;
	int64_t n_whole;
	const char *fraction;
	int64_t n_fraction;
};

static int64_t count_digits(const char *p)
{
	int64_t n = 0;

	while (is_digit(p[n]))
		n++;
	return n;
}

/* Read a number at *@p and move *@p behind it. Return: false if there is no digit. */
static bool scan_decimal(const char **p, struct decimal *ret)
{
	ret->whole = *p;
	ret->n_whole = count_digits(*p);
	*p += ret->n_whole;
	ret->fraction = *p;
	ret->n_fraction = 0;
	if (**p == '.') {
		ret->fraction = *p + 1;
		ret->n_fraction = count_digits(ret->fraction);
		*p = ret->fraction + ret->n_fraction;
	}
	return ret->n_whole + ret->n_fraction > 0;
}

static char digit_at(const struct decimal *d, int64_t i)
{
	if (i < d->n_whole)
		return d->whole[i];
	return i < d->n_whole + d->n_fraction ? d->fraction[i - d->n_whole] : '0';
}

/*
 * @d * 10^@shift * @factor, rounded up. The shift moves the point. The part behind the point is worked off
 * from its last digit: ceil((n + x) / 10) = ceil((n + ceil(x)) / 10) for whole n, so rounding up in every
 * step gives the exact result for any number of digits; @factor is at most 2^60, so ten times it does not
 * overflow. A shift comes with a factor of 1 only: then the part is 0 or 1, and zeros between the point and
 * the digits keep it.
 *
 * Return: false if the result is more than 2^63-1.
 */
static bool decimal_times(const struct decimal *d, int64_t shift, uint64_t factor, uint64_t *ret)
{
	int64_t n_digits = d->n_whole + d->n_fraction;
	int64_t point = d->n_whole + shift;
	uint64_t whole = 0;
	uint64_t part = 0;
	uint64_t v;

	assert(shift == 0 || factor == 1);
	for (int64_t i = 0; i < point && (i < n_digits || whole > 0); i++)
		if (!push_digit(&whole, digit_at(d, i)))
			return false;
	for (int64_t i = n_digits; i > 0 && i > point; i--)
		part = ((uint64_t)(digit_at(d, i - 1) - '0') * factor + part + 9) / 10;
	if (__builtin_mul_overflow(whole, factor, &v) || __builtin_add_overflow(v, part, &v) || v > INT64_MAX)
		return false;
	*ret = v;
	return true;
}

/* e3, E3, e+3, e-3. The limit of nine digits is far beyond all useful values and keeps sums in range. */
static bool scan_exponent(const char *text, int64_t *ret)
{
	const char *p = text;

	if (*p != 'e' && *p != 'E')
		return false;
	p++;
	bool negative = *p == '-';
	if (*p == '-' || *p == '+')
		p++;
	int64_t n = count_digits(p);
	if (n < 1 || n > 9 || p[n])
		return false;
	uint64_t v = 0;
	for (int64_t i = 0; i < n; i++)
		push_digit(&v, p[i]);
	*ret = negative ? -(int64_t)v : (int64_t)v;
	return true;
}

static bool scan_quantity_suffix(const char *text, int64_t *ret_shift, uint64_t *ret_factor)
{
	static const struct {
		const char *name;
		int shift;
		unsigned bits;
	} suffixes[] = {{"", 0, 0}, {"n", -9, 0}, {"u", -6, 0}, {"m", -3, 0}, {"k", 3, 0}, {"M", 6, 0},
		{"G", 9, 0}, {"T", 12, 0}, {"P", 15, 0}, {"E", 18, 0}, {"Ki", 0, 10}, {"Mi", 0, 20},
		{"Gi", 0, 30}, {"Ti", 0, 40}, {"Pi", 0, 50}, {"Ei", 0, 60}};

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		if (str_eq(text, suffixes[i].name)) {
			*ret_shift = suffixes[i].shift;
			*ret_factor = 1ULL << suffixes[i].bits;
			return true;
		}
	}
	*ret_factor = 1;
	return scan_exponent(text, ret_shift);
}

int parse_quantity(const char *text, uint64_t *ret_bytes, struct error **err)
{
	struct decimal number;
	const char *p = text;
	int64_t shift;
	uint64_t factor;

	if (!scan_decimal(&p, &number) || !scan_quantity_suffix(p, &shift, &factor))
		return err_set(err, ERR_INVALID_ARGUMENT,
			QUOTE " is not a quantity (digits, fraction, suffix: 512Mi, 1.5G, 1e9)", text);
	if (!decimal_times(&number, shift, factor, ret_bytes))
		return err_set(err, ERR_INVALID_ARGUMENT, QUOTE " is more than %" PRId64, text, INT64_MAX);
	return 0;
}

/* Read a unit at *@p, which reaches up to the next number, and move *@p behind it. */
static bool scan_duration_unit(const char **p, uint64_t *ret_ns)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"µs", 1000}, {"ms", NS_PER_MS}, {"s", NS_PER_S},
		{"m", 60 * NS_PER_S}, {"h", 3600 * NS_PER_S}};
	size_t n = strcspn(*p, ".0123456789");

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		if (strlen(units[i].name) == n && memcmp(units[i].name, *p, n) == 0) {
			*p += n;
			*ret_ns = units[i].ns;
			return true;
		}
	}
	return false;
}

int parse_duration_ms(const char *text, uint64_t *ret_ms, struct error **err)
{
	const char *p = text;
	uint64_t total_ns = 0;

	if (str_eq(text, "0")) {
		*ret_ms = 0;
		return 0;
	}
	do {
		struct decimal number;
		uint64_t unit_ns;
		uint64_t ns;

		if (!scan_decimal(&p, &number) || !scan_duration_unit(&p, &unit_ns))
			return err_set(err, ERR_INVALID_ARGUMENT,
				QUOTE " is not a duration (300ms, 1.5s, 1h30m)", text);
		if (!decimal_times(&number, 0, unit_ns, &ns) ||
			__builtin_add_overflow(total_ns, ns, &total_ns) || total_ns > INT64_MAX)
			return err_set(err, ERR_INVALID_ARGUMENT, QUOTE " is too long a duration", text);
	} while (*p);
	*ret_ms = (total_ns + NS_PER_MS - 1) / NS_PER_MS;
	return 0;
}

static const char *const binary_suffixes[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};

const char *format_bytes(uint64_t bytes, char out[static 24])
{
	size_t i = 0;

	while (bytes > 0 && bytes % 1024 == 0) {
		bytes /= 1024;
		i++;
	}
	snprintf(out, 24, "%" PRIu64 "%s", bytes, binary_suffixes[i]);
	return out;
}

const char *format_bytes_rounded(uint64_t bytes, char out[static 24])
{
	uint64_t tenths = 0;
	size_t i = 0;

	for (; bytes >= 1024; i++) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
	}
	if (tenths > 0)
		snprintf(out, 24, "%" PRIu64 ".%" PRIu64 "%s", bytes, tenths, binary_suffixes[i]);
	else
		snprintf(out, 24, "%" PRIu64 "%s", bytes, binary_suffixes[i]);
	return out;
}
