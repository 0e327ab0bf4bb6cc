/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_fake.h - acceptor.h and workers.h without sockets and threads, in place of the real ones: a target
 * that links this says which bytes arrive, and when work is done.
 */
#pragma once

#include "net/core/acceptor.h"
#include "net/core/workers.h"

#define FAKE_WORKERS_MAX 4

struct workers {
	struct {
		void (*work)(void *user);
		void (*done)(void *user);
		void *user;
	} jobs[FAKE_WORKERS_MAX];
	unsigned n;
};

/** fake_workers_do() - do all work that waits. */
void fake_workers_do(struct workers *w);

/** fake_connect() - a peer connects to the last acceptor that was made. Return: the connection, known until
 * fake_is_open() says no. */
struct accepted *fake_connect(bool is_unix);

/** fake_is_open() - whether @a was not closed yet. */
bool fake_is_open(const struct accepted *a);

/** fake_receive() - the peer sends @bytes, and takes all that is sent. @a may be gone afterwards. */
void fake_receive(struct accepted *a, struct span bytes);

/** fake_close() - the peer goes away. */
void fake_close(struct accepted *a);
