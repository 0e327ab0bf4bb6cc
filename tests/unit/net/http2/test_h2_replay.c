/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded connections of real clients (tests/data), in whatever pieces they arrive. */
#include <dirent.h>
#include <fcntl.h>

#include "base/mem.h"
#include "h2_frames.h"
#include "h2_pair.h"
#include "os/file.h"
#include "unit/unit.h"

#define RECORDING_MAX (64u << 10)

/* More pieces than that show nothing more. */
#define SPLITS_MAX 2000

struct outcome {
	char *log;
	char *body;
	size_t body_bytes;
	char *sent; /* frames, as text */
	size_t n_closed;
	bool done;
};

static void outcome_done(struct outcome *o)
{
	free(o->log);
	free(o->body);
	free(o->sent);
}

/* A stream is closed when its reply is collected, which depends on the pieces. Return: caller frees. */
static char *without_closes(const char *log, size_t *ret_n)
{
	CLEANUP(buf_done) struct buf rest = BUF_INIT(RECORDING_MAX);

	*ret_n = 0;
	for (const char *end; *log; log = end) {
		end = strchr(log, '\n') + 1;
		if (strncmp(log, "close ", 6) == 0)
			(*ret_n)++;
		else
			buf_add(&rest, log, (size_t)(end - log));
	}
	return x_strdup(buf_str(&rest));
}

static void react(struct h2_side *side, enum h2_event event, int32_t stream)
{
	if (event == H2_ON_END)
		h2_reply(side->h2, stream, span_of("reply"));
}

/* Feeds the bytes before @cut, then the rest; or, with @cut SIZE_MAX, each by itself. */
static struct outcome replay(struct span bytes, size_t cut)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(1u << 20);
	struct outcome o = {0};
	struct h2_side server;

	h2_side_init(&server);
	server.h2 = h2_server_new(false, &h2_events_of_sides, &server);
	server.react = react;
	for (size_t i = 0; i < bytes.n;) {
		size_t n = cut == SIZE_MAX ? 1 : i < cut ? cut : bytes.n - i;

		h2_side_feed(&server, (struct span){bytes.p + i, n});
		h2_side_collect(&server);
		i += n;
	}
	frames_text(buf_span(&server.out), &text);
	o.done = h2_is_done(server.h2);
	o.log = without_closes(buf_str(&server.log), &o.n_closed);
	o.body_bytes = server.body.len;
	o.body = x_malloc(o.body_bytes + 1);
	memcpy(o.body, server.body.data, o.body_bytes);
	o.sent = x_strdup(buf_str(&text));
	h2_side_done(&server);
	return o;
}

static void assert_same(const struct outcome *a, const struct outcome *b, size_t cut)
{
	ck_assert_msg(strcmp(a->log, b->log) == 0, "at %zu: %s", cut, b->log);
	ck_assert_int_eq(a->done, b->done);
	ck_assert_uint_eq(a->n_closed, b->n_closed);
	ck_assert_uint_eq(a->body_bytes, b->body_bytes);
	ck_assert_int_eq(memcmp(a->body, b->body, a->body_bytes), 0);
	ck_assert_ptr_null(strstr(b->sent, "RST_STREAM"));
	ck_assert_ptr_null(strstr(b->sent, "GOAWAY"));
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* Each request has a head, an end and a reply. @closed: a GOAWAY is the last frame. */
static void check_recording(int dir, const char *name, size_t n_requests, bool closed)
{
	CLEANUP(buf_done) struct buf bytes = BUF_INIT(RECORDING_MAX);
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(outcome_done) struct outcome whole = {0};
	size_t step;

	ASSERT_OK(file_read(dir, name, &bytes, &err));
	whole = replay(buf_span(&bytes), bytes.len);
	ck_assert_msg(count(whole.log, "headers ") == n_requests, "%s: %s", name, whole.log);
	ck_assert_uint_eq(count(whole.log, "\nend "), n_requests);
	ck_assert_uint_eq(whole.n_closed, n_requests);
	ck_assert_uint_eq(count(whole.log, ":method=POST"), n_requests);
	ck_assert_uint_eq(count(whole.sent, " END\n"), n_requests);
	ck_assert_int_eq(whole.done, closed);
	assert_same(&whole, &whole, 0);
	step = 1 + bytes.len / SPLITS_MAX;
	for (size_t cut = 1; cut < bytes.len; cut += step) {
		CLEANUP(outcome_done) struct outcome split = replay(buf_span(&bytes), cut);

		assert_same(&whole, &split, cut);
	}
	CLEANUP(outcome_done) struct outcome single = replay(buf_span(&bytes), SIZE_MAX);
	assert_same(&whole, &single, SIZE_MAX);
}

static int open_data(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

START_TEST(every_call_of_a_kubelet_arrives)
{
	CLEANUP(fd_closep) int dir = open_data(TEST_DATA "/kubelet");
	DIR *list = opendir(TEST_DATA "/kubelet");
	const struct dirent *entry;
	size_t n = 0;

	ck_assert_ptr_nonnull(list);
	while ((entry = readdir(list))) {
		if (!strstr(entry->d_name, ".bin"))
			continue;
		check_recording(
			dir, entry->d_name, strcmp(entry->d_name, "registration.bin") == 0 ? 2 : 1, true);
		n++;
	}
	closedir(list);
	ck_assert_uint_eq(n, 11);
}
END_TEST

START_TEST(every_call_of_a_kube_apiserver_arrives)
{
	CLEANUP(fd_closep) int dir = open_data(TEST_DATA "/kube-apiserver");

	check_recording(dir, "webhook-h2.bin", 7, false);
}
END_TEST

UNIT_MAIN("h2_replay", every_call_of_a_kubelet_arrives, every_call_of_a_kube_apiserver_arrives)
