/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/parse.h"
#include "tls_pair.h"

#define PAIRS 200

/* Limit for the memory of one end of an idle connection. The buffers of mbedtls alone have 33 KiB while they
 * exist. */
#define MAX_KIB 20

/* KiB of memory that is ours alone. */
static uint32_t private_kib(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(file_closep) FILE *file = fopen("/proc/self/smaps_rollup", "re");
	CLEANUP(free_charp) char *line = NULL;
	size_t size = 0;
	uint32_t kib = 0;

	while (kib == 0 && getline(&line, &size, file) >= 0) {
		char *number = line + strcspn(line, "0123456789");
		number[strspn(number, "0123456789")] = 0;
		if (strncmp(line, "Private_Dirty:", 14) == 0)
			ASSERT_OK(parse_u32(number, &kib, &err));
	}
	ck_assert_uint_gt(kib, 0);
	return kib;
}

static void exchange(struct tls_pair *p)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1000);

	tls_pair_open(p);
	tls_end_send(&p->client, &p->server, span_of("a short request"));
	tls_end_receive(&p->server, 100, &text);
	tls_end_send(&p->server, &p->client, span_of("a short reply"));
	tls_end_receive(&p->client, 100, &text);
	buf_done(&p->client.in);
	buf_done(&p->server.in);
}

/* Memory that was used before is the worst case: mbedtls clears all of it when it takes it again. */
START_TEST(idle_connections_hold_little_memory)
{
	static struct tls_pair pairs[PAIRS];
	CLEANUP(tls_context_unrefp)
	struct tls_context *client = certs_context(
		&(struct certs_choice){.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-node-controller"});
	CLEANUP(tls_context_unrefp)
	struct tls_context *server = certs_context(
		&(struct certs_choice){.role = TLS_SERVER, .ca = "own", .leaf = "own/pmem-registry"});
	uint32_t before = private_kib();

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < PAIRS; i++) {
			if (round > 0)
				tls_pair_done(&pairs[i]);
			tls_pair_init(&pairs[i], client, server, "pmem-registry");
			exchange(&pairs[i]);
		}
	}
	uint32_t used = private_kib() - before;
	for (unsigned i = 0; i < PAIRS; i++)
		tls_pair_done(&pairs[i]);
	ck_assert_msg(used / (2 * PAIRS) <= MAX_KIB, "%u KiB for each end", used / (2 * PAIRS));
}
END_TEST

CERTS_MAIN("tls_memory", idle_connections_hold_little_memory)
