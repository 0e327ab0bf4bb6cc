/* SPDX-License-Identifier: Apache-2.0 */
/* Candidates against a server that keeps one Lease as etcd would. The rules by the clock:
 * test_lease_record.c. */
#include "kube/lease.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "fake_api.h"
#include "kube/lease_record.h"

#define EVENTS 300

struct candidate {
	struct lease *lease;
	bool leading;
	bool stopped;
	unsigned n_changes;
};

static struct fake_api api;
static char *spec; /* NULL: there is none */
static unsigned version;
static bool is_down;
static bool race; /* another writer writes before each update */
static struct candidate a;
static struct candidate b;

static void answer_lease(const struct fake_request *r, const char *status)
{
	CLEANUP(free_charp)
	char *text = x_asprintf(
		"{\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%u\"},\"spec\":%s}", version, spec);

	fake_answer(r, status, text);
}

static void store(const struct fake_request *r, const char *status)
{
	const char *at = strstr(r->body, "\"spec\":");

	ck_assert_ptr_nonnull(at);
	at += strlen("\"spec\":");
	free(spec);
	spec = x_strndup(at, strlen(at) - 1);
	version++;
	answer_lease(r, status);
}

static void serve(struct fake_api *f, const struct fake_request *r)
{
	CLEANUP(free_charp) char *now = NULL;

	(void)f;
	if (is_down || str_eq(r->path, "/events")) {
		fake_answer(r, is_down ? "500" : "201", "");
		return;
	}
	if (race && str_eq(r->method, "PUT"))
		version++;
	now = x_asprintf("\"resourceVersion\":\"%u\"", version);
	if (str_eq(r->method, "POST"))
		spec ? fake_answer(r, "409", "") : store(r, "201");
	else if (!spec)
		fake_answer(r, "404", "");
	else if (str_eq(r->method, "GET"))
		answer_lease(r, "200");
	else if (strstr(r->body, now))
		store(r, "200");
	else
		fake_answer(r, "409", "");
}

static void changed(void *user, bool leading)
{
	struct candidate *c = user;

	ck_assert(c->leading != leading);
	c->leading = leading;
	c->n_changes++;
	ck_assert(!(a.leading && b.leading));
}

/* @times: the rest is set here */
static void begin_with(struct candidate *c, const char *identity, const struct lease_config *times)
{
	struct lease_config config = *times;

	config.client = api.client;
	config.namespace = "ns";
	config.name = "l";
	config.identity = identity;
	config.changed = changed;
	config.user = c;
	*c = (struct candidate){.lease = lease_new(&config)};
}

static void begin(struct candidate *c, const char *identity)
{
	begin_with(
		c, identity, &(struct lease_config){.duration_ms = 2000, .renew_ms = 1000, .retry_ms = 20});
}

static bool is_past(void *user)
{
	const uint64_t *end_ns = user;

	return clock_ns() > *end_ns;
}

static void stopped(void *user)
{
	struct candidate *c = user;

	c->stopped = true;
}

static bool is_stopped(void *user)
{
	const struct candidate *c = user;

	return c->stopped;
}

static bool leads(void *user)
{
	const struct candidate *c = user;

	return c->leading && lease_is_leading(c->lease);
}

static bool leads_no_more(void *user)
{
	const struct candidate *c = user;

	return !c->leading;
}

static void open_server(void)
{
	fake_api_open(&api, serve, (struct kube_client_config){0});
}

static void finish(void)
{
	lease_free(a.lease);
	lease_free(b.lease);
	fake_api_close(&api);
	free(spec);
}

START_TEST(one_of_two_leads_and_goes_on)
{
	open_server();
	begin(&a, "a");
	begin(&b, "b");
	fake_until_asked(&api, 30);
	ck_assert(a.leading != b.leading);
	ck_assert_uint_eq(a.n_changes + b.n_changes, 1);
	ck_assert_ptr_nonnull(
		strstr(spec, a.leading ? "\"holderIdentity\":\"a\"" : "\"holderIdentity\":\"b\""));
	finish();
}
END_TEST

START_TEST(what_is_given_back_is_taken_at_once)
{
	open_server();
	begin(&a, "a");
	fake_until(&api, leads, &a);
	begin(&b, "b");
	fake_until_asked(&api, 6);
	lease_stop(a.lease, stopped, &a);
	ck_assert(!a.leading);
	ck_assert(!a.stopped);
	fake_until(&api, is_stopped, &a);
	ck_assert_ptr_nonnull(strstr(spec, "\"leaseDurationSeconds\":"));
	fake_until(&api, leads, &b);
	ck_assert_ptr_nonnull(strstr(spec, "\"leaseTransitions\":1"));
	finish();
}
END_TEST

START_TEST(who_cannot_renew_stops_to_lead_and_leads_again_later)
{
	open_server();
	begin(&a, "a");
	fake_until(&api, leads, &a);
	is_down = true;
	fake_until(&api, leads_no_more, &a);
	ck_assert(!lease_is_leading(a.lease));
	is_down = false;
	fake_until(&api, leads, &a);
	finish();
}
END_TEST

START_TEST(a_holder_that_vanished_is_followed)
{
	open_server();
	begin(&a, "a");
	fake_until(&api, leads, &a);
	lease_free(TAKE_PTR(a.lease));
	a.leading = false;
	begin(&b, "b");
	fake_until(&api, leads, &b);
	finish();
}
END_TEST

START_TEST(a_race_that_is_lost_is_run_again)
{
	open_server();
	spec = x_strdup("{\"holderIdentity\":\"\"}");
	race = true;
	begin(&a, "a");
	fake_until_asked(&api, 6);
	ck_assert(!a.leading);
	race = false;
	fake_until(&api, leads, &a);
	finish();
}
END_TEST

START_TEST(who_finds_another_holder_stops_to_lead)
{
	open_server();
	begin(&a, "a");
	fake_until(&api, leads, &a);
	free(spec);
	spec = x_strdup("{\"holderIdentity\":\"thief\",\"leaseDurationSeconds\":3600}");
	version++;
	fake_until(&api, leads_no_more, &a);
	ck_assert(!lease_is_leading(a.lease));
	ck_assert_ptr_nonnull(strstr(spec, "thief"));
	finish();
}
END_TEST

START_TEST(a_lease_that_was_removed_is_made_anew)
{
	open_server();
	begin(&a, "a");
	fake_until(&api, leads, &a);
	free(TAKE_PTR(spec));
	fake_until_asked(&api, api.n + 6);
	ck_assert(leads(&a));
	ck_assert_ptr_nonnull(spec);
	ck_assert_uint_eq(a.n_changes, 1);
	finish();
}
END_TEST

START_TEST(stopping_ends_while_the_server_is_down_and_without_leading)
{
	open_server();
	begin(&a, "a");
	fake_until(&api, leads, &a);
	begin(&b, "b");
	is_down = true;
	lease_stop(a.lease, stopped, &a);
	lease_stop(b.lease, stopped, &b);
	fake_until(&api, is_stopped, &a);
	fake_until(&api, is_stopped, &b);
	finish();
}
END_TEST

static void ignore(void *user, unsigned status, struct span body, const struct error *error)
{
	(void)user;
	(void)status;
	(void)body;
	(void)error;
}

/* As many Events wait as the client permits, and one request per second is sent. */
START_TEST(a_renewal_waits_behind_no_other_requests)
{
	const struct kube_call call = {.verb = "create",
		.what = "events",
		.method = "POST",
		.path = "/events",
		.body = span_of("{}")};

	fake_api_open(&api, serve, (struct kube_client_config){.qps = 1, .burst = 1});
	for (unsigned i = 0; i < EVENTS; i++)
		kube_client_call(api.client, &call, ignore, NULL);
	begin(&a, "a");
	fake_until(&api, leads, &a);
	ck_assert_uint_lt(api.n, EVENTS / 10);
	finish();
}
END_TEST

/* The server goes on to hold that connection, and would serve another one. */
START_TEST(a_connection_that_hangs_does_not_cost_the_lease)
{
	uint64_t end_ns;

	open_server();
	begin_with(
		&a, "a", &(struct lease_config){.duration_ms = 15000, .renew_ms = 10000, .retry_ms = 2000});
	fake_until(&api, leads, &a);
	int fd = dup(h2_peer_conn(&api.peer, 1)->fd);
	h2_peer_hang_up(h2_peer_conn(&api.peer, 1));
	end_ns = clock_ns() + 11000 * NS_PER_MS;
	fake_until(&api, is_past, &end_ns);
	ck_assert(leads(&a));
	ck_assert_uint_eq(a.n_changes, 1);
	ck_assert_uint_eq(api.peer.n_conns, 2);
	close(fd);
	finish();
}
END_TEST

TMPDIR_MAIN("kube/lease", one_of_two_leads_and_goes_on, what_is_given_back_is_taken_at_once,
	who_cannot_renew_stops_to_lead_and_leads_again_later, a_holder_that_vanished_is_followed,
	a_renewal_waits_behind_no_other_requests, a_connection_that_hangs_does_not_cost_the_lease,
	a_race_that_is_lost_is_run_again, who_finds_another_holder_stops_to_lead,
	a_lease_that_was_removed_is_made_anew, stopping_ends_while_the_server_is_down_and_without_leading)
