/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a Lease may be taken, by times that the test chooses. */
#include "kube/lease_record.h"

#include "base/clock.h"
#include "unit/unit.h"

#define LEASE(version, holder, more)                                                                         \
	"{\"kind\":\"Lease\",\"metadata\":{\"name\":\"l\",\"labels\":{\"a\":\"b\"},\"resourceVersion\":"     \
	"\"" version "\"},\"spec\":{\"holderIdentity\":\"" holder "\"" more "}}"
#define FIFTEEN                                                                                              \
	",\"leaseDurationSeconds\":15,\"leaseTransitions\":4,\"acquireTime\":\"2020-01-01T00:00:00."         \
	"000000Z\""

static struct lease_record l;
static struct buf out;

static void reads(const char *json, uint64_t now_s)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (!l.metadata.max)
		l = LEASE_RECORD;
	ASSERT_OK(lease_record_read(&l, span_of(json), now_s * NS_PER_S, &err));
}

static bool may_take(const char *identity, uint64_t now_s)
{
	return lease_record_may_take(&l, identity, now_s * NS_PER_S);
}

START_TEST(a_holder_is_gone_when_its_record_stood_still_for_its_duration)
{
	reads(LEASE("1", "other", FIFTEEN), 100);
	ck_assert(!may_take("me", 114));
	ck_assert(may_take("me", 115));
	reads(LEASE("1", "other", FIFTEEN), 114);
	ck_assert(may_take("me", 115));
	lease_record_done(&l);
}
END_TEST

START_TEST(a_change_begins_the_time_anew)
{
	reads(LEASE("1", "other", FIFTEEN), 100);
	reads(LEASE("2", "other", FIFTEEN), 114);
	ck_assert(!may_take("me", 128));
	ck_assert(may_take("me", 129));
	lease_record_done(&l);
}
END_TEST

START_TEST(what_is_given_back_or_our_own_may_be_taken_at_once)
{
	reads(LEASE("1", "", FIFTEEN), 100);
	ck_assert(may_take("me", 100));
	reads(LEASE("2", "me", FIFTEEN), 100);
	ck_assert(may_take("me", 100));
	reads("{\"metadata\":{\"resourceVersion\":\"3\"}}", 100);
	ck_assert(may_take("me", 100));
	lease_record_done(&l);
}
END_TEST

static void writes(bool is_new, const char *identity, const char *text)
{
	out = BUF_INIT(4096);
	lease_record_write(is_new ? NULL : &l, "ns", "l", identity, 15, "2026-02-03T04:05:06.000007Z", &out);
	ck_assert_msg(strstr(buf_str(&out), text) != NULL, "%s lacks %s", buf_str(&out), text);
	buf_done(&out);
}

START_TEST(a_new_lease_has_no_transitions)
{
	writes(true, "me",
		"\"metadata\":{\"namespace\":\"ns\",\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"me\","
		"\"leaseDurationSeconds\":15,\"acquireTime\":\"2026-02-03T04:05:06.000007Z\","
		"\"renewTime\":\"2026-02-03T04:05:06.000007Z\",\"leaseTransitions\":0}}");
}
END_TEST

START_TEST(metadata_goes_back_as_it_was_read)
{
	reads(LEASE("1", "other", FIFTEEN), 1);
	writes(false, "me",
		"\"metadata\":{\"name\":\"l\",\"labels\":{\"a\":\"b\"},\"resourceVersion\":\"1\"}");
	lease_record_done(&l);
}
END_TEST

START_TEST(taking_counts_and_renewing_does_not)
{
	reads(LEASE("1", "other", FIFTEEN), 1);
	writes(false, "me", "\"acquireTime\":\"2026-02-03T04:05:06.000007Z\"");
	writes(false, "me", "\"leaseTransitions\":5");
	writes(false, "other", "\"acquireTime\":\"2020-01-01T00:00:00.000000Z\"");
	writes(false, "other", "\"leaseTransitions\":4");
	lease_record_done(&l);
}
END_TEST

START_TEST(giving_back_leaves_nobody_and_one_second)
{
	reads(LEASE("1", "me", FIFTEEN), 1);
	writes(false, "", "\"holderIdentity\":\"\",\"leaseDurationSeconds\":1,");
	writes(false, "", "\"leaseTransitions\":4");
	lease_record_done(&l);
}
END_TEST

START_TEST(malformed_leases_change_nothing)
{
	static const char *const texts[] = {"", "[]", "{}", "{\"metadata\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"\"}}", "{\"metadata\":{\"resourceVersion\":\"9\"}",
		/* it would read as a lease without a holder */
		LEASE("9", "other\\u0000", FIFTEEN)};

	reads(LEASE("1", "other", FIFTEEN), 1);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(error_freep) struct error *err = NULL;

		ck_assert_int_eq(lease_record_read(&l, span_of(texts[i]), 1, &err), -1);
		ck_assert_int_eq(err->code, ERR_INVALID_ARGUMENT);
	}
	ck_assert_str_eq(l.version, "1");
	lease_record_done(&l);
}
END_TEST

UNIT_MAIN("kube/lease_record", a_holder_is_gone_when_its_record_stood_still_for_its_duration,
	a_change_begins_the_time_anew, what_is_given_back_or_our_own_may_be_taken_at_once,
	a_new_lease_has_no_transitions, metadata_goes_back_as_it_was_read,
	taking_counts_and_renewing_does_not, giving_back_leaves_nobody_and_one_second,
	malformed_leases_change_nothing)
