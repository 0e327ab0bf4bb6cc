/* SPDX-License-Identifier: Apache-2.0 */
/* Our two roles with openssl as the peer, which can use protocols that we refuse. */
#include <mbedtls/version.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "os/spawn.h"
#include "tls_pair.h"

#define MAX_ARGS  32
#define MAX_BYTES 1000000

/* openssl as a child, and our end of its connection. */
struct foreign {
	struct child child;
	int listener;
	int fd;
	struct tls_context *context;
	struct tls_end end; /* its output collects in sent */
	struct tls_end sent;
	struct buf said; /* stdout of openssl */
};

static void foreign_init(struct foreign *f, const struct certs_choice *choice)
{
	*f = (struct foreign){.child = CHILD_INIT, .listener = -1, .fd = -1};
	f->context = certs_context(choice);
	f->said = BUF_INIT(MAX_BYTES);
}

static void hang_up(struct foreign *f)
{
	fd_closep(&f->fd);
	f->fd = -1;
	tls_free(TAKE_PTR(f->end.tls));
	buf_done(&f->end.in);
	buf_done(&f->sent.in);
	error_clear(&f->end.error);
}

static void foreign_done(struct foreign *f)
{
	hang_up(f);
	fd_closep(&f->listener);
	child_stop(&f->child, 100);
	tls_context_unref(f->context);
	buf_done(&f->said);
}

/* @args of openssl, and the files of @leaf. */
static void start(struct foreign *f, const char *const *args, const char *leaf)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *ca = certs_path("own/ca.pem");
	CLEANUP(free_charp) char *cert = x_asprintf("%s/%s.pem", certs_dir, leaf);
	CLEANUP(free_charp) char *key = x_asprintf("%s/%s-key.pem", certs_dir, leaf);
	const char *const files[] = {"-CAfile", ca, "-cert", cert, "-key", key};
	const char *argv[MAX_ARGS] = {"openssl"};
	size_t n = 1;

	for (; *args; args++)
		argv[n++] = *args;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		argv[n++] = files[i];
	ck_assert_uint_lt(n, MAX_ARGS);
	ASSERT_OK(child_start(argv, NULL, &f->child, &err));
}

static const struct sockaddr_in any_port = {.sin_family = AF_INET, .sin_addr = {.s_addr = 0x0100007f}};

/* openssl s_client with @args is about to connect. */
static void start_client(struct foreign *f, const char *const *args)
{
	struct sockaddr_in address = any_port;
	socklen_t size = sizeof(address);
	const char *argv[MAX_ARGS] = {"s_client", "-connect"};
	size_t n = 3;

	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(f->listener, (const struct sockaddr *)&address, size), 0);
	ck_assert_int_eq(listen(f->listener, 8), 0);
	ck_assert_int_eq(getsockname(f->listener, (struct sockaddr *)&address, &size), 0);
	CLEANUP(free_charp) char *endpoint = x_asprintf("127.0.0.1:%u", ntohs(address.sin_port));
	argv[2] = endpoint;
	for (; *args; args++)
		argv[n++] = *args;
	start(f, argv, "own/pmem-node-controller");
}

static void begin(struct foreign *f, const char *peer_name)
{
	f->end = (struct tls_end){.tls = tls_new(f->context, peer_name), .in = BUF_INIT(MAX_BYTES)};
	f->sent = (struct tls_end){.in = BUF_INIT(MAX_BYTES)};
}

static void take_connection(struct foreign *f)
{
	f->fd = accept(f->listener, NULL, NULL);
	ck_assert_int_ge(f->fd, 0);
	begin(f, NULL);
}

/* Appends what openssl says to f->said. Return: false when it has ended. */
static bool listen_to(struct foreign *f)
{
	struct pollfd stdout_fd = {.fd = f->child.stdout_fd, .events = POLLIN};
	char text[4096];
	ssize_t n;

	ck_assert_int_ge(poll(&stdout_fd, 1, -1), 0);
	n = read(f->child.stdout_fd, text, sizeof(text));
	if (n > 0)
		buf_add(&f->said, text, (size_t)n);
	return n > 0;
}

/* openssl s_server with @args and the files of @leaf; we connect to the port that it chooses. */
static void start_server_as(struct foreign *f, const char *leaf, const char *const *args)
{
	static const char marker[] = "ACCEPT 127.0.0.1:";
	CLEANUP(error_freep) struct error *err = NULL;
	const char *argv[MAX_ARGS] = {"s_server", "-accept", "127.0.0.1:0"};
	struct sockaddr_in address = any_port;
	size_t n = 3;
	uint32_t port;

	for (; *args; args++)
		argv[n++] = *args;
	start(f, argv, leaf);
	while (!strstr(buf_str(&f->said), marker) || f->said.data[f->said.len - 1] != '\n')
		ck_assert(listen_to(f));
	CLEANUP(free_charp)
	char *number = x_strdup(strstr(buf_str(&f->said), marker) + strlen(marker));
	number[strcspn(number, "\n")] = 0;
	ASSERT_OK(parse_u32(number, &port, &err));
	address.sin_port = htons((uint16_t)port);
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(f->fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	begin(f, "pmem-registry");
}

static void start_server(struct foreign *f, const char *const *args)
{
	start_server_as(f, "own/pmem-registry", args);
}

static void send_all(struct foreign *f)
{
	struct span out = buf_span(&f->sent.in);

	while (out.n > 0) {
		ssize_t n = send(f->fd, out.p, out.n, MSG_NOSIGNAL);
		if (n < 0)
			break; /* openssl had enough */
		out.p += n;
		out.n -= (size_t)n;
	}
	buf_reset(&f->sent.in);
}

/* Waits for bytes of openssl. Return: false when it has hung up. */
static bool receive_some(struct foreign *f)
{
	uint8_t bytes[4096];
	ssize_t n = recv(f->fd, bytes, sizeof(bytes), 0);

	if (n > 0)
		buf_add(&f->end.in, bytes, (size_t)n);
	return n > 0;
}

static void shake(struct foreign *f)
{
	do {
		tls_end_step(&f->end, &f->sent);
		send_all(f);
	} while (!f->end.complete && !f->end.error && receive_some(f));
}

static void check_open(struct foreign *f)
{
	shake(f);
	ck_assert_msg(f->end.complete, "%s", f->end.error ? f->end.error->msg : "openssl hung up");
}

static void check_refused(struct foreign *f, const char *says)
{
	shake(f);
	ck_assert(!f->end.complete);
	ck_assert_msg(f->end.error, "openssl hung up");
	ck_assert_msg(strstr(f->end.error->msg, says), "\"%s\" lacks \"%s\"", f->end.error->msg, says);
}

/* Hangs up and waits for the end of what openssl has to say. */
static void check_said(struct foreign *f, const char *text)
{
	hang_up(f);
	close(TAKE_FD(f->child.stdin_fd));
	while (listen_to(f))
		;
	ck_assert_msg(strstr(buf_str(&f->said), text), "%s\nlacks \"%s\"", buf_str(&f->said), text);
}

static const struct certs_choice server = {
	.role = TLS_SERVER, .ca = "own", .leaf = "own/pmem-registry", .alpn = "h2"};
static const struct certs_choice client = {
	.role = TLS_CLIENT, .ca = "own", .leaf = "own/pmem-node-controller", .alpn = "h2"};

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check_client(const char *const *args, const char *said)
{
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &server);
	start_client(&f, args);
	take_connection(&f);
	check_open(&f);
	check_said(&f, said);
}

static void check_bad_client(const char *const *args, const char *says)
{
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &server);
	start_client(&f, args);
	take_connection(&f);
	check_refused(&f, says);
}

static void check_server(const char *const *args)
{
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &client);
	start_server(&f, args);
	check_open(&f);
}

static void check_bad_server(const char *const *args, const char *says)
{
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &client);
	start_server(&f, args);
	check_refused(&f, says);
}

START_TEST(clients_with_every_suite_of_ours_are_served)
{
	check_client(ARGS("-alpn", "h2"), "ALPN protocol: h2");
	check_client(ARGS("-alpn", "http/1.1,h2"), "ALPN protocol: h2");
	check_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"),
		"Cipher is ECDHE-ECDSA-AES128-GCM-SHA256");
	check_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-GCM-SHA384"),
		"Cipher is ECDHE-ECDSA-AES256-GCM-SHA384");
	check_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"),
		"Cipher is ECDHE-ECDSA-CHACHA20-POLY1305");
	check_client(ARGS("-alpn", "h2", "-tls1_2", "-curves", "P-256"), "ECDH, prime256v1");
	check_client(ARGS("-alpn", "h2", "-tls1_2", "-curves", "X25519:P-256"), "X25519, 253 bits");
	check_client(ARGS("-alpn", "h2", "-tls1_2", "-curves", "P-384:P-256"), "ECDH, prime256v1");
}
END_TEST

START_TEST(clients_with_old_versions_are_refused)
{
	check_bad_client(
		ARGS("-alpn", "h2", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), "does not speak TLS 1.2");
	check_bad_client(
		ARGS("-alpn", "h2", "-tls1", "-cipher", "ALL:@SECLEVEL=0"), "does not speak TLS 1.2");
}
END_TEST

START_TEST(clients_with_weak_suites_or_curves_are_refused)
{
	const char *const none = "no cipher suite";

	check_bad_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"), none);
	check_bad_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"), none);
	check_bad_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "AES128-GCM-SHA256"), none);
	check_bad_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"), none);
	check_bad_client(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-CCM"), none);
	check_bad_client(ARGS("-alpn", "h2", "-tls1_2", "-curves", "secp256k1"), none);
}
END_TEST

START_TEST(clients_that_want_tls13_only_are_served_from_mbedtls_3_on)
{
#if MBEDTLS_VERSION_MAJOR >= 3
	check_client(ARGS("-alpn", "h2", "-tls1_3"), "TLSv1.3");
#else
	check_bad_client(ARGS("-alpn", "h2", "-tls1_3"), "no cipher suite, curve or TLS version in common");
#endif
}
END_TEST

START_TEST(clients_without_our_protocol_are_refused)
{
	check_bad_client(ARGS("-tls1_2"), "does not agree to the application protocol h2");
	check_bad_client(ARGS("-alpn", "http/1.1"), "does not offer the application protocol h2");
}
END_TEST

static void check_no_resumption(const char *const *args, const char *said)
{
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &server);
	start_client(&f, args);
	for (unsigned i = 0; i < 6; i++) {
		hang_up(&f);
		take_connection(&f);
		check_open(&f);
		ck_assert_str_eq(tls_peer_names(f.end.tls)[0], "pmem-node-controller");
		/* openssl goes on to the next by itself */
		while (i < 5 && receive_some(&f))
			;
	}
	check_said(&f, said);
	ck_assert_ptr_null(strstr(buf_str(&f.said), "Reused"));
	ck_assert_ptr_null(strstr(buf_str(&f.said), "session ticket:"));
}

START_TEST(sessions_are_not_resumed)
{
	check_no_resumption(ARGS("-alpn", "h2", "-tls1_2", "-reconnect"), "New, TLSv1.2");
#if MBEDTLS_VERSION_MAJOR >= 3
	check_no_resumption(ARGS("-alpn", "h2", "-tls1_3", "-reconnect"), "New, TLSv1.3");
#endif
}
END_TEST

/* Has openssl ask for another handshake by @command, and answers what it sends until it gives up. */
static void check_no_renegotiation(struct foreign *f, const char *command)
{
	CLEANUP(error_freep) struct error *err = NULL;
	uint8_t text[100];
	bool closed;
	size_t n;

	check_open(f);
	ck_assert_int_gt(write(f->child.stdin_fd, command, strlen(command)), 0);
	while (!err && receive_some(f)) {
		struct span in = buf_span(&f->end.in);
		if (tls_read(f->end.tls, &in, text, sizeof(text), &n, &closed, &err) < 0)
			break;
		ck_assert_uint_eq(n, 0);
		buf_reset(&f->end.in);
		tls_end_send(&f->end, &f->sent, span_of("go on\n"));
		send_all(f);
	}
	ck_assert_msg(err && strstr(err->msg, "the peer refuses"), "%s", err ? err->msg : "openssl hung up");
}

START_TEST(a_client_cannot_renegotiate)
{
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &server);
	start_client(&f, ARGS("-alpn", "h2", "-tls1_2"));
	take_connection(&f);
	check_no_renegotiation(&f, "R\n");
}
END_TEST

START_TEST(servers_with_our_suites_are_accepted)
{
	check_server(ARGS("-alpn", "h2"));
	check_server(ARGS("-alpn", "h2", "-tls1_2", "-Verify", "2", "-verify_return_error"));
	check_server(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-CHACHA20-POLY1305"));
}
END_TEST

/* Authorities of clusters issue these, too. */
START_TEST(servers_with_keys_on_larger_curves_or_of_rsa_are_accepted)
{
	static const char *const leaves[] = {"own/big", "own/biggest", "own/rsa"};
	const char *const *const versions[] = {ARGS("-alpn", "h2", "-tls1_2"), ARGS("-alpn", "h2")};

	for (size_t i = 0; i < ARRAY_SIZE(leaves) * ARRAY_SIZE(versions); i++) {
		CLEANUP(foreign_done) struct foreign f;

		foreign_init(&f, &client);
		start_server_as(&f, leaves[i % ARRAY_SIZE(leaves)], versions[i / ARRAY_SIZE(leaves)]);
		check_open(&f);
	}
}
END_TEST

#if MBEDTLS_VERSION_MAJOR >= 3

/* Reads until openssl has sent @text. Return: false if the connection has failed, and why in @err. */
static bool read_text(struct foreign *f, const char *text, struct error **err)
{
	uint8_t bytes[100];
	bool closed;
	size_t n;

	do {
		struct span in = buf_span(&f->end.in);
		if (tls_read(f->end.tls, &in, bytes, sizeof(bytes), &n, &closed, err) < 0)
			return false;
		buf_consume(&f->end.in, f->end.in.len - in.n);
		if (n == strlen(text) && memcmp(bytes, text, n) == 0)
			return true;
	} while (n > 0 || receive_some(f));
	return false;
}

static void type(const struct foreign *f, const char *line)
{
	ck_assert_int_gt(write(f->child.stdin_fd, line, strlen(line)), 0);
}

/* openssl sends two tickets after the handshake. mbedtls cannot change keys: that ends the connection. */
static void check_messages_after_the_handshake(void)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &client);
	start_server(&f, ARGS("-alpn", "h2", "-tls1_3"));
	check_open(&f);
	type(&f, "hello\n");
	ck_assert(read_text(&f, "hello\n", &err));
	type(&f, "k\n");
	type(&f, "hello\n");
	ck_assert(!read_text(&f, "hello\n", &err));
	ck_assert_msg(err && strstr(err->msg, "breaks the order of TLS messages"), "%s",
		err ? err->msg : "openssl hung up");
}

#endif

START_TEST(servers_that_want_tls13_only_are_accepted_from_mbedtls_3_on)
{
#if MBEDTLS_VERSION_MAJOR >= 3
	check_server(ARGS("-alpn", "h2", "-tls1_3"));
	check_messages_after_the_handshake();
#else
	check_bad_server(ARGS("-alpn", "h2", "-tls1_3"), "--tls-min-version=VersionTLS12");
#endif
}
END_TEST

START_TEST(servers_with_less_than_we_ask_for_are_refused)
{
	const char *const common = "the peer refuses";

	check_bad_server(ARGS("-alpn", "h2", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), common);
	check_bad_server(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA256"), common);
	check_bad_server(ARGS("-alpn", "h2", "-tls1_2", "-cipher", "AES128-GCM-SHA256"), common);
	check_bad_server(ARGS("-alpn", "http/1.1", "-tls1_2"), "alert 120");
	check_bad_server(ARGS("-tls1_2"), "does not agree to the application protocol h2");
}
END_TEST

START_TEST(a_server_cannot_renegotiate)
{
	CLEANUP(foreign_done) struct foreign f;

	foreign_init(&f, &client);
	start_server(&f, ARGS("-alpn", "h2", "-tls1_2"));
	check_no_renegotiation(&f, "r\n");
}
END_TEST

CERTS_MAIN("tls_foreign", clients_with_every_suite_of_ours_are_served, clients_with_old_versions_are_refused,
	clients_with_weak_suites_or_curves_are_refused,
	clients_that_want_tls13_only_are_served_from_mbedtls_3_on, clients_without_our_protocol_are_refused,
	sessions_are_not_resumed, a_client_cannot_renegotiate, servers_with_our_suites_are_accepted,
	servers_with_keys_on_larger_curves_or_of_rsa_are_accepted,
	servers_that_want_tls13_only_are_accepted_from_mbedtls_3_on,
	servers_with_less_than_we_ask_for_are_refused, a_server_cannot_renegotiate)
