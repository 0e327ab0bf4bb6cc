/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster_check/cluster_reader.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/kube/fake_api.h"
#include "unit/unit.h"

#define LIST(items) "{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[" items "]}"
#define NAMED(name) "{\"metadata\":{\"name\":\"" name "\"}}"

/* The reply of the server to requests for paths that begin with @path. */
struct reply {
	const char *path;
	const char *status;
	const char *body;
};

static const struct reply all[] = {
	{"/apis/pmem-csi.intel.com/v1alpha1/pmemnodes?labelSelector=pmem-csi.intel.com%2Fdriver%3Dpmem&",
		"200", LIST("{\"metadata\":{\"name\":\"n1.pmem\"},\"spec\":{\"node\":\"n1\"}}")},
	{"/apis/pmem-csi.intel.com/v1alpha1/pmemvolumes?limit=", "200",
		LIST("{\"metadata\":{\"name\":\"v\"},\"spec\":{\"driver\":\"pmem\"}},"
		     "{\"metadata\":{\"name\":\"w\"},\"spec\":{\"driver\":\"other\"}}")},
	{"/api/v1/persistentvolumes?limit=", "200",
		LIST("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"csi\":{\"driver\":\"pmem\"}}}," NAMED("q"))},
	{"/api/v1/persistentvolumeclaims?limit=", "200", LIST(NAMED("c"))},
	{"/apis/storage.k8s.io/v1/storageclasses?limit=", "200", LIST(NAMED("fast"))},
	{"/api/v1/nodes?labelSelector=pmem%2Fnode&", "200",
		LIST("{\"metadata\":{\"name\":\"m1\",\"labels\":{\"pmem/node\":\"n1\"}}},"
		     "{\"metadata\":{\"name\":\"m2\",\"labels\":{\"pmem/node\":\"n2\"}}},"
		     "{\"metadata\":{\"name\":\"m3\",\"labels\":{\"pmem/node\":\"n3\"}}}")},
	{"/api/v1/nodes?labelSelector=storage%3Dpmem&", "200", LIST(NAMED("m1") "," NAMED("m4"))},
	{"/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities?labelSelector=csi.storage.k8s.io%2F"
	 "drivername%3Dpmem&",
		"200", LIST(NAMED("k"))},
	{"/apis/storage.k8s.io/v1/csinodes/m2", "200", NAMED("m2")},
	{"/apis/storage.k8s.io/v1/csinodes/m3", "404", "{\"message\":\"csinodes \\\"m3\\\" not found\"}"},
};

static char storage[] = "storage=pmem";
static char *const node_labels[] = {storage, NULL};
static const struct cluster_scope scope = {"pmem", "ns", node_labels, 0};
static struct fake_api api;
static struct reply instead; /* of one in the table; .path NULL: none */

static void serve(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	ck_assert_str_eq(r->method, "GET");
	if (instead.path && str_starts(r->path, instead.path)) {
		fake_answer(r, instead.status, instead.body);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		if (str_starts(r->path, all[i].path)) {
			fake_answer(r, all[i].status, all[i].body);
			return;
		}
	}
	ck_abort_msg("not expected: %s", r->path);
}

START_TEST(all_lists_are_read_and_csi_nodes_of_nodes_in_doubt)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(cluster_lists_done) struct cluster_lists l = {0};

	fake_api_open(&api, serve, (struct kube_client_config){0});
	ASSERT_OK(cluster_read(api.client, &scope, &l, &err));
	ck_assert_uint_eq(l.pvs.n, 1);
	ck_assert_uint_eq(l.pmem_volumes.n, 1);
	ck_assert_uint_eq(l.claims.n, 1);
	ck_assert_uint_eq(l.classes.n, 1);
	ck_assert_uint_eq(l.nodes.n, 3);
	ck_assert_uint_eq(l.chosen.n, 2);
	ck_assert_uint_eq(l.pmem_nodes.n, 1);
	ck_assert_uint_eq(l.capacities.n, 1);
	ck_assert_uint_eq(l.csi_nodes.n, 1);
	ck_assert_uint_eq(api.n, ARRAY_SIZE(all));
	fake_api_close(&api);
}
END_TEST

static void fails(
	const char *path, const char *status, const char *body, enum err_code code, const char *text)
{
	CLEANUP(error_freep) struct error *err = NULL;
	struct cluster_lists l = {0};

	instead = (struct reply){path, status, body};
	fake_api_open(&api, serve, (struct kube_client_config){0});
	ASSERT_FAILS(cluster_read(api.client, &scope, &l, &err), code, text);
	ck_assert_uint_eq(l.pvs.n, 0);
	fake_api_close(&api);
}

START_TEST(a_definition_that_is_not_there_is_named)
{
	fails("/apis/pmem-csi.intel.com/v1alpha1/pmemnodes", "404", "404 page not found", ERR_PRECONDITION,
		"the API server does not serve pmemnodes of pmem-csi.intel.com/v1alpha1: apply the definitions with "
		"kubectl apply -k manifests/crds");
	fails("/apis/pmem-csi.intel.com/v1alpha1/pmemvolumes", "404", "404 page not found", ERR_PRECONDITION,
		"does not serve pmemvolumes");
}
END_TEST

START_TEST(a_permission_that_lacks_is_named)
{
	static const char forbidden[] = "{\"message\":\"forbidden\"}";

	fails("/api/v1/persistentvolumes?", "403", forbidden, ERR_PERMISSION,
		"the account needs the permission to list persistentvolumes");
	fails("/apis/storage.k8s.io/v1/namespaces/ns/csistoragecapacities", "403", forbidden, ERR_PERMISSION,
		"the account needs the permission to list csistoragecapacities");
	fails("/apis/storage.k8s.io/v1/csinodes/m2", "403", forbidden, ERR_PERMISSION,
		"the account needs the permission to get csinodes");
}
END_TEST

START_TEST(what_the_server_has_not_is_an_error_otherwise)
{
	fails("/api/v1/persistentvolumes?", "500", "{\"message\":\"no\"}", ERR_UNAVAILABLE,
		"list persistentvolumes: 500: no; check that the API server runs");
	fails("/api/v1/persistentvolumeclaims?", "410", "{\"message\":\"too old\"}", ERR_UNAVAILABLE,
		"try again");
	fails("/apis/storage.k8s.io/v1/csinodes/m2", "200", "[]", ERR_INVALID_ARGUMENT, "csinodes");
}
END_TEST

UNIT_MAIN("cluster_reader", all_lists_are_read_and_csi_nodes_of_nodes_in_doubt,
	a_definition_that_is_not_there_is_named, a_permission_that_lacks_is_named,
	what_the_server_has_not_is_an_error_otherwise)
