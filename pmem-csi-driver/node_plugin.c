/* SPDX-License-Identifier: Apache-2.0 */
#include "node_plugin.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/prometheus.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "os/boot_id.h"

static void on_lost(void *user, const struct error *err)
{
	struct node_plugin *p = user;

	if (!p->failure)
		err_set(&p->failure, ERR_PRECONDITION,
			"kubelet's registration socket is lost, and the folder may have been replaced on the host: %s",
			err->msg);
	p->config.end(p->config.user);
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

static bool is_wanted(const struct node_plugin *p)
{
	return !str_empty(p->config.options->plugin_registration_path);
}

int node_plugin_open(struct node_plugin *p, const struct node_plugin_config *config, struct error **err)
{
	p->config = *config;
	if (!is_wanted(p))
		return 0;
	if (find_endpoint(config->options, &p->endpoint, err) < 0)
		return err_wrap(err, "-endpoint");
	return boot_id_read(&p->boot_id, err);
}

int node_plugin_offer(struct node_plugin *p, struct error **err)
{
	const struct options *o = p->config.options;
	const struct kubelet_registration_config plugin = {
		.loop = p->config.loop,
		.workers = p->config.workers,
		.folder = o->plugin_registration_path,
		.boot_id = p->boot_id,
		.driver_name = o->driver_name,
		.endpoint = p->endpoint,
		.on_lost = on_lost,
		.user = p,
	};

	if (!is_wanted(p) || p->socket)
		return 0;
	if (kubelet_registration_new(&plugin, &p->socket, err) < 0)
		return err_wrap(err, "-pluginRegistrationPath");
	return 0;
}

int node_plugin_require_accepted(const struct node_plugin *p, struct error **err)
{
	return p->socket ? kubelet_registration_require_accepted(p->socket, err) : 0;
}

void node_plugin_stop(struct node_plugin *p, loop_fn done, void *user)
{
	if (p->socket)
		kubelet_registration_drain(p->socket, done, user);
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

	if (!is_wanted(p))
		return;
	const struct prometheus_label labels[] = {{"driver_name", o->driver_name}, {"node", o->node_id}, {0}};
	prometheus_family(out, "pmem_kubelet_registered", PROMETHEUS_GAUGE,
		"Whether kubelet has registered the driver since its socket was made.");
	prometheus_sample(out, "pmem_kubelet_registered", labels,
		p->socket && kubelet_registration_is_registered(p->socket));
}

void node_plugin_done(struct node_plugin *p)
{
	kubelet_registration_free(p->socket);
	error_free(p->failure);
	free(p->endpoint);
	free(p->boot_id);
	*p = (struct node_plugin){0};
}
