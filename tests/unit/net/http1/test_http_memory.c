/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that a request with 2,000 Node objects and its reply take, while they exist and afterwards. */
#include <errno.h>
#include <malloc.h>
#include <sys/socket.h>

#include "base/mem.h"
#include "http_crowd.h"
#include "unit/unit.h"

#define BODY_BYTES (12600u << 10)
#define ROUNDS     3

/* Buffers double: each holds at most this, and what the connection has on its way. */
#define BUFFER_BYTES (16u << 20)
#define EXTRA_BYTES  (2u << 20)

static size_t held(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static struct http_call *parked;

static void park(void *self, struct http_call *call)
{
	(void)self;
	parked = call;
}

/* Answers like a filter that lets all nodes pass. */
static void answer(void)
{
	const struct span body = http_call_request(parked)->body;
	struct http_reply reply = HTTP_REPLY;

	ck_assert_uint_eq(body.n, BODY_BYTES);
	buf_add(&reply.body, body.p, body.n);
	http_call_reply(TAKE_PTR(parked), &reply);
}

static const struct http_route routes[] = {{.path = "/", .methods = "POST", .handle_later = park}, {0}};

static void note_peak(size_t *peak)
{
	size_t now = held();

	if (now > *peak)
		*peak = now;
}

static void send_body(struct crowd *c, int fd, size_t *peak)
{
	static char filler[64 << 10];
	size_t left = BODY_BYTES;

	while (left > 0) {
		ssize_t n = send(fd, filler, left < sizeof(filler) ? left : sizeof(filler), MSG_NOSIGNAL);

		if (n > 0) {
			left -= (size_t)n;
			continue;
		}
		ck_assert_int_eq(errno, EAGAIN);
		crowd_run(c);
		note_peak(peak);
	}
	while (!parked)
		crowd_run(c);
}

static void receive_body(struct crowd *c, int fd, size_t head_bytes, size_t *peak)
{
	static char in[64 << 10];
	size_t left = BODY_BYTES + head_bytes;

	while (left > 0) {
		ssize_t n = recv(fd, in, sizeof(in), 0);

		if (n > 0) {
			left -= (size_t)n;
			continue;
		}
		ck_assert(n < 0 && errno == EAGAIN);
		crowd_run(c);
		note_peak(peak);
	}
}

START_TEST(memory_is_bounded_by_request_and_reply_and_given_back)
{
	const struct http_server_config limits = {.max_body_bytes = BODY_BYTES};
	struct crowd c;
	CLEANUP(free_charp)
	char *head = x_asprintf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %u\r\n\r\n", BODY_BYTES);
	CLEANUP(free_charp)
	char *reply = x_asprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
				 "Content-Length: %u\r\n\r\n",
		BODY_BYTES);

	mem_tune(MEM_LARGE_BYTES);
	crowd_open(&c, routes, &limits);
	int fd = crowd_dial(&c);
	for (int i = 0; i < ROUNDS; i++) {
		size_t before = held();
		size_t peak = before;

		crowd_say(&c, fd, head);
		send_body(&c, fd, &peak);
		ck_assert_uint_le(peak, before + BUFFER_BYTES + EXTRA_BYTES);
		answer();
		note_peak(&peak);
		receive_body(&c, fd, strlen(reply), &peak);
		crowd_run(&c);
		ck_assert_uint_le(peak, before + BUFFER_BYTES + EXTRA_BYTES);
		/* the first one leaves a few buffers of the connection */
		ck_assert_uint_le(held(), before + (16 << 10));
	}
	close(fd);
	crowd_close(&c);
}
END_TEST

UNIT_MAIN("http_memory", memory_is_bounded_by_request_and_reply_and_given_back)
