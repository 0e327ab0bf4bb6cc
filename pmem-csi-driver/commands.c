/* SPDX-License-Identifier: Apache-2.0 */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/names.h"
#include "base/str.h"
#include "devices.h"
#include "os/process.h"
#include "volume/check.h"

struct entry {
	const char *name;
	int (*run)(int argc, char **argv);
};

static const struct entry entries[] = {
	{"check", cmd_check},
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
	process_blame(err);
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

static int check_flags(struct command *c, char *const *rest, struct error **err)
{
	if (rest[0])
		return err_set(err, ERR_INVALID_ARGUMENT, "unexpected argument \"%s\"", rest[0]);
	if (!str_eq(c->output, "text") && !str_eq(c->output, "json"))
		return err_set(err, ERR_INVALID_ARGUMENT, "-o must be text or json, not \"%s\"", c->output);
	c->json = str_eq(c->output, "json");
	if (name_check_driver(c->o.driver_name, err) < 0 || options_check_devices(&c->o, err) < 0 ||
		options_check_folders(&c->o, err) < 0)
		return -1;
	if (str_eq(c->o.device_manager, "fake") && str_empty(c->o.fake_path))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"-deviceManager=fake needs -fakePath here: without it the devices are in the "
			"driver's memory");
	return 0;
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
	if (c->show_help) {
		*ret_status = COMMAND_OK;
		if (process_print(text, &err) < 0)
			*ret_status = command_fail(argv[0], err, COMMAND_BLIND);
		return false;
	}
	if (check_flags(c, args.rest, &err) < 0) {
		*ret_status = command_fail(argv[0], err, COMMAND_USAGE);
		return false;
	}
	log_init("pmem-csi-driver", LOG_TEXT, c->o.verbosity);
	return true;
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
	*ret_devices = TAKE_PTR(devices);
	return 0;
}

int command_show(const struct command_view *view, int argc, char **argv, void *user)
{
	struct command c = COMMAND_INIT;
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
