/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "cmd_doctor_files.h"
#include "devices.h"
#include "inspect/fit.h"
#include "inspect/inventory.h"
#include "inspect/node_check.h"
#include "os/fs.h"
#include "os/process.h"
#include "pmem/cxl/cxl_regions.h"
#include "pmem/health/dirty_shutdowns.h"
#include "pmem/lvm/lvm_host.h"
#include "pmem/pool/memory_advice.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/usage.h"
#include "regions_and_groups.h"

static const char help[] =
	"usage: pmem-csi-driver doctor [flags]\n"
	"       pmem-csi-driver doctor -size SIZE [-fs TYPE] [-usage USAGE] [-durability NAME] [-block] [flags]\n"
	"       pmem-csi-driver doctor -files [-maxFiles N] [-maxTime DURATION] [flags]\n"
	"\n"
	"Checks whether this node is set up so that volumes can be created, mounted and kept. With -size, it\n"
	"shows instead for each pool whether such a volume could be created now, and if not, why: space,\n"
	"fragments, rounding, durability, label slots, pool share, unfinished deletions, namespaces of other\n"
	"owners. With -files, it shows for each volume whose memory cannot be read everywhere which files\n"
	"that concerns, and what can be done. Their file systems have to be mounted, and are walked through;\n"
	"nothing in them is changed.\n"
	"\n"
	"Exit status: 0 no problem, or the volume can be created; 1 problems, the volume cannot be\n"
	"created, or memory cannot be read; 2 wrong usage; 3 the node cannot be examined completely: run\n"
	"the command as root.\n";

#define NO_SIZE UINT64_MAX /* more than a quantity can be */

#define MAX_FILES   1000000
#define MAX_TIME_MS 60000

struct doctor_args {
	struct command c;
	uint64_t size_bytes; /* NO_SIZE: the node is examined */
	const char *fs_type;
	const char *usage_text; /* NULL: not given */
	enum volume_usage usage;
	const char *durability; /* NULL: not given */
	bool block;
	bool files;
	uint32_t max_files; /* 0: not given, as for the time */
	uint64_t max_time_ms;
};

static void write_node_text(const struct node_findings *f, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++)
		buf_addf(out, "%-8s %-16s %s\n", node_level_name(f->list[i].level), f->list[i].name,
			f->list[i].text);
	buf_addf(out, "%zu problems\n", f->n_problems);
	if (f->n_unknown > 0)
		buf_addf(out, "%zu things could not be checked\n", f->n_unknown);
}

static void write_node_json(const struct node_findings *f, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key_u64(&w, "problems", f->n_problems);
	json_key_u64(&w, "unknown", f->n_unknown);
	json_key(&w, "checks");
	json_array(&w);
	for (size_t i = 0; i < f->n; i++) {
		json_object(&w);
		json_key_str(&w, "name", f->list[i].name);
		json_key_str(&w, "level", node_level_name(f->list[i].level));
		json_key_str(&w, "text", f->list[i].text);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}

/* @view: check_view_done(). Return: whether they could be counted. */
static bool count_volumes(const struct doctor_args *a, struct check_view *view, struct inventory_counts *ret,
	struct error **ret_why)
{
	CLEANUP(device_closep) struct device_manager *devices = NULL;

	if (command_look(&a->c, &devices, view, ret_why) < 0)
		return false;
	inventory_count(view, ret);
	return true;
}

/* If regions and groups cannot be listed, the node is checked without them, because that failure is a reason
 * to run "doctor". */
static void read_node(const struct doctor_args *a, const char *state_path, struct regions_and_groups *map,
	pid_t *holder, struct error **ret_why)
{
	CLEANUP(error_freep) struct error *ignored_too = NULL;
	CLEANUP(state_closep) struct state_store *store = NULL;

	if (regions_and_groups_read(&a->c.o, map, ret_why) < 0)
		*map = (struct regions_and_groups){0};
	if (state_open_read(state_path, &store, &ignored_too) == 0)
		(void)!state_holder(store, holder, &ignored_too);
}

/* Where regions cannot be listed, other memory is looked at. Return: whether it could be. CXL devices that
 * cannot be read are left out. */
static bool advise_on_memory(const struct doctor_args *a, const char *state_path,
	const struct nd_inventory *regions, const struct dimms *modules, struct memory_advices *ret)
{
	CLEANUP(free_charp) char *folder = pool_backup_folder(state_path);
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(error_freep) struct error *ignored_too = NULL;
	CLEANUP(cxl_topology_done) struct cxl_topology cxl = {0};
	CLEANUP(hidden_memories_done) struct hidden_memories hidden = {0};
	CLEANUP(nd_closep) struct nd *nd = NULL;
	struct memory_devices devices = {.hidden = &hidden, .modules = modules};

	if (str_eq(a->c.o.device_manager, "fake") || (regions && nd_open_real(&nd, &ignored) < 0))
		return false;
	hidden_memories_find("", &hidden);
	if (cxl_real() && cxl_read(cxl_real(), &cxl, &ignored_too) == 0)
		devices.cxl = &cxl;
	return memory_advise(nd, folder, regions, &devices, ret, &ignored) == 0;
}

/* Return: whether they could be listed. Counts that cannot be compared have not changed. */
static bool read_dimms(const struct doctor_args *a, const char *state_path, struct dimms *ret)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(error_freep) struct error *ignored_too = NULL;

	if (str_eq(a->c.o.device_manager, "fake") || dimms_read(ret, &ignored) < 0)
		return false;
	(void)!dirty_shutdowns_compare(state_path, /* record= */ false, ret, &ignored_too);
	return true;
}

/* Return: whether they could be read. Only direct mode has volumes that the host's LVM may look into. */
static bool read_host_lvm(const struct doctor_args *a, struct lvm_host *ret, struct error **ret_why)
{
	const char *root = process_host_root();

	return root && str_eq(a->c.o.device_manager, "direct") && lvm_host_read(root, ret, ret_why) == 0;
}

/* Return: whether they could be looked at. */
static bool look_at_cxl(
	const struct doctor_args *a, const char *state_path, struct cxl_findings *ret, struct error **ret_why)
{
	return !str_eq(a->c.o.device_manager, "fake") && cxl_regions_look(state_path, ret, ret_why) == 0;
}

static int examine_node(const struct doctor_args *a, struct error **err)
{
	CLEANUP(free_charp) char *state_path = options_state_path(&a->c.o);
	CLEANUP(mount_table_freep) struct mount_table *mounts = NULL;
	CLEANUP(regions_and_groups_done) struct regions_and_groups map = {0};
	CLEANUP(node_findings_done) struct node_findings f = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(COMMAND_OUTPUT_MAX);
	CLEANUP(error_freep) struct error *why = NULL;
	CLEANUP(error_freep) struct error *not_counted = NULL;
	CLEANUP(error_freep) struct error *not_looked_at = NULL;
	CLEANUP(dimms_done) struct dimms dimms = {0};
	CLEANUP(memory_advices_done) struct memory_advices memory = {0};
	CLEANUP(check_view_done) struct check_view view = {0};
	CLEANUP(cxl_findings_done) struct cxl_findings cxl = {0};
	CLEANUP(lvm_host_done) struct lvm_host host_lvm = {0};
	CLEANUP(error_freep) struct error *not_read = NULL;
	struct inventory_counts volumes = {0};
	pid_t holder = 0;

	if (mount_table_read(&mounts, err) < 0)
		return COMMAND_BLIND;
	read_node(a, state_path, &map, &holder, &why);
	if (command_check_place(&a->c, holder, err) < 0)
		return COMMAND_BLIND;
	bool counted = count_volumes(a, &view, &volumes, &not_counted);
	bool dimms_known = read_dimms(a, state_path, &dimms);
	bool memory_known =
		advise_on_memory(a, state_path, map.regions, dimms_known ? &dimms : NULL, &memory);
	bool cxl_known = look_at_cxl(a, state_path, &cxl, &not_looked_at);
	bool host_lvm_known = read_host_lvm(a, &host_lvm, &not_read);
	const struct node_check_config config = {.root = "",
		.mode = a->c.o.device_manager,
		.state_path = state_path,
		.kubelet_dirs = a->c.o.kubelet_dirs,
		.direct_volumes_dir = a->c.o.direct_volumes_dir,
		.mounts = mounts,
		.regions = map.regions,
		.groups = map.report,
		.host_lvm = host_lvm_known ? &host_lvm : NULL,
		.host_lvm_problem = not_read ? not_read->msg : NULL,
		.memory = memory_known ? &memory : NULL,
		.dimms = dimms_known ? &dimms : NULL,
		.durabilities = counted ? &view.durabilities : NULL,
		.cxl = cxl_known ? &cxl : NULL,
		.cxl_problem = not_looked_at ? not_looked_at->msg : NULL,
		.regions_problem = why ? why->msg : NULL,
		.user = geteuid(),
		.holder = holder,
		.not_ready = a->c.setup.not_ready,
		.volumes = counted ? &volumes : NULL,
		.volumes_problem = counted ? NULL : not_counted->msg};
	node_check(&config, &f);
	if (a->c.json)
		write_node_json(&f, &out);
	else
		write_node_text(&f, &out);
	if (f.n_problems == 0 && f.n_unknown > 0)
		return command_print("doctor", &out, COMMAND_BLIND);
	return command_print("doctor", &out, f.n_problems > 0 ? COMMAND_MISMATCH : COMMAND_OK);
}

static void write_answer_text(const struct device_pool *p, const struct fit_answer *a, struct buf *out)
{
	char size[24];

	if (a->size_bytes == UINT64_MAX)
		buf_addf(out, "%s: NO\n", p->name);
	else
		buf_addf(out, "%s: yes, with %ju bytes (%s)\n", p->name, (uintmax_t)a->size_bytes,
			format_bytes(a->size_bytes, size));
	for (size_t i = 0; i < a->n_reasons; i++)
		buf_addf(out, "  %s: %s\n", fit_kind_name(a->reasons[i].kind), a->reasons[i].text);
}

static void json_answer(
	const struct device_pool *p, bool sector, const struct fit_answer *a, struct json_writer *w)
{
	json_object(w);
	json_key_str(w, "pool", p->name);
	json_key_str(w, "uuid", p->uuid);
	json_key_bool(w, "fits", a->size_bytes != UINT64_MAX);
	json_key_u64(w, "neededBytes", a->needed_bytes);
	if (a->size_bytes != UINT64_MAX)
		json_key_u64(w, "sizeBytes", a->size_bytes);
	json_key_u64(w, "freeBytes", p->capacity.available_bytes);
	json_key_u64(w, "largestBytes", capacity_max_bytes(&p->capacity, sector));
	json_key_u64(w, "unitBytes", p->rules.unit_bytes);
	json_key(w, "reasons");
	json_array(w);
	for (size_t i = 0; i < a->n_reasons; i++) {
		json_object(w);
		json_key_str(w, "kind", fit_kind_name(a->reasons[i].kind));
		json_key_u64(w, "bytes", a->reasons[i].bytes);
		json_key_str(w, "text", a->reasons[i].text);
		json_object_end(w);
	}
	json_array_end(w);
	json_object_end(w);
}

static bool write_answers(
	const struct fit_node *node, const struct fit_request *q, bool json, struct buf *out)
{
	const struct device_list *l = node->view->devices;
	struct json_writer w = JSON_WRITER(out);
	bool fits = false;

	if (json) {
		json_document(&w);
		json_key_u64(&w, "requestedBytes", q->size_bytes);
		json_key(&w, "pools");
		json_array(&w);
	}
	for (size_t i = 0; i < l->n_pools; i++) {
		CLEANUP(fit_answer_done) struct fit_answer a = {0};
		fit_explain(node, q, i, &a);
		fits = fits || a.size_bytes != UINT64_MAX;
		if (json)
			json_answer(&l->pools[i], q->sector, &a, &w);
		else
			write_answer_text(&l->pools[i], &a, out);
	}
	if (json) {
		json_array_end(&w);
		json_key_bool(&w, "creatable", fits);
		json_object_end(&w);
		buf_addc(out, '\n');
	} else {
		buf_adds(out, l->n_pools == 0 ? no_pools_remedy(node->regions)
			      : fits          ? "it can be created here\n"
					      : "it cannot be created here\n");
	}
	return fits;
}

static int explain_size(const struct doctor_args *a, struct error **err)
{
	const struct fit_request q = {.size_bytes = a->size_bytes,
		.fs_type = a->fs_type,
		.sector = a->usage == USAGE_FILE_IO,
		.sync = durability_needs_sync(volume_usage_name(a->usage), a->durability),
		.block = a->block};
	CLEANUP(device_closep) struct device_manager *devices = NULL;
	CLEANUP(check_view_done) struct check_view view = {0};
	CLEANUP(regions_and_groups_done) struct regions_and_groups map = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(COMMAND_OUTPUT_MAX);

	if (command_look(&a->c, &devices, &view, err) < 0 || regions_and_groups_read(&a->c.o, &map, err) < 0)
		return COMMAND_BLIND;
	const struct fit_node node = {
		.manager = devices, .view = &view, .regions = map.regions, .report = map.report};
	bool fits = write_answers(&node, &q, a->c.json, &out);
	return command_print("doctor", &out, fits ? COMMAND_OK : COMMAND_MISMATCH);
}

static int show_files(const struct doctor_args *a, struct error **err)
{
	const struct fs_owners_bound bound = {.max_files = a->max_files ? a->max_files : MAX_FILES,
		.deadline_ns = clock_ns() + (a->max_time_ms ? a->max_time_ms : MAX_TIME_MS) * NS_PER_MS};

	return doctor_show_files(&a->c, &bound, err);
}

static int check_usage(struct doctor_args *a, struct error **err)
{
	if (a->files && a->size_bytes != NO_SIZE)
		return err_set(err, ERR_INVALID_ARGUMENT, "-files cannot be used with -size");
	if (!a->files && (a->max_files || a->max_time_ms))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-maxFiles and -maxTime can only be used with -files");
	if (a->size_bytes == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "-size must be more than 0");
	if (a->size_bytes == NO_SIZE && (a->fs_type || a->usage_text || a->durability || a->block))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-fs, -usage, -durability and -block can only be used with -size");
	a->fs_type = a->fs_type ? a->fs_type : "ext4";
	if (!fs_known(a->fs_type))
		return err_set(err, ERR_INVALID_ARGUMENT, "-fs must be ext4 or xfs, not \"%s\"", a->fs_type);
	if (a->usage_text && !volume_usage_parse(a->usage_text, &a->usage))
		return err_set(err, ERR_INVALID_ARGUMENT, "-usage must be AppDirect or FileIO, not \"%s\"",
			a->usage_text);
	if (a->durability && durability_parse(a->durability) == DURABILITY_UNKNOWN)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-durability must be synchronous or fsync, not \"%s\"", a->durability);
	return 0;
}

int cmd_doctor(int argc, char **argv)
{
	struct doctor_args a = {.c = command_init(), .size_bytes = NO_SIZE};
	const struct opt table[] = {
		{"size", OPT_SIZE, &a.size_bytes, "SIZE",
			"explain whether a volume of this size can be created (default: check the node)"},
		{"fs", OPT_STR, &a.fs_type, "TYPE", "with -size: ext4 or xfs (default: ext4)"},
		{"usage", OPT_STR, &a.usage_text, "USAGE",
			"with -size: AppDirect or FileIO (default: AppDirect)"},
		{"durability", OPT_STR, &a.durability, "NAME",
			"with -size: synchronous or fsync (default: synchronous)"},
		{"block", OPT_BOOL, &a.block, NULL, "with -size: a raw block volume"},
		{"files", OPT_BOOL, &a.files, NULL, "show which files are in memory that cannot be read"},
		{"maxFiles", OPT_U32, &a.max_files, "N",
			"with -files: look at this many files of each volume (default: 1000000)"},
		{"maxTime", OPT_DURATION, &a.max_time_ms, "DURATION",
			"with -files: look for this long in all (default: 1m)"},
		{"kubeletDir", OPT_STRS, &a.c.o.kubelet_dirs, "DIR", "as for the driver"},
		{"directVolumesDir", OPT_STR, &a.c.o.direct_volumes_dir, "DIR", "as for the driver"},
		COMMAND_FLAGS(&a.c),
		{0},
	};
	CLEANUP(error_freep) struct error *err = NULL;
	int status;

	if (!command_parse(&a.c, table, argc, argv, help, &status))
		goto out;
	status = COMMAND_USAGE;
	if (check_usage(&a, &err) == 0) {
		if (a.files)
			status = show_files(&a, &err);
		else
			status = a.size_bytes != NO_SIZE ? explain_size(&a, &err) : examine_node(&a, &err);
	}
	if (err) {
		process_note_not_root(&err);
		command_fail("doctor", err, status);
	}
out:
	command_done(&a.c);
	return status;
}
