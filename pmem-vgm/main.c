/* SPDX-License-Identifier: Apache-2.0 */
/* pmem-vgm: one LVM volume group per region from its pool namespaces. Exit status: see usage. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/str.h"
#include "commands.h"
#include "os/process.h"
#include "os/program.h"
#include "pmem/pool/pool_backup.h"

#define OUTPUT_MAX_BYTES (16U << 20)

static const char usage[] =
	"usage: pmem-vgm [flags] [create|plan|status|restore [GROUP]...]\n"
	"\n"
	"Creates one LVM volume group per region of persistent memory, and restores damaged ones.\n"
	"\n"
	"  create   create or extend the volume group of each region that has namespaces called pmem-csi,\n"
	"           and activate the logical volumes in it (default)\n"
	"  plan     show what create would do; changes nothing\n"
	"  status   show the volume groups with their devices and logical volumes\n"
	"  restore  restore the groups, or only those that are named, whose LVM label or metadata is damaged\n"
	"           on a namespace: from what is left on their namespaces, or from the copies in the state\n"
	"           folder. Volumes are then activated. -dry-run only shows what would be done. Driver and\n"
	"           pods may go on meanwhile. If it was interrupted, run it again.\n"
	"\n"
	"Exit status: 0 done (a region that failed is only a warning); 1 failure, stopped by a signal, with\n"
	"-strict a region that failed, or a group that cannot be restored; 2 wrong usage.\n"
	"\n"
	"SIGTERM, SIGINT and SIGHUP stop create and restore between two steps.";

struct options {
	struct program_flags flags;
	bool strict;
	bool force;
	bool dry_run;
	char **groups; /* of restore: strv */
	const char *state_path;
	const char *output;
	const char *command;
};

static void options_done(struct options *o)
{
	strv_free(o->groups);
}

static int check(const struct options *o, char *const *rest, struct error **err)
{
	static const char *const commands[] = {"create", "plan", "status", "restore", NULL};
	bool restoring = str_eq(o->command, "restore");

	if (program_check_format("-logging-format", o->flags.logging_format, err) < 0)
		return -1;
	if (o->output && program_check_format("-o", o->output, err) < 0)
		return -1;
	if (o->output && str_eq(o->command, "create"))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-o can only be used with plan, status and restore");
	if ((o->force || o->dry_run) && !restoring)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-force and -dry-run can only be used with restore");
	if (o->state_path[0] != '/')
		return err_set(err, ERR_INVALID_ARGUMENT, "-statePath \"%s\" is not an absolute path",
			o->state_path);
	if (rest[0] && rest[1] && !restoring)
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", rest[1]);
	for (size_t i = 0; commands[i]; i++)
		if (str_eq(o->command, commands[i]))
			return 0;
	return args_refuse_command(o->command, commands, err);
}

/* Help and version are answered here; @ret->flags then say so. */
static int parse(int argc, char **argv, struct options *ret, char ***ret_ignored, struct error **err)
{
	struct options o = {.flags = PROGRAM_FLAGS_INIT,
		.command = "create",
		.state_path = "/var/lib/pmem-csi.intel.com"};
	const struct opt table[] = {
		{"strict", OPT_BOOL, &o.strict, NULL, "exit with 1 if a region failed"},
		{"statePath", OPT_STR, &o.state_path, "DIR",
			"state folder of the driver; its subfolder lvm has the records of volume groups"},
		{"dry-run", OPT_BOOL, &o.dry_run, NULL, "restore: only show what would be done"},
		{"force", OPT_BOOL, &o.force, NULL,
			"restore: also from metadata that lack volumes of the state folder, whose data is then lost"},
		{"o", OPT_STR, &o.output, "FORMAT", "plan, status, restore: text (default) or json"},
		PROGRAM_FLAGS(&o.flags),
		KLOG_IGNORED_FLAGS,
		{0},
	};
	CLEANUP(args_done) struct args args = {0};
	CLEANUP(free_charp) char *help = args_help(usage, table);

	if (args_parse(table, argc, argv, &args, err) < 0)
		return -1;
	const char *about = program_about(&o.flags, help);
	if (about) {
		if (process_print(about, err) < 0)
			return -1;
	} else {
		o.command = args.rest[0] ? args.rest[0] : o.command;
		if (check(&o, args.rest, err) < 0)
			return -1;
		for (char **name = args.rest; *name && *++name;)
			strv_add(&o.groups, *name);
	}
	*ret_ignored = TAKE_PTR(args.ignored);
	*ret = o;
	return 0;
}

static int show(
	struct nd *nd, struct lvm *lvm, const struct options *o, bool *ret_complete, struct error **err)
{
	CLEANUP(free_charp) char *folder = pool_backup_folder(o->state_path);
	CLEANUP(view_done) struct view v = {0};
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);
	bool json = str_eq(o->output, "json");

	if (view_read(nd, lvm, &v, err) < 0)
		return -1;
	if (str_eq(o->command, "plan"))
		*ret_complete = cmd_plan(&v, folder, json, &out);
	else
		cmd_status(&v, json, &out);
	if (buf_check(&out, "output", err) < 0)
		return -1;
	return process_print(buf_str(&out), err);
}

static int create(
	struct nd *nd, struct lvm *lvm, const struct options *o, bool *ret_complete, struct error **err)
{
	CLEANUP(free_charp) char *folder = pool_backup_folder(o->state_path);
	CLEANUP(error_freep) struct error *not_kept = NULL;

	if (pool_backup_open(o->state_path, lvm, &not_kept) < 0)
		log_warn("continuing without a folder for copies of the metadata", F_ERR(not_kept));
	return cmd_create(nd, lvm, folder, ret_complete, err);
}

static int restore(
	struct nd *nd, struct lvm *lvm, const struct options *o, bool *ret_complete, struct error **err)
{
	const struct restore_options options = {.state_path = o->state_path,
		.groups = o->groups,
		.dry_run = o->dry_run,
		.force = o->force,
		.json = str_eq(o->output, "json")};
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);

	if (cmd_restore(nd, lvm, &options, &out, ret_complete, err) < 0)
		return -1;
	if (buf_check(&out, "output", err) < 0)
		return -1;
	return process_print(buf_str(&out), err);
}

static int run(const struct options *o, bool *ret_complete, struct error **err)
{
	CLEANUP(nd_closep) struct nd *nd = NULL;
	bool creating = str_eq(o->command, "create");
	bool restoring = str_eq(o->command, "restore");

	/* Commands that only read may end at any time; the others finish the step that they have begun. */
	if (creating || (restoring && !o->dry_run))
		process_defer_stop();
	if (nd_open_real(&nd, err) < 0) {
		/* As the Go program: a node without persistent memory must not stop the pod. */
		if (!creating || (*err)->code != ERR_PRECONDITION)
			return -1;
		log_warn("no persistent memory", F_ERR(*err));
		error_clear(err);
		*ret_complete = false;
		return 0;
	}

	/* So few commands are run that starting LVM's shell would not pay off. */
	CLEANUP(lvm_closep) struct lvm *lvm = lvm_open_exec();
	if (restoring)
		return restore(nd, lvm, o, ret_complete, err);
	if (!creating)
		return show(nd, lvm, o, ret_complete, err);
	return create(nd, lvm, o, ret_complete, err);
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(strv_freep) char **ignored = NULL;
	CLEANUP(options_done) struct options o = {0};
	bool complete = true;

	process_begin();
	if (parse(argc, argv, &o, &ignored, &err) < 0) {
		fprintf(stderr, "pmem-vgm: %s\n", err->msg);
		return err->code == ERR_INVALID_ARGUMENT ? 2 : 1;
	}
	if (o.flags.show_help || o.flags.show_version)
		return 0;
	program_start_log("pmem-vgm", &o.flags, ignored);
	if (run(&o, &complete, &err) < 0) {
		process_note_not_root(&err);
		log_error("failed", F_STR("command", o.command), F_ERR(err));
		return 1;
	}
	if (process_stop_signal()) {
		log_warn("stopped between two steps: run it again to continue",
			F_STR("signal", process_stop_signal()));
		return 1;
	}
	return complete || !(o.strict || str_eq(o.command, "restore")) ? 0 : 1;
}
