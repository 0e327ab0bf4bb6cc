/* SPDX-License-Identifier: Apache-2.0 */
#include "probes.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

/* A probe has no body, but a peer that sends one gets an error that says what is wrong. */
#define MAX_BODY 4096

struct probes {
	struct readiness ready;
	struct http_route routes[3];
	struct http_server *server;
};

static void healthz(void *self, const struct http1_request *request, struct http_reply *reply)
{
	(void)self;
	(void)request;
	buf_adds(&reply->body, "ok");
}

static void readyz(void *self, const struct http1_request *request, struct http_reply *reply)
{
	CLEANUP(error_freep) struct error *why = NULL;
	const struct readiness *ready = self;

	(void)request;
	if (ready->require(ready->user, &why) == 0) {
		buf_adds(&reply->body, "ok");
		return;
	}
	reply->status = 503;
	buf_addf(&reply->body, "%s\n", why->msg);
}

void probes_routes(const struct readiness *ready, struct http_route *routes)
{
	routes[0] = (struct http_route){.path = "/healthz", .methods = "GET, HEAD", .handle = healthz};
	routes[1] = (struct http_route){.path = "/readyz",
		.methods = "GET, HEAD",
		.handle = readyz,
		.self = (void *)(uintptr_t)ready};
}

int probes_start(struct loop *loop, const char *listen, const struct readiness *ready, struct probes **ret,
	struct error **err)
{
	CLEANUP(probes_freep) struct probes *p = NULL;

	*ret = NULL;
	if (str_empty(listen))
		return 0;
	p = x_calloc(1, sizeof(*p));
	p->ready = *ready;
	probes_routes(&p->ready, p->routes);
	const struct http_server_config config = {
		.loop = loop, .routes = p->routes, .max_body_bytes = MAX_BODY, .for_probes = true};
	p->server = http_server_new(&config);
	if (http_server_listen(p->server, listen, /* tls= */ NULL, err) < 0)
		return err_wrap(err, "-probeListen");
	log_info("serving probes", F_STR("listen", listen), F_U64("port", http_server_port(p->server)));
	*ret = TAKE_PTR(p);
	return 0;
}

void probes_free(struct probes *p)
{
	if (!p)
		return;
	http_server_free(p->server);
	free(p);
}
