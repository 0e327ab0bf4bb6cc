/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_fixture.h - a gRPC server with the echo service on a socket in tmpdir, and clients of it, all on one
 * loop.
 */
#pragma once

#include "interop/echo_service.h"
#include "net/core/conn.h"
#include "net/core/workers.h"
#include "net/grpc/grpc_client.h"
#include "net/grpc/grpc_server.h"

#include "unit/net/core/tmpdir.h"
#include "unit/net/http2/h2_pair.h"

#define ECHO "/pmem.test.Echo/"

struct fixture {
	struct loop *loop;
	struct workers *workers;
	struct grpc_server *server; /* NULL when a test has freed it */
	struct echo echo;
	struct grpc_service services[2];
	char *endpoint;
	char *path; /* of the socket */
	bool drained;
	struct buf ended; /* what was reported to the server's observer: "PATH STATUS\n" */
};

/** fixture_open() - start; @workers: number of threads. */
void fixture_open(struct fixture *f, unsigned workers);

/** fixture_open_tcp() - fixture_open() with a TCP port as the endpoint. */
void fixture_open_tcp(struct fixture *f, unsigned workers);

/** fixture_close() - drain the server unless that was done, free all. */
void fixture_close(struct fixture *f);

/** fixture_serve() - (another) server on the socket. */
void fixture_serve(struct fixture *f);

/** fixture_drain() - begin; f->drained is set at the end. */
void fixture_drain(struct fixture *f);

/** fixture_free_server() - when it has drained. */
void fixture_free_server(struct fixture *f);

/** fixture_until() - run the loop until @done(@user). */
void fixture_until(struct fixture *f, bool (*done)(void *user), void *user);

/** fixture_until_ended() - run the loop until @text stands in f->ended. */
void fixture_until_ended(struct fixture *f, const char *text);

/** fixture_rounds() - run the loop for a while, in which nothing is to happen. */
void fixture_rounds(struct fixture *f);

/** fixture_until_waiting() - run the loop until as many calls of Wait run. */
void fixture_until_waiting(struct fixture *f, unsigned n);

/** fixture_until_worked() - run the loop until as many calls of Work and Wait have ended. */
void fixture_until_worked(struct fixture *f, unsigned n);

/** One HTTP/2 client connection without any knowledge of gRPC. */
struct raw {
	struct fixture *fixture;
	struct h2_side side;
	struct conn *conn;
	int fd; /* the connection's */
	bool over;
};

/* The header fields of a request. A field that is NULL has the value that a proper client sends; timeout and
 * encoding are then absent. */
struct raw_head {
	const char *method, *path, *content_type, *timeout, *encoding, *te;
};

/** raw_open() - connect to the server. raw_close(): hang up; what was noted stays. raw_done(): and forget it.
 */
void raw_open(struct raw *r, struct fixture *f);
void raw_close(struct raw *r);
void raw_done(struct raw *r);

/** raw_request() - header block of a request. Return: number of the stream. */
int32_t raw_request(struct raw *r, struct raw_head head);

/** raw_write() - bytes of the body; raw_message(): the same with gRPC's prefix; raw_finish(): end of the
 * body. */
void raw_write(struct raw *r, int32_t stream, const void *bytes, size_t n);
void raw_message(struct raw *r, int32_t stream, const void *bytes, size_t n);
void raw_finish(struct raw *r, int32_t stream);

/** raw_reset() - give the stream up. */
void raw_reset(struct raw *r, int32_t stream);

/** raw_begin() - a complete request with {name: "a"}. Return: number of the stream. */
int32_t raw_begin(struct raw *r, struct raw_head head);

/** raw_until() - run the loop until @text stands in the log. */
void raw_until(struct raw *r, const char *text);

/** raw_until_over() - run the loop until the server has closed the connection. */
void raw_until_over(struct raw *r);

/** raw_finished() - run the loop until @stream is closed. Return: all that the connection has noted. */
const char *raw_finished(struct raw *r, int32_t stream);

/** raw_call() - a complete request with @message. Return: what came back, as the log of h2_side has it. */
const char *raw_call(struct raw *r, struct raw_head head, const void *message, size_t n);

/** raw_call_info() - the same with a message of two strings. */
const char *raw_call_info(struct raw *r, const char *path, const char *name, const char *vendor_version);

/* header block of an error, up to its message */
#define TRAILERS_ONLY(http, code)                                                                            \
	":status=" http " content-type=application/grpc grpc-status=" code " grpc-message="
