/* SPDX-License-Identifier: Apache-2.0 */
#include "duties/reported_limit.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

static unsigned n_told;

static void tell_node(
	void *user, const char *node_id, const char *reason, const char *message, uint64_t now_ns)
{
	(void)user;
	(void)message;
	ck_assert_str_eq(node_id, "n1");
	ck_assert_str_eq(reason, "TooManyReportedVolumes");
	ck_assert_uint_eq(now_ns, 7);
	n_told++;
}

static struct pmem_volume *record(const char *node_id, bool reported)
{
	struct pmem_volume *v = x_calloc(1, sizeof(*v));

	v->origin = reported ? x_strdup(PMEM_VOLUME_REPORTED) : NULL;
	strv_add(&v->nodes, node_id);
	return v;
}

static struct volume_key key_of(unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "pvc-%u", i);
	return volume_key_of_name(name);
}

static void note(struct reported_limit *l, unsigned from, unsigned to, const struct pmem_volume *before,
	const struct pmem_volume *after)
{
	for (unsigned i = from; i < to; i++) {
		struct volume_key key = key_of(i);

		reported_limit_note(l, &key, before, after);
	}
}

START_TEST(the_limit_is_of_reported_records_of_one_node)
{
	const struct reported_limit_config config = {.tell_node = tell_node};
	struct reported_limit *l = reported_limit_new(&config);
	CLEANUP(pmem_volume_freep) struct pmem_volume *called = record("n1", false);
	CLEANUP(pmem_volume_freep) struct pmem_volume *reported = record("n1", true);

	note(l, 10000, 10000 + REPORTED_LIMIT_RECORDS, NULL, called);
	note(l, 0, REPORTED_LIMIT_RECORDS - 1, NULL, reported);
	ck_assert(reported_limit_allows(l, "n1", 7));
	note(l, REPORTED_LIMIT_RECORDS - 1, REPORTED_LIMIT_RECORDS, NULL, reported);
	ck_assert(!reported_limit_allows(l, "n1", 7));
	ck_assert(reported_limit_allows(l, "n2", 7));
	reported_limit_free(l);
}
END_TEST

START_TEST(it_is_told_once_and_again_after_an_eighth_has_gone)
{
	const struct reported_limit_config config = {.tell_node = tell_node};
	struct reported_limit *l = reported_limit_new(&config);
	CLEANUP(pmem_volume_freep) struct pmem_volume *v = record("n1", true);
	unsigned eighth = REPORTED_LIMIT_RECORDS / 8;

	n_told = 0;
	note(l, 0, REPORTED_LIMIT_RECORDS, NULL, v);
	for (int i = 0; i < 3; i++)
		ck_assert(!reported_limit_allows(l, "n1", 7));
	ck_assert_uint_eq(n_told, 1);
	note(l, 0, eighth - 1, v, NULL);
	ck_assert(reported_limit_allows(l, "n1", 7));
	note(l, 0, eighth - 1, NULL, v);
	ck_assert(!reported_limit_allows(l, "n1", 7));
	ck_assert_uint_eq(n_told, 1);
	note(l, 0, eighth, v, NULL);
	ck_assert(reported_limit_allows(l, "n1", 7));
	note(l, 0, eighth, NULL, v);
	ck_assert(!reported_limit_allows(l, "n1", 7));
	ck_assert_uint_eq(n_told, 2);
	reported_limit_free(l);
}
END_TEST

UNIT_MAIN("duties/reported_limit", the_limit_is_of_reported_records_of_one_node,
	it_is_told_once_and_again_after_an_eighth_has_gone)
