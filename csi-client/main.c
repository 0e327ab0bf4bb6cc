/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi-client: one CSI call from the command line. Exit status: 0 the call succeeded, 1 it failed (the status
 * is printed on stderr as CODE: message), 2 wrong usage.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "client.h"
#include "commands.h"
#include "net/core/addr.h"
#include "os/process.h"
#include "os/program.h"

static const char usage[] =
	"usage: csi-client [flags] COMMAND [operands]\n"
	"\n"
	"Makes one CSI call and prints the response.\n"
	"\n"
	"Exit status: 0 the call succeeded, 1 it failed (CODE: message on stderr), or probe says that the driver\n"
	"is not ready, 2 wrong usage.";

struct options {
	const char *endpoint;
	const char *output;
	char **parameters; /* "key=value" */
	bool show_version;
	bool show_help;
};

static int parse_parameters(char *const *texts, struct strmap *out, struct error **err)
{
	for (size_t i = 0; texts && texts[i]; i++) {
		const char *equals = strchr(texts[i], '=');

		if (!equals)
			return err_set(err, ERR_INVALID_ARGUMENT, "\"%s\" is not KEY=VALUE", texts[i]);
		CLEANUP(free_charp) char *key = x_strndup(texts[i], (size_t)(equals - texts[i]));
		strmap_set(out, key, equals + 1);
	}
	return 0;
}

static int show_about(const struct options *o, const char *help, struct error **err)
{
	CLEANUP(free_charp) char *commands = command_help();

	if (!o->show_help)
		return process_print(PMEM_VERSION "\n", err);
	if (process_print(help, err) < 0)
		return -1;
	return process_print(commands, err);
}

static int parse(
	int argc, char **argv, struct client *c, struct options *o, struct args *args, struct error **err)
{
	const struct opt opts[] = {
		{"endpoint", OPT_STR, &o->endpoint, "URL",
			"endpoint of the driver (default: $CSI_ENDPOINT, or unix:///run/pmem-csi/csi.sock)"},
		{"timeout", OPT_DURATION, &c->timeout_ms, "DURATION",
			"how long the call may take; 0: no limit"},
		{"o", OPT_STR, &o->output, "FORMAT", "text or json"},
		{"time", OPT_BOOL, &c->show_time, NULL, "print how long the call took, on stderr"},
		{"size", OPT_SIZE, &c->size_bytes, "SIZE", "required size of the volume"},
		{"limit", OPT_SIZE, &c->limit_bytes, "SIZE",
			"largest acceptable size of the volume; 0: no limit"},
		{"fs", OPT_STR, &c->fs_type, "TYPE", "file system: ext4 or xfs"},
		{"block", OPT_BOOL, &c->block, NULL, "use a raw block volume instead of a file system"},
		{"source", OPT_STR, &c->source, "ID",
			"create: the volume of which the new one is a clone; list-snapshots: whose snapshots"},
		{"snapshot", OPT_STR, &c->snapshot, "ID",
			"create: the snapshot from which the new volume is restored"},
		{"access-mode", OPT_STR, &c->access_mode, "MODE",
			"access mode, such as SINGLE_NODE_MULTI_WRITER"},
		{"mount-flag", OPT_STRS, &c->mount_flags, "FLAG", "mount flag (repeatable)"},
		{"parameter", OPT_STRS, &o->parameters, "KEY=VALUE",
			"create, create-snapshot, create-group, capacity: parameter; other commands: entry of the volume context (repeatable)"},
		{"max", OPT_U32, &c->max_entries, "N",
			"list, list-snapshots: maximum number of entries in the response; 0: no limit"},
		{"token", OPT_STR, &c->token, "TOKEN",
			"list, list-snapshots: token of the previous response, at which this one continues"},
		{"readonly", OPT_BOOL, &c->readonly, NULL, "publish: mount read-only"},
		{"version", OPT_BOOL, &o->show_version, NULL, "print the version and exit"},
		{"help", OPT_BOOL, &o->show_help, NULL, "print this help and exit"},
		{0},
	};

	CLEANUP(free_charp) char *help = args_help(usage, opts);

	if (args_parse(opts, argc, argv, args, err) < 0)
		return -1;
	if (o->show_help || o->show_version)
		return show_about(o, help, err);
	if (program_check_format("-o", o->output, err) < 0)
		return -1;
	c->json = str_eq(o->output, "json");
	return parse_parameters(o->parameters, &c->parameters, err);
}

static bool takes_parameters(const struct command *cmd)
{
	return str_ends(cmd->operands, COMMAND_PARAMETERS);
}

static bool has_operands(const struct command *cmd, size_t n)
{
	size_t wanted = (size_t)cmd->n_operands;

	if (takes_parameters(cmd))
		return n > wanted;
	return str_ends(cmd->operands, "...") ? n >= wanted : n == wanted;
}

/* Finds the command, and reads or checks its operands and the endpoint. */
static int choose(const struct options *o, char *const *words, struct client *c, const struct command **ret,
	struct error **err)
{
	CLEANUP(addr_done) struct addr a = {0};
	const struct command *cmd;

	if (!words[0])
		return err_set(err, ERR_INVALID_ARGUMENT, "a command is needed; -help lists all");
	if (command_find(words[0], &cmd, err) < 0)
		return -1;
	if (!has_operands(cmd, strv_len(words) - 1))
		return err_set(err, ERR_INVALID_ARGUMENT, "usage: csi-client [flags] %s%s%s", cmd->name,
			*cmd->operands ? " " : "", cmd->operands);
	if (takes_parameters(cmd) && parse_parameters(words + 1 + cmd->n_operands, &c->parameters, err) < 0)
		return -1;
	if (addr_parse(o->endpoint, &a, err) < 0)
		return err_wrap(err, "-endpoint");
	*ret = cmd;
	return 0;
}

static void usage_error(const char *problem)
{
	fprintf(stderr, "csi-client: %s\n", problem);
}

static int connect_to(struct loop *loop, const char *endpoint, struct client *c, struct error **err)
{
	const struct h2_channel_config config = {.loop = loop, .endpoint = endpoint};

	return grpc_client_new(&config, &c->grpc, err);
}

static bool may_connect(const char *endpoint)
{
	CLEANUP(error_freep) struct error *ignored = NULL;
	CLEANUP(addr_done) struct addr a = {0};

	if (addr_parse(endpoint, &a, &ignored) < 0 || !a.is_unix)
		return true;
	return access(a.path, R_OK | W_OK) == 0 || errno != EACCES;
}

static int run(struct client *c, const char *endpoint, const struct command *cmd, char *const *operands)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(loop_freep) struct loop *loop = NULL;
	int rc = -1;

	if (loop_new(&loop, &err) == 0 && connect_to(loop, endpoint, c, &err) == 0) {
		rc = cmd->run(c, operands, &err);
		grpc_client_free(c->grpc);
	}
	if (rc == 0)
		return 0;
	fprintf(stderr, "%s: %s%s\n", err_code_name(err->code), err->msg,
		may_connect(endpoint) ? "" : " (the socket is for root only: run as root)");
	return 1;
}

int main(int argc, char **argv)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(args_done) struct args args = {0};
	const char *endpoint = getenv("CSI_ENDPOINT");
	struct options o = {.endpoint = str_empty(endpoint) ? "unix:///run/pmem-csi/csi.sock" : endpoint,
		.output = "text"};
	const struct command *cmd = NULL;
	struct client c = {
		.timeout_ms = 120000, .fs_type = "", .access_mode = "SINGLE_NODE_WRITER", .token = ""};
	int status = 2;

	process_begin();
	if (parse(argc, argv, &c, &o, &args, &err) < 0) {
		usage_error(err->msg);
		status = err->code == ERR_INVALID_ARGUMENT ? 2 : 1;
	} else if (o.show_help || o.show_version) {
		status = 0;
	} else if (choose(&o, args.rest, &c, &cmd, &err) < 0) {
		usage_error(err->msg);
	} else {
		status = run(&c, o.endpoint, cmd, args.rest + 1);
	}
	strmap_done(&c.parameters);
	strv_free(c.mount_flags);
	strv_free(o.parameters);
	return status;
}
