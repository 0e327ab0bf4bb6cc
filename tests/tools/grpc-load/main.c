/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grpc-load: many gRPC calls of GetPluginInfo, to measure a server. Prints how long they took; what the
 * server spent is to be read from /proc. Exit status: 0 all calls succeeded, 1 one failed, 2 wrong usage.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "csi.pb-c.h"
#include "net/grpc/grpc_client.h"
#include "os/args.h"

#define TIMEOUT_MS 60000

struct options {
	const char *endpoint;
	const char *ca_file;
	const char *cert_file;
	const char *key_file;
	const char *tls_name;
	uint32_t calls;
	uint32_t in_flight;
	uint32_t connections;
	bool connection_per_call;
	bool hold;
	bool show_help;
};

struct load {
	const struct options *options;
	struct loop *loop;
	struct handshakes *handshakes;
	struct tls_context *tls;
	struct slot *slots;
	uint32_t started;
	uint32_t ended;
	struct error *error; /* of the first call that failed */
};

/* One call at a time. */
struct slot {
	struct load *load;
	struct grpc_client *client;
	bool owns_client;
};

static struct grpc_client *client_new(struct load *l)
{
	const struct h2_channel_config config = {
		.loop = l->loop,
		.endpoint = l->options->endpoint,
		.tls = l->tls,
		.tls_name = l->options->tls_name,
		.handshakes = l->handshakes,
	};
	struct grpc_client *c = NULL;

	if (grpc_client_new(&config, &c, &l->error) < 0)
		return NULL;
	return c;
}

static void call(struct slot *s);

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct slot *s = user;
	struct load *l = s->load;

	(void)reply;
	l->ended++;
	if (error && !l->error)
		err_set(&l->error, error->code, "%s", error->msg);
	if (l->options->connection_per_call)
		grpc_client_free(TAKE_PTR(s->client));
	if (l->started < l->options->calls && !l->error)
		call(s);
	else if (l->ended == l->started)
		loop_stop(l->loop);
}

static void call(struct slot *s)
{
	const Csi__V1__GetPluginInfoRequest request = CSI__V1__GET_PLUGIN_INFO_REQUEST__INIT;

	if (!s->client)
		s->client = client_new(s->load);
	if (!s->client) {
		loop_stop(s->load->loop);
		return;
	}
	s->load->started++;
	grpc_client_call(s->client, "/csi.v1.Identity/GetPluginInfo", &request.base,
		&csi__v1__get_plugin_info_response__descriptor, TIMEOUT_MS, on_reply, s);
}

/* Slots beyond the number of connections share them. */
static void start(struct load *l)
{
	const struct options *o = l->options;

	l->slots = x_calloc(o->in_flight, sizeof(*l->slots));
	for (uint32_t i = 0; i < o->in_flight; i++) {
		struct slot *s = &l->slots[i];

		s->load = l;
		s->owns_client = o->connection_per_call || i < o->connections;
		if (!s->owns_client)
			s->client = l->slots[i % o->connections].client;
		if (l->started < o->calls && !l->error)
			call(s);
	}
}

static void wait_for_end_of_input(void)
{
	char ignored[64];

	puts("open");
	fflush(stdout);
	while (read(STDIN_FILENO, ignored, sizeof(ignored)) > 0)
		;
}

static void finish(struct load *l)
{
	for (uint32_t i = 0; l->slots && i < l->options->in_flight; i++) {
		if (l->slots[i].owns_client)
			grpc_client_free(l->slots[i].client);
	}
	free(l->slots);
	handshakes_free(l->handshakes);
	tls_context_unref(l->tls);
	loop_free(l->loop);
}

static int run(const struct options *o, struct error **err)
{
	CLEANUP(finish) struct load l = {.options = o};
	const struct tls_config tls = {.role = TLS_CLIENT,
		.ca_file = o->ca_file,
		.cert_file = o->cert_file,
		.key_file = o->key_file,
		.alpn = "h2"};
	uint64_t start_ns;

	if (o->ca_file && tls_context_new(&tls, &l.tls, err) < 0)
		return -1;
	if (loop_new(&l.loop, err) < 0)
		return -1;
	l.handshakes = handshakes_new(l.loop);
	start_ns = clock_ns();
	start(&l);
	if (l.started > 0)
		loop_run(l.loop);
	if (l.error) {
		*err = l.error;
		return -1;
	}
	printf("%u calls in %llu ms\n", l.ended, (unsigned long long)((clock_ns() - start_ns) / NS_PER_MS));
	if (o->hold)
		wait_for_end_of_input();
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(args_done) struct args args = {0};
	struct options o = {.tls_name = "pmem-node-controller", .calls = 1, .in_flight = 1, .connections = 1};
	const struct opt table[] = {
		{"endpoint", OPT_STR, &o.endpoint, "URL", "unix:///path or tcp://host:port (required)"},
		{"calls", OPT_U32, &o.calls, "N", "how many calls"},
		{"inFlight", OPT_U32, &o.in_flight, "N", "how many at a time"},
		{"connections", OPT_U32, &o.connections, "N", "over how many connections, at most inFlight"},
		{"connectionPerCall", OPT_BOOL, &o.connection_per_call, NULL, "a new one for each call"},
		{"hold", OPT_BOOL, &o.hold, NULL, "keep connections until the end of standard input"},
		{"caFile", OPT_STR, &o.ca_file, "FILE", "mutual TLS: CA of the server"},
		{"certFile", OPT_STR, &o.cert_file, "FILE", "own certificate"},
		{"keyFile", OPT_STR, &o.key_file, "FILE", "its key"},
		{"tlsName", OPT_STR, &o.tls_name, "NAME", "whom the server's certificate must name"},
		{"help", OPT_BOOL, &o.show_help, NULL, "print this help and exit"},
		{0},
	};

	if (args_parse(table, argc, argv, &args, &err) < 0) {
		fprintf(stderr, "grpc-load: %s\n", err->msg);
		return 2;
	}
	if (o.show_help || !o.endpoint || o.in_flight == 0 || o.connections == 0) {
		CLEANUP(free_charp) char *help = args_help("usage: grpc-load -endpoint URL [FLAG]...", table);
		fputs(help, stdout);
		return o.show_help ? 0 : 2;
	}
	if (run(&o, &err) < 0) {
		fprintf(stderr, "%s: %s\n", err_code_name(err->code), err->msg);
		return 1;
	}
	return 0;
}
