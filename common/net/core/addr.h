/* SPDX-License-Identifier: Apache-2.0 */
/*
 * addr.h - endpoints: `unix:///path`, `unix://path`, `/path` and `tcp://host:port`, and their sockets. An
 * IPv6 address stands in brackets (RFC 3986 section 3.2.2); without them, as in tcp://$(POD_IP):10001 of a
 * pod, it is accepted where address and port cannot be confused.
 *
 * All sockets are non-blocking and CLOEXEC. Threads: safe. addr_listen() and addr_connect() do no DNS; hosts
 * are numeric, empty (any) or "localhost".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"

struct ucred;

struct addr {
	bool is_unix;
	char *path; /* unix: file system path, below the limit of sun_path */
	char *host; /* tcp: "" is any address */
	uint16_t port;
	uint64_t socket_dev; /* unix: the socket file that addr_listen() made */
	uint64_t socket_ino;
};

/** addr_parse() - parse an endpoint. Return: 0, or -1 with ERR_INVALID_ARGUMENT that quotes it. @ret:
 * addr_done(). */
int addr_parse(const char *endpoint, struct addr *ret, struct error **err) MUST_CHECK;
void addr_done(struct addr *a);

/** addr_format() - the endpoint of @a in the usual form, in which one address has one text: IPv6 addresses
 * are in brackets, as Go's net.Dial requires, and shortened as in RFC 5952; IPv4 addresses that are mapped
 * into IPv6 are IPv4 addresses. Return: caller frees. */
char *addr_format(const struct addr *a);

/** addr_parse_name() - parse `tcp://host:port` of a peer, whose host may be a name, for loop_look_up().
 * Return: as addr_parse(). */
int addr_parse_name(const char *endpoint, struct addr *ret, struct error **err) MUST_CHECK;

/**
 * addr_listen() - listening socket.
 * @a:      where; a stale unix socket is replaced, a live one (a server accepts on it) is refused; its mode
 * is 0600 from its creation; a missing last folder is created with mode 0700, an existing one is left as it
 * is
 * @ret_fd: caller closes; addr_unlisten() removes the socket file
 *
 * Return: 0, or -1 with ERR_UNAVAILABLE (address in use by a live server; named), ERR_PRECONDITION (path is
 * no socket), ERR_INTERNAL.
 */
int addr_listen(struct addr *a, int *ret_fd, struct error **err) MUST_CHECK;

/** addr_unlisten() - remove the unix socket file if it is still the one that addr_listen() made; nothing
 * happens for tcp. The listening descriptor must still be open: it keeps the inode number from being reused.
 */
void addr_unlisten(const struct addr *a);

/** addr_connect() - begin to connect. @ret_fd: becomes writable when connecting has ended; SO_ERROR has the
 * result. A TCP peer that vanishes is noticed within LIMIT_STALLED_MS. When a TCP connection is closed or the
 * process ends, data that the peer has not acknowledged are not sent any more: otherwise the kernel would
 * deliver a request whose sender is gone and of which the sender's successor does not know. The server of a
 * unix socket must have uid 0 or our own euid: otherwise every user who can put a file at its path could
 * answer instead of it. Return: 0, or -1 with ERR_UNAVAILABLE (nothing listens, or its backlog is full),
 * ERR_PERMISSION (a unix socket of another user), ERR_INTERNAL. */
int addr_connect(const struct addr *a, int *ret_fd, struct error **err) MUST_CHECK;

/** addr_keep_unsent() - what was written to @fd, of addr_connect(), is delivered although @fd is closed. */
void addr_keep_unsent(int fd);

/** addr_has_unsent() - whether a TCP peer has not acknowledged all that was written to @fd: if it is closed
 * now, and addr_keep_unsent() was not called, that is never delivered. False for other sockets, whose data is
 * with the peer at once. */
bool addr_has_unsent(int fd);

/** addr_has_unread() - whether bytes of the peer wait in the socket @fd, so that closing it resets the
 * connection. */
bool addr_has_unread(int fd);

/** addr_is_peer_host() - whether the host of @a, a TCP address, is that of @peer, as addr_peer() gives it. */
bool addr_is_peer_host(const struct addr *a, const char *peer);

/** addr_peer() - append the peer of the connected socket @fd to @out, for logs: "10.0.0.1:4711", or "pid 17
 * uid 0". Nothing is appended when it is not known. */
void addr_peer(int fd, struct buf *out);

/** addr_peer_host() - get the address of the peer of the TCP socket @fd in the usual form, without its port;
 * "" when it is not known, and for other sockets. */
#define ADDR_HOST_MAX 46 /* INET6_ADDRSTRLEN */
void addr_peer_host(int fd, char ret[static ADDR_HOST_MAX]);

/** addr_is_own_user() - whether the peer of the connected unix socket @fd has uid 0 or our own euid. The
 * file's mode already keeps other users out, unless it is changed or the socket is passed on. @ret: all 0
 * when the peer is not known. */
bool addr_is_own_user(int fd, struct ucred *ret);

/** addr_has_hung_up() - whether the peer of the connected socket @fd has closed its side and everything that
 * it sent was read. */
bool addr_has_hung_up(int fd);

/** addr_set_up_tcp() - set the options of a TCP connection. TCP_NODELAY: otherwise header, body and trailers
 * wait for each other's acknowledgement, which costs 40 ms per call. Keep-alive probes find a peer that has
 * vanished silently while its answer is awaited (tcp(7)).
 * Return: 0, or -1 with ERR_INTERNAL. */
int addr_set_up_tcp(int fd, struct error **err) MUST_CHECK;

/** addr_bound_sending() - limit what the kernel buffers for the peer of @fd to LIMIT_SEND_BUFFER_BYTES.
 * Return: 0, or -1 with ERR_INTERNAL. */
int addr_bound_sending(int fd, struct error **err) MUST_CHECK;
