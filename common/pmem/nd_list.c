#include "pmem/nd_list.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/ndctl.h>
#include <ndctl/libndctl.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uuid/uuid.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/random.h"
#include "base/str.h"
#include "os/file.h"
#include "pmem/layout.h"

#define ATTRIBUTE_MAX_BYTES 4096
#define SECTOR_BYTES        512

/* Beginning of a label area, struct nd_namespace_index of the kernel's drivers/nvdimm/label.h */
#define INDEX_SIGNATURE "NAMESPACE_INDEX"
#define INDEX_MAJOR_AT  60
#define INDEX_MINOR_AT  62
#define INDEX_BYTES     64

__attribute__((format(printf, 6, 0))) static void log_library(struct ndctl_ctx *ctx, int priority,
	const char *file, int line, const char *function, const char *format, va_list ap)
{
	(void)ctx;
	(void)priority;
	(void)file;
	(void)line;
	if (!log_enabled(LOG_DEBUG))
		return;
	CLEANUP(free_charp) char *text = x_vasprintf(format, ap);
	log_debug("libndctl", F_STR("function", function), F_STR("message", text));
}

int nd_context_new(struct ndctl_ctx **ret, struct error **err)
{
	struct ndctl_ctx *ctx = NULL;
	int rc = ndctl_new(&ctx);

	if (rc < 0)
		return err_set_errno(err, ERR_INTERNAL, -rc, "open libndctl");
	ndctl_set_log_fn(ctx, log_library);
	*ret = ctx;
	return 0;
}

void nd_context_free(struct ndctl_ctx *ctx)
{
	ndctl_unref(ctx);
}

/* @ret: first line of an attribute of a device on the bus, "" when there is none; caller frees. */
static int read_attribute(const char *device, const char *attribute, char **ret, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/%s", device, attribute);
	CLEANUP(buf_done) struct buf b = BUF_INIT(ATTRIBUTE_MAX_BYTES);

	if (file_read(AT_FDCWD, path, &b, err) < 0) {
		if ((*err)->code != ERR_NOT_FOUND)
			return -1;
		error_clear(err);
	}
	*ret = x_strndup(buf_str(&b), strcspn(buf_str(&b), "\n"));
	return 0;
}

/* Return: as read_attribute(), also "" when it cannot be read. */
static char *read_hint(const char *device, const char *attribute)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	char *text = NULL;

	return read_attribute(device, attribute, &text, &ignored) == 0 ? text : x_strdup("");
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = text + strspn(text, " "); *p; p += strspn(p, " ")) {
		size_t n = strcspn(p, " ");
		if (n == len && memcmp(p, word, n) == 0)
			return true;
		p += n;
	}
	return false;
}

uint64_t nd_seed_align(const char *region)
{
	CLEANUP(free_charp) char *seed = read_hint(region, "pfn_seed");
	CLEANUP(free_charp) char *offered = read_hint(seed, "supported_alignments");
	CLEANUP(free_charp) char *preferred = x_asprintf("%llu", PFN_ALIGN_BYTES);
	CLEANUP(free_charp) char *current = read_hint(seed, "align");
	CLEANUP(error_freep) struct error *ignored = NULL;
	uint64_t align = 0;

	if (has_word(offered, preferred))
		return PFN_ALIGN_BYTES;
	if (parse_u64(current, &align, &ignored) < 0)
		return 0;
	return align;
}

static bool is_bound(const char *device)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/driver", device);

	return access(path, F_OK) == 0;
}

/* @ret: names in the folder of a device on the bus, none when it is not there; strv_free() */
static int list_folder(const char *device, const char *folder, char ***ret, struct error **err)
{
	CLEANUP(free_charp) char *path = x_asprintf(ND_SYSFS_DEVICES "/%s/%s", device, folder);
	CLEANUP(fd_closep) int fd = -1;

	if (dir_open(path, false, 0, &fd, err) == 0)
		return dir_list(fd, ret, err);
	if ((*err)->code != ERR_NOT_FOUND)
		return -1;
	error_clear(err);
	*ret = x_calloc(1, sizeof(**ret));
	return 0;
}

static int read_block_device(const char *device, struct nd_namespace *ns, struct error **err)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(strv_freep) char **names = NULL;
	CLEANUP(free_charp) char *text = NULL;
	uint64_t sectors = 0;

	if (list_folder(device, "block", &names, err) < 0)
		return -1;
	if (!names[0])
		return 0;
	CLEANUP(free_charp) char *attribute = x_asprintf("block/%s/size", names[0]);
	if (read_attribute(device, attribute, &text, err) < 0)
		return -1;
	if (parse_u64(text, &sectors, &ignored) < 0)
		return 0;
	ns->usable_bytes = sectors * SECTOR_BYTES;
	ns->block_path = x_asprintf("/dev/%s", names[0]);
	return 0;
}

static enum nd_mode convert_mode(enum ndctl_namespace_mode mode)
{
	switch (mode) {
	case NDCTL_NS_MODE_FSDAX:
		return ND_FSDAX;
	case NDCTL_NS_MODE_DEVDAX:
		return ND_DEVDAX;
	case NDCTL_NS_MODE_SECTOR:
		return ND_SECTOR;
	case NDCTL_NS_MODE_RAW:
	case NDCTL_NS_MODE_UNKNOWN:
		break;
	}
	return ND_RAW;
}

/* Without a holder the kernel shows every namespace as raw; what it is to become again is in its label. */
static enum nd_mode read_mode(struct ndctl_namespace *ndns, bool active)
{
	return convert_mode(active ? ndctl_namespace_get_mode(ndns) : ndctl_namespace_get_enforce_mode(ndns));
}

static uint64_t offset_in(struct ndctl_region *region, struct ndctl_namespace *ndns)
{
	uint64_t start = ndctl_region_get_resource(region);
	uint64_t at = ndctl_namespace_get_resource(ndns);

	if (start == ULLONG_MAX || at == ULLONG_MAX || at < start ||
		at - start >= ndctl_region_get_size(region))
		return ND_OFFSET_UNKNOWN;
	return at - start;
}

static char *uuid_text(struct ndctl_namespace *ndns)
{
	char text[UUID_TEXT_LEN + 1];
	uuid_t uuid;

	ndctl_namespace_get_uuid(ndns, uuid);
	if (uuid_is_null(uuid))
		return x_strdup("");
	uuid_unparse_lower(uuid, text);
	return x_strdup(text);
}

static int read_namespace(struct ndctl_region *region, struct ndctl_namespace *ndns, struct nd_namespace *ret,
	struct error **err)
{
	const char *dev = ndctl_namespace_get_devname(ndns);
	CLEANUP(free_charp) char *holder = NULL;

	if (read_attribute(dev, "holder", &holder, err) < 0)
		return -1;
	const char *front = str_empty(holder) ? dev : holder;
	bool active = is_bound(front);
	*ret = (struct nd_namespace){
		.dev = x_strdup(dev),
		.name = x_strdup(ndctl_namespace_get_alt_name(ndns)),
		.uuid = uuid_text(ndns),
		.mode = read_mode(ndns, active),
		.raw_bytes = ndctl_namespace_get_size(ndns),
		.offset_bytes = offset_in(region, ndns),
		.active = active,
		.bare = active && str_empty(holder),
	};
	return active ? read_block_device(front, ret, err) : 0;
}

/* libndctl leaves out a namespace of which it cannot read something, such as for want of a descriptor. */
static int check_complete(const char *region, size_t n_yielded, struct error **err)
{
	CLEANUP(strv_freep) char **names = NULL;
	size_t n = 0;

	if (list_folder(region, ".", &names, err) < 0)
		return -1;
	for (char **name = names; *name; name++)
		n += str_starts(*name, "namespace") && strchr(*name, '.');
	if (n == n_yielded)
		return 0;
	return err_set(err, ERR_UNAVAILABLE, "%s has %zu namespaces, of which libndctl shows %zu", region, n,
		n_yielded);
}

static int read_namespaces(struct ndctl_region *region, struct nd_region *r, struct error **err)
{
	struct ndctl_namespace *ndns;
	size_t n_yielded = 0;

	ndctl_namespace_foreach(region, ndns)
	{
		n_yielded++;
		/* seeds, and what a failed creation has left */
		if (ndctl_namespace_get_size(ndns) == 0)
			continue;
		r->namespaces = x_realloc(r->namespaces, r->n_namespaces + 1, sizeof(*r->namespaces));
		r->namespaces[r->n_namespaces] = (struct nd_namespace){0};
		if (read_namespace(region, ndns, &r->namespaces[r->n_namespaces++], err) < 0)
			return -1;
	}
	nd_region_sort(r);
	return check_complete(r->name, n_yielded, err);
}

static uint64_t known(unsigned long long bytes, uint64_t otherwise)
{
	return bytes == ULLONG_MAX ? otherwise : bytes;
}

/* Bus and region numbers are given anew at each boot; the cookie is made of what the modules are. */
static char *read_identity(struct ndctl_bus *bus, struct ndctl_region *region)
{
	struct ndctl_interleave_set *set = ndctl_region_get_interleave_set(region);
	unsigned long long cookie = set ? ndctl_interleave_set_get_cookie(set) : 0;

	if (cookie)
		return x_asprintf("iset-%016llx", cookie);
	return x_asprintf("%s/%s", ndctl_bus_get_provider(bus), ndctl_region_get_devname(region));
}

static unsigned read_free_labels(struct ndctl_region *region)
{
	unsigned least = UINT_MAX;
	struct ndctl_dimm *dimm;

	ndctl_dimm_foreach_in_region(region, dimm)
	{
		unsigned long n = ndctl_dimm_get_available_labels(dimm);
		if (n < least)
			least = (unsigned)n;
	}
	return least;
}

/* Without libndctl: ndctl_dimm_read_label_index() waits for udev, and what ndctl_dimm_cmd_new_cfg_read()
 * allocates, a whole label area, is never freed. Return: whether @ret was read. */
static bool read_label_index(struct ndctl_dimm *dimm, uint8_t ret[static INDEX_BYTES])
{
	CLEANUP(free_charp) char *path = x_asprintf("/dev/%s", ndctl_dimm_get_devname(dimm));
	CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	union {
		struct nd_cmd_get_config_data_hdr header;
		uint8_t bytes[sizeof(struct nd_cmd_get_config_data_hdr) + INDEX_BYTES];
	} cmd = {.header.in_length = INDEX_BYTES};

	if (fd < 0 || ioctl(fd, ND_IOCTL_GET_CONFIG_DATA, &cmd) < 0 || cmd.header.status != 0)
		return false;
	memcpy(ret, cmd.bytes + sizeof(cmd.header), INDEX_BYTES);
	return true;
}

/* As btt_claim_class() of drivers/nvdimm/namespace_devs.c, which wants the same version on all modules. */
uint64_t nd_btt_start(struct ndctl_region *region)
{
	struct ndctl_dimm *dimm = ndctl_region_get_first_dimm(region);
	uint8_t index[INDEX_BYTES];

	if (!dimm || !read_label_index(dimm, index) ||
		memcmp(index, INDEX_SIGNATURE, sizeof(INDEX_SIGNATURE)) != 0)
		return BTT_START_OLD_BYTES;

	unsigned major = index[INDEX_MAJOR_AT] | (unsigned)index[INDEX_MAJOR_AT + 1] << 8;
	unsigned minor = index[INDEX_MINOR_AT] | (unsigned)index[INDEX_MINOR_AT + 1] << 8;
	return major == 1 && minor == 1 ? BTT_START_OLD_BYTES : 0;
}

static int read_region(
	struct ndctl_bus *bus, struct ndctl_region *region, struct nd_region *ret, struct error **err)
{
	const char *name = ndctl_region_get_devname(region);

	*ret = (struct nd_region){
		.bus = x_strdup(ndctl_bus_get_devname(bus)),
		.name = x_strdup(name),
		.identity = read_identity(bus, region),
		.size_bytes = ndctl_region_get_size(region),
		.available_bytes = known(ndctl_region_get_available_size(region), 0),
		.align_bytes = known(ndctl_region_get_align(region), 0),
		.pfn_align_bytes = nd_seed_align(name),
		.btt_start_bytes = nd_btt_start(region),
		.free_labels = read_free_labels(region),
		.ways = ndctl_region_get_interleave_ways(region),
		.numa_node = ndctl_region_get_numa_node(region),
		.is_pmem = ndctl_region_get_type(region) == ND_DEVICE_REGION_PMEM,
		.enabled = is_bound(name),
		.readonly = ndctl_region_get_ro(region) != 0,
		.has_labels = ndctl_region_get_nstype(region) == ND_DEVICE_NAMESPACE_PMEM,
	};

	ret->max_extent_bytes = known(ndctl_region_get_max_available_extent(region), ret->available_bytes);
	return read_namespaces(region, ret, err);
}

struct region_key {
	unsigned bus;
	unsigned region;
	struct ndctl_bus *ndctl_bus;
	struct ndctl_region *ndctl_region;
};

static int compare_keys(const void *a, const void *b)
{
	const struct region_key *x = a;
	const struct region_key *y = b;

	if (x->bus != y->bus)
		return x->bus < y->bus ? -1 : 1;
	return x->region < y->region ? -1 : x->region > y->region;
}

/* libndctl lists in the order of the directory. Return: keys in the order of numbers; caller frees. */
static struct region_key *sorted_regions(struct ndctl_ctx *ctx, size_t *ret_n)
{
	struct region_key *keys = NULL;
	struct ndctl_bus *bus;
	struct ndctl_region *region;
	size_t n = 0;

	ndctl_bus_foreach(ctx, bus)
	{
		ndctl_region_foreach(bus, region)
		{
			keys = x_realloc(keys, n + 1, sizeof(*keys));
			keys[n++] = (struct region_key){
				ndctl_bus_get_id(bus), ndctl_region_get_id(region), bus, region};
		}
	}
	if (n)
		qsort(keys, n, sizeof(*keys), compare_keys);
	*ret_n = n;
	return keys;
}

static int read_all(struct nd_inventory **ret, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = x_calloc(1, sizeof(*inv));
	CLEANUP(nd_context_freep) struct ndctl_ctx *ctx = NULL;
	size_t n = 0;
	int rc = 0;

	if (nd_context_new(&ctx, err) < 0)
		return -1;

	struct region_key *keys = sorted_regions(ctx, &n);
	inv->regions = x_calloc(n, sizeof(*inv->regions));
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = read_region(
			keys[i].ndctl_bus, keys[i].ndctl_region, &inv->regions[inv->n_regions++], err);
	free(keys);
	if (rc < 0)
		return -1;
	*ret = TAKE_PTR(inv);
	return 0;
}

int nd_list_read(struct nd_inventory **ret, struct error **err)
{
	CLEANUP(error_freep) struct error *first = NULL;

	/* others may have made or destroyed one meanwhile: they do not take our lock */
	if (read_all(ret, &first) == 0 || read_all(ret, err) == 0)
		return 0;
	(*err)->code = ERR_UNAVAILABLE;
	return -1;
}
