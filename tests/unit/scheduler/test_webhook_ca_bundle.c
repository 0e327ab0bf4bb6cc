/* SPDX-License-Identifier: Apache-2.0 */
/* The caBundle of the webhook against a model of the API server, with authorities of scripts/make-certs. */
#include "scheduler/webhook_ca_bundle.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/tls/tls_bundle.h"
#include "os/file.h"
#include "unit/kube/fake_kube.h"
#include "unit/net/tls/certs.h"

#define PEM_BYTES (1u << 20)
#define OURS      "\"service\":{\"namespace\":\"" FAKE_KUBE_NAMESPACE "\",\"name\":\"svc\"}"
#define FILE_NAME "authorities.pem"
#define CERT_NAME "served.pem"

static const char *const own[] = {"own/ca.pem", NULL};
static const char *const other[] = {"other/ca.pem", NULL};
static const char *const both[] = {"own/ca.pem", "other/ca.pem", NULL};
static const char *const reversed[] = {"other/ca.pem", "own/ca.pem", NULL};

static struct loop *loop;
static struct kube_client *client;
static struct webhook_ca_bundle *trust;
static struct informer *objects;
static uint64_t now_ns;
static unsigned version;

static void read_into(struct buf *out, const char *const *names)
{
	CLEANUP(error_freep) struct error *err = NULL;

	for (; names && *names; names++) {
		CLEANUP(free_charp) char *path = certs_path(*names);

		ASSERT_OK(file_read(AT_FDCWD, path, out, &err));
	}
}

static void write_file(const char *name, struct span content)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(fd_closep) int dir = -1;

	ASSERT_OK(dir_open(certs_dir, /* create= */ false, 0, &dir, &err));
	ASSERT_OK(file_write_atomic(dir, name, content, 0600, &err));
}

static void put_file(struct span content)
{
	write_file(FILE_NAME, content);
}

/* The webhook has a certificate of the first one. */
static void put_authorities(const char *const *names)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);
	CLEANUP(buf_done) struct buf cert = BUF_INIT(PEM_BYTES);
	const char *leaf = str_starts(names[0], "own/") ? "own/pmem-registry.pem" : "other/pmem-registry.pem";

	read_into(&pem, names);
	put_file(buf_span(&pem));
	read_into(&cert, (const char *const[]){leaf, NULL});
	write_file(CERT_NAME, buf_span(&cert));
}

/* @bundle: the files whose certificates the caBundle has, or NULL for no caBundle. @annotations: JSON of
 * metadata, or ""
 */
static void put_object(const char *const *bundle, const char *annotations)
{
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);
	CLEANUP(buf_done) struct buf code = BUF_INIT(PEM_BYTES);
	CLEANUP(free_charp) char *json = NULL;

	read_into(&pem, bundle);
	base64_encode(buf_span(&pem), &code);
	json = x_asprintf(
		"{\"metadata\":{\"name\":\"hook\",\"resourceVersion\":\"%u\"%s},\"webhooks\":["
		"{\"name\":\"first\",\"clientConfig\":{" OURS "%s%s%s}},"
		"{\"name\":\"url\",\"clientConfig\":{\"url\":\"https://svc\"}},"
		"{\"name\":\"elsewhere\",\"clientConfig\":{\"service\":{\"namespace\":\"x\",\"name\":\"svc\"}"
		"}},"
		"{\"name\":\"another\",\"clientConfig\":{\"service\":{\"namespace\":\"" FAKE_KUBE_NAMESPACE
		"\",\"name\":\"x\"}}}]}",
		++version, annotations, bundle ? ",\"caBundle\":\"" : "", bundle ? buf_str(&code) : "",
		bundle ? "\"" : "");
	fake_informer_put(objects, json);
}

static struct webhook_ca_bundle *open_trust(const char *configuration, const char *service)
{
	CLEANUP(free_charp) char *path = certs_path(FILE_NAME);
	CLEANUP(free_charp) char *cert = certs_path(CERT_NAME);
	const struct webhook_ca_bundle_config config = {.client = client,
		.configuration = configuration,
		.service = service,
		.ca_file = path,
		.cert_file = cert};
	struct webhook_ca_bundle *t = webhook_ca_bundle_new(&config);

	objects = fake_kube_informer(client, "mutatingwebhookconfigurations");
	return t;
}

static void set_up(void)
{
	CLEANUP(error_freep) struct error *err = NULL;

	ASSERT_OK(loop_new(&loop, &err));
	client = fake_kube_new(loop);
	trust = open_trust("hook", "svc");
	fake_informer_sync(objects);
	now_ns = clock_ns();
	put_authorities(own);
}

static void tear_down(void)
{
	webhook_ca_bundle_free(trust);
	kube_client_free(client);
	loop_free(loop);
}

static void tick_after(uint64_t seconds)
{
	now_ns += seconds * NS_PER_S;
	webhook_ca_bundle_tick(trust, now_ns);
}

static char **certificates(const char *const *names)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);
	char **found = NULL;

	read_into(&pem, names);
	ASSERT_OK(tls_bundle_parse(buf_span(&pem), &found, &err));
	return found;
}

/* The oldest request gives the one webhook that is ours these authorities, in this order and nothing else. */
static void assert_written(const char *const *names)
{
	CLEANUP(strv_freep) char **wanted = certificates(names);
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);
	CLEANUP(buf_done) struct buf code = BUF_INIT(PEM_BYTES);
	CLEANUP(free_charp) char *body = NULL;
	const struct fake_request *r = fake_kube_next(client);

	ck_assert_ptr_nonnull(r);
	for (char **one = wanted; *one; one++)
		buf_adds(&pem, *one);
	base64_encode(buf_span(&pem), &code);
	body = x_asprintf("{\"metadata\":{\"resourceVersion\":\"%u\"},\"webhooks\":[{\"name\":\"first\","
			  "\"clientConfig\":{\"caBundle\":\"%s\"}}]}",
		version, buf_str(&code));
	ck_assert_str_eq(r->body, body);
	ck_assert_str_eq(r->method, "PATCH");
	ck_assert_str_eq(r->content_type, "application/strategic-merge-patch+json");
	ck_assert_str_eq(r->path, "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/hook");
}

static void assert_nothing_is_written(void)
{
	ck_assert_uint_eq(fake_kube_count(client), 0);
}

START_TEST(an_empty_bundle_is_filled_and_other_webhooks_are_not)
{
	set_up();
	ck_assert_str_eq(fake_informer_kind(objects)->field_selector, "metadata.name=hook");
	put_object(NULL, "");
	tick_after(0);
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	put_object(own, "");
	tick_after(5);
	assert_nothing_is_written();
	tear_down();
}
END_TEST

START_TEST(a_bundle_that_somebody_resets_is_put_back_at_once)
{
	set_up();
	tick_after(0);
	put_object(NULL, "");
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	put_object(own, "");
	tick_after(5);
	sleep(1);
	put_object(other, "");
	assert_written((const char *const[]){"own/ca.pem", "other/ca.pem", NULL});
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(who_resets_it_again_and_again_makes_few_requests)
{
	set_up();
	tick_after(0);
	put_object(NULL, "");
	fake_kube_answer(client, 200, "{}");
	for (unsigned i = 0; i < 100; i++)
		put_object(NULL, "");
	assert_nothing_is_written();
	tick_after(5);
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(an_authority_that_is_added_to_the_file_is_added_to_the_bundle)
{
	set_up();
	put_object(own, "");
	tick_after(0);
	assert_nothing_is_written();
	put_authorities(both);
	tick_after(5);
	assert_written(both);
	fake_kube_answer(client, 200, "{}");
	put_object(reversed, "");
	tick_after(5);
	assert_nothing_is_written();
	tear_down();
}
END_TEST

START_TEST(authorities_that_another_replica_has_stay_until_all_have_its_file)
{
	set_up();
	put_object(both, "");
	tick_after(0);
	tick_after(WEBHOOK_CA_BUNDLE_OTHERS_MS / 1000 - 1);
	assert_nothing_is_written();
	put_authorities(both);
	tick_after(5);
	put_authorities(other);
	tick_after(5);
	tick_after(WEBHOOK_CA_BUNDLE_OTHERS_MS / 1000 - 1);
	assert_nothing_is_written();
	tick_after(1);
	assert_written(other);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(an_authority_that_another_replica_adds_late_stays_as_long_as_the_first_one)
{
	static const char *const three[] = {"own/ca.pem", "other/ca.pem", "own/pmem-registry.pem", NULL};

	set_up();
	put_object(both, "");
	/* A change of the object is noted by the clock, so that what was before lies in the past. */
	now_ns -= (WEBHOOK_CA_BUNDLE_OTHERS_MS / 1000 - 10) * NS_PER_S;
	tick_after(0);
	put_object(three, "");
	now_ns = clock_ns();
	tick_after(WEBHOOK_CA_BUNDLE_OTHERS_MS / 1000 - 10);
	assert_nothing_is_written();
	tick_after(10);
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(an_authority_that_is_replaced_all_at_once_overlaps_with_the_old_one)
{
	set_up();
	put_object(own, "");
	tick_after(0);
	put_authorities(other);
	tick_after(5);
	assert_written(reversed);
	fake_kube_answer(client, 200, "{}");
	put_object(reversed, "");
	tick_after(5);
	assert_nothing_is_written();
	tick_after(WEBHOOK_CA_BUNDLE_OTHERS_MS / 1000);
	assert_written(other);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(a_bundle_that_cannot_be_read_is_replaced)
{
	set_up();
	static const char *const key[] = {"own/ca-key.pem", NULL};

	tick_after(0);
	put_object(key, "");
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

/* The file is no good any more: what was read from it before stays in force. */
static void file_is_refused(struct span content)
{
	tick_after(0);
	put_file(content);
	put_object(own, "");
	tick_after(5);
	assert_nothing_is_written();
	put_object(NULL, "");
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
}

START_TEST(a_file_that_is_empty_changes_nothing)
{
	set_up();
	file_is_refused((struct span){0});
	tear_down();
}
END_TEST

START_TEST(a_file_without_certificates_changes_nothing)
{
	set_up();
	file_is_refused(span_of("no such thing\n"));
	tear_down();
}
END_TEST

START_TEST(a_file_that_is_cut_off_changes_nothing)
{
	set_up();
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);

	read_into(&pem, reversed);
	file_is_refused((struct span){pem.data, pem.len - 100});
	tear_down();
}
END_TEST

START_TEST(a_file_that_is_too_big_changes_nothing)
{
	set_up();
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);

	while (pem.len <= 256u << 10)
		read_into(&pem, own);
	file_is_refused(buf_span(&pem));
	tear_down();
}
END_TEST

START_TEST(a_file_with_a_private_key_changes_nothing)
{
	set_up();
	static const char *const leak[] = {"other/ca.pem", "other/ca-key.pem", NULL};
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);

	read_into(&pem, leak);
	file_is_refused(buf_span(&pem));
	tear_down();
}
END_TEST

START_TEST(a_file_without_the_authority_of_the_certificate_changes_nothing)
{
	set_up();
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);

	read_into(&pem, other);
	file_is_refused(buf_span(&pem));
	tear_down();
}
END_TEST

START_TEST(only_certificates_of_the_file_are_copied)
{
	set_up();
	CLEANUP(buf_done) struct buf pem = BUF_INIT(PEM_BYTES);

	buf_adds(&pem, "password: secret\n");
	read_into(&pem, own);
	buf_adds(&pem, "-----BEGIN X509 CRL-----\nc2VjcmV0\n-----END X509 CRL-----\n");
	read_into(&pem, own);
	put_file(buf_span(&pem));
	tick_after(0);
	put_object(NULL, "");
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(without_a_file_nothing_is_ever_written)
{
	set_up();
	CLEANUP(free_charp) char *path = certs_path(FILE_NAME);

	ck_assert_int_eq(unlink(path), 0);
	put_object(NULL, "");
	tick_after(5);
	put_object(other, "");
	tick_after(WEBHOOK_CA_BUNDLE_OTHERS_MS / 1000);
	assert_nothing_is_written();
	put_authorities(own);
	tick_after(5);
	assert_written(both);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(what_cert_manager_injects_is_left_to_it)
{
	set_up();
	tick_after(0);
	put_object(NULL, ",\"annotations\":{\"cert-manager.io/inject-ca-from\":\"a/b\"}");
	tick_after(5);
	put_object(other, ",\"annotations\":{\"cert-manager.io/inject-ca-from-secret\":\"a/b\"}");
	tick_after(5);
	put_object(other, ",\"annotations\":{\"cert-manager.io/inject-apiserver-ca\":\"true\"}");
	tick_after(5);
	put_object(other, ",\"annotations\":{\"service.beta.openshift.io/inject-cabundle\":\"true\"}");
	tick_after(5);
	assert_nothing_is_written();
	ck_assert(!webhook_ca_bundle_is_complete(trust));
	put_object(own, ",\"annotations\":{\"cert-manager.io/inject-ca-from\":\"a/b\"}");
	ck_assert(webhook_ca_bundle_is_complete(trust));
	put_object(NULL, ",\"annotations\":{\"cert-manager.io/other\":\"a\"}");
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(nothing_is_written_to_another_object_or_for_another_service)
{
	set_up();
	webhook_ca_bundle_free(trust);
	trust = open_trust("other", "svc");
	put_object(NULL, "");
	fake_informer_sync(objects);
	tick_after(5);
	webhook_ca_bundle_free(trust);
	trust = open_trust("hook", "other");
	put_object(NULL, "");
	fake_informer_sync(objects);
	tick_after(5);
	assert_nothing_is_written();
	tear_down();
}
END_TEST

START_TEST(an_object_that_goes_and_comes_back_is_filled_again)
{
	set_up();
	tick_after(0);
	put_object(own, "");
	fake_informer_remove(objects, "hook");
	tick_after(5);
	assert_nothing_is_written();
	put_object(NULL, "");
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(two_replicas_that_write_at_once_write_the_same)
{
	set_up();
	struct informer *first = objects;
	struct webhook_ca_bundle *second = open_trust("hook", "svc");

	tick_after(0);
	webhook_ca_bundle_tick(second, now_ns);
	fake_informer_sync(objects);
	put_object(NULL, "");
	version--;
	objects = first;
	put_object(NULL, "");
	ck_assert_uint_eq(fake_kube_count(client), 2);
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	assert_written(own);
	fake_kube_answer(client, 409, NULL);
	put_object(own, "");
	tick_after(60);
	assert_nothing_is_written();
	webhook_ca_bundle_free(second);
	tear_down();
}
END_TEST

START_TEST(after_a_conflict_the_newer_object_is_looked_at)
{
	set_up();
	tick_after(0);
	put_object(NULL, "");
	fake_kube_answer(client, 409, NULL);
	put_object(NULL, "");
	tick_after(5);
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(a_refusal_is_tried_again_later_and_later)
{
	set_up();
	static const unsigned refusals[] = {403, 404, 422, 500, 0};

	tick_after(0);
	put_object(NULL, "");
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		assert_written(own);
		fake_kube_answer(client, refusals[i], NULL);
		put_object(NULL, "");
		assert_nothing_is_written();
		if (i == ARRAY_SIZE(refusals) - 1) {
			webhook_ca_bundle_tick(trust, clock_ns() + 3 * NS_PER_S);
			assert_nothing_is_written();
		}
		tick_after(60);
	}
	assert_written(own);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(one_request_runs_at_a_time)
{
	set_up();
	tick_after(0);
	put_object(NULL, "");
	put_object(other, "");
	tick_after(60);
	ck_assert_uint_eq(fake_kube_count(client), 1);
	fake_kube_answer(client, 200, "{}");
	tear_down();
}
END_TEST

START_TEST(it_ends_while_a_request_runs)
{
	set_up();
	tick_after(0);
	put_object(NULL, "");
	ck_assert_uint_eq(fake_kube_count(client), 1);
	webhook_ca_bundle_free(TAKE_PTR(trust));
	assert_nothing_is_written();
	tear_down();
}
END_TEST

CERTS_MAIN("sched webhook_ca_bundle", an_empty_bundle_is_filled_and_other_webhooks_are_not,
	a_bundle_that_somebody_resets_is_put_back_at_once, who_resets_it_again_and_again_makes_few_requests,
	an_authority_that_is_added_to_the_file_is_added_to_the_bundle,
	authorities_that_another_replica_has_stay_until_all_have_its_file,
	an_authority_that_another_replica_adds_late_stays_as_long_as_the_first_one,
	an_authority_that_is_replaced_all_at_once_overlaps_with_the_old_one,
	a_bundle_that_cannot_be_read_is_replaced, a_file_that_is_empty_changes_nothing,
	a_file_without_certificates_changes_nothing, a_file_that_is_cut_off_changes_nothing,
	a_file_that_is_too_big_changes_nothing, a_file_with_a_private_key_changes_nothing,
	a_file_without_the_authority_of_the_certificate_changes_nothing,
	only_certificates_of_the_file_are_copied, without_a_file_nothing_is_ever_written,
	what_cert_manager_injects_is_left_to_it, nothing_is_written_to_another_object_or_for_another_service,
	an_object_that_goes_and_comes_back_is_filled_again, two_replicas_that_write_at_once_write_the_same,
	after_a_conflict_the_newer_object_is_looked_at, a_refusal_is_tried_again_later_and_later,
	one_request_runs_at_a_time, it_ends_while_a_request_runs)
