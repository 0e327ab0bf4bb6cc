/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cxl.h for the kernel of this host, through libcxl with a fresh context for each operation. The sequence is
 * that of create_region() and destroy_region() of ndctl's cxl/region.c.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cxl/libcxl.h>

#include "base/durable_step.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "os/file.h"
#include "pmem/cxl/cxl.h"
#include "pmem/nd/label_area.h"
#include "pmem/nd/nd_sysfs.h"

#define CXL_DEVICES          "/sys/bus/cxl/devices"
#define ATTRIBUTE_MAX_BYTES  256
#define LABEL_AREA_MAX_BYTES (16U << 20)
#define SHOWN_WAIT_MS        10000
#define SHOWN_POLL_MS        20
#define NO_UUID              "00000000-0000-0000-0000-000000000000"

__attribute__((format(printf, 6, 0))) static void log_library(struct cxl_ctx *ctx, int priority,
	const char *file, int line, const char *function, const char *format, va_list ap)
{
	(void)ctx;
	(void)priority;
	(void)file;
	(void)line;
	if (!log_enabled(LOG_DEBUG))
		return;
	CLEANUP(free_charp) char *text = x_vasprintf(format, ap);
	log_debug("libcxl", F_STR("function", function), F_STR("message", text));
}

static int context_new(struct cxl_ctx **ret, struct error **err)
{
	struct cxl_ctx *ctx = NULL;
	int rc = cxl_new(&ctx);

	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "open libcxl");
	cxl_set_log_fn(ctx, log_library);
	*ret = ctx;
	return 0;
}

static void context_free(struct cxl_ctx *ctx)
{
	cxl_unref(ctx);
}
DEFINE_CLEANUP(struct cxl_ctx *, context_free);

static void copy_name(char out[static CXL_NAME_BYTES], const char *name)
{
	size_t n = strnlen(name, CXL_NAME_BYTES - 1);

	memcpy(out, name, n);
	out[n] = '\0';
}

/* --- reading */

/* NULL: the device is disabled, or the kernel has not found its way to a root decoder. */
static struct cxl_port *endpoint_port(struct cxl_memdev *memdev)
{
	struct cxl_endpoint *endpoint = cxl_memdev_get_endpoint(memdev);

	return endpoint ? cxl_endpoint_get_port(endpoint) : NULL;
}

/* Decoders of a device whose size the kernel does not show hold nothing. */
static bool is_allocated(struct cxl_decoder *decoder)
{
	unsigned long long bytes = cxl_decoder_get_dpa_size(decoder);

	return bytes > 0 && bytes != ULLONG_MAX;
}

static bool is_used(struct cxl_memdev *memdev)
{
	struct cxl_port *port = endpoint_port(memdev);
	struct cxl_decoder *decoder;

	if (!port)
		return false;
	cxl_decoder_foreach(port, decoder)
	{
		if (is_allocated(decoder))
			return true;
	}
	return false;
}

static void read_devices(struct cxl_ctx *ctx, struct cxl_topology *t)
{
	struct cxl_memdev *memdev;

	cxl_memdev_foreach(ctx, memdev)
	{
		if (cxl_memdev_get_pmem_size(memdev) == 0 || cxl_memdev_get_serial(memdev) == ULLONG_MAX)
			continue;
		t->devices = x_realloc(t->devices, t->n_devices + 1, sizeof(*t->devices));
		struct cxl_device *d = &t->devices[t->n_devices++];
		*d = (struct cxl_device){.serial = cxl_memdev_get_serial(memdev),
			.volatile_bytes = cxl_memdev_get_ram_size(memdev),
			.pmem_bytes = cxl_memdev_get_pmem_size(memdev),
			.used = is_used(memdev)};
		copy_name(d->name, cxl_memdev_get_devname(memdev));
	}
}

/* libcxl passes over a device that has no node in /dev, and replaces a serial number and a size that it
 * cannot read by the largest number and by 0 (add_cxl_memdev() of cxl/lib/libcxl.c). */
static bool is_readable(struct cxl_ctx *ctx, const char *name)
{
	CLEANUP(free_charp) char *size = x_asprintf(CXL_DEVICES "/%s/pmem/size", name);
	struct cxl_memdev *memdev;

	cxl_memdev_foreach(ctx, memdev)
	{
		if (str_eq(cxl_memdev_get_devname(memdev), name))
			return cxl_memdev_get_serial(memdev) != ULLONG_MAX && access(size, R_OK) == 0;
	}
	return false;
}

static int find_unreadable(struct cxl_ctx *ctx, char ***ret, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(CXL_DEVICES, /* create= */ false, 0, &fd, err) < 0 || dir_list(fd, &names, err) < 0)
		return -1;
	for (char **name = names; *name; name++)
		if (str_starts(*name, "mem") && isdigit((unsigned char)(*name)[strlen("mem")]) &&
			!is_readable(ctx, *name))
			strv_add(ret, *name);
	return 0;
}

static struct cxl_device *find_device(const struct cxl_topology *t, struct cxl_memdev *memdev)
{
	for (size_t i = 0; i < t->n_devices; i++)
		if (str_eq(t->devices[i].name, cxl_memdev_get_devname(memdev)))
			return &t->devices[i];
	return NULL;
}

static void read_window(struct cxl_decoder *decoder, struct cxl_window *w)
{
	struct cxl_target *target;

	*w = (struct cxl_window){.start_bytes = cxl_decoder_get_resource(decoder),
		.size_bytes = cxl_decoder_get_size(decoder),
		.granularity_bytes = cxl_decoder_get_interleave_granularity(decoder),
		.ways = cxl_decoder_get_interleave_ways(decoder)};
	if (w->ways > CXL_WAYS_MAX)
		w->ways = 0;
	cxl_target_foreach(decoder, target)
	{
		int position = cxl_target_get_position(target);
		if (position >= 0 && (unsigned)position < w->ways)
			w->bridges[position] = cxl_target_get_id(target);
	}
}

/* @index: of the root decoder, whose window is read */
static void note_reach(struct cxl_ctx *ctx, struct cxl_decoder *root, size_t index, struct cxl_topology *t)
{
	struct cxl_memdev *memdev;

	cxl_memdev_foreach(ctx, memdev)
	{
		struct cxl_device *d = find_device(t, memdev);
		struct cxl_target *target =
			d && endpoint_port(memdev) ? cxl_decoder_get_target_by_memdev(root, memdev) : NULL;
		if (!target)
			continue;
		d->n_roots++;
		d->root = index;
		d->position = (unsigned)cxl_target_get_position(target);
	}
}

/* @ret_pmem: whether what is attached is persistent memory; a region without devices is taken for it */
static void read_places(struct cxl_region *region, struct cxl_layout *l, bool *ret_pmem)
{
	*ret_pmem = true;
	for (unsigned i = 0; i < l->ways; i++) {
		struct cxl_decoder *decoder = cxl_region_get_target_decoder(region, (int)i);
		struct cxl_memdev *memdev = decoder ? cxl_decoder_get_memdev(decoder) : NULL;
		if (!memdev)
			continue;
		*ret_pmem = *ret_pmem && cxl_decoder_get_mode(decoder) == CXL_DECODER_MODE_PMEM;
		l->places[i] = (struct cxl_place){
			cxl_memdev_get_serial(memdev), cxl_decoder_get_dpa_resource(decoder)};
	}
}

static void format_uuid(struct cxl_region *region, char out[static UUID_TEXT_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";
	uuid_t uuid;
	size_t n = 0;

	cxl_region_get_uuid(region, uuid);
	for (size_t i = 0; i < sizeof(uuid); i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			out[n++] = '-';
		out[n++] = digits[uuid[i] >> 4];
		out[n++] = digits[uuid[i] & 15];
	}
	out[n] = '\0';
}

static void read_region(struct cxl_region *region, const struct cxl_window *w, struct cxl_topology *t)
{
	struct cxl_set set = {.committed = cxl_region_decode_is_committed(region),
		.enabled = cxl_region_is_enabled(region),
		.layout = {.size_bytes = cxl_region_get_size(region),
			.granularity_bytes = cxl_region_get_interleave_granularity(region),
			.ways = cxl_region_get_interleave_ways(region),
			.window = *w}};
	bool is_pmem;

	copy_name(set.name, cxl_region_get_devname(region));
	format_uuid(region, set.layout.uuid);
	if (set.layout.ways > CXL_WAYS_MAX)
		set.layout.ways = 0;
	read_places(region, &set.layout, &is_pmem);
	if (!is_pmem)
		return;
	t->sets = x_realloc(t->sets, t->n_sets + 1, sizeof(*t->sets));
	t->sets[t->n_sets++] = set;
}

static void read_root(struct cxl_ctx *ctx, struct cxl_decoder *decoder, struct cxl_topology *t)
{
	struct cxl_region *region;
	size_t index = t->n_roots;

	t->roots = x_realloc(t->roots, t->n_roots + 1, sizeof(*t->roots));
	struct cxl_root *r = &t->roots[t->n_roots++];
	*r = (struct cxl_root){.free_bytes = cxl_decoder_get_max_available_extent(decoder)};
	copy_name(r->name, cxl_decoder_get_devname(decoder));
	read_window(decoder, &r->window);
	note_reach(ctx, decoder, index, t);
	cxl_region_foreach(decoder, region)
	{
		read_region(region, &t->roots[index].window, t);
	}
}

static int real_read(void *self, struct cxl_topology *ret, struct error **err)
{
	CLEANUP(context_freep) struct cxl_ctx *ctx = NULL;
	struct cxl_topology t = {0};
	struct cxl_decoder *decoder;
	struct cxl_bus *bus;

	(void)self;
	if (context_new(&ctx, err) < 0 || find_unreadable(ctx, &t.unreadable, err) < 0)
		return -1;
	read_devices(ctx, &t);
	cxl_bus_foreach(ctx, bus){cxl_decoder_foreach(cxl_bus_get_port(bus), decoder){
		if (cxl_decoder_is_pmem_capable(decoder)) read_root(ctx, decoder, &t);
}
}
*ret = t;
return 0;
}

/* --- making */

static struct cxl_decoder *find_root(struct cxl_ctx *ctx, const struct cxl_window *wanted)
{
	struct cxl_decoder *decoder;
	struct cxl_bus *bus;

	cxl_bus_foreach(ctx, bus)
	{
		cxl_decoder_foreach(cxl_bus_get_port(bus), decoder)
		{
			struct cxl_window w;

			read_window(decoder, &w);
			if (cxl_decoder_is_pmem_capable(decoder) && cxl_window_eq(&w, wanted))
				return decoder;
		}
	}
	return NULL;
}

static struct cxl_memdev *find_memdev(struct cxl_ctx *ctx, uint64_t serial)
{
	struct cxl_memdev *memdev;

	cxl_memdev_foreach(ctx, memdev)
	{
		if (cxl_memdev_get_serial(memdev) == serial && endpoint_port(memdev))
			return memdev;
	}
	return NULL;
}

/* Decoders of a device are programmed in their order, so the first that is free is the next one. A process
 * that was killed may have left one that has just the part that is needed, and no region. */
static struct cxl_decoder *free_decoder(struct cxl_memdev *memdev, uint64_t start, uint64_t bytes)
{
	struct cxl_decoder *decoder;

	cxl_decoder_foreach(endpoint_port(memdev), decoder)
	{
		if (cxl_decoder_get_dpa_resource(decoder) == start &&
			cxl_decoder_get_dpa_size(decoder) == bytes &&
			cxl_decoder_get_mode(decoder) == CXL_DECODER_MODE_PMEM &&
			!cxl_decoder_get_region(decoder))
			return decoder;
		if (!is_allocated(decoder) && cxl_decoder_get_size(decoder) == 0)
			return decoder;
	}
	return NULL;
}

/* The attribute is read from sysfs: libcxl has read it before the part was allocated. */
static int check_start(struct cxl_decoder *decoder, const struct cxl_place *place, struct error **err)
{
	CLEANUP(free_charp)
	char *path = x_asprintf(CXL_DEVICES "/%s/dpa_resource", cxl_decoder_get_devname(decoder));
	CLEANUP(buf_done) struct buf text = BUF_INIT(ATTRIBUTE_MAX_BYTES);
	uint64_t start = 0;

	if (file_read(AT_FDCWD, path, &text, err) < 0)
		return -1;
	CLEANUP(free_charp) char *number = x_strndup(buf_str(&text), strcspn(buf_str(&text), "\n"));
	if (parse_number(number, &start, err) < 0)
		return err_wrap(err, "%s", path);
	if (start != place->start_bytes)
		return err_set(err, ERR_PRECONDITION,
			"the free part of the device with serial number 0x%jx begins at 0x%jx, not at 0x%jx as "
			"recorded; \"cxl list -MD\" shows what else is allocated, and \"cxl free-dpa\" frees what no "
			"region uses",
			(uintmax_t)place->serial, (uintmax_t)start, (uintmax_t)place->start_bytes);
	return 0;
}

static int refused(int rc, const char *what, const char *device, struct error **err)
{
	return err_set_errno(err, ERR_INTERNAL, -rc, "the kernel refuses to %s %s", what, device);
}

/* @i: a position in @l, whose part is allocated on its device and put there */
static int attach(struct cxl_ctx *ctx, struct cxl_region *region, const struct cxl_layout *l, unsigned i,
	struct error **err)
{
	const struct cxl_place *place = &l->places[i];
	struct cxl_memdev *memdev = find_memdev(ctx, place->serial);
	uint64_t bytes = l->size_bytes / l->ways;
	struct cxl_decoder *decoder = memdev ? free_decoder(memdev, place->start_bytes, bytes) : NULL;
	int rc;

	if (!memdev)
		return err_set(err, ERR_NOT_FOUND, "there is no usable device with serial number 0x%jx",
			(uintmax_t)place->serial);
	if (!decoder)
		return err_set(err, ERR_PRECONDITION, "%s, with serial number 0x%jx, has no free decoder",
			cxl_memdev_get_devname(memdev), (uintmax_t)place->serial);
	const char *name = cxl_decoder_get_devname(decoder);
	if (cxl_decoder_get_mode(decoder) != CXL_DECODER_MODE_PMEM &&
		(rc = STEP("cxl-mode", cxl_decoder_set_mode(decoder, CXL_DECODER_MODE_PMEM))) < 0)
		return refused(rc, "set the mode of", name, err);
	if (!is_allocated(decoder) &&
		(rc = STEP("cxl-allocate", cxl_decoder_set_dpa_size(decoder, bytes))) < 0)
		return refused(rc, "allocate a part with", name, err);
	if (check_start(decoder, place, err) == 0) {
		rc = STEP("cxl-attach", cxl_region_set_target(region, (int)i, decoder));
		if (rc == 0)
			return 0;
		(void)refused(rc, "attach", name, err);
	}
	(void)!STEP("cxl-free-unattached", cxl_decoder_set_dpa_size(decoder, 0));
	return -1;
}

/* A position without a device is skipped. Return: 0, or the first failure, as libcxl. */
static int take_apart(struct cxl_region *region)
{
	unsigned ways = cxl_region_get_interleave_ways(region);

	if (cxl_region_decode_is_committed(region))
		(void)!STEP("cxl-reset", cxl_region_decode_reset(region));
	for (unsigned i = ways <= CXL_WAYS_MAX ? ways : 0; i-- > 0;) {
		struct cxl_decoder *decoder = cxl_region_get_target_decoder(region, (int)i);
		if (!decoder)
			continue;
		(void)!STEP("cxl-detach", cxl_region_clear_target(region, (int)i));
		(void)!STEP("cxl-free", cxl_decoder_set_dpa_size(decoder, 0));
	}
	return STEP("cxl-delete", cxl_region_delete(region));
}

static void parse_uuid(const char *text, uuid_t ret)
{
	size_t n = 0;

	for (const char *c = text; *c && n < 2 * sizeof(uuid_t); c++) {
		if (*c == '-')
			continue;
		unsigned digit = *c <= '9' ? (unsigned)(*c - '0') : (unsigned)((*c | 0x20) - 'a') + 10;
		ret[n / 2] = (unsigned char)(n % 2 == 0 ? digit << 4 : ret[n / 2] | digit);
		n++;
	}
}

static int shape(struct cxl_region *region, const struct cxl_layout *l, struct error **err)
{
	const char *name = cxl_region_get_devname(region);
	uuid_t uuid = {0};
	int rc;

	parse_uuid(l->uuid, uuid);
	if ((rc = STEP("cxl-uuid", cxl_region_set_uuid(region, uuid))) < 0)
		return refused(rc, "set the UUID of", name, err);
	rc = STEP("cxl-granularity",
		cxl_region_set_interleave_granularity(region, (unsigned)l->granularity_bytes));
	if (rc < 0)
		return refused(rc, "set the granularity of", name, err);
	if ((rc = STEP("cxl-ways", cxl_region_set_interleave_ways(region, l->ways))) < 0)
		return refused(rc, "set the interleave ways of", name, err);
	if ((rc = STEP("cxl-size", cxl_region_set_size(region, l->size_bytes))) < 0)
		return refused(rc, "set the size of", name, err);
	return 0;
}

static int complete(
	struct cxl_ctx *ctx, struct cxl_region *region, const struct cxl_layout *l, struct error **err)
{
	const char *name = cxl_region_get_devname(region);
	int rc;

	if (shape(region, l, err) < 0)
		return -1;
	for (unsigned i = 0; i < l->ways; i++)
		if (attach(ctx, region, l, i, err) < 0)
			return -1;
	if ((rc = STEP("cxl-commit", cxl_region_decode_commit(region))) < 0)
		return refused(rc, "program the decoders of", name, err);
	if ((rc = STEP("cxl-enable", cxl_region_enable(region))) < 0)
		return refused(rc, "enable", name, err);
	return 0;
}

static bool is_shown(uint64_t start_bytes)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(strv_freep) char **names = NULL;

	if (nd_attr_names(".", ".", &names, &ignored) < 0)
		return false;
	for (char **name = names; *name; name++)
		if (str_starts(*name, "region") &&
			nd_attr_hint_number(*name, "resource", UINT64_MAX) == start_bytes)
			return true;
	return false;
}

/* The module cxl_pmem registers it, on a thread of the kernel. */
static int wait_until_shown(struct cxl_region *region, struct error **err)
{
	static const struct timespec pause = {.tv_nsec = SHOWN_POLL_MS * 1000000L};

	for (unsigned waited_ms = 0; waited_ms < SHOWN_WAIT_MS; waited_ms += SHOWN_POLL_MS) {
		if (is_shown(cxl_region_get_resource(region)))
			return 0;
		nanosleep(&pause, NULL);
	}
	return err_set(err, ERR_UNAVAILABLE,
		"%s is complete, but does not appear on the nd bus; is the kernel module cxl_pmem loaded?",
		cxl_region_get_devname(region));
}

/* Whether a process that was killed has left @region, with the UUID or before it had set one. */
static bool is_left_over(struct cxl_region *region, const char *uuid)
{
	char found[UUID_TEXT_LEN + 1];

	if (cxl_region_decode_is_committed(region))
		return false;
	format_uuid(region, found);
	return str_eq(found, uuid) || (str_eq(found, NO_UUID) && cxl_region_get_size(region) == 0);
}

/* A context of its own is opened, because libcxl does not notice that decoders become free. */
static int remove_incomplete(const struct cxl_layout *l, struct error **err)
{
	CLEANUP(context_freep) struct cxl_ctx *ctx = NULL;
	struct cxl_decoder *root = NULL;
	struct cxl_region *region;
	struct cxl_region *next;

	if (context_new(&ctx, err) < 0)
		return -1;
	root = find_root(ctx, &l->window);
	if (!root)
		return 0;
	cxl_region_foreach_safe(root, region, next)
	{
		if (!is_left_over(region, l->uuid))
			continue;
		int rc = take_apart(region);
		if (rc < 0)
			return err_set_errno(err, ERR_INTERNAL, -rc,
				"the incomplete region of an interrupted attempt cannot be removed");
	}
	return 0;
}

static int real_make(void *self, const struct cxl_layout *l, struct error **err)
{
	CLEANUP(context_freep) struct cxl_ctx *ctx = NULL;
	struct cxl_decoder *root;

	(void)self;
	if (remove_incomplete(l, err) < 0 || context_new(&ctx, err) < 0)
		return -1;
	root = find_root(ctx, &l->window);
	if (!root)
		return err_set(err, ERR_NOT_FOUND, "no root decoder has the recorded window");
	struct cxl_region *region = STEP("cxl-create", cxl_decoder_create_pmem_region(root));
	if (!region)
		return err_set(err, ERR_INTERNAL, "the kernel refuses to create a region below %s",
			cxl_decoder_get_devname(root));
	if (complete(ctx, region, l, err) == 0)
		return wait_until_shown(region, err);
	int rc = take_apart(region);
	if (rc < 0) {
		CLEANUP(error_freep) struct error *second = NULL;
		(void)!err_set_errno(&second, ERR_INTERNAL, -rc, "remove it");
		return err_wrap(err, "the incomplete region is left behind (%s)", second->msg);
	}
	return -1;
}

/* --- label areas */

static int real_labels(void *self, const char *device, bool *ret_empty, struct error **err)
{
	CLEANUP(context_freep) struct cxl_ctx *ctx = NULL;
	struct cxl_memdev *memdev;

	(void)self;
	if (context_new(&ctx, err) < 0)
		return -1;
	cxl_memdev_foreach(ctx, memdev)
	{
		if (str_eq(cxl_memdev_get_devname(memdev), device))
			break;
	}
	size_t bytes = memdev ? cxl_memdev_get_label_size(memdev) : 0;
	if (bytes == 0 || bytes > LABEL_AREA_MAX_BYTES)
		return err_set(err, ERR_INTERNAL, "%s has no label area that can be read", device);
	CLEANUP(free_charp) char *area = x_malloc(bytes);
	int rc = cxl_memdev_read_label(memdev, area, bytes, /* offset= */ 0);
	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "read the label area of %s", device);
	enum label_area found = label_area_judge((const uint8_t *)area, bytes, bytes);
	*ret_empty = found == LABEL_AREA_BLANK || found == LABEL_AREA_EMPTY;
	return 0;
}

static const struct cxl_ops real_ops = {
	.read = real_read,
	.make = real_make,
	.labels = real_labels,
};

const struct cxl *cxl_real(void)
{
	static const struct cxl real = {.ops = &real_ops};

	return access(CXL_DEVICES, F_OK) == 0 ? &real : NULL;
}
