/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"
#include "duties/trouble_events.h"
#include "kube/objects/objects.h"
#include "unit/kube/fake_kube.h"
#include "unit/kube/kube_json.h"
#include "unit/nodes/reports.h"
#include "unit/unit.h"
#include "volume/id.h"

static struct kube_client *client;
static struct node_table *nodes;
static struct informer *classes;
static struct informer *claims;
static struct trouble_events *events;
static uint64_t now_ns;
static unsigned n_told;
static unsigned n_hashed;
static char reported[1 << 15]; /* "node n1 Reason: message" or "claim c Reason: message", a line each */

void __real_sha224_hex(const void *p, size_t n, char out[static SHA224_HEX_LEN + 1]);
void __wrap_sha224_hex(const void *p, size_t n, char out[static SHA224_HEX_LEN + 1]);

void __wrap_sha224_hex(const void *p, size_t n, char out[static SHA224_HEX_LEN + 1])
{
	n_hashed++;
	__real_sha224_hex(p, n, out);
}

static void tell(const char *kind, const char *name, const char *reason, const char *message)
{
	size_t n = strlen(reported);

	n_told++;
	snprintf(reported + n, sizeof(reported) - n, "%s %s %s: %s\n", kind, name, reason, message);
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

static void put_class(const char *name, const char *provisioner)
{
	CLEANUP(free_charp) char *json = kube_json_class(name, provisioner, "{}");

	fake_informer_put(classes, json);
}

static void put_claim_of(const char *class, const char *name, const char *volume)
{
	CLEANUP(free_charp) char *json = kube_json_claim(name, class, NULL, volume);

	fake_informer_put(claims, json);
}

static void put_claim(const char *name, const char *volume)
{
	put_claim_of("fast", name, volume);
}

/* @n volumes in @phase on a new node, called after it, each with a claim. @with_names: as in readable files
 */
static void put_crowd(const char *node_id, unsigned n, enum volume_phase phase, bool with_names)
{
	struct node_report *r = report_new(node_id);

	for (unsigned i = 0; i < n; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("pvc-%s-%u", node_id, i);
		CLEANUP(free_charp) char *claim = x_asprintf("claim-%s-%u", node_id, i);
		report_add_volume(r, name, with_names ? name : "")->phase = phase;
		put_claim(claim, name);
	}
	node_table_put(nodes, r, now_ns);
}

static void set_up(void)
{
	static const struct informer_events none = {0};

	client = fake_kube_new(/* loop= */ NULL);
	nodes = node_table_new();
	classes = informer_new(client, &kube_kind_classes, &none, NULL);
	put_class("fast", "pmem");
	put_class("other", "another.example");
	fake_informer_sync(classes);
	claims = informer_new(client, &kube_kind_claims, &none, NULL);
	fake_informer_sync(claims);
	const struct trouble_events_config config = {.driver_name = "pmem",
		.nodes = nodes,
		.classes = classes,
		.claims = claims,
		.tell_node = tell_node,
		.tell_claim = tell_claim};
	events = trouble_events_new(&config);
	now_ns = 1000 * NS_PER_S;
}

static void tear_down(void)
{
	trouble_events_free(events);
	informer_free(claims);
	informer_free(classes);
	node_table_free(nodes);
	kube_client_free(client);
}

/* Return: how much was reported meanwhile. */
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
	return strstr(reported, line) != NULL;
}

START_TEST(nothing_is_told_of_nodes_that_are_well)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "one", "pvc-1");
	report_add_volume(r, "two", "pvc-2")->phase = PHASE_ERASING;
	node_table_put(nodes, r, now_ns);
	put_claim("c", "pvc-1");
	ck_assert_uint_eq(pass(3600), 0);
}
END_TEST

START_TEST(missing_devices_are_told_on_node_and_claim)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = PHASE_MISSING;
	report_add_volume(r, "id-2", "pvc-2")->phase = PHASE_MISSING;
	report_add_volume(r, "id-3", "pvc-3");
	node_table_put(nodes, r, now_ns);
	put_claim("lost", "pvc-1");
	put_claim("well", "pvc-3");
	put_claim("unbound", NULL);
	ck_assert_uint_eq(pass(60), 2);
	ck_assert(was_told("node n1 VolumeDevicesMissing: the devices of 2 volumes are missing, among them "
			   "that of volume id-1 of claim ns/lost: "));
	ck_assert(was_told(
		"claim lost VolumeDeviceMissing: node n1 does not find the device of volume id-1: "));
}
END_TEST

START_TEST(what_is_wrong_with_volumes_is_reported_on_node_and_claim)
{
	struct node_report *r = report_new("n1");

	health_add(&report_add_volume(r, "id-1", "pvc-1")->health, HEALTH_DATA_LOSS, "MediaError",
		"at offset 7");
	health_add(&report_add_volume(r, "id-2", "pvc-2")->health, HEALTH_DEGRADED, "FileSystemFull", "full");
	report_add_volume(r, "id-3", "pvc-3");
	node_table_put(nodes, r, now_ns);
	put_claim("ill", "pvc-1");
	put_claim("well", "pvc-3");
	ck_assert_uint_eq(pass(60), 2);
	ck_assert(was_told("node n1 VolumesUnhealthy: something is wrong with 2 volumes, among them volume "
			   "id-1 of claim ns/ill: MediaError: at offset 7; "));
	ck_assert(was_told("claim ill VolumeUnhealthy: volume id-1 on node n1: MediaError: at offset 7\n"));
}
END_TEST

START_TEST(the_node_knows_the_claim_of_a_volume)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = PHASE_MISSING;
	r->volumes[0].claim = x_strdup("ns/deleted");
	node_table_put(nodes, r, now_ns);
	ck_assert_uint_eq(pass(60), 1);
	ck_assert(was_told("among them that of volume id-1 of claim ns/deleted: "));
}
END_TEST

START_TEST(the_claim_of_a_volume_may_be_unknown)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = PHASE_MISSING;
	report_add_volume(r, "id-2", "")->phase = PHASE_DAMAGED;
	node_table_put(nodes, r, now_ns);
	put_claim("well", "pvc-3");
	ck_assert_uint_eq(pass(60), 2);
	ck_assert(was_told("among them that of volume id-1: "));
	ck_assert(was_told("among them that of volume id-2; "));
}
END_TEST

static void put_damaged(const char *id)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, id, "")->phase = PHASE_DAMAGED;
	node_table_put(nodes, r, now_ns);
}

static void expect_damaged_claim(const char *id)
{
	CLEANUP(free_charp)
	char *of_node = x_asprintf("node n1 VolumeStateDamaged: 1 state files cannot be read, among them "
				   "that of volume %s of claim ns/damaged; ",
		id);

	put_claim("damaged", "pvc.1");
	put_claim("well", "pvc.2");
	ck_assert_uint_eq(pass(60), 2);
	ck_assert(was_told(of_node));
	ck_assert(was_told("claim damaged VolumeStateDamaged: node n1 cannot read the state file"));
}

START_TEST(a_damaged_state_file_is_told_on_the_claim_whose_volume_has_that_id)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint("pvc.1", "n1", id);
	put_damaged(id);
	expect_damaged_claim(id);
}
END_TEST

START_TEST(a_damaged_state_file_of_a_cache_volume_is_told_on_its_claim)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint("pvc.1", NULL, id);
	put_damaged(id);
	expect_damaged_claim(id);
}
END_TEST

START_TEST(a_damaged_state_file_of_the_go_driver_is_told_on_its_claim)
{
	char id[VOLUME_ID_MAX + 1];

	volume_id_mint_go("pvc.1", id);
	put_damaged(id);
	expect_damaged_claim(id);
}
END_TEST

START_TEST(a_phase_of_a_later_release_is_no_trouble)
{
	put_crowd("n1", 1, PHASE_LATER, true);
	ck_assert_uint_eq(pass(3600), 0);
}
END_TEST

START_TEST(claims_of_other_drivers_are_left_alone)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = PHASE_MISSING;
	node_table_put(nodes, r, now_ns);
	put_claim_of("other", "theirs", "pvc-1");
	ck_assert_uint_eq(pass(60), 1);
	/* its class was deleted */
	put_claim_of("gone", "ours", "pvc-1");
	ck_assert_uint_eq(pass(60), 1);
	ck_assert(was_told("claim ours VolumeDeviceMissing: "));
}
END_TEST

START_TEST(pools_that_lack_a_device_are_told_on_the_node)
{
	struct node_report *r = report_new("n1");

	r->pools[0].incomplete = true;
	node_table_put(nodes, r, now_ns);
	ck_assert_uint_eq(pass(60), 1);
	ck_assert(was_told("node n1 PoolIncomplete: 1 pools lack a device"));
}
END_TEST

/* As a restart of the driver looks like, or a listing that overlaps a removal. */
START_TEST(what_lasts_for_moments_is_not_told)
{
	struct node_report *r = report_new("n1");

	report_add_volume(r, "id-1", "pvc-1")->phase = PHASE_MISSING;
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

	report_add_volume(r, "id-1", "pvc-1")->phase = PHASE_MISSING;
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
	put_crowd("n1", 1000, PHASE_MISSING, true);
	ck_assert_uint_eq(pass(60), 1 + 8);
	ck_assert(was_told("the devices of 1000 volumes are missing"));
}
END_TEST

START_TEST(a_crowd_on_one_node_hides_no_other_node)
{
	put_crowd("n1", 1000, PHASE_MISSING, true);
	put_crowd("n2", 1, PHASE_MISSING, true);
	ck_assert_uint_eq(pass(60), 1 + 8 + 1 + 1);
	ck_assert(was_told("claim claim-n2-0 VolumeDeviceMissing: node n2 "));
}
END_TEST

static void add_ailing(struct node_report *r, const char *name, enum health_severity severity)
{
	CLEANUP(free_charp) char *id = x_asprintf("id-%s", name);

	health_add(&report_add_volume(r, id, name)->health, severity, "Reason", "%s", name);
	put_claim(name, name);
}

/* More than there is room for, of which the worst are the last ones. */
static void put_ailing(const char *node_id, enum health_severity worst)
{
	struct node_report *r = report_new(node_id);

	for (unsigned i = 0; i < 10; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("%s-%u", node_id, i);
		add_ailing(r, name, HEALTH_DEGRADED);
	}
	CLEANUP(free_charp) char *name = x_asprintf("%s-worst", node_id);
	add_ailing(r, name, worst);
	node_table_put(nodes, r, now_ns);
}

START_TEST(events_are_about_what_is_worst)
{
	put_ailing("n1", HEALTH_INACCESSIBLE);
	ck_assert_uint_eq(pass(60), 1 + 8);
	ck_assert(was_told("claim n1-worst VolumeUnhealthy: "));
	ck_assert(was_told("claim n1-6 VolumeUnhealthy: "));
	ck_assert(!was_told("claim n1-7 VolumeUnhealthy: "));
	ck_assert(was_told("node n1 VolumesUnhealthy: something is wrong with 11 volumes, among them volume "
			   "id-n1-worst of claim ns/n1-worst: Reason: n1-worst; "));
}
END_TEST

START_TEST(missing_and_damaged_volumes_are_as_bad_as_lost_data)
{
	struct node_report *r = report_new("n1");

	for (unsigned i = 0; i < 10; i++) {
		CLEANUP(free_charp) char *name = x_asprintf("n1-%u", i);
		add_ailing(r, name, HEALTH_INACCESSIBLE);
	}
	report_add_volume(r, "id-missing", "missing")->phase = PHASE_MISSING;
	report_add_volume(r, "id-damaged", "damaged")->phase = PHASE_DAMAGED;
	put_claim("missing", "missing");
	put_claim("damaged", "damaged");
	node_table_put(nodes, r, now_ns);
	ck_assert_uint_eq(pass(60), 3 + 8);
	ck_assert(was_told("claim missing VolumeDeviceMissing: "));
	ck_assert(was_told("claim damaged VolumeStateDamaged: "));
}
END_TEST

START_TEST(the_worst_of_all_nodes_is_told_of)
{
	for (unsigned i = 0; i < 20; i++) {
		CLEANUP(free_charp) char *node_id = x_asprintf("n%02u", i);
		put_ailing(node_id, i == 19 ? HEALTH_DATA_LOSS : HEALTH_DEGRADED);
	}
	pass(60);
	ck_assert(was_told("claim n19-worst VolumeUnhealthy: "));
}
END_TEST

START_TEST(crowds_on_many_nodes_are_told_of_with_a_limit)
{
	for (unsigned i = 0; i < 20; i++) {
		CLEANUP(free_charp) char *node_id = x_asprintf("n%u", i);
		put_crowd(node_id, 10, PHASE_MISSING, true);
	}
	ck_assert_uint_eq(pass(60), 20 + 64);
}
END_TEST

/* Claims are many, and the loop's thread serves everybody. */
START_TEST(names_are_hashed_once_a_tick_and_only_for_volumes_without_one)
{
	put_crowd("n1", 100, PHASE_MISSING, true);
	put_crowd("n2", 1, PHASE_LATER, false);
	n_hashed = 0;
	pass(5);
	ck_assert_uint_eq(n_hashed, 0);
	put_crowd("n3", 100, PHASE_DAMAGED, false);
	put_crowd("n4", 100, PHASE_DAMAGED, false);
	put_claim("unbound", NULL);
	put_claim_of("other", "theirs", "pvc-1");
	n_hashed = 0;
	pass(5);
	ck_assert_uint_eq(n_hashed, 301);
	/* the trouble is over */
	put_crowd("n3", 1, PHASE_READY, true);
	put_crowd("n4", 1, PHASE_READY, true);
	n_hashed = 0;
	pass(5);
	ck_assert_uint_eq(n_hashed, 0);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {nothing_is_told_of_nodes_that_are_well, events_are_about_what_is_worst,
		missing_and_damaged_volumes_are_as_bad_as_lost_data, the_worst_of_all_nodes_is_told_of,
		missing_devices_are_told_on_node_and_claim, the_node_knows_the_claim_of_a_volume,
		the_claim_of_a_volume_may_be_unknown,
		a_damaged_state_file_is_told_on_the_claim_whose_volume_has_that_id,
		a_damaged_state_file_of_a_cache_volume_is_told_on_its_claim,
		a_damaged_state_file_of_the_go_driver_is_told_on_its_claim,
		a_phase_of_a_later_release_is_no_trouble, claims_of_other_drivers_are_left_alone,
		pools_that_lack_a_device_are_told_on_the_node, what_lasts_for_moments_is_not_told,
		it_is_told_again_after_half_an_hour_and_not_of_nodes_that_are_gone,
		what_is_wrong_with_volumes_is_reported_on_node_and_claim,
		a_crowd_of_volumes_is_told_of_with_a_limit, a_crowd_on_one_node_hides_no_other_node,
		crowds_on_many_nodes_are_told_of_with_a_limit,
		names_are_hashed_once_a_tick_and_only_for_volumes_without_one};
	Suite *suite = suite_create("trouble events");
	TCase *tcase = tcase_create("trouble events");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++)
		tcase_add_test(tcase, tests[i]);
	return unit_runner_finish(srunner_create(suite));
}
