/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options_table.h - the flags of the driver, by what they are for.
 */
#pragma once

#include "options.h"

/* Flags that are read as text and looked at afterwards; NULL: not given. */
struct option_texts {
	const char *percentage;
	const char *expected_nodes;
	const char *node_selector;
};

/** options_table() - all flags; their values go to @o and @texts. Return: for args_parse(); caller frees. */
struct opt *options_table(struct options *o, struct option_texts *texts);
