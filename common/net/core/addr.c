/* SPDX-License-Identifier: Apache-2.0 */
#include "net/core/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/limits.h"
#include "os/unix_socket.h"

/* Thousands of nodes may come at once; they wait in this backlog while the handshakes of others run. */
#define BACKLOG 4096

union sock_addr {
	struct sockaddr any;
	struct sockaddr_un un;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

static int parse_unix(const char *endpoint, const char *path, struct addr *ret, struct error **err)
{
	if (path[0] != '/')
		return err_set(
			err, ERR_INVALID_ARGUMENT, "endpoint \"%s\": the path must be absolute", endpoint);
	if (str_ends(path, "/"))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "endpoint \"%s\": the path is a directory", endpoint);
	if (strlen(path) >= sizeof((struct sockaddr_un){0}.sun_path))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"endpoint \"%s\": the path is longer than %zu bytes", endpoint,
			sizeof((struct sockaddr_un){0}.sun_path) - 1);
	*ret = (struct addr){.is_unix = true, .path = x_strdup(path)};
	return 0;
}

static bool kernel_has_ipv6(void)
{
	CLEANUP(fd_closep) int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0;
}

/* Return: length of the address in @ret, or 0 when @host is not a numeric address, "" or "localhost". */
static socklen_t sock_addr_tcp(const char *host, uint16_t port, union sock_addr *ret)
{
	const char *text = str_eq(host, "localhost") ? "127.0.0.1" : host;

	if (str_empty(text))
		text = kernel_has_ipv6() ? "::" : "0.0.0.0";
	*ret = (union sock_addr){0};
	if (inet_pton(AF_INET, text, &ret->in.sin_addr) == 1) {
		ret->in.sin_family = AF_INET;
		ret->in.sin_port = htons(port);
		return sizeof(ret->in);
	}
	if (inet_pton(AF_INET6, text, &ret->in6.sin6_addr) != 1)
		return 0;
	ret->in6.sin6_family = AF_INET6;
	ret->in6.sin6_port = htons(port);
	return sizeof(ret->in6);
}

static bool is_ipv6(const char *text)
{
	struct in6_addr unused;

	return inet_pton(AF_INET6, text, &unused) == 1;
}

/* "host:port" or "[host]:port". In a pod's arguments $(POD_IP) is an IPv6 address without brackets. */
static int split_tcp(const char *endpoint, const char *text, struct addr *ret, struct error **err)
{
	const char *colon = strrchr(text, ':');
	CLEANUP(free_charp) char *host = NULL;
	size_t host_len;
	uint32_t port;

	if (!colon)
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint \"%s\" has no port", endpoint);
	if (parse_u32(colon + 1, &port, err) < 0)
		return err_wrap(err, "endpoint \"%s\"", endpoint);
	if (port > UINT16_MAX)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "endpoint \"%s\": port beyond %u", endpoint, UINT16_MAX);
	host_len = (size_t)(colon - text);
	if (host_len >= 2 && text[0] == '[' && text[host_len - 1] == ']')
		host = x_strndup(text + 1, host_len - 2);
	else
		host = x_strndup(text, host_len);
	if (text[0] == '[' ? !strchr(host, ':') : strchr(host, ':') && !is_ipv6(host))
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint \"%s\": \"%s\" is not a numeric address",
			endpoint, host);
	if (is_ipv6(text))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"endpoint \"%s\": is \"%s\" a port or a part of the IPv6 address? Write tcp://[ADDRESS]:PORT",
			endpoint, colon + 1);
	*ret = (struct addr){.host = TAKE_PTR(host), .port = (uint16_t)port};
	return 0;
}

static int parse_tcp(const char *endpoint, const char *text, struct addr *ret, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};
	union sock_addr unused;

	if (split_tcp(endpoint, text, &a, err) < 0)
		return -1;
	if (sock_addr_tcp(a.host, 0, &unused) == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint \"%s\": \"%s\" is not a numeric address",
			endpoint, a.host);
	*ret = a;
	a = (struct addr){0};
	return 0;
}

int addr_parse(const char *endpoint, struct addr *ret, struct error **err)
{
	if (str_starts(endpoint, "unix://"))
		return parse_unix(endpoint, endpoint + strlen("unix://"), ret, err);
	if (str_starts(endpoint, "tcp://"))
		return parse_tcp(endpoint, endpoint + strlen("tcp://"), ret, err);
	if (endpoint[0] == '/')
		return parse_unix(endpoint, endpoint, ret, err);
	return err_set(err, ERR_INVALID_ARGUMENT,
		"endpoint \"%s\" is neither unix:///path nor tcp://host:port", endpoint);
}

int addr_parse_name(const char *endpoint, struct addr *ret, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};

	if (!str_starts(endpoint, "tcp://"))
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint \"%s\" is not tcp://host:port", endpoint);
	if (split_tcp(endpoint, endpoint + strlen("tcp://"), &a, err) < 0)
		return -1;
	if (str_empty(a.host) || a.port == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint \"%s\" has no %s", endpoint,
			a.port == 0 ? "port" : "host");
	*ret = a;
	a = (struct addr){0};
	return 0;
}

void addr_done(struct addr *a)
{
	free(a->path);
	free(a->host);
	*a = (struct addr){0};
}

/* Return: @host, or @text with the usual form of an IPv6 address. */
static const char *usual_host(const char *host, char text[static INET6_ADDRSTRLEN])
{
	struct in6_addr address;

	if (inet_pton(AF_INET6, host, &address) != 1)
		return host;
	if (IN6_IS_ADDR_V4MAPPED(&address))
		return inet_ntop(AF_INET, &address.s6_addr[12], text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, &address, text, INET6_ADDRSTRLEN);
}

char *addr_format(const struct addr *a)
{
	char text[INET6_ADDRSTRLEN];
	const char *host = a->is_unix ? NULL : usual_host(a->host, text);

	if (a->is_unix)
		return x_asprintf("unix://%s", a->path);
	return x_asprintf(strchr(host, ':') ? "tcp://[%s]:%u" : "tcp://%s:%u", host, a->port);
}

static socklen_t sock_addr_of(const struct addr *a, union sock_addr *ret)
{
	if (!a->is_unix)
		return sock_addr_tcp(a->host, a->port, ret);
	*ret = (union sock_addr){.un = {.sun_family = AF_UNIX}};
	memcpy(ret->un.sun_path, a->path, strlen(a->path) + 1);
	return sizeof(ret->un);
}

static int socket_new(int family, int *ret_fd, struct error **err)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "socket");
	*ret_fd = fd;
	return 0;
}

static int listen_unix(struct addr *a, int fd, struct error **err)
{
	CLEANUP(fd_closep) int folder_fd = -1;
	union sock_addr sa;
	socklen_t len = sock_addr_of(a, &sa);
	struct stat st;

	if (unix_socket_lock_folder(a->path, &folder_fd, err) < 0)
		return -1;
	if (unix_socket_refuse_live(a->path, err) < 0)
		return -1;
	if (unlink(a->path) < 0 && errno != ENOENT)
		return err_set_errno(err, ERR_INTERNAL, errno, "remove stale \"%s\"", a->path);
	/* The file gets the mode of the socket's own inode (unix_bind() in linux/net/unix/af_unix.c), so the
	 * umask, which affects other threads, need not be changed.
	 */
	if (fchmod(fd, 0600) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "mode of socket \"%s\"", a->path);
	if (bind(fd, &sa.any, len) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "bind \"%s\"", a->path);
	if (listen(fd, BACKLOG) < 0 || lstat(a->path, &st) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "listen on \"%s\"", a->path);
	a->socket_dev = st.st_dev;
	a->socket_ino = st.st_ino;
	return 0;
}

static int listen_tcp(const struct addr *a, int fd, struct error **err)
{
	const int on = 1;
	const int off = 0;
	union sock_addr sa;
	socklen_t len = sock_addr_of(a, &sa);

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "set up socket");
	/* "::" takes IPv4 peers too, whatever net.ipv6.bindv6only says. */
	if (sa.any.sa_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "set up socket");
	if (bind(fd, &sa.any, len) < 0 || listen(fd, BACKLOG) < 0)
		return err_set_errno(err, errno == EADDRINUSE ? ERR_UNAVAILABLE : ERR_INTERNAL, errno,
			"listen on \"%s\" port %u", a->host, a->port);
	return 0;
}

int addr_listen(struct addr *a, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	union sock_addr sa;

	sock_addr_of(a, &sa);
	if (socket_new(sa.any.sa_family, &fd, err) < 0)
		return -1;
	if ((a->is_unix ? listen_unix(a, fd, err) : listen_tcp(a, fd, err)) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void addr_unlisten(const struct addr *a)
{
	struct stat st;

	if (!a->is_unix || lstat(a->path, &st) < 0)
		return;
	if (S_ISSOCK(st.st_mode) && st.st_dev == a->socket_dev && st.st_ino == a->socket_ino)
		unlink(a->path);
}

int addr_set_up_tcp(int fd, struct error **err)
{
	static const struct {
		int level, name, value;
	} options[] = {
		{IPPROTO_TCP, TCP_NODELAY, 1},
		{SOL_SOCKET, SO_KEEPALIVE, 1},
		{IPPROTO_TCP, TCP_KEEPIDLE, LIMIT_STALLED_MS / 1000 / 2},
		{IPPROTO_TCP, TCP_KEEPINTVL, LIMIT_STALLED_MS / 1000 / 6},
		{IPPROTO_TCP, TCP_USER_TIMEOUT, LIMIT_STALLED_MS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		int value = options[i].value;

		if (setsockopt(fd, options[i].level, options[i].name, &value, sizeof(value)) < 0)
			return err_set_errno(err, ERR_INTERNAL, errno, "set up socket");
	}
	return 0;
}

int addr_bound_sending(int fd, struct error **err)
{
	const int bytes = LIMIT_SEND_BUFFER_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes)) < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "limit the send buffer of a socket");
	return 0;
}

/* @dropped: close(), also by the end of the process, sends a reset instead of unsent data
 * (socket(7), SO_LINGER with a time of 0). */
static void set_unsent(int fd, bool dropped)
{
	const struct linger linger = {.l_onoff = dropped};

	/* Fails for descriptors only that are no socket. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void addr_keep_unsent(int fd)
{
	set_unsent(fd, /* dropped= */ false);
}

bool addr_has_unsent(int fd)
{
	int domain, unsent;
	socklen_t len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 || domain == AF_UNIX)
		return false;
	return ioctl(fd, SIOCOUTQ, &unsent) == 0 && unsent > 0;
}

bool addr_has_unread(int fd)
{
	int unread;

	return ioctl(fd, FIONREAD, &unread) == 0 && unread > 0;
}

bool addr_is_own_user(int fd, struct ucred *ret)
{
	socklen_t len = sizeof(*ret);

	*ret = (struct ucred){0};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &len) < 0)
		return false;
	return ret->uid == 0 || ret->uid == geteuid();
}

/* The credentials are those with which the server called listen() (unix(7)), so that a file which any user
 * can put at the path leads to no other program. */
static int check_server(const struct addr *a, int fd, struct error **err)
{
	struct ucred server;

	if (addr_is_own_user(fd, &server))
		return 0;
	return err_set(err, ERR_PERMISSION,
		"the server at \"%s\" runs as uid %u, which is neither root nor the user of this program: it "
		"is not asked",
		a->path, (unsigned)server.uid);
}

int addr_connect(const struct addr *a, int *ret_fd, struct error **err)
{
	CLEANUP(fd_closep) int fd = -1;
	union sock_addr sa;
	socklen_t len = sock_addr_of(a, &sa);

	if (socket_new(sa.any.sa_family, &fd, err) < 0)
		return -1;
	if (!a->is_unix && addr_set_up_tcp(fd, err) < 0)
		return -1;
	set_unsent(fd, /* dropped= */ !a->is_unix);
	if (connect(fd, &sa.any, len) < 0 && errno != EINPROGRESS) {
		if (a->is_unix)
			return err_set_errno(err, ERR_UNAVAILABLE, errno, "connect to \"%s\"", a->path);
		return err_set_errno(
			err, ERR_UNAVAILABLE, errno, "connect to \"%s\" port %u", a->host, a->port);
	}
	if (a->is_unix && check_server(a, fd, err) < 0)
		return -1;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static void peer_unix(int fd, struct buf *out)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0)
		buf_addf(out, "pid %d uid %u", (int)peer.pid, (unsigned)peer.uid);
}

void addr_peer_host(int fd, char ret[static ADDR_HOST_MAX])
{
	union sock_addr sa = {0};
	socklen_t len = sizeof(sa);

	ret[0] = '\0';
	if (getpeername(fd, &sa.any, &len) < 0)
		return;
	if (sa.any.sa_family == AF_INET)
		inet_ntop(AF_INET, &sa.in.sin_addr, ret, ADDR_HOST_MAX);
	else if (sa.any.sa_family == AF_INET6)
		inet_ntop(AF_INET6, &sa.in6.sin6_addr, ret, ADDR_HOST_MAX);
}

void addr_peer(int fd, struct buf *out)
{
	union sock_addr sa = {0};
	char host[ADDR_HOST_MAX];
	socklen_t len = sizeof(sa);

	if (getpeername(fd, &sa.any, &len) < 0)
		return;
	addr_peer_host(fd, host);
	if (sa.any.sa_family == AF_UNIX) {
		peer_unix(fd, out);
	} else if (sa.any.sa_family == AF_INET) {
		buf_addf(out, "%s:%u", host, ntohs(sa.in.sin_port));
	} else if (sa.any.sa_family == AF_INET6) {
		buf_addf(out, "[%s]:%u", host, ntohs(sa.in6.sin6_port));
	}
}

/* An IPv4 address as IPv6 sockets show it. */
static struct in6_addr mapped(const union sock_addr *sa)
{
	struct in6_addr address = {0};

	if (sa->any.sa_family == AF_INET6)
		return sa->in6.sin6_addr;
	address.s6_addr[10] = address.s6_addr[11] = 0xff;
	memcpy(&address.s6_addr[12], &sa->in.sin_addr, sizeof(sa->in.sin_addr));
	return address;
}

bool addr_is_peer_host(const struct addr *a, const char *peer)
{
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://%s", peer);
	CLEANUP(error_freep) struct error *malformed = NULL;
	CLEANUP(addr_done) struct addr other = {0};
	union sock_addr sa[2];

	if (a->is_unix || addr_parse(endpoint, &other, &malformed) < 0)
		return false;
	(void)sock_addr_of(a, &sa[0]);
	(void)sock_addr_of(&other, &sa[1]);
	const struct in6_addr ours = mapped(&sa[0]);
	const struct in6_addr theirs = mapped(&sa[1]);
	return memcmp(&ours, &theirs, sizeof(ours)) == 0;
}

bool addr_has_hung_up(int fd)
{
	char byte;

	return recv(fd, &byte, sizeof(byte), MSG_PEEK | MSG_DONTWAIT) == 0;
}
