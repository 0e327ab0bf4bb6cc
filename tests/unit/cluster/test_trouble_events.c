/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/kube/objects.h"
#include "cluster/trouble_events.h"
#include "unit/cluster/fake_kube.h"
#include "unit/cluster/kube_json.h"
#include "unit/cluster/reports.h"
#include "unit/unit.h"
#include "volume/id.h"

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *claims;
static struct trouble_events *events;
static uint64_t now_ns;
static unsigned n_told;
static char told[4096]; /* "node n1 Reason: message" or "claim c Reason: message", a line each */

static void tell(const char *kind, const char *name, const char *reason, const char *message)
{
	size_t n = strlen(told);

	n_told++;
	snprintf(told + n, sizeof(told) - n, "%s %s %s: %s\n", kind, name, reason, message);
}

static void tell_node(void *user, const char *node_id, const char *reason, const char *message, uint64_t now)
{
	(void)user;
	(void)now;
	tell("node", node_id, reason, message);
}

static void tell_claim(
	void *user, const struct kube_meta *claim, const char *reason, const char *message, uint64_t now)
{
	(void)user;
	(void)now;
	tell("claim", claim->name, reason, message);
}

static void put_claim(const char *name, const char *volume)
{
	CLEANUP(free_charp) char *json = kube_json_claim(name, "fast", NULL, volume);

	fake_informer_put(claims, json);
}

static void set_up(void)
{
	static const struct informer_events none = {0};

	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	claims = informer_new(client, &kube_kind_claims, &none, NULL);
	fake_informer_sync(claims);
	const struct trouble_events_config config = {
		.nodes = nodes, .claims = claims, .tell_node = tell_node, .tell_claim = tell_claim};
	events = trouble_events_new(&config);
	now_ns = 1000 * NS_PER_S;
}

static void tear_down(void)
{
	trouble_events_free(events);
	informer_free(claims);
	node_table_free(nodes);
	kube_client_free(client);
}

/* Return: how much was told meanwhile. */
static unsigned pass(unsigned seconds)
{
	unsigned before = n_told;

	for (unsigned s = 0; s < seconds; s += 5) {
		now_ns += 5 * NS_PER_S;
		trouble_events_tick(events, now_ns);
	}
	return n_told - before;
}

static bool was_told(const char *line)
{
	return strstr(told, line) != NULL;
}

START_TEST(nothing_is_told_of_nodes_that_are_well)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "one", "pvc-1");
	report_add_volume(r, "two", "pvc-2")->phase = NODE_VOLUME_ERASING;
	node_table_put(nodes, r, now_ns);
	put_claim("c", "pvc-1");
	ck_assert_uint_eq(pass(3600), 0);
}
END_TEST

START_TEST(missing_devices_are_told_on_node_and_claim)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = NODE_VOLUME_MISSING;
	report_add_volume(r, "id-2", "pvc-2")->phase = NODE_VOLUME_MISSING;
	report_add_volume(r, "id-3", "pvc-3");
	node_table_put(nodes, r, now_ns);
	put_claim("lost", "pvc-1");
	put_claim("well", "pvc-3");
	put_claim("unbound", NULL);
	ck_assert_uint_eq(pass(60), 2);
	ck_assert(was_told("node n1 VolumeDevicesMissing: the devices of 2 volumes are not there, among them "
			   "that of id-1: "));
	ck_assert(was_told(
		"claim lost VolumeDeviceMissing: node n1 does not find the device of volume id-1: "));
}
END_TEST

START_TEST(a_damaged_state_file_is_told_on_the_claim_whose_volume_has_that_id)
{
	char id[VOLUME_ID_MAX + 1];
	struct node_report *r = report_new("n1");

	volume_id_mint("pvc-1", "n1", id);
	report_add_volume(r, id, "")->phase = NODE_VOLUME_UNKNOWN;
	node_table_put(nodes, r, now_ns);
	put_claim("damaged", "pvc-1");
	put_claim("other", "pvc-2");
	ck_assert_uint_eq(pass(60), 2);
	ck_assert(was_told("node n1 VolumeStateDamaged: 1 state files cannot be read"));
	ck_assert(was_told("claim damaged VolumeStateDamaged: node n1 cannot read the state file"));
}
END_TEST

START_TEST(pools_that_lack_a_device_are_told_on_the_node)
{
	struct node_report *r = report_new("n1");

	r->regions[0].incomplete = true;
	node_table_put(nodes, r, now_ns);
	ck_assert_uint_eq(pass(60), 1);
	ck_assert(was_told("node n1 PoolIncomplete: 1 pools lack a device"));
}
END_TEST

/* As a restart of the driver looks like, or a listing that overlaps a removal. */
START_TEST(what_lasts_for_moments_is_not_told)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = NODE_VOLUME_MISSING;
	node_table_put(nodes, r, now_ns);
	ck_assert_uint_eq(pass(5), 0);
	r = report_new("n1");
	report_add_volume(r, "id-1", "pvc-1");
	node_table_put(nodes, r, now_ns);
	ck_assert_uint_eq(pass(60), 0);
}
END_TEST

START_TEST(it_is_told_again_after_half_an_hour_and_not_of_nodes_that_are_gone)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = NODE_VOLUME_MISSING;
	node_table_put(nodes, r, now_ns);
	ck_assert_uint_eq(pass(1700), 1);
	ck_assert_uint_eq(pass(200), 1);
	node_table_end(nodes, "n1");
	ck_assert_uint_eq(pass(3600), 0);
}
END_TEST

/* A node whose memory is gone altogether is one matter, not thousands. */
START_TEST(a_crowd_of_volumes_is_told_of_with_a_limit)
{
	struct node_report *r = report_new("n1");

	for (unsigned i = 0; i < 1000; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("pvc-%u", i);
		CLEANUP(free_charp) char *claim = x_asprintf("claim-%u", i);
		report_add_volume(r, name, name)->phase = NODE_VOLUME_MISSING;
		put_claim(claim, name);
	}
	node_table_put(nodes, r, now_ns);
	unsigned n = pass(60);
	ck_assert_uint_gt(n, 1);
	ck_assert_uint_le(n, 65);
	ck_assert(was_told("the devices of 1000 volumes are not there"));
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {nothing_is_told_of_nodes_that_are_well,
		missing_devices_are_told_on_node_and_claim,
		a_damaged_state_file_is_told_on_the_claim_whose_volume_has_that_id,
		pools_that_lack_a_device_are_told_on_the_node, what_lasts_for_moments_is_not_told,
		it_is_told_again_after_half_an_hour_and_not_of_nodes_that_are_gone,
		a_crowd_of_volumes_is_told_of_with_a_limit};
	Suite *suite = suite_create("trouble events");
	TCase *tcase = tcase_create("trouble events");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
