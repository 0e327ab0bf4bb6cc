/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for Kata's shim that answers, says no, hangs in every way, or is not there. */
#include "guests/shim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "unit/unit.h"

#define SANDBOX "4f0a9c"
#define STATS   "{\"usage\":[{\"available\":10,\"total\":30,\"used\":20,\"unit\":1}]}"

static char base[] = "/tmp/shim-XXXXXX";
static char *folders[2];
static struct shim_sockets sockets;
static struct volume_guests guests;
static int listener = -1;
static char seen[4096]; /* the last request */
static const char *answer;
static pthread_t server;

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(base));
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		folders[i] = x_asprintf("%s/%zu", base, i);
		ck_assert_int_eq(mkdir(folders[i], 0700), 0);
	}
	sockets = (struct shim_sockets){.folders = {folders[0], folders[1]}, .timeout_ms = 5000};
	guests = shim_guests(&sockets);
}

static void tear_down(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/" SANDBOX "/shim-monitor.sock", folders[i]);
		CLEANUP(free_charp) char *folder = x_asprintf("%s/" SANDBOX, folders[i]);

		unlink(path);
		rmdir(folder);
		rmdir(folders[i]);
		free(folders[i]);
	}
	rmdir(base);
}

static int listen_in(const char *folder)
{
	CLEANUP(free_charp) char *dir = x_asprintf("%s/" SANDBOX, folder);
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(mkdir(dir, 0700), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s/shim-monitor.sock", dir);
	ck_assert_int_eq(bind(fd, (const struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	return fd;
}

static bool is_whole(const char *request)
{
	const char *end = strstr(request, "\r\n\r\n");

	return end && (strncmp(request, "POST", 4) != 0 || strchr(end, '}'));
}

/* A caller that only looks whether it is there sends nothing and closes the connection. */
static void *serve(void *unused)
{
	for (;;) {
		CLEANUP(fd_closep) int fd = accept(listener, NULL, NULL);
		size_t n = 0;
		ssize_t got;

		memset(seen, 0, sizeof(seen));
		while (!is_whole(seen) && (got = read(fd, seen + n, sizeof(seen) - 1 - n)) > 0)
			n += (size_t)got;
		if (n == 0)
			continue;
		(void)!send(fd, answer, strlen(answer), MSG_NOSIGNAL);
		return unused;
	}
}

static void begin(const char *folder, const char *text)
{
	listener = listen_in(folder);
	answer = text;
	ck_assert_int_eq(pthread_create(&server, NULL, serve, NULL), 0);
}

static void end(void)
{
	pthread_join(server, NULL);
	fd_closep(&listener);
}

static int ask_stats(struct fs_usage *ret, struct error **err)
{
	return guests.stats(guests.user, SANDBOX, "/dev/mapper/a-b+c%d", ret, err);
}

static int ask_to_grow(struct error **err)
{
	return guests.resize(guests.user, SANDBOX, "/dev/pmem0", 4096, err);
}

START_TEST(statistics_are_asked_as_the_runtime_expects)
{
	struct fs_usage is;
	struct error *err = NULL;

	begin(folders[_i],
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3a\r\n" STATS "\r\n0\r\n\r\n");
	ck_assert_uint_eq(strlen(STATS), 0x3a);
	ck_assert(guests.runs(guests.user, SANDBOX));
	ASSERT_OK(ask_stats(&is, &err));
	end();
	ck_assert_uint_eq(is.total_bytes, 30);
	ck_assert_ptr_nonnull(strstr(seen, "\r\nHost: "));
	ck_assert_ptr_eq(
		strstr(seen, "GET /direct-volume/stats?path=%2Fdev%2Fmapper%2Fa-b%2Bc%2525d HTTP/1.1\r\n"),
		seen);
}
END_TEST

START_TEST(growth_is_asked_as_the_runtime_expects)
{
	struct error *err = NULL;

	begin(folders[0], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	ASSERT_OK(ask_to_grow(&err));
	end();
	ck_assert_ptr_eq(strstr(seen, "POST /direct-volume/resize HTTP/1.1\r\n"), seen);
	ck_assert_ptr_nonnull(strstr(seen, "\r\n\r\n{\"VolumePath\":\"/dev/pmem0\",\"Size\":4096}"));
}
END_TEST

/* The text is the reply of a Kata agent of August 2026, which its shim passes on. */
START_TEST(guest_that_cannot_grow_says_so)
{
	static const char text[] =
		"HTTP/1.1 500 Internal Server Error\r\nConnection: close\r\n\r\nrpc error: code = Unimplemented "
		"desc = resize_volume is not implemented in kata-agent";
	struct error *err = NULL;

	begin(folders[0], text);
	ASSERT_FAILS(ask_to_grow(&err), ERR_UNIMPLEMENTED, "not implemented in kata-agent");
	end();
}
END_TEST

START_TEST(other_failures_are_none_of_that)
{
	struct fs_usage is;
	struct error *err = NULL;

	begin(folders[0], "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 8\r\n\r\nno mount");
	ASSERT_FAILS(_i ? ask_to_grow(&err) : ask_stats(&is, &err), ERR_INTERNAL, "no mount");
	end();
}
END_TEST

START_TEST(runtime_that_is_not_there_is_not_asked)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/" SANDBOX "/shim-monitor.sock", folders[0]);
	char name[129];
	struct fs_usage is;
	struct error *err = NULL;

	ck_assert(!guests.runs(guests.user, SANDBOX));
	ASSERT_FAILS(ask_stats(&is, &err), ERR_UNAVAILABLE, SANDBOX);
	/* a socket that was left, and a name for which there is none */
	close(listen_in(folders[0]));
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert(!guests.runs(guests.user, SANDBOX));
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	ck_assert(!guests.runs(guests.user, name));
	sockets.folders[0] = sockets.folders[1] = "/nowhere";
	ck_assert(guests.runs(guests.user, SANDBOX));
	ASSERT_FAILS(ask_stats(&is, &err), ERR_UNAVAILABLE, SANDBOX);
}
END_TEST

START_TEST(runtime_that_hangs_holds_no_call_for_long)
{
	int fds[8];
	size_t n = 0;
	struct fs_usage is;
	struct error *err = NULL;
	uint64_t begun_ns = clock_ns();

	sockets.timeout_ms = 200;
	/* connections are queued by the kernel until that is full: from then on none is made */
	listener = listen_in(folders[0]);
	for (; _i && n < ARRAY_SIZE(fds); n++) {
		CLEANUP(free_charp) char *path = x_asprintf("%s/" SANDBOX "/shim-monitor.sock", folders[0]);
		struct sockaddr_un sa = {.sun_family = AF_UNIX};

		snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
		fds[n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!connect(fds[n], (const struct sockaddr *)&sa, sizeof(sa));
	}
	ck_assert(guests.runs(guests.user, SANDBOX));
	ASSERT_FAILS(ask_stats(&is, &err), ERR_DEADLINE, "in time");
	ck_assert_uint_lt(clock_ns() - begun_ns, 3 * NS_PER_S);
	while (n > 0)
		close(fds[--n]);
	fd_closep(&listener);
}
END_TEST

/* Sends one byte now and then, which must not extend the time limit. */
static void *drip(void *unused)
{
	close(accept(listener, NULL, NULL));
	CLEANUP(fd_closep) int fd = accept(listener, NULL, NULL);

	const char *next = "HTTP/1.1 200 OK\r\nX-Header: a";

	while (send(fd, next, 1, MSG_NOSIGNAL) == 1) {
		next += next[1] != '\0';
		usleep(20000);
	}
	return unused;
}

START_TEST(runtime_that_drips_holds_no_call_for_long)
{
	struct fs_usage is;
	struct error *err = NULL;
	uint64_t begun_ns = clock_ns();

	sockets.timeout_ms = 200;
	listener = listen_in(folders[0]);
	ck_assert_int_eq(pthread_create(&server, NULL, drip, NULL), 0);
	ASSERT_FAILS(ask_stats(&is, &err), ERR_DEADLINE, "in time");
	ck_assert_uint_lt(clock_ns() - begun_ns, 3 * NS_PER_S);
	end();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("shim");
	TCase *tcase = tcase_create("shim");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_loop_test(tcase, statistics_are_asked_as_the_runtime_expects, 0, 2);
	tcase_add_test(tcase, growth_is_asked_as_the_runtime_expects);
	tcase_add_test(tcase, guest_that_cannot_grow_says_so);
	tcase_add_loop_test(tcase, other_failures_are_none_of_that, 0, 2);
	tcase_add_test(tcase, runtime_that_is_not_there_is_not_asked);
	tcase_add_loop_test(tcase, runtime_that_hangs_holds_no_call_for_long, 0, 2);
	tcase_add_test(tcase, runtime_that_drips_holds_no_call_for_long);
	return unit_runner_finish(srunner_create(suite));
}
