/* SPDX-License-Identifier: Apache-2.0 */
/*
 * limits.h - all limits on what a peer can make a program store, do or wait for. All limits of net/ are
 * defined here.
 */
#pragma once

/* One gRPC message on the wire, as grpc-go; as objects it can be thirty times as large, so the arena has a
 * limit of its own. */
#define LIMIT_MESSAGE_BYTES (4u << 20)
#define LIMIT_ARENA_BYTES   (16u << 20)

/* Requests above that size can fill an arena, so only a few of them run at a time. Kubernetes' requests are
 * far smaller.
 */
#define LIMIT_BIG_MESSAGE_BYTES (64u << 10)
#define LIMIT_BIG_CALLS         4

/* Header fields of one request or reply: their bytes, and 32 more for each in HTTP/2 (RFC 9113 6.5.2). */
#define LIMIT_HEADER_BYTES 8192

/* HTTP/2 streams of one connection at a time. */
#define LIMIT_STREAMS 100

/* Calls of one server that are received, handled or answered, on all connections together. */
#define LIMIT_CALLS 4096

/* Calls of async methods of one server that have begun and not ended. */
#define LIMIT_ASYNC_CALLS 1024

/* Each connection may have that many calls and bytes, however many others have, so that a crowd cannot keep
 * a single peer out. Both are in addition to LIMIT_CALLS and LIMIT_BUFFERED_BYTES. */
#define LIMIT_RESERVED_CALLS 4
#define LIMIT_RESERVED_BYTES (16u << 10)

/* Requests of one channel of ours that have not ended: with a stream or waiting for one. */
#define LIMIT_CHANNEL_REQUESTS 1024

/* HTTP/1.1: body of a request or a reply; one ExtenderArgs with 5,000 full Node objects is about 30 MiB. */
#define LIMIT_HTTP1_BODY_BYTES (32u << 20)

/* Connections of one server, and those of them that have not yet made a valid request (newcomers). Beyond
 * the latter number the oldest newcomer is closed after some time, which is shorter if it is silent. */
#define LIMIT_CONNECTIONS 1024
#define LIMIT_NEWCOMERS   256
#define LIMIT_NEWCOMER_MS 1000
#define LIMIT_SILENT_MS   100

/* The time that a newcomer has while we compute its handshake, or when another one's was complete within the
 * last LIMIT_NEWCOMER_MS: thousands of nodes come at once when a controller was started. */
#define LIMIT_CROWD_MS 5000

/* Connections of an HTTP server, for metrics and probes. */
#define LIMIT_HTTP1_CONNECTIONS 64

/* Connections of a server for probes. Each makes one request: what they hold is little, and not for long. */
#define LIMIT_PROBE_CONNECTIONS 256

/* When all connections are in use, one is closed that waits for its peer and whose last request was so long
 * ago; otherwise further peers wait. */
#define LIMIT_REUSE_MS 1000

/* Log lines about refused peers, per second; further ones are counted. */
#define LIMIT_LOGGED_REFUSALS 10

/* Log lines about calls, per second: calls that never reached a handler, and calls that failed. */
#define LIMIT_LOGGED_CALLS 50

/* Bytes of requests that are not complete and of what is not sent: of one connection, and of all connections
 * of a server. Beyond them calls are refused. A peer that nevertheless makes us store more, with frames that
 * have to be answered, loses its connection at the last number. */
#define LIMIT_CONN_BUFFERED_BYTES (8u << 20)
#define LIMIT_BUFFERED_BYTES      (32u << 20)
#define LIMIT_HELD_BYTES          (40u << 20)

/* Bytes ready for the socket of one connection, above which nothing more is read from it. */
#define LIMIT_OUT_BYTES (256u << 10)

/* Time limits from accept() to the end of the TLS handshake, and from there (or, without TLS, from accept())
 * to the first valid request. */
#define LIMIT_HANDSHAKE_MS     10000
#define LIMIT_FIRST_REQUEST_MS 10000

/* Addresses of one server that are tried, and the time that each of them has at least. */
#define LIMIT_ADDRESSES  16
#define LIMIT_ADDRESS_MS 1000

/* HTTP/1.1: bytes of requests that wait for the reply of the one before. */
#define LIMIT_HTTP1_PIPELINED_BYTES (64u << 10)

/* HTTP/1.1: from the first byte of a request to its last; and between requests. */
#define LIMIT_HTTP1_REQUEST_MS 10000
#define LIMIT_HTTP1_IDLE_MS    120000

/* TCP: from the last byte that we send until the socket is closed, unless the peer closes it. */
#define LIMIT_LINGER_MS 10000

/* A TCP connection of gRPC without a stream. On unix sockets there is no such limit: clients that use
 * csi-lib-utils take the loss of an idle connection for the end of the driver, and exit. */
#define LIMIT_GRPC_IDLE_MS 300000

/* gRPC: from the header block of a request to its last byte. */
#define LIMIT_REQUEST_MS 60000

/* A call that takes too long is answered before its deadline, by a tenth of its time and at most by this: at
 * the deadline itself the client has given up, and would not see the message that says what is slow. */
#define LIMIT_ANSWER_EARLY_MS 500

/* How long a peer may read too slowly, and how many bytes it must read per second so as not to be too slow.
 */
#define LIMIT_STALLED_MS          60000
#define LIMIT_STALLED_BYTES_PER_S 1024

/* The same while all connections are in use: the one that has been too slow for longest is closed. */
#define LIMIT_BEHIND_MS          1000
#define LIMIT_BEHIND_BYTES_PER_S (64u << 10)

/* HTTP/1.1, while all connections are in use: how long a peer may have further requests waiting behind the
 * one that is answered. Clients of Kubernetes have none. */
#define LIMIT_QUEUED_MS 200

/* Bytes of replies to one peer that the kernel may buffer (SO_SNDBUF); it doubles the number for its own
 * needs (socket(7)). Without this limit it buffers megabytes for each peer that does not read, which count as
 * memory of the container. */
#define LIMIT_SEND_BUFFER_BYTES (256u << 10)

/* How long after our PING the server may take to send its answer, or anything else; as in client-go. */
#define LIMIT_PING_MS 15000

/* A connection on which nothing was received for the whole time limit of a request, and for that long, is
 * not used for further requests. */
#define LIMIT_SILENCE_MS 1000

/* Certificate, key and CA files. */
#define LIMIT_PEM_BYTES (256u << 10)

/* Threads that work on TLS handshakes; peers that wait for one of them are newcomers. */
#define LIMIT_HANDSHAKE_THREADS 4

/* Steps of handshakes that wait for one of them, above which no peer is accepted for TLS: a crowd waits in
 * the backlog, so that an accepted peer gets its answer before it gives up or is closed as a newcomer. */
#define LIMIT_HANDSHAKES_WAITING 64

/* After a request to end: how long peers may take to read replies that are ready. Running calls are waited
 * for.
 */
#define LIMIT_DRAIN_MS 3000
