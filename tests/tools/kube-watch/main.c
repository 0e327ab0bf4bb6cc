/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kube-watch: what the Kubernetes client makes of a real API server.
 *
 * kube-watch KUBECONFIG watch KIND: prints "+KEY VERSION", "*KEY VERSION", "-KEY", "synced COUNT HELD_KIB"
 *
 * kube-watch KUBECONFIG get PATH: prints the reply
 *
 * kube-watch KUBECONFIG patch PATH JSON: likewise
 *
 * kube-watch KUBECONFIG lead NAMESPACE NAME IDENTITY: prints "leading", "not leading"
 *
 * KUBECONFIG "-" is that of the pod. Ended by SIGTERM or SIGINT, which gives a lease back. Exit status: 0
 * done, 1 the server refused, 2 wrong usage.
 */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/informer.h"
#include "kube/lease.h"
#include "kube/objects/objects.h"

#define TIMEOUT_MS 30000

static const struct kube_kind *const kinds[] = {&kube_kind_nodes, &kube_kind_csi_nodes, &kube_kind_volumes,
	&kube_kind_claims, &kube_kind_classes, &kube_kind_capacities};

struct program {
	struct loop *loop;
	struct handshakes *handshakes;
	struct kube_config *config;
	struct kube_client *client;
	struct informer *informer;
	struct lease *lease;
	struct loop_signal *signals[2];
	int status;
};

static void on_changed(void *user, const char *key, const void *old, const void *new)
{
	const struct kube_meta *m = new;

	(void)user;
	if (!m)
		printf("-%s\n", key);
	else
		printf("%c%s %s\n", old ? '*' : '+', key, m->resource_version);
}

static size_t held_kib(void)
{
	struct mallinfo2 m = mallinfo2();

	return (m.uordblks + m.hblkhd) / 1024;
}

static void count(void *user, const void *object)
{
	size_t *n = user;

	(void)object;
	(*n)++;
}

static void on_synced(void *user)
{
	struct program *p = user;
	size_t n = 0;

	informer_each(p->informer, count, &n);
	printf("synced %zu %zu\n", n, held_kib());
	fflush(stdout);
}

static const struct informer_events events = {on_changed, on_synced};

static void on_lead(void *user, bool leading)
{
	(void)user;
	printf("%s\n", leading ? "leading" : "not leading");
}

static void stop(void *user)
{
	const struct program *p = user;

	loop_stop(p->loop);
}

static void on_signal(void *user)
{
	struct program *p = user;

	if (p->lease)
		lease_stop(p->lease, stop, p);
	else
		stop(p);
}

static void on_reply(void *user, unsigned status, struct span body, const struct error *error)
{
	struct program *p = user;

	(void)status;
	p->status = error ? 1 : 0;
	if (error)
		log_error("the server refused", F_ERR(error));
	else
		printf("%.*s\n", (int)body.n, body.n > 0 ? (const char *)body.p : "");
	stop(p);
}

static int watch(struct program *p, const char *what)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!str_eq(kinds[i]->what, what))
			continue;
		p->informer = informer_new(p->client, kinds[i], &events, p);
		return 0;
	}
	return -1;
}

static int request(struct program *p, const char *verb, const char *path, const char *body)
{
	const struct kube_call call = {
		.verb = verb,
		.what = path,
		.method = body ? "PATCH" : "GET",
		.path = path,
		.content_type = "application/merge-patch+json",
		.body = body ? span_of(body) : (struct span){0},
		.timeout_ms = TIMEOUT_MS,
	};

	kube_client_call(p->client, &call, on_reply, p);
	return 0;
}

static int lead(struct program *p, char **argv)
{
	const struct lease_config config = {
		.client = p->client,
		.namespace = argv[3],
		.name = argv[4],
		.identity = argv[5],
		.changed = on_lead,
	};

	p->lease = lease_new(&config);
	return 0;
}

static int begin(struct program *p, int argc, char **argv)
{
	if (argc == 4 && str_eq(argv[2], "watch"))
		return watch(p, argv[3]);
	if (argc == 4 && str_eq(argv[2], "get"))
		return request(p, "get", argv[3], NULL);
	if (argc == 5 && str_eq(argv[2], "patch"))
		return request(p, "patch", argv[3], argv[4]);
	if (argc == 6 && str_eq(argv[2], "lead"))
		return lead(p, argv);
	return -1;
}

static int set_up(struct program *p, const char *kubeconfig, struct error **err)
{
	int rv = str_eq(kubeconfig, "-") ? kube_config_in_cluster(&p->config, err)
					 : kube_config_load(kubeconfig, &p->config, err);

	if (rv < 0 || loop_new(&p->loop, err) < 0)
		return -1;
	p->handshakes = handshakes_new(p->loop);
	const struct kube_client_config config = {
		.loop = p->loop,
		.handshakes = p->handshakes,
		.kube = p->config,
		.qps = 50,
		.burst = 100,
	};

	if (kube_client_new(&config, &p->client, err) < 0 ||
		loop_on_signal(p->loop, SIGTERM, on_signal, p, &p->signals[0], err) < 0)
		return -1;
	return loop_on_signal(p->loop, SIGINT, on_signal, p, &p->signals[1], err);
}

static void tear_down(struct program *p)
{
	informer_free(p->informer);
	lease_free(p->lease);
	kube_client_free(p->client);
	loop_signal_close(p->signals[0]);
	loop_signal_close(p->signals[1]);
	handshakes_free(p->handshakes);
	loop_free(p->loop);
	kube_config_free(p->config);
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct program p = {0};

	mem_tune(MEM_LARGE_BYTES);
	setvbuf(stdout, NULL, _IOLBF, 0);
	log_init("kube-watch", LOG_TEXT, 0);
	if (argc < 4) {
		fprintf(stderr, "usage: kube-watch KUBECONFIG watch|get|patch|lead ...\n");
		return 2;
	}
	if (set_up(&p, argv[1], &err) < 0) {
		log_error("kube-watch cannot begin", F_ERR(err));
		p.status = 1;
	} else if (begin(&p, argc, argv) < 0) {
		fprintf(stderr, "usage: kube-watch KUBECONFIG watch|get|patch|lead ...\n");
		p.status = 2;
	} else {
		loop_run(p.loop);
	}
	tear_down(&p);
	return p.status;
}
