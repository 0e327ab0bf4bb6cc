/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/json/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "commands.h"
#include "devices.h"
#include "inspect/check.h"
#include "inspect/repair.h"
#include "os/process.h"
#include "pmem/device/device.h"
#include "volume/volumes.h"

static const char help[] =
	"usage: pmem-csi-driver check [flags]\n"
	"       pmem-csi-driver check -repair ID [-block|-filesystem|-direct] [flags]\n"
	"       pmem-csi-driver check -forget ID [flags]\n"
	"\n"
	"Compares the state folder with devices, mounts and loop devices, and lists every difference. This\n"
	"changes nothing and may be done while a driver runs; operations in progress then show as\n"
	"mismatches. A note is a difference that is expected, such as what the Go driver leaves behind.\n"
	"\n"
	"-repair and -forget refuse to run while a driver uses the state folder. -repair does what is safe\n"
	"for one volume: it undoes an unfinished creation, finishes a deletion, renames a damaged state file,\n"
	"writes a state file for a device that has none and keeps the content of the device, deletes the state\n"
	"of a volume whose device provably does not exist any more, and corrects what the state file says\n"
	"about the device and its mounts. A device that got its state file in this way is never formatted. If\n"
	"it holds a file system and no image for Kata Containers, nothing on it shows who mounts that: -direct\n"
	"says that guests do, as its PersistentVolume has directVolume=true, and -filesystem that the node does;\n"
	"with -block it becomes a block volume. Devices whose name does not have the form of an ID of this\n"
	"driver or of the Go driver are foreign: they get no state file and are never touched. -forget deletes\n"
	"the state of a volume whose device is missing or foreign, which neither the driver nor -repair does.\n"
	"\n"
	"Exit status: 0 consistent, or repaired; 1 mismatches, or something was not repaired, or there is\n"
	"neither a volume nor a device with that ID; 2 wrong usage; 3 the node cannot be examined: devices\n"
	"cannot be listed, or -repair or -forget was used while a driver uses the state folder.\n";

static const char running[] = "operations that it is carrying out show as mismatches here";

struct check_args {
	struct command c;
	const char *repair;
	const char *forget;
	bool block;
	bool filesystem;
	bool direct;
};

static void write_findings(
	const struct check_view *v, const struct check_findings *f, bool notes, struct buf *out)
{
	for (size_t i = 0; i < f->n; i++) {
		const struct check_finding *x = &f->list[i];

		if (x->is_note != notes)
			continue;
		CLEANUP(free_charp) char *claim = check_claim(v, x->id);
		buf_addf(out, "%s %s: %s%s%s%s\n", notes ? "note    " : "MISMATCH", check_kind_name(x->kind),
			x->id, claim ? " (" : "", claim ? claim : "", claim ? ")" : "");
		buf_addf(out, "         %s\n         -> %s\n", x->text, x->remedy);
	}
}

static void write_text(const struct check_view *v, const struct check_findings *f, struct buf *out)
{
	write_findings(v, f, false, out);
	write_findings(v, f, true, out);
	buf_addf(out, "%zu volumes, %zu devices, %zu pools: %s", v->state.n_records, v->devices->n_devices,
		v->devices->n_pools, f->n_mismatches > 0 ? "" : "consistent");
	if (f->n_mismatches > 0)
		buf_addf(out, "%zu mismatches", f->n_mismatches);
	if (f->n > f->n_mismatches)
		buf_addf(out, ", %zu notes", f->n - f->n_mismatches);
	buf_addc(out, '\n');
	if (v->holder > 0)
		buf_addf(out, "a driver runs (process %ld): %s\n", (long)v->holder, running);
}

static void write_json(const struct check_view *v, const struct check_findings *f, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key_bool(&w, "consistent", f->n_mismatches == 0);
	json_key_str(&w, "statePath", v->state_path);
	json_key_str(&w, "deviceManager", v->mode);
	if (v->holder > 0)
		json_key_u64(&w, "driverProcess", (uint64_t)v->holder);
	json_key_u64(&w, "volumes", v->state.n_records);
	json_key_u64(&w, "devices", v->devices->n_devices);
	json_key_u64(&w, "pools", v->devices->n_pools);
	json_key(&w, "findings");
	json_array(&w);
	for (size_t i = 0; i < f->n; i++) {
		json_object(&w);
		json_key_str(&w, "kind", check_kind_name(f->list[i].kind));
		json_key_str(&w, "severity", f->list[i].is_note ? "note" : "mismatch");
		json_key_str(&w, "id", f->list[i].id);
		CLEANUP(free_charp) char *claim = check_claim(v, f->list[i].id);
		if (claim)
			json_key_str(&w, "claim", claim);
		json_key_str(&w, "text", f->list[i].text);
		json_key_str(&w, "remedy", f->list[i].remedy);
		json_object_end(&w);
	}
	json_array_end(&w);
	json_object_end(&w);
	buf_addc(out, '\n');
}

static int compare(const struct check_args *a, struct error **err)
{
	CLEANUP(device_closep) struct device_manager *devices = NULL;
	CLEANUP(check_view_done) struct check_view v = {0};
	CLEANUP(check_findings_done) struct check_findings f = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(COMMAND_OUTPUT_MAX);

	if (command_look(&a->c, &devices, &v, err) < 0) {
		process_note_not_root(err);
		return COMMAND_BLIND;
	}
	check_compare(&v, &f);
	if (a->c.json)
		write_json(&v, &f, &out);
	else
		write_text(&v, &f, &out);
	return command_print("check", &out, f.n_mismatches > 0 ? COMMAND_MISMATCH : COMMAND_OK);
}

static void json_lines(struct json_writer *w, const char *key, char *const *lines)
{
	json_key(w, key);
	json_array(w);
	for (size_t i = 0; lines && lines[i]; i++)
		json_str(w, lines[i]);
	json_array_end(w);
}

static void write_report_json(const char *id, const struct repair_report *r, struct buf *out)
{
	struct json_writer w = JSON_WRITER(out);

	json_document(&w);
	json_key_str(&w, "id", id);
	json_lines(&w, "done", r->done);
	json_lines(&w, "left", r->left);
	json_object_end(&w);
	buf_addc(out, '\n');
}

static void write_report(const char *id, const struct repair_report *r, struct buf *out)
{
	for (size_t i = 0; r->done && r->done[i]; i++)
		buf_addf(out, "%s: %s\n", id, r->done[i]);
	for (size_t i = 0; r->left && r->left[i]; i++)
		buf_addf(out, "%s: NOT REPAIRED: %s\n", id, r->left[i]);
	if (!r->done && !r->left)
		buf_addf(out, "%s: nothing to repair\n", id);
}

/* The lock of the state folder does not show it: in another mount namespace that path is another folder,
 * where live volumes seem to have no state. */
static int refuse_running(const struct command *c, struct error **err)
{
	if (!c->endpoint || c->setup.not_ready)
		return 0;
	return err_set(err, ERR_PRECONDITION, "the driver at %s runs: stop it first", c->endpoint);
}

static enum adopted_kind kind_of(const struct check_args *a)
{
	if (a->block)
		return ADOPTED_BLOCK;
	if (a->filesystem)
		return ADOPTED_FILESYSTEM;
	return a->direct ? ADOPTED_DIRECT : ADOPTED_AS_FOUND;
}

static int change(const struct check_args *a, struct error **err)
{
	CLEANUP(device_closep) struct device_manager *devices = NULL;
	CLEANUP(free_charp) char *state_path = options_state_path(&a->c.o);
	CLEANUP(buf_done) struct buf out = BUF_INIT(COMMAND_OUTPUT_MAX);
	CLEANUP(repair_report_done) struct repair_report r = {0};

	if (refuse_running(&a->c, err) < 0)
		return COMMAND_BLIND;
	if (devices_open(&a->c.o, DEVICES_CHANGE, &devices, err) < 0) {
		process_note_not_root(err);
		return COMMAND_BLIND;
	}
	const struct volumes_config config = {
		.node_id = "", .state_path = state_path, .devices = devices, .erase_in_call = true};
	CLEANUP(volumes_freep) struct volumes *v = volumes_new(&config);
	const char *id = a->repair ? a->repair : a->forget;

	if ((a->repair ? volumes_repair(v, id, kind_of(a), &r, err) : volumes_drop_state(v, id, &r, err)) <
		0) {
		process_note_not_root(err);
		return COMMAND_BLIND;
	}
	if (a->c.json)
		write_report_json(id, &r, &out);
	else
		write_report(id, &r, &out);
	return command_print("check", &out, r.left ? COMMAND_MISMATCH : COMMAND_OK);
}

static int check_usage(const struct check_args *a, struct error **err)
{
	const char *id = a->repair ? a->repair : a->forget;

	if (a->repair && a->forget)
		return err_set(err, ERR_INVALID_ARGUMENT, "-repair and -forget cannot be used together");
	if ((a->block || a->filesystem || a->direct) && !a->repair)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-block, -filesystem and -direct can only be used with -repair");
	if (a->block + a->filesystem + a->direct > 1)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-block, -filesystem and -direct cannot be used together");
	if (id && (!*id || *id == '.' || strchr(id, '/')))
		return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not a volume ID", id);
	return 0;
}

int cmd_check(int argc, char **argv)
{
	struct check_args a = {.c = command_init()};
	const struct opt table[] = {
		{"repair", OPT_STR, &a.repair, "ID", "do what is safe for this volume or device"},
		{"block", OPT_BOOL, &a.block, NULL,
			"with -repair: adopt a device that has no state file as a raw block volume"},
		{"filesystem", OPT_BOOL, &a.filesystem, NULL,
			"with -repair: as a volume whose file system the node mounts"},
		{"direct", OPT_BOOL, &a.direct, NULL,
			"with -repair: as a volume that is given to guests (directVolume=true)"},
		{"forget", OPT_STR, &a.forget, "ID",
			"drop the state of this volume, whose device is missing"},
		COMMAND_FLAGS(&a.c),
		{0},
	};
	CLEANUP(error_freep) struct error *err = NULL;
	int status;

	if (!command_parse(&a.c, table, argc, argv, help, &status))
		goto out;
	status = COMMAND_USAGE;
	if (check_usage(&a, &err) == 0)
		status = a.repair || a.forget ? change(&a, &err) : compare(&a, &err);
	if (err)
		command_fail("check", err, status);
out:
	command_done(&a.c);
	return status;
}
