/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "kube/object.h"
#include "net/core/addr.h"

#define DEFAULT_DRIVER_NAME "pmem-csi.intel.com"
#define DEFAULT_SERVICE     "pmem-csi-webhook"

/* The reason why flags of earlier versions, which asked the controllers for the capacity, are ignored. */
#define CAPACITY_REASON "the capacity of nodes is read from the API server"

static struct options defaults(void)
{
	return (struct options){.flags = PROGRAM_FLAGS_INIT,
		.driver_name = DEFAULT_DRIVER_NAME,
		.scheduler_listen = "",
		.insecure_scheduler_listen = "",
		.probe_listen = "",
		.webhook_listen = "",
		.webhook_configuration = "",
		.webhook_service = DEFAULT_SERVICE,
		.client_ca_file = "",
		.ca_file = "",
		.cert_file = "",
		.key_file = "",
		.policy = SCHED_BINPACK,
		.kube_qps = 50,
		.kube_burst = 100};
}

static void free_opts(struct opt **opts)
{
	free(*opts);
}

/* Values that are parsed later. */
struct texts {
	const char *policy;
	const char *scheduler_names;
};

#define DEFAULT_TEXTS ((struct texts){.policy = "binpack", .scheduler_names = "default-scheduler"})

/* Return: caller frees. */
static struct opt *table(struct options *o, struct texts *t)
{
	const struct opt rows[] = {
		{"schedulerListen", OPT_STR, &o->scheduler_listen, "ADDR",
			"serve kube-scheduler over HTTPS, :port or host:port; needs -certFile. "
			"Without -webhookListen, kube-apiserver is served there, too"},
		{"insecureSchedulerListen", OPT_STR, &o->insecure_scheduler_listen, "ADDR",
			"serve kube-scheduler over plain HTTP, on the loopback address of its node"},
		{"webhookListen", OPT_STR, &o->webhook_listen, "ADDR",
			"serve kube-apiserver's webhook here over HTTPS, and nothing else; needs -certFile"},
		{"webhookConfiguration", OPT_STR, &o->webhook_configuration, "NAME",
			"keep the caBundle of this MutatingWebhookConfiguration equal to -caFile, "
			"which then must be the CA of -certFile; "
			"needs -webhookListen (default: no configuration is changed)"},
		{"webhookService", OPT_STR, &o->webhook_service, "NAME",
			"with -webhookConfiguration: the Service, in the namespace of the pod, "
			"by which API servers call the webhook; webhooks of other Services are not changed"},
		{"schedulerNames", OPT_STR, &t->scheduler_names, "NAMES",
			"schedulers that ask the extender, separated by commas: "
			"the webhook does not mark pods of other schedulers (default: default-scheduler)"},
		{"probeListen", OPT_STR, &o->probe_listen, "ADDR",
			"serve /healthz and /readyz over plain HTTP on a port of its own, for probes: "
			"clients of the other ports cannot block them"},
		{"clientCAFile", OPT_STR, &o->client_ca_file, "FILE",
			"HTTPS: file with CA certificates; the certificates of clients must be signed by one of these CAs "
			"(default: clients need no certificate)"},
		{"drivername", OPT_STR, &o->driver_name, "NAME", "name of the CSI driver"},
		{"policy", OPT_STR, &t->policy, "NAME",
			"which node is preferred: binpack keeps large free extents whole, "
			"spread takes the node with the most free capacity"},
		{"caFile", OPT_STR, &o->ca_file, "FILE",
			"with -webhookConfiguration: file with CA certificates; -certFile must be signed by one of these CAs"},
		{"certFile", OPT_STR, &o->cert_file, "FILE", "TLS: certificate of this program"},
		{"keyFile", OPT_STR, &o->key_file, "FILE", "TLS: private key of -certFile"},
		{"strictKeys", OPT_BOOL, &o->strict_keys, NULL,
			"refuse key files that other users may read, instead of logging a warning"},
		{"kube-api-qps", OPT_U32, &o->kube_qps, "N",
			"requests per second to the Kubernetes API server"},
		{"kube-api-burst", OPT_U32, &o->kube_burst, "N",
			"requests to the Kubernetes API server that may be sent in a burst"},
		PROGRAM_FLAGS(&o->flags),
		KLOG_IGNORED_FLAGS,
		{"registryEndpoint", OPT_IGNORED, NULL, "URL", CAPACITY_REASON},
		{"clientCertFile", OPT_IGNORED, NULL, "FILE", CAPACITY_REASON},
		{"clientKeyFile", OPT_IGNORED, NULL, "FILE", CAPACITY_REASON},
		{"insecure", OPT_IGNORED, NULL, NULL, CAPACITY_REASON},
		{0},
	};
	struct opt *copy = x_calloc(ARRAY_SIZE(rows), sizeof(*copy));

	memcpy(copy, rows, sizeof(rows));
	return copy;
}

static int read_policy(const char *name, enum sched_policy *ret, struct error **err)
{
	if (str_eq(name, "binpack"))
		*ret = SCHED_BINPACK;
	else if (str_eq(name, "spread"))
		*ret = SCHED_SPREAD;
	else
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-policy must be binpack or spread, not \"%s\"", name);
	return 0;
}

/* @names: separated by commas. @ret: strv_free(), also after a failure */
static int read_scheduler_names(const char *names, char ***ret, struct error **err)
{
	for (const char *p = names; p; p = *p ? p + 1 : NULL) {
		size_t n = strcspn(p, ",");
		CLEANUP(free_charp) char *name = x_asprintf("%.*s", (int)n, p);

		if (n == 0)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"-schedulerNames \"%s\" has an empty name in it", names);
		strv_add(ret, name);
		p += n;
	}
	return 0;
}

void options_done(struct options *o)
{
	strv_free(TAKE_PTR(o->scheduler_names));
}

static int check_files(const struct options *o, struct error **err)
{
	if (str_empty(o->cert_file) != str_empty(o->key_file))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-certFile and -keyFile can only be given together");
	if (!str_empty(o->scheduler_listen) && str_empty(o->cert_file))
		return err_set(err, ERR_INVALID_ARGUMENT, "-schedulerListen needs -certFile and -keyFile");
	if (!str_empty(o->webhook_listen) && str_empty(o->cert_file))
		return err_set(err, ERR_INVALID_ARGUMENT, "-webhookListen needs -certFile and -keyFile");
	if (!str_empty(o->webhook_configuration) && (str_empty(o->webhook_listen) || str_empty(o->ca_file)))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-webhookConfiguration needs -webhookListen and -caFile");
	if (!str_empty(o->client_ca_file) && str_empty(o->scheduler_listen) && str_empty(o->webhook_listen))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-clientCAFile needs -schedulerListen or -webhookListen");
	return 0;
}

bool options_serve_scheduler(const struct options *o)
{
	return !str_empty(o->scheduler_listen) || !str_empty(o->insecure_scheduler_listen);
}

static int check_listen(const char *flag, const char *where, struct error **err)
{
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://%s", where);
	CLEANUP(addr_done) struct addr a = {0};

	if (str_empty(where) || addr_parse(endpoint, &a, err) == 0)
		return 0;
	return err_wrap(err, "%s", flag);
}

/* Names of objects become parts of paths of requests. */
static int check_object(const char *flag, const char *name, struct error **err)
{
	if (kube_is_name(name))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "%s: \"%s\" is not a valid name of an object", flag, name);
}

static int check_webhook(const struct options *o, struct error **err)
{
	if (str_empty(o->webhook_configuration))
		return 0;
	if (check_object("-webhookConfiguration", o->webhook_configuration, err) < 0)
		return -1;
	return check_object("-webhookService", o->webhook_service, err);
}

static int check(const struct options *o, struct error **err)
{
	if (!options_serve_scheduler(o) && str_empty(o->webhook_listen))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"nothing to serve: -schedulerListen, -insecureSchedulerListen or -webhookListen is needed");
	if (name_check_driver(o->driver_name, err) < 0)
		return -1;
	if (o->kube_qps == 0 || o->kube_burst == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "-kube-api-qps and -kube-api-burst must not be 0");
	if (program_check_format("-logging-format", o->flags.logging_format, err) < 0)
		return -1;
	if (check_listen("-schedulerListen", o->scheduler_listen, err) < 0 ||
		check_listen("-insecureSchedulerListen", o->insecure_scheduler_listen, err) < 0 ||
		check_listen("-webhookListen", o->webhook_listen, err) < 0 ||
		check_listen("-probeListen", o->probe_listen, err) < 0)
		return -1;
	if (check_webhook(o, err) < 0)
		return -1;
	return check_files(o, err);
}

int options_parse(int argc, char **argv, struct options *ret, char ***ret_ignored, struct error **err)
{
	CLEANUP(args_done) struct args args = {0};
	CLEANUP(options_done) struct options o = defaults();
	struct texts texts = DEFAULT_TEXTS;
	CLEANUP(free_opts) struct opt *opts = table(&o, &texts);

	if (args_parse(opts, argc, argv, &args, err) < 0)
		return -1;
	if (args.rest[0])
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", args.rest[0]);
	if (read_policy(texts.policy, &o.policy, err) < 0 ||
		read_scheduler_names(texts.scheduler_names, &o.scheduler_names, err) < 0)
		return -1;
	if (!o.flags.show_version && !o.flags.show_help && check(&o, err) < 0)
		return -1;
	*ret_ignored = TAKE_PTR(args.ignored);
	*ret = o;
	o.scheduler_names = NULL;
	return 0;
}

char *options_help(void)
{
	struct options o = defaults();
	struct texts texts = DEFAULT_TEXTS;
	CLEANUP(free_opts) struct opt *opts = table(&o, &texts);

	return args_help(
		"usage: scheduler-extender -schedulerListen=ADDR -certFile=FILE -keyFile=FILE [flags]\n"
		"       scheduler-extender -insecureSchedulerListen=ADDR [flags]\n"
		"       scheduler-extender -webhookListen=ADDR -certFile=FILE -keyFile=FILE [flags]\n"
		"\n"
		"Lets kube-scheduler place pods on nodes that have enough persistent memory for their volumes.\n"
		"\n"
		"Serves kube-scheduler's extender calls /filter, /prioritize and /preempt, so that pods go to nodes on\n"
		"which all their volumes fit, and the admission webhook /pod/mutate, which marks the pods for which\n"
		"kube-scheduler must consult it. All that it knows comes from the API server, which is that of\n"
		"$KUBECONFIG if that is set, otherwise the pod's: the capacity of nodes from PmemNode objects.\n"
		"\n"
		"SIGTERM, SIGINT and SIGHUP end the program when the requests that it is processing are answered;\n"
		"SIGUSR1, SIGUSR2 and SIGPIPE are ignored.\n"
		"\n"
		"Exit status: 0 ended by one of these signals, 1 failure, 2 wrong usage.",
		opts);
}
