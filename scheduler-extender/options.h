/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the extender's command line.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "os/program.h"
#include "scheduler/node_choice.h"

struct options {
	struct program_flags flags;
	const char *driver_name;
	const char *scheduler_listen;          /* HTTPS; "": none */
	const char *insecure_scheduler_listen; /* HTTP; "": none */
	const char *probe_listen;              /* HTTP, for probes only; "": none */
	const char *webhook_listen;            /* HTTPS; "": the others serve the webhook, too */
	const char *webhook_configuration;     /* the object whose caBundle is kept up to date; "": none */
	const char *webhook_service;
	const char *client_ca_file; /* the authority that signs clients over HTTPS; "": clients need no
				       certificate */
	const char *ca_file;        /* of the webhook; "": none */
	const char *cert_file;      /* of what is served over HTTPS, too */
	const char *key_file;
	char **scheduler_names; /* strv: their pods are marked by the webhook */
	enum sched_policy policy;
	uint32_t kube_qps;
	uint32_t kube_burst;
	bool strict_keys;
};

/**
 * options_parse() - read the command line, with defaults filled in and values checked.
 * @ret:         options_done(); strings are borrowed from @argv and literals
 * @ret_ignored: names of accepted flags without effect, for one warning each: strv_free()
 *
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT that names the flag.
 */
int options_parse(
	int argc, char **argv, struct options *ret, char ***ret_ignored, struct error **err) MUST_CHECK;

/** options_done() - release what @o owns; safe on a zeroed one. */
void options_done(struct options *o);

/** options_serve_scheduler() - whether kube-scheduler is served, and not the webhook alone. */
bool options_serve_scheduler(const struct options *o);

/** options_help() - usage text. Return: caller frees. */
char *options_help(void);
