/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/names.h"
#include "base/str.h"
#include "devices.h"
#include "inspect/check.h"
#include "os/process.h"

struct entry {
	const char *name;
	int (*run)(int argc, char **argv);
};

static const struct entry entries[] = {
	{"check", cmd_check},
	{"cluster", cmd_cluster},
	{"doctor", cmd_doctor},
	{"regions", cmd_regions},
	{"volumes", cmd_volumes},
};

int command_fail(const char *command, const struct error *e, int status)
{
	fprintf(stderr, "pmem-csi-driver %s: %s\n", command, e->msg);
	return status;
}

int command_fail_to_look(const char *command, struct error **err)
{
	process_note_not_root(err);
	return command_fail(command, *err, COMMAND_BLIND);
}

int command_print(const char *command, const struct buf *out, int status)
{
	CLEANUP(error_freep) struct error *err = NULL;

	if (buf_check(out, "output", &err) < 0)
		return command_fail(command, err, COMMAND_BLIND);
	if (process_print(buf_str(out), &err) < 0)
		return command_fail(command, err, COMMAND_BLIND);
	return status;
}

struct command command_init(void)
{
	struct command c = {.o = options_default(), .output = "text"};

	c.o.device_manager = NULL;
	c.o.driver_name = NULL;
	return c;
}

void command_done(struct command *c)
{
	options_done(&c->o);
	setup_done(&c->setup);
}

/* Whether a driver is asked, or which flags say where to look. */
static int choose_place(struct command *c, struct error **err)
{
	const struct options defaults = options_default();
	const char *inherited = getenv("CSI_ENDPOINT");
	bool has_place_flags = c->o.device_manager || c->o.state_path || c->o.driver_name || c->o.fake_path;

	if (c->endpoint && has_place_flags)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-endpoint asks the driver where to look; "
			"it cannot be used together with -deviceManager, "
			"-statePath, -drivername or -fakePath");
	if (!c->endpoint && !has_place_flags && !str_empty(inherited))
		c->endpoint = inherited;
	c->o.device_manager = c->o.device_manager ? c->o.device_manager : defaults.device_manager;
	c->o.driver_name = c->o.driver_name ? c->o.driver_name : defaults.driver_name;
	return 0;
}

static int check_flags(struct command *c, char *const *rest, struct error **err)
{
	if (rest[0])
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", rest[0]);
	if (program_check_format("-o", c->output, err) < 0)
		return -1;
	c->json = str_eq(c->output, "json");
	if (choose_place(c, err) < 0 || name_check_driver(c->o.driver_name, err) < 0 ||
		options_check_devices(&c->o, err) < 0 || options_check_folders(&c->o, err) < 0)
		return -1;
	if (str_eq(c->o.device_manager, "fake") && str_empty(c->o.fake_path))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-deviceManager=fake needs -fakePath here: without it the devices are in the driver's memory");
	return 0;
}

static int ask(struct command *c, struct error **err)
{
	CLEANUP(error_freep) struct error *why = NULL;

	if (setup_ask(c->endpoint, &c->setup, &why) < 0)
		return err_set(err, why->code,
			"%s; use -deviceManager and -statePath to look without a driver", why->msg);
	c->o.driver_name = c->setup.driver_name;
	c->o.device_manager = c->setup.device_manager;
	c->o.state_path = c->setup.state_path;
	c->o.fake_path = c->setup.fake_path;
	if (!c->o.kubelet_dirs)
		c->o.kubelet_dirs = TAKE_PTR(c->setup.kubelet_dirs);
	if (str_eq(c->o.device_manager, "fake") && !c->o.fake_path)
		return err_set(err, ERR_PRECONDITION,
			"the driver at %s has its devices in its own memory: start it with -fakePath=DIR",
			c->endpoint);
	if (c->setup.not_ready)
		fprintf(stderr, "%s\n", c->setup.not_ready);
	return options_check_devices(&c->o, err);
}

bool command_parse(
	struct command *c, const struct opt *table, int argc, char **argv, const char *help, int *ret_status)
{
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(args_done) struct args args = {0};
	CLEANUP(free_charp) char *text = args_help(help, table);

	if (args_parse(table, argc, argv, &args, &err) < 0) {
		*ret_status = command_fail(argv[0], err, COMMAND_USAGE);
		return false;
	}
	if (c->o.flags.show_help) {
		*ret_status = COMMAND_OK;
		if (process_print(text, &err) < 0)
			*ret_status = command_fail(argv[0], err, COMMAND_BLIND);
		return false;
	}
	if (check_flags(c, args.rest, &err) < 0) {
		*ret_status = command_fail(argv[0], err, COMMAND_USAGE);
		return false;
	}
	log_init("pmem-csi-driver", LOG_TEXT, c->o.flags.verbosity);
	if (c->endpoint && ask(c, &err) < 0) {
		*ret_status = err->code == ERR_INVALID_ARGUMENT ? command_fail(argv[0], err, COMMAND_USAGE)
								: command_fail_to_look(argv[0], &err);
		return false;
	}
	return true;
}

int command_check_place(const struct command *c, pid_t holder, struct error **err)
{
	if (!c->endpoint || c->setup.not_ready || holder > 0)
		return 0;
	return err_set(err, ERR_PRECONDITION,
		"the driver at %s has its state in %s, but no driver has that folder here: "
		"run this where the driver runs, in a pod with kubectl exec",
		c->endpoint, c->o.state_path);
}

int command_look(const struct command *c, struct device_manager **ret_devices, struct check_view *ret,
	struct error **err)
{
	CLEANUP(free_charp) char *state_path = options_state_path(&c->o);
	CLEANUP(device_closep) struct device_manager *devices = NULL;

	if (devices_open(&c->o, DEVICES_LOOK, &devices, err) < 0)
		return -1;
	const struct check_config config = {
		.devices = devices, .state_path = state_path, .fake_path = c->o.fake_path};
	if (check_view_read(&config, ret, err) < 0)
		return -1;
	if (command_check_place(c, ret->holder, err) < 0) {
		check_view_done(ret);
		return -1;
	}
	*ret_devices = TAKE_PTR(devices);
	return 0;
}

int command_show(const struct command_view *view, int argc, char **argv, void *user)
{
	CLEANUP(command_done) struct command c = command_init();
	const struct opt table[] = {COMMAND_FLAGS(&c), {0}};
	CLEANUP(check_view_done) struct check_view v = {0};
	CLEANUP(device_closep) struct device_manager *devices = NULL;
	CLEANUP(error_freep) struct error *err = NULL;
	CLEANUP(buf_done) struct buf out = BUF_INIT(COMMAND_OUTPUT_MAX);
	int status;

	if (!command_parse(&c, table, argc, argv, view->help, &status))
		return status;
	if (command_look(&c, &devices, &v, &err) < 0 || (view->read && view->read(&c, user, &err) < 0))
		return command_fail_to_look(view->name, &err);
	view->write(&v, user, c.json, &out);
	return command_print(view->name, &out, COMMAND_OK);
}

static const struct entry *find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		if (str_eq(name, entries[i].name))
			return &entries[i];
	}
	return NULL;
}

int command_main(int argc, char **argv)
{
	const char *names[ARRAY_SIZE(entries) + 1] = {NULL};
	const struct entry *entry = find(argv[0]);
	CLEANUP(error_freep) struct error *err = NULL;

	if (entry)
		return entry->run(argc, argv);
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		names[i] = entries[i].name;
	(void)!args_refuse_command(argv[0], names, &err);
	fprintf(stderr, "pmem-csi-driver: %s\n", err->msg);
	return COMMAND_USAGE;
}

const char *command_misplaced(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (find(argv[i]))
			return argv[i];
	}
	return NULL;
}
