/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc_client.c - makes gRPC calls to a server of another make, as lines on standard input say.
 *
 *	call ID METHOD TIMEOUT_MS BYTES NAME   start /pmem.test.Echo/METHOD with NAME and a vendor_version of
 *BYTES cancel ID                              give it up
 *
 * Messages are as of echo_service.h. Each call ends with a line "ID CODE BYTES TEXT": BYTES of the reply's
 * vendor_version, TEXT its name or the message of the error. Says "ready" first, and ends when input and
 *calls do.
 */
#include <csi.pb-c.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/core/handshakes.h"
#include "net/grpc/grpc_client.h"
#include "os/args.h"

#define LINE_MAX_BYTES 4096
#define MAX_WORDS      6

/* The first waits of the back-off would only make tests slow. */
#define BACKOFF_MS 1

typedef Csi__V1__GetPluginInfoResponse Info;

struct call {
	struct call *next;
	struct program *program;
	struct grpc_client_call *handle;
	char *id;
};

struct program {
	struct loop *loop;
	struct loop_watch *input;
	struct grpc_client *client;
	struct call *calls;
	struct buf line;
	struct error *error;
};

/* Without the client and its connection there is nothing that the loop waits for. */
static void end_if_done(struct program *p)
{
	if (!p->input && !p->calls)
		grpc_client_free(TAKE_PTR(p->client));
}

static void remove_call(struct call *c)
{
	struct call **link = &c->program->calls;

	while (*link != c)
		link = &(*link)->next;
	*link = c->next;
	free(c->id);
	free(c);
}

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	const Info *info = (const Info *)reply;
	struct call *c = user;
	struct program *p = c->program;

	if (error)
		printf("%s %s 0 %s\n", c->id, err_code_name(error->code), error->msg);
	else
		printf("%s OK %zu %s\n", c->id, strlen(info->vendor_version), info->name);
	fflush(stdout);
	remove_call(c);
	end_if_done(p);
}

/* call ID METHOD TIMEOUT_MS BYTES NAME */
static int start_call(struct program *p, char *const *words, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf("/pmem.test.Echo/%s", words[2]);
	CLEANUP(free_charp) char *version = NULL;
	uint32_t timeout_ms, bytes;
	struct call *c;
	Info info;

	if (parse_u32(words[3], &timeout_ms, err) < 0 || parse_u32(words[4], &bytes, err) < 0)
		return -1;
	version = x_calloc(1, (size_t)bytes + 1);
	memset(version, 'x', bytes);
	csi__v1__get_plugin_info_response__init(&info);
	info.name = words[5];
	info.vendor_version = version;
	c = x_calloc(1, sizeof(*c));
	c->program = p;
	c->id = x_strdup(words[1]);
	c->next = p->calls;
	p->calls = c;
	c->handle =
		grpc_client_call(p->client, path, &info.base, info.base.descriptor, timeout_ms, on_reply, c);
	return 0;
}

static void cancel_call(const struct program *p, const char *id)
{
	for (struct call *c = p->calls; c; c = c->next) {
		if (str_eq(c->id, id))
			grpc_client_cancel(c->handle);
	}
}

/* Cuts @line at blanks; the last word takes what is left. Return: number of words. */
static size_t split(char *line, char *ret_words[MAX_WORDS])
{
	size_t n = 0;

	while (n < MAX_WORDS) {
		char *blank = strchr(line, ' ');

		ret_words[n++] = line;
		if (!blank || n == MAX_WORDS)
			break;
		*blank = 0;
		line = blank + 1;
	}
	return n;
}

static int obey(struct program *p, char *line, struct error **err)
{
	char *words[MAX_WORDS];
	size_t n = split(line, words);

	if (n == MAX_WORDS && str_eq(words[0], "call"))
		return start_call(p, words, err);
	if (n != 2 || !str_eq(words[0], "cancel"))
		return err_set(err, ERR_INVALID_ARGUMENT, "no command: \"%s\"", words[0]);
	cancel_call(p, words[1]);
	return 0;
}

static int obey_lines(struct program *p, struct error **err)
{
	char *end;

	if (p->line.overflowed)
		return err_set(err, ERR_INVALID_ARGUMENT, "a line of more than %d bytes", LINE_MAX_BYTES);
	while (p->line.len > 0 && (end = memchr(p->line.data, '\n', p->line.len))) {
		char *line = (char *)p->line.data;

		*end = 0;
		if (obey(p, line, err) < 0)
			return -1;
		buf_consume(&p->line, (size_t)(end + 1 - line));
	}
	return 0;
}

static void on_input(void *user, unsigned events, bool failed)
{
	struct program *p = user;
	char bytes[LINE_MAX_BYTES / 2];
	ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

	(void)events;
	(void)failed;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0) {
		buf_add(&p->line, bytes, (size_t)n);
		if (obey_lines(p, &p->error) == 0)
			return;
	}
	loop_watch_close(TAKE_PTR(p->input));
	end_if_done(p);
}

struct flags {
	const char *ca_file;
	const char *cert_file;
	const char *key_file;
	const char *server_name;
};

static int parse(int argc, char **argv, struct flags *ret, struct args *ret_args, struct error **err)
{
	const struct opt table[] = {
		{"caFile", OPT_STR, &ret->ca_file, "FILE", "authority that signs the server"},
		{"certFile", OPT_STR, &ret->cert_file, "FILE", "own certificate"},
		{"keyFile", OPT_STR, &ret->key_file, "FILE", "its key"},
		{"serverName", OPT_STR, &ret->server_name, "NAME", "the server"},
		{0},
	};

	if (args_parse(table, argc, argv, ret_args, err) < 0)
		return -1;
	if (strv_len(ret_args->rest) != 1)
		return err_set(err, ERR_INVALID_ARGUMENT, "usage: grpc_client [FLAG]... ENDPOINT");
	return 0;
}

static int open_client(struct program *p, const struct flags *f, const char *endpoint,
	struct handshakes *handshakes, struct error **err)
{
	CLEANUP(tls_context_unrefp) struct tls_context *tls = NULL;
	const struct tls_config tls_config = {
		.role = TLS_CLIENT,
		.ca_file = f->ca_file,
		.cert_file = f->cert_file,
		.key_file = f->key_file,
		.alpn = "h2",
	};

	if (f->ca_file && tls_context_new(&tls_config, &tls, err) < 0)
		return -1;
	const struct h2_channel_config config = {
		.loop = p->loop,
		.endpoint = endpoint,
		.tls = tls,
		.tls_name = f->server_name,
		.handshakes = handshakes,
		.reconnect_backoff_ms = BACKOFF_MS,
	};
	return grpc_client_new(&config, &p->client, err);
}

/* Return: 0 when input and calls have ended. */
static int serve_input(struct program *p, struct error **err)
{
	if (loop_watch_fd(p->loop, STDIN_FILENO, LOOP_READ, on_input, p, &p->input, err) < 0)
		return -1;
	puts("ready");
	fflush(stdout);
	loop_run(p->loop);
	*err = TAKE_PTR(p->error);
	return *err ? -1 : 0;
}

static int run(int argc, char **argv, struct program *p, struct error **err)
{
	CLEANUP(args_done) struct args args = {0};
	struct handshakes *handshakes;
	struct flags flags = {0};

	if (parse(argc, argv, &flags, &args, err) < 0)
		return -1;
	if (loop_new(&p->loop, err) < 0)
		return -1;
	handshakes = handshakes_new(p->loop);
	if (open_client(p, &flags, args.rest[0], handshakes, err) < 0 || serve_input(p, err) < 0)
		return -1;
	handshakes_free(handshakes);
	loop_free(p->loop);
	buf_done(&p->line);
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct program p = {.line = BUF_INIT(LINE_MAX_BYTES)};

	log_init("grpc_client", LOG_TEXT, 0);
	if (run(argc, argv, &p, &err) < 0) {
		log_error("cannot go on", F_ERR(err));
		return 1;
	}
	return 0;
}
