/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "net/core/addr.h"
#include "net/limits.h"
#include "tmpdir.h"

static struct addr parsed(const char *endpoint)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a;

	ASSERT_OK(addr_parse(endpoint, &a, &err));
	return a;
}

static struct addr in_folder(const char *name)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s", tmpdir, name);

	return parsed(path);
}

START_TEST(unix_endpoints_are_parsed)
{
	const char *const endpoints[] = {"unix:///run/x.sock", "/run/x.sock"};

	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++) {
		struct addr a = parsed(endpoints[i]);

		ck_assert(a.is_unix);
		ck_assert_str_eq(a.path, "/run/x.sock");
		addr_done(&a);
	}
}
END_TEST

START_TEST(endpoints_of_peers_may_have_names)
{
	static const char *const bad[] = {"tcp://:80", "tcp://name", "tcp://name:0", "tcp://fd00::1:80",
		"unix:///run/x.sock", "name:80"};
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a;

	ASSERT_OK(addr_parse_name("tcp://registry.example:80", &a, &err));
	ck_assert_str_eq(a.host, "registry.example");
	ck_assert_uint_eq(a.port, 80);
	addr_done(&a);
	ASSERT_OK(addr_parse_name("tcp://[fd00::1]:80", &a, &err));
	ck_assert_str_eq(a.host, "fd00::1");
	addr_done(&a);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		ASSERT_FAILS(addr_parse_name(bad[i], &a, &err), ERR_INVALID_ARGUMENT, bad[i]);
}
END_TEST

START_TEST(tcp_endpoints_are_numeric_any_or_localhost)
{
	static const struct {
		const char *endpoint, *host;
		uint16_t port;
	} cases[] = {
		{"tcp://127.0.0.1:80", "127.0.0.1", 80},
		{"tcp://127.9.9.9:65535", "127.9.9.9", 65535},
		{"tcp://[::1]:1", "::1", 1},
		{"tcp://localhost:0", "localhost", 0},
		{"tcp://:8080", "", 8080},
		{"tcp://0.0.0.0:80", "0.0.0.0", 80},
		{"tcp://[::]:80", "::", 80},
		{"tcp://192.0.2.1:80", "192.0.2.1", 80},
		{"tcp://[2001:db8::1]:80", "2001:db8::1", 80},
		{"tcp://fd00::5:10001", "fd00::5", 10001},
		{"tcp://::1:10001", "::1", 10001},
		{"tcp://1:2:3:4:5:6:7:8:80", "1:2:3:4:5:6:7:8", 80},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct addr a = parsed(cases[i].endpoint);

		ck_assert(!a.is_unix);
		ck_assert_str_eq(a.host, cases[i].host);
		ck_assert_uint_eq(a.port, cases[i].port);
		addr_done(&a);
	}
}
END_TEST

START_TEST(endpoints_are_written_as_everybody_reads_them)
{
	static const char *const cases[][2] = {
		{"tcp://fd00::5:10001", "tcp://[fd00::5]:10001"},
		{"tcp://[fd00::5]:1", "tcp://[fd00::5]:1"},
		{"tcp://[2001:DB8:0:0::1]:1", "tcp://[2001:db8::1]:1"},
		{"tcp://[::ffff:192.0.2.1]:1", "tcp://192.0.2.1:1"},
		{"tcp://192.0.2.1:80", "tcp://192.0.2.1:80"},
		{"tcp://localhost:80", "tcp://localhost:80"},
		{"tcp://:80", "tcp://:80"},
		{"/run/x", "unix:///run/x"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct addr a = parsed(cases[i][0]);
		CLEANUP(free_charp) char *text = addr_format(&a);

		ck_assert_str_eq(text, cases[i][1]);
		addr_done(&a);
	}
}
END_TEST

START_TEST(an_address_that_could_be_all_or_half_of_it_asks_for_brackets)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a;

	ASSERT_FAILS(
		addr_parse("tcp://fd00::5:8080", &a, &err), ERR_INVALID_ARGUMENT, "tcp://[ADDRESS]:PORT");
}
END_TEST

START_TEST(malformed_endpoints_are_quoted_in_the_error)
{
	static const char *const endpoints[] = {
		"",
		"x",
		"http://h:1",
		"unix:/run/x",
		"unix://run/x",
		"unix://",
		"/run/",
		"tcp://",
		"tcp://host",
		"tcp://127.0.0.1",
		"tcp://127.0.0.1:",
		"tcp://127.0.0.1:x",
		"tcp://127.0.0.1:65536",
		"tcp://127.0.0.1:-1",
		"tcp://example.com:80",
		"tcp://127.0.0.256:80",
		"tcp://::1:80",
		"tcp://[127.0.0.1]:80",
		"tcp://[::1:80",
		"tcp://::1]:80",
		"tcp://[]:80",
		"tcp://fd00::5:8080", /* could be all address */
		"tcp://fd00::5:10001:80000",
		"tcp://fd00::5:",
	};
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a;

	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++) {
		CLEANUP(free_charp) char *quoted = x_asprintf("\"%s\"", endpoints[i]);

		ASSERT_FAILS(addr_parse(endpoints[i], &a, &err), ERR_INVALID_ARGUMENT, quoted);
	}
}
END_TEST

START_TEST(a_path_must_fit_into_a_socket_address)
{
	CLEANUP(error_freep) struct error *err = NULL;
	char path[sizeof((struct sockaddr_un){0}.sun_path) + 1];
	struct addr a;

	memset(path, 'x', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = 0;
	ASSERT_FAILS(addr_parse(path, &a, &err), ERR_INVALID_ARGUMENT, "longer than 107");
	path[sizeof(path) - 2] = 0;
	ASSERT_OK(addr_parse(path, &a, &err));
	addr_done(&a);
}
END_TEST

static void assert_connects(int listen_fd, const struct addr *a)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int client = -1;
	CLEANUP(fd_closep) int server = -1;
	struct pollfd accepting = {.fd = listen_fd, .events = POLLIN};

	ASSERT_OK(addr_connect(a, &client, &err));
	ck_assert_int_eq(poll(&accepting, 1, 10000), 1);
	server = accept(listen_fd, NULL, NULL);
	ck_assert_int_ge(server, 0);
}

START_TEST(a_unix_socket_is_made_with_its_folder_and_removed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct addr a = in_folder("new/s");
	struct stat st;

	umask(0);
	ASSERT_OK(addr_listen(&a, &fd, &err));
	ck_assert_int_eq(stat(a.path, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFSOCK | 0600);
	*strrchr(a.path, '/') = 0;
	ck_assert_int_eq(stat(a.path, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFDIR | 0700);
	a.path[strlen(a.path)] = '/';
	assert_connects(fd, &a);
	addr_unlisten(&a);
	ck_assert_int_eq(access(a.path, F_OK), -1);
	addr_done(&a);
}
END_TEST

static atomic_bool watching;

/* Looks at the socket file all the time and counts looks at which it was open to others. */
static void *watch_mode(void *user)
{
	uintptr_t loose = 0;
	struct stat st;

	while (atomic_load(&watching)) {
		if (stat(user, &st) == 0 && (st.st_mode & 0177))
			loose++;
	}
	return (void *)loose;
}

START_TEST(a_unix_socket_is_never_open_to_others)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a = in_folder("s");
	pthread_t watcher;
	void *loose;

	umask(0);
	atomic_store(&watching, true);
	ck_assert_int_eq(pthread_create(&watcher, NULL, watch_mode, a.path), 0);
	for (int i = 0; i < 2000; i++) {
		CLEANUP(fd_closep) int fd = -1;

		ASSERT_OK(addr_listen(&a, &fd, &err));
		addr_unlisten(&a);
	}
	atomic_store(&watching, false);
	pthread_join(watcher, &loose);
	ck_assert_ptr_null(loose);
	addr_done(&a);
}
END_TEST

START_TEST(an_existing_folder_is_left_as_it_is)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct addr a = in_folder("s");
	struct stat st;

	ck_assert_int_eq(chmod(tmpdir, 0755), 0);
	ASSERT_OK(addr_listen(&a, &fd, &err));
	ck_assert_int_eq(stat(tmpdir, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFDIR | 0755);
	addr_done(&a);
}
END_TEST

START_TEST(a_stale_socket_is_replaced)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct addr a = in_folder("s");

	ASSERT_OK(addr_listen(&a, &fd, &err));
	close(TAKE_FD(fd));
	ck_assert_int_eq(access(a.path, F_OK), 0);
	ASSERT_OK(addr_listen(&a, &fd, &err));
	assert_connects(fd, &a);
	addr_done(&a);
}
END_TEST

START_TEST(a_live_socket_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct addr a = in_folder("s"), b = in_folder("s");
	int other = -1;

	ASSERT_OK(addr_listen(&a, &fd, &err));
	ASSERT_FAILS(addr_listen(&b, &other, &err), ERR_UNAVAILABLE, a.path);
	ck_assert_int_eq(other, -1);
	ck_assert_int_eq(access(a.path, F_OK), 0);
	addr_done(&a);
	addr_done(&b);
}
END_TEST

START_TEST(a_live_socket_with_a_full_backlog_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct addr a = in_folder("s"), b = in_folder("s");
	int other = -1, clients[3];

	ASSERT_OK(addr_listen(&a, &fd, &err));
	ck_assert_int_eq(listen(fd, 1), 0);
	for (size_t i = 0; i < 2; i++)
		ASSERT_OK(addr_connect(&a, &clients[i], &err));
	ASSERT_FAILS(addr_connect(&a, &clients[2], &err), ERR_UNAVAILABLE, a.path);
	ASSERT_FAILS(addr_listen(&b, &other, &err), ERR_UNAVAILABLE, "in use");
	addr_done(&a);
	addr_done(&b);
}
END_TEST

START_TEST(what_is_no_socket_is_not_replaced)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a = in_folder("file");
	int fd = -1;
	FILE *f = fopen(a.path, "w");

	fclose(f);
	ASSERT_FAILS(addr_listen(&a, &fd, &err), ERR_PRECONDITION, "is not a socket");
	ck_assert_int_eq(access(a.path, F_OK), 0);
	ck_assert_int_eq(unlink(a.path), 0);
	ck_assert_int_eq(symlink("/nonexistent", a.path), 0);
	ASSERT_FAILS(addr_listen(&a, &fd, &err), ERR_PRECONDITION, "is not a socket");
	addr_done(&a);
}
END_TEST

START_TEST(a_missing_parent_of_the_folder_is_an_error)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a = in_folder("no/such/s");
	int fd = -1;

	ASSERT_FAILS(addr_listen(&a, &fd, &err), ERR_INTERNAL, "no/such");
	addr_done(&a);
}
END_TEST

START_TEST(a_socket_that_took_our_place_is_not_removed)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int ours = -1;
	CLEANUP(fd_closep) int theirs = -1;
	struct addr a = in_folder("s"), b = in_folder("s");

	ASSERT_OK(addr_listen(&a, &ours, &err));
	ck_assert_int_eq(unlink(a.path), 0);
	ASSERT_OK(addr_listen(&b, &theirs, &err));
	addr_unlisten(&a);
	ck_assert_int_eq(access(a.path, F_OK), 0);
	addr_unlisten(&b);
	ck_assert_int_eq(access(a.path, F_OK), -1);
	addr_unlisten(&b);
	addr_done(&a);
	addr_done(&b);
}
END_TEST

START_TEST(connecting_to_nothing_is_unavailable)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct addr a = in_folder("s");
	int fd = -1;

	ASSERT_FAILS(addr_connect(&a, &fd, &err), ERR_UNAVAILABLE, a.path);
	ck_assert_int_eq(fd, -1);
	addr_done(&a);
}
END_TEST

static uint16_t port_of(int fd)
{
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);
	const void *p = &ss;

	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	if (ss.ss_family == AF_INET)
		return ntohs(((const struct sockaddr_in *)p)->sin_port);
	return ntohs(((const struct sockaddr_in6 *)p)->sin6_port);
}

START_TEST(tcp_listens_on_loopback_and_on_any_address)
{
	static const char *const endpoints[] = {"tcp://127.0.0.1:0", "tcp://localhost:0", "tcp://:0"};

	for (size_t i = 0; i < ARRAY_SIZE(endpoints); i++) {
		CLEANUP(error_freep) struct error *err = NULL;
		CLEANUP(fd_closep) int fd = -1;
		struct addr a = parsed(endpoints[i]);
		struct addr to = parsed("tcp://127.0.0.1:0");

		ASSERT_OK(addr_listen(&a, &fd, &err));
		to.port = port_of(fd);
		assert_connects(fd, &to);
		addr_unlisten(&a);
		addr_done(&a);
		addr_done(&to);
	}
}
END_TEST

START_TEST(a_tcp_port_in_use_is_unavailable)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	struct addr a = parsed("tcp://127.0.0.1:0");
	int other = -1;

	ASSERT_OK(addr_listen(&a, &fd, &err));
	a.port = port_of(fd);
	ASSERT_FAILS(addr_listen(&a, &other, &err), ERR_UNAVAILABLE, "127.0.0.1");
	addr_done(&a);
}
END_TEST

static int option_of(int fd, int level, int name)
{
	socklen_t len = sizeof(int);
	int value = -1;

	ck_assert_int_eq(getsockopt(fd, level, name, &value, &len), 0);
	return value;
}

START_TEST(a_tcp_peer_that_vanishes_is_found_out)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int fd = -1;
	CLEANUP(fd_closep) int client = -1;
	struct addr a = parsed("tcp://127.0.0.1:0");

	ASSERT_OK(addr_listen(&a, &fd, &err));
	a.port = port_of(fd);
	ASSERT_OK(addr_connect(&a, &client, &err));
	ck_assert_int_eq(option_of(client, SOL_SOCKET, SO_KEEPALIVE), 1);
	ck_assert_int_eq(option_of(client, IPPROTO_TCP, TCP_KEEPIDLE), LIMIT_STALLED_MS / 2000);
	ck_assert_int_eq(option_of(client, IPPROTO_TCP, TCP_USER_TIMEOUT), LIMIT_STALLED_MS);
	addr_done(&a);
}
END_TEST

/* Connects to a listener at @a. Return: the address of the client as the listener sees it; caller frees. */
static char *peer_at(struct addr *a)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int listen_fd = -1;
	CLEANUP(fd_closep) int client = -1;
	CLEANUP(fd_closep) int server = -1;
	CLEANUP(buf_done) struct buf out = BUF_INIT(100);
	char host[ADDR_HOST_MAX];

	ASSERT_OK(addr_listen(a, &listen_fd, &err));
	if (!a->is_unix)
		a->port = port_of(listen_fd);
	ASSERT_OK(addr_connect(a, &client, &err));
	ck_assert_int_eq(poll(&(struct pollfd){.fd = listen_fd, .events = POLLIN}, 1, -1), 1);
	server = accept(listen_fd, NULL, NULL);
	ck_assert_int_ge(server, 0);
	addr_peer(server, &out);
	addr_peer_host(server, host);
	ck_assert_str_eq(host, a->is_unix ? "" : a->host);
	if (!a->is_unix)
		a->port = port_of(client);
	return x_strdup(buf_str(&out));
}

/* The other end does not read, so that its machine acknowledges only what it has room for. */
START_TEST(what_a_tcp_peer_has_not_acknowledged_is_unsent)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int server = -1;
	CLEANUP(fd_closep) int client = -1;
	static const char bytes[65536];
	struct addr a = parsed("tcp://127.0.0.1:0");

	ASSERT_OK(addr_listen(&a, &server, &err));
	a.port = port_of(server);
	ASSERT_OK(addr_connect(&a, &client, &err));
	ck_assert_int_eq(poll(&(struct pollfd){.fd = client, .events = POLLOUT}, 1, -1), 1);
	ck_assert(!addr_has_unsent(client));
	while (send(client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	ck_assert(addr_has_unsent(client));
	addr_done(&a);
}
END_TEST

START_TEST(what_a_unix_socket_has_taken_is_with_the_peer)
{
	int pair[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	ck_assert_int_eq(send(pair[0], "x", 1, MSG_NOSIGNAL), 1);
	ck_assert(!addr_has_unsent(pair[0]));
	ck_assert(!addr_has_unread(pair[0]));
	ck_assert(addr_has_unread(pair[1]));
	close(pair[0]);
	close(pair[1]);
}
END_TEST

START_TEST(peers_are_told_by_address_or_process)
{
	struct addr tcp = parsed("tcp://127.0.0.1:0"), tcp6 = parsed("tcp://[::1]:0"), local = in_folder("s");
	CLEANUP(free_charp) char *local_peer = peer_at(&local);
	CLEANUP(free_charp) char *tcp_peer = peer_at(&tcp);
	CLEANUP(free_charp) char *tcp6_peer = peer_at(&tcp6);
	CLEANUP(free_charp) char *local_wanted = x_asprintf("pid %d uid %u", getpid(), geteuid());
	CLEANUP(free_charp) char *tcp_wanted = x_asprintf("127.0.0.1:%u", tcp.port);
	CLEANUP(free_charp) char *tcp6_wanted = x_asprintf("[::1]:%u", tcp6.port);

	ck_assert_str_eq(local_peer, local_wanted);
	ck_assert_str_eq(tcp_peer, tcp_wanted);
	ck_assert_str_eq(tcp6_peer, tcp6_wanted);
	addr_unlisten(&local);
	addr_done(&local);
	addr_done(&tcp);
	addr_done(&tcp6);
}
END_TEST

START_TEST(a_server_of_another_user_is_refused)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int server = -1;
	CLEANUP(fd_closep) int client = -1;
	struct addr a = in_folder("s");

	if (geteuid() != 0) {
		fprintf(stderr, "SKIP: only root can become another user\n");
		addr_done(&a);
		return;
	}
	ASSERT_OK(addr_listen(&a, &server, &err));
	/* The socket remembers the user that called listen() last. */
	ck_assert_int_eq(seteuid(65534), 0);
	ck_assert_int_eq(listen(server, 1), 0);
	ck_assert_int_eq(seteuid(0), 0);
	ASSERT_FAILS(addr_connect(&a, &client, &err), ERR_PERMISSION, "uid 65534");
	ck_assert_int_eq(listen(server, 1), 0);
	ASSERT_OK(addr_connect(&a, &client, &err));
	addr_done(&a);
}
END_TEST

START_TEST(what_is_not_connected_has_no_peer)
{
	CLEANUP(fd_closep) int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct buf out = BUF_INIT(100);

	addr_peer(fd, &out);
	ck_assert_uint_eq(out.len, 0);
}
END_TEST

TMPDIR_MAIN("addr", unix_endpoints_are_parsed, tcp_endpoints_are_numeric_any_or_localhost,
	endpoints_of_peers_may_have_names, malformed_endpoints_are_quoted_in_the_error,
	endpoints_are_written_as_everybody_reads_them,
	an_address_that_could_be_all_or_half_of_it_asks_for_brackets, a_path_must_fit_into_a_socket_address,
	a_unix_socket_is_made_with_its_folder_and_removed, a_unix_socket_is_never_open_to_others,
	an_existing_folder_is_left_as_it_is, a_stale_socket_is_replaced, a_live_socket_is_refused,
	a_live_socket_with_a_full_backlog_is_refused, what_is_no_socket_is_not_replaced,
	a_missing_parent_of_the_folder_is_an_error, a_socket_that_took_our_place_is_not_removed,
	connecting_to_nothing_is_unavailable, tcp_listens_on_loopback_and_on_any_address,
	a_tcp_port_in_use_is_unavailable, a_tcp_peer_that_vanishes_is_found_out,
	what_a_tcp_peer_has_not_acknowledged_is_unsent, what_a_unix_socket_has_taken_is_with_the_peer,
	peers_are_told_by_address_or_process, what_is_not_connected_has_no_peer,
	a_server_of_another_user_is_refused)
