/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record-load: reads and writes records of volumes as a controller does that creates and deletes them,
 * without nodes and callers: what is left is the time of the API server and of its client. Prints one line of
 * "KEY VALUE" pairs. Exit status: 0 all went well, 1 a request failed, 2 wrong usage.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "controller/volume_key.h"
#include "net/core/loop.h"
#include "os/args.h"
#include "resources/volume_records.h"
#include "volume/id.h"

#define NODE     "sim-0"
#define REQUESTS 8 /* of one volume; the release is two */

enum step {
	STEP_READ,
	STEP_CREATE,
	STEP_ANSWER,
	STEP_READ_AGAIN,
	STEP_DELETE,
	STEP_CONFIRM,
	STEP_RELEASE,
	STEP_END
};

struct options {
	const char *kubeconfig;
	const char *driver_name;
	const char *name;
	uint32_t workers;
	uint32_t volumes;
	bool show_help;
};

struct load {
	const struct options *options;
	struct loop *loop;
	struct handshakes *handshakes;
	struct kube_config *config;
	struct kube_client *client;
	struct kube_records *records;
	struct worker *workers;
	uint32_t begun;
	uint32_t running;      /* workers */
	struct error *failure; /* the first */
};

struct worker {
	struct load *load;
	struct pmem_volume *record;
	char *name;
	enum step step;
};

static void next_step(struct worker *w);

static void next_volume(struct worker *w)
{
	struct load *l = w->load;

	if (l->begun == l->options->volumes || l->failure) {
		if (--l->running == 0)
			loop_stop(l->loop);
		return;
	}
	free(w->name);
	w->name = x_asprintf("%s-%u", l->options->name, ++l->begun);
	w->step = STEP_READ;
	next_step(w);
}

static void on_reply(void *user, struct pmem_volume *record, const struct error *error)
{
	struct worker *w = user;
	bool is_write = w->step != STEP_READ && w->step != STEP_READ_AGAIN;

	pmem_volume_free(w->record);
	w->record = record;
	if (error && !w->load->failure)
		err_set(&w->load->failure, error->code, "%s", error->msg);
	else if (is_write && w->step != STEP_RELEASE && !record && !w->load->failure)
		err_set(&w->load->failure, ERR_INTERNAL, "the reply to a write has no record");
	w->step++;
	if (w->load->failure || w->step == STEP_END)
		next_volume(w);
	else
		next_step(w);
}

static void write_record(struct worker *w, enum volume_record_write what)
{
	struct volume_records r = kube_records_interface(w->load->records);

	r.write(r.self, what, w->record, on_reply, w);
}

static void make_record(struct worker *w, const char *key)
{
	struct pmem_volume *v = pmem_volume_new(key, w->load->options->driver_name);

	v->volume_name = x_strdup(w->name);
	v->size_bytes = 4U << 20;
	v->attempts = 1;
	pmem_volume_add_node(v, NODE);
	pmem_volume_free(w->record);
	w->record = v;
}

static void fill_status(struct worker *w)
{
	char id[VOLUME_ID_MAX + 1];
	struct pmem_volume *v = w->record;
	const struct pmem_verdict ready = {"True", "Ready", "The volume can be used."};

	volume_id_mint(w->name, NODE, id);
	v->handle = x_strdup(id);
	v->phase = x_strdup("Ready");
	v->capacity_bytes = v->size_bytes;
	pmem_volume_set_location(v);
	pmem_volume_add_copy(v, NODE, "Ready", v->size_bytes, /* report= */ 1);
	pmem_condition_set(&v->conditions, &v->conditions, "Ready", &ready);
}

static void next_step(struct worker *w)
{
	struct volume_records r = kube_records_interface(w->load->records);
	struct volume_key key = volume_key_of_name(w->name);

	switch (w->step) {
	case STEP_READ:
	case STEP_READ_AGAIN:
		r.read(r.self, key.hex, on_reply, w);
		break;
	case STEP_CREATE:
		make_record(w, key.hex);
		write_record(w, RECORD_CREATE);
		break;
	case STEP_ANSWER:
		fill_status(w);
		write_record(w, RECORD_STATUS);
		break;
	case STEP_DELETE:
		w->record->deleting = true;
		write_record(w, RECORD_SPEC);
		break;
	case STEP_CONFIRM:
		pmem_volume_drop_node(w->record, NODE);
		write_record(w, RECORD_SPEC);
		break;
	case STEP_RELEASE:
		write_record(w, RECORD_RELEASE);
		break;
	case STEP_END:
		break;
	}
}

static int open_client(struct load *l, struct error **err)
{
	if (kube_config_load(l->options->kubeconfig, &l->config, err) < 0 || loop_new(&l->loop, err) < 0)
		return -1;
	l->handshakes = handshakes_new(l->loop);
	const struct kube_client_config config = {
		.loop = l->loop, .handshakes = l->handshakes, .kube = l->config};
	if (kube_client_new(&config, &l->client, err) < 0)
		return -1;
	l->records = kube_records_new(l->client, l->options->driver_name);
	return 0;
}

static void load_done(struct load *l)
{
	kube_client_free(l->client);
	kube_records_free(l->records);
	for (uint32_t i = 0; l->workers && i < l->options->workers; i++) {
		pmem_volume_free(l->workers[i].record);
		free(l->workers[i].name);
	}
	free(l->workers);
	handshakes_free(l->handshakes);
	loop_free(l->loop);
	kube_config_free(l->config);
	error_free(l->failure);
}

static int run(const struct options *o, struct error **err)
{
	CLEANUP(load_done) struct load l = {.options = o, .running = o->workers};
	uint64_t began_ns;

	if (open_client(&l, err) < 0)
		return -1;
	l.workers = x_calloc(o->workers, sizeof(*l.workers));
	began_ns = clock_ns();
	for (uint32_t i = 0; i < o->workers; i++) {
		l.workers[i].load = &l;
		next_volume(&l.workers[i]);
	}
	loop_run(l.loop);
	if (l.failure)
		return err_set(err, l.failure->code, "%s", l.failure->msg);
	printf("volumes %u requests %u ms %llu\n", o->volumes, o->volumes * REQUESTS,
		(unsigned long long)((clock_ns() - began_ns) / NS_PER_MS));
	return 0;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(args_done) struct args args = {0};
	struct options o = {
		.driver_name = "pmem-csi.intel.com", .name = "record", .workers = 1, .volumes = 1};
	const struct opt table[] = {
		{"kubeconfig", OPT_STR, &o.kubeconfig, "FILE", "of the API server (required)"},
		{"drivername", OPT_STR, &o.driver_name, "NAME", "of the driver in the records"},
		{"name", OPT_STR, &o.name, "NAME", "volumes are called NAME-1, ... (default record)"},
		{"workers", OPT_U32, &o.workers, "N", "how many volumes at a time"},
		{"volumes", OPT_U32, &o.volumes, "N", "how many volumes in all"},
		{"help", OPT_BOOL, &o.show_help, NULL, "print this help and exit"},
		{0},
	};

	if (args_parse(table, argc, argv, &args, &err) < 0) {
		fprintf(stderr, "record-load: %s\n", err->msg);
		return 2;
	}
	if (o.show_help || !o.kubeconfig || o.workers == 0 || o.volumes == 0 || args.rest[0]) {
		CLEANUP(free_charp) char *help = args_help("usage: record-load [FLAG]...", table);
		fputs(help, stdout);
		return o.show_help ? 0 : 2;
	}
	log_init("record-load", LOG_TEXT, 0);
	if (run(&o, &err) < 0) {
		fprintf(stderr, "%s: %s\n", err_code_name(err->code), err->msg);
		return 1;
	}
	return 0;
}
