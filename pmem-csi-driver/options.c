#include "options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "commands.h"
#include "os/args.h"
#include "os/klog_flags.h"

#define DEFAULT_DRIVER_NAME "pmem-csi.intel.com"
#define DEFAULT_ENDPOINT    "unix:///tmp/pmem-csi.sock"
#define NODE_ID_MAX         256 /* CSI specification, NodeGetInfoResponse.node_id */

static const char not_served[] = "no effect: not served by this program";

/* @percentage is text, to tell "given" from the default. */
static struct opt *option_table(struct options *o, const char **percentage)
{
	const struct opt table[] = {
		{"mode", OPT_STR, &o->mode, "MODE",
			"node, or " MODE_CONVERT
			": run `pmem-ns-init -force convert`, then wait for a signal"},
		{"drivername", OPT_STR, &o->driver_name, "NAME", "name of the CSI driver"},
		{"nodeid", OPT_STR, &o->node_id, "ID", "identity of this node"},
		{"endpoint", OPT_STR, &o->endpoint, "URL",
			"CSI socket, unix:///path (default: $CSI_ENDPOINT)"},
		{"controllerEndpoint", OPT_STR, &o->controller_endpoint, "URL",
			"identity and controller service for the central controller, tcp://host:port"},
		{"caFile", OPT_STR, &o->ca_file, "FILE", "TLS on TCP endpoints: CA that signs the peers"},
		{"certFile", OPT_STR, &o->cert_file, "FILE", "TLS: own certificate"},
		{"keyFile", OPT_STR, &o->key_file, "FILE", "TLS: its key"},
		{"strictKeys", OPT_BOOL, &o->strict_keys, NULL, "refuse a key file that others may read"},
		{"deviceManager", OPT_STR, &o->device_manager, "NAME", "lvm, direct or fake"},
		{"statePath", OPT_STR, &o->state_path, "DIR",
			"state folder (default: /var/lib/<drivername>)"},
		{"kubeletDir", OPT_STRS, &o->kubelet_dirs, "DIR",
			"accept only paths below DIR in requests (repeatable)"},
		{"pmemPercentage", OPT_STR, percentage, "PERCENT",
			"lvm: run pmem-ns-init with this share and pmem-vgm first; no effect otherwise"},
		{"lvmIdleTimeout", OPT_DURATION, &o->lvm_idle_ms, "DURATION",
			"end the lvm helper process after that long without work; 0: never"},
		{"eraseBandwidth", OPT_SIZE, &o->erase_bytes_per_s, "SIZE",
			"erase deleted volumes with at most SIZE bytes per second, all together; 0: no "
			"limit"},
		{"fakePath", OPT_STR, &o->fake_path, "DIR",
			"fake: keep volumes as sparse files on loop devices here"},
		{"fakeRegionSize", OPT_SIZE, &o->fake_region_bytes, "SIZE",
			"fake: size of each of the two regions"},
		{"metricsListen", OPT_STR, &o->metrics_listen, "ADDR",
			"serve metrics and /healthz over HTTP, :port or host:port"},
		{"metricsPath", OPT_STR, &o->metrics_path, "PATH",
			"path of the metrics; PATH/simple tells the version only"},
		{"insecure", OPT_BOOL, &o->insecure, NULL, "allow plain TCP endpoints beyond loopback"},
		{"logging-format", OPT_STR, &o->logging_format, "FORMAT", "text or json"},
		{"v", OPT_U32, &o->verbosity, "N", "log verbosity; 5 and above shows debug messages"},
		{"version", OPT_BOOL, &o->show_version, NULL, "print the version and exit"},
		{"help", OPT_BOOL, &o->show_help, NULL, "print this help and exit"},
		{"testEndpoint", OPT_IGNORED, NULL, NULL,
			"no effect: the controller service is always there"},
		{"registryEndpoint", OPT_IGNORED, NULL, "URL", not_served},
		{"clientCertFile", OPT_IGNORED, NULL, "FILE", not_served},
		{"clientKeyFile", OPT_IGNORED, NULL, "FILE", not_served},
		{"schedulerListen", OPT_IGNORED, NULL, "ADDR", not_served},
		{"insecureSchedulerListen", OPT_IGNORED, NULL, "ADDR", not_served},
		{"nodeSelector", OPT_IGNORED, NULL, "JSON", not_served},
		{"kube-api-qps", OPT_IGNORED, NULL, "N", not_served},
		{"kube-api-burst", OPT_IGNORED, NULL, "N", not_served},
		KLOG_IGNORED_FLAGS,
		{0},
	};
	struct opt *copy = x_malloc(sizeof(table));

	memcpy(copy, table, sizeof(table));
	return copy;
}

struct options options_default(void)
{
	const char *endpoint = getenv("CSI_ENDPOINT");

	return (struct options){
		.mode = "",
		.driver_name = DEFAULT_DRIVER_NAME,
		.node_id = "",
		.controller_endpoint = "",
		.ca_file = "",
		.cert_file = "",
		.key_file = "",
		.endpoint = str_empty(endpoint) ? DEFAULT_ENDPOINT : endpoint,
		.device_manager = "lvm",
		.state_path = NULL,
		.logging_format = "text",
		.metrics_listen = "",
		.metrics_path = "/metrics",
		.fake_region_bytes = 16ULL << 30,
		.lvm_idle_ms = 60000,
		.pmem_percentage = 100,
		.verbosity = 3,
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

static int check(const struct options *o, struct error **err)
{
	if (str_eq(o->mode, MODE_CONVERT))
		return 0;
	if (!str_eq(o->mode, "node"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-mode must be node or " MODE_CONVERT ", not \"%s\"", o->mode);
	if (str_empty(o->node_id) || strlen(o->node_id) > NODE_ID_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "-nodeid must have 1 to %d bytes", NODE_ID_MAX);
	if (str_empty(o->driver_name) || strchr(o->driver_name, '/'))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-drivername \"%s\" is no driver name", o->driver_name);
	if (options_check_devices(o, err) < 0)
		return -1;
	if (str_empty(o->ca_file) != str_empty(o->cert_file) ||
		str_empty(o->cert_file) != str_empty(o->key_file))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-caFile, -certFile and -keyFile belong together: all of them or none");
	if (o->metrics_path[0] != '/' || strpbrk(o->metrics_path, "?# "))
		return err_set(err, ERR_INVALID_ARGUMENT, "-metricsPath \"%s\" is no absolute path",
			o->metrics_path);
	if (!str_eq(o->logging_format, "text") && !str_eq(o->logging_format, "json"))
		return err_set(err, ERR_INVALID_ARGUMENT, "-logging-format must be text or json, not \"%s\"",
			o->logging_format);
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret, char ***ret_ignored, struct error **err)
{
	CLEANUP(args_done) struct args args = {0};
	CLEANUP(options_done) struct options o = options_default();
	const char *percentage = NULL;
	struct opt *table = option_table(&o, &percentage);
	int parsed = args_parse(table, argc, argv, &args, err);

	free(table);
	if (parsed < 0)
		return -1;
	if (args.rest[0])
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", args.rest[0]);
	if (percentage && parse_percent(percentage, &o.pmem_percentage, err) < 0)
		return err_wrap(err, "flag -pmemPercentage");
	o.has_pmem_percentage = percentage != NULL;
	if (percentage && !str_eq(o.device_manager, "lvm"))
		strv_add(&args.ignored, "pmemPercentage");
	if (!o.show_version && !o.show_help && check(&o, err) < 0)
		return -1;
	*ret_ignored = TAKE_PTR(args.ignored);
	*ret = o;
	o = (struct options){0};
	return 0;
}

void options_done(struct options *o)
{
	strv_free(o->kubelet_dirs);
	*o = (struct options){0};
}

char *options_help(void)
{
	struct options o = options_default();
	const char *percentage;
	struct opt *table = option_table(&o, &percentage);
	char *text = args_help("usage: pmem-csi-driver -mode=node -nodeid=ID [flags]\n"
			       "       pmem-csi-driver COMMAND [-help] [flags]\n"
			       "\n" COMMANDS_HELP,
		table);

	free(table);
	return text;
}
