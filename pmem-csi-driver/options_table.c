/* SPDX-License-Identifier: Apache-2.0 */
#include "options_table.h"

#include <string.h>

#include "base/mem.h"
#include "nodes/pod_runtimes.h"

static const char not_served[] = "only the program scheduler-extender serves kube-scheduler";

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
			"node, controller, " MODE_CONVERT
			": run `pmem-ns-init -force convert`, then wait for a signal; or " MODE_WAIT
			": only wait for a signal (required)"},
		{"drivername", OPT_STR, &o->driver_name, "NAME", "name of the CSI driver"},
		{"endpoint", OPT_STR, &o->endpoint, "URL",
			"CSI socket, unix:///path (default: $CSI_ENDPOINT, or unix:///run/pmem-csi/csi.sock)"},
		{"caFile", OPT_STR, &o->ca_file, "FILE",
			"file with CA certificates: enables TLS on TCP endpoints, with -certFile and -keyFile; "
			"the certificates of peers must be signed by one of these CAs"},
		{"certFile", OPT_STR, &o->cert_file, "FILE", "TLS: certificate of this program"},
		{"keyFile", OPT_STR, &o->key_file, "FILE", "TLS: private key of -certFile"},
		{"clientCertFile", OPT_STR, &o->client_cert_file, "FILE",
			"TLS: certificate for connections that this program opens (default: -certFile)"},
		{"clientKeyFile", OPT_STR, &o->client_key_file, "FILE",
			"TLS: private key of -clientCertFile (default: -keyFile)"},
		{"strictKeys", OPT_BOOL, &o->strict_keys, NULL,
			"refuse key files that other users may read, instead of logging a warning"},
		{"metricsListen", OPT_STR, &o->metrics_listen, "ADDR",
			"serve metrics, /healthz and /readyz over HTTP, :port or host:port"},
		{"probeListen", OPT_STR, &o->probe_listen, "ADDR",
			"serve /healthz and /readyz over HTTP on a port of its own, :port or host:port, for probes: "
			"clients that use up the connections of the metrics port cannot block them"},
		{"metricsPath", OPT_STR, &o->metrics_path, "PATH",
			"path of the metrics; PATH/simple serves only the version"},
		{"volumeHealth", OPT_BOOL, &o->volume_health, NULL,
			"offer the calls of CSI 1.13 for the health of volumes; they are served in any case"},
		{"insecure", OPT_BOOL, &o->insecure, NULL,
			"allow TCP without TLS, which gives every user of the host the driver's rights"},
		PROGRAM_FLAGS(&o->flags),
	};

	add(t, rows, ARRAY_SIZE(rows));
}

static void add_node(struct table *t, struct options *o, struct option_texts *texts)
{
	const struct opt rows[] = {
		{"nodeid", OPT_STR, &o->node_id, "ID",
			"node: ID of the node; it is part of volume IDs, so it must never change "
			"(required with -mode=node)"},
		{"controllerEndpoint", OPT_STR, &o->controller_endpoint, "URL",
			"serve the Identity and Controller services for the central controller, tcp://host:port; "
			"with -registryEndpoint, an address at which the controller reaches this node "
			"(required with -mode=node and -registryEndpoint)"},
		{"pluginRegistrationPath", OPT_STR, &o->plugin_registration_path, "DIR",
			"kubelet's plugins_registry folder: register with kubelet through a socket there "
			"(default: the driver does not register with kubelet)"},
		{"kubeletRegistrationSocket", OPT_STR, &o->kubelet_registration_socket, "PATH",
			"path of the CSI socket on the host (default: the path in -endpoint)"},
		{"deviceManager", OPT_STR, &o->device_manager, "NAME",
			"device manager, which provisions the volumes: lvm, direct or fake"},
		{"statePath", OPT_STR, &o->state_path, "DIR",
			"state folder, with one file per volume; it must survive reboots "
			"(default: /var/lib/<drivername>)"},
		{"directVolumesDir", OPT_STR, &o->direct_volumes_dir, "DIR",
			"folder in which the runtimes of Kata Containers look for direct-assigned volumes; empty: "
			"this node has no such volumes"},
		{"kubeletDir", OPT_STRS, &o->kubelet_dirs, "DIR",
			"accept only paths below DIR in requests (repeatable)"},
		{"pmemPercentage", OPT_STR, &texts->percentage, "PERCENT",
			"lvm only: before the driver starts, run pmem-ns-init for PERCENT of each region, then "
			"pmem-vgm; ignored with other device managers (default: neither is run)"},
		{"initLabels", OPT_BOOL, &o->init_labels, NULL,
			"with -pmemPercentage: initialise blank label areas, as pmem-ns-init -initLabels"},
		{"unlabelled", OPT_STR, &o->unlabelled, "ACTION",
			"with -pmemPercentage: convert or skip memory that cannot have labels, as pmem-ns-init "
			"-unlabelled (default: skip)"},
		{"cxlRegions", OPT_STR, &o->cxl_regions, "RULE",
			"before the driver starts, keep: record regions of CXL memory devices, and make recorded "
			"ones that are missing again; create: as keep, and passed to pmem-ns-init with "
			"-pmemPercentage; off: neither"},
		{"lvmIdleTimeout", OPT_DURATION, &o->lvm_idle_ms, "DURATION",
			"end the lvm helper process when it has had no work for this time; 0: never"},
		{"fakePath", OPT_STR, &o->fake_path, "DIR",
			"fake: folder in which volumes are sparse files on loop devices; "
			"without it volumes have no devices, cannot be staged, and are lost when the driver ends"},
		{"fakeRegionSize", OPT_SIZE, &o->fake_region_bytes, "SIZE",
			"fake: size of each of the two regions "
			"(default: the size with which the folder was created, 16Gi for a new folder)"},
	};

	add(t, rows, ARRAY_SIZE(rows));
}

static void add_limits(struct table *t, struct options *o)
{
	const struct opt rows[] = {
		{"eraseBandwidth", OPT_SIZE, &o->erase_bytes_per_s, "SIZE",
			"erase deleted volumes with at most SIZE bytes per second, for all volumes together; "
			"0: no limit"},
		{"copyBandwidth", OPT_SIZE, &o->copy_bytes_per_s, "SIZE",
			"copy each volume with at most SIZE bytes per second; the writers of a volume that is in "
			"use stand still for longer then; 0: no limit"},
		{"maxInlineVolumes", OPT_U32, &o->inline_limits.max_volumes, "N",
			"refuse to create an inline volume if the node has N of them, with those that are still being "
			"erased: no quota of Kubernetes counts them; 0: no limit"},
		{"maxInlineBytes", OPT_SIZE, &o->inline_limits.max_bytes, "SIZE",
			"refuse to create an inline volume if all of the node would take more than SIZE bytes, with "
			"those that are still being erased; 0: no limit"},
	};

	add(t, rows, ARRAY_SIZE(rows));
}

static void add_controller(struct table *t, struct options *o, struct option_texts *texts)
{
	const struct opt rows[] = {
		{"registryEndpoint", OPT_STR, &o->registry_endpoint, "URL",
			"controller: where nodes register, tcp://host:port (default: " DEFAULT_REGISTRY
			"); node: address of the controllers, tcp://host:port; the node registers with every address "
			"to which the host name resolves (default: none)"},
		{"registryTokenFile", OPT_STR, &o->registry_token_file, "FILE",
			"node: ServiceAccount token for the audience <drivername>/registry, "
			"by which this node proves its identity to the controller; "
			"sent over TLS only (default: none)"},
		{"kataRuntimeClasses", OPT_STR, &o->kata_runtime_classes, "NAMES",
			"node: names of the RuntimeClasses of Kata Containers, separated by commas; NAME* is each "
			"name that begins with NAME. Pods of these run in guests, and volumes with the parameter "
			"kataContainers are published accordingly; the node asks the controllers which RuntimeClass "
			"a pod has, and without -registryEndpoint each pod counts as one that runs in a guest "
			"(default: " POD_RUNTIMES_KATA ")"},
		{"nodeAuthentication", OPT_STR, &o->node_authentication, "HOW",
			"controller: how nodes prove their identity over TLS. token: by -registryTokenFile, "
			"which the API server checks, or by a certificate for node-<ID>. certificate: "
			"only by such a certificate. role: not at all, so that each node with a certificate for "
			"pmem-node-controller can act as any other node "
			"(default: token)"},
		{"nodeAccount", OPT_STR, &o->node_account, "NAME",
			"controller: the nodes' ServiceAccount, NAME or NAMESPACE/NAME (default: "
			"pmem-csi-node in the namespace of the controller)"},
		{"forgetGoneNodes", OPT_BOOL, &o->forget_gone_nodes, NULL,
			"controller: if a volume can only be on a node whose Node object and driver are both gone, "
			"report its deletion as successful"},
		{"nodeLostAfter", OPT_DURATION, &o->node_lost_ms, "DURATION",
			"controller: treat a node as lost after DURATION without a registration and without a Node "
			"object; deleting its volumes then succeeds without erasing data; 0: never"},
		{"publishCapacity", OPT_BOOL, &o->publish_capacity, NULL,
			"controller: write CSIStorageCapacity objects; "
			"set it to false if external-provisioner on the nodes does that"},
		{"removeForeignCapacity", OPT_BOOL, &o->remove_foreign_capacity, NULL,
			"controller: delete CSIStorageCapacity objects that external-provisioner has left behind"},
		{"releaseClaims", OPT_BOOL, &o->release_claims, NULL,
			"controller: release claims with the annotation pmem-csi.intel.com/release-after when "
			"their node has been out of service, or removed, for that long: their pods are deleted and "
			"start elsewhere with a new volume, and the old one stays"},
		{"skipHostmount", OPT_BOOL, &o->skip_hostmount, NULL,
			"controller: make direct volumes for claims with the annotation skip-hostmount: \"true\""},
		{"nodeSelector", OPT_STR, &texts->node_selector, "JSON",
			"controller: labels of the nodes where the driver runs, such as {\"storage\":\"pmem\"} (null: "
			"without that label), or a list of such objects, of which one suffices: claims whose selected "
			"node has had neither these labels nor the driver for two minutes are returned to the scheduler"},
		{"namespace", OPT_STR, &o->namespace, "NAME",
			"controller: namespace of its Lease and of CSIStorageCapacity objects "
			"(default: the namespace of its pod)"},
		{"leaseName", OPT_STR, &o->lease_name, "NAME",
			"controller: Lease by which replicas elect a leader (default: <drivername>-controller)"},
		{"kube-api-qps", OPT_U32, &o->kube_qps, "N",
			"controller: requests per second to the Kubernetes API server"},
		{"kube-api-burst", OPT_U32, &o->kube_burst, "N",
			"controller: requests to the Kubernetes API server that may be sent in a burst"},
	};

	add(t, rows, ARRAY_SIZE(rows));
}

static void add_ignored(struct table *t)
{
	const struct opt rows[] = {
		{"testEndpoint", OPT_IGNORED, NULL, NULL, "the controller service is always served"},
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
	add_limits(&t, o);
	add_controller(&t, o, texts);
	add_ignored(&t);
	return t.rows;
}
