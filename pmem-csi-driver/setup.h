/* SPDX-License-Identifier: Apache-2.0 */
/*
 * setup.h - the set-up of a driver that runs, asked for by a command.
 */
#pragma once

#include "options.h"

/* How a driver was started; all owned. */
struct setup {
	char *driver_name;
	char *device_manager;
	char *state_path;
	char *fake_path; /* NULL: none */
	char **kubelet_dirs;
	char *not_ready; /* NULL: it is ready */
};

/**
 * setup_ask() - ask the driver at @endpoint, a unix socket.
 * @ret: setup_done()
 *
 * Blocks for some seconds at most. Return: 0, or -1 with ERR_INVALID_ARGUMENT (@endpoint), ERR_PRECONDITION
 * (it is a controller, or of another version), ERR_UNAVAILABLE (there is no answer).
 */
int setup_ask(const char *endpoint, struct setup *ret, struct error **err) MUST_CHECK;

/** setup_done() - release what @s owns; safe on a zeroed one. */
void setup_done(struct setup *s);
