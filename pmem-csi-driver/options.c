/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/names.h"
#include "base/parse.h"
#include "base/str.h"
#include "commands.h"
#include "net/core/addr.h"
#include "nodes/pod_runtimes.h"
#include "options_table.h"
#include "pmem/cxl/cxl_regions.h"

#define DEFAULT_DRIVER_NAME "pmem-csi.intel.com"
#define DEFAULT_ENDPOINT    "unix:///run/pmem-csi/csi.sock"

struct options options_default(void)
{
	const char *endpoint = getenv("CSI_ENDPOINT");

	return (struct options){
		.flags = PROGRAM_FLAGS_INIT,
		.mode = "",
		.driver_name = DEFAULT_DRIVER_NAME,
		.node_id = "",
		.controller_endpoint = "",
		.registry_endpoint = "",
		.ca_file = "",
		.cert_file = "",
		.key_file = "",
		.client_cert_file = "",
		.client_key_file = "",
		.direct_volumes_dir = DEFAULT_DIRECT_VOLUMES_DIR,
		.plugin_registration_path = "",
		.kubelet_registration_socket = "",
		.endpoint = str_empty(endpoint) ? DEFAULT_ENDPOINT : endpoint,
		.node_authentication = "",
		.node_account = "pmem-csi-node",
		.registry_token_file = "",
		.kata_runtime_classes = POD_RUNTIMES_KATA,
		.device_manager = "lvm",
		.state_path = NULL,
		.metrics_listen = "",
		.metrics_path = "/metrics",
		.probe_listen = "",
		.lvm_idle_ms = 60000,
		.inline_limits = {.max_volumes = 256},
		.node_lost_ms = 3600000,
		.cxl_regions = "keep",
		.pmem_percentage = 100,
		.kube_qps = 50,
		.kube_burst = 100,
		.publish_capacity = true,
		.volume_health = true,
	};
}

int options_check_devices(const struct options *o, struct error **err)
{
	if (!str_eq(o->device_manager, "lvm") && !str_eq(o->device_manager, "direct") &&
		!str_eq(o->device_manager, "fake"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-deviceManager must be lvm, direct or fake, not \"%s\"", o->device_manager);
	return 0;
}

char *options_state_path(const struct options *o)
{
	return o->state_path ? x_strdup(o->state_path) : x_asprintf("/var/lib/%s", o->driver_name);
}

static int check_controller(const struct options *o, struct error **err)
{
	if (o->kube_qps == 0 || o->kube_burst == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "-kube-api-qps and -kube-api-burst must not be 0");
	if (!str_empty(o->node_authentication) && !str_eq(o->node_authentication, "token") &&
		!str_eq(o->node_authentication, "certificate") && !str_eq(o->node_authentication, "role"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-nodeAuthentication must be token, certificate or role, not \"%s\"",
			o->node_authentication);
	if (str_eq(o->registry_endpoint, o->endpoint))
		return err_set(err, ERR_INVALID_ARGUMENT, "-registryEndpoint and -endpoint must differ");
	return 0;
}

/* Whether a controller on another host could connect there. */
static bool is_destination(const struct addr *a)
{
	return !a->is_unix && !str_empty(a->host) && !str_eq(a->host, "0.0.0.0") && !str_eq(a->host, "::");
}

static int check_registry(const struct options *o, struct error **err)
{
	CLEANUP(addr_done) struct addr registry = {0};
	CLEANUP(addr_done) struct addr own = {0};

	if (str_empty(o->registry_endpoint))
		return 0;
	if (addr_parse_name(o->registry_endpoint, &registry, err) < 0)
		return err_wrap(err, "-registryEndpoint");
	if (str_empty(o->ca_file) && !o->insecure)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-registryEndpoint \"%s\": give -caFile, -certFile and -keyFile, or -insecure to allow "
			"TCP without TLS",
			o->registry_endpoint);
	if (str_empty(o->controller_endpoint))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-registryEndpoint needs -controllerEndpoint, where the controller reaches this node");
	if (addr_parse(o->controller_endpoint, &own, err) < 0)
		return err_wrap(err, "-controllerEndpoint");
	if (!is_destination(&own))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-controllerEndpoint \"%s\" names no address at which the controller reaches this node: "
			"with -registryEndpoint it must be tcp://ADDRESS:PORT",
			o->controller_endpoint);
	return 0;
}

static int check_folder(const char *flag, const char *path, struct error **err)
{
	if (path && path[0] != '/')
		return err_set(err, ERR_INVALID_ARGUMENT, "-%s \"%s\" is not an absolute path", flag, path);
	return 0;
}

int options_check_folders(const struct options *o, struct error **err)
{
	if (check_folder("statePath", o->state_path, err) < 0 ||
		check_folder("fakePath", o->fake_path, err) < 0)
		return -1;
	if (!str_empty(o->direct_volumes_dir) &&
		check_folder("directVolumesDir", o->direct_volumes_dir, err) < 0)
		return -1;
	for (size_t i = 0; o->kubelet_dirs && o->kubelet_dirs[i]; i++) {
		if (check_folder("kubeletDir", o->kubelet_dirs[i], err) < 0)
			return -1;
	}
	return 0;
}

static int check_plugin(const struct options *o, struct error **err)
{
	CLEANUP(addr_done) struct addr endpoint = {0};
	const char *const paths[] = {o->plugin_registration_path, o->kubelet_registration_socket};
	static const char *const flags[] = {"pluginRegistrationPath", "kubeletRegistrationSocket"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		if (!str_empty(paths[i]) && check_folder(flags[i], paths[i], err) < 0)
			return -1;
	}
	if (str_empty(o->plugin_registration_path))
		return 0;
	if (addr_parse(o->endpoint, &endpoint, err) < 0)
		return err_wrap(err, "-endpoint");
	if (!endpoint.is_unix)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-pluginRegistrationPath: kubelet needs a unix socket, and -endpoint is \"%s\"",
			o->endpoint);
	return 0;
}

static int check_node(const struct options *o, struct error **err)
{
	enum cxl_rule ignored;

	if (name_check_node(o->node_id, err) < 0)
		return -1;
	if (pod_runtimes_check_names(o->kata_runtime_classes, err) < 0)
		return err_wrap(err, "-kataRuntimeClasses");
	if (check_registry(o, err) < 0 || check_plugin(o, err) < 0 || options_check_folders(o, err) < 0)
		return -1;
	if (cxl_rule_parse(o->cxl_regions, &ignored, err) < 0)
		return err_wrap(err, "-cxlRegions");
	return options_check_devices(o, err);
}

static int check_mode(const struct options *o, struct error **err)
{
	if (str_eq(o->mode, "node"))
		return check_node(o, err);
	if (str_eq(o->mode, "controller"))
		return check_controller(o, err);
	return err_set(err, ERR_INVALID_ARGUMENT,
		"-mode must be node, controller, " MODE_WAIT " or " MODE_CONVERT ", not \"%s\"", o->mode);
}

static int check_endpoint(const char *flag, const char *endpoint, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};

	return addr_parse(endpoint, &a, err) < 0 ? err_wrap(err, "%s", flag) : 0;
}

static int check_listen(const char *flag, const char *where, struct error **err)
{
	CLEANUP(free_charp) char *endpoint = x_asprintf("tcp://%s", where);

	return str_empty(where) ? 0 : check_endpoint(flag, endpoint, err);
}

/* Addresses at which the program is to serve are checked before anything is opened. */
static int check_places(const struct options *o, struct error **err)
{
	if (check_endpoint("-endpoint", o->endpoint, err) < 0)
		return -1;
	if (!str_empty(o->controller_endpoint) &&
		check_endpoint("-controllerEndpoint", o->controller_endpoint, err) < 0)
		return -1;
	if (check_listen("-metricsListen", o->metrics_listen, err) < 0 ||
		check_listen("-probeListen", o->probe_listen, err) < 0)
		return -1;
	if (str_eq(o->mode, "controller") && !str_empty(o->registry_endpoint) &&
		check_endpoint("-registryEndpoint", o->registry_endpoint, err) < 0)
		return -1;
	return 0;
}

static int check_init_chain(const struct options *o, struct error **err)
{
	if ((o->init_labels || o->unlabelled) && !o->has_pmem_percentage)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-initLabels and -unlabelled can only be used with -pmemPercentage: without it, give them to "
			"pmem-ns-init");
	if (o->unlabelled && !str_eq(o->unlabelled, "convert") && !str_eq(o->unlabelled, "skip"))
		return err_set(err, ERR_INVALID_ARGUMENT, "-unlabelled must be convert or skip, not \"%s\"",
			o->unlabelled);
	return 0;
}

static int check(const struct options *o, struct error **err)
{
	if (str_eq(o->mode, MODE_CONVERT) || str_eq(o->mode, MODE_WAIT))
		return 0;
	if (check_mode(o, err) < 0 || check_init_chain(o, err) < 0)
		return -1;
	if (name_check_driver(o->driver_name, err) < 0 || check_places(o, err) < 0)
		return -1;
	if (str_empty(o->ca_file) != str_empty(o->cert_file) ||
		str_empty(o->cert_file) != str_empty(o->key_file))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-caFile, -certFile and -keyFile can only be given together");
	if (str_empty(o->client_cert_file) != str_empty(o->client_key_file))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-clientCertFile and -clientKeyFile can only be given together");
	if (o->metrics_path[0] != '/' || strpbrk(o->metrics_path, "?# "))
		return err_set(err, ERR_INVALID_ARGUMENT, "-metricsPath \"%s\" is not an absolute path",
			o->metrics_path);
	if (program_check_format("-logging-format", o->flags.logging_format, err) < 0)
		return -1;
	return 0;
}

static int read_texts(struct options *o, const struct option_texts *texts, struct error **err)
{
	if (texts->percentage && parse_percent(texts->percentage, &o->pmem_percentage, err) < 0)
		return err_wrap(err, "flag -pmemPercentage");
	o->has_pmem_percentage = texts->percentage != NULL;
	if (!str_empty(texts->node_selector) &&
		node_terms_parse(texts->node_selector, &o->node_selector, err) < 0)
		return err_wrap(err, "flag -nodeSelector");
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret, char ***ret_ignored, struct error **err)
{
	CLEANUP(args_done) struct args args = {0};
	CLEANUP(options_done) struct options o = options_default();
	struct option_texts texts = {0};
	struct opt *table = options_table(&o, &texts);
	int parsed = args_parse(table, argc, argv, &args, err);

	free(table);
	if (parsed < 0)
		return -1;
	if (args.rest[0])
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", args.rest[0]);
	if (read_texts(&o, &texts, err) < 0)
		return -1;
	if (texts.percentage && !str_eq(o.device_manager, "lvm"))
		strv_add(&args.ignored, "pmemPercentage");
	if (!o.flags.show_version && !o.flags.show_help && check(&o, err) < 0)
		return -1;
	*ret_ignored = TAKE_PTR(args.ignored);
	*ret = o;
	o = (struct options){0};
	return 0;
}

void options_done(struct options *o)
{
	strv_free(o->kubelet_dirs);
	node_terms_done(&o->node_selector);
	*o = (struct options){0};
}

char *options_help(void)
{
	struct options o = options_default();
	struct option_texts texts = {0};
	struct opt *table = options_table(&o, &texts);
	char *text = args_help(
		"usage: pmem-csi-driver -mode=node -nodeid=ID [flags]\n"
		"       pmem-csi-driver -mode=controller [flags]\n"
		"       pmem-csi-driver COMMAND [-help] [flags]\n"
		"\n"
		"The CSI driver of a node, its central controller, and commands that examine a node or the cluster.\n"
		"Without a command, the program runs as the driver or as the controller, as -mode says.\n"
		"\n" COMMANDS_HELP "\n"
		"SIGTERM, SIGINT and SIGHUP end the program when the calls that it is processing are done;\n"
		"SIGUSR1, SIGUSR2 and SIGPIPE are ignored.\n"
		"\n"
		"Exit status: 0 ended by one of these signals, 1 failure, 2 wrong usage; the -help of each\n"
		"command explains the exit status of that command.",
		table);

	free(table);
	return text;
}
