/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_table.h - the table of the driver's flags.
 */
#pragma once

#include "options.h"

/* Flags whose text is parsed after the command line; NULL: not given. */
struct option_texts {
	const char *percentage;
	const char *node_selector;
};

/** options_table() - all flags; their values go to @o and @texts. Return: for args_parse(); caller frees. */
struct opt *options_table(struct options *o, struct option_texts *texts);
