/* SPDX-License-Identifier: Apache-2.0 */
#include "setup.h"

#include <stdlib.h>

#include "inspect.pb-c.h"

#include "base/mem.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "net/grpc/grpc_client.h"

#define TIMEOUT_MS 10000

static int check_endpoint(const char *endpoint, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};

	if (addr_parse(endpoint, &a, err) < 0)
		return -1;
	if (!a.is_unix)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"\"%s\" is not unix:///path, the only kind of socket at which a driver can be asked",
			endpoint);
	return 0;
}

static int call(const char *endpoint, Inspect__V0__GetSetupResponse **ret, struct error **err)
{
	static const Inspect__V0__GetSetupRequest request = INSPECT__V0__GET_SETUP_REQUEST__INIT;
	CLEANUP(loop_freep) struct loop *loop = NULL;
	CLEANUP(grpc_client_freep) struct grpc_client *client = NULL;
	ProtobufCMessage *reply;

	if (loop_new(&loop, err) < 0)
		return -1;
	const struct h2_channel_config config = {.loop = loop, .endpoint = endpoint};
	if (grpc_client_new(&config, &client, err) < 0)
		return -1;
	if (grpc_client_call_sync(client, "/inspect.v0.Inspect/GetSetup", &request.base,
		    &inspect__v0__get_setup_response__descriptor, TIMEOUT_MS, &reply, err) < 0)
		return -1;
	*ret = (Inspect__V0__GetSetupResponse *)reply;
	return 0;
}

static char *text_or_null(const char *text)
{
	return str_empty(text) ? NULL : x_strdup(text);
}

int setup_ask(const char *endpoint, struct setup *ret, struct error **err)
{
	Inspect__V0__GetSetupResponse *m = NULL;
	struct setup s = {0};

	if (check_endpoint(endpoint, err) < 0)
		return -1;
	if (call(endpoint, &m, err) < 0) {
		if ((*err)->code != ERR_UNIMPLEMENTED)
			return err_wrap(err, "the driver at %s", endpoint);
		error_clear(err);
		return err_set(err, ERR_PRECONDITION,
			"the process at %s cannot be queried: it is a controller, which has no volumes, or a "
			"driver of another version",
			endpoint);
	}
	s.driver_name = x_strdup(m->driver_name);
	s.device_manager = x_strdup(m->device_manager);
	s.state_path = x_strdup(m->state_path);
	s.fake_path = text_or_null(m->fake_path);
	s.not_ready = text_or_null(m->not_ready);
	for (size_t i = 0; i < m->n_kubelet_dirs; i++)
		strv_add(&s.kubelet_dirs, m->kubelet_dirs[i]);
	inspect__v0__get_setup_response__free_unpacked(m, NULL);
	*ret = s;
	return 0;
}

void setup_done(struct setup *s)
{
	free(s->driver_name);
	free(s->device_manager);
	free(s->state_path);
	free(s->fake_path);
	strv_free(s->kubelet_dirs);
	free(s->not_ready);
	*s = (struct setup){0};
}
