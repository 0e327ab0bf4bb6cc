/* SPDX-License-Identifier: Apache-2.0 */
/* RegisterControllerRequest, checked. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/names.h"
#include "base/str.h"
#include "net/core/addr.h"
#include "nodes/registry_private.h"
#include "pmem/namespace_layout.h"
#include "volume/claim.h"
#include "volume/id.h"

/* Far more than any class allows. */
#define PAUSE_MAX_MS (24 * 3600 * MS_PER_S)

static int check_text(const char *what, const char *text, size_t max, struct error **err)
{
	if (strlen(text) > max)
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is longer than %zu bytes", what, max);
	for (; *text; text++) {
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return err_set(err, ERR_INVALID_ARGUMENT, "%s has a control character", what);
	}
	return 0;
}

/* One address has one text, so that two nodes with one address are noticed. */
static int check_form(const char *endpoint, const struct addr *a, struct error **err)
{
	CLEANUP(free_charp) char *usual = addr_format(a);

	if (str_eq(endpoint, usual))
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT,
		"endpoint \"%s\" is not in the usual form, which is %s: give that", endpoint, usual);
}

static int check_endpoint(const char *endpoint, struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};
	bool usable;

	if (check_text("endpoint", endpoint, REGISTRY_MAX_TEXT, err) < 0 || addr_parse(endpoint, &a, err) < 0)
		return -1;
	/* The path of a socket, no host or no port at all would be somewhere on the controller's own host. */
	usable = !a.is_unix && !str_empty(a.host) && a.port != 0;
	if (!usable)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"endpoint \"%s\" is not an address that can be reached from elsewhere", endpoint);
	return check_form(endpoint, &a, err);
}

static int check_head(const Registry__V0__RegisterControllerRequest *m, struct error **err)
{
	if (str_empty(m->node_id))
		return err_set(err, ERR_INVALID_ARGUMENT, "node_id is empty");
	if (str_empty(m->endpoint))
		return err_set(err, ERR_INVALID_ARGUMENT, "endpoint is empty");
	if (check_text("node_id", m->node_id, REGISTRY_MAX_NODE_ID, err) < 0 ||
		check_endpoint(m->endpoint, err) < 0 ||
		check_text("device_mode", m->device_mode, REGISTRY_MAX_TEXT, err) < 0 ||
		check_text("version", m->version, REGISTRY_MAX_TEXT, err) < 0 ||
		check_text("boot_id", m->boot_id, REGISTRY_MAX_TEXT, err) < 0 ||
		check_text("instance", m->instance, REGISTRY_MAX_TEXT, err) < 0 ||
		check_text("driver_name", m->driver_name, REGISTRY_MAX_TEXT, err) < 0)
		return -1;
	if (m->lease_seconds == 0)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"lease_seconds of node \"%s\" is 0: its driver is too old, and has to be replaced by one "
			"of the controller's release or of the release before",
			m->node_id);
	if (m->n_regions > REGISTRY_MAX_REGIONS)
		return err_set(err, ERR_INVALID_ARGUMENT, "more than %d regions", REGISTRY_MAX_REGIONS);
	if (m->inventory && m->inventory->n_volumes > REGISTRY_MAX_VOLUMES)
		return err_set(err, ERR_INVALID_ARGUMENT, "more than %d volumes", REGISTRY_MAX_VOLUMES);
	return 0;
}

/* A durability that a later release reports is not known here. */
static enum durability read_durability(Registry__V0__RegionCapacity__Durability durability)
{
	switch (durability) {
	case REGISTRY__V0__REGION_CAPACITY__DURABILITY__SYNCHRONOUS:
		return DURABILITY_SYNCHRONOUS;
	case REGISTRY__V0__REGION_CAPACITY__DURABILITY__FSYNC:
		return DURABILITY_FSYNC;
	case REGISTRY__V0__REGION_CAPACITY__DURABILITY__UNTRIED:
	case _REGISTRY__V0__REGION_CAPACITY__DURABILITY_IS_INT_SIZE:
		break;
	}
	return DURABILITY_UNKNOWN;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Amounts of one pool that contradict each other are cut to the smaller one, since the report of a driver is
 * made while volumes come and go. */
static int read_amounts(const Registry__V0__RegionCapacity *m, struct pool_report *ret, struct error **err)
{
	uint64_t available_bytes = smaller(m->available_bytes, m->total_bytes);

	if (m->total_bytes > NODE_BYTES_MAX || m->region_bytes > NODE_BYTES_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "region %s is larger than any memory", m->name);
	ret->capacity = (struct capacity){m->total_bytes, available_bytes,
		smaller(m->max_volume_bytes, available_bytes),
		smaller(m->max_sector_volume_bytes, available_bytes)};
	ret->region_bytes = m->region_bytes;
	ret->erasing_bytes = smaller(m->erasing_bytes, m->total_bytes);
	for (size_t i = 0; i < ret->n_free_extents; i++)
		ret->free_extent_bytes[i] = smaller(m->free_extent_bytes[i], m->total_bytes);
	return 0;
}

static int read_pool(const Registry__V0__RegionCapacity *m, struct pool_report *ret, struct error **err)
{
	if (check_text("name of a region", m->name, REGISTRY_MAX_TEXT, err) < 0)
		return -1;
	if (m->n_free_extent_bytes > LAYOUT_EXTENTS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "more than %d free extents", LAYOUT_EXTENTS_MAX);
	*ret = (struct pool_report){.name = x_strdup(m->name),
		.rules = {m->unit_bytes, m->map_align_bytes, m->btt_start_bytes},
		.durability = read_durability(m->durability),
		.n_free_extents = m->n_free_extent_bytes,
		.incomplete = m->incomplete};
	if (read_amounts(m, ret, err) < 0) {
		pool_report_done(ret);
		return -1;
	}
	return 0;
}

static enum volume_phase read_phase(Registry__V0__InventoryVolume__Phase phase)
{
	switch (phase) {
	case REGISTRY__V0__INVENTORY_VOLUME__PHASE__CREATING:
		return PHASE_CREATING;
	case REGISTRY__V0__INVENTORY_VOLUME__PHASE__READY:
		return PHASE_READY;
	case REGISTRY__V0__INVENTORY_VOLUME__PHASE__ERASING:
		return PHASE_ERASING;
	case REGISTRY__V0__INVENTORY_VOLUME__PHASE__MISSING:
		return PHASE_MISSING;
	case REGISTRY__V0__INVENTORY_VOLUME__PHASE__UNKNOWN:
		return PHASE_DAMAGED;
	case _REGISTRY__V0__INVENTORY_VOLUME__PHASE_IS_INT_SIZE:
		break;
	}
	return PHASE_LATER;
}

static enum volume_dax read_dax(Registry__V0__InventoryVolume__Dax dax)
{
	switch (dax) {
	case REGISTRY__V0__INVENTORY_VOLUME__DAX__NONE:
		return VOLUME_DAX_NONE;
	case REGISTRY__V0__INVENTORY_VOLUME__DAX__IN_FORCE:
		return VOLUME_DAX_UNTRIED;
	case REGISTRY__V0__INVENTORY_VOLUME__DAX__WITH_MAP_SYNC:
		return VOLUME_DAX_SYNCHRONOUS;
	case REGISTRY__V0__INVENTORY_VOLUME__DAX__WITHOUT_MAP_SYNC:
		return VOLUME_DAX_FSYNC;
	case REGISTRY__V0__INVENTORY_VOLUME__DAX__NOT_KNOWN:
	case _REGISTRY__V0__INVENTORY_VOLUME__DAX_IS_INT_SIZE:
		break;
	}
	return VOLUME_DAX_UNKNOWN;
}

/* A condition and an Event show what is wrong: a text of this controller for each reason, since those of a
 * node could say anything. The node's own commands have the details. A reason of a later release is not known
 * here. */
static void read_health(const Registry__V0__InventoryVolume *m, struct volume_health *ret)
{
	for (size_t i = 0; i < m->n_health; i++) {
		const Registry__V0__HealthStatus *s = m->health[i];
		const char *reason = health_reason_known(s->reason);
		bool known = s->severity >= REGISTRY__V0__HEALTH_STATUS__SEVERITY__DEGRADED &&
			     s->severity <= REGISTRY__V0__HEALTH_STATUS__SEVERITY__DATA_LOSS;

		if (!health_find(ret, reason))
			health_add(ret, known ? (enum health_severity)s->severity : HEALTH_DEGRADED, reason,
				"%s", health_reason_text(reason));
	}
}

static void read_snapshot(const Registry__V0__Snapshot *m, struct volume_report *ret)
{
	ret->snapshot = m != NULL;
	ret->source = m && volume_handle_valid(m->source_volume_id) ? x_strdup(m->source_volume_id) : NULL;
	ret->group = m && volume_handle_valid(m->group_snapshot_id) ? x_strdup(m->group_snapshot_id) : NULL;
	ret->taken_s = m ? m->taken_s : 0;
}

/* A progress or pause that is impossible, or too large to be shown, is ignored: it is no reason to refuse the
 * node. */
static void read_copying(const Registry__V0__InventoryVolume *m, struct volume_report *ret)
{
	const Registry__V0__Filling *f = m->filling;
	const Registry__V0__Pause *p = m->pause;

	if (f && ret->phase == PHASE_CREATING && f->done_bytes <= f->total_bytes &&
		f->total_bytes <= INT64_MAX)
		ret->filling = (struct volume_filling){f->done_bytes, f->total_bytes};
	if (p && p->duration_ms <= PAUSE_MAX_MS)
		ret->pause = (struct volume_pause){p->duration_ms, p->ended_ms};
}

static int read_volume(const Registry__V0__InventoryVolume *m, struct volume_report *ret, struct error **err)
{
	if (!volume_handle_valid(m->id))
		return err_set(err, ERR_INVALID_ARGUMENT, "id of a volume is not valid");
	if (!str_empty(m->name) && volume_name_check(m->name, err) < 0)
		return err_wrap(err, "volume %s", m->id);
	if (m->size_bytes > NODE_BYTES_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "volume %s is larger than any memory", m->id);
	*ret = (struct volume_report){.id = x_strdup(m->id),
		.name = x_strdup(m->name),
		.size_bytes = m->size_bytes,
		.phase = read_phase(m->phase),
		.ever_staged = m->ever_staged,
		.made_by_controller = m->made_by_controller,
		.is_inline = m->is_inline,
		.dax = read_dax(m->dax),
		.lacks_sync = m->lacks_map_sync,
		/* one that is no claim's name is no reason to refuse a node */
		.claim = claim_text_valid(m->claim) ? x_strdup(m->claim) : NULL};
	read_snapshot(m->snapshot, ret);
	read_copying(m, ret);
	read_health(m, &ret->health);
	return 0;
}

static int compare_ids(const void *a, const void *b)
{
	const char *const *x = a;
	const char *const *y = b;

	return strcmp(*x, *y);
}

/* A node has a volume once: of two entries one would be lost when the other is deleted. */
static int check_ids(const struct node_report *r, struct error **err)
{
	const char **ids = x_calloc(r->n_volumes, sizeof(*ids));
	const char *twice = NULL;

	for (size_t i = 0; i < r->n_volumes; i++)
		ids[i] = r->volumes[i].id;
	qsort(ids, r->n_volumes, sizeof(*ids), compare_ids);
	for (size_t i = 1; i < r->n_volumes && !twice; i++)
		twice = str_eq(ids[i - 1], ids[i]) ? ids[i] : NULL;
	free(ids);
	return twice ? err_set(err, ERR_INVALID_ARGUMENT, "volume %s is named twice", twice) : 0;
}

static int read_pools(
	Registry__V0__RegionCapacity *const *m, size_t n, struct node_report *r, struct error **err)
{
	r->pools = x_calloc(n, sizeof(*r->pools));
	for (; r->n_pools < n; r->n_pools++) {
		if (read_pool(m[r->n_pools], &r->pools[r->n_pools], err) < 0)
			return -1;
	}
	return 0;
}

/* Volumes whose IDs name another node are not this node's to report: they would become copies of a volume
 * that another node has, for all calls and conditions. */
static int read_inventory(const Registry__V0__Inventory *m, struct node_report *r, struct error **err)
{
	char hash[SHA224_HEX_LEN + 1];
	size_t n_foreign = 0;

	if (!m)
		return 0;
	sha224_hex(r->node_id, strlen(r->node_id), hash);
	hash[NODE_HASH_LEN] = '\0';
	r->has_inventory = true;
	r->volumes = x_calloc(m->n_volumes, sizeof(*r->volumes));
	r->foreign = x_calloc(m->n_volumes + 1, sizeof(*r->foreign));
	for (size_t i = 0; i < m->n_volumes; i++) {
		struct volume_report *v = &r->volumes[r->n_volumes];

		if (read_volume(m->volumes[i], v, err) < 0)
			return -1;
		if (volume_id_fits_node(v->id, hash)) {
			r->n_volumes++;
		} else {
			r->foreign[n_foreign++] = TAKE_PTR(v->id);
			volume_report_done(v);
			*v = (struct volume_report){0};
		}
	}
	return check_ids(r, err);
}

static uint64_t lease_ms(uint32_t seconds)
{
	if (seconds < REGISTRY_MIN_LEASE_S)
		seconds = REGISTRY_MIN_LEASE_S;
	return (seconds > REGISTRY_MAX_LEASE_S ? REGISTRY_MAX_LEASE_S : seconds) * MS_PER_S;
}

int registry_report_read(
	const Registry__V0__RegisterControllerRequest *m, struct node_report **ret, struct error **err)
{
	CLEANUP(node_report_freep) struct node_report *r = NULL;

	if (check_head(m, err) < 0)
		return -1;
	r = x_calloc(1, sizeof(*r));
	r->node_id = x_strdup(m->node_id);
	r->endpoint = x_strdup(m->endpoint);
	r->device_mode = x_strdup(m->device_mode);
	r->version = x_strdup(m->version);
	r->boot_id = x_strdup(m->boot_id);
	r->instance = x_strdup(m->instance);
	/* Objects of the cluster show it as a signed number. */
	if (m->report_number > INT64_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "report_number is larger than a driver can reach");
	r->number = m->report_number;
	r->serves_node_volumes = m->serves_node_volumes;
	r->serves_expansion = m->serves_expansion;
	r->serves_modification = m->serves_modification;
	r->makes_kata_volumes = m->makes_kata_volumes;
	r->makes_direct_volumes = m->makes_direct_volumes;
	r->knows_durability = m->knows_durability;
	r->lease_ms = lease_ms(m->lease_seconds);
	if (read_pools(m->regions, m->n_regions, r, err) < 0 || read_inventory(m->inventory, r, err) < 0)
		return err_wrap(err, "node \"%s\"", m->node_id);
	*ret = TAKE_PTR(r);
	return 0;
}

static int check_caller(const char *node_id, const char *endpoint, const char *instance, struct error **err)
{
	if (str_empty(node_id))
		return err_set(err, ERR_INVALID_ARGUMENT, "node_id is empty");
	if (check_text("node_id", node_id, REGISTRY_MAX_NODE_ID, err) < 0 ||
		check_text("endpoint", endpoint, REGISTRY_MAX_TEXT, err) < 0)
		return -1;
	return check_text("instance", instance, REGISTRY_MAX_TEXT, err);
}

int registry_check_leaving(const Registry__V0__UnregisterControllerRequest *m, struct error **err)
{
	return check_caller(m->node_id, m->endpoint, m->instance, err);
}

int registry_check_asking(const Registry__V0__DescribePodRequest *m, struct error **err)
{
	if (check_caller(m->node_id, m->endpoint, m->instance, err) < 0)
		return -1;
	if (!name_is_object(m->namespace_, NAME_NAMESPACE_MAX))
		return err_set(err, ERR_INVALID_ARGUMENT, "namespace is not the name of one");
	if (!name_is_object(m->name, NAME_OBJECT_MAX))
		return err_set(err, ERR_INVALID_ARGUMENT, "name is not the name of a pod");
	if (str_empty(m->uid))
		return err_set(err, ERR_INVALID_ARGUMENT, "uid is empty");
	return check_text("uid", m->uid, REGISTRY_MAX_TEXT, err);
}
