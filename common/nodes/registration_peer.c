/* SPDX-License-Identifier: Apache-2.0 */
#include "nodes/registration_peer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "kube/token.h"
#include "net/limits.h"

#define SERVER_NAME "pmem-registry"
/* Time limit for opening a connection and for a call: in a crowd of thousands each node waits for its turn,
 * and giving up early would only prolong the crowd. */
#define CALL_MS 30000
/* Upper limit of the random delay before connecting again after the loss of a connection, so that the nodes
 * of a controller that ends do not connect all at once. */
#define LOST_MAX_MS 1000

static void plan_retry(struct peer *p, uint64_t delay_ms)
{
	p->retrying = true;
	loop_timer_set(p->retry, delay_ms, /* repeat_ms= */ 0);
}

static uint64_t heartbeat_ms(const struct peer *p)
{
	uint64_t ms = p->config.registration->heartbeat_ms;

	return ms ? ms : REGISTRATION_HEARTBEAT_MS;
}

static void log_failure(struct peer *p, const struct error *e)
{
	if (!wait_log_due(&p->waiting, e->msg, clock_ns()))
		return;
	if (e->code == ERR_INVALID_ARGUMENT)
		log_error("the controller refuses to register this node; will try again",
			F_STR("address", p->address), F_ERR(e));
	else
		log_warn("waiting for the controller to register this node", F_STR("address", p->address),
			F_U64("waited_s", (clock_ns() - p->waiting.since_ns) / NS_PER_S), F_ERR(e));
}

/* A connection over which no answer comes is as good as none. */
static bool is_unreachable(const struct error *e)
{
	return e->code == ERR_UNAVAILABLE || e->code == ERR_DEADLINE;
}

static void failed(struct peer *p, const struct error *e)
{
	uint64_t now_ns = clock_ns();

	log_failure(p, e);
	error_clear(&p->failure);
	err_set(&p->failure, e->code, "%s", e->msg);
	backoff_fail(&p->backoff, now_ns);
	plan_retry(p, (p->backoff.until_ns - now_ns) / NS_PER_MS + 1);
	if (is_unreachable(e)) {
		p->accepted[0] = '\0';
		p->config.unreachable(p->config.user);
	}
}

static void succeeded(struct peer *p)
{
	bool news = wait_log_over(&p->waiting) || p->answered_ns == 0;

	p->answered_ns = clock_ns();
	memcpy(p->accepted, p->said, sizeof(p->accepted));
	error_clear(&p->failure);
	backoff_reset(&p->backoff);
	if (news)
		log_info("registered with the controller", F_STR("address", p->address));
	if (p->again)
		peer_touch(p);
}

static void on_answer(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct peer *p = user;

	(void)reply;
	/* of a call that was given up for the last one, or with the peer */
	if (p->leaving)
		return;
	p->call = NULL;
	if (error)
		failed(p, error);
	else
		succeeded(p);
}

static void on_lost(void *user)
{
	struct peer *p = user;

	p->accepted[0] = '\0';
	if (p->leaving)
		return;
	log_debug("connection to the controller was lost", F_STR("address", p->address));
	/* a call that was on its way fails with the connection, and decides then when it is tried again */
	plan_retry(p, random_u64() % LOST_MAX_MS);
	p->config.unreachable(p->config.user);
}

static int connect_to(struct peer *p, struct error **err)
{
	const struct registration_config *r = p->config.registration;
	const struct h2_channel_config config = {
		.loop = r->loop,
		.endpoint = p->address,
		.tls = r->tls,
		.tls_name = SERVER_NAME,
		.handshakes = r->handshakes,
		.open_ms = CALL_MS,
		.on_lost = on_lost,
		.user = p,
	};

	return grpc_client_new(&config, &p->client, err);
}

static void hash_request(const ProtobufCMessage *m, char out[static SHA224_HEX_LEN + 1])
{
	size_t n = protobuf_c_message_get_packed_size(m);
	CLEANUP(free_charp) char *bytes = x_malloc(n + 1);

	protobuf_c_message_pack(m, (uint8_t *)bytes);
	sha224_hex(bytes, n, out);
}

/* Fills in @ret with the present registration, allocated in @arena. */
static void fill(const struct peer *p, struct arena *arena, Registry__V0__RegisterControllerRequest *ret,
	char hash[static SHA224_HEX_LEN + 1])
{
	const struct registration_config *r = p->config.registration;
	struct report_number *number = p->config.number;

	registry__v0__register_controller_request__init(ret);
	r->fill(r->user, ret, arena);
	ret->node_id = arena_strdup(arena, r->node_id);
	ret->instance = arena_strdup(arena, p->config.instance);
	ret->lease_seconds = (uint32_t)((REGISTRATION_LEASE_HEARTBEATS * heartbeat_ms(p) + 999) / 1000);
	hash_request(&ret->base, hash);
	if (strcmp(hash, number->hash) != 0) {
		memcpy(number->hash, hash, sizeof(number->hash));
		number->number++;
	}
	ret->report_number = number->number;
}

/* Puts what proves which node this is on the calls that follow. */
static int authorize(struct peer *p, struct error **err)
{
	const struct registration_config *r = p->config.registration;
	CLEANUP(kube_token_done) struct kube_token token = {0};
	const char *value;

	if (!r->tls || !r->token_file)
		return 0;
	if (kube_token_init(&token, /* token= */ NULL, r->token_file, err) < 0 ||
		kube_token_get(&token, clock_ns(), &value, err) < 0)
		return err_wrap(err, "-registryTokenFile");
	grpc_client_authorize(p->client, value);
	return 0;
}

static void send_report(struct peer *p, const Registry__V0__RegisterControllerRequest *request)
{
	CLEANUP(error_freep) struct error *err = NULL;

	p->again = false;
	if ((!p->client && connect_to(p, &err) < 0) || authorize(p, &err) < 0) {
		failed(p, err);
		return;
	}
	p->call = grpc_client_call(p->client, "/registry.v0.Registry/RegisterController", &request->base,
		&registry__v0__register_controller_reply__descriptor, CALL_MS, on_answer, p);
}

static void report_to_peer(struct peer *p, bool only_news)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	Registry__V0__RegisterControllerRequest request;
	char hash[SHA224_HEX_LEN + 1];

	if (p->leaving || p->retrying)
		return;
	if (p->call) {
		p->again = true;
		return;
	}
	fill(p, arena, &request, hash);
	if (only_news && strcmp(hash, p->accepted) == 0) {
		p->again = false;
		return;
	}
	memcpy(p->said, hash, sizeof(p->said));
	send_report(p, &request);
}

void peer_say(struct peer *p)
{
	report_to_peer(p, /* only_news= */ false);
}

void peer_touch(struct peer *p)
{
	report_to_peer(p, /* only_news= */ true);
}

/* Each try has a new connection, which does not know of former failures, so the back-off is here. */
static void on_retry(void *user)
{
	struct peer *p = user;

	p->retrying = false;
	if (p->accepted[0] == '\0' && !p->call)
		grpc_client_free(TAKE_PTR(p->client));
	peer_say(p);
}

struct peer *peer_new(const struct registration_peer_config *config, const char *address)
{
	struct peer *p = x_calloc(1, sizeof(*p));

	p->config = *config;
	p->address = x_strdup(address);
	p->retry = loop_timer_new(config->registration->loop, on_retry, p);
	backoff_init(&p->backoff, /* first_ms= */ 0);
	return p;
}

void peer_free(struct peer *p)
{
	p->leaving = true;
	grpc_client_free(p->client);
	loop_timer_close(p->retry);
	wait_log_over(&p->waiting);
	error_free(p->failure);
	free(p->address);
	free(p);
}

bool peer_is_registered(const struct peer *p)
{
	return p->client && p->accepted[0] != '\0';
}

int peer_ask_pod(struct peer *p, const struct registration_pod *pod, uint64_t timeout_ms, grpc_reply_fn fn,
	void *user, struct error **err)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	Registry__V0__RegisterControllerRequest said;
	Registry__V0__DescribePodRequest request;
	char hash[SHA224_HEX_LEN + 1];

	if (authorize(p, err) < 0)
		return -1;
	fill(p, arena, &said, hash);
	registry__v0__describe_pod_request__init(&request);
	request.node_id = said.node_id;
	request.endpoint = said.endpoint;
	request.instance = said.instance;
	request.namespace_ = arena_strdup(arena, pod->namespace);
	request.name = arena_strdup(arena, pod->name);
	request.uid = arena_strdup(arena, pod->uid);
	grpc_client_call(p->client, "/registry.v0.Registry/DescribePod", &request.base,
		&registry__v0__describe_pod_reply__descriptor, timeout_ms, fn, user);
	return 0;
}

static void on_left(void *user, const ProtobufCMessage *reply, const struct error *error)
{
	struct peer *p = user;

	(void)reply;
	if (error)
		log_debug("the node could not unregister from the controller", F_STR("address", p->address),
			F_ERR(error));
	p->config.left(p->config.user);
}

bool peer_leave(struct peer *p)
{
	CLEANUP(arena_freep) struct arena *arena = arena_new(LIMIT_ARENA_BYTES);
	Registry__V0__UnregisterControllerRequest request;
	CLEANUP(error_freep) struct error *unproven = NULL;
	Registry__V0__RegisterControllerRequest said;
	char hash[SHA224_HEX_LEN + 1];

	p->leaving = true;
	loop_timer_stop(p->retry);
	if (!p->client || (p->answered_ns == 0 && !p->call))
		return false;
	if (p->call)
		grpc_client_cancel(TAKE_PTR(p->call));
	if (authorize(p, &unproven) < 0)
		log_warn("the controller may still have this node's registration", F_ERR(unproven));
	fill(p, arena, &said, hash);
	registry__v0__unregister_controller_request__init(&request);
	request.node_id = said.node_id;
	request.endpoint = said.endpoint;
	request.instance = said.instance;
	grpc_client_call(p->client, "/registry.v0.Registry/UnregisterController", &request.base,
		&registry__v0__unregister_controller_reply__descriptor, REGISTRATION_STOP_MS, on_left, p);
	return true;
}
