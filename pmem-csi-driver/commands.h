/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - commands by which an administrator examines a node or the cluster: `pmem-csi-driver COMMAND`.
 *
 * Each prints a text for people or, with -o json, one JSON document to stdout; errors go to stderr. Only
 * `check -repair` and `-forget` change anything. Threads: none. They block on namespaces and LVM.
 */
#pragma once

#include "base/buf.h"
#include "options.h"
#include "setup.h"

#define COMMANDS_HELP                                                                                        \
	"  volumes  show the volumes of this node\n"                                                         \
	"  regions  show regions and pools, and what can be created\n"                                       \
	"  doctor   check how the node is set up, or explain whether a volume can be created\n"              \
	"  check    compare the state folder with devices and mounts, and optionally repair it\n"            \
	"  cluster  compare PersistentVolumes, claims and Nodes with the driver's PmemVolumes and PmemNodes\n"

#define COMMAND_OK       0
#define COMMAND_MISMATCH 1 /* something has a problem, or is not possible */
#define COMMAND_USAGE    2
#define COMMAND_BLIND    3 /* the node cannot be examined */

struct command {
	struct options o;     /* which devices and folders to examine; borrows from setup */
	const char *endpoint; /* of the driver whose settings are used; NULL: no driver is asked */
	struct setup setup;   /* of that driver */
	const char *output;
	bool json;
};

/** entries for a table of struct opt; @c: struct command * */
/* clang-format off */
#define COMMAND_FLAGS(c)                                                                                     \
	{"o", OPT_STR, &(c)->output, "FORMAT", "text or json"},                                    \
	{"endpoint", OPT_STR, &(c)->endpoint, "URL",                                                         \
		"unix:///path: ask the driver that serves this socket for its settings (default: "           \
		"$CSI_ENDPOINT, unless one of the next four flags is given)"},                             \
	{"deviceManager", OPT_STR, &(c)->o.device_manager, "NAME", "as for the driver (default: lvm)"},        \
	{"statePath", OPT_STR, &(c)->o.state_path, "DIR", "as for the driver (default: /var/lib/<drivername>)"}, \
	{"drivername", OPT_STR, &(c)->o.driver_name, "NAME", "as for the driver (default: pmem-csi.intel.com)"}, \
	{"fakePath", OPT_STR, &(c)->o.fake_path, "DIR", "as for the driver"},                                  \
	{"fakeRegionSize", OPT_IGNORED, NULL, "SIZE", "the size recorded in the folder is used"},                 \
	{"v", OPT_U32, &(c)->o.flags.verbosity, "N", "log verbosity; 5 and above shows debug messages"},           \
	{"help", OPT_BOOL, &(c)->o.flags.show_help, NULL, "print this help and exit"}
/* clang-format on */

/** command_init() - the defaults of a command. Return: command_done(). */
struct command command_init(void);

/** command_done() - release what @c owns. */
void command_done(struct command *c);

/**
 * command_parse() - parse a command's flags, get the settings of the driver at -endpoint, and set up logging.
 * Operands are refused.
 * @argv: begins with the command's name
 * @help: what -help prints before the flags
 * @ret_status: exit status if the command ends here: help was printed, the usage is wrong, or no driver
 * answers Return: whether the command continues.
 */
bool command_parse(
	struct command *c, const struct opt *table, int argc, char **argv, const char *help, int *ret_status);

/** command_fail() - print @e to stderr as the reason why @command ends. Return: @status. */
int command_fail(const char *command, const struct error *e, int status);

/** command_fail_to_look() - command_fail() for errors while examining the node; if the user is not root, the
 * text says that root may be needed. Return: COMMAND_BLIND. */
int command_fail_to_look(const char *command, struct error **err);

/** command_print() - write @out to stdout. Return: @status, or COMMAND_BLIND when that failed. */
int command_print(const char *command, const struct buf *out, int status);

#define COMMAND_OUTPUT_MAX (64U << 20)

/** command_main() - run the command argv[0]. Return: exit status. */
int command_main(int argc, char **argv);

/** command_misplaced() - find the name of a command after the first argument, where it has no effect. Return:
 * borrowed from
 * @argv, or NULL. */
const char *command_misplaced(int argc, char **argv);

/**
 * command_check_place() - check that the command runs where the driver runs that was asked, which is so if a
 * driver uses the state folder that the command sees. Otherwise the findings would be about another folder.
 * @holder: process that has locked the state folder; 0: none
 * Return: 0, or -1 with ERR_PRECONDITION.
 */
int command_check_place(const struct command *c, pid_t holder, struct error **err) MUST_CHECK;

struct check_view;
struct device_manager;

/**
 * command_look() - open the devices of @c and examine the node.
 * @ret_devices: device_close()
 * @ret:         check_view_done()
 * Return: 0, or -1 as devices_open(), check_view_read() and command_check_place().
 */
int command_look(const struct command *c, struct device_manager **ret_devices, struct check_view *ret,
	struct error **err) MUST_CHECK;

struct command_view {
	const char *name;
	const char *help;
	/* Reads more than the node's view, into @user; NULL: nothing more. Return: 0, or -1. */
	int (*read)(const struct command *c, void *user, struct error **err);
	void (*write)(const struct check_view *v, const void *user, bool json, struct buf *out);
};

/** command_show() - run a command that changes nothing: parse flags, examine the node, print. @user: for
 * read() and write().
 * Return: exit status. */
int command_show(const struct command_view *view, int argc, char **argv, void *user);

/** cmd_check() - compare the state folder with the kernel. Return: exit status, as for all of these. */
int cmd_check(int argc, char **argv);

/** cmd_volumes() - show the volumes of this node. */
int cmd_volumes(int argc, char **argv);

/** cmd_regions() - show regions and pools. */
int cmd_regions(int argc, char **argv);

/** cmd_cluster() - compare the objects of Kubernetes with those of the driver. */
int cmd_cluster(int argc, char **argv);

/** cmd_doctor() - check the set-up of the node, or whether a volume can be created. */
int cmd_doctor(int argc, char **argv);
