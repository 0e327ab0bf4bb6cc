/* SPDX-License-Identifier: Apache-2.0 */
/*
 * echo_server.c - serves echo_service.h on the endpoints of its command line, for clients of other makes.
 *
 * With certificates its TCP endpoints have mutual TLS; only -peerName may call then. Says "ready PORT" on
 * standard output, of the last TCP endpoint. SIGUSR1 lets one call of Wait end, SIGTERM drains.
 */
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "base/str.h"
#include "interop/echo_service.h"
#include "net/core/loop.h"
#include "net/core/workers.h"
#include "net/grpc/grpc_server.h"
#include "os/args.h"

struct program {
	struct loop *loop;
	struct grpc_server *server;
	struct echo echo;
	struct loop_signal *terminate;
	struct loop_signal *release;
};

/* From now on there is nothing to release, and the signal is not caught. */
static void on_drained(void *user)
{
	struct program *p = user;
	sigset_t release;

	sigemptyset(&release);
	sigaddset(&release, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &release, NULL);
	loop_signal_close(p->release);
	loop_stop(p->loop);
}

static void on_terminate(void *user)
{
	struct program *p = user;

	loop_signal_close(p->terminate);
	grpc_server_drain(p->server, on_drained, p);
}

static void on_release(void *user)
{
	struct program *p = user;

	echo_release(&p->echo);
}

static int serve(struct program *p, char **endpoints, struct tls_context *tls, struct error **err)
{
	for (char **endpoint = endpoints; *endpoint; endpoint++) {
		bool is_tcp = str_starts(*endpoint, "tcp://");

		if (grpc_server_listen(p->server, *endpoint, is_tcp ? tls : NULL, err) < 0)
			return -1;
	}
	if (loop_on_signal(p->loop, SIGTERM, on_terminate, p, &p->terminate, err) < 0)
		return -1;
	if (loop_on_signal(p->loop, SIGUSR1, on_release, p, &p->release, err) < 0)
		return -1;
	printf("ready %u\n", grpc_server_port(p->server));
	fflush(stdout);
	loop_run(p->loop);
	return 0;
}

struct flags {
	const char *ca_file;
	const char *cert_file;
	const char *key_file;
	const char *peer_name;
};

static int parse(int argc, char **argv, struct flags *ret, struct args *ret_args, struct error **err)
{
	const struct opt table[] = {
		{"caFile", OPT_STR, &ret->ca_file, "FILE", "authority that signs the clients"},
		{"certFile", OPT_STR, &ret->cert_file, "FILE", "own certificate"},
		{"keyFile", OPT_STR, &ret->key_file, "FILE", "its key"},
		{"peerName", OPT_STR, &ret->peer_name, "NAME", "the one client"},
		{0},
	};

	return args_parse(table, argc, argv, ret_args, err);
}

/* Return: 0 with @ret NULL when no certificate is given, or as tls_context_new(). */
static int load(const struct flags *f, struct tls_context **ret, struct error **err)
{
	const char *names[] = {f->peer_name, NULL};
	const struct tls_config config = {
		.role = TLS_SERVER,
		.ca_file = f->ca_file,
		.cert_file = f->cert_file,
		.key_file = f->key_file,
		.alpn = "h2",
		.peer_names = f->peer_name ? names : NULL,
	};

	*ret = NULL;
	return f->cert_file ? tls_context_new(&config, ret, err) : 0;
}

static int run(int argc, char **argv, struct program *p, struct error **err)
{
	CLEANUP(workers_freep) struct workers *workers = workers_new(WORKERS_DEFAULT_MAX);
	CLEANUP(tls_context_unrefp) struct tls_context *tls = NULL;
	CLEANUP(args_done) struct args args = {0};
	const struct grpc_service services[] = {{.methods = echo_methods, .self = &p->echo}, {0}};
	struct handshakes *handshakes;
	struct flags flags = {0};

	if (parse(argc, argv, &flags, &args, err) < 0 || load(&flags, &tls, err) < 0)
		return -1;
	if (loop_new(&p->loop, err) < 0)
		return -1;
	handshakes = handshakes_new(p->loop);
	p->server = grpc_server_new(&(struct grpc_server_config){
		.loop = p->loop,
		.workers = workers,
		.services = services,
		.allow_plain_tcp = true,
		.handshakes = handshakes,
	});
	if (serve(p, args.rest, tls, err) < 0)
		return -1;
	grpc_server_free(p->server);
	handshakes_free(handshakes);
	loop_free(p->loop);
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct program p = {0};

	log_init("echo_server", LOG_TEXT, 0);
	echo_init(&p.echo);
	if (run(argc, argv, &p, &err) < 0) {
		log_error("cannot serve", F_ERR(err));
		return 1;
	}
	return 0;
}
