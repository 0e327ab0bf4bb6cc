/* SPDX-License-Identifier: Apache-2.0 */
#include "resources/pmem_node.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"

#define HASH_DIGITS 16

/* clang-format off */
static const struct kube_field spec_fields[] = {
	KUBE_FIELD("node", KUBE_TEXT, struct pmem_node, node),
	KUBE_FIELD("driver", KUBE_TEXT, struct pmem_node, driver),
	KUBE_FIELDS_END,
};

static const struct kube_field volumes_fields[] = {
	KUBE_FIELD("count", KUBE_QUANTITY, struct pmem_node, n_volumes),
	KUBE_FIELD("inline", KUBE_QUANTITY, struct pmem_node, n_inline),
	KUBE_FIELD("inlineBytes", KUBE_QUANTITY, struct pmem_node, inline_bytes),
	KUBE_FIELD("erasing", KUBE_QUANTITY, struct pmem_node, n_erasing),
	KUBE_FIELD("missing", KUBE_QUANTITY, struct pmem_node, n_missing),
	KUBE_FIELD("damaged", KUBE_QUANTITY, struct pmem_node, n_damaged),
	KUBE_FIELDS_END,
};

static const struct kube_field region_fields[] = {
	KUBE_FIELD("name", KUBE_TEXT, struct pmem_region, name),
	KUBE_FIELD("total", KUBE_QUANTITY, struct pmem_region, total_bytes),
	KUBE_FIELD("managed", KUBE_QUANTITY, struct pmem_region, managed_bytes),
	KUBE_FIELD("available", KUBE_QUANTITY, struct pmem_region, available_bytes),
	KUBE_FIELD("largestVolume", KUBE_QUANTITY, struct pmem_region, max_volume_bytes),
	KUBE_FIELD("largestFileIOVolume", KUBE_QUANTITY, struct pmem_region, max_sector_volume_bytes),
	KUBE_FIELD("erasing", KUBE_QUANTITY, struct pmem_region, erasing_bytes),
	KUBE_FIELD("freeExtents", KUBE_QUANTITY, struct pmem_region, n_free_extents),
	KUBE_FIELD("freeExtentSizes", KUBE_TEXTS, struct pmem_region, free_extents),
	KUBE_FIELD("unit", KUBE_QUANTITY, struct pmem_region, unit_bytes),
	KUBE_FIELD("pageMapAlign", KUBE_QUANTITY, struct pmem_region, map_align_bytes),
	KUBE_FIELD("bttStart", KUBE_QUANTITY, struct pmem_region, btt_start_bytes),
	KUBE_FIELD("complete", KUBE_FLAG, struct pmem_region, complete),
	KUBE_FIELD("durability", KUBE_TEXT, struct pmem_region, durability),
	KUBE_FIELDS_END,
};

static const struct kube_field others_fields[] = {
	KUBE_FIELD("count", KUBE_QUANTITY, struct pmem_node, n_others),
	KUBE_FIELD("managed", KUBE_QUANTITY, struct pmem_node, others_managed_bytes),
	KUBE_FIELD("available", KUBE_QUANTITY, struct pmem_node, others_available_bytes),
	KUBE_FIELDS_END,
};

static const struct kube_field status_fields[] = {
	KUBE_FIELD("deviceMode", KUBE_TEXT, struct pmem_node, device_mode),
	KUBE_FIELD("driverVersion", KUBE_TEXT, struct pmem_node, driver_version),
	KUBE_FIELD("bootID", KUBE_TEXT, struct pmem_node, boot_id),
	KUBE_FIELD("lastContactTime", KUBE_TEXT, struct pmem_node, last_contact),
	KUBE_FIELD("report", KUBE_QUANTITY, struct pmem_node, report),
	KUBE_OBJECT("volumes", volumes_fields),
	KUBE_FIELD("volumesRecordedUntil", KUBE_TEXT, struct pmem_node, recorded_until),
	KUBE_FIELD("newVolumes", KUBE_TEXTS, struct pmem_node, new_volumes),
	KUBE_FIELD("regions", KUBE_ARRAY, struct pmem_node, regions,
		.extent = offsetof(struct pmem_node, n_regions), .fields = region_fields,
		.item_size = sizeof(struct pmem_region)),
	KUBE_OBJECT("otherRegions", others_fields),
	PMEM_CONDITIONS(struct pmem_node, conditions),
	KUBE_FIELDS_END,
};

static const struct kube_field node_fields[] = {
	KUBE_META(labels),
	KUBE_OBJECT("spec", spec_fields),
	KUBE_OBJECT("status", status_fields),
	KUBE_FIELDS_END,
};
/* clang-format on */

const struct kube_kind kube_kind_pmem_nodes = {
	.path = "/apis/" PMEM_API_VERSION "/pmemnodes",
	.what = "pmemnodes",
	.size = sizeof(struct pmem_node),
	.fields = node_fields,
};

char *pmem_node_object_name(const char *node_id, const char *driver_name)
{
	CLEANUP(free_charp) char *name = x_asprintf("%s.%s", node_id, driver_name);
	char hash[SHA224_HEX_LEN + 1];

	if (kube_is_name(name))
		return TAKE_PTR(name);
	sha224_hex(node_id, strlen(node_id), hash);
	return x_asprintf("node-%.*s.%s", HASH_DIGITS, hash, driver_name);
}

struct pmem_region *pmem_node_add_region(struct pmem_node *n, const char *name)
{
	struct pmem_region *r;

	n->regions = x_realloc(n->regions, n->n_regions + 1, sizeof(*n->regions));
	r = &n->regions[n->n_regions++];
	*r = (struct pmem_region){.name = x_strdup(name)};
	return r;
}

static bool region_equal(const struct pmem_region *a, const struct pmem_region *b)
{
	return str_eq(a->name, b->name) && a->total_bytes == b->total_bytes &&
	       a->managed_bytes == b->managed_bytes && a->available_bytes == b->available_bytes &&
	       a->max_volume_bytes == b->max_volume_bytes &&
	       a->max_sector_volume_bytes == b->max_sector_volume_bytes &&
	       a->erasing_bytes == b->erasing_bytes && a->n_free_extents == b->n_free_extents &&
	       a->unit_bytes == b->unit_bytes && a->map_align_bytes == b->map_align_bytes &&
	       a->btt_start_bytes == b->btt_start_bytes && a->complete == b->complete &&
	       str_eq(a->durability, b->durability) && strv_eq(a->free_extents, b->free_extents);
}

static bool regions_equal(const struct pmem_node *a, const struct pmem_node *b)
{
	for (size_t i = 0; i < a->n_regions && i < b->n_regions; i++) {
		if (!region_equal(&a->regions[i], &b->regions[i]))
			return false;
	}
	return a->n_regions == b->n_regions;
}

bool pmem_node_equal(const struct pmem_node *a, const struct pmem_node *b)
{
	return str_eq(a->node, b->node) && str_eq(a->driver, b->driver) &&
	       str_eq(a->device_mode, b->device_mode) && str_eq(a->driver_version, b->driver_version) &&
	       str_eq(a->boot_id, b->boot_id) && a->report == b->report && a->n_volumes == b->n_volumes &&
	       a->n_inline == b->n_inline && a->inline_bytes == b->inline_bytes &&
	       a->n_erasing == b->n_erasing && a->n_missing == b->n_missing && a->n_damaged == b->n_damaged &&
	       a->n_others == b->n_others && a->others_managed_bytes == b->others_managed_bytes &&
	       a->others_available_bytes == b->others_available_bytes && regions_equal(a, b) &&
	       pmem_conditions_equal(&a->conditions, &b->conditions);
}

static void begin_object(struct json_writer *w, const struct pmem_node *n)
{
	json_object(w);
	json_key_str(w, "apiVersion", PMEM_API_VERSION);
	json_key_str(w, "kind", "PmemNode");
	json_key(w, "metadata");
	json_object(w);
	json_key_str(w, "name", n->meta.name);
}

void pmem_node_write_spec(const struct pmem_node *n, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	begin_object(&w, n);
	json_key(&w, "labels");
	json_object(&w);
	json_key_str(&w, PMEM_LABEL_DRIVER, n->driver);
	json_object_end(&w);
	json_object_end(&w);
	json_key(&w, "spec");
	json_object(&w);
	json_key_str(&w, "node", n->node);
	json_key_str(&w, "driver", n->driver);
	json_object_end(&w);
	json_object_end(&w);
}

static void add_texts(struct json_writer *w, const char *key, char *const *texts)
{
	if (!texts)
		return;
	json_key(w, key);
	json_array(w);
	for (; *texts; texts++)
		json_str(w, *texts);
	json_array_end(w);
}

static void add_region(struct json_writer *w, const struct pmem_region *r)
{
	json_object(w);
	json_key_str(w, "name", r->name);
	if (r->total_bytes > 0)
		json_key_bytes(w, "total", r->total_bytes);
	json_key_bytes(w, "managed", r->managed_bytes);
	json_key_bytes(w, "available", r->available_bytes);
	json_key_bytes(w, "largestVolume", r->max_volume_bytes);
	json_key_bytes(w, "largestFileIOVolume", r->max_sector_volume_bytes);
	json_key_bytes(w, "erasing", r->erasing_bytes);
	json_key_u64(w, "freeExtents", r->n_free_extents);
	add_texts(w, "freeExtentSizes", r->free_extents);
	if (r->unit_bytes > 0)
		json_key_bytes(w, "unit", r->unit_bytes);
	if (r->map_align_bytes > 0)
		json_key_bytes(w, "pageMapAlign", r->map_align_bytes);
	if (r->btt_start_bytes > 0)
		json_key_bytes(w, "bttStart", r->btt_start_bytes);
	json_key_bool(w, "complete", r->complete);
	json_key_known(w, "durability", r->durability);
	json_object_end(w);
}

/* Rounded, for the columns of kubectl get; the exact amounts are those of the regions. */
static void add_summary(struct json_writer *w, const struct pmem_node *n)
{
	char text[24];
	uint64_t managed = n->others_managed_bytes;
	uint64_t available = n->others_available_bytes;
	uint64_t largest = 0;

	for (size_t i = 0; i < n->n_regions; i++) {
		const struct pmem_region *r = &n->regions[i];

		managed += r->managed_bytes;
		available += r->available_bytes;
		if (r->max_volume_bytes > largest)
			largest = r->max_volume_bytes;
	}
	json_key_str(w, "capacity", format_bytes_rounded(managed, text));
	json_key_str(w, "available", format_bytes_rounded(available, text));
	json_key_str(w, "largestVolume", format_bytes_rounded(largest, text));
}

static void add_others(struct json_writer *w, const struct pmem_node *n)
{
	if (n->n_others == 0)
		return;
	json_key(w, "otherRegions");
	json_object(w);
	json_key_u64(w, "count", n->n_others);
	json_key_bytes(w, "managed", n->others_managed_bytes);
	json_key_bytes(w, "available", n->others_available_bytes);
	json_object_end(w);
}

static void add_volumes(struct json_writer *w, const struct pmem_node *n)
{
	json_key(w, "volumes");
	json_object(w);
	json_key_u64(w, "count", n->n_volumes);
	json_key_u64(w, "inline", n->n_inline);
	json_key_bytes(w, "inlineBytes", n->inline_bytes);
	json_key_u64(w, "erasing", n->n_erasing);
	json_key_u64(w, "missing", n->n_missing);
	json_key_u64(w, "damaged", n->n_damaged);
	json_object_end(w);
}

void pmem_node_write_status(const struct pmem_node *n, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	begin_object(&w, n);
	json_object_end(&w);
	json_key(&w, "status");
	json_object(&w);
	json_key_known(&w, "deviceMode", n->device_mode);
	json_key_known(&w, "driverVersion", n->driver_version);
	json_key_known(&w, "bootID", n->boot_id);
	json_key_known(&w, "lastContactTime", n->last_contact);
	json_key_u64(&w, "report", n->report);
	add_summary(&w, n);
	add_volumes(&w, n);
	json_key_known(&w, "volumesRecordedUntil", n->recorded_until);
	add_texts(&w, "newVolumes", n->new_volumes);
	json_key(&w, "regions");
	json_array(&w);
	for (size_t i = 0; i < n->n_regions; i++)
		add_region(&w, &n->regions[i]);
	json_array_end(&w);
	add_others(&w, n);
	pmem_conditions_write(&w, &n->conditions);
	json_object_end(&w);
	json_object_end(&w);
}

struct pmem_node *pmem_node_dup(const struct pmem_node *n)
{
	struct pmem_node *copy = x_calloc(1, sizeof(*copy));

	copy->meta.name = x_strdup(n->meta.name);
	copy->node = x_strdup(n->node);
	copy->driver = x_strdup(n->driver);
	copy->device_mode = x_strdup(n->device_mode);
	copy->driver_version = x_strdup(n->driver_version);
	copy->boot_id = x_strdup(n->boot_id);
	copy->last_contact = x_strdup(n->last_contact);
	copy->report = n->report;
	copy->n_volumes = n->n_volumes;
	copy->n_inline = n->n_inline;
	copy->inline_bytes = n->inline_bytes;
	copy->n_erasing = n->n_erasing;
	copy->n_missing = n->n_missing;
	copy->n_damaged = n->n_damaged;
	copy->n_others = n->n_others;
	copy->others_managed_bytes = n->others_managed_bytes;
	copy->others_available_bytes = n->others_available_bytes;
	copy->recorded_until = x_strdup(n->recorded_until);
	copy->new_volumes = strv_dup(n->new_volumes);
	for (size_t i = 0; i < n->n_regions; i++) {
		struct pmem_region *r = pmem_node_add_region(copy, n->regions[i].name);
		char *name = r->name;

		*r = n->regions[i];
		r->name = name;
		r->free_extents = strv_dup(n->regions[i].free_extents);
		r->durability = x_strdup(n->regions[i].durability);
	}
	return copy;
}

void pmem_node_free(struct pmem_node *n)
{
	kube_object_free(&kube_kind_pmem_nodes, n);
}
