/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commands.h - the commands of csi-client: each makes one request from the command line and prints the reply.
 */
#pragma once

#include "base/error.h"
#include "client.h"

/* One or more, which become client.parameters. */
#define COMMAND_PARAMETERS "KEY=VALUE..."

struct command {
	const char *name;
	const char *operands; /* shown in help; ends with "..." if there may be more of the last, or with
			       * COMMAND_PARAMETERS */
	int n_operands;       /* at least, without parameters */
	const char *help;
	int (*run)(struct client *c, char *const *operands, struct error **err);
};

/** command_find() - the command called @name. Return: 0, or -1 with ERR_INVALID_ARGUMENT. */
int command_find(const char *name, const struct command **ret, struct error **err) MUST_CHECK;

/** command_help() - one line per command. Return: caller frees. */
char *command_help(void);
