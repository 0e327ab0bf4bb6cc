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
#include "duties/begun_deletions.h"
#include "duties/capacity_objects.h"
#include "duties/claim_events.h"
#include "duties/claim_lookup.h"
#include "duties/claim_release.h"
#include "duties/create_gate.h"
#include "duties/driverless_claims.h"
#include "duties/lost_nodes.h"
#include "duties/node_objects.h"
#include "duties/orphans.h"
#include "duties/rebound_claims.h"
#include "duties/trouble_events.h"
#include "duties/volume_objects.h"
#include "kube/events.h"
#include "kube/informer.h"
#include "kube/lease.h"
#include "kube/objects/objects.h"
#include "resources/api_check.h"

/* Reviews of tokens, on a connection of their own: those of 5,000 nodes, the most that Kubernetes supports,
 * take less than a minute after a start, and then ten minutes hold 12 times as many. */
#define REVIEWS_PER_S 100
#define REVIEWS_BURST 200

/* Pods that nodes ask about, which kubelet starts on a node one after the other, or all at once after a boot.
 */
#define PODS_PER_S 100
#define PODS_BURST 200

/* Writes that follow from what nodes report, of all nodes together: an API server with two processors takes
 * some 900 a second, and nodes whose state changes all the time leave most of these to others. The burst is
 * for many nodes that register at once. */
#define REPORT_WRITES_PER_S 200
#define REPORT_WRITES_BURST 1000

/* Lines in the log that follow from it, per second. */
#define REPORT_LINES_PER_S 10

#define DUTY_NS (5 * NS_PER_S)

struct controller_kube {
	struct controller_kube_config config;
	struct kube_config *kube;
	struct kube_client *client;
	struct kube_client *reviewer; /* NULL: tokens are not checked */
	struct kube_client
		*pod_client; /* for questions of nodes about pods, which wait behind nothing else */
	struct pod_reader *pods;
	struct kube_client *recorder; /* of records, which callers wait for, and of nothing else */
	struct kube_records *records;
	struct bucket report_writes;
	struct log_quota *report_lines;
	struct node_tokens *tokens;
	struct api_check *api_check; /* of the custom resources */
	struct cluster_nodes *cluster;
	struct informer *classes;
	struct informer *claims; /* while we lead: other replicas do not look at them */
	struct kube_events *events;
	struct claim_reader *reader;
	struct controller *controller;
	struct create_gate *create_gate;
	/* what only the leader has */
	struct driverless_claims *driverless_claims;
	struct claim_events *claim_events;
	struct trouble_events *trouble_events;
	struct claim_release *claim_release; /* NULL: not asked for */
	struct orphans *orphans;
	struct begun_deletions *deletions;
	struct capacity_objects *capacity; /* NULL: others publish them */
	struct node_objects *node_objects;
	struct lost_nodes *lost_nodes; /* NULL: no node is ever lost */
	struct volume_objects *volume_objects;
	struct rebound_claims *rebound_claims;
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

	(void)key;
	(void)old;
	(void)new;
	if (k->capacity)
		capacity_objects_class_changed(k->capacity);
}

/* A Node came or went, or its taint out-of-service did; or the node is lost, or is so no longer. */
static void node_changed(void *user, const char *node_id)
{
	struct controller_kube *k = user;

	if (k->capacity)
		capacity_objects_node_changed(k->capacity, node_id);
	if (k->volume_objects)
		volume_objects_node_changed(k->volume_objects, node_id);
}

/* Parts of a message come from nodes and from tenants. */
static void post_event(struct controller_kube *k, const struct kube_reference *object, const char *type,
	const char *reason, const char *message, uint64_t now_ns)
{
	CLEANUP(free_charp) char *line = x_strdup(message);

	str_clean(line);
	kube_event_post(k->events, object, type, reason, line, now_ns);
}

static void post_to_claim(struct controller_kube *k, const struct kube_meta *claim, const char *type,
	const char *reason, const char *message, uint64_t now_ns)
{
	const struct kube_reference object = {.api_version = "v1",
		.kind = "PersistentVolumeClaim",
		.namespace = claim->namespace,
		.name = claim->name,
		.uid = claim->uid};

	post_event(k, &object, type, reason, message, now_ns);
}

static void tell_trouble(
	void *user, const struct kube_meta *claim, const char *reason, const char *message, uint64_t now_ns)
{
	post_to_claim(user, claim, "Warning", reason, message, now_ns);
}

static void inform_claim(
	void *user, const struct kube_meta *claim, const char *reason, const char *message, uint64_t now_ns)
{
	post_to_claim(user, claim, "Normal", reason, message, now_ns);
}

static void tell_claim(void *user, const struct kube_meta *claim, const char *message, uint64_t now_ns)
{
	tell_trouble(user, claim, "VolumeDoesNotFit", message, now_ns);
}

/* Posts an Event about a node. As in kubelet's Events, the UID is the name of the node, so that "kubectl
 * describe node" shows it. */
static void tell_node(
	void *user, const char *node_id, const char *reason, const char *message, uint64_t now_ns)
{
	struct controller_kube *k = user;
	const struct kube_reference object = {
		.api_version = "v1", .kind = "Node", .name = node_id, .uid = node_id};

	post_event(k, &object, "Warning", reason, message, now_ns);
}

static void orphan_deleted(void *user, const char *node_id, const char *volume_id, const struct error *error)
{
	(void)user;
	if (error)
		log_warn("an orphaned volume cannot be deleted; will try again", F_STR("node", node_id),
			F_STR("volume", volume_id), F_ERR(error));
	else
		log_info("deleted an orphaned volume", F_STR("node", node_id), F_STR("volume", volume_id));
}

static void orphan_kept(void *user, const char *node_id, const char *volume_id, const char *why)
{
	(void)user;
	log_warn("a volume belongs to no PersistentVolume; it is kept", F_STR("node", node_id),
		F_STR("volume", volume_id), F_STR("why", why));
}

static void deletion_ended(void *user, const char *handle, const struct error *error)
{
	(void)user;
	if (error)
		log_warn("a deletion that was begun cannot be finished; will try again",
			F_STR("volume", handle), F_ERR(error));
	else
		log_info("finished a deletion that was begun", F_STR("volume", handle));
}

static bool shown_capacity(void *user, const char *node_id, bool sync, struct capacity *ret)
{
	const struct controller_kube *k = user;

	*ret = (struct capacity){0};
	return !k->node_objects || node_objects_capacity(k->node_objects, node_id, sync, ret);
}

static void node_shown(void *user, const char *node_id)
{
	const struct controller_kube *k = user;

	if (k->capacity)
		capacity_objects_node_changed(k->capacity, node_id);
}

static const char *recorded_until(void *user, const struct node *node, const char *shown)
{
	const struct controller_kube *k = user;

	return k->volume_objects ? volume_objects_recorded_until(k->volume_objects, node, shown) : shown;
}

/* Objects that are derived from what nodes report. */
static void begin_objects(struct controller_kube *k)
{
	const struct options *o = k->config.options;
	const struct capacity_objects_config capacity = {.client = k->client,
		.namespace = k->namespace,
		.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.classes = k->classes,
		.cluster = k->cluster,
		.remove_foreign = o->remove_foreign_capacity,
		.shown = shown_capacity,
		.shown_user = k,
		.writes = &k->report_writes};
	if (o->publish_capacity)
		k->capacity = capacity_objects_new(&capacity);
	const struct node_objects_config objects = {.client = k->client,
		.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.cluster = k->cluster,
		.shown = node_shown,
		.shown_user = k,
		.recorded = recorded_until,
		.recorded_user = k,
		.writes = &k->report_writes};
	k->node_objects = node_objects_new(&objects);
	const struct lost_nodes_config lost = {.client = k->client,
		.controller = k->controller,
		.lost_after_ns = o->node_lost_ms * NS_PER_MS,
		.changed = node_changed,
		.user = k};
	if (o->node_lost_ms > 0)
		k->lost_nodes = lost_nodes_new(&lost);
	const struct volume_objects_config volumes = {.client = k->client,
		.driver_name = o->driver_name,
		.controller = k->controller,
		.lookup = claim_reader_lookup(k->reader),
		.lost = k->lost_nodes,
		.rebound = k->rebound_claims,
		.writes = &k->report_writes,
		.lines = k->report_lines,
		.limit = {.tell_node = tell_node, .user = k},
		.events = {.claims = k->claims,
			.tell_claim = tell_trouble,
			.inform_claim = inform_claim,
			.user = k}};
	k->volume_objects = volume_objects_new(&volumes);
}

static void rebound(void *user, const char *volume_name)
{
	struct controller_kube *k = user;

	if (k->volume_objects)
		volume_objects_claim_changed(k->volume_objects, volume_name);
}

/* Implements struct informer_events. */
static void claim_changed(void *user, const char *key, const void *old, const void *new)
{
	struct controller_kube *k = user;

	(void)old;
	rebound_claims_note(k->rebound_claims, key, new);
}

static void begin_duties(struct controller_kube *k)
{
	static const struct informer_events events = {.changed = claim_changed};
	const struct options *o = k->config.options;

	k->rebound_claims = rebound_claims_new(rebound, k);
	k->claims = informer_new(k->client, &kube_kind_claims, &events, k);
	const struct driverless_claims_config driverless_claims = {.client = k->client,
		.driver_name = o->driver_name,
		.node_selector = &o->node_selector,
		.nodes = k->config.nodes,
		.classes = k->classes,
		.claims = k->claims};
	k->driverless_claims = driverless_claims_new(&driverless_claims);
	const struct claim_events_config claims = {.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.cluster = k->cluster,
		.classes = k->classes,
		.claims = k->claims,
		.tell = tell_claim,
		.user = k};
	k->claim_events = claim_events_new(&claims);
	const struct claim_release_config release = {.client = k->client,
		.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.cluster = k->cluster,
		.claims = k->claims,
		.tell = tell_trouble,
		.user = k};
	if (o->release_claims)
		k->claim_release = claim_release_new(&release);
	const struct trouble_events_config trouble = {.driver_name = o->driver_name,
		.nodes = k->config.nodes,
		.classes = k->classes,
		.claims = k->claims,
		.tell_node = tell_node,
		.tell_claim = tell_trouble,
		.user = k};
	k->trouble_events = trouble_events_new(&trouble);
	begin_objects(k);
	const struct orphans_config orphans = {.controller = k->controller,
		.records = volume_objects_records(k->volume_objects),
		.lookup = claim_reader_lookup(k->reader),
		.observer = {orphan_deleted, orphan_kept, k}};
	k->orphans = orphans_new(&orphans);
	const struct begun_deletions_config deletions = {.controller = k->controller,
		.records = orphans.records,
		.lookup = orphans.lookup,
		.ended = deletion_ended,
		.user = k};
	k->deletions = begun_deletions_new(&deletions);
}

static void end_duties(struct controller_kube *k)
{
	begun_deletions_free(TAKE_PTR(k->deletions));
	orphans_free(TAKE_PTR(k->orphans));
	volume_objects_free(TAKE_PTR(k->volume_objects));
	lost_nodes_free(TAKE_PTR(k->lost_nodes));
	node_objects_free(TAKE_PTR(k->node_objects));
	capacity_objects_free(TAKE_PTR(k->capacity));
	trouble_events_free(TAKE_PTR(k->trouble_events));
	claim_release_free(TAKE_PTR(k->claim_release));
	claim_events_free(TAKE_PTR(k->claim_events));
	driverless_claims_free(TAKE_PTR(k->driverless_claims));
	informer_free(TAKE_PTR(k->claims));
	rebound_claims_free(TAKE_PTR(k->rebound_claims));
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
}

static int read_config(struct kube_config **ret, struct error **err)
{
	CLEANUP(error_freep) struct error *none = NULL;

	if (kube_config_find(ret, &none) == 0)
		return 0;
	if (none->code == ERR_NOT_FOUND && str_empty(getenv("KUBECONFIG")))
		return err_set(err, ERR_NOT_FOUND,
			"the controller records volumes at an API server, and neither $KUBECONFIG nor the "
			"account of a pod leads to one; without Kubernetes, volumes are created on each node, "
			"and no controller runs");
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
	config.qps = PODS_PER_S;
	config.burst = PODS_BURST;
	if (kube_client_new(&config, &k->pod_client, err) < 0)
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

static void limit_reports(struct controller_kube *k)
{
	const struct log_quota_config lines = {.loop = k->config.loop,
		.max = REPORT_LINES_PER_S,
		.missed_msg = "further lines about volumes that nodes report were left out"};

	bucket_init(&k->report_writes, REPORT_WRITES_PER_S, REPORT_WRITES_BURST);
	k->report_lines = log_quota_new(&lines);
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
	k->recorder = kube_client_sibling(k->client, /* ping_ms= */ 0, /* ping_timeout_ms= */ 0);
	k->records = kube_records_new(k->recorder, o->driver_name);
	k->api_check = api_check_new(k->client);
	k->cluster = cluster_nodes_new(k->client, o->driver_name, node_changed, k);
	k->pods = pod_reader_new(k->pod_client, k->cluster);
	k->classes = informer_new(k->client, &kube_kind_classes, &events, k);
	limit_reports(k);
	k->events = kube_events_new(k->client, o->driver_name, k->identity);
	k->reader = claim_reader_new(k->client, o->driver_name);
}

int controller_kube_new(
	const struct controller_kube_config *config, struct controller_kube **ret, struct error **err)
{
	struct controller_kube *k = x_calloc(1, sizeof(*k));

	k->config = *config;
	k->start_ns = clock_ns();
	if (read_config(&k->kube, err) < 0 || open_clients(k, err) < 0) {
		controller_kube_free(k);
		return -1;
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
	create_gate_free(k->create_gate);
	claim_reader_free(k->reader);
	kube_events_free(k->events);
	log_quota_free(k->report_lines);
	informer_free(k->classes);
	pod_reader_free(k->pods);
	cluster_nodes_free(k->cluster);
	api_check_free(k->api_check);
	node_tokens_free(k->tokens);
	kube_client_free(k->pod_client);
	kube_client_free(k->recorder);
	kube_records_free(k->records);
	kube_client_free(k->reviewer);
	kube_client_free(k->client);
	kube_config_free(k->kube);
	free(k->namespace);
	free(k->lease_name);
	free(k->identity);
	free(k);
}

struct kube_client *controller_kube_client(struct controller_kube *k)
{
	return k->client;
}

struct cluster_nodes *controller_kube_cluster(struct controller_kube *k)
{
	return k->cluster;
}

struct volume_records controller_kube_records(struct controller_kube *k)
{
	return kube_records_interface(k->records);
}

struct pod_reader *controller_kube_pods(struct controller_kube *k)
{
	return k->pods;
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

	const struct create_gate_config gate = {
		.client = k->client, .driver_name = k->config.options->driver_name, .controller = controller};

	k->controller = controller;
	k->create_gate = create_gate_new(&gate);
	k->lease = lease_new(&config);
}

/* Whether a node may still register: after a start that takes as long as a lease, and less if all Nodes that
 * have the label of the driver are live. */
static bool awaits_nodes(const struct controller_kube *k, uint64_t now_ns)
{
	const char *id;
	size_t at = 0;
	size_t n = 0;

	if (now_ns - k->start_ns >= k->config.start_window_ms * NS_PER_MS)
		return false;
	if (!cluster_nodes_ready(k->cluster))
		return true;
	for (; (id = cluster_nodes_next(k->cluster, &at)) != NULL; n++) {
		if (!node_table_get_live(k->config.nodes, id))
			return true;
	}
	return n == 0;
}

void controller_kube_tick(struct controller_kube *k, uint64_t now_ns)
{
	if (k->tokens)
		node_tokens_tick(k->tokens);
	api_check_tick(k->api_check, now_ns);
	create_gate_tick(k->create_gate);
	if (k->capacity)
		capacity_objects_tick(k->capacity);
	if (k->node_objects)
		node_objects_tick(k->node_objects);
	if (k->lost_nodes)
		lost_nodes_tick(k->lost_nodes);
	if (k->volume_objects)
		volume_objects_tick(k->volume_objects);
	if (!k->orphans || now_ns - k->duties_ns < DUTY_NS)
		return;
	k->duties_ns = now_ns;
	driverless_claims_tick(k->driverless_claims, now_ns);
	orphans_tick(k->orphans, now_ns);
	begun_deletions_tick(k->deletions, now_ns);
	trouble_events_tick(k->trouble_events, now_ns);
	if (!awaits_nodes(k, now_ns))
		claim_events_tick(k->claim_events, now_ns);
	if (k->claim_release && now_ns - k->start_ns >= k->config.start_window_ms * NS_PER_MS)
		claim_release_tick(k->claim_release, now_ns);
}

void controller_kube_stop(struct controller_kube *k, void (*done)(void *user), void *user)
{
	lease_stop(k->lease, done, user);
}

bool controller_kube_leads(const struct controller_kube *k)
{
	return k->lease && lease_is_leading(k->lease);
}

size_t controller_kube_capacities_pending(const struct controller_kube *k)
{
	return k->capacity ? capacity_objects_pending(k->capacity) : 0;
}

size_t controller_kube_nodes_pending(const struct controller_kube *k)
{
	return k->node_objects ? node_objects_pending(k->node_objects) : 0;
}

size_t controller_kube_volumes_pending(const struct controller_kube *k)
{
	return k->volume_objects ? volume_objects_pending(k->volume_objects) : 0;
}

int controller_kube_require_served(const struct controller_kube *k, struct error **err)
{
	return api_check_require(k->api_check, err);
}

int controller_kube_require_records(const struct controller_kube *k, struct error **err)
{
	return create_gate_require(k->create_gate, err);
}
