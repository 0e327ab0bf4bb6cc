/* SPDX-License-Identifier: Apache-2.0 */
/* CreateVolume fails when free memory has a block that cannot be written: the answer names the byte and lets
 * the volume be created on another node, and no device or record is left. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "csi.pb-c.h"

#include "base/mem.h"
#include "csi/csi.h"
#include "net/grpc/grpc_status.h"
#include "unit/csi/harness.h"
#include "unit/volume/fixture.h"

#define SIZE     MIB(16)
#define TEXT_MAX 6144

static uint64_t bad_at;

/* Fails for a block device, as for persistent memory, whose blocks cannot be released. */
int __real_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length);
int __wrap_fallocate(int fd, int mode, off_t offset, off_t length)
{
	struct stat st;

	if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode))
		return __real_fallocate(fd, mode, offset, length);
	errno = EOPNOTSUPP;
	return -1;
}

int __real_ioctl(int fd, unsigned long request, void *argument);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	va_start(args, request);
	void *argument = va_arg(args, void *);
	va_end(args);
	const uint64_t *range = argument;
	if (request != BLKZEROOUT || bad_at < range[0] || bad_at >= range[0] + range[1])
		return __real_ioctl(fd, request, argument);
	errno = EIO;
	return -1;
}

/* Encodes and decodes the message as gRPC does on the wire. */
static char *pass_on(const char *message)
{
	CLEANUP(buf_done) struct buf encoded = BUF_INIT(TEXT_MAX);
	CLEANUP(buf_done) struct buf decoded = BUF_INIT(TEXT_MAX);

	grpc_percent_encode(message, &encoded);
	grpc_percent_decode(buf_span(&encoded), &decoded);
	return x_strdup(buf_str(&decoded));
}

static int create(bool block, struct error **err)
{
	struct harness h = {
		.csi = {.driver_name = DRIVER_NAME, .version = "1", .node_id = NODE_ID, .volumes = fx.v},
		.arena = arena_new(TEXT_MAX)};
	Csi__V1__CreateVolumeRequest q;
	csi__v1__create_volume_request__init(&q);
	Csi__V1__CapacityRange range;
	csi__v1__capacity_range__init(&range);
	Csi__V1__VolumeCapability__BlockVolume raw;
	csi__v1__volume_capability__block_volume__init(&raw);
	Csi__V1__VolumeCapability *list[] = {harness_capability(
		&h, "ext4", CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_WRITER)};
	void *reply;

	if (block) {
		list[0]->access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK;
		list[0]->block = &raw;
	}
	range.required_bytes = (int64_t)SIZE;
	q.name = arena_strdup(h.arena, "pvc-1");
	q.capacity_range = &range;
	q.n_volume_capabilities = 1;
	q.volume_capabilities = list;
	int rc = harness_call(&h, "/csi.v1.Controller/CreateVolume", &q, &reply, err);
	arena_free(h.arena);
	return rc;
}

START_TEST(answer_names_the_byte_that_cannot_be_written)
{
	static const struct {
		bool block;
		uint64_t bad_at;
	} cases[] = {{false, 0}, {true, 0}, {true, MIB(5) + 8192}};
	CLEANUP(error_freep) struct error *err = NULL;

	bad_at = cases[_i].bad_at;
	ck_assert_int_eq(create(cases[_i].block, &err), -1);
	ck_assert_int_eq(err->code, ERR_EXHAUSTED);
	CLEANUP(free_charp) char *message = pass_on(err->msg);
	CLEANUP(free_charp)
	char *wanted = x_asprintf("write zeros at byte %ju of the device", (uintmax_t)cases[_i].bad_at);
	ck_assert_msg(strstr(message, wanted), "%s", message);
	ck_assert_str_eq(message, err->msg);
	ck_assert_uint_eq(fixture_n_files() + fixture_n_devices(), 0);
	bad_at = UINT64_MAX;
	error_clear(&err);
	ASSERT_OK(create(cases[_i].block, &err));
}
END_TEST

static void set_up(void)
{
	bad_at = UINT64_MAX;
	fixture_folder();
}

int main(void)
{
	TCase *tcase = fixture_case("failing_memory", set_up);

	if (!tcase)
		return SKIP_STATUS;
	tcase_add_loop_test(tcase, answer_names_the_byte_that_cannot_be_written, 0, 3);
	return fixture_finish();
}
