/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_check/cluster_reader.h"

#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "kube/list.h"
#include "kube/object_call.h"

#define GET_TIMEOUT_MS 60000

/* One list, or one object, that is being read. */
struct reading {
	struct kube_client *client;
	struct cluster_list *into;
	bool ended;
	struct error *error; /* why it failed */
};

static int explain(const char *verb, const struct kube_kind *kind, struct error *error, struct error **err)
{
	CLEANUP(error_freep) struct error *cause = error;

	if (cause->code == ERR_NOT_FOUND && str_starts(kind->path, "/apis/" PMEM_API_VERSION))
		return err_set(err, ERR_PRECONDITION,
			"the API server does not serve %s of %s: apply the definitions with kubectl apply -k "
			"manifests/crds",
			kind->what, PMEM_API_VERSION);
	if (cause->code == ERR_PERMISSION || cause->code == ERR_UNAUTHENTICATED)
		return err_set(err, cause->code,
			"%s; the account needs the permission to %s %s, as manifests/controller/rbac.yaml gives it "
			"to the account of the controller",
			cause->msg, verb, kind->what);
	if (cause->code == ERR_RANGE)
		return err_set(err, ERR_UNAVAILABLE,
			"%s; reading all pages took longer than the API server keeps a list: try again",
			cause->msg);
	if (cause->code == ERR_UNAVAILABLE || cause->code == ERR_DEADLINE)
		return err_set(err, cause->code,
			"%s; check that the API server runs and can be reached from here", cause->msg);
	return err_set(err, cause->code, "%s", cause->msg);
}

static void take_object(void *user, void *object)
{
	struct reading *r = user;

	cluster_list_add(r->into, object);
}

static void end(struct reading *r, const struct error *error)
{
	if (error)
		(void)err_set(&r->error, error->code, "%s", error->msg);
	r->ended = true;
	loop_stop(kube_client_loop(r->client));
}

static void wait_for(const struct reading *r)
{
	while (!r->ended)
		loop_run(kube_client_loop(r->client));
}

static void list_ended(void *user, const struct error *error)
{
	end(user, error);
}

static int read_list(struct kube_client *client, const struct kube_kind *kind, struct cluster_list *into,
	struct error **err)
{
	static const struct kube_list_events events = {take_object, list_ended};
	struct reading r = {.client = client, .into = into};
	struct kube_list *list = kube_list_new(client, kind, &events, &r);

	wait_for(&r);
	kube_list_free(list);
	return r.error ? explain("list", kind, r.error, err) : 0;
}

static void got_csi_node(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *malformed = NULL;
	struct reading *r = user;
	void *object;

	(void)status;
	if (error && error->code == ERR_NOT_FOUND) {
		end(r, /* error= */ NULL);
		return;
	}
	object = error ? NULL : kube_object_decode(&kube_kind_csi_nodes, body, &malformed);
	if (object)
		cluster_list_add(r->into, object);
	end(r, error ? error : malformed);
}

static int read_csi_node(
	struct kube_client *client, const char *name, struct cluster_list *into, struct error **err)
{
	const struct kube_object_call call = {
		.verb = KUBE_GET, .kind = &kube_kind_csi_nodes, .name = name, .timeout_ms = GET_TIMEOUT_MS};
	struct reading r = {.client = client, .into = into};

	kube_object_call(client, &call, got_csi_node, &r);
	wait_for(&r);
	return r.error ? explain("get", call.kind, r.error, err) : 0;
}

static const char *id_of(const void *object, const void *user)
{
	const struct pmem_node *n = object;

	(void)user;
	return n->node;
}

static int read_csi_nodes(
	struct kube_client *client, const char *label, struct cluster_lists *l, struct error **err)
{
	CLEANUP(cluster_index_done)
	struct cluster_index known = cluster_index_make(&l->pmem_nodes, id_of, NULL);

	for (size_t i = 0; i < l->nodes.n; i++) {
		const struct kube_node *n = l->nodes.objects[i];
		const char *id = kube_meta_label(&n->meta, label);

		if (!id || cluster_index_get(&known, id))
			continue;
		if (read_csi_node(client, n->meta.name, &l->csi_nodes, err) < 0)
			return -1;
	}
	return 0;
}

/* @user: the driver's name */
static bool is_pv_of_driver(const void *user, const void *object)
{
	const struct kube_volume *pv = object;

	return str_eq(pv->driver, user);
}

static bool is_record_of_driver(const void *user, const void *object)
{
	const struct pmem_volume *v = object;

	return str_eq(v->driver, user);
}

static int read_objects_of_kubernetes(
	struct kube_client *client, const char *label, struct cluster_lists *l, struct error **err)
{
	struct kube_kind claims = kube_kind_claims;
	struct kube_kind nodes = kube_kind_nodes;
	struct kube_kind pvs = kube_kind_volumes;

	claims.metadata_only = true;
	nodes.label_selector = label;
	pvs.keeps = is_pv_of_driver;
	pvs.keeps_user = l->scope.driver_name;
	if (read_list(client, &pvs, &l->pvs, err) < 0 || read_list(client, &claims, &l->claims, err) < 0 ||
		read_list(client, &kube_kind_classes, &l->classes, err) < 0)
		return -1;
	return read_list(client, &nodes, &l->nodes, err);
}

/* Reads the PmemNodes and PmemVolumes of the driver. PmemVolumes that lack the label of the driver, by which
 * the controllers select them, are read, too. */
static int read_custom_resources(struct kube_client *client, struct cluster_lists *l, struct error **err)
{
	CLEANUP(free_charp) char *selector = x_asprintf(PMEM_LABEL_DRIVER "=%s", l->scope.driver_name);
	struct kube_kind nodes = kube_kind_pmem_nodes;
	struct kube_kind volumes = kube_kind_pmem_volumes;

	nodes.label_selector = selector;
	volumes.keeps = is_record_of_driver;
	volumes.keeps_user = l->scope.driver_name;
	if (read_list(client, &nodes, &l->pmem_nodes, err) < 0)
		return -1;
	return read_list(client, &volumes, &l->pmem_volumes, err);
}

static int read_chosen_nodes(struct kube_client *client, struct cluster_lists *l, struct error **err)
{
	struct kube_kind nodes = kube_kind_nodes;

	for (char *const *selector = l->scope.node_labels; *selector; selector++) {
		nodes.label_selector = *selector;
		if (read_list(client, &nodes, &l->chosen, err) < 0)
			return -1;
	}
	return 0;
}

static int read_capacities(struct kube_client *client, struct cluster_lists *l, struct error **err)
{
	CLEANUP(free_charp) char *selector = x_asprintf(KUBE_CAPACITY_DRIVER "=%s", l->scope.driver_name);
	CLEANUP(free_charp)
	char *path =
		x_asprintf("/apis/storage.k8s.io/v1/namespaces/%s/csistoragecapacities", l->scope.namespace);
	struct kube_kind capacities = kube_kind_capacities;

	capacities.path = path;
	capacities.label_selector = selector;
	return read_list(client, &capacities, &l->capacities, err);
}

int cluster_read(struct kube_client *client, const struct cluster_scope *scope, struct cluster_lists *ret,
	struct error **err)
{
	CLEANUP(cluster_lists_done) struct cluster_lists l = {.scope = *scope};
	CLEANUP(free_charp) char *label = name_topology_key(scope->driver_name);

	if (read_custom_resources(client, &l, err) < 0 ||
		read_objects_of_kubernetes(client, label, &l, err) < 0 ||
		read_chosen_nodes(client, &l, err) < 0 || read_capacities(client, &l, err) < 0 ||
		read_csi_nodes(client, label, &l, err) < 0)
		return -1;
	*ret = l;
	l = (struct cluster_lists){0};
	return 0;
}
