/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_socket.h - checks whether the CSI socket is still ours. The Go driver removes a socket that it finds,
 * even if another program listens on it, and takes no lock. If both drivers ran, kubelet would call one of
 * them and the provisioner the other, and each would use space that the other one regards as free. Source:
 * decision 061. Threads: the loop's.
 */
#pragma once

#include <sys/types.h>

#include "base/error.h"

struct node_socket {
	char *path; /* NULL: the endpoint is not a unix socket, and nothing is checked */
	dev_t dev;  /* of the socket that was created there */
	ino_t ino;
};

/**
 * node_socket_note() - remember the socket that is at @endpoint, which is valid and has just been listened
 * to. A second call replaces what was remembered. Blocks on the file system. Return: 0, or -1 with
 * ERR_INTERNAL if stat() fails. If the socket is gone already, node_socket_check() reports it.
 */
int node_socket_note(struct node_socket *s, const char *endpoint, struct error **err) MUST_CHECK;

/**
 * node_socket_check() - check that the socket is still the one that was remembered. May be repeated. Blocks
 * on the file system. Return: 0, also while the file system fails, or -1 with ERR_UNAVAILABLE (another driver
 * listens there), ERR_PRECONDITION (it was removed, or something else is in its place), ERR_INTERNAL (it is
 * another socket, and it is not known whether a program listens on it).
 */
int node_socket_check(const struct node_socket *s, struct error **err) MUST_CHECK;

/** node_socket_done() - release what @s owns; safe on a zeroed one. */
void node_socket_done(struct node_socket *s);
