/* SPDX-License-Identifier: Apache-2.0 */
#include "controller_kube.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "duties/capacity_objects.h"
#include "duties/claim_events.h"
#include "duties/claim_lookup.h"
#include "duties/leftovers.h"
#include "duties/owners.h"
#include "duties/rescheduler.h"
#include "duties/trouble_events.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/lease.h"
#include "kube/objects/objects.h"

/* Reviews of tokens, on a connection of their own: those of 5,000 nodes, the most that Kubernetes supports,
 * take less than a minute after a start, and then ten minutes hold 12 times as many. */
#define REVIEWS_PER_S 100
#define REVIEWS_BURST 200

#define DUTY_NS (5 * NS_PER_S)

struct controller_kube {
	struct controller_kube_config config;
	struct kube_config *kube;
	struct kube_client *client;
	struct kube_client *reviewer; /* NULL: tokens are not checked */
	struct node_tokens *tokens;
	struct owners *owners;
	struct informer *classes;
	struct informer *claims;           /* while we lead: nobody else looks at them */
	struct capacity_objects *capacity; /* NULL: others publish them */
	struct kube_events *events;
	struct claim_reader *reader;
	struct controller *controller;
	/* what only the leader has */
	struct rescheduler *rescheduler;
	struct claim_events *claim_events;
	struct trouble_events *trouble_events;
	struct leftovers *leftovers;
	struct lease *lease;
	char *namespace;
	char *lease_name;
	char *identity;
	uint64_t start_ns;
	uint64_t duties_ns; /* when they were done last */
};

static void class_changed(void *user, const char *key, const void *old, const void *new)
{
	struct controller_kube *k = user;

	(void)old;
	(void)new;
	if (k->capacity)
		capacity_objects_class_changed(k->capacity, key);
}

static void tell_trouble(
	void *user, const struct kube_meta *claim, const char *reason, const char *message, uint64_t now_ns)
{
	struct controller_kube *k = user;
	const struct kube_reference object = {.api_version = "v1",
		.kind = "PersistentVolumeClaim",
		.namespace = claim->namespace,
		.name = claim->name,
		.uid = claim->uid};

	kube_event_post(k->events, &object, "Warning", reason, message, now_ns);
}

static void tell_claim(void *user, const struct kube_meta *claim, const char *message, uint64_t now_ns)
{
	tell_trouble(user, claim, "VolumeDoesNotFit", message, now_ns);
}

/* By its name, as kubelet does: kubectl describe shows both. */
static void tell_node(
	void *user, const char *node_id, const char *reason, const char *message, uint64_t now_ns)
{
	struct controller_kube *k = user;
	const struct kube_reference object = {
		.api_version = "v1", .kind = "Node", .name = node_id, .uid = node_id};

	kube_event_post(k->events, &object, "Warning", reason, message, now_ns);
}

static void leftover_deleted(
	void *user, const char *node_id, const char *volume_id, const struct error *error)
{
	(void)user;
	if (error)
		log_warn("an orphaned volume, of which no caller knows, cannot be deleted yet",
			F_STR("node", node_id), F_STR("volume", volume_id), F_ERR(error));
	else
		log_info("deleted an orphaned volume, of which no caller knows", F_STR("node", node_id),
			F_STR("volume", volume_id));
}

static void leftover_kept(void *user, const char *node_id, const char *volume_id, const char *why)
{
	(void)user;
	log_warn("a volume belongs to no PersistentVolume; it is kept", F_STR("node", node_id),
		F_STR("volume", volume_id), F_STR("why", why));
}

static void begin_duties(struct controller_kube *k)
{
	static const struct informer_events none = {0};
	const struct options *o = k->config.options;

	k->claims = informer_new(k->client, &kube_kind_claims, &none, k);
	const struct rescheduler_config rescheduler = {.client = k->client,
		.driver_name = o->driver_name,
		.node_selector = &o->node_selector,
		.nodes = k->config.nodes,
		.classes = k->classes,
		.claims = k->claims};
	k->rescheduler = rescheduler_new(&rescheduler);
	const struct claim_events_config claims = {.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.classes = k->classes,
		.claims = k->claims,
		.tell = tell_claim,
		.user = k};
	k->claim_events = claim_events_new(&claims);
	const struct trouble_events_config trouble = {.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.classes = k->classes,
		.claims = k->claims,
		.tell_node = tell_node,
		.tell_claim = tell_trouble,
		.user = k};
	k->trouble_events = trouble_events_new(&trouble);
	const struct leftovers_config leftovers = {.controller = k->controller,
		.lookup = claim_reader_lookup(k->reader),
		.observer = {leftover_deleted, leftover_kept, k}};
	k->leftovers = leftovers_new(&leftovers);
}

static void end_duties(struct controller_kube *k)
{
	leftovers_free(TAKE_PTR(k->leftovers));
	trouble_events_free(TAKE_PTR(k->trouble_events));
	claim_events_free(TAKE_PTR(k->claim_events));
	rescheduler_free(TAKE_PTR(k->rescheduler));
	informer_free(TAKE_PTR(k->claims));
}

static void lease_changed(void *user, bool leading)
{
	struct controller_kube *k = user;

	log_info(leading ? "leading" : "not leading any more", F_STR("lease", k->lease_name),
		F_STR("namespace", k->namespace), F_STR("identity", k->identity));
	if (leading)
		begin_duties(k);
	else
		end_duties(k);
	if (k->capacity)
		capacity_objects_lead(k->capacity, leading);
}

/* The API server that there is, if any: what somebody has set comes before what the pod has. */
static int read_config(struct kube_config **ret, struct error **err)
{
	CLEANUP(error_freep) struct error *none = NULL;
	const char *path = getenv("KUBECONFIG");

	*ret = NULL;
	if (!str_empty(path))
		return kube_config_load(path, ret, err);
	if (kube_config_in_cluster(ret, &none) == 0 || none->code == ERR_NOT_FOUND)
		return 0;
	*err = TAKE_PTR(none);
	return -1;
}

/* Unique, also among replicas that share a host's name. */
static char *make_identity(void)
{
	const char *pod = getenv("POD_NAME");
	char host[256] = "";
	char uuid[UUID_TEXT_LEN + 1];

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	uuid_generate_text(uuid);
	return x_asprintf("%s_%s", str_empty(pod) ? host : pod, uuid);
}

static int open_clients(struct controller_kube *k, struct error **err)
{
	struct kube_client_config config = {.loop = k->config.loop,
		.handshakes = k->config.handshakes,
		.kube = k->kube,
		.qps = k->config.options->kube_qps,
		.burst = k->config.options->kube_burst,
		.observer = k->config.observer};

	if (kube_client_new(&config, &k->client, err) < 0)
		return -1;
	if (!k->config.checks_tokens)
		return 0;
	config.qps = REVIEWS_PER_S;
	config.burst = REVIEWS_BURST;
	return kube_client_new(&config, &k->reviewer, err);
}

static void open_tokens(struct controller_kube *k)
{
	const struct options *o = k->config.options;
	const char *slash = strchr(o->node_account, '/');
	CLEANUP(free_charp)
	char *namespace = slash ? x_strndup(o->node_account, (size_t)(slash - o->node_account))
				: x_strdup(k->namespace);
	CLEANUP(free_charp)
	char *user =
		x_asprintf("system:serviceaccount:%s:%s", namespace, slash ? slash + 1 : o->node_account);
	CLEANUP(free_charp) char *audience = x_asprintf("%s/registry", o->driver_name);
	const struct node_tokens_config config = {
		.client = k->reviewer, .audience = audience, .user_name = user};

	k->tokens = node_tokens_new(&config);
	log_info("nodes prove their identity by tokens", F_STR("account", user), F_STR("audience", audience));
}

static void open_parts(struct controller_kube *k)
{
	static const struct informer_events events = {.changed = class_changed};
	const struct options *o = k->config.options;

	k->namespace = x_strdup(o->namespace ? o->namespace : kube_client_namespace(k->client));
	k->lease_name = o->lease_name ? x_strdup(o->lease_name) : x_asprintf("%s-controller", o->driver_name);
	k->identity = make_identity();
	if (k->reviewer)
		open_tokens(k);
	k->owners = owners_watch(k->client, o->driver_name);
	k->classes = informer_new(k->client, &kube_kind_classes, &events, k);
	k->events = kube_events_new(k->client, o->driver_name, k->identity);
	k->reader = claim_reader_new(k->client, o->driver_name);
	const struct capacity_objects_config capacity = {.client = k->client,
		.namespace = k->namespace,
		.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.classes = k->classes,
		.owners = owners_possible(k->owners),
		.remove_foreign = o->remove_foreign_capacity};
	if (o->publish_capacity)
		k->capacity = capacity_objects_new(&capacity);
}

int controller_kube_new(
	const struct controller_kube_config *config, struct controller_kube **ret, struct error **err)
{
	struct controller_kube *k = x_calloc(1, sizeof(*k));

	k->config = *config;
	k->start_ns = clock_ns();
	if (read_config(&k->kube, err) < 0 || (k->kube && open_clients(k, err) < 0)) {
		controller_kube_free(k);
		return -1;
	}
	if (!k->kube) {
		controller_kube_free(TAKE_PTR(k));
		*ret = NULL;
		return 0;
	}
	open_parts(k);
	*ret = k;
	return 0;
}

void controller_kube_free(struct controller_kube *k)
{
	if (!k)
		return;
	lease_free(k->lease);
	end_duties(k);
	capacity_objects_free(k->capacity);
	claim_reader_free(k->reader);
	kube_events_free(k->events);
	informer_free(k->classes);
	owners_free(k->owners);
	node_tokens_free(k->tokens);
	kube_client_free(k->reviewer);
	kube_client_free(k->client);
	kube_config_free(k->kube);
	free(k->namespace);
	free(k->lease_name);
	free(k->identity);
	free(k);
}

struct possible_owners controller_kube_owners(struct controller_kube *k)
{
	return owners_possible(k->owners);
}

struct node_tokens *controller_kube_tokens(struct controller_kube *k)
{
	return k->tokens;
}

void controller_kube_start(struct controller_kube *k, struct controller *controller)
{
	const struct lease_config config = {.client = k->client,
		.namespace = k->namespace,
		.name = k->lease_name,
		.identity = k->identity,
		.changed = lease_changed,
		.user = k};

	k->controller = controller;
	k->lease = lease_new(&config);
}

void controller_kube_tick(struct controller_kube *k, uint64_t now_ns)
{
	if (k->tokens)
		node_tokens_tick(k->tokens);
	if (k->capacity)
		capacity_objects_tick(k->capacity);
	if (!k->leftovers || now_ns - k->duties_ns < DUTY_NS)
		return;
	k->duties_ns = now_ns;
	rescheduler_tick(k->rescheduler, now_ns);
	leftovers_tick(k->leftovers, now_ns);
	trouble_events_tick(k->trouble_events, now_ns);
	if (now_ns - k->start_ns >= k->config.start_window_ms * NS_PER_MS)
		claim_events_tick(k->claim_events, now_ns);
}

void controller_kube_stop(struct controller_kube *k, void (*done)(void *user), void *user)
{
	lease_stop(k->lease, done, user);
}

bool controller_kube_leads(const struct controller_kube *k)
{
	return k->lease && lease_is_leading(k->lease);
}

size_t controller_kube_pending(const struct controller_kube *k)
{
	return k->capacity ? capacity_objects_pending(k->capacity) : 0;
}
