/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - the driver on a node: wires devices, volumes, services and the socket together and runs until a
 * signal ends it.
 */
#pragma once

#include "options.h"

/**
 * node_run() - serve until SIGTERM or SIGINT, then drain.
 * Blocks for the life of the program. Return: 0 after an orderly end, or -1 with the reason why it did not
 * start or has ended.
 */
int node_run(const struct options *o, struct error **err) MUST_CHECK;
