/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_socket.h - whether the CSI socket is still ours. The Go driver removes a socket that it finds, whoever
 * listens on it, and takes no lock: where both run, kubelet would talk to one of them, the provisioner to the
 * other, and each would use what the other one believes to be free. Source: decision 061. Threads: the
 * loop's.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

struct node_socket {
	char *path; /* NULL: the endpoint is no unix socket, and nothing is looked at */
	dev_t dev;  /* of what was made there */
	ino_t ino;
};

/**
 * node_socket_note() - remember the socket that is at @endpoint, which is valid and has just been listened
 * to. A second call replaces what was remembered. Blocks on the file system. Return: 0, or -1 with
 * ERR_INTERNAL: it cannot be looked at. That it is gone is found by the first look.
 */
int node_socket_note(struct node_socket *s, const char *endpoint, struct error **err) MUST_CHECK;

/**
 * node_socket_check() - look whether it is still the same one. May be repeated. Blocks on the file system.
 * Return: 0, also while it cannot be looked at, or -1 with ERR_UNAVAILABLE (another driver listens there),
 * ERR_PRECONDITION (it was removed, or something else is in its place), ERR_INTERNAL (it is another one, and
 * it is not known whether somebody listens there).
 */
int node_socket_check(const struct node_socket *s, struct error **err) MUST_CHECK;

/** node_socket_done() - release what @s owns; safe on a zeroed one. */
void node_socket_done(struct node_socket *s);
