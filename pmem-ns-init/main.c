/* SPDX-License-Identifier: Apache-2.0 */
/* pmem-ns-init: pool namespaces in each region of persistent memory. Exit status: see usage. */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/str.h"
#include "commands.h"
#include "os/process.h"
#include "os/program.h"
#include "pmem/cxl/cxl_regions.h"
#include "pmem/lvm/lvm.h"
#include "pmem/pool/pool_backup.h"
#include "pmem/pool/pool_ns.h"

static const char usage[] =
	"usage: pmem-ns-init [flags] [create|plan|status|advise|convert [NAMESPACE]...]\n"
	"\n"
	"Prepares regions of persistent memory for volumes.\n"
	"\n"
	"  create   create fsdax namespaces called pmem-csi in each region, up to a share of it (default).\n"
	"           Regions without labels are left as they are without -initLabels or -unlabelled=convert\n"
	"  plan     show what create would do, and why it would not do more; changes nothing\n"
	"  status   show each region as a map of own, foreign and free extents\n"
	"  advise   show for each region, and for memory that is part of none, what it is, whether it is used, and\n"
	"           the commands that change that; changes nothing\n"
	"  convert  convert raw namespaces that hold nothing to fsdax namespaces of the driver, also in regions\n"
	"           without labels and in legacy memory, and put them into a volume group; all of them, or\n"
	"           only those given. Namespaces that are in use are refused. Namespaces with content are\n"
	"           refused without -force. A namespace that was in a volume group which is not found now is\n"
	"           refused unless -force and the name of the namespace are given\n"
	"\n"
	"Exit status: 0 done (a region that failed or was skipped is only a warning); 1 failure, stopped by a\n"
	"signal, or with -strict a region that failed or could not be used; convert: also 1 if a namespace\n"
	"failed or was refused, or if there is neither a namespace to convert nor one that belongs to the\n"
	"driver; 2 wrong usage.\n"
	"\n"
	"SIGTERM, SIGINT and SIGHUP stop create and convert between two steps.";

struct options {
	struct program_flags flags;
	unsigned percent;
	bool strict;
	bool force;
	bool dry_run;
	bool init_labels;
	bool convert_unlabelled;
	const char *unlabelled; /* NULL: not given */
	const char *state_path;
	const char *cxl_text;
	enum cxl_rule cxl_rule;
	const char *output;
	const char *command;
	char **only; /* convert: strv */
};

static int check_unlabelled(const struct options *o, struct error **err)
{
	bool creating = str_eq(o->command, "create");

	if (!creating && (o->init_labels || o->unlabelled))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-initLabels and -unlabelled can only be used with create");
	if (o->unlabelled && !o->convert_unlabelled && !str_eq(o->unlabelled, "skip"))
		return err_set(err, ERR_INVALID_ARGUMENT, "-unlabelled must be convert or skip, not \"%s\"",
			o->unlabelled);
	return 0;
}

static int check(struct options *o, char *const *rest, struct error **err)
{
	static const char *const commands[] = {"create", "plan", "status", "advise", "convert", NULL};
	bool converting = str_eq(o->command, "convert");

	if (program_check_format("-logging-format", o->flags.logging_format, err) < 0)
		return -1;
	if (o->output && program_check_format("-o", o->output, err) < 0)
		return -1;
	if (o->output && str_eq(o->command, "create"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-o can only be used with plan, status, advise and convert");
	if ((o->force || o->dry_run) && !converting)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "-force and -dry-run can only be used with convert");
	if (*o->state_path != '/')
		return err_set(err, ERR_INVALID_ARGUMENT, "-statePath \"%s\" is not an absolute path",
			o->state_path);
	if (cxl_rule_parse(o->cxl_text, &o->cxl_rule, err) < 0)
		return err_wrap(err, "-cxlRegions");
	if (rest[0] && rest[1] && !converting)
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", rest[1]);
	for (size_t i = 0; commands[i]; i++)
		if (str_eq(o->command, commands[i]))
			return check_unlabelled(o, err);
	return args_refuse_command(o->command, commands, err);
}

/* Help and version are answered here; @ret->flags then say so. */
static int parse(int argc, char **argv, struct options *ret, char ***ret_ignored, struct error **err)
{
	struct options o = {.flags = PROGRAM_FLAGS_INIT,
		.percent = 100,
		.command = "create",
		.cxl_text = "keep",
		.state_path = "/var/lib/pmem-csi.intel.com"};
	const struct opt table[] = {
		{"useforfsdax", OPT_PERCENT, &o.percent, "PERCENT", "share of each region to use"},
		{"strict", OPT_BOOL, &o.strict, NULL, "exit with 1 if a region failed or could not be used"},
		{"force", OPT_BOOL, &o.force, NULL,
			"convert: also namespaces with content or with a foreign name; their content is lost"},
		{"dry-run", OPT_BOOL, &o.dry_run, NULL, "convert: only show what would be done"},
		{"initLabels", OPT_BOOL, &o.init_labels, NULL,
			"create: initialise label areas that are blank, as those of new NVDIMMs and of QEMU's, if "
			"nothing is on the memory"},
		{"unlabelled", OPT_STR, &o.unlabelled, "ACTION",
			"create: convert or skip memory that cannot have labels (no label area, memmap=, "
			"virtio-pmem); convert does so as a whole, as the command without -force (default: skip)"},
		{"statePath", OPT_STR, &o.state_path, "DIR",
			"create, advise, convert: state folder of the driver; its subfolder lvm has the records of "
			"volume groups and CXL regions"},
		{"cxlRegions", OPT_STR, &o.cxl_text, "RULE",
			"create: before namespaces are looked at, keep: record regions of CXL memory devices, and "
			"make recorded ones that are missing again, as they were (default); create: also make a "
			"region of all devices of a root decoder that are in no region and no record, if their "
			"label areas are empty; off: neither"},
		{"o", OPT_STR, &o.output, "FORMAT", "plan, status, advise, convert: text (default) or json"},
		PROGRAM_FLAGS(&o.flags),
		{"useforsector", OPT_IGNORED, NULL, "PERCENT", "there is no sector mode"},
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
		o.convert_unlabelled = str_eq(o.unlabelled, "convert");
		if (check(&o, args.rest, err) < 0)
			return -1;
		for (char **name = args.rest; *name && *++name;)
			strv_add(&o.only, *name);
	}
	*ret_ignored = TAKE_PTR(args.ignored);
	*ret = o;
	return 0;
}

/* @nd: NULL: there are no regions, and the command is advise */
static int show(struct nd *nd, struct lvm *lvm, const struct options *o, const char *folder,
	bool *ret_complete, struct error **err)
{
	CLEANUP(nd_inventory_freep) struct nd_inventory *inv = NULL;
	CLEANUP(dax_list_freep) struct dax_list *dax = NULL;
	CLEANUP(dimms_done) struct dimms modules = {0};
	CLEANUP(cxl_topology_done) struct cxl_topology cxl = {0};
	CLEANUP(hidden_memories_done) struct hidden_memories hidden = {0};
	const struct memory_devices devices = {.hidden = &hidden, .modules = &modules, .cxl = &cxl};
	CLEANUP(buf_done) struct buf out = BUF_INIT(OUTPUT_MAX_BYTES);
	bool json = str_eq(o->output, "json");

	if (nd && inventory_read(nd, lvm, &inv, err) < 0)
		return -1;
	if (str_eq(o->command, "plan")) {
		*ret_complete = cmd_plan(inv, o->percent, json, &out);
	} else if (str_eq(o->command, "advise")) {
		hidden_memories_find("", &hidden);
		if (dimms_read(&modules, err) < 0 || (cxl_real() && cxl_read(cxl_real(), &cxl, err) < 0) ||
			cmd_advise(nd, folder, inv, &devices, json, &out, err) < 0)
			return -1;
	} else {
		if (dax_list_read(&dax, err) < 0)
			return -1;
		cmd_status(inv, dax, json, &out);
	}
	if (buf_check(&out, "output", err) < 0)
		return -1;
	return process_print(buf_str(&out), err);
}

static int run(const struct options *o, bool *ret_complete, struct error **err)
{
	CLEANUP(free_charp) char *folder = pool_backup_folder(o->state_path);
	CLEANUP(nd_closep) struct nd *nd = NULL;
	CLEANUP(fd_closep) int lock = -1;
	bool creating = str_eq(o->command, "create");
	bool converting = str_eq(o->command, "convert");

	/* Commands that only read may end at any time; others finish the step that they have begun. */
	if (creating || converting)
		process_defer_stop();
	if (cxl_nd_open(o->cxl_rule == CXL_OFF ? NULL : o->state_path, &nd, err) < 0) {
		/* A node without persistent memory is no failure, as for the Go program, because the pod
		 * would be restarted again and again. */
		if ((!creating && !str_eq(o->command, "advise")) || (*err)->code != ERR_PRECONDITION)
			return -1;
		if (creating)
			log_warn("no persistent memory: pmem-ns-init advise says what there is", F_ERR(*err));
		error_clear(err);
		*ret_complete = !creating;
		if (creating)
			return 0;
	}

	/* So few commands are run that starting LVM's shell would not pay off. */
	CLEANUP(lvm_closep) struct lvm *lvm = lvm_open_exec();
	if (!creating && !converting)
		return show(nd, lvm, o, folder, ret_complete, err);
	if (pool_ns_lock(&lock, err) < 0)
		return -1;
	const struct create_options create = {.percent = o->percent,
		.init_labels = o->init_labels,
		.convert_unlabelled = o->convert_unlabelled,
		.state_path = o->state_path,
		.folder = folder};
	if (creating) {
		bool whole = cxl_regions_start(o->state_path, o->cxl_rule);
		if (cmd_create(nd, lvm, &create, ret_complete, err) < 0)
			return -1;
		*ret_complete = *ret_complete && whole;
		return 0;
	}
	const struct convert_options convert = {.force = o->force,
		.dry_run = o->dry_run,
		.json = str_eq(o->output, "json"),
		.only = o->only,
		.state_path = o->state_path,
		.folder = folder};
	return cmd_convert(nd, lvm, &convert, ret_complete, err);
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(strv_freep) char **ignored = NULL;
	struct options o = {0};
	bool complete = true;

	process_begin();
	if (parse(argc, argv, &o, &ignored, &err) < 0) {
		fprintf(stderr, "pmem-ns-init: %s\n", err->msg);
		return err->code == ERR_INVALID_ARGUMENT ? 2 : 1;
	}
	if (o.flags.show_help || o.flags.show_version)
		return 0;
	program_start_log("pmem-ns-init", &o.flags, ignored);
	int rc = run(&o, &complete, &err);
	strv_free(o.only);
	if (rc < 0) {
		process_note_not_root(&err);
		log_error("failed", F_STR("command", o.command), F_ERR(err));
		return 1;
	}
	if (process_stop_signal()) {
		log_warn("stopped between two steps: run it again to continue",
			F_STR("signal", process_stop_signal()));
		return 1;
	}
	return complete || !(o.strict || str_eq(o.command, "convert")) ? 0 : 1;
}
