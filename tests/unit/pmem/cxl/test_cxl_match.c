/* SPDX-License-Identifier: Apache-2.0 */
/* The match of recorded regions with the devices that are there, and the plan of new regions. */
#include "pmem/cxl/cxl_match.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/pmem/cxl/cxl_model.h"
#include "unit/unit.h"

static const struct cxl_layout recorded = MODEL_LAYOUT(UUID_A, SERIAL1, SERIAL2);

static struct cxl_device devices[4];
static struct cxl_root roots[2];
static struct cxl_set sets[2];
static struct cxl_topology t;

static void set_up(void)
{
	devices[0] = (struct cxl_device)MODEL_DEVICE("mem1", SERIAL1);
	devices[1] = (struct cxl_device)MODEL_DEVICE("mem0", SERIAL2);
	roots[0] = (struct cxl_root)MODEL_ROOT;
	sets[0] = (struct cxl_set){.name = "region0",
		.committed = true,
		.enabled = true,
		.layout = MODEL_LAYOUT(UUID_A, SERIAL1, SERIAL2)};
	t = (struct cxl_topology){
		.devices = devices, .n_devices = 2, .roots = roots, .n_roots = 1, .sets = sets, .n_sets = 0};
}

static void as_recorded(void)
{
	t.n_sets = 1;
}

static void other_uuid(void)
{
	t.n_sets = 1;
	memcpy(sets[0].layout.uuid, UUID_B, sizeof(UUID_B));
}

static void nothing(void)
{
}

static void half_made(void)
{
	t.n_sets = 1;
	sets[0].committed = sets[0].enabled = false;
	sets[0].layout.places[1].serial = 0;
}

static void half_made_by_another(void)
{
	half_made();
	memcpy(sets[0].layout.uuid, UUID_B, sizeof(UUID_B));
}

static void disabled(void)
{
	t.n_sets = 1;
	sets[0].enabled = false;
}

static void other_order(void)
{
	t.n_sets = 1;
	sets[0].layout = (struct cxl_layout)MODEL_LAYOUT(UUID_B, SERIAL2, SERIAL1);
}

static void other_granularity(void)
{
	t.n_sets = 1;
	sets[0].layout.granularity_bytes = 4096;
}

static void other_part(void)
{
	t.n_sets = 1;
	sets[0].layout.places[0].start_bytes = sets[0].layout.places[1].start_bytes = PART;
	devices[0].pmem_bytes = devices[1].pmem_bytes = 2 * PART;
}

static void single(void)
{
	t.n_sets = 1;
	sets[0].layout = (struct cxl_layout)MODEL_LAYOUT(UUID_B, SERIAL2, 0);
	sets[0].layout.ways = 1;
	sets[0].layout.size_bytes = PART;
}

static void device_missing(void)
{
	t.n_devices = 1;
}

static void serial_twice(void)
{
	devices[2] = devices[1];
	t.n_devices = 3;
}

static void half_made_with_serial_twice(void)
{
	half_made();
	serial_twice();
}

static void half_made_and_device_missing(void)
{
	half_made();
	device_missing();
}

static void device_disabled(void)
{
	devices[1].n_roots = 0;
}

static void device_smaller(void)
{
	devices[1].pmem_bytes = PART / 2;
}

static void partition_moved(void)
{
	devices[1].volatile_bytes = PART / 2;
}

static void other_window(void)
{
	roots[0].window.start_bytes = 1;
}

static void other_bridge(void)
{
	roots[0].window.bridges[0] = 13;
}

struct match_case {
	void (*make)(void);
	enum cxl_verdict verdict;
	const char *text; /* a part of the message; NULL: no message */
};

static const struct match_case matches[] = {
	{as_recorded, CXL_THERE, NULL},
	{other_uuid, CXL_THERE, NULL},
	{nothing, CXL_TO_MAKE, NULL},
	{half_made, CXL_TO_MAKE, NULL},
	{other_part, CXL_TO_MAKE, NULL},
	{half_made_by_another, CXL_REFUSED, "region0, which is not complete"},
	{disabled, CXL_REFUSED, "cxl enable-region region0"},
	{other_order, CXL_REFUSED, "region0 has the devices 0x1002, 0x1001"},
	{other_granularity, CXL_REFUSED, "granularity 4096"},
	{single, CXL_REFUSED, "recorded are 0x1001, 0x1002"},
	{device_missing, CXL_REFUSED, "0x1002 (position 1 of 2) is missing"},
	{serial_twice, CXL_REFUSED, "2 devices have the serial number 0x1002"},
	{half_made_with_serial_twice, CXL_REFUSED, "2 devices have the serial number 0x1002"},
	{half_made_and_device_missing, CXL_REFUSED, "0x1002 (position 1 of 2) is missing"},
	{device_disabled, CXL_REFUSED, "mem0, with serial number 0x1002, is disabled"},
	{device_smaller, CXL_REFUSED, "less persistent memory"},
	{partition_moved, CXL_REFUSED, "less persistent memory"},
	{other_window, CXL_REFUSED, "no root decoder has the recorded window"},
	{other_bridge, CXL_REFUSED, "no root decoder has the recorded window"},
};

START_TEST(record_is_compared_with_what_there_is)
{
	const struct match_case *c = &matches[_i];
	CLEANUP(free_charp) char *text = NULL;

	c->make();
	ck_assert_int_eq(cxl_match(&recorded, &t, &text), c->verdict);
	ck_assert_int_eq(text != NULL, c->text != NULL);
	if (c->text)
		ck_assert_msg(strstr(text, c->text) != NULL, "%s", text);
}
END_TEST

static struct cxl_records records;

static void has_record(void)
{
	cxl_records_add(&records, &recorded);
}

static void used(void)
{
	devices[0].used = devices[1].used = true;
}

static void one_used(void)
{
	devices[0].used = true;
}

static void three(void)
{
	devices[2] = (struct cxl_device)MODEL_DEVICE("mem2", 0x0fff);
	t.n_devices = 3;
}

static void other_sizes(void)
{
	three();
	devices[3] = (struct cxl_device)MODEL_DEVICE("mem3", 0x5);
	devices[3].pmem_bytes = PART * 2;
	t.n_devices = 4;
}

static void no_serial(void)
{
	devices[1].serial = 0;
}

static void two_roots(void)
{
	devices[1].n_roots = 2;
}

static void no_room(void)
{
	roots[0].free_bytes = PART;
}

static void odd_size(void)
{
	devices[0].pmem_bytes = devices[1].pmem_bytes = PART + (64ULL << 20);
}

static void volatile_part(void)
{
	devices[0].volatile_bytes = devices[1].volatile_bytes = 4 * PART;
}

/* The first is below the second bridge. */
static void two_bridges(void)
{
	roots[0].window.ways = 2;
	devices[0].position = 1;
}

static void one_bridge_of_two(void)
{
	roots[0].window.ways = 2;
}

static void twins(void)
{
	devices[1].serial = SERIAL1;
}

struct plan_case {
	void (*make)(void);
	const char *refused; /* NULL: planned */
	const char *serials; /* of the plan; "": no devices */
};

static const struct plan_case plans[] = {
	{nothing, NULL, "0x1001, 0x1002"},
	{has_record, NULL, ""},
	{used, NULL, ""},
	{one_used, NULL, "0x1002"},
	{three, NULL, "0xfff, 0x1001, 0x1002"},
	{volatile_part, NULL, "0x1001, 0x1002"},
	{two_bridges, NULL, "0x1002, 0x1001"},
	{one_bridge_of_two, "not distributed evenly over 2 host bridges", NULL},
	{other_sizes, "mem3 (0x5) has 1073741824 bytes", NULL},
	{no_serial, "mem0 has serial number 0", NULL},
	{two_roots, "belongs to 2 root decoders", NULL},
	{no_room, "only 536870912 free bytes", NULL},
	{odd_size, "no multiple of 268435456", NULL},
	{twins, "the same serial number 0x1001", NULL},
};

START_TEST(new_region_is_planned_by_serial_numbers)
{
	const struct plan_case *c = &plans[_i];
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(free_charp) char *serials = NULL;
	struct cxl_layout l;

	c->make();
	int rc = cxl_plan_new(&t, &records, 0, &l, &err);
	if (c->refused) {
		ck_assert_int_lt(rc, 0);
		ck_assert_int_eq(err->code, ERR_PRECONDITION);
		ck_assert_msg(strstr(err->msg, c->refused) != NULL, "%s", err->msg);
		return;
	}
	ASSERT_OK(rc);
	serials = cxl_serials(&l);
	ck_assert_str_eq(serials, c->serials);
	ck_assert_uint_eq(l.size_bytes, l.ways * PART);
	for (unsigned i = 0; i < l.ways; i++)
		ck_assert_uint_eq(l.places[i].start_bytes, devices[0].volatile_bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pmem/cxl_match");
	TCase *tcase = tcase_create("cxl_match");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, set_up, NULL);
	tcase_add_loop_test(tcase, record_is_compared_with_what_there_is, 0, ARRAY_SIZE(matches));
	tcase_add_loop_test(tcase, new_region_is_planned_by_serial_numbers, 0, ARRAY_SIZE(plans));
	return unit_runner_finish(srunner_create(suite));
}
