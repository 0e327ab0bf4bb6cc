/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi-load: many volumes at a time through their lives, as pods come and go. A worker has one volume at a
 * time; a call that fails in a way that Kubernetes repeats is repeated. Prints one line of "KEY VALUE" pairs.
 * Exit status: 0 all went well, 1 a volume failed or the space did not come back, 2 wrong usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "load.h"
#include "net/core/loop.h"
#include "os/args.h"

#define RETRY_MS     20
#define CAPACITY_MS  10
#define GIVE_UP_NS   (600 * NS_PER_S)
#define MAX_ODD      5
#define MAX_REPORTED 10

struct load {
	const struct options *options;
	struct loop *loop;
	struct tls_context *tls; /* NULL: plain */
	struct handshakes *handshakes;
	struct grpc_client *grpc; /* for the capacity */
	struct loop_timer *look;
	struct worker *workers;
	uint32_t begun;
	uint32_t running; /* workers */
	uint32_t failed;  /* volumes */
	uint32_t early;   /* calls that were repeated because they came too early */
	uint32_t odd;     /* calls that failed otherwise */
	int64_t before_bytes;
	uint64_t began_ns;
	uint64_t create_ns;  /* of all first steps, with their retries */
	uint64_t ended_ns;   /* of the last volume */
	uint64_t back_ns;    /* when the space was back */
	struct error *error; /* that ends everything */
};

static void next_step(struct worker *w);
static void look_at_space(void *user);

static void fail(struct load *l, const struct error *error)
{
	if (!l->error)
		err_set(&l->error, error->code, "%s", error->msg);
	loop_stop(l->loop);
}

static void all_ended(struct load *l)
{
	l->ended_ns = clock_ns();
	if (l->options->space_ms > 0)
		look_at_space(l);
	else
		loop_stop(l->loop);
}

static void next_volume(struct worker *w)
{
	struct load *l = w->load;

	if (l->begun == l->options->volumes) {
		if (--l->running == 0)
			all_ended(l);
		return;
	}
	w->number = ++l->begun;
	w->step = 0;
	w->odd = 0;
	w->began_ns = clock_ns();
	next_step(w);
}

static void complain(const struct worker *w, const struct error *error)
{
	const struct options *o = w->load->options;

	if (w->load->odd <= MAX_REPORTED)
		fprintf(stderr, "%s-%u: %s: %s: %s\n", o->name, w->number, load_step_name(o, w->step),
			err_code_name(error->code), error->msg);
}

/* Whether @code is an answer that the driver gives when a call comes too early. RESOURCE_EXHAUSTED is one for
 * CreateVolume, since a pool is exhausted while the space of deleted volumes is being erased. */
static bool is_early(const struct worker *w, enum err_code code)
{
	return code == ERR_ABORTED || code == ERR_UNAVAILABLE || code == ERR_DEADLINE ||
	       (code == ERR_EXHAUSTED && w->step == 0);
}

/* Kubelet and the sidecars repeat whatever failed; here, what should not have failed is repeated a few times
 * only. */
static bool is_repeated(struct worker *w, const struct error *error)
{
	if (is_early(w, error->code)) {
		w->load->early++;
		return clock_ns() - w->began_ns < GIVE_UP_NS;
	}
	w->load->odd++;
	complain(w, error);
	return ++w->odd < MAX_ODD;
}

static void on_reply(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct worker *w = user;
	const struct options *o = w->load->options;

	if (error && is_repeated(w, error)) {
		loop_timer_set(w->retry, RETRY_MS, /* repeat_ms= */ 0);
		return;
	}
	if (error) {
		w->load->failed++;
		next_volume(w);
		return;
	}
	if (w->step == 0) {
		load_take_id(w, reply);
		w->load->create_ns += clock_ns() - w->began_ns;
	}
	w->began_ns = clock_ns();
	if (++w->step == load_n_steps(o))
		next_volume(w);
	else
		next_step(w);
}

static void next_step(struct worker *w)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (load_call(w->load->options, w, on_reply, &err) < 0)
		fail(w->load, err);
}

static void retry_due(void *user)
{
	next_step(user);
}

static void on_capacity_after(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct load *l = user;
	uint64_t waited_ns = clock_ns() - l->ended_ns;

	if (error) {
		fail(l, error);
		return;
	}
	if (load_available(reply) == l->before_bytes) {
		l->back_ns = clock_ns();
		loop_stop(l->loop);
	} else if (waited_ns > l->options->space_ms * NS_PER_MS) {
		err_set(&l->error, ERR_DEADLINE, "the capacity is %lld bytes, not %lld as before",
			(long long)load_available(reply), (long long)l->before_bytes);
		loop_stop(l->loop);
	} else {
		loop_timer_set(l->look, CAPACITY_MS, /* repeat_ms= */ 0);
	}
}

static void look_at_space(void *user)
{
	struct load *l = user;

	load_call_capacity(l->grpc, l->options->timeout_ms, on_capacity_after, l);
}

static void on_capacity_before(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct load *l = user;

	if (error) {
		fail(l, error);
		return;
	}
	l->before_bytes = load_available(reply);
	l->began_ns = clock_ns();
	l->running = l->options->workers;
	for (uint32_t i = 0; i < l->options->workers; i++)
		next_volume(&l->workers[i]);
}

static int open_tls(struct load *l, struct error **err)
{
	const struct tls_config config = {.role = TLS_CLIENT,
		.ca_file = l->options->ca_file,
		.cert_file = l->options->cert_file,
		.key_file = l->options->key_file,
		.alpn = "h2"};

	if (!l->options->ca_file)
		return 0;
	l->handshakes = handshakes_new(l->loop);
	return tls_context_new(&config, &l->tls, err);
}

static int start(struct load *l, struct error **err)
{
	if (open_tls(l, err) < 0)
		return -1;
	const struct h2_channel_config config = {.loop = l->loop,
		.endpoint = l->options->endpoint,
		.tls = l->tls,
		.tls_name = l->tls ? "pmem-node-controller" : NULL,
		.handshakes = l->handshakes};

	if (grpc_client_new(&config, &l->grpc, err) < 0)
		return -1;
	l->look = loop_timer_new(l->loop, look_at_space, l);
	l->workers = x_calloc(l->options->workers, sizeof(*l->workers));
	for (uint32_t i = 0; i < l->options->workers; i++) {
		struct worker *w = &l->workers[i];

		w->load = l;
		w->retry = loop_timer_new(l->loop, retry_due, w);
		if (grpc_client_new(&config, &w->grpc, err) < 0)
			return -1;
	}
	load_call_capacity(l->grpc, l->options->timeout_ms, on_capacity_before, l);
	return 0;
}

static void finish(struct load *l)
{
	for (uint32_t i = 0; l->workers && i < l->options->workers; i++) {
		grpc_client_free(l->workers[i].grpc);
		loop_timer_close(l->workers[i].retry);
		free(l->workers[i].id);
	}
	free(l->workers);
	grpc_client_free(l->grpc);
	if (l->look)
		loop_timer_close(l->look);
	handshakes_free(l->handshakes);
	tls_context_unref(l->tls);
	loop_free(l->loop);
}

static int run(const struct options *o, struct error **err)
{
	CLEANUP(finish) struct load l = {.options = o};

	if (loop_new(&l.loop, err) < 0)
		return -1;
	if (start(&l, err) < 0)
		return -1;
	loop_run(l.loop);
	if (l.error) {
		*err = l.error;
		return -1;
	}
	printf("volumes %u failed %u odd %u early %u ms %llu create_us %llu", o->volumes, l.failed, l.odd,
		l.early, (unsigned long long)((l.ended_ns - l.began_ns) / NS_PER_MS),
		(unsigned long long)(l.create_ns / (NS_PER_MS / 1000) / o->volumes));
	if (o->space_ms > 0)
		printf(" space_ms %llu", (unsigned long long)((l.back_ns - l.began_ns) / NS_PER_MS));
	putchar('\n');
	return l.failed > 0 ? err_set(err, ERR_INTERNAL, "%u volumes failed", l.failed) : 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(args_done) struct args args = {0};
	struct options o = {.endpoint = getenv("CSI_ENDPOINT"),
		.name = "load",
		.fs_type = "ext4",
		.size_bytes = 15U << 20,
		.timeout_ms = 120000,
		.workers = 1,
		.volumes = 1};
	const struct opt table[] = {
		{"endpoint", OPT_STR, &o.endpoint, "URL", "socket of the driver (default: $CSI_ENDPOINT)"},
		{"caFile", OPT_STR, &o.ca_file, "FILE", "mutual TLS: CA of the server"},
		{"certFile", OPT_STR, &o.cert_file, "FILE", "mutual TLS: own certificate"},
		{"keyFile", OPT_STR, &o.key_file, "FILE", "mutual TLS: key of it"},
		{"name", OPT_STR, &o.name, "NAME", "volumes are called NAME-1, ... (default load)"},
		{"fs", OPT_STR, &o.fs_type, "TYPE", "file system: ext4 (default) or xfs"},
		{"kubelet", OPT_STR, &o.kubelet, "DIR",
			"stage and publish below it; else create and delete only"},
		{"keep", OPT_BOOL, &o.keep, NULL, "without -kubelet: create only"},
		{"size", OPT_SIZE, &o.size_bytes, "SIZE", "of each volume (default 15Mi)"},
		{"timeout", OPT_DURATION, &o.timeout_ms, "DURATION", "deadline of a call (default 2m)"},
		{"space", OPT_DURATION, &o.space_ms, "DURATION",
			"at the end, wait so long for the capacity to be as before"},
		{"workers", OPT_U32, &o.workers, "N", "how many volumes at a time"},
		{"volumes", OPT_U32, &o.volumes, "N", "how many volumes in all"},
		{"help", OPT_BOOL, &o.show_help, NULL, "print this help and exit"},
		{0},
	};

	if (args_parse(table, argc, argv, &args, &err) < 0) {
		fprintf(stderr, "csi-load: %s\n", err->msg);
		return 2;
	}
	if (o.show_help || !o.endpoint || o.workers == 0 || o.volumes == 0 || args.rest[0]) {
		CLEANUP(free_charp) char *help = args_help("usage: csi-load [FLAG]...", table);
		fputs(help, stdout);
		return o.show_help ? 0 : 2;
	}
	if (run(&o, &err) < 0) {
		fprintf(stderr, "%s: %s\n", err_code_name(err->code), err->msg);
		return 1;
	}
	return 0;
}
