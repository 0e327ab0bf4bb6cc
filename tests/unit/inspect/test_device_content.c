/* SPDX-License-Identifier: Apache-2.0 */
/* A table of how devices are treated, by the record of the volume, the content of the device, and the
 * operation that uses it. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "inspect/repair.h"
#include "os/fs.h"
#include "unit/volume/mounts.h"
#include "volume/volumes_private.h"

#define SIZE         MIB(32)
#define V            MINTED_ID("v")
#define OURS         "11111111-1111-1111-1111-111111111111"
#define RECORDED     "2f9b3c1e-0d4a-4b6e-9a53-7c1d2e3f4a5b"
#define OTHERS       "00000000-0000-4000-8000-000000000001"
#define MKFS_TIME_MS 60000
#define MARK         "data of an unknown kind"
#define BEHIND       MIB(31)
#define SWAP_HEADER  1024
#define SWAP_AT      4086

enum record { NEW, MKFS_BEGUN, USED, BLOCK, DIRECT, CREATING, N_RECORDS };
enum content { NOTHING, DATA_BEHIND, DATA, SWAP, OUR_FS, OTHER_FS, N_CONTENTS };
enum asker { STAGE, STAGE_BLOCK, CLONE, START, REPAIR, N_ASKERS };

enum outcome {
	KEEPS,   /* the operation succeeds, and the content of the device stays */
	FORMATS, /* the operation succeeds, and the device gets a new file system */
	REFUSES, /* the operation fails, and the content of the device stays */
	REMOVES, /* the device is removed */
};

static const enum outcome table[N_RECORDS][N_CONTENTS][N_ASKERS] = {
	/*                  stage    as block  clone    start    repair */
	[NEW] = {[NOTHING] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[DATA_BEHIND] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[DATA] = {REFUSES, REFUSES, KEEPS, KEEPS, KEEPS},
		[SWAP] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[OUR_FS] = {KEEPS, REFUSES, KEEPS, KEEPS, KEEPS},
		[OTHER_FS] = {KEEPS, REFUSES, KEEPS, KEEPS, KEEPS}},
	[MKFS_BEGUN] = {[NOTHING] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[DATA_BEHIND] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[DATA] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[SWAP] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[OUR_FS] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[OTHER_FS] = {KEEPS, REFUSES, KEEPS, KEEPS, KEEPS}},
	[USED] = {[NOTHING] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[DATA_BEHIND] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[DATA] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[SWAP] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[OUR_FS] = {KEEPS, REFUSES, KEEPS, KEEPS, KEEPS},
		[OTHER_FS] = {KEEPS, REFUSES, KEEPS, KEEPS, KEEPS}},
	[BLOCK] = {[NOTHING] = {REFUSES, KEEPS, KEEPS, KEEPS, KEEPS},
		[DATA_BEHIND] = {REFUSES, KEEPS, KEEPS, KEEPS, KEEPS},
		[DATA] = {REFUSES, KEEPS, KEEPS, KEEPS, KEEPS},
		[SWAP] = {REFUSES, KEEPS, KEEPS, KEEPS, KEEPS},
		[OUR_FS] = {REFUSES, KEEPS, KEEPS, KEEPS, KEEPS},
		[OTHER_FS] = {REFUSES, KEEPS, KEEPS, KEEPS, KEEPS}},
	[DIRECT] = {[NOTHING] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[DATA_BEHIND] = {FORMATS, REFUSES, KEEPS, KEEPS, KEEPS},
		[DATA] = {REFUSES, REFUSES, KEEPS, KEEPS, KEEPS},
		[SWAP] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[OUR_FS] = {KEEPS, REFUSES, KEEPS, KEEPS, KEEPS},
		[OTHER_FS] = {KEEPS, REFUSES, KEEPS, KEEPS, KEEPS}},
	[CREATING] = {[NOTHING] = {REMOVES, REMOVES, REMOVES, REMOVES, REMOVES},
		[DATA_BEHIND] = {REMOVES, REMOVES, REMOVES, REMOVES, REMOVES},
		[DATA] = {REMOVES, REMOVES, REMOVES, REMOVES, REMOVES},
		[SWAP] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[OUR_FS] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS},
		[OTHER_FS] = {REFUSES, REFUSES, REFUSES, KEEPS, KEEPS}},
};

static const char *const record_names[] = {"new", "mkfs begun", "used", "block", "direct", "creating"};
static const char *const content_names[] = {
	"nothing", "data behind", "data", "swap", "our file system", "another file system"};
static const char *const asker_names[] = {"stage", "stage as block", "clone", "start", "repair"};
static const char *const outcome_names[] = {"keeps", "formats", "refuses", "removes"};

static enum record said;
static enum content shown;
static enum asker asking;
static struct error *err;
static const struct strmap none;
static struct device *device;

static void done(void)
{
	device_free(TAKE_PTR(device));
	error_clear(&err);
	free(mt.staging);
	mt = (struct mounts){0};
}

static void set_up(void)
{
	CLEANUP(free_charp) char *folder = NULL;

	fixture_folder();
	fx.done = done;
	folder = fixture_path("direct/volumes");
	fx.direct_volumes_dir = x_strdup(folder);
	mt.staging = fixture_path("kubelet/staging");
	ck_assert_int_eq(mkdir(mt.staging, 0755), 0);
	fixture_stop();
}

/* Version, last page, and count of bad pages: libblkid reads them (union swap_header in the kernel's
 * include/linux/swap.h). */
static const uint32_t swap_header[] = {1, 255, 0};

static void make_content(void)
{
	CLEANUP(fd_closep) int fd = open(device->path, O_WRONLY | O_CLOEXEC);
	const struct fs_layout layout = {.uuid = shown == OUR_FS ? RECORDED : OTHERS};

	if (shown == OUR_FS || shown == OTHER_FS)
		ASSERT_OK(fs_make("ext4", device->path, &layout, MKFS_TIME_MS, &err));
	if (shown == DATA)
		ck_assert_int_eq(pwrite(fd, MARK, sizeof(MARK), 0), sizeof(MARK));
	if (shown == SWAP) {
		ck_assert_int_eq(
			pwrite(fd, swap_header, sizeof(swap_header), SWAP_HEADER), sizeof(swap_header));
		ck_assert_int_eq(pwrite(fd, "SWAPSPACE2", 10, SWAP_AT), 10);
	}
	if (shown == DATA_BEHIND)
		ck_assert_int_eq(pwrite(fd, MARK, sizeof(MARK), BEHIND), sizeof(MARK));
	ck_assert_int_eq(fsync(fd), 0);
}

static void make_record(void)
{
	CLEANUP(buf_done) struct buf text = BUF_INIT(STATE_MAX_BYTES);
	CLEANUP(volume_record_freep) struct volume_record *r = x_calloc(1, sizeof(*r));

	r->id = x_strdup(V);
	r->size_bytes = SIZE;
	r->identity = x_strdup(OURS);
	r->pool = x_strdup(fx.pools[0]);
	r->fs_type = said == BLOCK ? NULL : x_strdup("ext4");
	r->fs_uuid = said == MKFS_BEGUN || said == USED ? x_strdup(RECORDED) : NULL;
	r->ever_staged = said == USED;
	r->block_clean = said == BLOCK || said == DIRECT;
	r->direct = said == DIRECT;
	strmap_set(&r->parameters, "name", "v");
	strmap_set(&r->parameters, "deviceMode", "fake");
	ASSERT_OK(state_format(r, &text, &err));
	fixture_write(said == CREATING ? V ".creating" : V ".json", buf_str(&text));
}

static int stage(bool block)
{
	const struct use_request q = {.handle = V,
		.staging_path = mt.staging,
		.block = block,
		.fs_type = block ? "" : "ext4",
		.context = &none};

	return volumes_stage(fx.v, &q, &err);
}

static int copy(void)
{
	CLEANUP(strmap_done) struct strmap parameters = {0};
	CLEANUP(volume_info_freep) struct volume_info *info = NULL;
	struct volume_request q = fixture_request("clone", SIZE);

	if (said == DIRECT)
		strmap_set(&parameters, "directVolume", "true");
	q.parameters = &parameters;
	q.block = said == BLOCK;
	q.fs_type = said == BLOCK ? NULL : "ext4";
	q.source = V;
	return volumes_create(fx.v, &q, &info, &err);
}

static int repair(void)
{
	CLEANUP(repair_report_done) struct repair_report report = {0};

	ASSERT_OK(volumes_repair(fx.v, V, ADOPTED_AS_FOUND, &report, &err));
	ck_assert_msg(!report.left, "%s", report.left ? report.left[0] : "");
	return 0;
}

static int ask(void)
{
	fixture_open();
	if (asking == REPAIR)
		return repair();
	ASSERT_OK(volumes_start(fx.v, &err));
	if (asking == CLONE)
		return copy();
	return asking == START ? 0 : stage(asking == STAGE_BLOCK);
}

static bool holds(const char *path, off_t at, const char *what, size_t n)
{
	char is[64];
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);

	return pread(fd, is, n, at) == (ssize_t)n && memcmp(is, what, n) == 0;
}

static bool has_uuid(const char *path, const char *uuid)
{
	struct fs_super super;

	return fs_read_super("ext4", path, &super, &err) == 0 && str_eq(super.uuid, uuid);
}

static bool is_kept(void)
{
	CLEANUP(free_charp) char *found = NULL;

	if (shown == OUR_FS || shown == OTHER_FS)
		return has_uuid(device->path, shown == OUR_FS ? RECORDED : OTHERS);
	if (shown == DATA || shown == DATA_BEHIND)
		return holds(device->path, shown == DATA ? 0 : BEHIND, MARK, sizeof(MARK));
	if (shown == SWAP)
		return holds(device->path, SWAP_AT, "SWAPSPACE2", 10);
	ASSERT_OK(fs_recognise(device->path, NULL, &found, &err));
	return !*found;
}

/* Finds out how the device was treated. No test makes files in it. So a file system with the recorded UUID is
 * a new one if the device had another file system or none before. */
static enum outcome outcome(int rc)
{
	CLEANUP(device_freep) struct device *left = fixture_device(V);
	CLEANUP(volume_record_freep) struct volume_record *r = records_find(fx.v->records, V);

	if (!left)
		return REMOVES;
	if (rc < 0)
		ck_assert_msg(is_kept(), "refused, and changed");
	if (rc < 0)
		return REFUSES;
	bool made = asking == STAGE && r->fs_uuid && has_uuid(device->path, r->fs_uuid) &&
		    (shown != OUR_FS || said == MKFS_BEGUN);
	error_clear(&err);
	ck_assert_msg(made || is_kept(), "neither formatted nor kept");
	return made && !(said == USED) ? FORMATS : KEEPS;
}

START_TEST(device_is_treated_by_record_and_content)
{
	said = (enum record)(_i / (N_CONTENTS * N_ASKERS));
	shown = (enum content)(_i / N_ASKERS % N_CONTENTS);
	asking = (enum asker)(_i % N_ASKERS);
	device = fixture_add_device(V, 0, OURS, SIZE);
	make_content();
	make_record();
	int rc = ask();
	const char *why = rc < 0 ? err->msg : "no error";
	CLEANUP(free_charp) char *reason = x_strdup(why);
	error_clear(&err);
	enum outcome is = outcome(rc);
	ck_assert_msg(is == table[said][shown][asking], "%s record, %s on the device, %s: %s (%s), not %s",
		record_names[said], content_names[shown], asker_names[asking], outcome_names[is], reason,
		outcome_names[table[said][shown][asking]]);
	if (asking == STAGE && rc == 0)
		ck_assert_uint_eq(mounts_count(mt.staging), said != DIRECT);
	if (asking == STAGE || asking == STAGE_BLOCK) {
		(void)!volumes_unstage(fx.v, V, mt.staging, &err);
		error_clear(&err);
	}
}
END_TEST

int main(void)
{
	TCase *tcase = fixture_case("device_content", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_loop_test(
		tcase, device_is_treated_by_record_and_content, 0, N_RECORDS * N_CONTENTS * N_ASKERS);
	return fixture_finish();
}
