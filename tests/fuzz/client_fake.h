/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_fake.h - conn.h and addr_connect() without sockets, in place of the real ones: a target that links
 * this says what the server sends, and when a connection is lost.
 */
#pragma once

#include <stdbool.h>

#include "base/span.h"

/** fake_conn_exists() - whether there is a connection; the newest one is meant by the functions below. */
bool fake_conn_exists(void);

/** fake_conn_made() - how many connections were ever begun. */
unsigned fake_conn_made(void);

/** fake_conn_receive() - the server sends @bytes, and takes all that is sent. The connection may be gone
 * afterwards. */
void fake_conn_receive(struct span bytes);

/** fake_conn_lose() - the connection is lost. */
void fake_conn_lose(void);
