/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/scheduler/extender_rig.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "unit/kube/kube_json.h"
#include "unit/scheduler/pmem_nodes.h"

#define REPLY_BYTES (1u << 20)

static void on_changed(void *user)
{
	struct extender_rig *rig = user;

	if (rig->service)
		extender_service_reservations_changed(rig->service);
}

static void on_ended(void *user, const char *verb, bool failed, uint64_t took_ns)
{
	struct extender_rig *rig = user;

	(void)verb;
	(void)took_ns;
	rig->n_ended++;
	rig->n_failed += failed;
}

/* The test goes on before anything else happens. */
static void note(struct extender_rig *rig, struct http_call *call)
{
	rig->call = call;
	rig->n_asked++;
	loop_stop(rig->loop);
}

static void filter(void *self, struct http_call *call)
{
	struct extender_rig *rig = self;

	extender_service_filter(rig->service, call);
	note(rig, call);
}

static void prioritize(void *self, struct http_call *call)
{
	struct extender_rig *rig = self;

	extender_service_prioritize(rig->service, call);
	note(rig, call);
}

static void preempt(void *self, struct http_call *call)
{
	struct extender_rig *rig = self;

	extender_service_preempt(rig->service, call);
	note(rig, call);
}

static void mutate(void *self, struct http_call *call)
{
	struct extender_rig *rig = self;

	webhook_service_handle(rig->webhook, call);
	note(rig, call);
}

void extender_rig_open(struct extender_rig *rig)
{
	static char name[] = "default-scheduler";
	static char *const schedulers[] = {name, NULL};
	CLEANUP(error_freep) struct error *err = NULL;

	*rig = (struct extender_rig){0};
	ASSERT_OK(loop_new(&rig->loop, &err));
	rig->client = fake_kube_new(rig->loop);
	rig->nodes = sched_nodes_new();
	rig->reservations = reservations_new(rig->nodes, on_changed, rig);
	rig->cluster = cluster_view_new(rig->client, RIG_DRIVER, rig->nodes, rig->reservations);
	rig->webhook = webhook_service_new(&(struct webhook_service_config){.cluster = rig->cluster,
		.client = rig->client,
		.rules = {RIG_DRIVER, schedulers},
		.qps = RIG_QPS,
		.burst = RIG_BURST});
	extender_rig_put(rig, "storageclasses", kube_json_class("late", RIG_DRIVER, "{}"));
}

/* Frees the parts in the same order as the program. */
void extender_rig_close(struct extender_rig *rig)
{
	http_server_free(rig->http);
	extender_service_free(TAKE_PTR(rig->service));
	webhook_service_free(rig->webhook);
	cluster_view_free(rig->cluster);
	kube_client_free(rig->client);
	reservations_free(rig->reservations);
	sched_nodes_free(rig->nodes);
	loop_free(rig->loop);
}

void extender_rig_serve(struct extender_rig *rig)
{
	CLEANUP(error_freep) struct error *err = NULL;

	rig->service = extender_service_new(&(struct extender_service_config){.loop = rig->loop,
		.cluster = rig->cluster,
		.nodes = rig->nodes,
		.reservations = rig->reservations,
		.max_pods = EXTENDER_RIG_MAX_PODS,
		.observer = {on_ended, rig}});
	rig->routes[0] = (struct http_route){
		.path = "/filter", .methods = "POST", .handle_later = filter, .self = rig};
	rig->routes[1] = (struct http_route){
		.path = "/prioritize", .methods = "POST", .handle_later = prioritize, .self = rig};
	rig->routes[2] = (struct http_route){
		.path = "/pod/mutate", .methods = "POST", .handle_later = mutate, .self = rig};
	rig->routes[3] = (struct http_route){
		.path = "/preempt", .methods = "POST", .handle_later = preempt, .self = rig};
	rig->http = http_server_new(&(struct http_server_config){
		.loop = rig->loop, .routes = rig->routes, .max_body_bytes = 1u << 20});
	ASSERT_OK(http_server_listen(rig->http, "127.0.0.1:0", NULL, &err));
}

void extender_rig_sync(struct extender_rig *rig)
{
	static const char *const kinds[] = {"persistentvolumeclaims", "persistentvolumes", "storageclasses",
		"csidrivers", "pods", "pmemnodes", "pmemvolumes"};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		fake_informer_sync(fake_kube_informer(rig->client, kinds[i]));
}

void extender_rig_put(struct extender_rig *rig, const char *what, char *json)
{
	fake_informer_put(fake_kube_informer(rig->client, what), json);
	free(json);
}

void extender_rig_node(struct extender_rig *rig, const char *name, uint64_t a_gib, uint64_t b_gib)
{
	CLEANUP(pmem_node_freep) struct pmem_node *n = pmem_node_new(name);

	pmem_node_set_region(n, 0, a_gib);
	if (b_gib > 0)
		pmem_node_set_region(n, 1, b_gib);
	extender_rig_put(rig, "pmemnodes", pmem_node_json(n));
}

void extender_rig_remove_node(struct extender_rig *rig, const char *name)
{
	CLEANUP(free_charp) char *key = pmem_node_object_name(name, RIG_DRIVER);

	fake_informer_remove(fake_kube_informer(rig->client, "pmemnodes"), key);
}

static void on_drained(void *user)
{
	struct extender_rig *rig = user;

	rig->drained = true;
}

void extender_rig_drain(struct extender_rig *rig)
{
	http_server_drain(rig->http, on_drained, rig);
}

int extender_rig_dial(const struct extender_rig *rig)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
		.sin_port = htons((uint16_t)http_server_port(rig->http)),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	if (rig->from) {
		const struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(rig->from)};

		ck_assert_int_eq(bind(fd, (const struct sockaddr *)&from, sizeof(from)), 0);
	}
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

void extender_rig_say(int fd, const char *path, const char *body, bool last)
{
	CLEANUP(free_charp)
	char *text = x_asprintf("POST %s HTTP/1.1\r\nHost: a\r\n%sContent-Length: %zu\r\n\r\n%s", path,
		last ? "Connection: close\r\n" : "", strlen(body), body);

	ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void stop(void *user)
{
	loop_stop(user);
}

void extender_rig_round(struct extender_rig *rig)
{
	struct loop_timer *timer = loop_timer_new(rig->loop, stop, rig->loop);

	loop_timer_set(timer, 1, /* repeat_ms= */ 0);
	loop_run(rig->loop);
	loop_timer_close(timer);
}

int extender_rig_ask(struct extender_rig *rig, const char *path, const char *body)
{
	int fd = extender_rig_dial(rig);
	size_t before = rig->n_asked;

	extender_rig_say(fd, path, body, /* last= */ true);
	while (rig->n_asked == before)
		extender_rig_round(rig);
	return fd;
}

char *extender_rig_hear(struct extender_rig *rig, int fd)
{
	CLEANUP(buf_done) struct buf reply = BUF_INIT(REPLY_BYTES);
	char in[4096];
	ssize_t n;

	while ((n = recv(fd, in, sizeof(in), MSG_DONTWAIT)) != 0) {
		if (n > 0)
			buf_add(&reply, in, (size_t)n);
		extender_rig_round(rig);
	}
	close(fd);
	return x_strdup(buf_str(&reply));
}
