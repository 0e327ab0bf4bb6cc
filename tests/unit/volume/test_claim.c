/* SPDX-License-Identifier: Apache-2.0 */
/* The claim or pod of a volume: names that callers send are recorded if they are valid. */
#include "volume/claim.h"

#include <limits.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"

#define PVC_NAMESPACE "csi.storage.k8s.io/pvc/namespace"
#define PVC_NAME      "csi.storage.k8s.io/pvc/name"
#define PV_NAME       "csi.storage.k8s.io/pv/name"
#define POD_NAMESPACE "csi.storage.k8s.io/pod.namespace"
#define POD_NAME      "csi.storage.k8s.io/pod.name"

static struct volume_claim read_pair(const char *namespace, const char *name)
{
	CLEANUP(strmap_done) struct strmap said = {0};
	struct volume_claim c;

	strmap_set(&said, "eraseafter", "true");
	strmap_set(&said, PVC_NAMESPACE, namespace);
	strmap_set(&said, PVC_NAME, name);
	claim_read(&said, CLAIM_PVC, &c);
	return c;
}

START_TEST(what_the_provisioner_and_kubelet_say_is_read)
{
	CLEANUP(strmap_done) struct strmap said = {0};
	CLEANUP(claim_done) struct volume_claim c = {0};
	CLEANUP(claim_done) struct volume_claim pod = {0};
	CLEANUP(claim_done) struct volume_claim copy = {0};

	strmap_set(&said, PVC_NAMESPACE, "default");
	strmap_set(&said, PVC_NAME, "data-web-0.x");
	strmap_set(&said, PV_NAME, "pvc-1");
	strmap_set(&said, POD_NAMESPACE, "pods");
	strmap_set(&said, POD_NAME, "web-0");
	claim_read(&said, CLAIM_PVC, &c);
	claim_read(&said, CLAIM_POD, &pod);
	ck_assert_ptr_null(claim_pod(&c));
	ck_assert_ptr_null(claim_text(&pod));
	ck_assert_ptr_null(pod.pv);
	ck_assert(claim_add(&c, &pod));
	claim_copy(&c, &copy);
	claim_done(&c);
	CLEANUP(free_charp) char *claim = claim_text(&copy);
	CLEANUP(free_charp) char *pod_name = claim_pod(&copy);
	ck_assert_str_eq(claim, "default/data-web-0.x");
	ck_assert_str_eq(pod_name, "pods/web-0");
	ck_assert_str_eq(copy.pv, "pvc-1");
	ck_assert(claim_text_valid(claim));
}
END_TEST

START_TEST(what_is_no_name_is_left_out_with_its_other_half)
{
	static const char *const none[] = {"", "-a", "a-", "a/b", "a b", "a\nb", "a\"b", ".", "a..b", "a.",
		"\xff", "a\x1b[2J", "../../etc"};
	char long_name[NAME_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
		struct volume_claim c = read_pair("default", none[i]);

		ck_assert_msg(!c.name && !c.namespace, "%s", none[i]);
		claim_done(&c);
		c = read_pair(none[i], "data");
		ck_assert_msg(!c.name && !c.namespace, "%s", none[i]);
		claim_done(&c);
	}
	memset(long_name, 'a', sizeof(long_name));
	for (size_t n = 253; n <= 254; n++) {
		long_name[n] = '\0';
		struct volume_claim c = read_pair("default", long_name);

		ck_assert_int_eq(c.name != NULL, n == 253);
		claim_done(&c);
		long_name[n] = 'a';
	}
	for (size_t n = 63; n <= 64; n++) {
		long_name[n] = '\0';
		struct volume_claim c = read_pair(long_name, "data");

		ck_assert_int_eq(c.namespace != NULL, n == 63);
		claim_done(&c);
		long_name[n] = 'a';
	}
}
END_TEST

START_TEST(only_what_is_not_known_is_added)
{
	CLEANUP(claim_done) struct volume_claim c = read_pair("default", "data");
	CLEANUP(claim_done) struct volume_claim other = read_pair("other", "other");
	CLEANUP(claim_done) struct volume_claim empty = {0};

	ck_assert(!claim_add(&c, &other));
	ck_assert_str_eq(c.namespace, "default");
	ck_assert_str_eq(c.name, "data");
	ck_assert(!claim_add(&c, &empty));
	ck_assert(claim_add(&empty, &other));
	ck_assert(!claim_add(&empty, &other));
	ck_assert_str_eq(empty.namespace, "other");
	ck_assert_str_eq(empty.name, "other");
}
END_TEST

START_TEST(a_text_of_a_claim_has_two_names)
{
	ck_assert(claim_text_valid("default/data"));
	ck_assert(!claim_text_valid(""));
	ck_assert(!claim_text_valid("/"));
	ck_assert(!claim_text_valid("default"));
	ck_assert(!claim_text_valid("default/"));
	ck_assert(!claim_text_valid("/data"));
	ck_assert(!claim_text_valid("a/b/c"));
	ck_assert(!claim_text_valid("a/b\n"));
}
END_TEST

UNIT_MAIN("volume/claim", what_the_provisioner_and_kubelet_say_is_read,
	what_is_no_name_is_left_out_with_its_other_half, only_what_is_not_known_is_added,
	a_text_of_a_claim_has_two_names)
