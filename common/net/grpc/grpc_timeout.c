/* SPDX-License-Identifier: Apache-2.0 */
#include "net/grpc/grpc_timeout.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

#define TIMEOUT_MAX_DIGITS 8
#define TIMEOUT_MAX_VALUE  99999999u

static const struct timeout_unit {
	uint8_t letter;
	uint64_t ns;
} timeout_units[] = {
	{'n', 1},
	{'u', 1000},
	{'m', 1000000},
	{'S', 1000000000},
	{'M', 60 * 1000000000ull},
	{'H', 3600 * 1000000000ull},
};

static const struct timeout_unit *timeout_unit_of(uint8_t letter)
{
	for (size_t i = 0; i < ARRAY_SIZE(timeout_units); i++) {
		if (timeout_units[i].letter == letter)
			return &timeout_units[i];
	}
	return NULL;
}

int grpc_timeout_parse(struct span value, uint64_t *ret_ns, struct error **err)
{
	const struct timeout_unit *unit;
	char digits[TIMEOUT_MAX_DIGITS + 1] = {0};
	uint32_t n;

	if (value.n < 2 || value.n > TIMEOUT_MAX_DIGITS + 1)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "grpc-timeout has %zu characters, not 2 to 9", value.n);
	unit = timeout_unit_of(value.p[value.n - 1]);
	if (!unit)
		return err_set(err, ERR_INVALID_ARGUMENT, "grpc-timeout does not end in one of HMSmun");
	memcpy(digits, value.p, value.n - 1);
	if (strlen(digits) != value.n - 1)
		return err_set(err, ERR_INVALID_ARGUMENT, "grpc-timeout contains a NUL");
	if (parse_u32(digits, &n, err) < 0)
		return err_wrap(err, "grpc-timeout");
	*ret_ns = n > UINT64_MAX / 2 / unit->ns ? UINT64_MAX / 2 : n * unit->ns;
	return 0;
}

void grpc_timeout_format(uint64_t ns, char out[static 12])
{
	const struct timeout_unit *unit = timeout_units;
	uint64_t n = ns;

	/* an hour is long enough for the largest value */
	while (n > TIMEOUT_MAX_VALUE) {
		unit++;
		n = ns / unit->ns + (ns % unit->ns != 0);
	}
	snprintf(out, 12, "%u%c", (unsigned)n, unit->letter);
}
