/* SPDX-License-Identifier: Apache-2.0 */
#include "volume/durability/volume_dax.h"

#include "base/mem.h"
#include "base/str.h"
#include "unit/unit.h"
#include "volume/state.h"

static struct volume_record *record(const char *usage, const char *flag)
{
	struct volume_record *r = x_calloc(1, sizeof(*r));

	r->id = x_strdup("v");
	r->phase = PHASE_READY;
	r->staging_path = x_strdup("/staging");
	if (usage)
		strmap_set(&r->parameters, "usage", usage);
	if (flag)
		strv_add(&r->staged_flags, flag);
	return r;
}

START_TEST(dax_follows_from_usage_flags_and_memory)
{
	static const struct {
		const char *mode, *usage, *flag;
		enum durability durability;
		enum volume_dax dax;
		bool lacks_sync;
	} cases[] = {
		{"lvm", NULL, NULL, DURABILITY_UNKNOWN, VOLUME_DAX_UNTRIED, false},
		{"lvm", "AppDirect", NULL, DURABILITY_SYNCHRONOUS, VOLUME_DAX_SYNCHRONOUS, false},
		{"direct", "AppDirect", "noatime", DURABILITY_FSYNC, VOLUME_DAX_FSYNC, true},
		{"lvm", NULL, "dax=never", DURABILITY_SYNCHRONOUS, VOLUME_DAX_NONE, true},
		{"lvm", NULL, "dax=inode", DURABILITY_SYNCHRONOUS, VOLUME_DAX_UNKNOWN, false},
		{"lvm", "FileIO", NULL, DURABILITY_FSYNC, VOLUME_DAX_NONE, false},
		{"fake", NULL, NULL, DURABILITY_UNKNOWN, VOLUME_DAX_UNKNOWN, false},
		{"fake", NULL, "dax=never", DURABILITY_UNKNOWN, VOLUME_DAX_NONE, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(volume_record_freep) struct volume_record *r = record(cases[i].usage, cases[i].flag);

		ck_assert_int_eq(volume_dax_of(r, cases[i].mode, cases[i].durability), cases[i].dax);
		ck_assert_int_eq(volume_dax_lacks_sync(r, cases[i].mode, cases[i].dax), cases[i].lacks_sync);
		r->fsync_suffices = true;
		ck_assert(!volume_dax_lacks_sync(r, cases[i].mode, cases[i].dax));
	}
}
END_TEST

START_TEST(nothing_is_known_of_what_is_not_mounted)
{
	CLEANUP(volume_record_freep) struct volume_record *r = record(NULL, NULL);

	r->staged_block = true;
	ck_assert_int_eq(volume_dax_of(r, "lvm", DURABILITY_FSYNC), VOLUME_DAX_UNKNOWN);
	r->staged_block = false;
	r->direct = true;
	ck_assert_int_eq(volume_dax_of(r, "lvm", DURABILITY_FSYNC), VOLUME_DAX_UNKNOWN);
	r->direct = false;
	free(TAKE_PTR(r->staging_path));
	ck_assert_int_eq(volume_dax_of(r, "lvm", DURABILITY_FSYNC), VOLUME_DAX_UNKNOWN);
	ck_assert_ptr_null(volume_dax_name(VOLUME_DAX_UNKNOWN));
	strmap_set(&r->parameters, "persistencyModel", "ephemeral");
	strv_add(&r->targets, "/target");
	ck_assert_int_eq(volume_dax_of(r, "lvm", DURABILITY_FSYNC), VOLUME_DAX_FSYNC);
}
END_TEST

START_TEST(usage_at_the_time_of_the_mount_counts)
{
	CLEANUP(volume_record_freep) struct volume_record *r = record("AppDirect", NULL);

	r->staged_usage = x_strdup("FileIO");
	ck_assert_int_eq(volume_dax_of(r, "lvm", DURABILITY_SYNCHRONOUS), VOLUME_DAX_NONE);
	ck_assert(volume_dax_lacks_sync(r, "lvm", VOLUME_DAX_NONE));
}
END_TEST

UNIT_MAIN("volume/volume_dax", dax_follows_from_usage_flags_and_memory,
	nothing_is_known_of_what_is_not_mounted, usage_at_the_time_of_the_mount_counts)
