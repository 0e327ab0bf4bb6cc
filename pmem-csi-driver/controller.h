/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controller.h - the central controller: wires registry, CSI services, Kubernetes and metrics together and
 * runs until a signal ends it.
 */
#pragma once

#include "options.h"

/**
 * controller_run() - serve until SIGTERM or SIGINT, then drain.
 * Blocks for the life of the program. Return: 0 after an orderly end, or -1 with the reason why it did not
 * start.
 */
int controller_run(const struct options *o, struct error **err) MUST_CHECK;
