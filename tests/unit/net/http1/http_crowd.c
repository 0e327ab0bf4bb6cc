/* SPDX-License-Identifier: Apache-2.0 */
#include "http_crowd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/str.h"
#include "unit/unit.h"

static void stop(void *user)
{
	loop_stop(user);
}

void crowd_open(struct crowd *c, const struct http_route *routes, const struct http_server_config *limits)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct http_server_config config = *limits;

	*c = (struct crowd){.heard = BUF_INIT(1 << 20)};
	ASSERT_OK(loop_new(&c->loop, &err));
	c->tick = loop_timer_new(c->loop, stop, c->loop);
	config.loop = c->loop;
	config.routes = routes;
	c->server = http_server_new(&config);
	ASSERT_OK(http_server_listen(c->server, "127.0.0.1:0", NULL, &err));
}

void crowd_close(struct crowd *c)
{
	loop_timer_close(c->tick);
	http_server_free(c->server);
	loop_run(c->loop);
	loop_free(c->loop);
	buf_done(&c->heard);
}

void crowd_run(struct crowd *c)
{
	c->rounds++;
	loop_timer_set(c->tick, CROWD_ROUND_MS, 0);
	loop_run(c->loop);
}

int crowd_dial(const struct crowd *c)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)http_server_port(c->server)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	ck_assert_int_ge(fd, 0);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		ck_assert_int_eq(errno, EINPROGRESS);
	return fd;
}

void crowd_say(struct crowd *c, int fd, const char *text)
{
	size_t left = strlen(text);

	while (left > 0) {
		ssize_t n = send(fd, text, left, MSG_NOSIGNAL);

		if (n < 0) {
			ck_assert_msg(errno == EAGAIN || errno == ENOTCONN, "send: %s", strerror(errno));
			crowd_run(c);
			continue;
		}
		text += n;
		left -= (size_t)n;
	}
}

const char *crowd_hear(struct crowd *c, int fd, const char *end)
{
	char in[4096];

	buf_reset(&c->heard);
	while (!str_ends(buf_str(&c->heard), end)) {
		ssize_t n = recv(fd, in, sizeof(in), 0);

		ck_assert_msg(n != 0, "closed after <%s>", buf_str(&c->heard));
		if (n > 0) {
			buf_add(&c->heard, in, (size_t)n);
			continue;
		}
		ck_assert_msg(errno == EAGAIN || errno == ENOTCONN, "recv: %s", strerror(errno));
		crowd_run(c);
	}
	return buf_str(&c->heard);
}

bool crowd_is_closed(int fd)
{
	char in[4096];
	ssize_t n;

	do {
		n = recv(fd, in, sizeof(in), 0);
	} while (n > 0);
	return n == 0 || (errno != EAGAIN && errno != ENOTCONN);
}
