/* SPDX-License-Identifier: Apache-2.0 */
#include "net/http2/h2_addresses.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "net/limits.h"

static int add(struct h2_addresses *a, const char *endpoint, struct error **err)
{
	if (addr_parse(endpoint, &a->addrs[a->n], err) < 0)
		return -1;
	strv_add(&a->endpoints, endpoint);
	a->n++;
	return 0;
}

int h2_addresses_set(struct h2_addresses *a, char *const *endpoints, struct error **err)
{
	CLEANUP(h2_addresses_done) struct h2_addresses new = {0};
	size_t n = strv_len(endpoints);

	if (n > LIMIT_ADDRESSES)
		n = LIMIT_ADDRESSES;
	new.addrs = x_calloc(n, sizeof(*new.addrs));
	for (size_t i = 0; i < n; i++) {
		if (a->n > 0 && str_eq(endpoints[i], a->endpoints[a->at]))
			new.at = i;
		if (add(&new, endpoints[i], err) < 0)
			return -1;
	}
	h2_addresses_done(a);
	*a = new;
	new = (struct h2_addresses){0};
	return 0;
}

void h2_addresses_done(struct h2_addresses *a)
{
	for (size_t i = 0; i < a->n; i++)
		addr_done(&a->addrs[i]);
	free(a->addrs);
	strv_free(a->endpoints);
	*a = (struct h2_addresses){0};
}

uint64_t h2_addresses_share_ms(const struct h2_addresses *a, uint64_t open_ms)
{
	uint64_t share_ms = open_ms / a->n;

	if (share_ms >= LIMIT_ADDRESS_MS)
		return share_ms;
	return open_ms < LIMIT_ADDRESS_MS ? open_ms : LIMIT_ADDRESS_MS;
}

bool h2_addresses_fail(struct h2_addresses *a)
{
	a->at = (a->at + 1) % a->n;
	a->n_failed = (a->n_failed + 1) % a->n;
	return a->n_failed > 0;
}

void h2_addresses_start_over(struct h2_addresses *a)
{
	a->n_failed = 0;
}
