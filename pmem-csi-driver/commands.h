/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - what an administrator may ask on a node: `pmem-csi-driver COMMAND`.
 *
 * Each prints a text for people or, with -o json, one JSON document to stdout; errors go to stderr. All but
 * `check -repair` and `-forget` only look. Threads: none. They block on namespaces and LVM.
 */
#pragma once

#include "base/buf.h"
#include "options.h"
#include "setup.h"

#define COMMANDS_HELP                                                                                        \
	"  volumes  show the volumes of this node\n"                                                         \
	"  regions  show regions and pools, and what can be created\n"                                       \
	"  doctor   check the node; explain why a volume can or cannot be created\n"                         \
	"  check    compare the state folder with what exists; repair\n"

#define COMMAND_OK       0
#define COMMAND_MISMATCH 1 /* what was asked about is not as it should be */
#define COMMAND_USAGE    2
#define COMMAND_BLIND    3 /* cannot look */

struct command {
	struct options o;     /* those that say where to look; borrows from setup */
	const char *endpoint; /* of the driver that says where; NULL: none is asked */
	struct setup setup;   /* of that driver */
	const char *output;
	bool json;
};

/** entries for a table of struct opt; @c: struct command * */
/* clang-format off */
#define COMMAND_FLAGS(c)                                                                                     \
	{"o", OPT_STR, &(c)->output, "FORMAT", "text or json"},                                    \
	{"endpoint", OPT_STR, &(c)->endpoint, "URL",                                                         \
		"ask the driver that serves this socket, unix:///path, where to look (default: "             \
		"$CSI_ENDPOINT, unless one of the next four flags says where)"},                             \
	{"deviceManager", OPT_STR, &(c)->o.device_manager, "NAME", "as the driver's (default: lvm)"},        \
	{"statePath", OPT_STR, &(c)->o.state_path, "DIR", "as the driver's (default: /var/lib/<drivername>)"}, \
	{"drivername", OPT_STR, &(c)->o.driver_name, "NAME", "as the driver's (default: pmem-csi.intel.com)"}, \
	{"fakePath", OPT_STR, &(c)->o.fake_path, "DIR", "as the driver's"},                                  \
	{"fakeRegionSize", OPT_SIZE, &(c)->o.fake_region_bytes, "SIZE",                                       \
		"accepted; the folder knows it (default: what the folder says)"},                            \
	{"v", OPT_U32, &(c)->o.flags.verbosity, "N", "log verbosity; 5 and above shows debug messages"},           \
	{"help", OPT_BOOL, &(c)->o.flags.show_help, NULL, "print this help and exit"}
/* clang-format on */

/** command_init() - what holds without flags. Return: command_done(). */
struct command command_init(void);

/** command_done() - release what @c owns. */
void command_done(struct command *c);

/**
 * command_parse() - read a command's flags; it takes no operands. A driver that is to be asked is asked where
 * to look. Logging is set up.
 * @argv: begins with the command's name
 * @help: what -help prints before the flags
 * @ret_status: exit status when it is over here: help was printed, the usage is wrong, or no driver answers
 * Return: whether the command goes on.
 */
bool command_parse(
	struct command *c, const struct opt *table, int argc, char **argv, const char *help, int *ret_status);

/** command_fail() - say on stderr why @command ends. Return: @status. */
int command_fail(const char *command, const struct error *e, int status);

/** command_fail_to_look() - command_fail() for what the system refused: it tells that root is needed. Return:
 * COMMAND_BLIND. */
int command_fail_to_look(const char *command, struct error **err);

/** command_print() - write @out to stdout. Return: @status, or COMMAND_BLIND when that failed. */
int command_print(const char *command, const struct buf *out, int status);

#define COMMAND_OUTPUT_MAX (64U << 20)

/** command_main() - run the command argv[0]. Return: exit status. */
int command_main(int argc, char **argv);

/** command_misplaced() - find a command's name behind flags, where it has no effect. Return: borrowed from
 * @argv, or NULL. */
const char *command_misplaced(int argc, char **argv);

/**
 * command_check_place() - that this is the place where the driver runs that was asked: it has the state
 * folder that is seen here. Else all that is found would be about something else.
 * @holder: of the state folder; 0: none is seen
 * Return: 0, or -1 with ERR_PRECONDITION.
 */
int command_check_place(const struct command *c, pid_t holder, struct error **err) MUST_CHECK;

struct check_view;
struct device_manager;

/**
 * command_look() - open the devices of @c and look at the node.
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

/** command_show() - a whole command that only looks: flags, view, output. @user: for read() and write().
 * Return: exit status. */
int command_show(const struct command_view *view, int argc, char **argv, void *user);

/** cmd_check() - state folder against kernel. Return: exit status; so for all. */
int cmd_check(int argc, char **argv);

/** cmd_volumes() - volumes of this node. */
int cmd_volumes(int argc, char **argv);

/** cmd_regions() - regions and pools. */
int cmd_regions(int argc, char **argv);

/** cmd_doctor() - the node's set-up, and what can be created. */
int cmd_doctor(int argc, char **argv);
