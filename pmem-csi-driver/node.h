/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node.h - the driver on a node: wires devices, volumes, services and the socket together and runs until told
 * to end.
 */
#pragma once

#include "options.h"

/**
 * node_run() - serve until SIGTERM or SIGINT, then drain.
 * Blocks for the life of the program. Return: 0 after an orderly end, or -1 with what kept it from starting.
 */
int node_run(const struct options *o, struct error **err) MUST_CHECK;
