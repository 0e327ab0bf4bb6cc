/* SPDX-License-Identifier: Apache-2.0 */
#include "probes.h"

#include "base/log.h"
#include "base/str.h"

/* A probe has no body, but whoever sends one hears what is wrong. */
#define MAX_BODY 4096

void probes_healthz(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	buf_adds(&reply->body, "ok");
}

static const struct http_route routes[] = {
	{.path = "/healthz", .methods = "GET, HEAD", .handle = probes_healthz}, {0}};

int probes_start(struct loop *loop, const char *listen, struct http_server **ret, struct error **err)
{
	const struct http_server_config config = {
		.loop = loop, .routes = routes, .max_body_bytes = MAX_BODY, .for_probes = true};
	CLEANUP(http_server_freep) struct http_server *s = NULL;

	*ret = NULL;
	if (str_empty(listen))
		return 0;
	s = http_server_new(&config);
	if (http_server_listen(s, listen, /* tls= */ NULL, err) < 0)
		return err_wrap(err, "-probeListen");
	log_info("serving probes", F_STR("listen", listen), F_U64("port", http_server_port(s)));
	*ret = TAKE_PTR(s);
	return 0;
}
