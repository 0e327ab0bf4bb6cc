/* SPDX-License-Identifier: Apache-2.0 */
#include "options_table.h"

#include <string.h>

#include "base/mem.h"

static const char not_served[] = "not served by this program";

struct table {
	struct opt *rows;
	size_t n;
};

static void add(struct table *t, const struct opt *rows, size_t n)
{
	t->rows = x_realloc(t->rows, t->n + n, sizeof(*rows));
	memcpy(t->rows + t->n, rows, n * sizeof(*rows));
	t->n += n;
}

static void add_general(struct table *t, struct options *o)
{
	const struct opt rows[] = {
		{"mode", OPT_STR, &o->mode, "MODE",
			"node, controller, or " MODE_CONVERT
			": run `pmem-ns-init -force convert`, then wait for a signal"},
		{"drivername", OPT_STR, &o->driver_name, "NAME", "name of the CSI driver"},
		{"endpoint", OPT_STR, &o->endpoint, "URL",
			"CSI socket, unix:///path (default: $CSI_ENDPOINT, or unix:///tmp/pmem-csi.sock)"},
		{"caFile", OPT_STR, &o->ca_file, "FILE", "TLS on TCP endpoints: CA that signs the peers"},
		{"certFile", OPT_STR, &o->cert_file, "FILE", "TLS: own certificate"},
		{"keyFile", OPT_STR, &o->key_file, "FILE", "TLS: its key"},
		{"clientCertFile", OPT_STR, &o->client_cert_file, "FILE",
			"TLS: certificate for calls to others (default: -certFile)"},
		{"clientKeyFile", OPT_STR, &o->client_key_file, "FILE", "TLS: its key (default: -keyFile)"},
		{"strictKeys", OPT_BOOL, &o->strict_keys, NULL, "refuse a key file that others may read"},
		{"metricsListen", OPT_STR, &o->metrics_listen, "ADDR",
			"serve metrics, /healthz and /readyz over HTTP, :port or host:port"},
		{"probeListen", OPT_STR, &o->probe_listen, "ADDR",
			"serve /healthz and /readyz over HTTP for probes only, :port or host:port: "
			"clients of the metrics cannot keep them out"},
		{"metricsPath", OPT_STR, &o->metrics_path, "PATH",
			"path of the metrics; PATH/simple tells the version only"},
		{"insecure", OPT_BOOL, &o->insecure, NULL, "allow plain TCP endpoints beyond loopback"},
		PROGRAM_FLAGS(&o->flags),
	};

	add(t, rows, ARRAY_SIZE(rows));
}

static void add_node(struct table *t, struct options *o, struct option_texts *texts)
{
	const struct opt rows[] = {
		{"nodeid", OPT_STR, &o->node_id, "ID", "node: its identity"},
		{"controllerEndpoint", OPT_STR, &o->controller_endpoint, "URL",
			"identity and controller service for the central controller, tcp://host:port; with "
			"-registryEndpoint the address at which that reaches this node"},
		{"pluginRegistrationPath", OPT_STR, &o->plugin_registration_path, "DIR",
			"kubelet's plugins_registry folder: register with it through a socket there "
			"(default: not at all)"},
		{"kubeletRegistrationSocket", OPT_STR, &o->kubelet_registration_socket, "PATH",
			"path of the CSI socket on the host (default: that of -endpoint)"},
		{"deviceManager", OPT_STR, &o->device_manager, "NAME", "lvm, direct or fake"},
		{"statePath", OPT_STR, &o->state_path, "DIR",
			"state folder (default: /var/lib/<drivername>)"},
		{"kubeletDir", OPT_STRS, &o->kubelet_dirs, "DIR",
			"accept only paths below DIR in requests (repeatable)"},
		{"pmemPercentage", OPT_STR, &texts->percentage, "PERCENT",
			"lvm: run pmem-ns-init with this share and pmem-vgm first; no effect otherwise "
			"(default: they are not run)"},
		{"lvmIdleTimeout", OPT_DURATION, &o->lvm_idle_ms, "DURATION",
			"end the lvm helper process after that long without work; 0: never"},
		{"eraseBandwidth", OPT_SIZE, &o->erase_bytes_per_s, "SIZE",
			"erase deleted volumes with at most SIZE bytes per second, all together; 0: no "
			"limit"},
		{"fakePath", OPT_STR, &o->fake_path, "DIR",
			"fake: keep volumes as sparse files on loop devices here; without it they have no "
			"devices, cannot be staged, and are gone when the driver ends"},
		{"fakeRegionSize", OPT_SIZE, &o->fake_region_bytes, "SIZE",
			"fake: size of each of the two regions (default: that of the folder, 16Gi for a new "
			"one)"},
	};

	add(t, rows, ARRAY_SIZE(rows));
}

static void add_controller(struct table *t, struct options *o, struct option_texts *texts)
{
	const struct opt rows[] = {
		{"registryEndpoint", OPT_STR, &o->registry_endpoint, "URL",
			"controller: where nodes register, tcp://host:port (default: " DEFAULT_REGISTRY
			"); node: the controllers to register with, at all addresses of the host (default: "
			"none)"},
		{"registryTokenFile", OPT_STR, &o->registry_token_file, "FILE",
			"node: ServiceAccount token for the audience <drivername>/registry, by which this "
			"node proves its identity to the controller; sent over TLS only (default: none)"},
		{"nodeAuthentication", OPT_STR, &o->node_authentication, "HOW",
			"controller: how nodes prove their identity over TLS. token: by -registryTokenFile, "
			"which the API server checks, or by a certificate for node-<ID>. certificate: by the "
			"latter only. role: not at all, any node with a certificate for pmem-node-controller "
			"may speak for any other (default: token with Kubernetes, certificate without)"},
		{"nodeAccount", OPT_STR, &o->node_account, "NAME",
			"controller: the nodes' ServiceAccount, NAME or NAMESPACE/NAME (default: "
			"pmem-csi-node in the namespace of the controller)"},
		{"expectedNodes", OPT_STR, &texts->expected_nodes, "IDS",
			"controller without Kubernetes: all nodes that may hold volumes, with commas "
			"between"},
		{"forgetGoneNodes", OPT_BOOL, &o->forget_gone_nodes, NULL,
			"controller: volumes that can only be on a node without Node object, whose driver is "
			"gone, too, are gone with it"},
		{"publishCapacity", OPT_BOOL, &o->publish_capacity, NULL,
			"controller: write CSIStorageCapacity objects; false where external-provisioner "
			"does, on "
			"the nodes"},
		{"removeForeignCapacity", OPT_BOOL, &o->remove_foreign_capacity, NULL,
			"controller: remove CSIStorageCapacity objects that external-provisioner left"},
		{"nodeSelector", OPT_STR, &texts->node_selector, "JSON",
			"controller: labels of the nodes where the driver runs, {\"storage\":\"pmem\"}: "
			"PVCs are moved away from others"},
		{"namespace", OPT_STR, &o->namespace, "NAME",
			"controller: namespace of its lease and capacity objects (default: its own)"},
		{"leaseName", OPT_STR, &o->lease_name, "NAME",
			"controller: lease by which replicas elect a leader (default: "
			"<drivername>-controller)"},
		{"kube-api-qps", OPT_U32, &o->kube_qps, "N",
			"controller: requests per second to the Kubernetes API server"},
		{"kube-api-burst", OPT_U32, &o->kube_burst, "N", "controller: how many at once"},
	};

	add(t, rows, ARRAY_SIZE(rows));
}

static void add_ignored(struct table *t)
{
	const struct opt rows[] = {
		{"testEndpoint", OPT_IGNORED, NULL, NULL, "the controller service is always there"},
		{"schedulerListen", OPT_IGNORED, NULL, "ADDR", not_served},
		{"insecureSchedulerListen", OPT_IGNORED, NULL, "ADDR", not_served},
		KLOG_IGNORED_FLAGS,
		{0},
	};

	add(t, rows, ARRAY_SIZE(rows));
}

struct opt *options_table(struct options *o, struct option_texts *texts)
{
	struct table t = {0};

	add_general(&t, o);
	add_node(&t, o, texts);
	add_controller(&t, o, texts);
	add_ignored(&t);
	return t.rows;
}
