/*
 * echo_server.c - serves echo_service.h on the endpoints of its command line, for clients of other makes.
 *
 * Says "ready" on standard output. SIGUSR1 lets one call of Wait end, SIGTERM drains.
 */
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "interop/echo_service.h"
#include "net/grpc_server.h"
#include "net/loop.h"
#include "net/workers.h"

struct program {
	struct loop *loop;
	struct grpc_server *server;
	struct echo echo;
	struct loop_signal *terminate;
	struct loop_signal *release;
};

/* From now on there is nothing to release, and nobody who would catch the signal. */
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

static int serve(struct program *p, char **endpoints, struct error **err)
{
	for (char **endpoint = endpoints; *endpoint; endpoint++) {
		if (grpc_server_listen(p->server, *endpoint, err) < 0)
			return -1;
	}
	if (loop_on_signal(p->loop, SIGTERM, on_terminate, p, &p->terminate, err) < 0)
		return -1;
	if (loop_on_signal(p->loop, SIGUSR1, on_release, p, &p->release, err) < 0)
		return -1;
	puts("ready");
	fflush(stdout);
	loop_run(p->loop);
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(workers_freep) struct workers *workers = workers_new(WORKERS_DEFAULT_MAX);
	struct program p = {0};
	const struct grpc_service services[] = {{echo_methods, &p.echo}, {0}};

	(void)argc;
	log_init("echo_server", LOG_TEXT, 0);
	echo_init(&p.echo);
	if (loop_new(&p.loop, &err) < 0) {
		log_error("cannot start", F_ERR(err));
		return 1;
	}
	p.server = grpc_server_new(&(struct grpc_server_config){p.loop, workers, services, false});
	if (serve(&p, argv + 1, &err) < 0) {
		log_error("cannot serve", F_ERR(err));
		return 1;
	}
	grpc_server_free(p.server);
	loop_free(p.loop);
	return 0;
}
