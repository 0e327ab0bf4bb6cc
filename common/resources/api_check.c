/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/api_check.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/json/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/fields.h"
#include "pacing/backoff.h"
#include "resources/pmem_node.h"

#define TIMEOUT_MS    10000
#define NAMES_MAX     256
#define N_DEFINITIONS ARRAY_SIZE(definitions)

/* The plural name of each resource. A definition is called after it and the group. */
static const char *const definitions[] = {"pmemnodes", "pmemvolumes"};

struct api_check {
	struct kube_client *client;
	struct kube_request *request;
	struct backoff backoff;
	struct error *failure; /* NULL: none yet */
	bool served;
};

struct api_resource {
	char *name;
};

struct api_resources {
	struct api_resource *list;
	size_t n;
	bool has[N_DEFINITIONS];
};

static bool take_resource(void *object, void *item)
{
	const struct api_resource *resource = item;
	struct api_resources *all = object;

	for (size_t i = 0; i < N_DEFINITIONS; i++)
		all->has[i] = all->has[i] || str_eq(resource->name, definitions[i]);
	return false;
}

static const struct kube_field resource_fields[] = {
	KUBE_FIELD("name", KUBE_TEXT, struct api_resource, name),
	KUBE_FIELDS_END,
};

static const struct kube_field list_fields[] = {
	{.name = "resources",
		.type = KUBE_ARRAY,
		.fields = resource_fields,
		.item_size = sizeof(struct api_resource),
		.takes = take_resource},
	KUBE_FIELDS_END,
};

/* An answer that cannot be read lists nothing. */
static struct api_resources read_list(struct span body)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(json_reader_freep) struct json_reader *r = json_reader_new(body);
	struct api_resources all = {0};

	return kube_fields_read(r, list_fields, &all, &err) == 0 ? all : (struct api_resources){0};
}

static bool is_complete(const struct api_resources *all)
{
	for (size_t i = 0; i < N_DEFINITIONS; i++)
		if (!all->has[i])
			return false;
	return true;
}

static int explain_missing(const struct api_resources *all, struct error **err)
{
	CLEANUP(buf_done) struct buf names = BUF_INIT(NAMES_MAX);

	for (size_t i = 0; i < N_DEFINITIONS; i++)
		if (!all->has[i])
			buf_addf(&names, "%s%s", names.len > 0 ? " and " : "", definitions[i]);
	return err_set(err, ERR_UNAVAILABLE,
		"the API server does not serve %s of %s: apply the definitions with kubectl apply -k "
		"manifests/crds",
		buf_str(&names), PMEM_API_VERSION);
}

static int explain(const struct error *failure, const struct api_resources *all, struct error **err)
{
	if (!failure || failure->code == ERR_NOT_FOUND)
		return explain_missing(all, err);
	return err_set(err, ERR_UNAVAILABLE, "cannot determine whether the API server serves %s: %s",
		PMEM_API_VERSION, failure->msg);
}

static void answered(void *user, unsigned status, struct span body, const struct error *error)
{
	CLEANUP(error_freep) struct error *why = NULL;
	struct api_resources all = {0};
	struct api_check *c = user;
	bool is_first = !c->failure;

	(void)status;
	c->request = NULL;
	if (!error)
		all = read_list(body);
	if (is_complete(&all)) {
		c->served = true;
		if (!is_first)
			log_info("the API server serves the custom resources",
				F_STR("version", PMEM_API_VERSION));
		return;
	}
	/* Clusters may forbid discovery. A controller that lacks a definition still reports it: each call
	 * that needs the resource fails. */
	if (error && error->code == ERR_PERMISSION) {
		log_warn(
			"this account may not ask the API server which resources it serves; assuming that all are "
			"served",
			F_STR("version", PMEM_API_VERSION), F_ERR(error));
		c->served = true;
		return;
	}
	(void)explain(error, &all, &why);
	if (is_first || !str_eq(c->failure->msg, why->msg))
		log_warn("not ready", F_ERR(why));
	error_free(c->failure);
	c->failure = TAKE_PTR(why);
	backoff_fail(&c->backoff, clock_ns());
}

static void ask(struct api_check *c)
{
	const struct kube_call call = {.verb = "get",
		.what = "resources of " PMEM_API_VERSION,
		.method = "GET",
		.path = "/apis/" PMEM_API_VERSION,
		.timeout_ms = TIMEOUT_MS};

	c->request = kube_client_call(c->client, &call, answered, c);
}

struct api_check *api_check_new(struct kube_client *client)
{
	struct api_check *c = x_calloc(1, sizeof(*c));

	c->client = client;
	backoff_init(&c->backoff, /* first_ms= */ 0);
	ask(c);
	return c;
}

void api_check_free(struct api_check *c)
{
	if (!c)
		return;
	kube_request_cancel(c->request);
	error_free(c->failure);
	free(c);
}

void api_check_tick(struct api_check *c, uint64_t now_ns)
{
	if (!c->served && !c->request && backoff_is_over(&c->backoff, now_ns))
		ask(c);
}

int api_check_require(const struct api_check *c, struct error **err)
{
	if (c->served)
		return 0;
	if (!c->failure)
		return err_set(err, ERR_UNAVAILABLE, "the API server has not been asked for %s yet",
			PMEM_API_VERSION);
	return err_set(err, c->failure->code, "%s", c->failure->msg);
}
