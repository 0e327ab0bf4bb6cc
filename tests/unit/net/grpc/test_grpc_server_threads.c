/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that disconnect while workers process their calls, for the data that workers and the loop share. */
#include "grpc_fixture.h"

#define N_CLIENTS 8
#define N_ROUNDS  40
#define N_WORKERS 4

static struct fixture f;

static void begin_calls(struct raw *r)
{
	raw_open(r, &f);
	for (int i = 0; i < 3; i++)
		raw_begin(r, (struct raw_head){.path = ECHO "Work"});
}

START_TEST(clients_vanish_while_their_calls_run)
{
	struct raw clients[N_CLIENTS];

	fixture_open(&f, N_WORKERS);
	for (unsigned round = 0; round < N_ROUNDS; round++) {
		struct raw *waits = &clients[round % N_CLIENTS];

		for (unsigned i = 0; i < N_CLIENTS; i++)
			begin_calls(&clients[i]);
		raw_reset(waits, 1);
		raw_finished(waits, 3);
		for (unsigned i = 0; i < N_CLIENTS; i++)
			raw_done(&clients[i]);
	}
	fixture_close(&f);
	ck_assert_uint_gt(atomic_load(&f.echo.worked), 0);
}
END_TEST

START_TEST(clients_vanish_while_all_threads_wait_and_the_server_drains)
{
	struct raw clients[N_CLIENTS];

	fixture_open(&f, N_WORKERS);
	for (unsigned i = 0; i < N_CLIENTS; i++) {
		raw_open(&clients[i], &f);
		raw_begin(&clients[i], (struct raw_head){.path = ECHO "Wait"});
	}
	fixture_until_waiting(&f, N_WORKERS);
	for (unsigned i = 0; i < N_CLIENTS; i += 2)
		raw_done(&clients[i]);
	fixture_drain(&f);
	for (unsigned i = 0; i < N_WORKERS; i++)
		echo_release(&f.echo);
	fixture_free_server(&f);
	for (unsigned i = 1; i < N_CLIENTS; i += 2)
		raw_done(&clients[i]);
	ck_assert_uint_eq(atomic_load(&f.echo.worked), N_WORKERS);
	fixture_close(&f);
}
END_TEST

TMPDIR_MAIN("grpc_server_threads", clients_vanish_while_their_calls_run,
	clients_vanish_while_all_threads_wait_and_the_server_drains)
