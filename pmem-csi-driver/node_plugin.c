/* SPDX-License-Identifier: Apache-2.0 */
#include "node_plugin.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "base/str.h"
#include "net/addr.h"
#include "os/boot_id.h"

/* As node-driver-registrar: a driver that is started anew is looked at anew. */
static void on_registered(void *user, bool registered, const char *reason)
{
	struct node_plugin *p = user;

	if (registered) {
		log_info("registered with kubelet");
		return;
	}
	if (!p->failure)
		err_set(&p->failure, ERR_PRECONDITION, "kubelet refused to register the driver: %s", reason);
	/* after kubelet has been answered */
	loop_post(p->config.loop, p->config.end, p->config.user);
}

/* Where kubelet finds the CSI socket. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
static int find_endpoint(const struct options *o, char **ret, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};

	if (addr_parse(o->endpoint, &a, err) < 0)
		return -1;
	*ret = x_strdup(str_empty(o->kubelet_registration_socket) ? a.path : o->kubelet_registration_socket);
	return 0;
}

int node_plugin_start(struct node_plugin *p, const struct node_plugin_config *config, struct error **err)
{
	const struct options *o = config->options;

	if (str_empty(o->plugin_registration_path))
		return 0;
	p->config = *config;
	if (find_endpoint(o, &p->endpoint, err) < 0)
		return err_wrap(err, "-endpoint");
	if (boot_id_read(&p->boot_id, err) < 0)
		return -1;
	const struct plugin_socket_config plugin = {
		.loop = config->loop,
		.workers = config->workers,
		.folder = o->plugin_registration_path,
		.boot_id = p->boot_id,
		.registration = {.driver_name = o->driver_name,
			.endpoint = p->endpoint,
			.on_registered = on_registered,
			.user = p},
	};
	if (plugin_socket_new(&plugin, &p->socket, err) < 0)
		return err_wrap(err, "-pluginRegistrationPath");
	return 0;
}

void node_plugin_stop(struct node_plugin *p, loop_fn done, void *user)
{
	if (p->socket)
		plugin_socket_drain(p->socket, done, user);
	else
		done(user);
}

int node_plugin_result(struct node_plugin *p, struct error **err)
{
	if (!p->failure)
		return 0;
	*err = TAKE_PTR(p->failure);
	return -1;
}

void node_plugin_metrics(const struct node_plugin *p, struct buf *out)
{
	const struct options *o = p->config.options;

	if (!p->socket)
		return;
	const struct prometheus_label labels[] = {{"driver_name", o->driver_name}, {"node", o->node_id}, {0}};
	prometheus_family(out, "pmem_kubelet_registered", PROMETHEUS_GAUGE,
		"Whether kubelet has registered the driver since its socket was made.");
	prometheus_sample(out, "pmem_kubelet_registered", labels, plugin_socket_is_registered(p->socket));
}

void node_plugin_done(struct node_plugin *p)
{
	plugin_socket_free(p->socket);
	error_free(p->failure);
	free(p->endpoint);
	free(p->boot_id);
	*p = (struct node_plugin){0};
}
