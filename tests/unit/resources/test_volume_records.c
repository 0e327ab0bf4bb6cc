/* SPDX-License-Identifier: Apache-2.0 */
/* Records of volumes as objects of an API server, each of whose answers the test gives, and in memory. */
#include "resources/volume_records.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/kube/fake_kube.h"
#include "unit/resources/memory_records.h"
#include "unit/unit.h"

#define DRIVER     "pmem"
#define KEY        "0123456789abcdef0123456789abcdef0123456789abcde"
#define OTHER      "fedcba9876543210fedcba9876543210fedcba987654321"
#define COLLECTION "/apis/pmem-csi.intel.com/v1alpha1/pmemvolumes"
#define OBJECT     COLLECTION "/" KEY "." DRIVER
#define NODE       "/apis/pmem-csi.intel.com/v1alpha1/pmemnodes/n1." DRIVER
#define MERGE      "application/merge-patch+json"
#define SHOWN                                                                                                \
	"{\"metadata\":{\"name\":\"" KEY "." DRIVER "\",\"uid\":\"u1\",\"resourceVersion\":\"8\"},"          \
	"\"spec\":{\"driver\":\"pmem\",\"nodes\":[\"n2\"]}}"

/* The same object with a deletionTimestamp. */
#define SHOWN_DELETING                                                                                       \
	"{\"metadata\":{\"name\":\"" KEY "." DRIVER "\",\"uid\":\"u1\",\"resourceVersion\":\"8\","           \
	"\"deletionTimestamp\":\"2026-01-02T03:04:05Z\"},\"spec\":{\"driver\":\"pmem\"}}"

/* How one request has ended. */
struct outcome {
	unsigned n;
	struct pmem_volume *record;
	enum err_code code; /* 0: success */
	char *text;
};

static struct kube_client *client;
static struct kube_records *objects;
static struct memory_records *memory;
static struct volume_records records;
static struct outcome outcome;
static struct pmem_volume *v;

static void set_up(void)
{
	client = fake_kube_new(/* loop= */ NULL);
	objects = kube_records_new(client, DRIVER);
	records = kube_records_interface(objects);
	v = pmem_volume_new(KEY, DRIVER);
	v->meta.uid = x_strdup("u1");
	v->meta.resource_version = x_strdup("7");
	strv_add(&v->meta.finalizers, PMEM_VOLUME_FINALIZER);
	pmem_volume_add_node(v, "n1");
}

static void forget_outcome(void)
{
	pmem_volume_free(outcome.record);
	free(outcome.text);
	outcome = (struct outcome){0};
}

static void tear_down(void)
{
	forget_outcome();
	pmem_volume_free(v);
	kube_client_free(client);
	kube_records_free(objects);
}

static void set_up_memory(void)
{
	set_up();
	memory = memory_records_new(DRIVER);
	records = memory_records_interface(memory);
}

static void tear_down_memory(void)
{
	tear_down();
	memory_records_free(memory);
}

static void on_end(void *user, struct pmem_volume *record, const struct error *error)
{
	struct outcome *o = user;

	o->n++;
	pmem_volume_free(o->record);
	free(o->text);
	o->record = record;
	o->code = error ? error->code : 0;
	o->text = error ? x_strdup(error->msg) : NULL;
}

static void begin_read(const char *key)
{
	forget_outcome();
	records.read(records.self, key, on_end, &outcome);
}

/* Begins to write a copy of the record, and frees the copy before the answer comes: write() must not borrow
 * it. */
static void begin_write(enum volume_record_write what)
{
	struct pmem_volume *copy = pmem_volume_dup(v);

	forget_outcome();
	records.write(records.self, what, copy, on_end, &outcome);
	pmem_volume_free(copy);
}

static void assert_request(const char *verb, const char *method, const char *path, const char *type)
{
	const struct fake_request *r = fake_kube_next(client);

	ck_assert_uint_eq(fake_kube_count(client), 1);
	ck_assert_str_eq(r->verb, verb);
	ck_assert_str_eq(r->method, method);
	ck_assert_str_eq(r->path, path);
	ck_assert_str_eq(r->content_type, type);
	ck_assert_uint_eq(outcome.n, 0);
}

static void assert_body(void (*write)(const struct pmem_volume *v, struct buf *out))
{
	CLEANUP(buf_done) struct buf out = BUF_INIT(65536);

	write(v, &out);
	ck_assert_str_eq(fake_kube_next(client)->body, buf_str(&out));
}

static void assert_ended(void)
{
	ck_assert_uint_eq(outcome.n, 1);
	ck_assert_uint_eq(fake_kube_count(client), 0);
}

/* The end of a request that succeeds with what is shown. */
static void assert_record(void)
{
	assert_ended();
	ck_assert_msg(outcome.code == 0, "%s", outcome.text);
	ck_assert_ptr_nonnull(outcome.record);
	ck_assert_str_eq(outcome.record->meta.resource_version, "8");
	ck_assert(pmem_volume_has_node(outcome.record, "n2"));
}

static void assert_no_record(void)
{
	assert_ended();
	ck_assert_msg(outcome.code == 0, "%s", outcome.text);
	ck_assert_ptr_null(outcome.record);
}

static void assert_failed(enum err_code code)
{
	assert_ended();
	ck_assert_ptr_null(outcome.record);
	ck_assert_msg(outcome.code == code, "code %s: %s", err_code_name(outcome.code), outcome.text);
}

START_TEST(a_record_is_read)
{
	begin_read(KEY);
	assert_request("get", "GET", OBJECT, "");
	ck_assert_str_eq(fake_kube_next(client)->body, "");
	fake_kube_answer(client, 200, SHOWN);
	assert_record();
}
END_TEST

START_TEST(a_record_that_is_absent_is_no_failure)
{
	begin_read(KEY);
	fake_kube_answer(client, 404, NULL);
	assert_no_record();
}
END_TEST

struct node_outcome {
	unsigned n;
	struct pmem_node *node;
};

static void on_node(void *user, struct pmem_node *node)
{
	struct node_outcome *o = user;

	o->n++;
	o->node = node;
}

START_TEST(what_is_shown_of_a_node_is_read)
{
	struct node_outcome o = {0};

	records.read_node(records.self, "n1", on_node, &o);
	assert_request("get", "GET", NODE, "");
	fake_kube_answer(client, 200,
		"{\"metadata\":{\"name\":\"n1.pmem\"},\"spec\":{\"node\":\"n1\",\"driver\":\"pmem\"},"
		"\"status\":{\"volumesRecordedUntil\":\"2026-01-02T03:04:05Z\"}}");
	ck_assert_uint_eq(o.n, 1);
	ck_assert_str_eq(o.node->recorded_until, "2026-01-02T03:04:05Z");
	pmem_node_free(o.node);
}
END_TEST

/* The API server has no PmemNode, refuses the request, or is not reached; the reply has no object, or one of
 * another node. */
START_TEST(what_cannot_be_read_of_a_node_is_not_known)
{
	static const struct {
		unsigned status;
		const char *body;
	} replies[] = {{404, NULL}, {403, NULL}, {0, NULL}, {200, "{}"}, {200, "no"},
		{200, "{\"metadata\":{\"name\":\"n1.pmem\"},\"spec\":{\"node\":\"n2\"}}"},
		{200, "{\"metadata\":{\"name\":\"n1.pmem\"}}"}};

	for (size_t i = 0; i < ARRAY_SIZE(replies); i++) {
		struct node_outcome o = {0};

		records.read_node(records.self, "n1", on_node, &o);
		fake_kube_answer(client, replies[i].status, replies[i].body);
		ck_assert_uint_eq(o.n, 1);
		ck_assert_msg(!o.node, "reply %zu", i);
	}
}
END_TEST

START_TEST(a_new_record_is_posted_to_the_collection)
{
	begin_write(RECORD_CREATE);
	assert_request("create", "POST", COLLECTION, "");
	assert_body(pmem_volume_write_new);
	fake_kube_answer(client, 201, SHOWN);
	assert_record();
}
END_TEST

START_TEST(the_spec_is_a_merge_patch)
{
	begin_write(RECORD_SPEC);
	assert_request("patch", "PATCH", OBJECT, MERGE);
	assert_body(pmem_volume_write_spec);
	fake_kube_answer(client, 200, SHOWN);
	assert_record();
}
END_TEST

START_TEST(the_status_is_a_merge_patch_of_the_subresource)
{
	begin_write(RECORD_STATUS);
	assert_request("patch", "PATCH", OBJECT "/status", MERGE);
	assert_body(pmem_volume_write_status);
	fake_kube_answer(client, 200, SHOWN);
	assert_record();
}
END_TEST

START_TEST(a_release_is_a_patch_and_a_deletion_of_that_very_object)
{
	begin_write(RECORD_RELEASE);
	assert_request("patch", "PATCH", OBJECT, MERGE);
	assert_body(pmem_volume_write_release);
	fake_kube_answer(client, 200, SHOWN);
	assert_request("delete", "DELETE", OBJECT, "");
	ck_assert_str_eq(fake_kube_next(client)->body,
		"{\"preconditions\":{\"uid\":\"u1\",\"resourceVersion\":\"8\"}}");
	fake_kube_answer(client, 200, "{}");
	assert_no_record();
}
END_TEST

START_TEST(an_object_that_is_being_deleted_goes_with_the_finalizer)
{
	begin_write(RECORD_RELEASE);
	assert_request("patch", "PATCH", OBJECT, MERGE);
	fake_kube_answer(client, 200, SHOWN_DELETING);
	assert_no_record();
}
END_TEST

START_TEST(what_has_gone_is_released)
{
	begin_write(RECORD_RELEASE);
	fake_kube_answer(client, 404, NULL);
	assert_no_record();
	begin_write(RECORD_RELEASE);
	fake_kube_answer(client, 200, SHOWN);
	fake_kube_answer(client, 404, NULL);
	assert_no_record();
}
END_TEST

/* Begins request number @i. Return: whether there is one. */
static bool begin(size_t i)
{
	static const enum volume_record_write writes[] = {
		RECORD_CREATE, RECORD_SPEC, RECORD_STATUS, RECORD_RELEASE, RECORD_RELEASE};

	if (i == 0)
		begin_read(KEY);
	else if (i <= ARRAY_SIZE(writes))
		begin_write(writes[i - 1]);
	else
		return false;
	if (i == ARRAY_SIZE(writes))
		fake_kube_answer(client, 200, SHOWN); /* of the patch; the deletion follows */
	return true;
}

START_TEST(conflicts_are_distinguished)
{
	begin_write(RECORD_CREATE);
	fake_kube_answer(client, 409, NULL);
	assert_failed(ERR_EXISTS);
	for (size_t i = 2; begin(i); i++) {
		fake_kube_answer(client, 409, NULL);
		assert_failed(ERR_ABORTED);
	}
}
END_TEST

START_TEST(a_write_to_what_has_gone_fails)
{
	begin_write(RECORD_SPEC);
	fake_kube_answer(client, 404, NULL);
	assert_failed(ERR_NOT_FOUND);
	begin_write(RECORD_STATUS);
	fake_kube_answer(client, 404, NULL);
	assert_failed(ERR_NOT_FOUND);
}
END_TEST

START_TEST(failures_are_passed_on)
{
	static const struct {
		unsigned status;
		enum err_code code;
	} cases[] = {{0, ERR_UNAVAILABLE}, {403, ERR_PERMISSION}, {422, ERR_INVALID_ARGUMENT},
		{500, ERR_UNAVAILABLE}};

	for (size_t n = 0; n < ARRAY_SIZE(cases); n++) {
		for (size_t i = 0; begin(i); i++) {
			fake_kube_answer(client, cases[n].status, NULL);
			assert_failed(cases[n].code);
		}
	}
}
END_TEST

/* RECORD_RELEASE takes two requests: the reply to the first one has the version that may be deleted. */
START_TEST(a_reply_that_is_no_object_is_a_failure)
{
	static const char *const replies[] = {"", "{}", "[]", "null", "{\"metadata\":{\"name\":\"x\"}"};

	for (size_t n = 0; n < ARRAY_SIZE(replies); n++) {
		for (size_t i = 0; i <= 4; i++) {
			ck_assert(begin(i));
			fake_kube_answer(client, 200, replies[n]);
			assert_failed(ERR_INVALID_ARGUMENT);
			ck_assert_ptr_nonnull(strstr(outcome.text, "pmemvolumes: "));
		}
		begin_write(RECORD_RELEASE);
		fake_kube_answer(client, 200, SHOWN);
		fake_kube_answer(client, 200, replies[n]);
		assert_no_record();
	}
}
END_TEST

START_TEST(the_end_of_the_client_ends_each_request_once)
{
	for (size_t i = 0; begin(i); i++) {
		ck_assert_uint_eq(fake_kube_count(client), 1);
		fake_kube_cancel(client);
		assert_failed(ERR_CANCELLED);
	}
}
END_TEST

START_TEST(requests_do_not_wait_for_each_other)
{
	struct outcome other = {0};

	begin_write(RECORD_RELEASE);
	records.read(records.self, OTHER, on_end, &other);
	ck_assert_uint_eq(fake_kube_count(client), 2);
	fake_kube_answer(client, 200, SHOWN);
	ck_assert_str_eq(fake_kube_next(client)->path, COLLECTION "/" OTHER "." DRIVER);
	fake_kube_answer(client, 404, NULL);
	ck_assert_uint_eq(other.n, 1);
	fake_kube_answer(client, 200, "{}");
	assert_no_record();
}
END_TEST

/* Makes the record and keeps it as it was made. */
static void make(void)
{
	begin_write(RECORD_CREATE);
	assert_ended();
	ck_assert_msg(outcome.code == 0, "%s", outcome.text);
	pmem_volume_free(v);
	v = TAKE_PTR(outcome.record);
	ck_assert_ptr_nonnull(v);
}

START_TEST(memory_keeps_what_was_written)
{
	begin_read(KEY);
	assert_no_record();
	make();
	begin_read(OTHER);
	assert_no_record();
	begin_read(KEY);
	assert_ended();
	ck_assert_str_eq(outcome.record->meta.name, KEY "." DRIVER);
	ck_assert_str_eq(outcome.record->meta.resource_version, v->meta.resource_version);
	ck_assert(pmem_volume_has_node(outcome.record, "n1"));
	pmem_volume_drop_node(outcome.record, "n1");
	begin_read(KEY);
	ck_assert(pmem_volume_has_node(outcome.record, "n1"));
}
END_TEST

START_TEST(each_write_to_memory_makes_another_version)
{
	static const enum volume_record_write writes[] = {RECORD_SPEC, RECORD_STATUS, RECORD_SPEC};

	make();
	for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
		CLEANUP(free_charp) char *before = x_strdup(v->meta.resource_version);

		v->attempts++;
		begin_write(writes[i]);
		assert_ended();
		ck_assert_ptr_nonnull(outcome.record);
		ck_assert_str_ne(outcome.record->meta.resource_version, before);
		ck_assert_uint_eq(outcome.record->attempts, i + 1);
		pmem_volume_free(v);
		v = TAKE_PTR(outcome.record);
		begin_read(KEY);
		ck_assert_uint_eq(outcome.record->attempts, i + 1);
		ck_assert_str_eq(outcome.record->meta.resource_version, v->meta.resource_version);
	}
}
END_TEST

START_TEST(memory_refuses_what_is_not_the_newest_version)
{
	static const enum volume_record_write writes[] = {RECORD_SPEC, RECORD_STATUS, RECORD_RELEASE};

	make();
	begin_write(RECORD_SPEC);
	ck_assert_int_eq(outcome.code, 0);
	pmem_volume_add_node(v, "n9");
	for (size_t i = 0; i < ARRAY_SIZE(writes); i++) {
		begin_write(writes[i]);
		assert_failed(ERR_ABORTED);
	}
	begin_write(RECORD_CREATE);
	assert_failed(ERR_EXISTS);
	begin_read(KEY);
	ck_assert(!pmem_volume_has_node(outcome.record, "n9"));
}
END_TEST

START_TEST(memory_refuses_writes_to_what_has_gone)
{
	begin_write(RECORD_SPEC);
	assert_failed(ERR_NOT_FOUND);
	begin_write(RECORD_STATUS);
	assert_failed(ERR_NOT_FOUND);
	begin_read(KEY);
	assert_no_record();
}
END_TEST

START_TEST(a_released_record_leaves_memory)
{
	make();
	begin_write(RECORD_RELEASE);
	assert_no_record();
	begin_read(KEY);
	assert_no_record();
	begin_write(RECORD_SPEC);
	assert_failed(ERR_NOT_FOUND);
	begin_write(RECORD_CREATE);
	ck_assert_int_eq(outcome.code, 0);
	ck_assert_str_ne(outcome.record->meta.resource_version, v->meta.resource_version);
}
END_TEST

/* RECORD_RELEASE of a record that does not exist is a success, as with the API server: nothing is left to
 * do. */
START_TEST(what_has_gone_from_memory_is_released)
{
	begin_write(RECORD_RELEASE);
	assert_no_record();
}
END_TEST

START_TEST(records_in_memory_do_not_disturb_each_other)
{
	CLEANUP(pmem_volume_freep) struct pmem_volume *other = pmem_volume_new(OTHER, DRIVER);
	struct outcome o = {0};

	records.write(records.self, RECORD_CREATE, other, on_end, &o);
	pmem_volume_free(o.record);
	make();
	begin_write(RECORD_RELEASE);
	begin_read(KEY);
	assert_no_record();
	begin_read(OTHER);
	assert_ended();
	ck_assert_str_eq(outcome.record->meta.name, OTHER "." DRIVER);
}
END_TEST

int main(void)
{
	const TTest *const kube[] = {a_record_is_read, a_record_that_is_absent_is_no_failure,
		what_is_shown_of_a_node_is_read, what_cannot_be_read_of_a_node_is_not_known,
		a_new_record_is_posted_to_the_collection, the_spec_is_a_merge_patch,
		the_status_is_a_merge_patch_of_the_subresource,
		a_release_is_a_patch_and_a_deletion_of_that_very_object,
		an_object_that_is_being_deleted_goes_with_the_finalizer, what_has_gone_is_released,
		conflicts_are_distinguished, a_write_to_what_has_gone_fails, failures_are_passed_on,
		a_reply_that_is_no_object_is_a_failure, the_end_of_the_client_ends_each_request_once,
		requests_do_not_wait_for_each_other};
	const TTest *const in_memory[] = {memory_keeps_what_was_written,
		each_write_to_memory_makes_another_version, memory_refuses_what_is_not_the_newest_version,
		memory_refuses_writes_to_what_has_gone, a_released_record_leaves_memory,
		what_has_gone_from_memory_is_released, records_in_memory_do_not_disturb_each_other};
	Suite *suite = suite_create("resources/volume_records");
	TCase *objects_case = tcase_create("objects");
	TCase *memory_case = tcase_create("memory");

	suite_add_tcase(suite, objects_case);
	tcase_add_checked_fixture(objects_case, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(kube); i++)
		tcase_add_test(objects_case, kube[i]);
	suite_add_tcase(suite, memory_case);
	tcase_add_checked_fixture(memory_case, set_up_memory, tear_down_memory);
	for (size_t i = 0; i < ARRAY_SIZE(in_memory); i++)
		tcase_add_test(memory_case, in_memory[i]);
	return unit_runner_finish(srunner_create(suite));
}
