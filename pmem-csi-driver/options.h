/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the driver's command line. Flags of the Go driver from 0.5 to 1.1 are all accepted.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "duties/node_terms.h"
#include "os/program.h"
#include "volume/volumes.h"

#define MODE_WAIT        "wait" /* for a signal: the container of a pod whose init containers do the work */
#define MODE_CONVERT     "force-convert-raw-namespaces" /* as the Go driver calls it */
#define DEFAULT_REGISTRY "tcp://:10000"
/* Where all runtimes of Kata Containers look (src/runtime/pkg/direct-volume/utils.go). */
#define DEFAULT_DIRECT_VOLUMES_DIR "/run/kata-containers/shared/direct-volumes"

struct options {
	struct program_flags flags;
	const char *mode;
	const char *driver_name;
	const char *node_id;
	const char *endpoint;
	const char *controller_endpoint; /* "": none */
	const char *registry_endpoint;   /* "": DEFAULT_REGISTRY of a controller, none of a node */
	const char *ca_file;             /* "": no TLS; the next two are then empty, too */
	const char *cert_file;
	const char *key_file;
	const char *client_cert_file; /* "": cert_file and key_file */
	const char *client_key_file;
	bool strict_keys;
	const char *device_manager;
	const char *state_path;                  /* NULL: /var/lib/<driver_name> */
	const char *direct_volumes_dir;          /* "": no device is given to guests */
	char **kubelet_dirs;                     /* strv */
	const char *plugin_registration_path;    /* folder; "": none */
	const char *kubelet_registration_socket; /* "": that of endpoint */
	const char *metrics_listen;              /* ":port" or "host:port"; "": no metrics */
	const char *metrics_path;
	const char *probe_listen; /* as metrics_listen; "": no port for probes only */
	const char *fake_path;
	uint64_t fake_region_bytes; /* 0: the size with which the folder was created */
	uint64_t lvm_idle_ms;
	uint64_t erase_bytes_per_s; /* 0: no limit */
	uint64_t copy_bytes_per_s;  /* likewise */
	struct inline_limits inline_limits;
	const char *cxl_regions; /* off, keep or create */
	unsigned pmem_percentage;
	bool has_pmem_percentage;
	bool init_labels;       /* for pmem-ns-init, as the next one */
	const char *unlabelled; /* NULL: its default */
	struct node_terms node_selector;
	const char *node_authentication;  /* token, certificate or role; "": token with Kubernetes */
	const char *node_account;         /* NAME or NAMESPACE/NAME */
	const char *registry_token_file;  /* "": none */
	const char *kata_runtime_classes; /* pod_runtimes_new() */
	const char *namespace;            /* NULL: that of the pod or of the kubeconfig */
	const char *lease_name;           /* NULL: made of driver_name */
	uint32_t kube_qps;
	uint32_t kube_burst;
	bool forget_gone_nodes;
	uint64_t node_lost_ms; /* 0: never */
	bool remove_foreign_capacity;
	bool release_claims;
	bool skip_hostmount;
	bool publish_capacity;
	bool volume_health;
	bool insecure;
};

/**
 * options_parse() - read the command line, with defaults filled in and values checked.
 * @ret:         options_done(); strings are borrowed from @argv, the environment and literals
 * @ret_ignored: names of accepted flags without effect, for one warning each: strv_free()
 * Return: 0, or -1 with ERR_INVALID_ARGUMENT.
 */
int options_parse(
	int argc, char **argv, struct options *ret, char ***ret_ignored, struct error **err) MUST_CHECK;

/** options_default() - the values without any flag. Return: options_done(). */
struct options options_default(void);

/** options_state_path() - the state folder. Return: caller frees. */
char *options_state_path(const struct options *o);

/** options_check_devices() - check that the device manager is lvm, direct or fake. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT. */
int options_check_devices(const struct options *o, struct error **err) MUST_CHECK;

/** options_check_folders() - check that the folders of a node are absolute paths. Return: 0, or -1 with
 * ERR_INVALID_ARGUMENT that names the flag. */
int options_check_folders(const struct options *o, struct error **err) MUST_CHECK;

/** options_done() - release what @o owns. */
void options_done(struct options *o);

/** options_help() - usage text. Return: caller frees. */
char *options_help(void);
