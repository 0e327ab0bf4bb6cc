/* SPDX-License-Identifier: Apache-2.0 */
/* What is checked of the flags of a node. */
#include <string.h>

#include "base/names.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "options.h"

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
	if (str_empty(o->ca_file) && !o->insecure && !addr_is_loopback(&registry))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-registryEndpoint \"%s\": TCP without TLS beyond this host needs -insecure",
			o->registry_endpoint);
	if (str_empty(o->controller_endpoint))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-registryEndpoint needs -controllerEndpoint, where the controller reaches this "
			"node");
	if (addr_parse(o->controller_endpoint, &own, err) < 0)
		return err_wrap(err, "-controllerEndpoint");
	if (!is_destination(&own))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-controllerEndpoint \"%s\" names no address at which the controller reaches this "
			"node: with -registryEndpoint it must be tcp://ADDRESS:PORT",
			o->controller_endpoint);
	return 0;
}

static int check_folder(const char *flag, const char *path, struct error **err)
{
	if (path && path[0] != '/')
		return err_set(err, ERR_INVALID_ARGUMENT, "-%s \"%s\" is no absolute path", flag, path);
	return 0;
}

int options_check_folders(const struct options *o, struct error **err)
{
	if (check_folder("statePath", o->state_path, err) < 0 ||
		check_folder("fakePath", o->fake_path, err) < 0)
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

int options_check_node(const struct options *o, struct error **err)
{
	if (name_check_node(o->node_id, err) < 0)
		return -1;
	if (check_registry(o, err) < 0 || check_plugin(o, err) < 0 || options_check_folders(o, err) < 0)
		return -1;
	return options_check_devices(o, err);
}
