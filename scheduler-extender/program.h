/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.h - the extender as a whole. Threads: before others start.
 */
#pragma once

#include "options.h"

/** program_run() - serve until SIGTERM or SIGINT. Return: 0 after an orderly end, or -1. */
int program_run(const struct options *o, struct error **err) MUST_CHECK;
