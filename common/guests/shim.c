/* SPDX-License-Identifier: Apache-2.0 */
#include "guests/shim.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "guests/shim_stats.h"
#include "net/http1/http1_answer.h"
#include "os/unix_socket.h"

#define SOCKET_NAME       "shim-monitor.sock"
#define STATS_PATH        "/direct-volume/stats?path="
#define RESIZE_PATH       "/direct-volume/resize"
#define ANSWER_MAX_BYTES  65536
#define REQUEST_MAX_BYTES 16384
#define PIECE_BYTES       4096
#define CONNECT_POLL_MS   10
#define QUOTED_MAX_BYTES  512

/* --- finding the socket */

/* Return: caller frees; NULL: not found, as with a name that is too long for a socket. */
static char *socket_in(const char *folder, const char *sandbox)
{
	CLEANUP(free_charp) char *path = x_asprintf("%s/%s/" SOCKET_NAME, folder, sandbox);
	struct stat st;

	if (strlen(path) >= sizeof((struct sockaddr_un){0}.sun_path) || lstat(path, &st) < 0 ||
		!S_ISSOCK(st.st_mode))
		return NULL;
	return TAKE_PTR(path);
}

/* Finds the socket on which a shim listens. If that cannot be found out, the socket counts as one that has a
 * server. */
static char *find_socket(const struct shim_sockets *s, const char *sandbox)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->folders); i++) {
		CLEANUP(free_charp) char *path = socket_in(s->folders[i], sandbox);
		CLEANUP(error_freep) struct error *live = NULL;

		if (path && unix_socket_refuse_live(path, &live) < 0)
			return TAKE_PTR(path);
	}
	return NULL;
}

/* None of the folders exists where no runtime has ever run, or in a container that does not have them
 * mounted. */
static bool sees_none(const struct shim_sockets *s)
{
	for (size_t i = 0; i < ARRAY_SIZE(s->folders); i++) {
		if (access(s->folders[i], F_OK) == 0)
			return false;
	}
	return true;
}

/* Whether the sandbox may be running. If that is not known, it counts as running, because the caller would
 * write to a device that a guest may use. */
static bool runs(void *user, const char *sandbox)
{
	CLEANUP(free_charp) char *path = find_socket(user, sandbox);

	return path || sees_none(user);
}

/* --- one question */

struct question {
	const char *path; /* of the socket */
	struct span request;
	struct http1_answer *answer;
	uint64_t deadline_ns;
	int fd;
};

static int is_late(const struct question *q, struct error **err)
{
	return err_set(err, ERR_DEADLINE, "the runtime at %s does not answer in time", q->path);
}

static int wait_for(const struct question *q, short events, struct error **err)
{
	for (;;) {
		struct pollfd p = {.fd = q->fd, .events = events};
		uint64_t now_ns = clock_ns();

		if (now_ns >= q->deadline_ns)
			return is_late(q, err);
		int rc = poll(&p, 1, (int)((q->deadline_ns - now_ns) / NS_PER_MS) + 1);
		if (rc > 0)
			return 0;
		if (rc < 0 && errno != EINTR)
			return err_set_errno(err, ERR_INTERNAL, errno, "poll");
	}
}

/* EAGAIN: the queue of connections that the server has not accepted is full, and there is no event for that.
 */
static int connect_to(struct question *q, struct error **err)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	q->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (q->fd < 0)
		return err_set_errno(err, ERR_INTERNAL, errno, "socket");
	memcpy(sa.sun_path, q->path, strlen(q->path) + 1);
	while (connect(q->fd, (const struct sockaddr *)&sa, sizeof(sa)) < 0) {
		if (errno != EAGAIN)
			return err_set_errno(err, ERR_UNAVAILABLE, errno, "connect to %s", q->path);
		if (clock_ns() >= q->deadline_ns)
			return is_late(q, err);
		usleep(CONNECT_POLL_MS * 1000);
	}
	return 0;
}

static int send_request(const struct question *q, struct error **err)
{
	struct span left = q->request;

	while (left.n > 0) {
		ssize_t n = send(q->fd, left.p, left.n, MSG_NOSIGNAL);

		if (n >= 0) {
			left.p += n;
			left.n -= (size_t)n;
		} else if (errno != EAGAIN && errno != EINTR) {
			return err_set_errno(err, ERR_UNAVAILABLE, errno, "send to %s", q->path);
		} else if (wait_for(q, POLLOUT, err) < 0) {
			return -1;
		}
	}
	return 0;
}

static int receive_answer(const struct question *q, struct error **err)
{
	uint8_t piece[PIECE_BYTES];

	while (!http1_answer_is_complete(q->answer)) {
		ssize_t n = recv(q->fd, piece, sizeof(piece), 0);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_set_errno(err, ERR_UNAVAILABLE, errno, "receive from %s", q->path);
		if (n < 0) {
			if (wait_for(q, POLLIN, err) < 0)
				return -1;
			continue;
		}
		if (http1_answer_receive(q->answer, (struct span){piece, (size_t)n}, err) < 0)
			return err_wrap(err, "the runtime at %s", q->path);
	}
	return 0;
}

static int ask(const struct shim_sockets *s, const char *sandbox, struct span request,
	struct http1_answer *answer, struct error **err)
{
	CLEANUP(free_charp) char *path = find_socket(s, sandbox);
	struct question q = {.path = path,
		.request = request,
		.answer = answer,
		.deadline_ns = clock_ns() + (uint64_t)s->timeout_ms * NS_PER_MS,
		.fd = -1};

	if (!path)
		return err_set(err, ERR_UNAVAILABLE, "the runtime of sandbox %s does not run", sandbox);
	int rc = connect_to(&q, err) < 0 || send_request(&q, err) < 0 || receive_answer(&q, err) < 0 ? -1 : 0;
	fd_closep(&q.fd);
	return rc;
}

/* --- what is asked */

/* Appends @text to the query of a URL. The runtime unescapes the query twice, so a "%" is escaped twice;
 * unreserved characters are not escaped. */
static void add_escaped(struct buf *out, const char *text)
{
	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (*p == '%')
			buf_adds(out, "%2525");
		else if (isalnum(*p) || strchr("-._~", *p))
			buf_addc(out, (char)*p);
		else
			buf_addf(out, "%%%02X", *p);
	}
}

static bool says_not_implemented(struct span body)
{
	static const char *const words[] = {"not implemented", "Unimplemented", "UNIMPLEMENTED"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (body.n > 0 && memmem(body.p, body.n, words[i], strlen(words[i])))
			return true;
	}
	return false;
}

static int check_status(const char *sandbox, const struct http1_answer *a, struct error **err)
{
	struct span body = http1_answer_body(a);
	unsigned status = http1_answer_status(a);
	size_t n = body.n < QUOTED_MAX_BYTES ? body.n : QUOTED_MAX_BYTES;

	if (status == 200)
		return 0;
	return err_set(err, status == 404 || says_not_implemented(body) ? ERR_UNIMPLEMENTED : ERR_INTERNAL,
		"the runtime of sandbox %s answers %u: %.*s", sandbox, status, (int)n,
		n > 0 ? (const char *)body.p : "");
}

static int stats(
	void *user, const char *sandbox, const char *device, struct fs_usage *ret, struct error **err)
{
	CLEANUP(http1_answer_freep) struct http1_answer *a = http1_answer_new(ANSWER_MAX_BYTES);
	CLEANUP(buf_done) struct buf request = BUF_INIT(REQUEST_MAX_BYTES);

	buf_adds(&request, "GET " STATS_PATH);
	add_escaped(&request, device);
	buf_adds(&request, " HTTP/1.1\r\nHost: shim\r\nConnection: close\r\n\r\n");
	if (buf_check(&request, "request", err) < 0 || ask(user, sandbox, buf_span(&request), a, err) < 0)
		return -1;
	if (check_status(sandbox, a, err) < 0) {
		if ((*err)->code == ERR_UNIMPLEMENTED)
			err_recode(err, ERR_INTERNAL);
		return -1;
	}
	return shim_stats_parse(http1_answer_body(a), ret, err);
}

static int resize(
	void *user, const char *sandbox, const char *device, uint64_t size_bytes, struct error **err)
{
	CLEANUP(http1_answer_freep) struct http1_answer *a = http1_answer_new(ANSWER_MAX_BYTES);
	CLEANUP(buf_done) struct buf request = BUF_INIT(REQUEST_MAX_BYTES);
	CLEANUP(buf_done) struct buf body = BUF_INIT(REQUEST_MAX_BYTES / 2);
	struct json_writer w = JSON_WRITER(&body);

	json_object(&w);
	json_key_str(&w, "VolumePath", device);
	json_key_u64(&w, "Size", size_bytes);
	json_object_end(&w);
	buf_addf(&request,
		"POST " RESIZE_PATH " HTTP/1.1\r\nHost: shim\r\nConnection: close\r\n"
		"Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		body.len, buf_str(&body));
	if (buf_check(&body, "request", err) < 0 || buf_check(&request, "request", err) < 0 ||
		ask(user, sandbox, buf_span(&request), a, err) < 0)
		return -1;
	return check_status(sandbox, a, err);
}

struct volume_guests shim_guests(struct shim_sockets *s)
{
	return (struct volume_guests){.runs = runs, .stats = stats, .resize = resize, .user = s};
}
