/* SPDX-License-Identifier: Apache-2.0 */
/* Records of volumes over the real client: it is freed while a request for one runs. */
#include "base/mem.h"
#include "base/str.h"
#include "resources/volume_records.h"
#include "unit/kube/fake_api.h"
#include "unit/unit.h"

#define KEY "0123456789abcdef0123456789abcdef0123456789abcde"

struct outcome {
	unsigned n;
	enum err_code code;
};

static struct fake_api api;

/* Only the first step of a release is answered. */
static void serve_patch(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	if (str_eq(r->method, "PATCH"))
		fake_answer(r, "200",
			"{\"metadata\":{\"name\":\"" KEY
			".pmem\",\"uid\":\"u1\",\"resourceVersion\":\"8\"}}");
}

static void serve_nothing(struct fake_api *a, const struct fake_request *r)
{
	(void)a;
	(void)r;
}

static void on_end(void *user, struct pmem_volume *record, const struct error *error)
{
	struct outcome *o = user;

	ck_assert_ptr_null(record);
	ck_assert_ptr_nonnull(error);
	o->n++;
	o->code = error->code;
}

/* @what: RECORD_RELEASE + 1 stands for a read. @n: requests until the client ends */
static void end_during(
	unsigned what, void (*serve)(struct fake_api *a, const struct fake_request *r), unsigned n)
{
	struct pmem_volume *v = pmem_volume_new(KEY, "pmem");
	struct kube_records *objects;
	struct volume_records records;
	struct outcome outcome = {0};

	v->meta.uid = x_strdup("u1");
	v->meta.resource_version = x_strdup("7");
	fake_api_open(&api, serve, (struct kube_client_config){0});
	objects = kube_records_new(api.client, "pmem");
	records = kube_records_interface(objects);
	if (what > RECORD_RELEASE)
		records.read(records.self, KEY, on_end, &outcome);
	else
		records.write(records.self, (enum volume_record_write)what, v, on_end, &outcome);
	pmem_volume_free(v);
	fake_until_asked(&api, n);
	ck_assert_uint_eq(outcome.n, 0);
	kube_client_free(TAKE_PTR(api.client));
	ck_assert_uint_eq(outcome.n, 1);
	ck_assert_int_eq(outcome.code, ERR_CANCELLED);
	kube_records_free(objects);
	fake_api_close(&api);
	ck_assert_uint_eq(outcome.n, 1);
}

START_TEST(the_end_of_the_client_ends_each_request_once)
{
	for (unsigned what = RECORD_CREATE; what <= RECORD_RELEASE + 1; what++)
		end_during(what, serve_nothing, /* n= */ 1);
	end_during(RECORD_RELEASE, serve_patch, /* n= */ 2);
}
END_TEST

START_TEST(a_request_that_has_not_begun_ends_too)
{
	for (unsigned what = RECORD_CREATE; what <= RECORD_RELEASE + 1; what++)
		end_during(what, serve_nothing, /* n= */ 0);
}
END_TEST

UNIT_MAIN("resources/kube_records", the_end_of_the_client_ends_each_request_once,
	a_request_that_has_not_begun_ends_too)
